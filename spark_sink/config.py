"""The sink's properties. Names follow Iceberg's Kafka Connect sink where that has the same notion: `iceberg.X` means `lakehouse.X`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from connect_py.api.config import ConfigDef, ConfigKey, ConfigType, Importance, between, non_empty, one_of
from connect_py.errors import ConfigError
from spark_sink import settings
from spark_sink.types import TypeOptions, quote

PREFIX = "lakehouse."

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
        "tables.evolve-schema-enabled",
        "tables.schema-force-optional",
        "control.commit.interval-ms",
    }
)

#: Properties that take any suffix: lakehouse.<prefix><suffix>.
OPEN_PREFIXES = ("catalog.", "hadoop.", "kafka.", "spark.conf.", "table.", "tables.auto-create-props.")

#: Settings of one table, lakehouse.table.<namespace.table>.<setting>: those that win over lakehouse.tables.<setting>, and route-regex.
OF_ONE_TABLE = (
    "write-mode",
    "delete-mode",
    "truncate-mode",
    "no-key",
    "metadata-columns",
    "evolve-schema-enabled",
    "schema-change.behavior",
    "route-regex",
)

METADATA_COLUMNS = ("op", "ts_ms", "source.ts_ms", "topic", "partition", "offset")

JSON_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"


def _key(name: str, default: Any, documentation: str, type_: ConfigType = ConfigType.STRING, **more: Any) -> ConfigKey:
    importance = more.pop("importance", Importance.MEDIUM)
    return ConfigKey(PREFIX + name, type_, default, importance, documentation, **more)


def _metadata_columns(name: str, value: Any) -> None:
    unknown = [column for column in value or () if column not in METADATA_COLUMNS]
    if unknown:
        raise ConfigError(f"Invalid value {', '.join(unknown)} for configuration {name}: known are {', '.join(METADATA_COLUMNS)}")


def _window(name: str, value: Any) -> None:
    if value and not re.fullmatch(r"([01]\d|2[0-3]):[0-5]\d\s*-\s*([01]\d|2[0-3]):[0-5]\d", value):
        raise ConfigError(f"Invalid value {value} for configuration {name}: two times of day are expected, as 22:00-05:30")


SCHEMA_CHANGES = ("create.table", "add.column", "alter.column.type")


def _schema_changes(name: str, value: Any) -> None:
    unknown = [kind for kind in value or () if kind not in SCHEMA_CHANGES]
    if unknown:
        raise ConfigError(f"Invalid value {', '.join(unknown)} for configuration {name}: known are {', '.join(SCHEMA_CHANGES)}")


_PLACEHOLDERS = ("topic", "prefix", "db", "schema", "table")


def _route_pattern(name: str, value: Any) -> None:
    unknown = [p for p in re.findall(r"\{(.*?)\}", value or "") if p not in _PLACEHOLDERS and not re.fullmatch(r"[1-9]", p)]
    if unknown or not value:
        known = ", ".join("{" + p + "}" for p in (*_PLACEHOLDERS, "1", "2")) + " …"
        raise ConfigError(f"Invalid value {value} for configuration {name}: placeholders are {known}")


BOOLEAN, INT, LONG, LIST = ConfigType.BOOLEAN, ConfigType.INT, ConfigType.LONG, ConfigType.LIST

CONFIG_DEF = ConfigDef(
    [
        _key(
            "format",
            "iceberg",
            "Format of the tables.",
            validator=one_of("iceberg", "delta"),
            importance=Importance.HIGH,
            group="Destination",
        ),
        _key(
            "catalog",
            None,
            "Name of the Spark catalog; by default iceberg, and spark_catalog for Delta. "
            "Its settings are lakehouse.catalog.<setting>: type (hadoop, hive, rest, jdbc, glue, nessie), "
            "warehouse, uri, catalog-impl, io-impl and whatever the catalog takes.",
            validator=non_empty,
            importance=Importance.HIGH,
            group="Destination",
        ),
        _key(
            "delta.root",
            None,
            "Directory or URI under which Delta tables live, each at <root>/<namespace>/<table>, when no metastore is wanted.",
            validator=non_empty,
            group="Destination",
        ),
        _key(
            "tables",
            None,
            "Static destinations: tables by name. Every record goes to all of them, or, with lakehouse.tables.route-field, to those whose "
            "lakehouse.table.<name>.route-regex matches the whole value of that field.",
            LIST,
            group="Routing",
        ),
        _key(
            "tables.route-field",
            None,
            "Dotted path of the value that routes a record, within the row (of change events: after, else before). Also __topic, "
            "__source.<field> of the event's source block, and __header.<name>.",
            validator=non_empty,
            group="Routing",
        ),
        _key("tables.dynamic-enabled", False, "The value of lakehouse.tables.route-field is the table's name.", BOOLEAN, group="Routing"),
        _key(
            "tables.unrouted",
            "fail",
            "Records that no rule gives a table: fail stops the task, skip passes over and counts them, dlq treats them as bad records.",
            validator=one_of("fail", "skip", "dlq"),
            group="Routing",
        ),
        _key("tables.include.list", None, "Regexes; tables whose whole name matches none are passed over.", LIST, group="Routing"),
        _key("tables.exclude.list", None, "Regexes; tables whose whole name matches one are passed over.", LIST, group="Routing"),
        _key(
            "tables.route-topic-regex",
            None,
            "Regex over the whole name of the topic, whose groups are {1}, {2} … of lakehouse.tables.route-pattern.",
            group="Routing",
        ),
        _key(
            "tables.route-pattern",
            "{schema}.{table}",
            "Name of a record's table, from the event's source block or, where that is silent, from the parts of the topic's name. "
            "Placeholders: {topic} {prefix} {db} {schema} {table}, and {1} … of lakehouse.tables.route-topic-regex.",
            validator=_route_pattern,
            group="Routing",
        ),
        _key("tables.namespace", None, "Namespace put before the table's name.", validator=non_empty, group="Routing"),
        _key("tables.prefix", "", "Text put before the last part of the table's name.", group="Routing"),
        _key("tables.name-case", "lower", "Case of tables' names.", validator=one_of("lower", "upper", "keep"), group="Routing"),
        _key(
            "tables.write-mode",
            "upsert",
            "upsert: one row a key, changed by updates and removed by deletes. append: a row for each event, with its operation and place. "
            "scd2: a row for each version of a key, with the time from and to which it was valid.",
            validator=one_of("upsert", "append", "scd2"),
            group="Writing",
        ),
        _key(
            "tables.delete-mode",
            "hard",
            "Of upserts. hard: a delete removes the row; soft: it sets __deleted and leaves the values; ignore: the row stays.",
            validator=one_of("hard", "soft", "ignore"),
            group="Writing",
        ),
        _key(
            "tables.truncate-mode",
            "apply",
            "Of upserts. apply: a truncate empties the table; soft: it sets __deleted in all rows; ignore; fail: it stops the task.",
            validator=one_of("apply", "soft", "ignore", "fail"),
            group="Writing",
        ),
        _key(
            "tables.no-key",
            "append",
            "What to do with records without a key: append writes each event as a row, fail stops the task.",
            validator=one_of("append", "fail"),
            group="Writing",
        ),
        _key(
            "tables.ordering",
            "log",
            "Which event of a key is the last: log goes by the offset in Kafka.",
            validator=one_of("log"),
            group="Writing",
        ),
        _key(
            "tables.metadata-columns",
            "op,ts_ms",
            "Columns added to every table, as __<name>: " + ", ".join(METADATA_COLUMNS) + ".",
            LIST,
            validator=_metadata_columns,
            group="Writing",
        ),
        _key(
            "unavailable.value.placeholder",
            "__debezium_unavailable_value",
            "What stands for a value that the source did not send; the table keeps the value that it has. "
            "Must equal the source connector's setting.",
            validator=non_empty,
            group="Writing",
        ),
        _key(
            "tables.auto-create-enabled",
            False,
            "Create missing tables from the records' schemas.",
            BOOLEAN,
            importance=Importance.HIGH,
            group="Schema",
        ),
        _key(
            "tables.evolve-schema-enabled",
            False,
            "Add new columns to existing tables and widen int to bigint, float to double, and the precision of decimals.",
            BOOLEAN,
            importance=Importance.HIGH,
            group="Schema",
        ),
        _key(
            "tables.schema-change.behavior",
            "lenient",
            "With evolve-schema-enabled. lenient: add, widen, and put values of a type that cannot be widened into a new column "
            "<name>__<type>; evolve: such a type is an error; try_evolve: its values are cast to the table's type, and what does not "
            "fit is a bad record; ignore: write only what the table has; exception: every difference is an error.",
            validator=one_of("exception", "evolve", "try_evolve", "lenient", "ignore"),
            group="Schema",
        ),
        _key(
            "tables.include.schema.changes",
            None,
            "Changes that may be made, all without it: create.table, add.column, alter.column.type. A column that may not be added is left "
            "out; a value whose column may not be widened must fit it.",
            LIST,
            validator=_schema_changes,
            group="Schema",
        ),
        _key(
            "tables.exclude.schema.changes",
            None,
            "Changes that may not be made, of those of the include list.",
            LIST,
            validator=_schema_changes,
            group="Schema",
        ),
        _key(
            "tables.schema-force-optional",
            True,
            "Create every column that is not part of the key nullable; false keeps the record schema's required fields required.",
            BOOLEAN,
            group="Schema",
        ),
        _key(
            "time.mode",
            "iso-string",
            "Times of day as text (13:05:01.123456) or as micros, a BIGINT of microseconds.",
            validator=one_of("iso-string", "micros"),
            group="Types",
        ),
        _key(
            "connect-timestamp.as",
            "timestamp",
            "Type for org.apache.kafka.connect.data.Timestamp.",
            validator=one_of("timestamp", "timestamp_ntz"),
            group="Types",
        ),
        _key(
            "spark.master",
            "local[*]",
            "Where Spark runs. Any further setting of Spark is lakehouse.spark.conf.<setting>.",
            validator=non_empty,
            importance=Importance.HIGH,
            group="Spark",
        ),
        _key(
            "spark.jars",
            None,
            "Jars for Spark, separated by commas: nothing is resolved at start. "
            "Without it the sink's libraries are fetched once from Maven Central.",
            LIST,
            group="Spark",
        ),
        _key(
            "source.mode",
            "loop",
            "loop: the task plans offset ranges and Spark reads them; no checkpoint directory is needed.",
            validator=one_of("loop"),
            group="Batches",
        ),
        _key(
            "control.commit.interval-ms",
            60000,
            "Time between the starts of two batches; a backlog of lakehouse.max-offsets-per-trigger does not wait.",
            INT,
            validator=between(0),
            importance=Importance.HIGH,
            group="Batches",
        ),
        _key("max-offsets-per-trigger", 100000, "Upper bound of a batch, in offsets.", LONG, validator=between(1), group="Batches"),
        _key(
            "control.commit.max-consecutive-failures",
            5,
            "After so many failed batches in a row the task fails.",
            INT,
            validator=between(1),
            group="Batches",
        ),
        _key(
            "starting-offsets",
            "earliest",
            "Where to start in partitions of which neither the tables nor the consumer group know a position.",
            validator=one_of("earliest", "latest"),
            group="Batches",
        ),
        _key(
            "errors.max-per-batch",
            1000,
            "With errors.tolerance=all: more bad records than this in one batch fail the task. So many are a fault of the configuration.",
            INT,
            validator=between(0),
            group="Batches",
        ),
        _key(
            "maintenance.enabled",
            True,
            "Compact tables and clean up after them, between batches, one table at a time.",
            BOOLEAN,
            group="Maintenance",
        ),
        _key(
            "maintenance.compact.every-commits",
            50,
            "A table's turn comes after so many commits of this sink.",
            INT,
            validator=between(1),
            group="Maintenance",
        ),
        _key(
            "maintenance.max-lag",
            100000,
            "Maintenance waits while the sink has more offsets than this to catch up with.",
            LONG,
            validator=between(0),
            group="Maintenance",
        ),
        _key(
            "maintenance.window",
            None,
            "Hours in which maintenance may run, UTC, as 22:00-05:30; at any time without it.",
            validator=_window,
            group="Maintenance",
        ),
        _key("maintenance.target-file-size-bytes", 134217728, "Size of compacted files.", LONG, validator=between(1), group="Maintenance"),
        _key(
            "maintenance.expire-snapshots.older-than-ms",
            432000000,
            "Iceberg: snapshots older than this are removed, with the files that only they have.",
            LONG,
            validator=between(0),
            group="Maintenance",
        ),
        _key(
            "maintenance.expire-snapshots.retain-last",
            10,
            "Iceberg: so many snapshots stay, however old.",
            INT,
            validator=between(1),
            group="Maintenance",
        ),
        _key(
            "maintenance.remove-orphan-files.older-than-ms",
            604800000,
            "Iceberg: files that belong to no snapshot are removed when they are older than this; three days at least.",
            LONG,
            validator=between(259200000),
            group="Maintenance",
        ),
        _key(
            "maintenance.vacuum.retain-hours",
            168,
            "Delta: files that the table has not had for so many hours are removed; 168 at least.",
            INT,
            validator=between(168),
            group="Maintenance",
        ),
        _key(
            "fail-on-data-loss",
            True,
            "Fail when Kafka has deleted offsets that were still to be read; false goes on with the first one that is left.",
            BOOLEAN,
            group="Batches",
        ),
    ]
)


def identifier(*parts: str) -> str:
    """A name of several parts in SQL."""
    return ".".join(quote(part) for part in parts)


@dataclass(frozen=True)
class SinkConfig:
    """A task's parsed configuration.

    Attributes:
        topics: names, or empty when `pattern` is set.
        pattern: a Java regex over topics' names.
        values: every key of `CONFIG_DEF` by its name without prefix.
        catalog: settings of the catalog, without prefix. May hold secrets.
        spark_conf: settings of Spark. May hold secrets.
        kafka: settings for Spark's Kafka client.
        table_properties: of new tables.
        of_tables: settings of single tables, by name, each by its name without `tables.`.
        tolerates: ``errors.tolerance=all``: bad records are rejected one by one instead of failing the task.
    """

    topics: tuple[str, ...]
    pattern: str | None
    values: Mapping[str, Any] = field(repr=False)
    catalog: Mapping[str, str] = field(repr=False)
    spark_conf: Mapping[str, str] = field(repr=False)
    kafka: Mapping[str, str] = field(repr=False)
    table_properties: Mapping[str, str] = field(repr=False)
    decimals_numeric: bool = False
    of_tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    tolerates: bool = False

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def of_table(self, name: str) -> SinkConfig:
        """The configuration for one table: what is set for it wins."""
        own = self.of_tables.get(name)
        return replace(self, values={**self.values, **{f"tables.{setting}": value for setting, value in own.items()}}) if own else self

    @property
    def types(self) -> TypeOptions:
        """What the properties say about types."""
        return TypeOptions(self["time.mode"], self["connect-timestamp.as"], self.decimals_numeric)


def without_aliases(config: Mapping[str, str | None]) -> tuple[dict[str, str | None], dict[str, str]]:
    """The configuration with `iceberg.X` written as `lakehouse.X` where both mean the same.

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
    """Properties under `lakehouse.` that mean nothing: most likely a slip of the pen, which a sink must not answer with silence."""
    found = [name for name in config if name.startswith(PREFIX) and name not in CONFIG_DEF.keys]
    return [name for name in found if not name.removeprefix(PREFIX).startswith(OPEN_PREFIXES)]


