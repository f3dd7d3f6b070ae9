"""Structured Streaming drives the same tables: what the checkpoint remembers never decides. Real broker, real tables.

The other tests of the sink can run this way too: `CONNECT_PY_LAKE_DRIVER=stream`.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from connect_py.api.record import TopicPartition
from connect_py.errors import FatalTaskError, RetriableError
from spark_sink import offsets
from spark_sink.config.sink_config import parse
from spark_sink.routing import TableName
from spark_sink.tables.base import Writer
from spark_sink.tables.open import open_tables
from spark_sink.task import SparkLakehouseSinkTask
from tests.fix_spark import FIRST_OF_COMMIT, TEXT, Lake, Watched, event, iceberg_and_long_delta
from tests.waiting import eventually

pytestmark = [pytest.mark.services, pytest.mark.spark]


def notes(*texts: str, table: str = "t") -> list[tuple[bytes | None, bytes]]:
    """Events without a key: each becomes a row of its own, so that a repeated one shows."""
    return [event("c", None, {"note": text}, {"note": TEXT}, table) for text in texts]


def found(lake: Lake, table: str = "t") -> str:
    return "".join(sorted(row["note"] for row in lake.rows(table)))


def streaming(lake: Lake, *topics: str, **more: str) -> dict[str, str]:
    return lake.config(*topics, source_mode="stream", **more)


def generations(lake: Lake) -> list[str]:
    """Of the connector's checkpoint."""
    return sorted(path.name for path in (lake.warehouse.parent / "checkpoint" / "lake").iterdir())


def run(lake: Lake, config: dict[str, str], **more: Any) -> SparkLakehouseSinkTask:
    """A task, after it has applied what there is."""
    task = lake.start(config, **more)
    lake.drain(task)
    return task


@iceberg_and_long_delta
def test_batches_of_a_stream_reach_the_table_once_and_its_checkpoint_goes_on_after_a_restart(lake: Lake) -> None:
    topic = lake.topic("t", partitions=2)
    config = streaming(lake, topic, max__offsets__per__trigger="2")
    lake.produce(topic, notes(*"abc"))
    task = lake.start(config)
    assert lake.drain(task) == 2
    lake.produce(topic, notes("d"), partition=1)
    lake.produce(topic, notes("e"))
    assert lake.drain(task) == 1
    task.close()
    again = lake.start(config)
    assert lake.drain(again) == 0
    lake.produce(topic, notes("f"))
    assert lake.drain(again) == 1
    assert found(lake) == "abcdef"
    assert lake.context.group == {TopicPartition(topic, 0): 5, TopicPartition(topic, 1): 1}
    assert generations(lake) == ["g1"]


@pytest.mark.long
def test_a_checkpoint_that_is_gone_or_does_not_stand_where_the_table_does_repeats_and_loses_nothing(lake: Lake) -> None:
    topic = lake.topic("t")
    config = streaming(lake, topic)
    lake.produce(topic, notes("a"))
    run(lake, config).close()
    lake.produce(topic, notes("b"))
    run(lake, config).close()
    shutil.rmtree(lake.warehouse.parent / "checkpoint")
    lake.context.rewind()
    lake.produce(topic, notes("c"))
    run(lake, config).close()
    assert found(lake) == "abc"

    for name in Path(lake.warehouse.parent / "checkpoint" / "lake" / "g1" / "offsets").glob("[0-9]*"):
        name.write_text("not what Spark writes")
    lake.produce(topic, notes("d"))
    task = run(lake, config)
    assert generations(lake) == ["g2"]
    assert found(lake) == "abcd"

    lake.roll_back(task, "t")
    task.close()
    assert found(lake) == "a"
    again = run(lake, config)
    assert found(lake) == "abcd"
    assert generations(lake) == ["g3"]

    lake.roll_back(again, "t")  # now under a running task
    lake.produce(topic, notes("e"))
    with pytest.raises(RetriableError, match="has been set back by others"):
        again.step()
    lake.drain(again)
    assert found(lake) == "abcde"


@pytest.mark.long
@iceberg_and_long_delta
def test_altered_offsets_hold_for_a_stream_back_and_forth(lake: Lake) -> None:
    topic = lake.topic("t")
    config = streaming(lake, topic)
    lake.produce(topic, notes(*"abc"))
    task = run(lake, config)
    task.close()
    holder = lake.start(config)
    for wanted, more, expected in ((1, "d", "abbccd"), (6, "efg", "abbccdg")):
        tables = open_tables(holder.spark, parse(config), Writer("lake", 0, time.time_ns() // 1_000_000))
        offsets.alter_tables(tables, {topic: [TableName(("public", "t"))]}, {TopicPartition(topic, 0): wanted}, [])
        lake.context.group[TopicPartition(topic, 0)] = wanted
        lake.produce(topic, notes(*more))
        run(lake, config).close()
        assert found(lake) == expected


def test_a_batch_that_failed_comes_again_with_the_same_records_and_new_partitions_are_read_from_their_start(lake: Lake) -> None:
    topic = lake.topic("t")
    watched = Watched(broken)
    task = lake.start(streaming(lake, topic), make_tables=watched)
    lake.produce(topic, notes("a"))
    with pytest.raises(RetriableError, match="storage is away"):
        task.step()
    watched.before = lambda _: None
    lake.produce(topic, notes("b"))
    lake.drain(task)
    assert found(lake) == "ab"
    admin = AdminClient({"bootstrap.servers": lake.bootstrap})
    admin.create_partitions([NewPartitions(topic, 2)])[topic].result(20)
    eventually(lambda: len(lake.context.log_offsets([topic], None)) == 2, "second partition")
    lake.produce(topic, notes("c"), partition=1)
    lake.drain(task)
    assert found(lake) == "abc"
    assert lake.watermark("t") == {topic: {"0": 2, "1": 1}}


@pytest.mark.long
def test_a_topic_that_comes_back_to_a_stream_is_not_read_again_from_its_start(lake: Lake) -> None:
    first, second = lake.topic("t"), lake.topic("other")
    lake.produce(first, notes("a"))
    lake.produce(second, notes(*"xy", table="other"))
    run(lake, streaming(lake, first, second)).close()
    lake.produce(first, notes("b"))
    run(lake, streaming(lake, first)).close()
    lake.produce(second, notes("z", table="other"))
    run(lake, streaming(lake, first, second)).close()
    assert (found(lake), found(lake, "other")) == ("ab", "xyz")


def broken(statement: str) -> None:
    if "INSERT INTO" in statement or "COMMIT BRANCH" in statement:
        raise RuntimeError("storage is away")


@pytest.mark.long
@iceberg_and_long_delta
def test_of_two_streams_alive_at_once_the_older_one_cannot_commit(lake: Lake) -> None:
    topic = lake.topic("t")
    config = streaming(lake, topic)
    lake.produce(topic, notes("a"))
    watched = Watched(by_statements=True)
    zombie = run(lake, config, make_tables=watched)
    lake.produce(topic, notes("b"))
    younger: list[SparkLakehouseSinkTask] = []
    watched.once(FIRST_OF_COMMIT[lake.format], lambda: younger.append(run(lake, config)))
    with pytest.raises(FatalTaskError, match="younger task of connector lake"):
        zombie.step()
    assert found(lake) == "ab"
    lake.produce(topic, notes("c"))
    lake.drain(younger[0])
    assert found(lake) == "abc"
