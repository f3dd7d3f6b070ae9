"""The lakehouse sink against a real broker, real events of Debezium and a real table, read back by pyiceberg."""

from __future__ import annotations

import datetime
import json
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from connect_py.api.record import TopicPartition
from connect_py.errors import FatalTaskError
from spark_sink.tables.watermark import Watermark
from tests.fix_spark import BIGINT, ID, INT, TEXT, Lake, event, iceberg_and_long_delta, struct, with_schema

pytestmark = [pytest.mark.services, pytest.mark.spark]

UTC = datetime.UTC
PLACEHOLDER = "__debezium_unavailable_value"


def recorded() -> list[tuple[bytes | None, bytes | None]]:
    """Records of Debezium 3.6 for one table of everyday types: inserts, a snapshot, updates with and without TOAST, a new key, deletes, a
    new column."""
    data = json.loads((Path(__file__).parent / "data" / "everyday.json").read_text())

    def whole(part: Any) -> bytes | None:
        return None if part is None else f'{{"schema":{data["schemas"][part[0]]},"payload":{part[1]}}}'.encode()

    return [(whole(key), whole(value)) for key, value in data["records"]]


FIRST = {
    "id": 1,
    "ok": True,
    "si": 2,
    "i": 3,
    "price": Decimal("0.01"),
    "big": Decimal("-0.0000000001"),
    "var": "12345678901234567890.5",
    "r": 1.5,
    "d": 2.5,
    "name": "Ann",
    "body": "body",
    "day": datetime.date(2024, 2, 29),
    "t": "13:05:01.123456",
    "tz": "11:05:01Z",
    "ts": datetime.datetime(2024, 2, 29, 13, 5, 1, 123456),
    "tstz": datetime.datetime(2024, 2, 29, 11, 5, 1, 123456, tzinfo=UTC),
    "u": "6f1f3b1e-9d1c-4d3c-8b55-7c9e8d2b0a11",
    "js": '{"a": 1}',
    "jb": '{"b": [1, 2]}',
    "raw": b"\x00\xff\x10",
    "m": "ok",
    "tags": ["x", "y"],
    "iv": 93784000000,
    "extra": None,
}
EXPECTED = {
    1: FIRST,
    3: {"extra": datetime.datetime(2023, 12, 31, 23, 0, 0, 500000, tzinfo=UTC)},
    4: {"t": "24:00:00"},  # its infinite date and timestamps are null
    6: {"name": "toasty", "body": "c4ca4238a0b923820dcc509a6f75849b"},
    20: {
        "ok": False,
        "si": -32768,
        "i": -2147483648,
        "price": Decimal("-99.99"),
        "big": Decimal("-9999999999999999999999999999.9999999999"),
        "var": "-0.001",
        "r": float("nan"),
        "d": float("inf"),
        "name": "",
        "body": "",
        "day": datetime.date(1969, 12, 31),
        "t": "00:00:00",
        "tz": "10:59:59.999999Z",
        "ts": datetime.datetime(1969, 12, 31, 23, 59, 59, 999999),
        "tstz": datetime.datetime(1900, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
        "u": "00000000-0000-0000-0000-000000000000",
        "js": "null",
        "jb": "[]",
        "raw": b"",
        "m": "sad",
        "tags": [],
        "iv": -7889400000000,
    },
}


def assert_equals_the_source(lake: Lake) -> None:
    rows = {row["id"]: row for row in lake.rows("everyday")}
    want = {key: {**dict.fromkeys(FIRST), "id": key, **row} for key, row in EXPECTED.items()}
    assert str(rows[20].pop("r")) == str(want[20].pop("r"))  # as text: NaN is not equal to itself
    assert rows == want


@pytest.mark.parametrize(
    ("lake", "bound"),
    [
        pytest.param("iceberg", 100, marks=pytest.mark.long),
        pytest.param("iceberg", 4, marks=pytest.mark.long),
        ("iceberg", 8),
        ("delta", 100),
    ],
    ids=["iceberg, in one batch", "iceberg, in batches of four", "iceberg, in batches of eight", "delta, in one batch"],
    indirect=["lake"],
)
def test_real_events_of_every_kind_leave_the_table_equal_to_its_source(lake: Lake, bound: int) -> None:
    topic = lake.topic("everyday")
    lake.produce(topic, recorded())
    task = lake.start(lake.config(topic, max__offsets__per__trigger=str(bound)))
    assert lake.drain(task) == -(-len(recorded()) // bound)
    assert_equals_the_source(lake)
    if lake.format == "iceberg":
        stored = lake.table("everyday").current_snapshot().summary.additional_properties
        applied = len(recorded()) - (1 if bound < 100 else 0)  # the last batch is a tombstone, which changes no row
        assert json.loads(stored["kafka.connect.offsets.lake"]) == {topic: {"0": applied}}
    assert lake.watermark("everyday") == {topic: {"0": len(recorded())}}
    assert lake.context.group == {TopicPartition(topic, 0): len(recorded())}


@iceberg_and_long_delta
def test_a_replay_of_everything_writes_nothing(lake: Lake) -> None:
    topic = lake.topic("everyday")
    lake.produce(topic, recorded())
    lake.drain(lake.start(lake.config(topic)))
    before = lake.snapshots("everyday")
    lake.context.rewind()
    again = lake.start(lake.config(topic))
    assert lake.drain(again) == 1
    assert lake.snapshots("everyday") == before
    assert lake.context.group == {TopicPartition(topic, 0): len(recorded())}


@iceberg_and_long_delta
def test_after_a_kill_between_the_tables_commit_and_the_report_nothing_is_applied_twice(lake: Lake) -> None:
    topic = lake.topic("n")
    insert = event("c", None, {"note": "once"}, {"note": TEXT}, "n")
    lake.produce(topic, [insert, insert])
    lake.drain(lake.start(lake.config(topic)), report=False)  # the task is never asked again: as good as killed
    lake.produce(topic, [insert])
    lake.drain(lake.start(lake.config(topic)))
    assert len(lake.rows("n")) == 3  # without a key every event is a row, so a repeated one would show
    assert lake.snapshots("n") == 2


def test_a_table_that_cannot_be_written_holds_the_offsets_back_and_the_others_keep_what_they_have(lake: Lake, held_spark: Any) -> None:
    good, bad = lake.topic("a"), lake.topic("b")
    lake.produce(good, [event("c", 1, {"v": 1}, {"v": INT}, "a")])
    lake.produce(bad, [event("c", 1, {"v": "x"}, {"v": TEXT}, "b")])
    config = lake.config(good, bad, tables_schema__change_behavior="evolve")
    task = lake.start(config)
    task.spark.sql("CREATE TABLE lake.public.b (id INT, v BOOLEAN) USING iceberg")
    with pytest.raises(FatalTaskError, match=r"Column v of table public\.b is boolean and the records now have string"):
        task.step()
    assert lake.context.group == {}
    assert [row["v"] for row in lake.rows("a")] == [1]
    task.spark.sql("DROP TABLE lake.public.b")
    assert lake.drain(lake.start(config)) == 1
    assert [row["v"] for row in lake.rows("b")] == ["x"]
    assert lake.snapshots("a") == 1


@iceberg_and_long_delta
def test_a_new_column_and_a_wider_type_reach_the_table_and_old_events_leave_new_columns_alone(lake: Lake) -> None:
    topic = lake.topic("t")
    task = lake.start(lake.config(topic))
    lake.produce(topic, [event("c", 1, {"n": 1}, {"n": INT}), event("c", 2, {"n": 2}, {"n": INT})])
    lake.drain(task)
    lake.produce(topic, [event("u", 1, {"n": 2**40, "more": "m"}, {"n": BIGINT, "more": TEXT}), event("u", 1, {"n": 7}, {"n": INT})])
    lake.drain(task)
    rows = lake.rows_by_spark(task, "t")  # deltalake 1.6 reads no table in which a type was widened
    assert sorted((row["id"], row["n"], row["more"]) for row in rows) == [(1, 7, "m"), (2, 2, None)]
    assert lake.types("t") == {"id": "int", "n": "bigint", "more": "string"}


def test_a_type_that_cannot_be_widened_gets_a_column_of_its_own_or_is_cast(lake: Lake) -> None:
    topic = lake.topic("t")
    lake.produce(topic, [event("c", 1, {"v": 5}, {"v": INT}), event("c", 2, {"v": "six"}, {"v": TEXT})])
    lake.drain(lake.start(lake.config(topic)))
    lake.produce(topic, [event("u", 2, {"v": "7"}, {"v": TEXT}), event("c", 3, {"v": 8}, {"v": INT})])
    lake.drain(lake.start(lake.config(topic, tables_schema__change_behavior="try_evolve")))
    lake.produce(topic, [event("c", 4, {"v": 9, "w": 1}, {"v": INT, "w": INT})])
    lake.drain(lake.start(lake.config(topic, tables_schema__change_behavior="ignore")))
    rows = sorted((row["id"], row["v"], row["v__string"]) for row in lake.rows("t"))
    assert rows == [(1, 5, None), (2, 7, "six"), (3, 8, None), (4, 9, None)]
    assert lake.types("t") == {"id": "int", "v": "int", "v__string": "string"}


@pytest.mark.long
def test_without_leave_to_evolve_or_create_the_error_names_the_property(lake: Lake) -> None:
    topic = lake.topic("t")
    lake.produce(topic, [event("c", 1, {"n": 1}, {"n": INT})])
    config = lake.config(topic)
    with pytest.raises(FatalTaskError, match=r"lakehouse\.tables\.auto-create-enabled=true"):
        lake.start(config | {"lakehouse.tables.auto-create-enabled": "false"}).step()
    lake.drain(lake.start(config))
    lake.produce(topic, [event("c", 2, {"n": 1, "m": 1}, {"n": INT, "m": INT})])
    with pytest.raises(FatalTaskError, match=r"add m int.*lakehouse\.tables\.evolve-schema-enabled=true"):
        lake.start(config | {"lakehouse.tables.evolve-schema-enabled": "false"}).step()
    assert lake.snapshots("t") == 1


@pytest.mark.rotates(keep=2)
@pytest.mark.parametrize("keyed", [True, pytest.param(False, marks=pytest.mark.long)], ids=["keyed", "without a key"])
@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda value: value.replace(b'"after":{', b'"after":{,'), "the value is not what its schema says"),
        (lambda value: value.replace(b'"n":7', b'"n":3000000000'), "the value is not what its schema says"),
        (lambda value: value.replace(b'"op":"c"', b'"op":"z"'), r"the operation \(op\) is unknown"),
        (lambda value: b"not json at all", "JSON that begins with a schema"),
        (lambda value: b'{"id": 1, "n": 7}', "JSON that begins with a schema"),
    ],
    ids=["broken text", "too large a number", "unknown operation", "no JSON", "no schema"],
)
def test_a_bad_record_stops_the_task_with_its_place_and_nothing_is_written(lake: Lake, spoil: Any, why: str, keyed: bool) -> None:
    topic = lake.topic("t")
    one, seven = (1, 7) if keyed else (None, None)
    key, value = event("c", seven, {"n": 7}, {"n": INT})
    lake.produce(topic, [event("c", one, {"n": 1}, {"n": INT}), (key, spoil(value)), event("u", seven, {"n": 8}, {"n": INT})])
    with pytest.raises(FatalTaskError, match=f"topic {topic} partition 0 offset 1.*{why}"):
        lake.start(lake.config(topic)).step()
    table = lake.warehouse / "public" / "t"
    assert not table.exists() or lake.snapshots("t") == 0
    assert lake.context.group == {}


