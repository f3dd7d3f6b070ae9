"""Which tables a record belongs to. Pure.

Static: the tables of `lakehouse.tables`, all of them or those whose regex matches the record's routing value. Dynamic: the routing value is
the table's name. Else a pattern over what the event's source block and the topic say. The value of a route field differs from record to
record, so records are grouped by it (`route_sql`); all else is the same for records of one topic with the same schemas.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from connect_py.errors import DataError
from spark_sink.config.sink_config import SinkConfig, is_part_of_a_name
from spark_sink.types.columns import literal


@dataclass(frozen=True, order=True)
class TableName:
    """A table's name within its catalog: namespaces, then the table."""

    parts: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join(self.parts)


def parts_of_topic(topic: str) -> dict[str, str]:
    """Return what a topic's name says, when it is Debezium's `prefix.schema.table`: the prefix may itself hold dots, the others cannot."""
    pieces = topic.rsplit(".", 2)
    if len(pieces) < 3 or not all(pieces):
        return {"topic": topic}
    return {"topic": topic, "prefix": pieces[0], "db": pieces[1], "schema": pieces[1], "table": pieces[2]}


def parts_of_source(topic: str, source: Mapping[str, str | None]) -> dict[str, str]:
    """Return what an event's source block says (Debezium's `SourceInfo`). MySQL and MongoDB have no schema; the database stands for it."""
    database, table = source.get("db"), source.get("table") or source.get("collection")
    found = {
        "topic": topic,
        "prefix": source.get("name"),
        "db": database,
        "schema": source.get("schema") or database,
        "table": table,
    }
    return {name: value for name, value in found.items() if value}


def by_value(config: SinkConfig) -> bool:
    """Return whether each record's own value decides."""
    return config["tables.route-field"] not in (None, "__topic")


def route_sql(config: SinkConfig) -> str:
    """Return SQL of a record's routing value, over columns `value` (the payload's text) and `headers`; NULL where none is asked for.

    Of a change event the field is looked for in the row after the change, then before it.
    """
    if not by_value(config):
        return "CAST(NULL AS STRING)"
    name = config["tables.route-field"]
    if name.startswith("__header."):
        wanted = literal(name.removeprefix("__header."))
        return f"CAST(try_element_at(filter(headers, h -> h.key = {wanted}), -1).value AS STRING)"
    if name.startswith("__source."):
        return _field(f"source.{name.removeprefix('__source.')}")
    return f"coalesce({_field(f'after.{name}')}, {_field(f'before.{name}')}, {_field(name)})"


def _field(path: str) -> str:
    steps = "".join("['" + step.replace("'", "") + "']" for step in path.split("."))
    return f"get_json_object(value, {literal('$' + steps)})"


def destinations(topic: str, parts: Mapping[str, str], value: str | None, config: SinkConfig) -> tuple[TableName, ...] | None:
    """Return the tables of a record.

    Args:
        parts: what the pattern's placeholders stand for.
        value: the record's routing value.

    Returns:
        Empty when the lists leave its table out; None when no rule gives it one.

    Raises:
        DataError: what the record says cannot be a table's name.
    """
    value = topic if config["tables.route-field"] == "__topic" else value
    if config["tables"]:
        found = [
            TableName(tuple(name.split(".")))
            for name in config["tables"]
            if not config["tables.route-field"] or (value is not None and re.fullmatch(config.of_table(name)["route-regex"], value))
        ]
        return tuple(found) or None
    dynamic = config["tables.dynamic-enabled"]
    name = resolve(parts, config) if not dynamic else _finished(value.split("."), config) if value else None
    if name is None:
        return None
    return (name,) if _chosen(str(name), config) else ()


def of_topic(topic: str, config: SinkConfig) -> tuple[TableName, ...]:
    """Return the tables of a topic's records, as far as its name alone determines them."""
    if by_value(config):
        return ()
    try:
        return destinations(topic, parts_of_topic(topic), None, config) or ()
    except DataError:
        return ()


def resolve(parts: Mapping[str, str], config: SinkConfig) -> TableName | None:
    """Return the table's name by the pattern, or None when a placeholder has no value. Raises as `destinations`."""
    parts = dict(parts)
    if config["tables.route-topic-regex"] and (found := re.fullmatch(config["tables.route-topic-regex"], parts["topic"])):
        parts |= {str(number): text for number, text in enumerate(found.groups(), 1) if text}
    wanted = re.findall(r"\{(.*?)\}", config["tables.route-pattern"])
    if any(name not in parts for name in wanted):
        return None
    # A value may hold dots (a topic's name does): only the pattern's own dots separate namespaces.
    pieces: list[str] = config["tables.route-pattern"].split(".")
    return _finished([re.sub(r"\{(.*?)\}", lambda found: parts[found[1]], piece) for piece in pieces], config)


def _finished(pieces: list[str], config: SinkConfig) -> TableName:
    if config["tables.namespace"]:
        pieces = [*config["tables.namespace"].split("."), *pieces]
    pieces[-1] = config["tables.prefix"] + pieces[-1]
    case = config["tables.name-case"]
    name = TableName(tuple(piece if case == "keep" else piece.upper() if case == "upper" else piece.lower() for piece in pieces))
    for part in name.parts:
        if not is_part_of_a_name(part):
            raise DataError(
                f"{part!r} cannot be a part of a table's name, of which the whole is {str(name)!r}: it is empty, . or .., or has a slash, "
                "a backslash, a colon or a control character"
            )
    return name


def _chosen(name: str, config: SinkConfig) -> bool:
    included, excluded = config["tables.include.list"], config["tables.exclude.list"]
    if included and not any(_names(pattern, name, config) for pattern in included):
        return False
    return not any(_names(pattern, name, config) for pattern in excluded or ())


def _names(pattern: str, name: str, config: SinkConfig) -> bool:
    """Return whether a regex matches a table's whole name: in any case where tables' names are made one."""
    any_case = config["tables.name-case"] != "keep"
    return bool(re.fullmatch(pattern, name) or (any_case and re.fullmatch(pattern, name, re.IGNORECASE)))
