"""Exactly once in spite of the table's own maintenance, of a second task, of altered offsets. Real broker, real tables."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from connect_py.api.record import TopicPartition
from connect_py.errors import BadRequestError, FatalTaskError, RetriableError
from spark_sink import offsets
from spark_sink.config.sink_config import parse
from spark_sink.connector import SparkLakehouseSink
from spark_sink.routing import TableName
from spark_sink.tables.base import Writer
from spark_sink.tables.open import open_tables
from spark_sink.tables.upkeep import MaintenancePolicy
from spark_sink.task import SparkLakehouseSinkTask
from tests.fix_spark import FIRST_OF_COMMIT, INT, TEXT, Lake, Watched, event, iceberg_and_long_delta
from tests.waiting import eventually

pytestmark = [pytest.mark.services, pytest.mark.spark]

T = "lake.public.t"


def notes(*texts: str) -> list[tuple[bytes | None, bytes]]:
    """Events without a key: each becomes a row of its own, so that a repeated one shows."""
    return [event("c", None, {"note": text}, {"note": TEXT}) for text in texts]


def policy_of(older_than_ms: int, retain_at_most: int | None = None) -> MaintenancePolicy:
    """Maintenance that retains one snapshot of those that are old."""
    return MaintenancePolicy(128_000_000, older_than_ms, 1, retain_at_most, orphans_older_than_ms=3 * 86_400_000, vacuum_hours=168)


def found(lake: Lake) -> list[str]:
    return sorted(row["note"] for row in lake.rows("t"))


def test_compaction_and_expiry_to_one_snapshot_between_batches_lose_no_offset(lake: Lake) -> None:
    topic = lake.topic("t")
    config = lake.config(topic)
    task = lake.start(config)
    for text in ("a", "b"):
        lake.produce(topic, notes(text))
        lake.drain(task)
    spark = task.spark
    spark.sql("CALL lake.system.rewrite_data_files(table => 'public.t', options => map('rewrite-all', 'true'))").collect()
    spark.sql("CALL lake.system.expire_snapshots(table => 'public.t', older_than => now(), retain_last => 1)").collect()
    assert lake.snapshots("t") == 0, "the snapshots with offsets should be gone, or this tests nothing"
    lake.context.rewind()
    lake.produce(topic, notes("c"))
    lake.drain(task)
    assert found(lake) == ["a", "b", "c"]
    lake.context.rewind()
    lake.drain(lake.start(config))
    assert found(lake) == ["a", "b", "c"]


def test_a_kill_between_the_commit_and_the_property_is_mended_at_the_next_start(lake: Lake) -> None:
    topic = lake.topic("t")
    config = lake.config(topic)

    def before(text: str) -> None:
        if "SET TBLPROPERTIES" in text and "kafka.connect.offsets" in text:
            killed()

    task = lake.start(config, make_tables=Watched(before, by_statements=True))
    lake.produce(topic, notes("a"))
    with pytest.raises(RetriableError, match="killed"):
        task.step()
    assert "kafka.connect.offsets.lake" not in lake.table("t").properties
    spark = task.spark
    spark.sql("CALL lake.system.rewrite_data_files(table => 'public.t', options => map('rewrite-all', 'true'))").collect()
    spark.sql("CALL lake.system.expire_snapshots(table => 'public.t', older_than => now(), retain_last => 1)").collect()
    lake.drain(lake.start(config))
    assert found(lake) == ["a"]
    assert lake.watermark("t") == {topic: {"0": 1}}
    assert list(lake.table("t").metadata.refs) == ["main"]


def killed(*args: object) -> None:
    raise RuntimeError("killed here")


#: The step of a batch for an Iceberg table that makes its rows visible, and whether statements have written them.
both_ways = pytest.mark.parametrize(("step", "by_statements"), [("COMMIT BRANCH", False), ("PUBLISH BRANCH", True)], ids=["direct", "sql"])


@both_ways
def test_of_two_tasks_alive_at_once_the_older_one_cannot_commit_and_no_row_is_doubled(lake: Lake, step: str, by_statements: bool) -> None:
    topic = lake.topic("t")
    config = lake.config(topic)
    lake.produce(topic, notes("a"))
    watched = Watched(by_statements=by_statements)
    zombie = lake.start(config, make_tables=watched)
    lake.drain(zombie)
    lake.produce(topic, notes("b"))
    younger: list[Any] = []

    def late() -> None:
        """The zombie has written its rows, and hangs before the commit, while another task takes over."""
        younger.append(lake.start(config))
        lake.drain(younger[0])

    watched.once(step, late)
    with pytest.raises(FatalTaskError, match="younger task of connector lake"):
        zombie.step()
    assert found(lake) == ["a", "b"]
    lake.produce(topic, notes("c"))
    lake.drain(younger[0])
    assert found(lake) == ["a", "b", "c"]
    assert list(lake.table("t").metadata.refs) == ["main"]


@iceberg_and_long_delta
def test_a_task_that_read_the_table_before_another_took_over_cannot_commit(lake: Lake) -> None:
    topic = lake.topic("t")
    config = lake.config(topic)
    lake.produce(topic, notes("a"))
    watched = Watched(by_statements=True)
    zombie = lake.start(config, make_tables=watched)
    lake.drain(zombie)
    lake.produce(topic, notes("b"))
    younger: list[Any] = []

    def late() -> None:
        younger.append(lake.start(config))
        lake.drain(younger[0])

    watched.once(FIRST_OF_COMMIT[lake.format], late)
    with pytest.raises(FatalTaskError, match="younger task of connector lake"):
        zombie.step()
    assert found(lake) == ["a", "b"]
    lake.produce(topic, notes("c"))
    with pytest.raises(FatalTaskError, match="younger task of connector lake"):
        zombie.step()
    lake.drain(younger[0])
    assert found(lake) == ["a", "b", "c"]


@pytest.mark.long
@iceberg_and_long_delta
def test_a_task_whose_offsets_were_altered_beside_it_ends_and_the_next_one_reads_again(lake: Lake) -> None:
    topic = lake.topic("t")
    config = lake.config(topic)
    lake.produce(topic, notes("a", "b"))
    zombie = lake.start(config)
    lake.drain(zombie)
    alter(lake, zombie, config, {TopicPartition(topic, 0): 1})
    lake.produce(topic, notes("c"))
    with pytest.raises(FatalTaskError, match="or its offsets were altered"):
        zombie.step()
    lake.context.group[TopicPartition(topic, 0)] = 1
    lake.drain(lake.start(config))
    assert found(lake) == ["a", "b", "b", "c"]


@pytest.mark.long
@iceberg_and_long_delta
def test_a_younger_task_takes_over_although_its_clock_is_behind(lake: Lake) -> None:
    topic = lake.topic("t")
    config = lake.config(topic)
    lake.produce(topic, notes("a"))
    lake.drain(lake.start(config))
    slow = lake.start(config, clock=lambda: 10**18)
    lake.produce(topic, notes("b"))
    lake.drain(slow)
    assert found(lake) == ["a", "b"]


@iceberg_and_long_delta
@pytest.mark.parametrize("how", ["dropped", *(pytest.param(how, marks=pytest.mark.long) for how in ("rolled back", "replaced"))])
def test_a_table_that_loses_rows_under_a_running_task_gets_them_again(lake: Lake, how: str) -> None:
    topic = lake.topic("t")
    task = lake.start(lake.config(topic))
    for text in ("a", "b"):
        lake.produce(topic, notes(text))
        lake.drain(task)
    if how == "rolled back":
        lake.roll_back(task, "t")
        assert found(lake) == ["a"]
    elif how == "dropped":
        lake.drop(task, "t")
    else:  # properties and history go on, the rows are gone
        table = lake.sql("t")
        task.spark.sql(f"CREATE OR REPLACE TABLE {table} USING {lake.format} AS SELECT * FROM {table} WHERE false")
    lake.produce(topic, notes("c"))
    with pytest.raises(RetriableError, match="has been set back by others"):
        task.step()
    lake.drain(task)
    assert found(lake) == ["a", "b", "c"]


@pytest.mark.long
@pytest.mark.parametrize("lake", ["delta"], indirect=True)
def test_a_table_rolled_back_before_its_task_has_seen_its_own_commit_gets_the_rows_again(lake: Lake) -> None:
    topic = lake.topic("t")
    watched = Watched(by_statements=True)
    task = lake.start(lake.config(topic), make_tables=watched)
    lake.produce(topic, notes("a"))
    lake.drain(task)
    watched.once("DESCRIBE HISTORY", lambda: lake.roll_back(task, "t"))
    lake.produce(topic, notes("b"))
    lake.drain(task)
    assert found(lake) == ["a"]
    lake.produce(topic, notes("c"))
    with pytest.raises(RetriableError, match="has been set back by others"):
        task.step()
    lake.drain(task)
    assert found(lake) == ["a", "b", "c"]


@both_ways
def test_a_commit_of_somebody_else_in_the_middle_of_a_batch_costs_a_repetition_only(lake: Lake, step: str, by_statements: bool) -> None:
    topic = lake.topic("t")
    watched = Watched(by_statements=by_statements)
    task = lake.start(lake.config(topic), make_tables=watched)
    lake.produce(topic, notes("a"))
    lake.drain(task)
    watched.once(step, lambda: task.spark.sql(f"INSERT INTO {T} (note) VALUES ('by hand')"))
    lake.produce(topic, notes("b"))
    with pytest.raises(RetriableError, match="changed by others"):
        task.step()
    lake.drain(task)
    assert found(lake) == ["a", "b", "by hand"]


@pytest.mark.long
def test_a_table_rolled_back_by_hand_gets_its_rows_again(lake: Lake) -> None:
    topic = lake.topic("t")
    config = lake.config(topic)
    task = lake.start(config)
    for text in ("a", "b"):
        lake.produce(topic, notes(text))
        lake.drain(task)
    lake.roll_back(task, "t")
    assert found(lake) == ["a"]
    lake.drain(lake.start(config))
    assert found(lake) == ["a", "b"]


@pytest.mark.long
@iceberg_and_long_delta
def test_tombstones_alone_are_not_read_again_at_a_restart(lake: Lake) -> None:
    topic = lake.topic("t")
    config = lake.config(topic)
    created = event("c", 1, {"n": 1}, {"n": INT})
    lake.produce(topic, [created, event("d", 1, {"n": 1}, {"n": INT})])
    task = lake.start(config)
    lake.drain(task)
    lake.produce(topic, [(created[0], None)] * 3)
    assert lake.drain(task) == 1
    assert lake.drain(lake.start(config)) == 0
    assert lake.watermark("t") == {topic: {"0": 5}}


def alter(lake: Lake, task: SparkLakehouseSinkTask, config: dict[str, str], wanted: dict[TopicPartition, int | None]) -> None:
    """What `PATCH` and, without offsets, `DELETE` do to the tables, in the session of a task that the test has anyway."""
    tables = open_tables(task.spark, parse(config), Writer("lake", 0, time.time_ns() // 1_000_000))
    offsets.alter_tables(tables, {tp.topic: [TableName(("public", "t"))] for tp in wanted}, wanted, tables.written())


@pytest.mark.long
@iceberg_and_long_delta
def test_altered_offsets_become_the_tables_watermark_back_and_forth(lake: Lake) -> None:
    topic = lake.topic("t")
    config = lake.config(topic) | {"name": "lake"}
    lake.produce(topic, notes("a", "b", "c"))
    zombie = lake.start(config)
    lake.drain(zombie)
    connector = SparkLakehouseSink()
    assert connector.alter_offsets(config, {(topic, 0): 1})
    lake.context.group[TopicPartition(topic, 0)] = 1  # what the worker does next
    assert lake.watermark("t") == {topic: {"0": 1}}
    lake.drain(lake.start(config))
    assert found(lake) == ["a", "b", "b", "c", "c"]
    alter(lake, zombie, config, {TopicPartition(topic, 0): 9})
    lake.produce(topic, notes(*"defghijk"))
    lake.context.group[TopicPartition(topic, 0)] = 9
    lake.drain(lake.start(config))
    assert found(lake)[5:] == ["j", "k"]
    alter(lake, zombie, config, {})
    assert lake.watermark("t") == {}
    assert lake.generations("t") == sorted(lake.generations("t"))
    assert lake.generations("t")[-1] == 3
    tables = open_tables(zombie.spark, parse(config), Writer("lake", 0, time.time_ns() // 1_000_000))
    with pytest.raises(BadRequestError, match="no lakehouse table yet"):
        offsets.alter_tables(tables, {"x.y.z": [TableName(("y", "z"))]}, {TopicPartition("x.y.z", 0): 4}, [])


@pytest.mark.long
@iceberg_and_long_delta
def test_maintenance_between_batches_compacts_a_table_and_keeps_its_rows_and_offsets(lake: Lake) -> None:
    topic = lake.topic("t")
    more = {"compact.every-commits": "3", "expire-snapshots.older-than-ms": "0", "expire-snapshots.retain-last": "1"}
    config = lake.config(topic) | {f"lakehouse.maintenance.{name}": value for name, value in more.items()}
    task = lake.start(config)
    for number in range(3):
        lake.produce(topic, [event("c", number, {"n": number}, {"n": INT}), event("u", 0, {"n": number}, {"n": INT})])
        lake.drain(task)

    def turns() -> float | None:
        task.step()
        return next(group for group in task.metrics() if group.tags.get("table") == "public.t").values.get("maintenance-total")

    assert eventually(turns, "the end of the clean-up") == 1
    assert lake.files("t") == 1
    lake.produce(topic, [event("u", 1, {"n": 10}, {"n": INT})])
    lake.context.rewind()
    lake.drain(lake.start(config))
    assert sorted((row["id"], row["n"]) for row in lake.rows("t")) == [(0, 2), (1, 10), (2, 2)]
    assert lake.watermark("t") == {topic: {"0": 7}}


@pytest.mark.parametrize(
    ("lake", "by_statements"),
    [("iceberg", False), ("iceberg", True), pytest.param("delta", False, marks=pytest.mark.long)],
    indirect=["lake"],
)
def test_a_clean_up_before_any_step_of_a_batch_changes_nothing_of_it(lake: Lake, by_statements: bool) -> None:
    topic = lake.topic("t")
    policy = policy_of(older_than_ms=0)
    watched = Watched(by_statements=by_statements)
    task = lake.start(lake.config(topic, maintenance_enabled="false"), make_tables=watched)
    for number in range(3):
        lake.produce(topic, [event("c", number, {"n": number}, {"n": INT}), event("u", 0, {"n": number}, {"n": INT})])
        lake.drain(task)
    steps: list[str] = []

    def before(text: str) -> None:
        watched.before = lambda _: None  # the clean-up's own statements
        watched.tables.clean(TableName(("public", "t")), policy, thoroughly=not steps)
        steps.append(text)
        watched.before = before

    watched.before = before
    lake.produce(topic, [event("u", 1, {"n": 10}, {"n": INT}), event("d", 2, {"n": 2}, {"n": INT}), event("c", 3, {"n": 3}, {"n": INT})])
    lake.drain(task)
    watched.before = lambda _: None
    commits = [text.split()[0] for text in steps if text.startswith(("MERGE", "PUBLISH", "COMMIT", "SET spark.sql.codegen.wholeStage"))]
    expected = {("iceberg", True): ["MERGE", "PUBLISH"], ("iceberg", False): ["COMMIT"], ("delta", False): ["SET"]}
    assert commits == expected[lake.format, by_statements]
    assert sorted((row["id"], row["n"]) for row in lake.rows("t")) == [(0, 2), (1, 10), (3, 3)]
    if lake.format == "iceberg":
        assert lake.snapshots("t") <= (1 if by_statements else 2), "the snapshots before the last look should be gone"
    lake.context.rewind()
    lake.drain(lake.start(lake.config(topic, maintenance_enabled="false")))
    assert lake.watermark("t") == {topic: {"0": 9}}
    assert sorted((row["id"], row["n"]) for row in lake.rows("t")) == [(0, 2), (1, 10), (3, 3)]


@pytest.mark.long
@iceberg_and_long_delta
def test_a_kill_between_any_two_statements_of_maintenance_leaves_rows_and_offsets(lake: Lake) -> None:
    topic = lake.topic("t")
    config = lake.config(topic, maintenance_enabled="false")
    policy = policy_of(older_than_ms=0)
    statements = 3 if lake.format == "iceberg" else 2
    for number in range(statements):
        watched = Watched(by_statements=lake.format == "delta")
        task = lake.start(config, make_tables=watched)
        lake.produce(topic, notes(f"{number}"))
        lake.drain(task, report=False)
        left = iter(range(number))

        def before(text: str, left: Iterator[int] = left) -> None:
            if text.startswith(("CALL", "OPTIMIZE", "VACUUM")) and next(left, None) is None:
                killed()

        watched.before = before
        with pytest.raises(RuntimeError, match="killed here"):
            watched.tables.compact(TableName(("public", "t")), policy, thoroughly=True)
            watched.tables.clean(TableName(("public", "t")), policy, thoroughly=True)
    lake.drain(lake.start(config))
    assert found(lake) == [str(number) for number in range(statements)], "without a key every repeated event would show"
    assert lake.watermark("t") == {topic: {"0": statements}}