@iceberg_and_long_delta
def test_plain_records_are_upserted_by_key_and_a_tombstone_removes_the_row(lake: Lake) -> None:
    topic = lake.topic("p")
    schema = struct({"id": ID, "name": TEXT})

    def key(number: int) -> bytes:
        return with_schema(struct({"id": ID}), {"id": number})

    lake.produce(topic, [(key(n), with_schema(schema, {"id": n, "name": f"v{n}"})) for n in (1, 2, 1)])
    task = lake.start(lake.config(topic))
    lake.drain(task)
    lake.produce(topic, [(key(2), None)])
    lake.drain(task)
    assert lake.rows("p") == [{"id": 1, "name": "v1"}]


@iceberg_and_long_delta
def test_a_table_that_was_dropped_is_built_again_although_the_group_is_further(lake: Lake) -> None:
    topic = lake.topic("t")
    lake.produce(topic, [event("c", n, {"n": n}, {"n": INT}) for n in range(3)])
    config = lake.config(topic)
    task = lake.start(config)
    lake.drain(task)
    lake.drop(task, "t")
    lake.drain(lake.start(config))
    assert sorted(row["n"] for row in lake.rows("t")) == [0, 1, 2]


@pytest.mark.parametrize("bound", [1, 3, pytest.param(100, marks=pytest.mark.long)])
def test_aborted_transactions_do_not_reach_the_table_and_markers_do_not_stop_it(lake: Lake, bound: int) -> None:
    topic = lake.topic("n")
    task = lake.start(lake.config(topic, max__offsets__per__trigger=str(bound)))
    for texts, commit in ((["a", "b"], True), (["gone", "gone too"], False), (["c"], True), (["never"], False)):
        events = [event("c", None, {"note": text}, {"note": TEXT}, "n") for text in texts]
        lake.produce_in_transaction(topic, events, commit=commit)
    lake.drain(task)
    assert sorted(row["note"] for row in lake.rows("n")) == ["a", "b", "c"]
    assert lake.context.group == {TopicPartition(topic, 0): 10}  # four of them are markers of ends
    lake.produce_in_transaction(topic, [event("c", None, {"note": "d"}, {"note": TEXT}, "n")])
    lake.context.group.clear()
    lake.drain(lake.start(lake.config(topic)))
    assert sorted(row["note"] for row in lake.rows("n")) == ["a", "b", "c", "d"]


