"""Kafka's transforms of fields: hoist, extract, insert, replace, mask, flatten, cast, value to key, schema metadata."""

import datetime
from decimal import Decimal

import pytest

from connect_py.api import SinkRecord, SourceRecord
from connect_py.data import Schema, Struct, Type
from connect_py.data.schema import (
    BYTES,
    DATE,
    FLOAT32,
    FLOAT64,
    INT8,
    INT32,
    INT64,
    OPTIONAL_STRING,
    STRING,
    array,
    decimal_schema,
    map_of,
    struct,
)
from connect_py.errors import ConfigError, DataError
from connect_py.transforms.cast import CastKey, CastValue
from connect_py.transforms.extract_field import ExtractFieldKey, ExtractFieldValue, parse_path
from connect_py.transforms.flatten import FlattenValue
from connect_py.transforms.hoist_field import HoistFieldKey, HoistFieldValue
from connect_py.transforms.insert_field import InsertFieldValue
from connect_py.transforms.mask_field import MaskFieldValue
from connect_py.transforms.replace_field import ReplaceFieldValue
from connect_py.transforms.schema_metadata import SetSchemaMetadataValue
from connect_py.transforms.value_to_key import ValueToKey

ROW = struct([("id", INT32), ("name", OPTIONAL_STRING), ("kind", STRING.with_default("plain"))], name="Row", version=2, doc="a row")


def row(*values):
    return SourceRecord({}, {}, "t", value_schema=ROW, value=Struct(ROW, values))


def plain(value):
    return SourceRecord({}, {}, "t", value=value)


def made(transform, **config):
    one = transform()
    one.configure({name.replace("_", "."): value for name, value in config.items()})
    return one


def fields(schema):
    return [(f.name, f.schema.type, f.schema.optional) for f in schema.fields]


NULL_PASSES = [
    made(CastValue, spec="int8"),
    made(InsertFieldValue, topic_field="t"),
    made(ReplaceFieldValue, exclude="a"),
    made(FlattenValue),
    made(SetSchemaMetadataValue, schema_name="n"),
]


@pytest.mark.parametrize("transform", NULL_PASSES, ids=lambda t: t.java_name)
def test_a_null_without_a_schema_passes(transform):
    tombstone = plain(None)
    assert transform.apply(tombstone) is tombstone


@pytest.mark.parametrize(
    ("transform", "purpose"),
    [(made(MaskFieldValue, fields="a"), "mask fields"), (made(ValueToKey, fields="a"), "copying fields from value to key")],
)
def test_a_null_fails_where_fields_are_required(transform, purpose):
    with pytest.raises(DataError, match=rf"Only Map objects supported in absence of schema for \[{purpose}\], found: null"):
        transform.apply(plain(None))


def test_records_are_never_changed_in_place():
    record = row(1, "a", None)
    before = (record.value.schema, list(record.value.values))
    for transform in (
        made(MaskFieldValue, fields="id,name"),
        made(CastValue, spec="id:string"),
        made(InsertFieldValue, topic_field="t"),
        made(ReplaceFieldValue, renames="id:key"),
        made(SetSchemaMetadataValue, schema_version="9"),
    ):
        assert transform.apply(record) is not record
        assert (record.value.schema, record.value.values) == before


def test_hoist_wraps_with_and_without_a_schema():
    hoist = made(HoistFieldValue, field="line")
    wrapped = hoist.apply(SourceRecord({}, {}, "t", value_schema=STRING, value="x"))
    assert wrapped.value_schema == struct([("line", STRING)])
    assert wrapped.value["line"] == "x"
    assert hoist.apply(plain(None)).value == {"line": None}
    with pytest.raises(DataError, match='Invalid value: null used for required field: "line", schema type: STRING'):
        hoist.apply(SourceRecord({}, {}, "t", value_schema=STRING))
    key = made(HoistFieldKey, field="id").apply(SourceRecord({}, {}, "t", key_schema=INT32, key=4, value="v"))
    assert (key.key["id"], key.value) == (4, "v")


def test_schemas_of_equal_records_are_made_once():
    hoist = made(HoistFieldValue, field="line")
    first, second = (hoist.apply(SourceRecord({}, {}, "t", value_schema=STRING, value=text)) for text in "ab")
    assert first.value_schema is second.value_schema


