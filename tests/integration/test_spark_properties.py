"""Properties that choose how records of other kinds become rows: documents of MongoDB, operations of flattened records, nested values."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyarrow.parquet import ParquetFile

from connect_py.api.record import TopicPartition
from connect_py.errors import FatalTaskError
from spark_sink.sql import record_schema
from spark_sink.types.columns import ewkb_sql, literal
from tests.fix_spark import BIGINT, ID, INT, TEXT, Lake, event, iceberg_and_long_delta, struct, with_schema

pytestmark = [pytest.mark.services, pytest.mark.spark]

RECORDED = Path(__file__).parents[1] / "parity" / "golden" / "mongo_changes.json"


def test_every_id_has_a_text_of_its_own_and_geometries_name_their_reference(held_spark: Any) -> None:
    ids = {
        '{"$oid": "65a1b2c3d4e5f60718293a4b"}': "65a1b2c3d4e5f60718293a4b",
        '"65a1b2c3d4e5f60718293a4b"': '"65a1b2c3d4e5f60718293a4b"',
        '"a \\"b\\" \\u00e9"': 'a "b" é',
        '"5"': '"5"',
        "5": "5",
        '"-x"': '"-x"',
        '""': '""',
        '"null"': '"null"',
        "null": "null",
        '"{}"': '"{}"',
        '{"k": [1,{"x": null}]}': '{"k": [1,{"x": null}]}',
        '{"$numberLong": "5"}': '{"$numberLong": "5"}',
    }
    rows = ", ".join(f"({literal(id_)})" for id_ in ids)
    found = held_spark.sql(f"SELECT v, {record_schema.document_id_type().convert('v')} id FROM VALUES {rows} AS t(v)").collect()
    assert {row["v"]: row["id"] for row in found} == ids
    assert len({row["id"] for row in found}) == len(ids)

    point = "000000000000F03F0000000000000040"
    cases = [
        ("0101000000" + point, 4326, "0101000020E6100000" + point),
        ("0101000020E6100000" + point, 4326, "0101000020E6100000" + point),
        ("0101000000" + point, None, "0101000000" + point),
        ("0000000001" + "3FF00000000000004000000000000000", 258, "0020000001000001023FF00000000000004000000000000000"),
        (None, 4326, None),
    ]
    values = ", ".join(
        f"({i}, named_struct('wkb', {'NULL' if wkb is None else f'unhex({literal(wkb)})'}, 'srid', {'NULL' if srid is None else srid}))"
        for i, (wkb, srid, _) in enumerate(cases)
    )
    made = held_spark.sql(f"SELECT i, hex({ewkb_sql('g')}) e FROM VALUES {values} AS t(i, g)").collect()
    assert {row["i"]: row["e"] for row in made} == {i: expected for i, (_, _, expected) in enumerate(cases)}


def of_collection(recorded: Mapping[str, Any]) -> tuple[list[tuple[bytes | None, bytes | None]], list[Mapping[str, Any]]]:
    """The records of the first recorded collection, as they were in Kafka, and their envelopes."""
    schemas = recorded["schemas"]

    def whole(part: Mapping[str, Any] | None) -> bytes | None:
        return None if part is None else with_schema(schemas[part["schema"].removeprefix("$")], part["payload"])

    records = next(found for topic, found in recorded["topics"].items() if topic.endswith(".items"))
    envelopes = [record["value"]["payload"] | {"id": record["key"]["payload"]["id"]} for record in records if record["value"]]
    return [(whole(record["key"]), whole(record["value"])) for record in records], envelopes


@iceberg_and_long_delta
def test_mongodbs_own_events_become_documents_by_their_ids(lake: Lake) -> None:
    records, envelopes = of_collection(json.loads(RECORDED.read_text()))
    topic = lake.topic("items")
    lake.produce(topic, records)
    expected: dict[str, str] = {}
    for envelope in envelopes:
        if envelope["op"] == "d":
            expected.pop(envelope["id"], None)
        elif envelope["after"] is not None:
            expected[envelope["id"]] = envelope["after"]
    lacking = sum(envelope["op"] != "d" and envelope["after"] is None for envelope in envelopes)
    config = lake.config(topic, tables_route__pattern="public.{table}") | {"errors.tolerance": "all"}
    task = lake.start(config)
    lake.drain(task)
    rows = lake.rows("items")
    assert len(lake.context.rejected) == lacking
    assert sorted(row["document"] for row in rows) == sorted(expected.values())
    assert {row["_id"] for row in rows if not row["_id"].startswith(("{", '"'))} >= {"u"} & {json.loads(i) for i in expected if i == '"u"'}


def flat(key: int, op: str | None, **row: Any) -> tuple[bytes, bytes]:
    schema = struct({"id": ID, "n": INT, "meta": {**struct({"op": TEXT}), "optional": True}})
    return with_schema(struct({"id": ID}), {"id": key}), with_schema(schema, {"id": key, **row, "meta": {"op": op}})


@pytest.mark.long
def test_a_field_of_flattened_records_says_what_happened_and_what_it_does_not_say_is_a_bad_record(lake: Lake) -> None:
    topic = lake.topic("t")
    config = lake.config(topic, tables_cdc__field="meta.op", tables_exclude__columns="meta") | {"errors.tolerance": "all"}
    lake.produce(topic, [flat(1, "INSERT", n=1), flat(2, "r", n=2), flat(3, "C", n=3), flat(2, "delete", n=2), flat(1, "U", n=11)])
    lake.produce(topic, [flat(4, None, n=4), flat(5, "x", n=5), (flat(3, "d")[0], None)])
    lake.drain(lake.start(config))
    assert sorted((row["id"], row["n"]) for row in lake.rows("t")) == [(1, 11), (3, 3)], "the tombstone says nothing"
    assert sorted(bad.offset for bad in lake.context.rejected) == [5, 6]
    assert {row["__op"] for row in lake.whole_rows("t")} == {"u", "c"}


@pytest.mark.long
def test_nested_values_are_variants_whose_changes_do_not_change_the_table(lake: Lake) -> None:
    topic = lake.topic("t")
    config = lake.config(topic, nested__as__variant="true")
    task = lake.start(config)
    array = {"type": "array", "items": INT, "optional": True}
    lake.produce(topic, [event("c", 1, {"o": {"a": 1}, "l": [1]}, {"o": {**struct({"a": INT}), "optional": True}, "l": array})])
    lake.drain(task)
    texts = {"o": {**struct({"a": TEXT, "b": BIGINT}), "optional": True}, "l": array}
    lake.produce(topic, [event("c", 2, {"o": {"a": "x", "b": 2}, "l": None}, texts), event("c", 3, {"o": None, "l": [2, None]}, texts)])
    lake.drain(task)
    found = task.spark.sql(f"SELECT id, to_json(o) o, to_json(l) l FROM {lake.sql('t')} ORDER BY id").collect()
    assert [tuple(row) for row in found] == [(1, '{"a":1}', "[1]"), (2, '{"a":"x","b":2}', None), (3, None, "[2,null]")]


GEOMETRY = {**struct({"wkb": {"type": "bytes"}, "srid": INT}, name="io.debezium.data.geometry.Geometry"), "optional": True}


def shape(wkb: str | None, srid: int | None = 4326) -> dict[str, Any]:
    """A geometry as Debezium sends it."""
    return {"wkb": None if wkb is None else base64.b64encode(bytes.fromhex(wkb)).decode(), "srid": srid}


@pytest.mark.long  # `tests/unit/spark_sink/test_wkt.py` has the texts, `test_spark_types.py` the columns
def test_geometries_are_texts_and_broken_ones_are_bad_records(lake: Lake) -> None:
    topics = [lake.topic(name) for name in ("one", "two")]
    config = lake.config(*topics, geometry_mode="wkt", control_commit_threads="2")
    point, z = "0101000020E6100000000000000000F03F0000000000000040", "01E9030000000000000000F03F00000000000000409A9999999999B93F"
    columns = {"g": GEOMETRY, "l": {"type": "array", "items": GEOMETRY, "optional": True}}
    for topic, name in zip(topics, ("one", "two"), strict=True):
        created = [
            event("c", 1, {"g": shape(point), "l": [shape(z, None), None]}, columns, name),
            event("c", 2, {"g": None, "l": None}, columns, name),
            event("c", 3, {"g": shape(z), "l": []}, columns, name),
        ]
        lake.produce(topic, [*created, event("d", 3, {"g": None, "l": None}, columns, name)])
    task = lake.start(config)
    lake.drain(task)
    good = {1: ("POINT(1 2)", ["POINT Z (1 2 0.1)", None]), 2: (None, None)}
    for name in ("one", "two"):
        assert {row["id"]: (row["g"], row["l"]) for row in lake.rows_by_spark(task, name)} == good
    broken = {"g": shape("0101"), "l": None}, {"g": None, "l": [shape(point), shape("01")]}, {"g": shape(None), "l": None}
    lake.produce(topics[0], [event("c", 4 + number, row, columns, "one") for number, row in enumerate(broken)])
    lake.produce(topics[0], [event("c", 9, {"g": shape(point), "l": None}, columns, "one")])
    with pytest.raises(FatalTaskError, match=r"table public\.one .*(the geometry ends before its end|a geometry has no wkb)"):
        lake.drain(task)
    assert {row["id"] for row in lake.rows("one")} == {1, 2}
    lake.drain(lake.start(config | {"errors.tolerance": "all"}))
    assert {row["id"]: row["g"] for row in lake.rows("one")} == {1: "POINT(1 2)", 2: None, 9: "POINT(1 2)"}
    assert sorted((bad.offset, str(bad.error)) for bad in lake.context.rejected) == [
        (4, "the geometry ends before its end, after 2 bytes"),
        (5, "the geometry ends before its end, after 1 bytes"),
        (6, "a geometry has no wkb"),
    ]


@pytest.mark.long
def test_records_without_a_key_can_be_bad_records(lake: Lake) -> None:
    topic = lake.topic("t")
    config = lake.config(topic, tables_no__key="dlq")
    lake.produce(topic, [event("c", None, {"n": 1}, {"n": INT}), event("c", 2, {"n": 2}, {"n": INT})])
    with pytest.raises(FatalTaskError, match=r"partition 0 offset 0.*no key"):
        lake.start(config).step()
    lake.drain(lake.start(config | {"errors.tolerance": "all"}))
    assert [row["id"] for row in lake.rows("t")] == [2]
    assert [(TopicPartition(bad.topic, bad.partition), bad.offset) for bad in lake.context.rejected] == [(TopicPartition(topic, 0), 0)]


@pytest.mark.long
@iceberg_and_long_delta
def test_writers_do_as_they_are_told_whatever_the_table_says(lake: Lake) -> None:
    topic, name = lake.topic("t"), {"iceberg": "write.parquet.compression-codec", "delta": "compression"}[lake.format]
    config = lake.config(topic) | {f"lakehouse.tables.write-props.{name}": "gzip"}
    lake.produce(topic, [event("c", key, {"n": key}, {"n": INT}) for key in range(5)])
    task = lake.start(config)
    lake.drain(task)
    lake.produce(topic, [event("u", key, {"n": -key}, {"n": INT}) for key in range(3)])
    lake.drain(task)
    files = [path for path in (lake.warehouse / "public" / "t").rglob("*.parquet") if "checkpoint" not in path.name]
    codecs = {ParquetFile(path).metadata.row_group(0).column(0).compression for path in files}
    assert len(files) > 1
    assert codecs == {"GZIP"}
    assert {row["id"]: row["n"] for row in lake.rows("t")} == {0: 0, 1: -1, 2: -2, 3: 3, 4: 4}
