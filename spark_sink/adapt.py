"""What becomes of a column whose type, or whose being there, the table does not share: `lakehouse.tables.schema-change.behavior`. Pure.

`adapt` changes what records are read as, before rows, statements and `plan_evolution` see them: a column can be left out, be cast to the
table's type, or go to a column of another name. What it leaves alone the table must take, or the batch fails.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, replace

from spark_sink.config import SinkConfig
from spark_sink.evolve import plain, wider
from spark_sink.records import Column, RecordSchema
from spark_sink.types import ColumnType


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
    common = wider(known, column.type.spark)
    stays = rules.behavior == "ignore" or not rules.widens
    if common is not None and not (stays and column.name in table and common != plain(table[column.name])):
        seen[column.name] = common
        return column
    if stays or rules.behavior == "try_evolve":
        return replace(column, type=_cast(column.type, known))
    if rules.behavior == "lenient" and (rules.adds or not table):
        return _adapted(
            replace(column, name=f"{column.name}__{_suffix(column.type.spark)}"), table, seen, replace(rules, behavior="evolve")
        )
    return column


def _cast(type_: ColumnType, to: str) -> ColumnType:
    """A value that does not fit raises, and so is a bad record."""
    return ColumnType(type_.read, to, lambda value: f"CAST({type_.convert(value)} AS {to})")


def _suffix(type_: str) -> str:
    return re.sub(r"\W+", "_", plain(type_)).strip("_")