def test_extract_takes_a_field_or_its_default():
    assert made(ExtractFieldValue, field="kind").apply(row(1, None, None)).value == "plain"
    assert made(ExtractFieldValue, field="kind", replace_null_with_default="false").apply(row(1, None, None)).value is None
    with pytest.raises(DataError, match="Unknown field: none"):
        made(ExtractFieldValue, field="none").apply(row(1, None, None))
    assert made(ExtractFieldValue, field="none").apply(plain({"a": 1})).value is None
    found = made(ExtractFieldKey, field="id").apply(SourceRecord({}, {}, "t", key_schema=ROW))
    assert (found.key_schema, found.key) == (INT32, None)
    with pytest.raises(DataError, match=r"Only Struct objects supported for \[field extraction\], found: java.lang.String"):
        made(ExtractFieldValue, field="a").apply(SourceRecord({}, {}, "t", value_schema=STRING, value="x"))


def nested(transform):
    transform.configure({"field": "`a.b`.c", "field.syntax.version": "v2"})
    return transform


def test_extract_follows_paths_of_version_2():
    inner = struct([("c", INT32)], optional=True)
    outer = struct([("a.b", inner)])
    record = SourceRecord({}, {}, "t", value_schema=outer, value=Struct(outer, [Struct(inner, [5])]))
    assert nested(ExtractFieldValue()).apply(record).value == 5
    assert nested(ExtractFieldValue()).apply(SourceRecord({}, {}, "t", value_schema=outer, value=Struct(outer, [None]))).value is None
    assert nested(ExtractFieldValue()).apply(plain({"a.b": {"c": 6}})).value == 6


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("a", ["a"]),
        ("a.b", ["a", "b"]),
        ("`a.b`.c", ["a.b", "c"]),
        ("a.`b.c`", ["a", "b.c"]),
        ("`a`b`.c", ["a`b", "c"]),
        (r"`a\`.b`.c", ["a`.b", "c"]),
        ("a.", ["a", ""]),
        ("", [""]),
    ],
)
def test_paths(path, steps):
    assert parse_path(path) == steps


def test_an_open_backtick_is_refused():
    with pytest.raises(ConfigError, match=r"Incomplete backtick pair in path: \[a.`b\], .* at position 2 to escape it"):
        parse_path("a.`b")


def test_insert_adds_fields_in_kafkas_order():
    insert = made(
        InsertFieldValue, static_field="s", static_value="x", topic_field="t!", offset_field="o?", partition_field="p", timestamp_field="at"
    )
    record = SinkRecord("topic", 3, 44, value_schema=ROW, value=Struct(ROW, [1, None, None]), timestamp=1000)
    changed = insert.apply(record)
    assert fields(changed.value_schema)[3:] == [
        ("t", Type.STRING, False),
        ("p", Type.INT32, True),
        ("o", Type.INT64, True),
        ("at", Type.INT64, True),
        ("s", Type.STRING, True),
    ]
    assert (changed.value_schema.name, changed.value_schema.version, changed.value_schema.doc) == ("Row", 2, "a row")
    assert changed.value.values == [1, None, "plain", "topic", 3, 44, datetime.datetime(1970, 1, 1, 0, 0, 1, tzinfo=datetime.UTC), "x"]
    assert insert.apply(SinkRecord("topic", 3, 44, value={"a": 1}, timestamp=1000)).value == {
        "a": 1,
        "t": "topic",
        "p": 3,
        "o": 44,
        "at": 1000,
        "s": "x",
    }


def test_insert_leaves_out_what_the_record_does_not_have():
    changed = made(InsertFieldValue, partition_field="p", timestamp_field="at", topic_field="t").apply(plain({}))
    assert changed.value == {"t": "t"}
    with pytest.raises(
        DataError, match=r"Only SinkRecord supported for \[field insertion\], found: org.apache.kafka.connect.source.SourceRecord"
    ):
        made(InsertFieldValue, offset_field="o").apply(plain({}))
    with pytest.raises(DataError, match="field name duplication id"):
        made(InsertFieldValue, topic_field="id").apply(row(1, None, None))


@pytest.mark.parametrize(
    ("transform", "config", "message"),
    [
        (InsertFieldValue, {}, "No field insertion configured"),
        (
            InsertFieldValue,
            {"static.field": "a"},
            "Invalid value null for configuration static.value: No value specified for static field: a",
        ),
        (SetSchemaMetadataValue, {}, "Neither schema name nor version configured"),
        (CastValue, {"spec": ""}, "Must specify at least one field to cast."),
        (CastValue, {"spec": "a:bytes"}, "does not support casting to BYTES; supported types are .INT8, INT16, INT32"),
        (CastValue, {"spec": "int8,a:int16"}, "may only specify a single cast in their spec"),
        (CastValue, {"spec": "a:b:c"}, r"Invalid value \[a:b:c\] for configuration renames: Invalid rename mapping: a:b:c"),
        (ReplaceFieldValue, {"renames": "a"}, r"Invalid value \[a\] for configuration renames: Invalid rename mapping: a"),
        (ReplaceFieldValue, {"exclude": "a,a"}, "Configuration 'exclude' values must not be duplicated."),
        (MaskFieldValue, {"fields": ""}, "Configuration 'fields' must not be empty. Valid values include: any non-empty value"),
        (MaskFieldValue, {"fields": "a", "replacement": ""}, "Invalid value  for configuration replacement: String must be non-empty"),
        (ValueToKey, {"fields": "a,,b"}, "Configuration 'fields' values must not be empty."),
        (HoistFieldValue, {}, 'Missing required configuration "field" which has no default value.'),
    ],
)
def test_wrong_configurations_are_refused(transform, config, message):
    with pytest.raises(ConfigError, match=message):
        transform().configure(config)


