"""What becomes of a column whose type, or whose being there, the table does not share: `lakehouse.tables.schema-change.behavior`. Pure.

`adapt` changes what records are read as, before rows, statements and `plan_evolution` see them: a column can be left out, be cast to the
table's type, or go to a column of another name; so can fields within columns. What it leaves alone the table must take, or the batch fails.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, replace

from spark_sink.config.sink_config import SinkConfig
from spark_sink.sql.evolve import plain, wider
from spark_sink.sql.record_schema import Column, RecordSchema
from spark_sink.types.columns import ColumnType, Expression, as_is, quote
from spark_sink.types.trees import Array, Map, Struct, Type, parse_type, struct_sql, type_text


@dataclass(frozen=True)
class Rules:
    """What may change, and what is done about the rest.

    Attributes:
        behavior: see the property.
        adds: whether columns may be added.
        widens: whether columns' types may be widened.
    """

    behavior: str = "lenient"
    adds: bool = True
    widens: bool = True

    @classmethod
    def of(cls, config: SinkConfig) -> Rules:
        """A table's, from its configuration; without evolve-schema-enabled every difference is an error."""
        if not config["tables.evolve-schema-enabled"]:
            return cls("exception")
        return cls(config["tables.schema-change.behavior"], allows(config, "add.column"), allows(config, "alter.column.type"))


def allows(config: SinkConfig, kind: str) -> bool:
    """Whether the two lists of schema changes let a kind through."""
    included, excluded = config["tables.include.schema.changes"], config["tables.exclude.schema.changes"]
    return (not included or kind in included) and kind not in (excluded or ())


def adapt(schema: RecordSchema, table: Mapping[str, str], seen: MutableMapping[str, str], rules: Rules) -> RecordSchema:
    """How records of a schema are to be read for a table.

    Args:
        table: types by column, as the table has them; empty while there is none.
        seen: types by column, of the table and of the batch's earlier schemas; this schema's are added.
    """
    if rules.behavior == "exception":
        return schema
    columns = [column if column in schema.keys else _adapted(column, table, seen, rules) for column in schema.columns]
    return replace(schema, columns=tuple(column for column in columns if column is not None))


def _adapted(column: Column, table: Mapping[str, str], seen: MutableMapping[str, str], rules: Rules) -> Column | None:
    known = seen.get(column.name)
    if known is None:
        if table and (rules.behavior == "ignore" or not rules.adds):
            return None
        seen[column.name] = column.type.spark
        return column
    there = column.name in table
    fitted = _fitted(parse_type(column.type.spark), parse_type(known), rules, there=there)
    if fitted is not None:
        type_, convert = fitted
        seen[column.name] = wider(known, type_text(type_)) or known
        return column if convert is as_is else replace(column, type=_converted(column.type, type_text(type_), convert))
    if rules.behavior == "lenient" and (rules.adds or not table):
        return _adapted(
            replace(column, name=f"{column.name}__{_suffix(column.type.spark)}"), table, seen, replace(rules, behavior="evolve")
        )
    return column


def _fitted(given: Type, known: Type, rules: Rules, *, there: bool, depth: int = 0) -> tuple[Type, Expression] | None:
    """What a type becomes to go with a known one, and SQL from one to the other; None when the rules have nothing for it.

    Args:
        there: whether the table has the known type, and not only the batch.
    """
    stays = rules.behavior == "ignore" or not rules.widens
    match given, known:
        case Struct(), Struct():
            return _fitted_struct(given, known, rules, there=there, depth=depth)
        case Array(), Array():
            inner = _fitted(given.element, known.element, rules, there=there, depth=depth + 1)
            if inner is None or inner[1] is as_is:
                return None if inner is None else (given, as_is)
            return Array(inner[0]), lambda value: f"transform({value}, f{depth} -> {inner[1](f'f{depth}')})"
        case Map(), Map() if given.key == known.key:
            inner = _fitted(given.value, known.value, rules, there=there, depth=depth + 1)
            if inner is None or inner[1] is as_is:
                return None if inner is None else (given, as_is)
            return Map(given.key, inner[0]), lambda value: f"transform_values({value}, (g{depth}, f{depth}) -> {inner[1](f'f{depth}')})"
    common = wider(type_text(known), type_text(given))
    if common is not None and not (stays and there and common != type_text(known)):
        return given, as_is
    if stays or rules.behavior == "try_evolve":
        return known, lambda value: f"CAST({value} AS {type_text(known)})"
    return None


def _fitted_struct(given: Struct, known: Struct, rules: Rules, *, there: bool, depth: int) -> tuple[Type, Expression] | None:
    """Fields are taken as columns are: left out, cast, or given another name."""
    fields: dict[str, Type] = {}
    parts: list[tuple[str, str, Expression]] = []
    for name, type_ in given.fields.items():
        target: str = name
        if name not in known.fields:
            if there and (rules.behavior == "ignore" or not rules.adds):
                continue
            fitted: tuple[Type, Expression] | None = (type_, as_is)
        else:
            fitted = _fitted(type_, known.fields[name], rules, there=there, depth=depth)
            if fitted is None and rules.behavior == "lenient" and (rules.adds or not there):
                target = f"{name}__{_suffix(type_text(type_))}"
                fitted = (type_, as_is)
                if target in known.fields:
                    fitted = _fitted(type_, known.fields[target], replace(rules, behavior="evolve"), there=there, depth=depth)
        if fitted is None:
            return None
        fields[target] = fitted[0]
        parts.append((target, name, fitted[1]))
    if fields == given.fields:
        return given, as_is
    if not fields:
        return known, lambda _: f"CAST(NULL AS {type_text(known)})"
    return Struct(fields), lambda value: struct_sql(value, {target: to(f"{value}.{quote(name)}") for target, name, to in parts})


def _converted(type_: ColumnType, to: str, convert: Expression) -> ColumnType:
    """A value that does not fit raises, and so is a bad record."""
    return ColumnType(type_.read, to, lambda value: convert(type_.convert(value)))


def _suffix(type_: str) -> str:
    return re.sub(r"\W+", "_", plain(type_)).strip("_")
