"""Change events as writes (`sink/eventhandler/relational/*.java`), and Connect's values as BSON's (`sink/converters/*.java`). Pure.

A row is kept under its key: `_id` is the document of the key's columns, which the rest of the document leaves out. An event of MongoDB's
own connector has the document itself, which is kept under its own `_id`; the reference refuses those events.

Structs, maps, JSON texts and BSON bytes become documents. The driver writes a Python int in 32 or in 64 bits by its size; a column's type
decides here, as in the reference.
"""

from __future__ import annotations

import datetime
import decimal
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import bson
from bson import Binary, Decimal128, Int64, ObjectId, json_util
from bson.binary import UuidRepresentation
from bson.codec_options import CodecOptions, DatetimeConversion
from bson.errors import BSONError

from connect_py.api import SinkRecord
from connect_py.data import Schema, Struct, Type
from connect_py.data.schema import DATE, DECIMAL, TIME, TIMESTAMP
from connect_py.errors import DataError

Document = dict[str, Any]

_JSON = json_util.JSONOptions(
    uuid_representation=UuidRepresentation.UNSPECIFIED, datetime_conversion=DatetimeConversion.DATETIME_MS, tz_aware=False
)
_CODEC: CodecOptions[Document] = CodecOptions(datetime_conversion=DatetimeConversion.DATETIME_MS)
_EPOCH = datetime.date(1970, 1, 1)
_UTC = datetime.UTC


def document_of(schema: Schema | None, value: Any, what: str) -> Document:
    """Return a whole key or value as a document; `what` names it in messages. Raises DataError: it is none."""
    if isinstance(value, Struct):
        return {field.name: bson_value(field.schema, value[field.name]) for field in value.schema.fields}
    if isinstance(value, dict):
        return {str(name): plain_value(item) for name, item in value.items()}
    if isinstance(value, str):
        return parse_json(value)
    if isinstance(value, bytes):
        try:
            return bson.decode(value, _CODEC)
        except BSONError as error:
            raise DataError(f"Could not convert {what} into a BsonDocument: {error}") from error
    raise DataError(f"Could not convert {what} into a BsonDocument: No converter found for unexpected object type: {type(value).__name__}")


def parse_json(text: str) -> Document:
    """Return a document of extended JSON in any of its forms. Raises DataError: it is none."""
    found = parse_json_value(text)
    if not isinstance(found, dict):
        raise DataError("Could not convert a JSON text into a BsonDocument: it holds no document")
    return found


def parse_json_value(text: str) -> Any:
    """Return a value of extended JSON. Raises DataError: it is none."""
    try:
        return json_util.loads(text, json_options=_JSON)
    except (ValueError, TypeError, KeyError, ArithmeticError, BSONError, RecursionError) as error:
        raise DataError(f"Could not convert a JSON text into a BsonDocument: {error}") from error


def bson_value(schema: Schema, value: Any) -> Any:
    """Return a value by its schema. Raises DataError: there is no BSON for it."""
    if value is None:
        return schema.default if schema.default is None else bson_value(schema, schema.default)
    convert = _LOGICAL.get(schema.name or "") or _BY_TYPE.get(schema.type)
    if convert is not None:
        return convert(value)
    if schema.type is Type.STRUCT:
        return document_of(schema, value, "a struct")
    element = schema.value_schema
    assert element is not None, "arrays and maps have one"
    if schema.type is Type.ARRAY:
        return [bson_value(element, item) for item in value]
    return {str(name): bson_value(element, item) for name, item in value.items()}


def plain_value(value: Any) -> Any:
    """Return a value without a schema: JSON's own types, whose numbers have 64 bits."""
    if isinstance(value, dict):
        return {str(name): plain_value(item) for name, item in value.items()}
    if isinstance(value, list):
        return [plain_value(item) for item in value]
    return _int64(value) if type(value) is int else value


def _int64(value: int) -> Int64:
    if not -(2**63) <= value < 2**63:
        raise DataError(f"{value} has more than the 64 bits of a BSON number")
    return Int64(value)


def _decimal(value: decimal.Decimal) -> Decimal128:
    try:
        with decimal.localcontext(decimal.Context(prec=34, Emin=-6143, Emax=6144, traps=[decimal.Inexact, decimal.InvalidOperation])):
            return Decimal128(value)
    except (ArithmeticError, ValueError) as error:
        raise DataError(f"{value} has more than the 34 digits of a BSON decimal") from error


def _time(value: datetime.time) -> datetime.datetime:
    return datetime.datetime.combine(_EPOCH, value, _UTC)


def _date(value: datetime.date) -> datetime.datetime:
    return datetime.datetime(value.year, value.month, value.day, tzinfo=_UTC)


_LOGICAL: Mapping[str, Callable[[Any], Any]] = {DECIMAL: _decimal, DATE: _date, TIME: _time, TIMESTAMP: lambda value: value}
_BY_TYPE: Mapping[Type, Callable[[Any], Any]] = {
    **dict.fromkeys((Type.INT8, Type.INT16, Type.INT32), int),
    Type.INT64: _int64,
    **dict.fromkeys((Type.FLOAT32, Type.FLOAT64), float),
    Type.BOOLEAN: bool,
    Type.STRING: str,
    Type.BYTES: lambda value: Binary(value, 0),
}


