"""Expiry of an Iceberg table's snapshots: those that are too old go, and those beyond a number, with the files that only they have.

Each commit reads and writes the list of all snapshots: a thousand take 0.2 s of every batch. So a table that commits each second needs a
bound of their number; by age alone it would have 432,000 after five days.

Spark's procedure compares the files of all snapshots, whether or not one is to go, which took 8 s for 2,000 of them. Iceberg's own
`ExpireSnapshots`, which runs in the JVM of this process, took 0.7 s where fifty had to go and 0.01 s where none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spark_sink.routing import TableName
from spark_sink.spark.local import has_java
from spark_sink.tables.iceberg.branches import load_table, procedure_sql, quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def expire_snapshots(spark: SparkSession, catalog: str, name: TableName, before: int, retain_last: int, retain_at_most: int | None) -> None:
    """Expire snapshots; the heads of branches, and those with tags, stay.

    Args:
        before: milliseconds since 1970; those that are younger stay, unless they are too many.
        retain_last: how many stay, however old they are.
        retain_at_most: how many stay at most, of this and all branches together; None for any number.
    """
    expire = expire_by_java if has_java(spark) else expire_by_statement
    expire(spark, catalog, name, before, retain_last, retain_at_most)


def expire_by_java(spark: SparkSession, catalog: str, name: TableName, before: int, retain_last: int, retain_at_most: int | None) -> None:
    """Expire snapshots as `expire_snapshots` does, in this process's JVM."""
    table: Any = load_table(spark, catalog, name)
    snapshots = table.snapshots()  # in the order in which they were made
    if retain_at_most is not None and len(snapshots) > retain_at_most:
        before = max(before, int(snapshots[-retain_at_most].timestampMillis()))
    table.expireSnapshots().expireOlderThan(before).retainLast(retain_last).commit()


def expire_by_statement(
    spark: SparkSession, catalog: str, name: TableName, before: int, retain_last: int, retain_at_most: int | None
) -> None:
    """Do the same over any session, also Spark Connect's."""
    if retain_at_most is not None:
        times = f"SELECT unix_millis(committed_at) at FROM {quoted(catalog, name)}.snapshots"
        first = spark.sql(f"{times} ORDER BY at DESC LIMIT 1 OFFSET {retain_at_most - 1}").collect()
        before = max([before, *(row["at"] for row in first)])
    arguments = f"older_than => timestamp_millis({before})", f"retain_last => {retain_last}"
    spark.sql(procedure_sql(catalog, name, "expire_snapshots", *arguments)).collect()
