"""ExtractNewRecordState: change events as plain rows."""

import pytest

from connect_py.api import Header, SourceRecord
from connect_py.data import Field, Schema, Struct, Type
from connect_py.data.schema import INT32, INT64, OPTIONAL_INT64, OPTIONAL_STRING, STRING, array, struct
from connect_py.errors import ConfigError, DataError
from connect_py.transforms.extract_new_record_state import ExtractNewRecordState, parse_references

ROW = struct([("id", INT32), ("name", OPTIONAL_STRING), ("kind", STRING.with_default("plain"))], name="t.Value", optional=True)
SOURCE = struct([("table", STRING), ("ts_ms", INT64)])
TRANSACTION = struct([("id", STRING)], optional=True)
ENVELOPE = struct(
    [("before", ROW), ("after", ROW), ("source", SOURCE), ("transaction", TRANSACTION), ("op", STRING), ("ts_ms", OPTIONAL_INT64)],
    name="t.Envelope",
)
KEY = struct([("id", INT32), ("name", OPTIONAL_STRING)])


def made(**config):
    one = ExtractNewRecordState()
    one.configure({name.replace("_", "."): value for name, value in config.items()})
    return one


def event(op, before=None, after=None, headers=()):
    rows = [row and Struct(ROW, row) for row in (before, after)]
    value = Struct(ENVELOPE, [*rows, Struct(SOURCE, ["people", 5]), None, op, 7])
    return SourceRecord({}, {}, "t", KEY, Struct(KEY, [1, "k"]), ENVELOPE, value, headers=list(headers))


TOMBSTONE = SourceRecord({}, {}, "t", KEY, Struct(KEY, [1, "k"]))
DELETE = event("d", before=[1, "old", None])


def test_a_change_becomes_its_row():
    changed = made().apply(event("c", after=[1, "new", None]))
    assert changed.value_schema == Schema(Type.STRUCT, name="t.Value", fields=ROW.fields)
    assert changed.value.values == [1, "new", None]


@pytest.mark.parametrize(
    ("mode", "left", "tombstone_stays"),
    [
        ("drop", "nothing", False),
        ("tombstone", (ROW, None), False),
        ("delete-to-tombstone", (None, None), False),
        ("rewrite", "row", False),
        ("REWRITE-with-tombstone", "row", True),
    ],
)
def test_what_is_left_of_a_delete(mode, left, tombstone_stays):
    unwrap = made(delete_tombstone_handling_mode=mode)
    changed = unwrap.apply(DELETE)
    if left == "nothing":
        assert changed is None
    elif left == "row":
        assert changed.value.values == [1, "old", "plain", "true"]
        assert changed.value_schema.fields[3] == Field("__deleted", OPTIONAL_STRING)
        assert unwrap.apply(event("u", after=[1, "new", "x"])).value["__deleted"] == "false"
    else:
        assert (changed.value_schema, changed.value) == left
    assert (unwrap.apply(TOMBSTONE) is not None) == tombstone_stays


def test_rewriting_can_leave_nulls_that_have_a_default():
    unwrap = made(delete_tombstone_handling_mode="rewrite", replace_null_with_default="false")
    assert unwrap.apply(DELETE).value.values == [1, "old", None, "true"]


def test_a_truncate_and_an_unknown_row_are_dropped():
    assert made(delete_tombstone_handling_mode="rewrite").apply(event("t")) is None


def test_what_is_no_change_event_passes():
    heartbeat = SourceRecord({}, {}, "h", value_schema=SOURCE, value=Struct(SOURCE, ["x", 1]))
    assert made(add_headers="op").apply(heartbeat) is heartbeat


def test_fields_of_the_envelope_are_added_as_optional_ones():
    unwrap = made(add_fields="op,source.ts_ms:at,table,id,none,before", add_fields_prefix="_")
    changed = unwrap.apply(event("c", after=[1, "new", None]))
    assert [f.name for f in changed.value_schema.fields[3:]] == ["_op", "_at", "_table", "_id", "_before"]
    assert all(f.schema.optional for f in changed.value_schema.fields[3:])
    assert changed.value.values[3:] == ["c", 5, "people", None, None]
    assert unwrap.added_fields == {"_op", "_at", "_table", "_id", "_none", "_before"}
    assert made(delete_tombstone_handling_mode="rewrite").added_fields == {"__deleted"}


def test_headers_are_added_to_events_and_tombstones():
    unwrap = made(add_headers="op,source.table", delete_tombstone_handling_mode="rewrite-with-tombstone")
    changed = unwrap.apply(event("c", after=[1, "new", None], headers=[Header("own", 1)]))
    assert [(h.name, h.value) for h in changed.headers] == [("own", 1), ("__op", "c"), ("__source_table", "people")]
    assert [(h.name, h.value) for h in unwrap.apply(TOMBSTONE).headers] == [("__op", "d")]
    assert TOMBSTONE.headers == []


def test_a_field_can_name_the_topic():
    unwrap = made(route_by_field="name")
    assert unwrap.apply(event("c", after=[1, "new", None])).topic == "new"
    assert unwrap.apply(DELETE).topic == "old"
    assert unwrap.apply(event("c", after=[1, None, None])).topic == "t"
    with pytest.raises(DataError, match="none is not a valid field name"):
        made(route_by_field="none").apply(DELETE)
    with pytest.raises(DataError, match="Field 'id' is not of type STRING"):
        made(route_by_field="id").apply(DELETE)


@pytest.mark.parametrize(
    ("config", "value_fields", "key_fields"),
    [
        ({}, ["id", "kind"], ["id", "name"]),
        ({"drop_fields_from_key": "true"}, ["id", "kind"], ["id"]),
        ({"drop_fields_keep_schema_compatible": "false"}, ["id"], ["id", "name"]),
    ],
)
def test_fields_that_a_header_names_are_dropped(config, value_fields, key_fields):
    unwrap = made(drop_fields_header_name="gone", **config)
    record = event("c", after=[1, "new", None], headers=[Header("gone", ["name", "kind"], array(STRING))])
    changed = unwrap.apply(record)
    assert [f.name for f in changed.value_schema.fields] == value_fields
    assert [f.name for f in changed.key_schema.fields] == key_fields


def test_wrong_configurations_are_refused():
    with pytest.raises(ConfigError, match="Value must be one of drop, tombstone, rewrite-with-tombstone, rewrite, delete-to-tombstone"):
        made(delete_tombstone_handling_mode="x")
    with pytest.raises(ConfigError, match="Unexpected field name: a:b:c"):
        parse_references("__", ["a:b:c"])
