"""What the schemas of a record say: which form it has, its key and its columns. Pure; parsed once for each distinct pair of schemas.

Forms are recognised in this order: Debezium's envelope (`op` with `after` and `source`); a flattened record (`__op` or `__deleted`, as
`ExtractNewRecordState` makes it); a plain record, which is an upsert by its key.

In MongoDB's own change events a row is a document: one JSON text, and its id. The id is text, since the ids of one collection can have
several types. An ObjectId is its 24 digits and a text is itself; everything else, and a text that looks like something else, is MongoDB's
extended JSON, as Debezium writes it, so different ids never become the same text.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from connect_py.errors import DataError
from spark_sink.types.columns import ColumnType, SchemaJson, TypeOptions, column_name, column_type, literal, logical_type

#: Schemas of records that describe the stream and are not rows (names as Debezium 3.6 writes them).
NOT_ROWS = re.compile(
    r"io\.debezium\.connector\.\w+\.(Heartbeat|TransactionMetadataValue|SchemaChangeValue|MessageValue|Notification)|io\.debezium\.notification\..*"
)


#: Spark's analyzer goes down an expression by recursion: with 4.1.3 and its default stack values 32 deep were read, and 100 overflowed it.
MAX_DEPTH = 32


#: Fields of Debezium's source blocks, of all of its connectors.
_OF_SOURCE = (
    *("version", "connector", "name", "ts_ms", "ts_us", "ts_ns", "snapshot", "db", "sequence", "schema", "table", "collection"),
    *("txId", "lsn", "xmin", "origin", "origin_lsn"),
    *("server_id", "gtid", "file", "pos", "row", "thread", "query"),
    *("ord", "lsid", "txnNumber", "wallTime", "rs"),
    *("change_lsn", "commit_lsn", "event_serial_no"),
    *("scn", "commit_scn", "lcr_position", "rs_id", "ssn", "redo_thread", "user_name", "redo_sql", "row_id"),
    *("start_scn", "start_ts_ms", "commit_ts_ms", "txSeq", "tx_id", "keyspace", "shard", "vgtid", "cluster"),
)
_OF_TRANSACTION = ("id", "total_order", "data_collection_order")

#: What `ExtractNewRecordState` can add to a row by its `add.fields` and its default prefix, and `__deleted`. Everything else is the row's
#: own: Mongoose, for one, has a field `__v` in each document.
_ADDED = frozenset(
    f"__{name}"
    for name in (
        *("op", "deleted", *_OF_SOURCE, *_OF_TRANSACTION),
        *(f"source_{name}" for name in _OF_SOURCE),
        *(f"transaction_{name}" for name in _OF_TRANSACTION),
    )
)


def is_added(field: str) -> bool:
    """Return whether a field of a flattened record is about the event, not of the row."""
    return field in _ADDED


class Form(enum.Enum):
    """The form of a record's value."""

    ENVELOPE = "envelope"
    FLAT = "flat"
    TOMBSTONE = "tombstone"
    IGNORED = "ignored"


@dataclass(frozen=True)
class Column:
    """One column of a row and the field that it comes from, of the record's key or of its value.

    Attributes:
        default: the schema's default, as SQL of the type that is read, if it has one and that is a single value.
    """

    name: str
    field: str
    type: ColumnType
    required: bool = False
    comment: str | None = None
    of_key: bool = False
    default: str | None = dataclasses.field(default=None, compare=False)


