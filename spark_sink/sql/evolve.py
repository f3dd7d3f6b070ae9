"""What to do when a batch's columns and a table's differ: change what is read, or change the table. Pure.

First `adapt_schema` changes what records are read as, by `lakehouse.tables.schema-change.behavior`: a column can be left out, be cast to
the table's type, or go to a column of another name; so can fields within columns. Then `plan_evolution` compares what is left with the
table and returns the changes that the table needs, or refuses the batch.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from connect_py.errors import FatalTaskError
from spark_sink.config.sink_config import SinkConfig
from spark_sink.sql.record_schema import Column, RecordSchema
from spark_sink.types.columns import ColumnType, Expression, as_is, quote
from spark_sink.types.trees import Array, Map, Struct, Type, TypePath, merged, parse_type, struct_sql, type_text

_WIDER = {("int", "bigint"), ("float", "double")}


@dataclass(frozen=True)
class Evolution:
    """Changes to a table; empty when nothing must change.

    Attributes:
        added: types of new columns, and of new fields within columns, by path.
        widened: the wider types of columns and of parts of columns, by path.
        relaxed: columns that may be null from now on.
    """

    added: Mapping[TypePath, str]
    widened: Mapping[TypePath, str]
    relaxed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.widened or self.relaxed)

    def __str__(self) -> str:
        changes = [f"add {'.'.join(path)} {type_}" for path, type_ in self.added.items()]
        changes += [f"widen {'.'.join(path)} to {type_}" for path, type_ in self.widened.items()]
        return ", ".join([*changes, *(f"drop NOT NULL of {name}" for name in self.relaxed)])


def wider(one: str, other: str) -> str | None:
    """Return the type that holds values of both without loss by the changes that both formats allow, or None.

    Its fields are in the order of `one`, followed by those that only `other` has.
    """
    found = merged(parse_type(one), parse_type(other), _wider)
    return None if found is None else type_text(found)


def common_types(table: str, columns: Iterable[Column]) -> dict[str, str]:
    """Return types by column that hold the values of all columns of a name. Raise FatalTaskError if there is none."""
    types: dict[str, str] = {}
    for column in columns:
        common = wider(types[column.name], column.type.spark) if column.name in types else column.type.spark
        if common is None:
            raise FatalTaskError(
                f"Column {column.name} of table {table} is {types[column.name]} in some records, {column.type.spark} in others. "
                "This sink does not convert between them. Nothing was written."
            )
        types[column.name] = common
    return types


def in_order_of(table: Mapping[str, str], types: Mapping[str, str]) -> dict[str, str]:
    """Return a batch's types as they are written: types with parts have all fields of the table's, in the table's order."""
    return {name: wider(table[name], type_) or type_ if "<" in type_ and name in table else type_ for name, type_ in types.items()}


def _wider(one: str, other: str) -> str | None:
    if one == other or (other, one) in _WIDER:
        return one
    if (one, other) in _WIDER:
        return other
    first, second = _decimal(one), _decimal(other)
    if first and second and first[1] == second[1]:
        return one if first[0] >= second[0] else other
    return None


def plain(type_: str) -> str:
    """Normalise a type's text to one spelling."""
    return type_.replace("`", "").replace(" ", "").lower()


def _decimal(type_: str) -> tuple[int, int] | None:
    found = re.fullmatch(r"decimal\((\d+),(\d+)\)", type_)
    return (int(found[1]), int(found[2])) if found else None


