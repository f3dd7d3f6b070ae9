"""Branches of Iceberg tables: both ways of using them do the same (`spark_sink.tables.iceberg.branches`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from spark_sink.routing import TableName
from spark_sink.tables.iceberg.branches import Branches, DirectBranches, StatementBranches
from tests.fix_spark import Lake

pytestmark = [pytest.mark.services, pytest.mark.spark]

NAME, TABLE = TableName(("public", "b")), "lake.public.b"

WAYS = pytest.mark.parametrize("way", [DirectBranches, StatementBranches])


@pytest.fixture
def spark(lake: Lake) -> Any:
    """A task's session, in which table `TABLE` has the row 1."""
    spark = lake.start(lake.config(lake.topic("t"))).spark
    spark.sql("CREATE NAMESPACE lake.public")
    spark.sql(f"CREATE TABLE {TABLE} (n INT) USING iceberg")
    spark.sql(f"INSERT INTO {TABLE} VALUES (1)")
    return spark


def rows(spark: Any) -> list[int]:
    return sorted(row["n"] for row in spark.table(TABLE).collect())


def waiting(spark: Any, branches: Branches) -> int | None:
    """Make branch `w` of the table's head with another row, 2, and return that head."""
    head = branches.head(NAME, "main")
    branches.create(NAME, "w", head)
    spark.sql(f"INSERT INTO {TABLE}.branch_w VALUES (2)")
    return head


def kept(spark: Any) -> str | None:
    found = {row["key"]: row["value"] for row in spark.sql(f"SHOW TBLPROPERTIES {TABLE}").collect()}
    return found.get("kept")


def marked(head: int) -> dict[str, str]:
    return {"kept": str(head), "kept.text": "it's `so`"}


@WAYS
def test_what_waits_on_a_branch_is_seen_when_it_is_published(spark: Any, way: Callable[[Any, str], Branches]) -> None:
    branches = way(spark, "lake")
    before = waiting(spark, branches)
    assert rows(spark) == [1]
    assert sorted(branches.names(NAME)) == ["main", "w"]
    head = branches.publish(NAME, "main", "w", marked)
    branches.finish(NAME, "w", marked(head))
    assert rows(spark) == [1, 2]
    assert branches.head(NAME, "main") == head != before
    assert list(branches.names(NAME)) == ["main"]
    assert branches.head(NAME, "w") is None
    assert kept(spark) == str(head)


@WAYS
def test_a_branch_of_a_table_that_is_empty_becomes_its_first(spark: Any, way: Callable[[Any, str], Branches]) -> None:
    branches = way(spark, "lake")
    spark.sql("CREATE TABLE lake.public.c (n INT) USING iceberg")
    name = TableName(("public", "c"))
    assert branches.head(name, "main") is None
    branches.create(name, "w", None)
    spark.sql("INSERT INTO lake.public.c.branch_w VALUES (7)")
    head = branches.publish(name, "main", "w", marked)
    branches.finish(name, "w", marked(head))
    assert [row["n"] for row in spark.table("lake.public.c").collect()] == [7]
    assert list(branches.names(name)) == ["main"]


@WAYS
def test_a_table_that_has_moved_meanwhile_takes_nothing(spark: Any, way: Callable[[Any, str], Branches]) -> None:
    branches = way(spark, "lake")
    waiting(spark, branches)
    spark.sql(f"INSERT INTO {TABLE} VALUES (3)")
    with pytest.raises(Exception, match="Cannot fast-forward"):
        branches.publish(NAME, "main", "w", marked)
    assert rows(spark) == [1, 3]
    assert kept(spark) is None
    branches.drop(NAME, "w")
    branches.drop(NAME, "w")
    assert list(branches.names(NAME)) == ["main"]


class _Losing:
    """Stands for a session, and for Java objects that come of it: a transaction is committed, and the answer to that is lost."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._real, name)
        match name:
            case "_jvm" | "org.apache.iceberg.spark.Spark3Util":
                return _Losing(found)
            case "loadIcebergTable" | "newTransaction":
                return lambda *arguments: _Losing(found(*arguments))
            case "commitTransaction":
                return lambda: self._lose(found)
            case _:
                return found

    @staticmethod
    def _lose(commit: Callable[[], None]) -> None:
        commit()
        raise ConnectionError("the catalog has gone")


def test_a_publication_whose_answer_is_lost_is_found(spark: Any) -> None:
    waiting(spark, DirectBranches(spark, "lake"))
    branches: Any = DirectBranches(_Losing(spark), "lake")
    head = branches.publish(NAME, "main", "w", marked)
    assert rows(spark) == [1, 2]
    assert kept(spark) == str(head)


def test_what_others_do_between_the_look_and_the_commit_counts_only_if_it_moves_the_head(spark: Any) -> None:
    branches = DirectBranches(spark, "lake")
    waiting(spark, branches)
    asked: list[int] = []

    def property_set(head: int) -> dict[str, str]:
        asked.append(head)
        if len(asked) == 1:
            spark.sql(f"ALTER TABLE {TABLE} SET TBLPROPERTIES ('of.others' = 'x')")
        return marked(head)

    head = branches.publish(NAME, "main", "w", property_set)
    assert len(asked) == 2
    assert rows(spark) == [1, 2]
    assert kept(spark) == str(head)

    waiting(spark, branches)

    def row_added(head: int) -> dict[str, str]:
        spark.sql(f"INSERT INTO {TABLE} VALUES (3)")
        return marked(head)

    with pytest.raises(Exception, match="Cannot fast-forward"):
        branches.publish(NAME, "main", "w", row_added)
    assert rows(spark) == [1, 2, 3]
    assert kept(spark) == str(head)