@pytest.mark.long
def test_a_consumer_that_is_to_read_uncommitted_records_does(lake: Lake) -> None:
    topic = lake.topic("n")
    for text in ("kept", "aborted"):
        event_ = event("c", None, {"note": text}, {"note": TEXT}, "n")
        lake.produce_in_transaction(topic, [event_], commit=text == "kept")
    lake.context.kafka_options = {**lake.context.kafka_options, "isolation.level": "read_uncommitted"}
    lake.drain(lake.start(lake.config(topic)))
    assert sorted(row["note"] for row in lake.rows("n")) == ["aborted", "kept"]


@iceberg_and_long_delta
def test_a_group_that_lost_its_offset_leaves_the_start_to_the_table(lake: Lake) -> None:
    topic = lake.topic("n")
    config = lake.config(topic, starting__offsets="latest")
    task = lake.start(config)
    assert lake.drain(task) == 0
    insert = event("c", None, {"note": "once"}, {"note": TEXT}, "n")
    lake.produce(topic, [insert, insert])
    lake.drain(task)
    lake.produce(topic, [insert])
    lake.context.group.clear()  # as Kafka forgets a group that nobody has used for seven days
    lake.drain(lake.start(config))
    assert len(lake.rows("n")) == 3  # without a key every event is a row, so a skipped or repeated one would show
    lake.produce(topic, [insert, insert])
    lake.delete_below(topic, 4)
    lake.context.group.clear()
    again = lake.start(config | {"lakehouse.starting-offsets": "earliest"})
    with pytest.raises(FatalTaskError, match="should be read from offset 3, but offsets 3 to 3 have been deleted"):
        again.step()
    lake.drain(lake.start(config | {"lakehouse.fail-on-data-loss": "false"}))
    assert len(lake.rows("n")) == 4


