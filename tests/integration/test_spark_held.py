"""What the driver reads of a small batch is what Spark's Kafka source would have read (`spark_sink.read.held`)."""

from __future__ import annotations

import base64
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from connect_py.api.record import TopicPartition
from connect_py.api.task import LogRecord
from connect_py.kafka.range_reader import RangeReader
from spark_sink.read.formats import CutRecord, Fingerprint, PlainRecords
from spark_sink.read.held import frame_of, frame_of_cut
from spark_sink.read.ranges import Range, offsets_json
from spark_sink.read.summary import summarize, summarize_cut
from spark_sink.spark.local import collect_locally, evaluate
from spark_sink.sql.merge import among_offsets
from tests.fix_spark import INT, TEXT, Lake, event, struct, with_schema
from tests.seeds import seeds

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
    assert asked == [True, True, False, True], "the first one, and its schema; then one each"
    assert sorted((row["id"], row["n"]) for row in lake.rows("t")) == [(0, 0), (1, 1), (2, 2)]


@pytest.mark.parametrize(("length", "is_held"), [(1, True), (100_000, False)])
def test_a_first_batch_is_held_if_its_records_are_short_enough(lake: Lake, length: int, is_held: bool) -> None:
    topic = lake.topic("t")
    task = lake.start(lake.config(topic))
    lake.produce(topic, [event("c", number, {"n": "x" * length}, {"n": TEXT}) for number in range(190)])
    lake.drain(task)
    [file] = (lake.warehouse / "public" / "t" / "data").glob("*.parquet")
    assert file.name.startswith("00000-0-") == is_held, "the driver counts its writers from 0; a job has the numbers of Spark's tasks"
    assert len(lake.rows("t")) == 190


def offsets_frame(spark: Any, offsets: Sequence[int]) -> Any:
    return spark.sql(f"SELECT * FROM VALUES {', '.join(f'({offset}L)' for offset in offsets)} AS v(`$offset`)")


@pytest.mark.parametrize("seed", seeds(4))
def test_offsets_are_found_among_those_wanted_whatever_the_gaps_between_them(held_spark: Any, seed: int) -> None:
    chance = random.Random(seed)
    first = chance.choice([0, 1, 4_000_000_017, 2**62])
    for gap in (1, 3, 1_000, 10**6):
        offsets = [first + number * gap + chance.randrange(gap) for number in range(200)]
        wanted = chance.sample(offsets, chance.randrange(1, 200))
        frame = offsets_frame(held_spark, offsets)
        found = frame.where(among_offsets(wanted, min(offsets), max(offsets))).collect()
        assert sorted(offset for (offset,) in found) == sorted(wanted), gap


def test_what_is_generated_for_offsets_is_the_same_for_the_next_batch(held_spark: Any) -> None:
    generated = held_spark.sparkContext._jvm.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME()

    def compiled(first: int) -> int:
        before = generated.getCount()
        frame = offsets_frame(held_spark, range(first, first + 50))
        assert len(frame.where(among_offsets(range(first, first + 30), first, first + 49)).collect()) == 30
        return int(generated.getCount() - before)

    compiled(1_000)
    assert compiled(7_777) == 0


@dataclass(frozen=True)
class Sent:
    """A record of a log that is not there (`LogRecord`)."""

    offset: int
    key: bytes | None
    value: bytes | None
    topic: str = "shop.public.t"
    partition: int = 0
    timestamp: int | None = 1_700_000_000_000
    timestamp_type: str | None = "CreateTime"
    headers: Sequence[tuple[str, bytes | None]] = ()


PLACEHOLDER = "__debezium_unavailable_value"