_UPSERTS = ("c", "r", "u")


@dataclass(frozen=True, slots=True)
class Replace:
    """Replace the document that the filter finds, or insert one."""

    filter: Document
    document: Document


@dataclass(frozen=True, slots=True)
class Update:
    """Change fields of the document that the filter finds: operators of an update command."""

    filter: Document
    changes: Document


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete the document that the filter finds."""

    filter: Document


@dataclass(frozen=True, slots=True)
class Truncate:
    """Delete all documents."""


Write = Replace | Update | Delete | Truncate


def writes_of(record: SinkRecord) -> list[Write]:
    """Return what a record asks for, in order; nothing for tombstones and for events about schemas.

    Raises:
        DataError: it is no change event, or one without what its operation needs.
    """
    if record.value is None:
        return []
    event = _Event(record)
    if event.is_empty:
        return []
    if not event.has("op") and event.has("ddl"):
        return []
    operation = event.member("op")
    if not isinstance(operation, str):
        raise DataError("Value document is missing or CDC operation is not a string")
    if operation == "t":
        return [Truncate()]
    if operation not in (*_UPSERTS, "d"):
        raise DataError(f"No CDC operation found in mapping for op={operation}")
    return _document_writes(event, operation) if event.has("updateDescription") else [_row_write(event, operation)]


class _Event:
    """A record's key and value, with or without schemas; parts are converted when they are asked for."""

    def __init__(self, record: SinkRecord) -> None:
        self.record = record
        value = record.value
        self._value: Any = value if isinstance(value, (Struct, dict)) else document_of(record.value_schema, value, "the value")

    @property
    def is_empty(self) -> bool:
        return not (self._value.schema.fields if isinstance(self._value, Struct) else self._value)

    def has(self, name: str) -> bool:
        if isinstance(self._value, Struct):
            return self._value.schema.field(name) is not None
        return name in self._value

    def member(self, name: str) -> Any:
        """Return a part of the value as BSON, None where it is missing."""
        if not self.has(name):
            return None
        if isinstance(self._value, Struct):
            return bson_value(self._value.schema.fields[self._value.schema.index_of(name)].schema, self._value[name])
        return plain_value(self._value[name]) if isinstance(self.record.value, dict) else self._value[name]

    def key(self) -> Document:
        """Return the key, empty where there is none."""
        record = self.record
        return {} if record.key is None else document_of(record.key_schema, record.key, "the key")


def _row_write(event: _Event, operation: str) -> Write:
    key = event.key()
    if key:
        found: Document = {"_id": key}
    elif operation in ("c", "r"):
        found = {"_id": _own_id(event.record)}
    else:
        before = event.member("before")
        if not isinstance(before, dict) or not before:
            raise DataError(
                "Value doc 'before' field is empty or has invalid type for update/delete operation.  -> defensive actions taken!"
            )
        found = before
    if operation == "d":
        return Delete(found)
    after = event.member("after")
    if not isinstance(after, dict) or not after:
        raise DataError("Value document must contain non-empty 'after' field of type document for insert/update operation")
    kept = {name: value for name, value in after.items() if name not in key}
    return Replace(found, {"_id": found["_id"], **kept} if "_id" in found else kept)


def _document_writes(event: _Event, operation: str) -> list[Write]:
    """Return the writes of an event of MongoDB's connector."""
    key = event.key()
    if not isinstance(key.get("id"), str):
        raise DataError("The key of an event of MongoDB must have the text id, which holds the document's _id")
    found = {"_id": parse_json_value(key["id"])}
    if operation == "d":
        return [Delete(found)]
    after = event.member("after")
    if isinstance(after, str):
        document = parse_json(after)
        # the document's own _id has the exact type, where the key's text does not distinguish 32 from 64 bits
        own = {"_id": document["_id"]} if "_id" in document else found
        return [Replace(own, {**own, **document})]
    description = event.member("updateDescription")
    if description is None:
        raise DataError("An event of MongoDB has neither a document nor a description of its update")
    return _partial(found, description)


def _partial(found: Document, description: Document) -> list[Write]:
    """Return changes of an event without the document. Arrays are cut first: the server refuses two changes of one path in one update."""
    cuts = {
        cut["field"]: {"$each": [], "$slice": int(cut["size"])}
        for cut in description.get("truncatedArrays") or ()
        if isinstance(cut.get("field"), str)
    }
    updated = description.get("updatedFields")
    sets = parse_json(updated) if isinstance(updated, str) else {}
    removed = dict.fromkeys(description.get("removedFields") or (), "")
    changes = {name: part for name, part in (("$set", sets), ("$unset", removed)) if part}
    writes = [Update(found, {"$push": cuts})] if cuts else []
    return [*writes, Update(found, changes)] if changes else list(writes)


def _own_id(record: SinkRecord) -> ObjectId:
    """Return an `_id` for a row without a key: made of the record's offset, so that a record delivered twice is one document."""
    source = f"{record.topic}\0{record.partition}\0{record.offset}".encode()
    return ObjectId(hashlib.sha256(source).digest()[:12])