@pytest.mark.long
def test_a_watermark_in_a_table_property_counts_when_the_snapshots_have_lost_theirs(lake: Lake) -> None:
    topic = lake.topic("t")
    lake.produce(topic, [event("c", n, {"n": n}, {"n": INT}) for n in range(3)])
    config = lake.config(topic)
    task = lake.start(config)
    task.spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.public")
    stored = Watermark({TopicPartition(topic, 0): 2}).to_json()
    task.spark.sql(f"CREATE TABLE lake.public.t (id INT, n INT) USING iceberg TBLPROPERTIES ('kafka.connect.offsets.lake' = '{stored}')")
    lake.drain(task)
    assert [row["n"] for row in lake.rows("t")] == [2]


@iceberg_and_long_delta
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
def test_any_history_cut_anywhere_ends_in_the_state_of_a_plain_model(lake: Lake, seed: int) -> None:
    """Inserts, updates, deletes, tombstones, unavailable values and a column that comes and goes, over partitions and random batches."""
    rng = random.Random(seed)
    topic = lake.topic("t", partitions=3)
    model: dict[int, dict[str, Any]] = {}
    task = lake.start(lake.config(topic, max__offsets__per__trigger=str(rng.randint(9, 25))))
    for _ in range(2):
        for number in range(30):
            key = rng.randrange(9)
            wide = rng.random() < 0.7
            if key in model and rng.random() < 0.3:
                _, value = event("d", key, {"body": None}, {"body": TEXT})
                records: list[tuple[bytes | None, bytes | None]] = [(event("d", key, None, {})[0], value)]
                if rng.random() < 0.7:
                    records.append((records[0][0], None))
                del model[key]
            else:
                row: dict[str, Any] = {"body": rng.choice([None, f"b{number}"])}
                if wide:
                    row["n"] = number
                columns = {"body": TEXT, **({"n": INT} if wide else {})}
                sent = dict(row)
                stored = model.get(key)
                if stored is not None and rng.random() < 0.4:
                    sent["body"], row["body"] = PLACEHOLDER, stored["body"]
                records = [event("u" if stored is not None else "c", key, sent, columns)]
                model[key] = {"n": None, **(stored or {}), **row}
            lake.produce(topic, records, partition=key % 3)
        lake.drain(task)
        assert {row["id"]: {"body": row["body"], "n": row["n"]} for row in lake.rows("t")} == model, f"seed {seed}"