def a_log(chance: random.Random) -> list[Sent]:
    """Records of some schemas and partitions, among which truncates, marks of snapshots and placeholders are, and what looks like them."""
    texts = ["", "ä漢😀", PLACEHOLDER, base64.b64encode(PLACEHOLDER.encode()).decode(), 'p":"t"', ',"payload":', '"snapshot":"first']
    log: list[Sent] = []
    for offset in range(chance.randrange(1, 60)):
        columns = {f"c{number}": TEXT for number in range(chance.choice([1, 1, 1, 2, 9]))}
        op = chance.choice(["c", "u", "r", "r", "d", "t", "t"])
        marks = ["true", "first", "last", "first_in_data_collection", "last_in_data_collection", "lasting", None]
        row = {"id": offset, **dict.fromkeys(columns, chance.choice(texts))}
        source = {"snapshot": chance.choice(marks), "table": "t"}
        schema = struct({"after": struct(columns), "source": struct({"snapshot": TEXT, "table": TEXT}), "op": TEXT})
        value = with_schema(schema, {"after": None if op in "dt" else row, "source": source, "op": op})
        key = None if op == "t" else with_schema(struct({"id": INT}), {"id": offset})
        timestamp = chance.choice([None, 0, 1_700_000_000_000 + offset])
        log.append(Sent(offset, key, chance.choice([value, value, value, None]), partition=chance.randrange(2), timestamp=timestamp))
    return log


@pytest.mark.parametrize("seed", seeds(12))
def test_what_the_driver_cuts_and_counts_is_what_spark_does(held_spark: Any, seed: int) -> None:
    chance = random.Random(seed)
    log = a_log(chance)
    plain = PlainRecords()
    kafka = frame_of(held_spark, log, headers=False)
    if chance.random() < 0.7:  # some schemas are known
        whole = plain.whole(kafka).selectExpr("*", "xxhash64(khead) kfp", "xxhash64(vhead) vfp").collect()
        for row in chance.sample(whole, chance.randrange(len(whole)) + 1):
            kfp, vfp = (None if row[text] is None else row[number] for text, number in (("key", "kfp"), ("value", "vfp")))
            plain.learn(Fingerprint(row["topic"], kfp, vfp), row)
            plain.counted({Fingerprint(row["topic"], kfp, vfp): 1})
    cut = plain.cut(log)
    assert cut is not None
    by_spark = plain.rows(kafka).selectExpr(
        "topic", "partition", "offset", "timestamp", "kfp", "vfp", "key", "value", "problem", "NULL route"
    )
    rows, expected = frame_of_cut(held_spark, cut), collect_locally(by_spark.withColumn("route", by_spark["route"].cast("string")))
    assert evaluate(rows) is not None, "the driver holds it"
    assert rows.dtypes == expected.dtypes

    def seen(frame: Any) -> list[tuple[Any, ...]]:
        """Texts and positions, and which records share a number: what the number is does not matter."""
        found = frame.orderBy("offset").collect()
        numbers: dict[Any, int] = {None: -1}
        shared = [tuple(numbers.setdefault(row[name], row["offset"]) for name in ("kfp", "vfp")) for row in found]
        return [
            (row.topic, row.partition, row.offset, row.timestamp, row.key, row.value, row.problem, *of)
            for row, of in zip(found, shared, strict=True)
        ]

    assert seen(rows) == seen(expected)
    marks = chance.random() < 0.5
    counted, by_sql = (
        [(kind.fingerprint.topic, kind.fingerprint.value is None, replace(kind, fingerprint=None)) for kind in kinds]
        for kinds in (summarize_cut(cut, PLACEHOLDER, marks=marks), summarize(expected, PLACEHOLDER, marks=marks))
    )
    assert counted == by_sql


def test_a_record_without_a_schema_is_left_to_spark(held_spark: Any) -> None:
    plain = PlainRecords()
    with_one = with_schema(struct({"id": INT}), {"id": 1})
    assert plain.cut([Sent(0, with_one, with_one), Sent(1, b"7", with_one)]) is None
    assert plain.cut([Sent(0, with_one, with_one), Sent(1, with_one, b"")]) is None
    assert plain.cut([Sent(0, None, None)]) == [CutRecord("shop.public.t", 0, 0, 1_700_000_000_000, None, None, None, None)]
