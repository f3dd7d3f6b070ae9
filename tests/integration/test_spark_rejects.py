"""With errors.tolerance=all bad records leave the batch one by one, and the rest is applied. Real broker, real tables."""

from __future__ import annotations

import json

import pytest

from connect_py.errors import FatalTaskError
from tests.fix_spark import INT, TEXT, Lake, event

pytestmark = [pytest.mark.services, pytest.mark.spark]

DECIMAL = {
    "type": "bytes",
    "optional": True,
    "name": "org.apache.kafka.connect.data.Decimal",
    "parameters": {"scale": "0", "connect.decimal.precision": "3"},
}


def test_bad_records_are_handed_over_whole_before_the_others_are_committed(lake: Lake) -> None:
    topic = lake.topic("t")

    def good(key: int) -> tuple[bytes | None, bytes]:
        return event("c", key, {"n": key, "p": "AQ=="}, {"n": INT, "p": DECIMAL})

    key, value = good(7)
    too_large = event("c", 8, {"n": 8, "p": "f////w=="}, {"n": INT, "p": DECIMAL})
    records = [
        (key, b"\x00\xffnot text"),
        good(1),
        (key, value.replace(b'"n":7', b'"n":{}')),
        (key, value.replace(b'"op":"c"', b'"op":"z"')),
        too_large,
        good(2),
        (key, b'{"id": 1}'),
    ]
    lake.produce(topic, records)
    lake.producer.produce(topic, b"tail", b"k", 0, timestamp=1700000000123, headers=[("h", b"\x01"), ("n", None)])
    assert lake.producer.flush(20) == 0
    with pytest.raises(FatalTaskError, match=f"topic {topic} partition 0 offset"):
        lake.start(lake.config(topic)).step()
    with pytest.raises(FatalTaskError, match=r"More than lakehouse\.errors\.max-per-batch=2 records of one batch are bad"):
        lake.start(lake.config(topic, errors_max__per__batch="2") | {"errors.tolerance": "all"}).step()
    assert lake.context.rejected == []
    task = lake.start(lake.config(topic) | {"errors.tolerance": "all"})
    lake.drain(task)
    rejected = {record.offset: record for record in lake.context.rejected}
    assert sorted(rejected) == [0, 2, 3, 4, 6, 7]
    assert len(lake.context.rejected) == 6
    assert {offset: (record.key, record.value) for offset, record in rejected.items() if offset != 7} == {
        offset: records[offset] for offset in (0, 2, 3, 4, 6)
    }
    assert (rejected[7].timestamp, rejected[7].headers) == (1700000000123, [("h", b"\x01"), ("n", None)])
    why = {offset: str(record.error) for offset, record in rejected.items()}
    assert "JSON that begins with a schema" in why[0]
    assert why[2] == "the value is not what its schema says"
    assert why[3] == "the operation (op) is unknown"
    assert "cannot be represented as Decimal(3, 0)" in why[4]
    assert sorted(row["id"] for row in lake.rows("t")) == [1, 2]
    assert lake.watermark("t") == {topic: {"0": 8}}


@pytest.mark.long
def test_records_without_a_table_can_be_rejected_too(lake: Lake) -> None:
    topic = lake.topic("all")
    lake.produce(topic, [event("c", 1, {"kind": kind}, {"kind": TEXT}) for kind in ("public.t", None)])
    config = lake.config(topic, tables_dynamic__enabled="true", tables_route__field="kind", tables_unrouted="dlq")
    lake.drain(lake.start(config | {"errors.tolerance": "all"}))
    assert [json.loads(record.value or b"")["payload"]["after"]["kind"] for record in lake.context.rejected] == [None]
    assert len(lake.rows("t")) == 1
