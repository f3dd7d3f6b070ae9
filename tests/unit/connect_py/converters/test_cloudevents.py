"""CloudEvents, byte for byte as `io.debezium.converters.CloudEventsConverter` 3.6.1 wrote them.

`golden/cloudevents.json.gz` holds records that Debezium's PostgreSQL and MySQL connectors wrote (and three of MongoDB's form) with their
headers, and what the reference's converter made of each with two dozen configurations.
"""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from connect_py.converters.avro.converter import AvroConverter
from connect_py.converters.cloudevents.converter import CloudEventsConverter
from connect_py.converters.json_converter import JsonConverter
from connect_py.data import INT64, STRING, Schema, Struct
from connect_py.data.schema import array, struct
from connect_py.errors import ConfigError, DataError
from tests.fix_registry import SchemaRegistry
from tests.paths import GOLDEN as RECORDINGS

GOLDEN = json.loads(gzip.decompress((RECORDINGS / "cloudevents.json.gz").read_bytes()))
RUNS = [run for run in GOLDEN["runs"] if "results" in run]
REFUSED = [run for run in GOLDEN["runs"] if "refused" in run]

#: Here, what has no description in Debezium's installed connectors, or ends in a NullPointerException there, is otherwise decided.
MARIADB = 'No usable CloudEvents converters for connector type "mariadb"'


def read(record: dict[str, Any]) -> tuple[Schema | None, Any, list[tuple[str, bytes | None]]]:
    reader = JsonConverter()
    schema, value = reader.to_connect_data("t", None if record["value"] is None else record["value"].encode())
    return schema, value, [(name, None if text is None else text.encode()) for name, text in record["headers"]]


def configured(config: dict[str, str]) -> CloudEventsConverter:
    made = CloudEventsConverter()
    made.configure(config, is_key=False)
    return made


@pytest.mark.parametrize("run", RUNS, ids=lambda run: json.dumps(run["config"]))
def test_every_record_becomes_the_bytes_or_the_error_of_the_reference(run: dict[str, Any]) -> None:
    converter = configured(run["config"])
    for record, expected in zip(GOLDEN["records"], run["results"], strict=True):
        schema, value, headers = read(record)
        error = expected.get("error", "")
        if error.endswith(MARIADB):
            continue
        if error.startswith("java.lang.NullPointerException"):  # a value whose schema has no name
            assert converter.from_connect_data_with_headers(record["topic"], headers, schema, value) is None
        elif error:
            with pytest.raises(DataError) as raised:
                converter.from_connect_data_with_headers(record["topic"], headers, schema, value)
            assert f"{raised.value.java_name}: {raised.value}" == error
        else:
            written = converter.from_connect_data_with_headers(record["topic"], headers, schema, value)
            assert (None if written is None else written.decode()) == expected["bytes"]


@pytest.mark.parametrize("run", RUNS, ids=lambda run: json.dumps(run["config"]))
def test_what_was_written_is_read_back_as_the_reference_reads_it(run: dict[str, Any]) -> None:
    converter, plain = configured(run["config"]), JsonConverter()
    plain.configure({"schemas.enable": "false"})
    for expected in run["results"]:
        if expected.get("bytes") is None:
            continue
        schema, value = converter.to_connect_data("t", expected["bytes"].encode())
        assert schema is None
        data = value["data"]
        if run["config"].get("json.schemas.enable", "true") == "true":
            assert isinstance(data, Struct)
            assert data.schema.fields[0].name == "before"
        elif "back" in expected:
            assert json.loads(plain.from_connect_data("t", None, value) or b"") == json.loads(expected["back"])


