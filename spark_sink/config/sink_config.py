"""A task's configuration, parsed and checked. Pure.

`parse` refuses choices that exclude each other, that the format or the way Spark runs does not have, or that a connector must not make.
Single properties are checked by their own validators (`config.properties`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from connect_py.api.config import ConfigDef
from connect_py.errors import ConfigError
from spark_sink.config import allowed_settings
from spark_sink.config.layout import Layout, parse_partitions
from spark_sink.config.properties import CONFIG_DEF, OF_ONE_TABLE, OPEN_PREFIXES, PREFIX, unknown_properties, without_aliases
from spark_sink.types.columns import TypeOptions
from spark_sink.types.trees import Array, Map, Struct, Type, parse_type

__all__ = [
    "CONFIG_DEF",
    "OPEN_PREFIXES",
    "PREFIX",
    "SinkConfig",
    "kind_of",
    "parse",
    "refused_settings",
    "unknown_properties",
    "without_aliases",
]


#: Catalogs by `lakehouse.catalog.catalog-impl`, which takes the place of a type.
_KINDS = {
    "org.apache.iceberg.rest.RESTCatalog": "rest",
    "org.apache.iceberg.jdbc.JdbcCatalog": "jdbc",
    "org.apache.iceberg.hive.HiveCatalog": "hive",
    "org.apache.iceberg.hadoop.HadoopCatalog": "hadoop",
    "org.apache.iceberg.aws.glue.GlueCatalog": "glue",
    "org.apache.iceberg.nessie.NessieCatalog": "nessie",
}


def kind_of(catalog: Mapping[str, str]) -> str:
    """Return the type of an Iceberg catalog, also of one that is named by its class; empty for another class."""
    return catalog.get("type", "").strip().lower() or _KINDS.get(catalog.get("catalog-impl", ""), "")


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
        table_properties: properties of new tables.
        of_tables: settings of single tables, by name, each by its name without `tables.`; where tables' names are made one case, also by
            the name in lower case.
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
        """Return the configuration of one table: its own settings win, in any case where tables' names are made one."""
        own = _own(name, self.of_tables, self["tables.name-case"])
        return replace(self, values={**self.values, **{OF_ONE_TABLE[setting]: value for setting, value in own.items()}}) if own else self

    @property
    def column_types(self) -> Mapping[str, str]:
        """Types by column that are configured for the table, for records without schemas."""
        return parse_column_types(self.values.get("column-types") or "")

    @property
    def reconciles(self) -> bool:
        """Whether any table is reconciled with snapshots."""
        return bool(self["snapshot.reconcile"]) or any(own.get("snapshot.reconcile") for own in self.of_tables.values())

    @property
    def layout(self) -> Layout:
        """The layout of new tables."""
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
    """Parse a task's configuration.

    Raises:
        ConfigError: the first problem found.
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
    of_tables = _of_tables(under("table."))
    of_tables = of_tables if values["tables.name-case"] == "keep" else _in_any_case(of_tables)
    check_routing(values, of_tables)
    delta = values["format"] == "delta"
    values["catalog"] = values["catalog"] or ("spark_catalog" if delta else "iceberg")
    check_batches(values, renamed)
    for message in refused_settings(renamed).values():
        raise ConfigError(message)
    of_writers = writer_settings(values["format"], under("tables.write-props."))
    spark_conf = of_writers | under("spark.conf.") | {f"spark.hadoop.{name}": value for name, value in under("hadoop.").items()}
    if delta:
        check_delta(values, catalog, spark_conf)
    elif "type" not in catalog and "catalog-impl" not in catalog:
        raise ConfigError(
            f"{PREFIX}catalog.type is missing: set it to hadoop with {PREFIX}catalog.warehouse, or to the type of your catalog."
        )
    elif kind_of(catalog) == "hadoop" and not catalog.get("warehouse"):
        raise ConfigError(f"{PREFIX}catalog.warehouse is missing: the directory or URI under which the tables live.")
    made = SinkConfig(
        topics=topics,
        pattern=pattern,
        values=values,
        catalog=catalog,
        spark_conf=spark_conf,
        kafka=under("kafka."),
        table_properties=under("tables.auto-create-props."),
        of_tables=of_tables,
        tolerates=str(config.get("errors.tolerance") or "none").lower() == "all",
    )
    for table in ("", *made.of_tables):
        check_table(made.of_table(table).values)
        check_reconcile(made.of_table(table).values, tolerates=made.tolerates)
    return made


def refused_settings(config: Mapping[str, str | None]) -> dict[str, str]:
    """Return why properties that make Spark settings are not allowed, by property (`config.allowed_settings`).

    Args:
        config: as `without_aliases` returns it.
    """
    given = {name.removeprefix(PREFIX): value for name, value in config.items() if name.startswith(PREFIX) and value is not None}
    catalog = given.get("catalog") or ("spark_catalog" if given.get("format") == "delta" else "iceberg")
    return {PREFIX + name: refused for name, refused in allowed_settings.refusals(given, catalog).items()}


def _of_tables(given: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Parse settings of single tables, from names like ``public.orders.write-mode``. Raise ConfigError for unknown ones."""
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