def test_replace_filters_by_old_names_then_renames():
    changed = made(ReplaceFieldValue, include="id,name", exclude="name", renames="id:key,name:id").apply(row(1, "a", "b"))
    assert fields(changed.value_schema) == [("key", Type.INT32, False)]
    assert changed.value.values == [1]
    swapped = made(ReplaceFieldValue, renames="id:name,name:id").apply(row(1, "a", "b"))
    assert (swapped.value["name"], swapped.value["id"]) == (1, "a")
    assert made(ReplaceFieldValue, exclude="a", renames="b:c").apply(plain({"a": 1, "b": 2})).value == {"c": 2}


@pytest.mark.parametrize(
    ("schema", "value", "masked"),
    [
        (INT8, 5, 0),
        (FLOAT64, 1.5, 0.0),
        (Schema(Type.BOOLEAN), True, False),
        (STRING, "x", ""),
        (decimal_schema(2), Decimal("1.50"), Decimal(0)),
        (Schema(Type.INT32, name=DATE), datetime.date(2024, 1, 1), datetime.date(1970, 1, 1)),
        (array(STRING), ["a"], []),
        (map_of(STRING, STRING), {"a": "b"}, {}),
    ],
)
def test_masks_are_the_empty_values_of_each_type(schema, value, masked):
    holder = struct([("f", schema)])
    found = made(MaskFieldValue, fields="f").apply(SourceRecord({}, {}, "t", value_schema=holder, value=Struct(holder, [value]))).value["f"]
    assert found == masked
    assert type(found) is type(masked)


def test_masks_with_a_replacement_take_the_type_of_the_field():
    holder = struct([("a", STRING), ("b", INT8), ("c", FLOAT32), ("d", decimal_schema(2))])
    record = SourceRecord({}, {}, "t", value_schema=holder, value=Struct(holder, ["x", 1, 1.0, Decimal("1.00")]))
    assert made(MaskFieldValue, fields="a,b,c,d", replacement="300.5").apply(record).value.values == ["300.5", 44, 300.5, Decimal("300.5")]
    with pytest.raises(DataError, match=r"Unable to convert no \(class java.lang.String\) to a number"):
        made(MaskFieldValue, fields="b", replacement="no").apply(record)
    with pytest.raises(DataError, match=r"Cannot mask value of type class java.lang.Boolean with custom replacement."):
        made(MaskFieldValue, fields="a", replacement="1").apply(plain({"a": True}))
    assert made(MaskFieldValue, fields="a,b").apply(plain({"a": 7})).value == {"a": 0, "b": None}
    with pytest.raises(DataError, match=r"Cannot mask value of type: class \[B"):
        made(MaskFieldValue, fields="a").apply(plain({"a": b"x"}))


def test_flatten_makes_what_lies_below_something_optional_optional():
    inner = struct([("c", INT32), ("d", array(STRING))], optional=True)
    outer = struct([("a", INT32), ("b", inner)], name="Outer")
    flatten = made(FlattenValue, delimiter="_")
    full = flatten.apply(SourceRecord({}, {}, "t", value_schema=outer, value=Struct(outer, [1, Struct(inner, [2, ["x"]])])))
    assert fields(full.value_schema) == [("a", Type.INT32, False), ("b_c", Type.INT32, True), ("b_d", Type.ARRAY, True)]
    assert full.value.values == [1, 2, ["x"]]
    assert full.value_schema.name == "Outer"
    assert flatten.apply(SourceRecord({}, {}, "t", value_schema=outer, value=Struct(outer, [1]))).value.values == [1, None, None]
    assert flatten.apply(plain({"a": {"b": {"c": 1}}, "d": [1]})).value == {"a_b_c": 1, "d": [1]}
    mapped = struct([("a", struct([("m", map_of(STRING, STRING))]))])
    with pytest.raises(DataError, match=r"does not support MAP for record with schemas \(for field a_m\)"):
        flatten.apply(SourceRecord({}, {}, "t", value_schema=mapped, value=Struct(mapped)))


