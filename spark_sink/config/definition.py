"""The sink's properties. Names follow Iceberg's Kafka Connect sink where that has the same notion: `iceberg.X` means `lakehouse.X`."""

from __future__ import annotations

from collections.abc import Mapping

from connect_py.api.config import ConfigDef
from spark_sink.config import batches, destination, maintenance, routing, schema, spark, types, writing
from spark_sink.config.key import PREFIX

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

CONFIG_DEF = ConfigDef(
    [
        *destination.KEYS,
        *routing.KEYS,
        *writing.KEYS,
        *schema.KEYS,
        *types.KEYS,
        *spark.KEYS,
        *batches.KEYS,
        *maintenance.KEYS,
    ]
)


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
