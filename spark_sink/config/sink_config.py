"""A task's configuration, parsed. What its properties are is in `spark_sink.config`, one module a group."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from connect_py.api.config import ConfigDef
from connect_py.errors import ConfigError
from spark_sink.config import allowed_settings
from spark_sink.config.checks import check_batches, check_delta, check_reconcile, check_routing, check_table, parse_column_types
from spark_sink.config.definition import CONFIG_DEF, OF_ONE_TABLE, OPEN_PREFIXES, unknown_properties, without_aliases
from spark_sink.config.key import PREFIX
from spark_sink.config.layout import Layout, parse_partitions
from spark_sink.config.writer import session_settings
from spark_sink.types.columns import TypeOptions

__all__ = [
    "CONFIG_DEF",
    "OPEN_PREFIXES",
    "PREFIX",
    "SinkConfig",
    "parse",
    "refused_settings",
    "unknown_properties",
    "without_aliases",
]


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
    of_tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    tolerates: bool = False

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def of_table(self, name: str) -> SinkConfig:
        """The configuration for one table: what is set for it wins."""
        own = self.of_tables.get(name)
        return replace(self, values={**self.values, **{OF_ONE_TABLE[setting]: value for setting, value in own.items()}}) if own else self

    @property
    def column_types(self) -> Mapping[str, str]:
        """Types by column that are set for the table, for records without schemas."""
        return parse_column_types(self.values.get("column-types") or "")

    @property
    def reconciles(self) -> bool:
        """Whether any table is reconciled with snapshots."""
        return bool(self["snapshot.reconcile"]) or any(own.get("snapshot.reconcile") for own in self.of_tables.values())

    @property
    def layout(self) -> Layout:
        """Of new tables."""
        return Layout(parse_partitions(self["tables.default-partition-by"] or ""), tuple(self["tables.cluster-by"] or ()))

    @property
    def types(self) -> TypeOptions:
        """What the properties say about types."""
        return TypeOptions(
            time_mode=self["time.mode"],
            timestamp_type=self["connect-timestamp.as"],
            infinity=self["temporal.infinity"],
            variable_decimal=self["variable-decimal.mode"].replace(" ", ""),
            overflow=self["decimal.overflow"],
            json=self["json.mode"],
            bits=self["bits.mode"],
            geometry=self["geometry.mode"],
            nested_as_variant=self["nested-as-variant"],
            placeholder=self["unavailable.value.placeholder"],
        )


def parse(config: Mapping[str, str]) -> SinkConfig:
    """A task's configuration.

    Raises:
        ConfigError: with the first problem.
    """
    renamed, errors = without_aliases(config)
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
    check_routing(values, _of_tables(under("table.")))
    delta = values["format"] == "delta"
    values["catalog"] = values["catalog"] or ("spark_catalog" if delta else "iceberg")
    check_batches(values, renamed)
    for message in refused_settings(renamed).values():
        raise ConfigError(message)
    of_writers = session_settings(values["format"], under("tables.write-props."))
    spark_conf = of_writers | under("spark.conf.") | {f"spark.hadoop.{name}": value for name, value in under("hadoop.").items()}
    if delta:
        check_delta(values, catalog, spark_conf)
    elif "type" not in catalog and "catalog-impl" not in catalog:
        raise ConfigError(
            f"{PREFIX}catalog.type is missing: set it to hadoop with {PREFIX}catalog.warehouse, or to the type of your catalog."
        )
    elif catalog.get("type") == "hadoop" and not catalog.get("warehouse"):
        raise ConfigError(f"{PREFIX}catalog.warehouse is missing: the directory or URI under which the tables live.")
    made = SinkConfig(
        topics=topics,
        pattern=pattern,
        values=values,
        catalog=catalog,
        spark_conf=spark_conf,
        kafka=under("kafka."),
        table_properties=under("tables.auto-create-props."),
        of_tables=_of_tables(under("table.")),
        tolerates=str(config.get("errors.tolerance") or "none").lower() == "all",
    )
    for table in ("", *made.of_tables):
        check_table(made.of_table(table).values)
        check_reconcile(made.of_table(table).values, tolerates=made.tolerates)
    return made


def refused_settings(config: Mapping[str, str | None]) -> dict[str, str]:
    """Why properties are not allowed that would make settings of Spark, by property (`spark_sink.config.allowed_settings`).

    Args:
        config: as `without_aliases` returns it.
    """
    given = {name.removeprefix(PREFIX): value for name, value in config.items() if name.startswith(PREFIX) and value is not None}
    catalog = given.get("catalog") or ("spark_catalog" if given.get("format") == "delta" else "iceberg")
    return {PREFIX + name: refused for name, refused in allowed_settings.refusals(given, catalog).items()}


def _of_tables(given: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Settings of single tables, from names like ``public.orders.write-mode``. Raises ConfigError."""
    found: dict[str, dict[str, Any]] = {}
    for name, value in given.items():
        setting = next((known for known in OF_ONE_TABLE if name.endswith("." + known)), None)
        if setting is None:
            raise ConfigError(f"{PREFIX}table.{name} is not a setting of a table; known are {', '.join(OF_ONE_TABLE)}.")
        parsed: Any = value
        if key := CONFIG_DEF.keys.get(PREFIX + OF_ONE_TABLE[setting]):
            parsed = ConfigDef([replace(key, name=f"{PREFIX}table.{name}")]).parse({f"{PREFIX}table.{name}": value})[
                f"{PREFIX}table.{name}"
            ]
        found.setdefault(name.removesuffix("." + setting), {})[setting] = parsed
    return found
