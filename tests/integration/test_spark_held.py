"""What the driver reads of a small batch is what Spark's Kafka source would have read (`spark_sink.read.held`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from connect_py.api.record import TopicPartition
from connect_py.api.task import LogRecord
from connect_py.kafka.range_reader import RangeReader
from spark_sink.read.held import frame_of
from spark_sink.read.ranges import Range, offsets_json
from tests.fix_spark import INT, Lake, event

pytestmark = [pytest.mark.services, pytest.mark.spark]


def by_spark(spark: Any, lake: Lake, ranges: Mapping[TopicPartition, Range]) -> Any:
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", lake.bootstrap).option("includeHeaders", "true")
    reader = reader.option("subscribe", ",".join({tp.topic for tp in ranges}))
    reader = reader.option("startingOffsets", offsets_json((tp, start) for tp, (start, _) in ranges.items()))
    return reader.option("endingOffsets", offsets_json((tp, end) for tp, (_, end) in ranges.items())).load()


def test_the_frame_is_that_of_sparks_source(lake: Lake) -> None:
    topic = lake.topic("t", partitions=2)
    spark = lake.start(lake.config(topic)).spark
    sent: list[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]] = [
        (b"k", b"v", [("a", b"1"), ("ä", None), ("a", b"")]),
        (None, b"", []),
        (b"", None, [("b", b"\xff\x00")]),
        (None, None, []),
        ("schlüssel".encode(), b"\x00" * 3000, []),
    ]
    for number, (key, value, headers) in enumerate(sent * 5):
        lake.producer.produce(topic, value, key, number % 2, headers=headers, timestamp=1_700_000_000_000 + number)
    assert lake.producer.flush(20) == 0
    ranges = {TopicPartition(topic, 0): (1, 12), TopicPartition(topic, 1): (0, 12)}
    reader = RangeReader({"bootstrap.servers": lake.bootstrap})
    try:
        records = reader.read(ranges, 1_000_000)
    finally:
        reader.close()
    assert records is not None
    expected = by_spark(spark, lake, ranges).orderBy("partition", "offset")
    found = frame_of(spark, records, headers=True)
    assert found.schema == expected.schema
    assert found.orderBy("partition", "offset").collect() == expected.collect()
    without = frame_of(spark, records, headers=False)
    assert without.columns == [name for name in expected.columns if name != "headers"]
    assert without.count() == 23
    assert frame_of(spark, [], headers=True).collect() == []


def test_a_small_batch_is_read_by_the_driver_and_what_it_cannot_read_by_spark(lake: Lake) -> None:
    topic = lake.topic("t")
    asked: list[bool] = []
    read = lake.context.records
    can_read = True

    def records(ranges: Mapping[TopicPartition, Range], max_bytes: int) -> Sequence[LogRecord] | None:
        asked.append(can_read)
        return read(ranges, max_bytes) if can_read else None

    lake.context.records = records  # type: ignore[method-assign]
    task = lake.start(lake.config(topic))
    for number in range(3):
        can_read = number != 1
        lake.produce(topic, [event("c", number, {"n": number}, {"n": INT})])
        lake.drain(task)
    assert asked == [True, False, True]
    assert sorted((row["id"], row["n"]) for row in lake.rows("t")) == [(0, 0), (1, 1), (2, 2)]