def plan_evolution(
    table: str, has: Mapping[str, str], wanted: Mapping[str, str], *, enabled: bool, nulls: AbstractSet[str] = frozenset()
) -> Evolution:
    """Compare a table's columns with a batch's, and return the changes that the table needs; both are types by column, in order.

    Args:
        enabled: whether the table may be changed.
        nulls: columns of the table that are NOT NULL, and may be null in the batch.

    Raises:
        FatalTaskError: the difference cannot or must not be removed; nothing was changed or written.
    """
    folded = {name.lower(): name for name in has}
    added: dict[TypePath, str] = {}
    widened: dict[TypePath, str] = {}
    for name, type_ in wanted.items():
        stored = folded.get(name.lower())
        if stored is None:
            added[name,] = type_
            continue
        if stored != name:
            raise FatalTaskError(
                f"Table {table} has a column {stored} and the records have {name}: they differ in case only. Rename one of them."
            )
        if plain(has[name]) == plain(type_):
            continue
        old, new = parse_type(has[name]), parse_type(type_)
        common = merged(old, new, _wider)
        if common is None:
            path, one, other = next(_conflicts((name,), old, new))
            raise FatalTaskError(
                f"Column {'.'.join(path)} of table {table} is {type_text(one)} and the records now have {type_text(other)}. This sink does "
                "not convert between them. Nothing was written; change the column, or write to a new table under another connector name."
            )
        for path, part, is_new in _changes((name,), old, common):
            (added if is_new else widened)[path] = type_text(part)
    evolution = Evolution(added, widened, tuple(name for name in has if name in nulls) if enabled else ())
    if evolution and not enabled:
        raise FatalTaskError(
            f"Table {table} must change before the records fit: {evolution}. Nothing was written. Set "
            "lakehouse.tables.evolve-schema-enabled=true (and lakehouse.tables.schema-change.behavior to something else than exception), "
            "or change the table yourself, and restart the task."
        )
    return evolution


def _changes(path: TypePath, old: Type, new: Type) -> Iterator[tuple[TypePath, Type, bool]]:
    """Yield the parts in which a type differs from one that it was merged from: the path, the new type, and whether the part is new."""
    match old, new:
        case Struct(), Struct():
            for name, part in new.fields.items():
                if name in old.fields:
                    yield from _changes((*path, name), old.fields[name], part)
                else:
                    yield (*path, name), part, True
        case Array(), Array():
            yield from _changes((*path, "element"), old.element, new.element)
        case Map(), Map():
            yield from _changes((*path, "value"), old.value, new.value)
        case _ if old != new:
            yield path, new, False


def _conflicts(path: TypePath, one: Type, other: Type) -> Iterator[tuple[TypePath, Type, Type]]:
    """Yield parts that have no common type."""
    match one, other:
        case Struct(), Struct():
            for name in one.fields.keys() & other.fields.keys():
                yield from _conflicts((*path, name), one.fields[name], other.fields[name])
        case Array(), Array():
            yield from _conflicts((*path, "element"), one.element, other.element)
        case Map(), Map() if one.key == other.key:
            yield from _conflicts((*path, "value"), one.value, other.value)
        case _ if merged(one, other, _wider) is None:
            yield path, one, other


@dataclass(frozen=True)
class Rules:
    """What may change, and what is done about the rest.

    Attributes:
        behavior: the value of ``lakehouse.tables.schema-change.behavior``.
        adds: whether columns may be added.
        widens: whether columns' types may be widened.
    """

    behavior: str = "lenient"
    adds: bool = True
    widens: bool = True

    @classmethod
    def of(cls, config: SinkConfig) -> Rules:
        """Read a table's rules from its configuration; without evolve-schema-enabled every difference is an error."""
        if not config["tables.evolve-schema-enabled"]:
            return cls("exception")
        return cls(config["tables.schema-change.behavior"], allows(config, "add.column"), allows(config, "alter.column.type"))


def allows(config: SinkConfig, kind: str) -> bool:
    """Return whether the two lists of schema changes allow a kind."""
    included, excluded = config["tables.include.schema.changes"], config["tables.exclude.schema.changes"]
    return (not included or kind in included) and kind not in (excluded or ())


def adapt_schema(schema: RecordSchema, table: Mapping[str, str], seen: MutableMapping[str, str], rules: Rules) -> RecordSchema:
    """Return how records of a schema are to be read for a table.

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
    """Return what a type becomes to fit a known one, and SQL from one to the other; None when the rules have nothing for it.

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
    """Treat fields as columns: leave them out, cast them, or give them another name."""
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
    """Return the type with a further conversion; a value that does not fit raises, and so is a bad record."""
    return ColumnType(type_.read, to, lambda value: convert(type_.convert(value)))


def _suffix(type_: str) -> str:
    return re.sub(r"\W+", "_", plain(type_)).strip("_")