def _in_any_case(of_tables: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the same by names in lower case, too: all that names a table in some case, and last what names it as it is."""
    folded: dict[str, dict[str, Any]] = {}
    for name, settings in of_tables.items():
        folded.setdefault(name.lower(), {}).update(settings)
    return folded | {name: folded[name.lower()] | settings for name, settings in of_tables.items()}


def _own(table: str, of_tables: Mapping[str, Mapping[str, Any]], name_case: str) -> Mapping[str, Any]:
    return of_tables.get(table) or (of_tables.get(table.lower()) if name_case != "keep" else None) or {}


#: Parts of a table's name become directories, out of which these would lead.
_NOT_IN_A_NAME = re.compile(r"[/\\:\x00-\x1f\x7f-\x9f]")


def is_part_of_a_name(text: str) -> bool:
    """Return whether a text can be a part of a table's name: a table of such parts is always within its warehouse."""
    return text not in ("", ".", "..") and not _NOT_IN_A_NAME.search(text)


def check_routing(values: Mapping[str, Any], of_tables: Mapping[str, Mapping[str, Any]]) -> None:
    """Check that choices of routing go together. Raise ConfigError if not."""
    static, dynamic, by = values["tables"], values["tables.dynamic-enabled"], values["tables.route-field"]
    if dynamic and static:
        raise ConfigError(f"{PREFIX}tables and {PREFIX}tables.dynamic-enabled exclude each other: tables are named here or by the records.")
    if dynamic and not by:
        raise ConfigError(f"{PREFIX}tables.route-field is missing: with {PREFIX}tables.dynamic-enabled its value names the table.")
    if by and not (dynamic or static):
        raise ConfigError(f"{PREFIX}tables.route-field needs {PREFIX}tables, or {PREFIX}tables.dynamic-enabled=true.")
    case = values["tables.name-case"]
    if static and by and (lacking := [name for name in static if "route-regex" not in _own(name, of_tables, case)]):
        raise ConfigError(f"{PREFIX}table.{lacking[0]}.route-regex is missing: it says which records go to the table.")
    for name in (*(static or ()), *([values["tables.namespace"]] if values["tables.namespace"] else ())):
        if not all(map(is_part_of_a_name, name.split("."))):
            raise ConfigError(f"{name} cannot be a table's name or namespace: a part is empty, or has a slash, a backslash or a colon.")
    patterns = [*(values["tables.include.list"] or ()), *(values["tables.exclude.list"] or ()), values["tables.route-topic-regex"] or ""]
    for pattern in (*patterns, *(own["route-regex"] for own in of_tables.values() if "route-regex" in own)):
        try:
            re.compile(pattern)
        except re.error as error:
            raise ConfigError(f"The regular expression {pattern} of the routing is not valid: {error}.") from None


def check_delta(values: Mapping[str, Any], catalog: Mapping[str, str], spark_conf: Mapping[str, str]) -> None:
    """Check that Delta tables have a location that outlives the process. Raise ConfigError if not."""
    if values["delta.root"] is not None:
        if catalog:
            raise ConfigError(f"{PREFIX}delta.root and {PREFIX}catalog.* exclude each other: tables have a directory or a catalog.")
    elif not catalog and spark_conf.get("spark.sql.catalogImplementation") != "hive":
        raise ConfigError(
            f"{PREFIX}delta.root is missing: the directory or URI under which the Delta tables live. With a metastore set "
            f"{PREFIX}spark.conf.spark.sql.catalogImplementation=hive and its address instead, or a catalog as {PREFIX}catalog.*."
        )


def check_batches(values: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Check where Spark runs, and that it has what the source mode needs.

    Args:
        given: the properties that were set.

    Raises:
        ConfigError: they do not go together.
    """
    if values["spark.remote"] is not None:
        if not values["spark.remote"].reveal().startswith("sc://"):
            raise ConfigError(f"{PREFIX}spark.remote must begin with sc://: it is the address of a Spark Connect server.")
        for name in ("spark.master", "spark.jars"):
            if given.get(PREFIX + name):
                raise ConfigError(f"{PREFIX}spark.remote and {PREFIX}{name} exclude each other: Spark runs on that server, with its jars.")
        if values["source.mode"] == "stream":
            raise ConfigError(
                f"{PREFIX}source.mode=stream cannot be had with {PREFIX}spark.remote: the stream's function would run on the server. "
                "Use loop, which gives the same tables."
            )
    if values["source.mode"] == "stream" and not values["checkpoint.location"]:
        raise ConfigError(
            f"{PREFIX}checkpoint.location is missing: with {PREFIX}source.mode=stream it names a directory or URI for its checkpoint."
        )


def check_table(values: Mapping[str, Any]) -> None:
    """Check one table's settings: its write mode has the ordering, its format the layout. Raise ConfigError if not."""
    parse_column_types(values.get("column-types") or "")
    if values["tables.write-mode"] == "scd2" and values["tables.ordering"] != "log":
        raise ConfigError(f"{PREFIX}tables.ordering must be log for tables of versions ({PREFIX}tables.write-mode=scd2).")
    if values["format"] != "delta":
        return
    if any(partition.transform for partition in parse_partitions(values["tables.default-partition-by"] or "")):
        raise ConfigError(f"Delta is partitioned by columns as they are; {values['tables.default-partition-by']} has a transform of one.")
    if values["tables.default-partition-by"] and values["tables.cluster-by"]:
        raise ConfigError("Delta takes partitions or clustering columns, not both: set partition-by or cluster-by.")
    if values["tables.default-commit-branch"]:
        raise ConfigError("Delta has no branches; unset commit-branch, or write Iceberg tables.")


def check_reconcile(values: Mapping[str, Any], *, tolerates: bool) -> None:
    """Check that a snapshot shows which rows are gone. Raise ConfigError if not.

    Args:
        tolerates: whether bad records are skipped.
    """
    if not values["snapshot.reconcile"]:
        return
    name = f"{PREFIX}snapshot.reconcile"
    for other, wanted, why in (
        ("tables.write-mode", "upsert", "the others keep what was"),
        ("tables.ordering", "log", "a row that a snapshot shows, but that is not newer, would be taken for one that it did not"),
        ("fail-on-data-loss", True, "rows whose records are missing would be deleted"),
        ("tables.dynamic-enabled", False, "the rows of a topic must be one table's"),
    ):
        if values[other] != wanted:
            raise ConfigError(f"{name} needs {PREFIX}{other}={str(wanted).lower()}: {why}.")
    if values["tables.delete-mode"] == "ignore":
        raise ConfigError(f"{name} deletes rows, and {PREFIX}tables.delete-mode=ignore keeps them; set one of them otherwise.")
    if values["tables"]:
        raise ConfigError(f"{name} cannot be had with {PREFIX}tables: the rows of a topic must be one table's.")
    if tolerates:
        raise ConfigError(f"{name} cannot be had with errors.tolerance=all: a row whose record is bad would be deleted.")


def parse_column_types(text: str) -> dict[str, str]:
    """Parse ``column:type`` pairs, separated by commas outside of parentheses and angle brackets.

    Raises:
        ConfigError: a pair has no type.
    """
    found: dict[str, str] = {}
    for pair in _pieces(text):
        name, colon, type_ = pair.partition(":")
        if not (colon and name.strip() and type_.strip()):
            raise ConfigError(
                f"Invalid value {text} for column-types: pairs of a column and its type are expected, as price:decimal(10,2)."
            )
        if not _is_type(type_.strip()):  # it becomes a part of SQL, in which a function could call any method of the JVM
            raise ConfigError(f"Invalid type {type_.strip()} of column {name.strip()} for column-types.")
        found[name.strip()] = type_.strip()
    return found


_PLAIN = re.compile(r"[A-Za-z_][\w.]*(\(\s*\d+\s*(,\s*\d+\s*)?\))?")


def _is_type(text: str) -> bool:
    """Return whether a text is a Spark type, or the name of a logical type."""
    if _PLAIN.fullmatch(text):
        return True
    try:
        return _is_plain(parse_type(text))
    except ValueError:
        return False


def _is_plain(type_: Type) -> bool:
    match type_:
        case Struct(fields):
            return all(map(_is_plain, fields.values()))
        case Array(element):
            return _is_plain(element)
        case Map(key, value):
            return _is_plain(key) and _is_plain(value)
        case str():
            return _PLAIN.fullmatch(type_) is not None


def _pieces(text: str) -> list[str]:
    pieces, depth = [""], 0
    for character in text:
        depth += (character in "(<") - (character in ")>")
        if character == "," and depth == 0:
            pieces.append("")
        else:
            pieces[-1] += character
    return [piece.strip() for piece in pieces if piece.strip()]


#: By format: names of options and of table properties, as Iceberg's and Delta's writers know them, and the session's setting.
_WRITERS: Mapping[str, Mapping[str, str]] = {
    "iceberg": {
        "compression-codec": "spark.sql.iceberg.compression-codec",
        "write.parquet.compression-codec": "spark.sql.iceberg.compression-codec",
        "compression-level": "spark.sql.iceberg.compression-level",
        "write.parquet.compression-level": "spark.sql.iceberg.compression-level",
        "distribution-mode": "spark.sql.iceberg.distribution-mode",
        "write.distribution-mode": "spark.sql.iceberg.distribution-mode",
        "advisory-partition-size": "spark.sql.iceberg.advisory-partition-size",
        "write.spark.advisory-partition-size-bytes": "spark.sql.iceberg.advisory-partition-size",
        "check-nullability": "spark.sql.iceberg.check-nullability",
    },
    "delta": {
        "compression": "spark.sql.parquet.compression.codec",
        "maxRecordsPerFile": "spark.sql.files.maxRecordsPerFile",
    },
}


def writer_settings(format_: str, given: Mapping[str, str]) -> dict[str, str]:
    """Return the session settings for ``lakehouse.tables.write-props.*``; they win over the tables' properties.

    Statements of SQL take no options, so what only an option or a table's property can say is refused rather than ignored.

    Raises:
        ConfigError: the session has no such setting, or two properties set it differently.
    """
    found: dict[str, str] = {}
    for name, value in given.items():
        setting = _WRITERS[format_].get(name)
        if setting is None:
            raise ConfigError(
                f"{PREFIX}tables.write-props.{name} is nothing that Spark can tell the writer of {format_} tables for a session; known are "
                f"{', '.join(_WRITERS[format_])}. Make it a property of the table: {PREFIX}tables.auto-create-props.{name} for new ones, "
                "ALTER TABLE … SET TBLPROPERTIES for those that exist."
            )
        if found.setdefault(setting, value) != value:
            raise ConfigError(f"{PREFIX}tables.write-props.* says two different things of {setting}: {found[setting]} and {value}.")
    return found
