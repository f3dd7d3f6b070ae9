"""Which table a record belongs to. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from spark_sink.config import SinkConfig


@dataclass(frozen=True, order=True)
class TableName:
    """A table's name within its catalog: namespaces, then the table."""

    parts: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join(self.parts)


def parts_of_topic(topic: str) -> dict[str, str]:
    """What a topic's name says, when it is Debezium's `prefix.schema.table`: the prefix may itself hold dots, the others cannot."""
    pieces = topic.rsplit(".", 2)
    if len(pieces) < 3 or not all(pieces):
        return {"topic": topic}
    return {"topic": topic, "prefix": pieces[0], "db": pieces[1], "schema": pieces[1], "table": pieces[2]}


def parts_of_source(topic: str, source: Mapping[str, str | None]) -> dict[str, str]:
    """What an event's source block says (`SourceInfo` of each connector). MySQL and MongoDB have no schema; the database stands for it."""
    database, table = source.get("db"), source.get("table") or source.get("collection")
    found = {
        "topic": topic,
        "prefix": source.get("name"),
        "db": database,
        "schema": source.get("schema") or database,
        "table": table,
    }
    return {name: value for name, value in found.items() if value}


def resolve(parts: Mapping[str, str], config: SinkConfig) -> TableName | None:
    """The table's name, or None when a placeholder of the pattern has no value."""
    wanted = re.findall(r"\{(.*?)\}", config["tables.route-pattern"])
    if any(name not in parts for name in wanted):
        return None
    # A value may hold dots (a topic's name does): only the pattern's own dots separate namespaces.
    pieces = [re.sub(r"\{(.*?)\}", lambda found: parts[found[1]], piece) for piece in config["tables.route-pattern"].split(".")]
    if config["tables.namespace"]:
        pieces = [*config["tables.namespace"].split("."), *pieces]
    pieces[-1] = config["tables.prefix"] + pieces[-1]
    case = config["tables.name-case"]
    return TableName(tuple(piece if case == "keep" else piece.upper() if case == "upper" else piece.lower() for piece in pieces))
