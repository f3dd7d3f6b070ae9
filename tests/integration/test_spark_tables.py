"""How tables are laid out and which columns identify their rows, for all tables or for one."""

from __future__ import annotations

import itertools
import os
from typing import Any

import pytest

from connect_py.errors import FatalTaskError
from tests.fix_spark import INT, TEXT, Lake, event, iceberg_and_long_delta

pytestmark = [pytest.mark.services, pytest.mark.spark]

COLUMNS = {"region": TEXT, "n": INT, "secret": TEXT}


def of_region(op: str, key: int, region: str, number: int) -> tuple[bytes | None, bytes]:
    return event(op, key, {"region": region, "n": number, "secret": "x"}, COLUMNS)


@iceberg_and_long_delta
def test_chosen_columns_identify_rows_and_excluded_ones_are_never_written(lake: Lake) -> None:
    topic = lake.topic("t")
    more = {"lakehouse.table.public.t.id-columns": "region,n", "lakehouse.tables.exclude-columns": "secret"}
    key, value = of_region("c", 1, "a", 1)
    lake.produce(topic, [(key, value), of_region("c", 2, "a", 1), of_region("c", 3, "a", 2), of_region("c", 4, "b", 1)])
    task = lake.start(lake.config(topic) | more)
    lake.drain(task)
    assert sorted(row.items() for row in lake.rows("t")) == sorted(
        {"id": i, "region": r, "n": n}.items() for i, r, n in ((2, "a", 1), (3, "a", 2), (4, "b", 1))
    )
    lake.produce(topic, [of_region("d", 9, "a", 2), (key, None), of_region("u", 7, "b", 1)])
    lake.drain(task)
    assert sorted(row["id"] for row in lake.rows("t")) == [2, 7]


@pytest.mark.long
def test_a_delete_without_the_chosen_columns_is_a_bad_record(lake: Lake) -> None:
    topic = lake.topic("t")
    lake.produce(topic, [of_region("c", 1, "a", 1), event("d", 1, {"region": None, "n": None, "secret": None}, COLUMNS)])
    task = lake.start(lake.config(topic, tables_default__id__columns="region,n"))
    with pytest.raises(FatalTaskError, match="offset 1: the delete does not hold column region, which identifies the row"):
        task.step()


def test_iceberg_tables_are_partitioned_by_transforms_ordered_and_written_to_a_branch(lake: Lake) -> None:
    topic = lake.topic("t")
    more: dict[str, Any] = {
        "lakehouse.tables.default-partition-by": "region, bucket(id, 4)",
        "lakehouse.tables.cluster-by": "n",
        "lakehouse.table.public.t.commit-branch": "ingest",
    }
    task = lake.start(lake.config(topic) | more)
    for number in range(2):
        lake.produce(topic, [of_region("u", 1, "a", number), of_region("c", 10 + number, "b", number)])
        lake.drain(task)
    table = lake.table("t")
    assert [str(field.transform) for field in table.spec().fields] == ["identity", "bucket[4]"]
    assert [field.direction.name for field in table.sort_order().fields] == ["ASC"]
    assert table.properties["write.distribution-mode"] == "range" or table.properties["write.distribution-mode"] == "hash"
    assert "main" not in table.refs()
    rows = table.scan().use_ref("ingest").to_arrow().to_pylist()
    assert sorted((row["id"], row["n"]) for row in rows) == [(1, 1), (10, 0), (11, 1)]
    lake.context.rewind()
    assert lake.drain(lake.start(lake.config(topic) | more)) == 1
    assert lake.snapshots("t") == 2, "a replay must find the branch's watermark"


@pytest.mark.long
@pytest.mark.parametrize("lake", ["delta"], indirect=True)
def test_delta_tables_are_partitioned_by_columns_or_clustered(lake: Lake) -> None:
    one, two = lake.topic("one"), lake.topic("two")
    lake.produce(one, [event("c", 1, {"region": "a"}, {"region": TEXT}, "one")])
    lake.produce(two, [event("c", 1, {"region": "a"}, {"region": TEXT}, "two")])
    more = {"lakehouse.table.public.one.partition-by": "region", "lakehouse.table.public.two.cluster-by": "region"}
    task = lake.start(lake.config(one, two) | more)
    lake.drain(task)
    assert lake.table("one").metadata().partition_columns == ["region"]
    detail = task.spark.sql(f"DESCRIBE DETAIL {lake.sql('two')}").collect()[0]
    assert detail["clusteringColumns"] == ["region"]


@pytest.mark.long
def test_a_partition_of_a_column_that_is_not_there_makes_no_table(lake: Lake) -> None:
    topic = lake.topic("t")
    lake.produce(topic, [of_region("c", 1, "a", 1)])
    task = lake.start(lake.config(topic, tables_default__partition__by="days(created)"))
    with pytest.raises(FatalTaskError, match="clustered by created, which the records do not have"):
        task.step()
    assert not (lake.warehouse / "public" / "t").exists()


@pytest.mark.long
@pytest.mark.skipif("CONNECT_PY_LAKE_REMOTE" in os.environ, reason="the JVM that compiles is a server's")
@iceberg_and_long_delta
def test_a_batch_like_those_before_it_has_nothing_compiled_anew(lake: Lake) -> None:
    topic = lake.topic("t")
    task = lake.start(lake.config(topic))
    compiled = []
    for number in range(6):
        lake.produce(topic, [event("u", key, {"n": number}, {"n": INT}) for key in range(5)])
        assert lake.drain(task) == 1
        metrics = task.spark._jvm.org.apache.spark.metrics.source.CodegenMetrics
        compiled.append(metrics.METRIC_COMPILATION_TIME().getCount())
    assert min(later - earlier for earlier, later in itertools.pairwise(compiled[2:])) < 15, compiled
