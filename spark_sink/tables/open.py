"""Which implementation of `Tables` a configuration asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_sink.config.sink_config import SinkConfig
from spark_sink.tables.base import Tables, Writer
from spark_sink.tables.delta import DeltaTables
from spark_sink.tables.iceberg import IcebergTables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def open_tables(spark: SparkSession, config: SinkConfig, writer: Writer) -> Tables:
    """Return the tables of the configuration's catalog."""
    if config["format"] == "delta":
        return DeltaTables(spark, config["catalog"], config["delta.root"], writer, config.table_properties)
    return IcebergTables(
        spark, config["catalog"], writer, config.table_properties, lambda name: config.of_table(str(name))["tables.default-commit-branch"]
    )