@dataclass(frozen=True)
class RecordSchema:
    """What a pair of key and value schemas means.

    Attributes:
        keys: columns that identify a row: the record key's, unless others were chosen; empty when there are none.
        columns: of the row, keys included, in the order of the schema.
        source_fields: fields of the source block, empty without one.
        extras: fields that the value has in addition to the row: ts_ms, __op, __deleted …
        untyped: ``key`` and ``value`` where these have no schema, so that a batch's records decide their columns (`read.schemaless`).
        document: whether an envelope's row is one JSON text, as MongoDB's connector writes it.
        operation: of a flattened record, the path of the field that says what happened; empty for Debezium's own (`__op`).
    """

    form: Form
    keys: tuple[Column, ...] = ()
    columns: tuple[Column, ...] = ()
    source_fields: frozenset[str] = frozenset()
    extras: frozenset[str] = frozenset()
    untyped: frozenset[str] = frozenset()
    document: bool = False
    operation: tuple[str, ...] = ()

    @property
    def of_key(self) -> tuple[Column, ...]:
        """Columns that are read from the record's key."""
        return tuple(column for column in self.columns if column.of_key)

    @property
    def has_whole_keys(self) -> bool:
        """Whether the record's key is sufficient to find the row of a delete."""
        return bool(self.keys) and all(column.of_key for column in self.keys)


def parse_head(head: str | None) -> SchemaJson | None:
    """Parse the schema of a record's text up to its payload, ``{"schema":…``; None for no key, a tombstone or a null schema.

    Raises:
        DataError: the text is not the beginning of JSON with a schema.
    """
    if head is None:
        return None
    try:
        schema = json.loads(head + "}")["schema"]
    except RecursionError:
        raise _too_deep() from None
    except (ValueError, KeyError, TypeError):
        raise DataError(f"the text is not JSON that begins with a schema: {head[:60]}…") from None
    if schema is None:
        return None
    _check_schema(schema, 0)
    return dict(schema)


def _check_schema(schema: object, depth: int) -> None:
    """Check that a schema has all parts, of the kinds that JsonConverter writes. Raise DataError if not."""
    if depth > MAX_DEPTH:
        raise _too_deep()
    if not isinstance(schema, dict) or not isinstance(schema.get("type"), str):
        raise DataError(f"a schema is not an object with a type: {str(schema)[:60]}")
    for name, kind in (("name", str), ("doc", str), ("parameters", dict)):
        if not isinstance(schema.get(name), kind | None):
            raise DataError(f"the {name} of a schema is {schema[name]!r:.60}")
    for name in _PARTS.get(schema["type"], ()):
        _check_schema(schema.get(name), depth + 1)
    if schema["type"] == "struct":
        if not isinstance(fields := schema.get("fields"), list):
            raise DataError("the schema of a struct has no list of fields")
        for field in fields:
            _check_schema(field, depth + 1)
            if not isinstance(field.get("field"), str) or not field["field"]:
                raise DataError(f"a field of a struct has no name: {field.get('field')!r:.60}")


def _too_deep() -> DataError:
    return DataError(f"the schema is nested more than {MAX_DEPTH} deep")


#: The other schemas of schemas of types with parts.
_PARTS = {"array": ("items",), "map": ("keys", "values")}


def read_schemas(key: SchemaJson | None, value: SchemaJson | None, *, tombstone: bool, options: TypeOptions) -> RecordSchema:
    """Return what a pair of schemas means.

    Args:
        tombstone: the record's value is null (not its payload: the whole value).

    Raises:
        DataError: records like these cannot become rows; the text says why.
    """
    keys = _columns(key, options) if key is not None and key.get("type") == "struct" else ()
    keys = tuple(replace(column, of_key=True) for column in keys)
    if tombstone:
        return RecordSchema(Form.TOMBSTONE, keys, keys)
    if value is None:
        raise DataError("the value has no schema")
    if value.get("type") != "struct":
        raise DataError(f"the value is {value.get('type')}, not a struct, so it has no columns")
    if NOT_ROWS.fullmatch(str(value.get("name"))):
        return RecordSchema(Form.IGNORED)
    fields: dict[str, Any] = {field["field"]: field for field in value["fields"]}
    if {"op", "after", "source"} <= fields.keys():
        if fields["source"]["type"] != "struct":
            raise DataError(f"the event's source is {fields['source']['type']}, not a struct")
        source = frozenset(field["field"] for field in fields["source"]["fields"])
        if has_documents(fields):
            if "id" not in {column.field for column in keys}:
                raise DataError("the event is of a document, and its key has no id")
            of_document = Column(DOCUMENT_ID, "id", document_id_type(), required=True, of_key=True)
            row = (of_document, Column(DOCUMENT, "after", document_type(options)))
            return RecordSchema(Form.ENVELOPE, row[:1], row, source, frozenset(fields), document=True)
        if "patch" in fields or "updateDescription" in fields:
            raise DataError("events of MongoDB with partial updates cannot be applied; capture full documents")
        columns = _columns(fields["after"], options)
        return RecordSchema(Form.ENVELOPE, keys, _with_keys(keys, columns), source, frozenset(fields))
    extras = frozenset(filter(is_added, fields))
    if key is not None and not keys:
        raise DataError(f"the key is {key.get('type')}, not a struct, so the columns of the key have no names")
    columns = tuple(column for column in _columns(value, options) if column.field not in extras)
    return RecordSchema(Form.FLAT, keys, _with_keys(keys, columns), frozenset(), extras)


