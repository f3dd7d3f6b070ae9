"""Which tables and columns are made, and what happens to a difference."""

from __future__ import annotations

from typing import Any

from connect_py.api.config import ConfigType, Importance, non_empty, one_of
from connect_py.errors import ConfigError
from spark_sink.config.key import key
from spark_sink.config.layout import parse_partitions


def _partitions(name: str, value: Any) -> None:
    try:
        parse_partitions(value or "")
    except ValueError as error:
        raise ConfigError(f"Invalid value {value} for configuration {name}: {error}") from None


SCHEMA_CHANGES = ("create.table", "add.column", "alter.column.type")


def _schema_changes(name: str, value: Any) -> None:
    unknown = [kind for kind in value or () if kind not in SCHEMA_CHANGES]
    if unknown:
        raise ConfigError(f"Invalid value {', '.join(unknown)} for configuration {name}: known are {', '.join(SCHEMA_CHANGES)}")


KEYS = (
    key(
        "tables.auto-create-enabled",
        False,
        "Create missing tables from the records' schemas.",
        ConfigType.BOOLEAN,
        importance=Importance.HIGH,
        group="Schema",
    ),
    key(
        "tables.evolve-schema-enabled",
        False,
        "Add new columns to existing tables and widen int to bigint, float to double, and the precision of decimals.",
        ConfigType.BOOLEAN,
        importance=Importance.HIGH,
        group="Schema",
    ),
    key(
        "tables.schema-change.behavior",
        "lenient",
        "With evolve-schema-enabled. lenient: add, widen, and put values of a type that cannot be widened into a new column "
        "<name>__<type>; evolve: such a type is an error; try_evolve: its values are cast to the table's type, and what does not "
        "fit is a bad record; ignore: write only what the table has; exception: every difference is an error.",
        validator=one_of("exception", "evolve", "try_evolve", "lenient", "ignore"),
        group="Schema",
    ),
    key(
        "tables.include.schema.changes",
        None,
        "Changes that may be made, all without it: create.table, add.column, alter.column.type. A column that may not be added is left "
        "out; a value whose column may not be widened must fit it.",
        ConfigType.LIST,
        validator=_schema_changes,
        group="Schema",
    ),
    key(
        "tables.exclude.schema.changes",
        None,
        "Changes that may not be made, of those of the include list.",
        ConfigType.LIST,
        validator=_schema_changes,
        group="Schema",
    ),
    key(
        "tables.default-partition-by",
        None,
        "Partitions of new tables, separated by commas: a column, or years(c), months(c), days(c), hours(c), bucket(c,n), truncate(c,n), "
        "which Delta has not; of one table lakehouse.table.<name>.partition-by. The columns should be part of the key, or never change.",
        validator=_partitions,
        group="Schema",
    ),
    key(
        "tables.cluster-by",
        None,
        "Columns by which new tables are ordered: Delta's liquid clustering, Iceberg's write order.",
        ConfigType.LIST,
        group="Schema",
    ),
    key(
        "tables.default-commit-branch",
        None,
        "Iceberg: the branch that is written, in place of main; of one table lakehouse.table.<name>.commit-branch.",
        validator=non_empty,
        group="Schema",
    ),
    key(
        "tables.schema-force-optional",
        True,
        "Create every column that is not part of the key nullable; false keeps the record schema's required fields required.",
        ConfigType.BOOLEAN,
        group="Schema",
    ),
)
