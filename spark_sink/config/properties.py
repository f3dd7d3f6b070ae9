"""The sink's properties, group by group, and what they are together: `CONFIG_DEF`.

Names follow Iceberg's Kafka Connect sink where that has the same notion: `iceberg.X` means `lakehouse.X`. To add a property, add its key to
a group here; a setting of single tables is added to `OF_ONE_TABLE` too, and choices that exclude each other are refused
in `config.sink_config`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from connect_py.api.config import ConfigDef, ConfigKey, ConfigType, Importance, Validator, between, non_empty, one_of
from connect_py.errors import ConfigError
from spark_sink.config.layout import parse_partitions
from spark_sink.types.columns import MAX_PRECISION

PREFIX = "lakehouse."


def _key(
    name: str,
    default: Any,
    documentation: str,
    type_: ConfigType = ConfigType.STRING,
    check: Validator | None = None,
    importance: Importance = Importance.MEDIUM,
) -> ConfigKey:
    """Define a property by its name without `PREFIX`."""
    return ConfigKey(PREFIX + name, type_, default, importance, documentation, validator=check)


def _text(name: str, default: str | None, documentation: str, check: Validator | None = None, **more: Any) -> ConfigKey:
    return _key(name, default, documentation, ConfigType.STRING, check, **more)


def _choice(name: str, choices: Sequence[str], documentation: str, default: str | None = None, **more: Any) -> ConfigKey:
    """Define a property with some values; the first is the default, unless another is named."""
    return _key(name, default or choices[0], documentation, ConfigType.STRING, one_of(*choices), **more)


def _flag(name: str, default: bool, documentation: str, **more: Any) -> ConfigKey:
    return _key(name, default, documentation, ConfigType.BOOLEAN, **more)


def _int(name: str, default: int, documentation: str, *bounds: int, **more: Any) -> ConfigKey:
    return _key(name, default, documentation, ConfigType.INT, between(*bounds), **more)


def _long(name: str, default: int, documentation: str, *bounds: int) -> ConfigKey:
    return _key(name, default, documentation, ConfigType.LONG, between(*bounds))


def _list(name: str, documentation: str, check: Validator | None = None, default: str | None = None) -> ConfigKey:
    return _key(name, default, documentation, ConfigType.LIST, check)


def _at_least_one(name: str, value: Any) -> None:
    if value is not None:
        between(1)(name, value)


_PLACEHOLDERS = ("topic", "prefix", "db", "schema", "table")


def _route_pattern(name: str, value: Any) -> None:
    unknown = [p for p in re.findall(r"\{(.*?)\}", value or "") if p not in _PLACEHOLDERS and not re.fullmatch(r"[1-9]", p)]
    if unknown or not value:
        known = ", ".join("{" + p + "}" for p in (*_PLACEHOLDERS, "1", "2")) + " …"
        raise ConfigError(f"Invalid value {value} for configuration {name}: placeholders are {known}")


METADATA_COLUMNS = ("op", "ts_ms", "source.ts_ms", "position", "topic", "partition", "offset", "deleted", "txid", "snapshot")
SCHEMA_CHANGES = ("create.table", "add.column", "alter.column.type")


def _among(*known: str) -> Validator:
    """Check that every value of a list is known."""

    def check(name: str, value: Any) -> None:
        if unknown := [item for item in value or () if item not in known]:
            raise ConfigError(f"Invalid value {', '.join(unknown)} for configuration {name}: known are {', '.join(known)}")

    return check


def _ordering(name: str, value: Any) -> None:
    if value not in ("log", "source") and not re.fullmatch(r"column:\S.*", str(value)):
        raise ConfigError(f"Invalid value {value} for configuration {name}: must be one of: log, source, column:<name>")


def _partitions(name: str, value: Any) -> None:
    try:
        parse_partitions(value or "")
    except ValueError as error:
        raise ConfigError(f"Invalid value {value} for configuration {name}: {error}") from None


def _variable_decimal(name: str, value: Any) -> None:
    found = re.fullmatch(r"decimal\((\d+),\s*(\d+)\)", str(value))
    if value not in ("string", "double") and not (found and 0 <= int(found[2]) <= int(found[1]) <= MAX_PRECISION):
        raise ConfigError(f"Invalid value {value} for configuration {name}: must be one of: string, double, decimal(p,s) with p up to 38")


def _window(name: str, value: Any) -> None:
    if value and not re.fullmatch(r"([01]\d|2[0-3]):[0-5]\d\s*-\s*([01]\d|2[0-3]):[0-5]\d", value):
        raise ConfigError(f"Invalid value {value} for configuration {name}: two times of day are expected, as 22:00-05:30")


#: All properties, by the group that forms show them in.
_GROUPS: Mapping[str, Sequence[ConfigKey]] = {
    "Destination": (
        _choice("format", ("iceberg", "delta"), "Format of the tables.", importance=Importance.HIGH),
        _text(
            "catalog",
            None,
            "Name of the Spark catalog; by default iceberg, and spark_catalog for Delta. "
            "Its settings are lakehouse.catalog.<setting>: type (hadoop, hive, rest, jdbc, glue, nessie), "
            "warehouse, uri, catalog-impl, io-impl and whatever the catalog takes.",
            non_empty,
            importance=Importance.HIGH,
        ),
        _text(
            "delta.root",
            None,
            "Directory or URI under which Delta tables live, each at <root>/<namespace>/<table>, when no metastore is wanted.",
            non_empty,
        ),
    ),
    "Routing": (
        _list(
            "tables",
            "Static destinations: tables by name. Every record goes to all of them, or, with lakehouse.tables.route-field, to those whose "
            "lakehouse.table.<name>.route-regex matches the whole value of that field.",
        ),
        _text(
            "tables.route-field",
            None,
            "Dotted path of the value that routes a record, within the row (of change events: after, else before). Also __topic, "
            "__source.<field> of the event's source block, and __header.<name>.",
            non_empty,
        ),
        _flag("tables.dynamic-enabled", False, "The value of lakehouse.tables.route-field is the table's name."),
        _choice(
            "tables.unrouted",
            ("fail", "skip", "dlq"),
            "Records that no rule gives a table: fail stops the task, skip passes over and counts them, dlq treats them as bad records.",
        ),
        _list("tables.include.list", "Regexes; tables whose whole name matches none are passed over."),
        _list("tables.exclude.list", "Regexes; tables whose whole name matches one are passed over."),
        _text(
            "tables.route-topic-regex",
            None,
            "Regex over the whole name of the topic, whose groups are {1}, {2} … of lakehouse.tables.route-pattern.",
        ),
        _text(
            "tables.route-pattern",
            "{schema}.{table}",
            "Name of a record's table, from the event's source block or, where that is silent, from the parts of the topic's name. "
            "Placeholders: {topic} {prefix} {db} {schema} {table}, and {1} … of lakehouse.tables.route-topic-regex.",
            _route_pattern,
        ),
        _text("tables.namespace", None, "Namespace put before the table's name.", non_empty),
        _text("tables.prefix", "", "Text put before the last part of the table's name."),
        _choice("tables.name-case", ("lower", "upper", "keep"), "Case of tables' names."),
    ),
    "Writing": (
        _choice(
            "tables.write-mode",
            ("upsert", "append", "scd2"),
            "upsert: one row a key, changed by updates and removed by deletes. append: a row for each event, with its operation and place. "
            "scd2: a row for each version of a key, with the time from and to which it was valid.",
        ),
        _choice(
            "tables.delete-mode",
            ("hard", "soft", "ignore"),
            "Of upserts. hard: a delete removes the row; soft: it sets __deleted and leaves the values; ignore: the row stays.",
        ),
        _choice(
            "tables.truncate-mode",
            ("apply", "soft", "ignore", "fail"),
            "Of upserts. apply: a truncate empties the table; soft: it sets __deleted in all rows; ignore; fail: it stops the task.",
        ),
        _choice(
            "tables.no-key",
            ("append", "fail", "dlq"),
            "What to do with records without a key: append writes each event as a row, fail stops the task, dlq takes "
            "them for bad records.",
        ),
        _text(
            "tables.ordering",
            "log",
            "Which event of a key is the last. log: the one with the highest offset in Kafka. source: the one with the "
            "highest position in the "
            "source's own log, which the table keeps as __position; nothing goes back in time, whatever the order in "
            "Kafka. column:<name>: the "
            "one with the highest value of a column.",
            _ordering,
        ),
        _int(
            "tables.position-epoch",
            0,
            "With ordering=source: raise it after the source was restored or its log was reset, since its positions count anew then.",
            0,
            999999,
        ),
        _long(
            "tables.tombstone-retention-ms",
            172800000,
            "With ordering=source and hard deletes: for so long <table>__tombstones remembers deleted keys, lest an older event bring "
            "one back.",
            0,
        ),
        _list(
            "tables.default-id-columns",
            "Columns that identify a row, in place of the record key's; of one table lakehouse.table.<name>.id-columns. A delete must hold "
            "them, in its key or in the row before it.",
        ),
        _text(
            "tables.cdc-field",
            None,
            "The field, a path with dots, that says what happened to the row of a flattened record: its first letter is "
            "I, C or R (insert), U "
            "(update) or D (delete), in either case; anything else is a bad record. Without it Debezium's own fields "
            "say it (__op, __deleted), "
            "and records without them are inserts. Tombstones are ignored with it.",
            non_empty,
        ),
        _list("tables.exclude-columns", "Columns that are never written."),
        _list(
            "tables.metadata-columns",
            "Columns added to every table, as __<name>: " + ", ".join(METADATA_COLUMNS) + ".",
            _among(*METADATA_COLUMNS),
            default="op,ts_ms",
        ),
        _flag(
            "snapshot.reconcile",
            False,
            "When a snapshot of a table has ended, delete the rows that it did not show and that nothing has changed since it began: those "
            "that were deleted while nobody captured. Never with snapshots of chosen rows. The table keeps __topic and __offset for it.",
        ),
        _text(
            "unavailable.value.placeholder",
            "__debezium_unavailable_value",
            "What stands for a value that the source did not send; the table keeps the value that it has. "
            "Must equal the source connector's setting.",
            non_empty,
        ),
    ),
    "Schema": (
        _flag("tables.auto-create-enabled", False, "Create missing tables from the records' schemas.", importance=Importance.HIGH),
        _flag(
            "tables.evolve-schema-enabled",
            False,
            "Add new columns to existing tables and widen int to bigint, float to double, and the precision of decimals.",
            importance=Importance.HIGH,
        ),
        _choice(
            "tables.schema-change.behavior",
            ("exception", "evolve", "try_evolve", "lenient", "ignore"),
            "With evolve-schema-enabled. lenient: add, widen, and put values of a type that cannot be widened into a new column "
            "<name>__<type>; evolve: such a type is an error; try_evolve: its values are cast to the table's type, and what does not "
            "fit is a bad record; ignore: write only what the table has; exception: every difference is an error.",
            default="lenient",
        ),
        _list(
            "tables.include.schema.changes",
            "Changes that may be made, all without it: create.table, add.column, alter.column.type. A column that may not be added is left "
            "out; a value whose column may not be widened must fit it.",
            _among(*SCHEMA_CHANGES),
        ),
        _list("tables.exclude.schema.changes", "Changes that may not be made, of those of the include list.", _among(*SCHEMA_CHANGES)),
        _text(
            "tables.default-partition-by",
            None,
            "Partitions of new tables, separated by commas: a column, or years(c), months(c), days(c), hours(c), "
            "bucket(c,n), truncate(c,n), "
            "which Delta has not; of one table lakehouse.table.<name>.partition-by. The columns should be part of the "
            "key, or never change.",
            _partitions,
        ),
        _list("tables.cluster-by", "Columns by which new tables are ordered: Delta's liquid clustering, Iceberg's write order."),
        _text(
            "tables.default-commit-branch",
            None,
            "Iceberg: the branch that is written, in place of main; of one table lakehouse.table.<name>.commit-branch.",
            non_empty,
        ),
        _flag(
            "tables.schema-force-optional",
            True,
            "Create every column that is not part of the key nullable; false keeps the record schema's required fields required.",
        ),
    ),
    "Types": (
        _choice(
            "time.mode",
            ("iso-string", "micros"),
            "Times of day as text (13:05:01.123456) or as micros, a BIGINT of microseconds.",
        ),
        _choice("connect-timestamp.as", ("timestamp", "timestamp_ntz"), "Type for org.apache.kafka.connect.data.Timestamp."),
        _choice(
            "temporal.infinity",
            ("null", "clamp", "fail"),
            "What infinite dates and timestamps become: null, the ends of the years 1 and 9999 (clamp), or a bad record (fail).",
        ),
        _text(
            "variable-decimal.mode",
            "string",
            "Type for decimals that each have a scale of their own (NUMERIC without one): string, double, or decimal(p,s), which rounds.",
            _variable_decimal,
        ),
        _choice(
            "decimal.overflow",
            ("string", "double", "fail"),
            "Type for decimals of more than 38 digits, which no column holds: string, double, or fail, which refuses the records.",
        ),
        _choice(
            "json.mode",
            ("string", "variant"),
            "Type for JSON values: string, or variant (Iceberg: tables of format 3); text that is no JSON is then a bad record.",
        ),
        _choice(
            "bits.mode",
            ("binary", "bigint"),
            "Type for strings of bits: binary, little endian, or bigint, of columns of at most 63 bits.",
        ),
        _choice(
            "geometry.mode",
            ("struct", "ewkb", "wkt"),
            "Type for geometries: struct, as they come (wkb, srid, and x and y of points), ewkb, a binary that holds its srid too, or wkt, "
            "a text without it.",
        ),
        _flag(
            "nested-as-variant",
            False,
            "Structs, maps and arrays become VARIANT (Iceberg: tables of format 3), so that changes within them never change the table.",
        ),
    ),
    "Spark": (
        _text(
            "spark.master",
            "local[*]",
            "Where Spark runs. Any further setting of Spark is lakehouse.spark.conf.<setting>.",
            non_empty,
            importance=Importance.HIGH,
        ),
        _key(
            "spark.remote",
            None,
            "sc://host:port/;…: a Spark Connect server that does the work, in place of lakehouse.spark.master. It needs the "
            "formats' libraries and extensions.",
            ConfigType.PASSWORD,
            importance=Importance.HIGH,
        ),
        _list(
            "spark.jars",
            "Jars for Spark, separated by commas: nothing is resolved at start. "
            "Without it the sink's libraries are fetched once from Maven Central.",
        ),
    ),
    "Batches": (
        _choice(
            "source.mode",
            ("loop", "stream"),
            "loop: the task plans offset ranges and Spark reads them; no checkpoint directory is needed. stream: Structured Streaming "
            "plans them, with a checkpoint under lakehouse.checkpoint.location; the tables' offsets decide there too.",
        ),
        _text(
            "checkpoint.location",
            None,
            "With lakehouse.source.mode=stream: directory or URI that the task reaches wherever it runs; each connector "
            "has a directory in it.",
            non_empty,
        ),
        _int(
            "control.commit.interval-ms",
            60000,
            "Time between the starts of two batches; a backlog of lakehouse.max-offsets-per-trigger does not wait.",
            0,
            importance=Importance.HIGH,
        ),
        _choice(
            "trigger",
            ("processing-time", "available-now"),
            "processing-time: go on for ever. available-now: apply what Kafka holds at the task's start, in bounded "
            "batches, and rest then.",
        ),
        _long("min-offsets-per-trigger", 0, "Fewer offsets than this wait for more, for lakehouse.max-trigger-delay-ms at most.", 0),
        _long(
            "max-trigger-delay-ms",
            900000,
            "With lakehouse.min-offsets-per-trigger: the longest time between the starts of two batches while records wait.",
            0,
        ),
        _long("max-offsets-per-trigger", 100000, "Upper bound of a batch, in offsets.", 1),
        _flag(
            "batch.adaptive",
            False,
            "Halve the bound of a batch when one runs out of memory or time, and let it grow again by a quarter while "
            "batches take less than "
            "half of lakehouse.control.commit.interval-ms. With lakehouse.source.mode=loop only: Spark's own plans cannot be changed.",
        ),
        _int(
            "control.commit.threads",
            os.cpu_count() or 1,
            "How many tables are written at once, each in a Spark session of its own; by default as many as the task's machine has cores. "
            "With lakehouse.spark.remote always one.",
            1,
        ),
        _long(
            "control.commit.timeout-ms",
            300000,
            "How long one table's part of a batch may take to be written. Then its jobs are cancelled and the batch is tried again.",
            1,
        ),
        _int("control.commit.max-consecutive-failures", 5, "After so many failed batches in a row the task fails.", 1),
        _choice(
            "starting-offsets",
            ("earliest", "latest"),
            "Where to start in partitions of which neither the tables nor the consumer group know a position.",
        ),
        _int(
            "errors.max-per-batch",
            1000,
            "With errors.tolerance=all: more bad records than this in one batch fail the task. So many are a fault of the configuration.",
            0,
        ),
        _flag(
            "fail-on-data-loss",
            True,
            "Fail when Kafka has deleted offsets that were still to be read; false goes on with the first one that is left.",
        ),
    ),
    "Maintenance": (
        _flag("maintenance.enabled", True, "Compact tables between batches and clean up next to them, one table at a time."),
        _int(
            "maintenance.compact.every-commits",
            50,
            "A table's turn comes after this number of commits; turns take a fifth of the time at most.",
            1,
        ),
        _long("maintenance.max-lag", 100000, "Maintenance waits while the sink has more offsets than this to catch up with.", 0),
        _text("maintenance.window", None, "Hours in which maintenance may run, UTC, as 22:00-05:30; at any time without it.", _window),
        _long("maintenance.target-file-size-bytes", 134217728, "Size of compacted files.", 1),
        _long(
            "maintenance.expire-snapshots.older-than-ms",
            432000000,
            "Iceberg: snapshots older than this are removed, with the files that only they have.",
            0,
        ),
        _int("maintenance.expire-snapshots.retain-last", 10, "Iceberg: so many snapshots stay, however old.", 1),
        _key(
            "maintenance.expire-snapshots.retain-at-most",
            None,
            "Iceberg: so many snapshots stay at most, however young; by default 2000 if lakehouse.control.commit.interval-ms is below "
            "60000, else any number. Each thousand adds 0.2 s to every batch.",
            ConfigType.INT,
            _at_least_one,
        ),
        _long(
            "maintenance.remove-orphan-files.older-than-ms",
            604800000,
            "Iceberg: files that belong to no snapshot are removed when they are older than this; three days at least.",
            259200000,
        ),
        _int(
            "maintenance.vacuum.retain-hours",
            168,
            "Delta: files that the table has not had for so many hours are removed; 168 at least.",
            168,
        ),
    ),
}

CONFIG_DEF = ConfigDef([replace(key, group=group) for group, keys in _GROUPS.items() for key in keys])


#: Properties that Iceberg's sink has too, by name without prefix; those that end in a dot are prefixes.
SHARED_WITH_ICEBERG = frozenset(
    {
        "catalog",
        "catalog.",
        "hadoop.",
        "kafka.",
        "tables",
        "tables.route-field",
        "tables.dynamic-enabled",
        "table.",
        "tables.auto-create-enabled",
        "tables.auto-create-props.",
        "tables.write-props.",
        "tables.evolve-schema-enabled",
        "tables.schema-force-optional",
        "tables.cdc-field",
        "tables.default-id-columns",
        "tables.default-partition-by",
        "tables.default-commit-branch",
        "control.commit.interval-ms",
        "control.commit.threads",
        "control.commit.timeout-ms",
    }
)

#: Properties that take any suffix: lakehouse.<prefix><suffix>.
OPEN_PREFIXES = ("catalog.", "hadoop.", "kafka.", "spark.conf.", "table.", "tables.auto-create-props.", "tables.write-props.")

#: Settings of one table, lakehouse.table.<namespace.table>.<setting>, and the property for all tables that each of them wins over.
OF_ONE_TABLE = {
    "write-mode": "tables.write-mode",
    "delete-mode": "tables.delete-mode",
    "truncate-mode": "tables.truncate-mode",
    "no-key": "tables.no-key",
    "ordering": "tables.ordering",
    "position-epoch": "tables.position-epoch",
    "metadata-columns": "tables.metadata-columns",
    "exclude-columns": "tables.exclude-columns",
    "cdc-field": "tables.cdc-field",
    "id-columns": "tables.default-id-columns",
    "partition-by": "tables.default-partition-by",
    "cluster-by": "tables.cluster-by",
    "commit-branch": "tables.default-commit-branch",
    "evolve-schema-enabled": "tables.evolve-schema-enabled",
    "schema-change.behavior": "tables.schema-change.behavior",
    "snapshot.reconcile": "snapshot.reconcile",
    "route-regex": "route-regex",
    "column-types": "column-types",
}


def without_aliases(config: Mapping[str, str | None]) -> tuple[dict[str, str | None], dict[str, str]]:
    """Write `iceberg.X` as `lakehouse.X` where both mean the same.

    Returns:
        The configuration, and errors by property.
    """
    renamed = {name: value for name, value in config.items() if not name.startswith("iceberg.")}
    errors: dict[str, str] = {}
    for name, value in config.items():
        short = name.removeprefix("iceberg.")
        if short == name or not (short in SHARED_WITH_ICEBERG or any(short.startswith(p) for p in SHARED_WITH_ICEBERG if p[-1] == ".")):
            continue
        ours = PREFIX + short
        if ours in config and config[ours] != value:
            errors[ours] = f"{ours} and its other spelling {name} are set to different values; set one of them."
        renamed[ours] = value
    return renamed, errors


def unknown_properties(config: Mapping[str, str | None]) -> list[str]:
    """Return properties under `lakehouse.` that mean nothing: most likely typing errors, which a sink must not pass over in silence."""
    found = [name for name in config if name.startswith(PREFIX) and name not in CONFIG_DEF.keys]
    return [name for name in found if not name.removeprefix(PREFIX).startswith(OPEN_PREFIXES)]