def unsupported_choices(config: Mapping[str, str | None]) -> dict[str, str]:
    """Choices of Connect's own properties that this sink would have to ignore, with what to do, by property."""
    errors: dict[str, str] = {}
    for side in ("key", "value"):
        converter = config.get(f"{side}.converter")
        if converter and converter not in (JSON_CONVERTER, "JsonConverter"):
            errors[f"{side}.converter"] = f"This sink reads records in Spark and knows {JSON_CONVERTER} only, not {converter}."
        if str(config.get(f"{side}.converter.schemas.enable", "true")).lower() == "false":
            errors[f"{side}.converter.schemas.enable"] = (
                "This sink needs schemas in the records: set it to true, here and in the source connector."
            )
    if config.get("transforms"):
        errors["transforms"] = "This sink reads records in Spark and cannot apply transforms; apply them in the source connector."
    return errors


def parse(config: Mapping[str, str]) -> SinkConfig:
    """A task's configuration.

    Raises:
        ConfigError: with the first problem.
    """
    renamed, errors = without_aliases(config)
    errors.update(unsupported_choices(config))
    for message in errors.values():
        raise ConfigError(message)
    for name in unknown_properties(renamed):
        raise ConfigError(f"{name} is not a property of the lakehouse sink.")
    parsed = CONFIG_DEF.parse(renamed)
    topics = tuple(t for t in re.split(r"\s*,\s*", (config.get("topics") or "").strip()) if t)
    pattern = config.get("topics.regex") or None
    if bool(topics) == bool(pattern):
        raise ConfigError("Exactly one of topics and topics.regex must be set.")

    def under(prefix: str) -> dict[str, str]:
        full = PREFIX + prefix
        return {name[len(full) :]: str(value) for name, value in renamed.items() if name.startswith(full) and value is not None}

    catalog = under("catalog.")
    values = {name.removeprefix(PREFIX): value for name, value in parsed.items()}
    _check_routing(values, _of_tables(under("table.")))
    delta = values["format"] == "delta"
    values["catalog"] = values["catalog"] or ("spark_catalog" if delta else "iceberg")
    settings.check(under("spark.conf."))
    spark_conf = under("spark.conf.") | {f"spark.hadoop.{name}": value for name, value in under("hadoop.").items()}
    if delta:
        _check_delta(values, catalog, spark_conf)
    elif "type" not in catalog and "catalog-impl" not in catalog:
        raise ConfigError(
            f"{PREFIX}catalog.type is missing: set it to hadoop with {PREFIX}catalog.warehouse, or to the type of your catalog."
        )
    elif catalog.get("type") == "hadoop" and not catalog.get("warehouse"):
        raise ConfigError(f"{PREFIX}catalog.warehouse is missing: the directory or URI under which the tables live.")
    return SinkConfig(
        topics=topics,
        pattern=pattern,
        values=values,
        catalog=catalog,
        spark_conf=spark_conf,
        kafka=under("kafka."),
        table_properties=under("tables.auto-create-props."),
        decimals_numeric=str(config.get("value.converter.decimal.format", "")).upper() == "NUMERIC",
        of_tables=_of_tables(under("table.")),
        tolerates=str(config.get("errors.tolerance") or "none").lower() == "all",
    )


