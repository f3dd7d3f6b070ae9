"""What ``lakehouse.tables.write-props.*`` may say: settings of a format's writers that Spark lets a session have. Pure.

Statements of SQL take no options, so what only an option or a table's property can say is refused rather than passed over.
"""

from __future__ import annotations

from collections.abc import Mapping

from connect_py.errors import ConfigError
from spark_sink.config.key import PREFIX

#: By format: names of options and of table properties, as Iceberg's and Delta's writers know them, and the session's setting.
_SETTINGS: Mapping[str, Mapping[str, str]] = {
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


def session_settings(format_: str, given: Mapping[str, str]) -> dict[str, str]:
    """Settings of a session by which its writers do as they are told; they win over the tables' properties.

    Raises:
        ConfigError: one cannot be told to them, or two say different things of the same.
    """
    found: dict[str, str] = {}
    for name, value in given.items():
        setting = _SETTINGS[format_].get(name)
        if setting is None:
            raise ConfigError(
                f"{PREFIX}tables.write-props.{name} is nothing that Spark can tell the writer of {format_} tables for a session; known are "
                f"{', '.join(_SETTINGS[format_])}. Make it a property of the table: {PREFIX}tables.auto-create-props.{name} for new ones, "
                "ALTER TABLE … SET TBLPROPERTIES for those that exist."
            )
        if found.setdefault(setting, value) != value:
            raise ConfigError(f"{PREFIX}tables.write-props.* says two different things of {setting}: {found[setting]} and {value}.")
    return found
