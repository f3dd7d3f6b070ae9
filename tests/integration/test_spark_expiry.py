"""Expiry of an Iceberg table's snapshots: both ways of doing it do the same (`spark_sink.tables.iceberg.expiry`)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from spark_sink.routing import TableName
from spark_sink.tables.iceberg.expiry import expire_by_java, expire_by_statement
from tests.fix_spark import Lake

pytestmark = [pytest.mark.services, pytest.mark.spark]

NAME, TABLE = TableName(("public", "e")), "lake.public.e"


@pytest.fixture(scope="module", params=[expire_by_java, expire_by_statement])
def expire(request: pytest.FixtureRequest) -> Callable[..., None]:
    way: Callable[..., None] = request.param
    return way


def snapshots(spark: Any) -> list[int]:
    """From the oldest to the newest."""
    return [row["snapshot_id"] for row in spark.sql(f"SELECT snapshot_id FROM {TABLE}.snapshots ORDER BY committed_at").collect()]


def now() -> int:
    return time.time_ns() // 1_000_000 + 1


def test_what_is_old_or_beyond_the_number_goes_and_heads_and_rows_stay(lake: Lake, expire: Callable[..., None]) -> None:
    spark = lake.start(lake.config(lake.topic("t"))).spark
    spark.sql("CREATE NAMESPACE lake.public")
    spark.sql(f"CREATE TABLE {TABLE} (n INT) USING iceberg")
    for number in range(6):
        spark.sql(f"INSERT INTO {TABLE} VALUES ({number})")
        if number == 0:
            spark.sql(f"ALTER TABLE {TABLE} CREATE BRANCH waits")
    first, *others = snapshots(spark)
    expire(spark, "lake", NAME, 0, 1, None)
    expire(spark, "lake", NAME, 0, 1, 6)
    assert snapshots(spark) == [first, *others], "none is old, and they are not too many"
    expire(spark, "lake", NAME, 0, 1, 4)
    assert snapshots(spark) == [first, *others[1:]], "the newest four, and the head of a branch"
    expire(spark, "lake", NAME, now(), 3, None)
    assert snapshots(spark) == [first, *others[2:]], "as many as are to be retained, however old"
    expire(spark, "lake", NAME, now(), 1, 3)
    assert snapshots(spark) == [first, others[4]]
    assert sorted(row["n"] for row in spark.table(TABLE).collect()) == list(range(6))
    assert [row["n"] for row in spark.sql(f"SELECT n FROM {TABLE} VERSION AS OF 'waits'").collect()] == [0]
