"""Records of other converters, and transforms: read by the worker's own classes on executors, with the same tables as the outcome."""

from __future__ import annotations

import json
from typing import Any

import pytest

from connect_py.api.record import TopicPartition
from connect_py.converters.avro.converter import AvroConverter
from connect_py.converters.json_converter import JsonConverter
from spark_sink.read.converted import ConvertedRecords
from spark_sink.read.held import frame_of, frame_of_cut
from tests.fix_registry import SchemaRegistry
from tests.fix_spark import INT, TEXT, Lake, event, iceberg_and_long_delta
from tests.integration.test_spark_sink import assert_equals_the_source, recorded

pytestmark = [pytest.mark.services, pytest.mark.spark]

AVRO = "io.confluent.connect.avro.AvroConverter"
UNWRAP = {"transforms": "unwrap", "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState"}


def avro_settings(registry: SchemaRegistry) -> dict[str, str]:
    sides = ("key", "value")
    return {f"{side}.converter": AVRO for side in sides} | {f"{side}.converter.schema.registry.url": registry.url for side in sides}


def as_avro(records: list[tuple[bytes | None, bytes | None]], topic: str, registry: SchemaRegistry) -> list[tuple[Any, Any]]:
    """Records of JSON with schemas as Avro, through the worker's converters."""
    json_converters, avro_converters = {}, {}
    for is_key in (True, False):
        json_converters[is_key], avro_converters[is_key] = JsonConverter(), AvroConverter()
        json_converters[is_key].configure({}, is_key=is_key)
        avro_converters[is_key].configure({"schema.registry.url": registry.url}, is_key=is_key)

    def converted(data: bytes | None, *, is_key: bool) -> bytes | None:
        schema, value = json_converters[is_key].to_connect_data(topic, data)
        return avro_converters[is_key].from_connect_data(topic, schema, value)

    return [(converted(key, is_key=True), converted(value, is_key=False)) for key, value in records]


@iceberg_and_long_delta
def test_avro_with_a_registry_leaves_the_table_equal_to_its_source(lake: Lake, schema_registry: SchemaRegistry) -> None:
    topic = lake.topic("everyday")
    lake.produce(topic, as_avro(recorded(), topic, schema_registry))
    task = lake.start(lake.config(topic) | avro_settings(schema_registry))
    lake.drain(task)
    assert_equals_the_source(lake)


def test_transforms_are_applied_before_records_become_rows(lake: Lake) -> None:
    topic = lake.topic("t")
    more = UNWRAP | {
        "transforms": "unwrap,mask,drop",
        "transforms.mask.type": "org.apache.kafka.connect.transforms.MaskField$Value",
        "transforms.mask.fields": "secret",
        "transforms.drop.type": "org.apache.kafka.connect.transforms.Filter",
        "transforms.drop.predicate": "gone",
        "predicates": "gone",
        "predicates.gone.type": "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone",
    }
    columns = {"n": INT, "secret": TEXT}
    lake.produce(topic, [event("c", n, {"n": n, "secret": "x"}, columns) for n in (1, 2)])
    lake.produce(topic, [(event("d", 1, {"n": 1, "secret": "x"}, columns)[0], None), event("u", 2, {"n": 20, "secret": "y"}, columns)])
    lake.drain(lake.start(lake.config(topic) | more))
    assert sorted((row["id"], row["n"], row["secret"]) for row in lake.rows("t")) == [(1, 1, ""), (2, 20, "")]
    assert lake.watermark("t") == {topic: {"0": 4}}


def test_fields_of_flattened_documents_are_columns_although_they_begin_as_those_that_the_transform_adds(lake: Lake) -> None:
    topic = lake.topic("t")
    more = UNWRAP | {"transforms.unwrap.add.fields": "op,table", "transforms.unwrap.delete.tombstone.handling.mode": "rewrite"}
    lake.produce(topic, [event("c", n, {"__v": n, "n": n}, {"__v": INT, "n": INT}) for n in (1, 2)])
    lake.drain(lake.start(lake.config(topic) | more))
    rows = sorted(lake.whole_rows("t"), key=lambda row: row["id"])
    assert [(row["id"], row["__v"], row["n"]) for row in rows] == [(1, 1, 1), (2, 2, 2)]
    assert list(rows[0]) == ["id", "__v", "n", "__op", "__ts_ms"]


