"""ProtobufConverter against what Confluent's own converter wrote, and messages against classes that Google's compiler describes.

`golden/converter_protobuf.jsonl` holds what Confluent's ProtobufConverter (schema-registry 8.5.0) registered, wrote and read back for these
Connect schemas and values, which are told as JsonConverter's envelopes; where it reads only, `registered` and `body` are given.
"""

import base64
import datetime
import decimal
import json
from collections.abc import Iterator
from typing import Any

import pytest

from connect_py.converters.json_converter import JsonConverter
from connect_py.converters.protobuf.converter import ProtobufConverter
from connect_py.converters.protobuf.known import file_of, link, message_class
from connect_py.converters.registry.wire import frame
from connect_py.data import Schema, Struct, Type
from connect_py.data.schema import DATE, INT32, INT64, OPTIONAL_STRING, STRING, array, decimal_schema, map_of, struct
from connect_py.errors import DataError
from tests.fix_registry import SchemaRegistry, descriptor_of
from tests.paths import GOLDEN as RECORDINGS

GOLDEN = [json.loads(line) for line in (RECORDINGS / "converter_protobuf.jsonl").read_text().splitlines()]
_MADE: dict[str, ProtobufConverter] = {}


@pytest.fixture(scope="module")
def shared_registry() -> Iterator[SchemaRegistry]:
    running = SchemaRegistry()
    yield running
    running.stop()


def converter(registry: SchemaRegistry, config: dict[str, str] | None = None) -> ProtobufConverter:
    """One for all tests of the same registry and properties, since each sets up TLS."""
    key = json.dumps([registry.url, config])
    if key not in _MADE:
        _MADE[key] = ProtobufConverter()
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
        assert data[5:].hex() == case["bytes"][10:]
    else:
        data = frame(shared_registry.add(f"{topic}-value", case["registered"], "PROTOBUF")) + bytes.fromhex(case["body"])
    back = envelopes().from_connect_data(topic, *made.to_connect_data(topic, data))
    assert json.loads(back) == json.loads(case["back"])


def test_a_message_reads_in_the_class_that_googles_compiler_makes_of_the_schema(shared_registry):
    inner = struct([("x", INT32)], name="com.acme.Inner")
    fields = [
        ("id", INT64),
        ("name", OPTIONAL_STRING),
        ("tags", array(STRING)),
        ("counts", map_of(STRING, INT32)),
        ("inner", inner),
        ("price", decimal_schema(2)),
        ("day", Schema(Type.INT32, name=DATE, version=1)),
    ]
    schema = struct(fields, name="com.acme.Outer")
    price, day = decimal.Decimal("-2.22"), datetime.date(2024, 2, 29)
    data = converter(shared_registry).from_connect_data(
        "outer", schema, Struct(schema, [2**40, None, ["a", "b"], {"k": 1}, Struct(inner, [7]), price, day])
    )
    text = shared_registry.text_of(int.from_bytes(data[1:5]))
    message = message_class(link(file_of(base64.b64decode(descriptor_of(text)))).message_types_by_name["Outer"]).FromString(data[6:])
    assert (message.id, message.name, list(message.tags), message.inner.x) == (2**40, "", ["a", "b"], 7)
    assert [(entry.key, entry.value) for entry in message.counts] == [("k", 1)]
    assert (int.from_bytes(message.price.value, "big", signed=True), message.price.scale) == (-222, 2)
    assert (message.day.year, message.day.month, message.day.day) == (2024, 2, 29)


def test_an_imported_file_is_linked_and_a_missing_one_is_named():
    made = file_of(base64.b64decode(descriptor_of('syntax = "proto3";\npackage g;\nmessage Point {\n  int32 x = 1;\n}\n')))
    made.name = "point.proto"
    text = 'syntax = "proto3";\npackage g;\nimport "point.proto";\nmessage Line {\n  Point from = 1;\n}\n'
    line = file_of(base64.b64decode(descriptor_of(text.replace('import "point.proto";', "message Point {int32 x = 1;}"))))
    del line.message_type[0]
    line.dependency.append("point.proto")
    linked = link(line, {"point.proto": made})
    assert linked.message_types_by_name["Line"].fields_by_name["from"].message_type.full_name == "g.Point"
    with pytest.raises(DataError, match=r"imports point\.proto, which it does not refer to"):
        link(line)


def test_the_latest_schema_is_written_by_the_names_of_fields(schema_registry):
    latest = 'syntax = "proto3";\npackage com.acme;\nmessage First {bool q = 1;}\nmessage Row {string name = 5; int32 id = 9;}\n'
    schema_registry.add("t-value", latest, "PROTOBUF")
    made = converter(schema_registry, {"auto.register.schemas": "false", "use.latest.version": "true"})
    schema = struct([("id", INT32), ("name", STRING)], name="com.acme.Row")
    data = made.from_connect_data("t", schema, Struct(schema, [7, "x"]))
    assert data[5:].hex() == "0202" + "2a0178" + "4807"
    assert made.to_connect_data("t", data)[1].values == ["x", 7]
    more = struct([("id", INT32), ("extra", STRING)], name="com.acme.Row")
    with pytest.raises(DataError, match=r"Cannot find field with name extra in the Protobuf message com\.acme\.Row"):
        made.from_connect_data("t", more, Struct(more, [7, "x"]))


@pytest.mark.parametrize(
    ("schema", "value", "why"),
    [
        (struct([("a", INT32)], name="A"), [2**31], "not in the range of INT32"),
        (struct([("a", INT32)], name="A"), ["1"], "Invalid type for INT32"),
        (struct([("a", array(array(INT32)))], name="A"), [[]], "array of arrays or maps"),
        (struct([("a", array(OPTIONAL_STRING))], name="A"), [[None]], "cannot have a null in an array"),
    ],
)
def test_what_protobuf_cannot_have_is_refused(shared_registry, schema, value, why):
    with pytest.raises(DataError, match=why):
        converter(shared_registry).from_connect_data("t", schema, Struct(schema, value))


def test_two_unlike_messages_of_one_name_are_refused(shared_registry):
    one, other = struct([("x", INT32)], name="a.Same"), struct([("y", STRING)], name="b.Same")
    schema = struct([("one", one), ("other", other)], name="com.acme.Both")
    with pytest.raises(DataError, match="both be the Protobuf message Same"):
        converter(shared_registry).from_connect_data("t", schema, Struct(schema, [None, None]))


def test_a_message_that_contains_itself_and_bytes_that_are_none_are_refused(shared_registry):
    text = 'syntax = "proto3";\nmessage Node {\n  Node next = 1;\n}\nmessage Leaf {\n  string s = 1;\n}\n'
    start = frame(shared_registry.add("node-value", text, "PROTOBUF"))
    with pytest.raises(DataError, match="Node contains itself"):
        converter(shared_registry).to_connect_data("node", start + b"\0")
    with pytest.raises(DataError, match="no Protobuf message Leaf"):
        converter(shared_registry).to_connect_data("node", start + b"\2\2" + b"\x0a\x05x")
    with pytest.raises(DataError, match=r"no message type with the indexes \[5\]"):
        converter(shared_registry).to_connect_data("node", start + b"\2\x0a")
