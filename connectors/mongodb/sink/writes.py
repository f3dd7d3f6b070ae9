"""Change events as writes (`sink/eventhandler/relational/*.java`). Pure.

A row is kept under its key: `_id` is the document of the key's columns, which the rest of the document leaves out. An event of MongoDB's
own connector has the document itself, which is kept under its own `_id`; the reference refuses those events.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from bson import ObjectId

from connect_py.api import SinkRecord
from connect_py.data import Struct
from connect_py.errors import DataError
from connectors.mongodb.sink.documents import Document, bson_value, document_of, parse_json, parse_json_value, plain_value

_UPSERTS = ("c", "r", "u")


@dataclass(frozen=True, slots=True)
class Replace:
    """Put a document in the place of the one that the filter finds, or insert it."""

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
    """What a record asks for, in order; nothing for tombstones and for events about schemas.

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
        """A part of the value as BSON, None where it is missing."""
        if not self.has(name):
            return None
        if isinstance(self._value, Struct):
            return bson_value(self._value.schema.fields[self._value.schema.index_of(name)].schema, self._value[name])
        return plain_value(self._value[name]) if isinstance(self.record.value, dict) else self._value[name]

    def key(self) -> Document:
        """The key, empty where there is none."""
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
    """Of an event of MongoDB's connector."""
    key = event.key()
    if not isinstance(key.get("id"), str):
        raise DataError("The key of an event of MongoDB must have the text id, which holds the document's _id")
    found = {"_id": parse_json_value(key["id"])}
    if operation == "d":
        return [Delete(found)]
    after = event.member("after")
    if isinstance(after, str):
        document = parse_json(after)
        # the document's own _id has the exact type, where the key's text does not tell 32 from 64 bits
        own = {"_id": document["_id"]} if "_id" in document else found
        return [Replace(own, {**own, **document})]
    description = event.member("updateDescription")
    if description is None:
        raise DataError("An event of MongoDB has neither a document nor a description of its update")
    return _partial(found, description)


def _partial(found: Document, description: Document) -> list[Write]:
    """Changes without the document. Arrays are cut first: the server takes no two changes of one path in one update."""
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
    """An `_id` for a row without a key: made of the record's place, so that a record delivered twice is one document."""
    place = f"{record.topic}\0{record.partition}\0{record.offset}".encode()
    return ObjectId(hashlib.sha256(place).digest()[:12])
