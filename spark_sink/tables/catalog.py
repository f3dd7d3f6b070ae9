"""What a Spark catalog holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_sink.routing import TableName
from spark_sink.types import quote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def tables_of_catalog(spark: SparkSession, catalog: str) -> list[TableName]:
    """All tables of a catalog, of any format; temporary views are none."""
    found: list[TableName] = []
    for namespace in [row[0] for row in spark.sql(f"SHOW NAMESPACES IN {quote(catalog)}").collect()]:
        parts = tuple(namespace.split("."))
        for row in spark.sql(f"SHOW TABLES IN {'.'.join(quote(part) for part in (catalog, *parts))}").collect():
            if not row["isTemporary"]:
                found.append(TableName((*parts, row["tableName"])))
    return found