@pytest.mark.parametrize(
    ("schema", "value", "target", "expected"),
    [
        (INT64, 300, "int8", 44),
        (INT64, -129, "int8", 127),
        (FLOAT64, 1e20, "int32", 2**31 - 1),
        (FLOAT64, 1e20, "int8", -1),
        (FLOAT64, float("nan"), "int64", 0),
        (FLOAT64, -1.9, "int16", -1),
        (decimal_schema(2), Decimal("12.99"), "int32", 12),
        (STRING, "+7", "int8", 7),
        (STRING, " 1.5e3f ", "float64", 1500.0),
        (STRING, "0.1", "float32", 0.10000000149011612),
        (FLOAT64, 1e300, "float32", float("inf")),
        (FLOAT64, 0.9, "boolean", False),
        (INT8, 2, "boolean", True),
        (STRING, "TRUE", "boolean", True),
        (STRING, "1", "boolean", False),
        (Schema(Type.BOOLEAN), True, "int64", 1),
        (Schema(Type.BOOLEAN), True, "string", "true"),
        (FLOAT32, 0.10000000149011612, "string", "0.1"),
        (FLOAT64, 1e10, "string", "1.0E10"),
        (decimal_schema(2), Decimal("12.90"), "string", "12.90"),
        (BYTES, b"\0\1", "string", "AAE="),
        (Schema(Type.INT32, name=DATE), datetime.date(2024, 5, 17), "string", "2024-05-17"),
        (Schema(Type.INT32, name=DATE), datetime.date(1970, 1, 3), "int64", 2),
    ],
)
def test_casts_convert_as_java_does(schema, value, target, expected):
    changed = made(CastValue, spec=target).apply(SourceRecord({}, {}, "t", value_schema=schema, value=value))
    assert changed.value == expected
    assert type(changed.value) is type(expected)


@pytest.mark.parametrize(
    ("value", "target", "message"),
    [
        ("one", "int32", r"Value \(one\) was out of range for requested data type"),
        ("128", "int8", r"Value \(128\) was out of range for requested data type"),
        ("1.0", "int8", r"out of range"),
        (b"x", "int8", r"Unexpected type in Cast transformation: class \[B"),
        ([1], "string", r"does not support casting from ARRAY; supported types are \[INT8, .*, STRING, BYTES\]"),
    ],
)
def test_casts_that_cannot_be_made_say_so(value, target, message):
    with pytest.raises(DataError, match=message):
        made(CastValue, spec=target).apply(plain(value))


def test_casts_of_fields_keep_whether_they_are_optional_and_their_defaults():
    source = struct([("n", STRING.with_default("5")), ("o", OPTIONAL_STRING), ("left", STRING)], name="Row")
    changed = made(CastValue, spec="n:int32, o:int8").apply(
        SourceRecord({}, {}, "t", value_schema=source, value=Struct(source, [None, "3", "x"]))
    )
    assert changed.value_schema == struct(
        [("n", INT32.with_default(5)), ("o", Schema(Type.INT8, optional=True)), ("left", STRING)], name="Row"
    )
    assert changed.value.values == [5, 3, "x"]
    assert made(CastValue, spec="a:string,b:int8").apply(plain({"a": 1, "c": 2})).value == {"a": "1", "b": None, "c": 2}
    key = made(CastKey, spec="string").apply(SourceRecord({}, {}, "t", key_schema=INT64, key=5))
    assert (key.key_schema, key.key) == (STRING, "5")


def test_value_to_key_copies_fields():
    changed = made(ValueToKey, fields="kind,id").apply(row(1, "a", None))
    assert fields(changed.key_schema) == [("kind", Type.STRING, False), ("id", Type.INT32, False)]
    assert changed.key.values == ["plain", 1]
    assert made(ValueToKey, fields="a,b").apply(plain({"a": 1})).key == {"a": 1, "b": None}
    with pytest.raises(DataError, match="Field does not exist: none"):
        made(ValueToKey, fields="none").apply(row(1, None, None))


def test_schema_metadata_is_set_on_schema_and_struct():
    changed = made(SetSchemaMetadataValue, schema_name="org.example.Row", schema_version="7").apply(row(1, None, None))
    assert (changed.value_schema.name, changed.value_schema.version, changed.value_schema.doc) == ("org.example.Row", 7, "a row")
    assert changed.value.schema is changed.value_schema
    with pytest.raises(DataError, match=r"Schema required for \[updating schema metadata\]"):
        made(SetSchemaMetadataValue, schema_name="n").apply(plain("x"))