@pytest.mark.parametrize("run", REFUSED, ids=lambda run: json.dumps(run["config"]))
def test_configurations_that_the_reference_refuses_are_refused(run: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as raised:
        configured(run["config"])
    said = run["refused"].partition(": ")[2]
    if run["refused"].startswith(("org.apache.kafka", "java.lang.IllegalState")) and run["config"] != {"serializer.type": "xml"}:
        assert str(raised.value) == said


SOURCE = struct([("connector", STRING), ("name", STRING), ("ts_ms", INT64), ("db", STRING), ("file", STRING), ("pos", INT64)])


def record(connector: str, **more: Any) -> tuple[Schema, Struct]:
    row = struct([("id", INT64)], optional=True, name="t.Value")
    schema = struct([("before", row), ("after", row), ("source", SOURCE), ("op", STRING)], name="s.t.Envelope")
    source = Struct(SOURCE, [connector, "s", 1_000, "d", "f", 4])
    for name, value in more.items():
        source[name] = value
    return schema, Struct(schema, [None, Struct(row, [7]), source, "c"])


def test_events_of_mariadb_have_the_whole_envelope_as_data() -> None:
    written = json.loads(configured({"json.schemas.enable": "false"}).from_connect_data("t", *record("mariadb")) or b"")
    assert written["id"] == "name:s;file:f;pos:4"
    assert written["time"] == "1970-01-01T00:00:01.000Z"
    assert written["data"].keys() == {"before", "after", "source", "op"}


def test_a_source_field_that_no_attribute_can_hold_is_an_error_of_the_record() -> None:
    schema, value = record("mysql")
    source = struct([*((f.name, f.schema) for f in SOURCE.fields), ("more", array(STRING))])
    changed = struct([(f.name, source if f.name == "source" else f.schema) for f in schema.fields], name=schema.name)
    made = Struct(changed, [None, value["after"], Struct(source, [*value["source"].values, ["x"]]), "c"])
    with pytest.raises(DataError, match="Source field of type ARRAY cannot be converted"):
        configured({}).from_connect_data("t", changed, made)


@pytest.mark.parametrize(
    "data",
    [None, b"{}", b'{"id":"1","source":"/","type":"t"}', b"[1]", b'{"id":"1","source":"/","type":"t","specversion":"1.0"}'],
)
def test_what_is_no_cloud_event_is_refused(data: bytes | None) -> None:
    with pytest.raises(DataError, match="CloudEvent"):
        configured({}).to_connect_data("t", data)


def test_data_without_a_schema_are_refused_where_schemas_are_enabled() -> None:
    with pytest.raises(DataError, match=r"json\.schemas\.enable=false"):
        configured({}).to_connect_data("t", b'{"id":"1","source":"/","type":"t","specversion":"1.0","data":{"a":1}}')


def test_avro_data_in_json_and_in_avro_are_read_back(schema_registry: SchemaRegistry) -> None:
    url = {"avro.schema.registry.url": schema_registry.url}
    schema, value = record("mysql")
    in_json = configured({"data.serializer.type": "avro", **url})
    written = in_json.from_connect_data("topic", schema, value) or b""
    event = json.loads(written)
    assert event["datacontenttype"] == "application/avro"
    assert event["dataschema"] == f"{schema_registry.url}/schemas/ids/1"
    _, back = in_json.to_connect_data("topic", written)
    assert back["data"]["after"]["id"] == 7

    in_avro = configured({"serializer.type": "avro", "data.serializer.type": "avro", **url})
    read_schema, read_back = in_avro.to_connect_data("topic", in_avro.from_connect_data("topic", schema, value))
    assert read_schema is not None
    assert read_schema.name == "s.d.CloudEvents.Envelope"
    assert read_back["data"]["after"]["id"] == 7
    assert read_back["iodebeziumpos"] == "4"
    assert {"topic-value", "topic-data-value"} <= schema_registry.subjects.keys()
    plain = AvroConverter()
    plain.configure({"schema.registry.url": schema_registry.url}, is_key=False)
    with pytest.raises(DataError, match="not a CloudEvent"):
        in_avro.to_connect_data("topic", plain.from_connect_data("other", schema, value))


def test_json_data_that_are_not_base64_are_refused_where_avro_is_expected(schema_registry: SchemaRegistry) -> None:
    made = configured({"data.serializer.type": "avro", "avro.schema.registry.url": schema_registry.url})
    with pytest.raises(DataError, match="base64"):
        made.to_connect_data("t", b'{"id":"1","source":"/","type":"t","specversion":"1.0","data":"{"}')