def _of_tables(settings: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Settings of single tables, from names like ``public.orders.write-mode``. Raises ConfigError."""
    found: dict[str, dict[str, Any]] = {}
    for name, value in settings.items():
        setting = next((known for known in OF_ONE_TABLE if name.endswith("." + known)), None)
        if setting is None:
            raise ConfigError(f"{PREFIX}table.{name} is not a setting of a table; known are {', '.join(OF_ONE_TABLE)}.")
        parsed: Any = value
        if key := CONFIG_DEF.keys.get(f"{PREFIX}tables.{setting}"):
            parsed = ConfigDef([replace(key, name=f"{PREFIX}table.{name}")]).parse({f"{PREFIX}table.{name}": value})[
                f"{PREFIX}table.{name}"
            ]
        found.setdefault(name.removesuffix("." + setting), {})[setting] = parsed
    return found


def _check_routing(values: Mapping[str, Any], of_tables: Mapping[str, Mapping[str, Any]]) -> None:
    """Choices of routing that go together. Raises ConfigError."""
    static, dynamic, by = values["tables"], values["tables.dynamic-enabled"], values["tables.route-field"]
    if dynamic and static:
        raise ConfigError(f"{PREFIX}tables and {PREFIX}tables.dynamic-enabled exclude each other: tables are named here or by the records.")
    if dynamic and not by:
        raise ConfigError(f"{PREFIX}tables.route-field is missing: with {PREFIX}tables.dynamic-enabled its value names the table.")
    if by and not (dynamic or static):
        raise ConfigError(f"{PREFIX}tables.route-field needs {PREFIX}tables, or {PREFIX}tables.dynamic-enabled=true.")
    if static and by and (lacking := [name for name in static if "route-regex" not in of_tables.get(name, {})]):
        raise ConfigError(f"{PREFIX}table.{lacking[0]}.route-regex is missing: it says which records go to the table.")
    patterns = [*(values["tables.include.list"] or ()), *(values["tables.exclude.list"] or ()), values["tables.route-topic-regex"] or ""]
    for pattern in (*patterns, *(own["route-regex"] for own in of_tables.values() if "route-regex" in own)):
        try:
            re.compile(pattern)
        except re.error as error:
            raise ConfigError(f"The regular expression {pattern} of the routing is not valid: {error}.") from None


def _check_delta(values: Mapping[str, Any], catalog: Mapping[str, str], spark_conf: Mapping[str, str]) -> None:
    """A place for Delta tables that outlives the process. Raises ConfigError."""
    if values["delta.root"] is not None:
        if catalog:
            raise ConfigError(f"{PREFIX}delta.root and {PREFIX}catalog.* exclude each other: tables have a directory or a catalog.")
    elif not catalog and spark_conf.get("spark.sql.catalogImplementation") != "hive":
        raise ConfigError(
            f"{PREFIX}delta.root is missing: the directory or URI under which the Delta tables live. With a metastore set "
            f"{PREFIX}spark.conf.spark.sql.catalogImplementation=hive and its address instead, or a catalog as {PREFIX}catalog.*."
        )
