"""Which implementation of `Tables` a configuration asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_sink.config.sink_config import SinkConfig
from spark_sink.tables.base import Tables, Writer
from spark_sink.tables.branches import Branches, open_branches
from spark_sink.tables.delta import DeltaTables
from spark_sink.tables.iceberg import IcebergTables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def open_tables(
    spark: SparkSession, config: SinkConfig, writer: Writer, branches: Branches | None = None, *, by_statements: bool = False
) -> Tables:
    """Return the tables of the configuration's catalog.

    Args:
        branches: how Iceberg's tables are published; None for the way that the session has.
        by_statements: write Delta's tables by statements alone, as over Spark Connect.
    """
    if config["format"] == "delta":
        return DeltaTables(spark, config["catalog"], config["delta.root"], writer, config.table_properties, by_statements=by_statements)
    return IcebergTables(
        spark,
        config["catalog"],
        writer,
        config.table_properties,
        branches or open_branches(spark, config["catalog"]),
        lambda name: config.of_table(str(name))["tables.default-commit-branch"],
    )
