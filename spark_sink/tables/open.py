"""Which implementation of `Tables` a configuration asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from spark_sink.config.sink_config import SinkConfig
from spark_sink.tables.base import Tables, Writer
from spark_sink.tables.delta.tables import DeltaTables
from spark_sink.tables.iceberg.branches import Branches, DirectBranches, open_branches
from spark_sink.tables.iceberg.jvm import has_known_iceberg
from spark_sink.tables.iceberg.tables import IcebergTables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def open_tables(
    spark: SparkSession, config: SinkConfig, writer: Writer, branches: Branches | None = None, *, by_statements: bool = False
) -> Tables:
    """Return the tables of the configuration's catalog.

    Args:
        branches: how Iceberg's tables are published; None for the way that the session has.
        by_statements: write tables by statements alone, as over Spark Connect.
    """
    if config["format"] == "delta":
        return DeltaTables(spark, config["catalog"], config["delta.root"], writer, config.table_properties, by_statements=by_statements)
    branches = branches or open_branches(spark, config["catalog"])
    return IcebergTables(
        spark,
        config["catalog"],
        writer,
        config.table_properties,
        branches,
        lambda name: config.of_table(str(name))["tables.default-commit-branch"],
        cast("DirectBranches", branches) if not by_statements and has_known_iceberg(spark) else None,
    )
