"""JsonSchemaConverter against what Confluent's own converter wrote.

`golden/converter_jsonschema.jsonl` holds what Confluent's JsonSchemaConverter (schema-registry 8.5.0) registered, wrote and read back for
these Connect schemas and values, which are told as JsonConverter's envelopes; where it reads only, `registered` and `body` are given.
"""

import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from connect_py.converters.json_converter import JsonConverter
from connect_py.converters.jsonschema.converter import JsonSchemaConverter
from connect_py.converters.registry.wire import frame
from connect_py.data import Schema, Struct, Type
from connect_py.data.schema import INT32, INT64, OPTIONAL_STRING, STRING, array, map_of, struct
from connect_py.errors import DataError
from tests.fix_registry import SchemaRegistry
from tests.paths import GOLDEN as RECORDINGS

GOLDEN = [json.loads(line) for line in (RECORDINGS / "converter_jsonschema.jsonl").read_text().splitlines()]
_MADE: dict[str, JsonSchemaConverter] = {}


@pytest.fixture(scope="module")
def shared_registry() -> Iterator[SchemaRegistry]:
    running = SchemaRegistry()
    yield running
    running.stop()


def converter(registry: SchemaRegistry, config: dict[str, str] | None = None) -> JsonSchemaConverter:
    """One for all tests of the same registry and properties, since each sets up TLS."""
    key = json.dumps([registry.url, config])
    if key not in _MADE:
        _MADE[key] = JsonSchemaConverter()
        _MADE[key].configure({"schema.registry.url": registry.url, "max.retries": "0", **(config or {})}, is_key=False)
    return _MADE[key]


def envelopes() -> JsonConverter:
    made = JsonConverter()
    made.configure({}, is_key=False)
    return made


@pytest.mark.parametrize("case", GOLDEN, ids=range(len(GOLDEN)))
def test_schema_and_bytes_are_those_of_confluents_converter_and_read_back_as_it_reads_them(case: dict[str, Any], shared_registry):
    made, topic = converter(shared_registry, case["config"]), f"t{GOLDEN.index(case)}"
    if "connect" in case:
        data = made.from_connect_data(topic, *envelopes().to_connect_data(topic, case["connect"].encode()))
        if case["bytes"] is None:
            assert data is None
            return
        assert shared_registry.text_of(int.from_bytes(data[1:5])) == case["schema"]
        assert data[5:].decode() == bytes.fromhex(case["bytes"])[5:].decode()
    else:
        data = frame(shared_registry.add(f"{topic}-value", case["registered"], "JSON")) + bytes.fromhex(case["body"])
    back = envelopes().from_connect_data(topic, *made.to_connect_data(topic, data))
    assert json.loads(back) == json.loads(case["back"])


def test_what_is_written_is_valid_by_its_schema(shared_registry):
    inner = struct([("x", INT32)], name="com.acme.Inner", optional=True)
    fields = [("n", OPTIONAL_STRING), ("a", array(INT64)), ("m", map_of(STRING, inner)), ("k", map_of(INT32, STRING)), ("i", inner)]
    schema = struct(fields, name="com.acme.Outer")
    data = converter(shared_registry).from_connect_data(
        "valid", schema, Struct(schema, [None, [1, 2], {"q": Struct(inner, [1]), "r": None}, {5: "five"}, Struct(inner, [7])])
    )
    jsonschema.validate(json.loads(data[5:]), json.loads(shared_registry.text_of(int.from_bytes(data[1:5]))))


def test_a_missing_property_is_null_and_a_null_that_may_not_be_is_refused(shared_registry):
    text = '{"type":"object","properties":{"a":{"type":"string"}}}'
    start = frame(shared_registry.add("missing-value", text, "JSON"))
    assert converter(shared_registry).to_connect_data("missing", start + b"{}")[1].values == [None]
    with pytest.raises(DataError, match="Invalid null value for required STRING field"):
        converter(shared_registry).to_connect_data("missing", start + b'{"a":null}')


def test_a_reference_to_another_subject_is_followed(shared_registry):
    shared_registry.add("address", '{"type":"object","title":"Address","properties":{"street":{"type":"string"}}}', "JSON")
    references = [{"name": "address.json", "subject": "address", "version": 1}]
    text = '{"type":"object","properties":{"home":{"$ref":"address.json"}}}'
    start = frame(shared_registry.add("person-value", text, "JSON", references))
    schema, value = converter(shared_registry).to_connect_data("person", start + b'{"home":{"street":"s"}}')
    assert schema.fields[0].schema.name == "Address"
    assert repr(value) == "Struct{home=Struct{street=s}}"


def test_a_schema_that_contains_itself_is_refused(shared_registry):
    start = frame(shared_registry.add("node-value", '{"type":"object","properties":{"next":{"$ref":"#"}}}', "JSON"))
    with pytest.raises(DataError, match="contains itself"):
        converter(shared_registry).to_connect_data("node", start + b"{}")


def test_a_value_without_a_schema_is_refused(shared_registry):
    with pytest.raises(DataError, match="this one has none"):
        converter(shared_registry).from_connect_data("t", None, {"a": 1})


def test_an_optional_null_is_data_and_a_null_without_a_schema_is_a_tombstone(shared_registry):
    made = converter(shared_registry)
    assert made.from_connect_data("null", None, None) is None
    assert made.from_connect_data("null", Schema(Type.STRING), None) is None
    assert made.from_connect_data("null", OPTIONAL_STRING, None)[5:] == b"null"