def _with_keys(keys: tuple[Column, ...], columns: tuple[Column, ...]) -> tuple[Column, ...]:
    """Return the row's columns, with the record key's in place of the row's own: deletes have these too, and they win where both differ."""
    by_name = {column.name: column for column in keys}
    names = {column.name for column in columns}
    return tuple(by_name.get(column.name, column) for column in columns) + tuple(key for key in keys if key.name not in names)


def _columns(schema: SchemaJson, options: TypeOptions) -> tuple[Column, ...]:
    if schema["type"] != "struct":
        raise DataError(f"the row is {schema['type']}, not a struct, so it has no columns")
    found: list[Column] = []
    for field in schema["fields"]:
        name = field["field"]
        try:
            type_ = column_type(field, options)
        except DataError as error:
            raise DataError(f"column {name}: {error}") from None
        default = _default_sql(field.get("default"), type_.read)
        found.append(Column(column_name(name), name, type_, not field.get("optional", False), field.get("doc"), default=default))
    folded = [column.name.lower() for column in found]
    if twice := sorted({name for name in folded if folded.count(name) > 1}):
        raise DataError(f"columns that differ in case only cannot be told apart: {', '.join(twice)}")
    return tuple(found)


def _default_sql(value: object, read: str) -> str | None:
    match value:
        case bool():
            return str(value).lower() if read == "boolean" else None
        case int() if -(2**63) < value < 2**63:
            return str(value) if read in _NUMBERS else None
        case float() if math.isfinite(value):
            return f"{value}D" if read in _NUMBERS else None
        case str():
            return literal(value) if read == "string" else f"try_to_binary({literal(value)}, 'base64')" if read == "binary" else None
        case _:
            return None


_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double")


DOCUMENT_ID = "_id"
DOCUMENT = "document"

_OBJECT_ID = r'^\{ ?"\$oid" ?: ?"([0-9a-f]{24})" ?\}$'

#: Texts that would be taken for an ObjectId, or for JSON of something else.
_LOOKS_OTHERWISE = r'(?s)^([0-9a-f]{24}|true|false|null|[-0-9{\["].*|)$'


def has_documents(fields: Mapping[str, Any]) -> bool:
    """Return whether an envelope of these fields holds documents."""
    return "collection" in {field["field"] for field in fields["source"].get("fields", ())} and fields["after"].get("type") == "string"


def document_id_type() -> ColumnType:
    """Return the type of a key's `id`."""

    def convert(value: str) -> str:
        text = f"get_json_object(concat('{{\"id\":', {value}, '}}'), '$.id')"
        is_text = f"startswith({value}, '\"') AND NOT {text} RLIKE {literal(_LOOKS_OTHERWISE)}"
        object_id = f"regexp_extract({value}, {literal(_OBJECT_ID)}, 1)"
        return f"CASE WHEN {is_text} THEN {text} WHEN {object_id} <> '' THEN {object_id} ELSE {value} END"

    return ColumnType("string", "string", convert)


def document_type(options: TypeOptions) -> ColumnType:
    """Return the type of a document."""
    found = logical_type("io.debezium.data.Json", options)
    assert found is not None
    return found