@pytest.mark.long
def test_a_transform_that_moves_records_to_other_topics_moves_them_to_other_tables(lake: Lake) -> None:
    topic = lake.topic("t")
    more = {
        "transforms": "route",
        "transforms.route.type": "org.apache.kafka.connect.transforms.RegexRouter",
        "transforms.route.regex": "(.*)[.]t",
        "transforms.route.replacement": "$1.moved",
        "lakehouse.tables.route-topic-regex": ".*[.](.*)[.](.*)",
        "lakehouse.tables.route-pattern": "{1}.{2}",
    }
    lake.produce(topic, [event("c", 1, {"n": 1}, {"n": INT})])
    lake.drain(lake.start(lake.config(topic) | more))
    assert lake.rows("moved") == [{"id": 1, "n": 1}]


def test_bytes_that_a_converter_cannot_read_are_bad_records_one_by_one(lake: Lake, schema_registry: SchemaRegistry) -> None:
    topic = lake.topic("t")
    good = as_avro([event("c", n, {"n": n}, {"n": INT}) for n in (1, 2, 3)], topic, schema_registry)
    unknown = (good[0][0], b"\x00\x00\x00\x03\xe8" + good[0][1][5:])
    lake.produce(topic, [good[0], (good[1][0], b"not avro"), good[1], unknown, (good[2][0], good[2][1][:-3]), good[2]])
    config = lake.config(topic) | avro_settings(schema_registry) | {"errors.tolerance": "all"}
    lake.drain(lake.start(config))
    assert sorted(row["id"] for row in lake.rows("t")) == [1, 2, 3]
    assert [(bad.offset, bad.value) for bad in lake.context.rejected] == [(1, b"not avro"), (3, unknown[1]), (4, good[2][1][:-3])]
    assert "Unknown magic byte" in str(lake.context.rejected[0].error)


@pytest.mark.long
def test_a_registry_that_does_not_answer_is_waited_for(lake: Lake, schema_registry: SchemaRegistry) -> None:
    topic = lake.topic("t")
    lake.produce(topic, as_avro([event("c", 1, {"n": 1}, {"n": INT})], topic, schema_registry))
    config = lake.config(topic) | avro_settings(schema_registry)
    schema_registry.failures += [503] * 12
    task = lake.start(config)
    from connect_py.errors import RetriableError

    with pytest.raises(RetriableError):
        task.step()
    schema_registry.failures.clear()
    lake.drain(task)
    assert json.dumps(lake.rows("t")) == '[{"id": 1, "n": 1}]'


def test_the_driver_converts_as_executors_do(lake: Lake) -> None:
    topic = lake.topic("t")
    config = (
        lake.config(topic)
        | UNWRAP
        | {
            "transforms": "unwrap,drop",
            "transforms.drop.type": "org.apache.kafka.connect.transforms.Filter",
            "transforms.drop.predicate": "gone",
            "predicates": "gone",
            "predicates.gone.type": "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone",
        }
    )
    columns = {"n": INT, "né": TEXT}
    sent = [event("c", number, {"n": number, "né": f"ä漢 {number}"}, columns) for number in range(5)]
    sent += [(sent[0][0], None), (b"no JSON", b"{"), event("u", 2, {"n": None, "né": None}, columns), event("c", 9, {"n": 1}, {"n": INT})]
    lake.produce(topic, sent)
    spark = lake.start(config).spark
    records = lake.context.records({TopicPartition(topic, 0): (0, len(sent))}, 1_000_000)
    assert records is not None
    converted = ConvertedRecords(lake.context.conversion)
    by_executors = converted.rows(frame_of(spark, records, headers=True)).drop("headers")
    by_driver = frame_of_cut(spark, converted.cut(records)).drop("route")
    assert by_driver.dtypes == [(name, by_executors.select(name).dtypes[0][1]) for name in by_driver.columns]
    found = by_driver.orderBy("offset").collect()
    assert found == by_executors.select(*by_driver.columns).orderBy("offset").collect()
    assert [row["offset"] for row in found] == [0, 1, 2, 3, 4, 6, 7, 8]
    assert [row["offset"] for row in found if row["problem"] is not None] == [6]
    assert len({row["vfp"] for row in found}) == 3, "two schemas, and what cannot be read"
