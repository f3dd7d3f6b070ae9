"""Bring records of a topic and rows of its source into one plain form, whichever converter has written the records. Pure.

A row of the source is put into the form that the connector's converter gives it: by `JsonConverter` itself, so that decimals, dates and
defaults look as in the topic; for other converters, whose writing would register schemas, by the values of Connect's types. A record is
known by its content: a change event in Debezium's envelope, a row that a transform has taken out of one, or a tombstone.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from connect_py.app.verify.layout import NotComparableError
from connect_py.app.verify.normal import of_decimal, of_float
from connect_py.app.verify.source import SourceRow, text_of_id
from connect_py.converters.json_converter import JsonConverter
from connect_py.converters.json_read import parse_json
from connect_py.data import Schema, Struct, Type
from connect_py.plugins.registry import Plugins
from connect_py.task.chain import converter, converter_owner, with_prefix

_JSON = JsonConverter.java_name

#: Fields by name.
Row = Mapping[str, Any]

#: Bytes of a column's digest in a state; a row of eight columns then takes 64.
_WIDTH = 8
#: In place of a digest: nobody knows the value.
UNKNOWN = bytes(_WIDTH)
#: In place of a digest: the value is that of the record before.
UNSENT = b"\xff" * _WIDTH

_EPOCH = datetime.datetime(1970, 1, 1)


class Said(NamedTuple):
    """What a record says.

    Attributes:
        key: None where the record has none.
        row: after the change; None: there is no row any more, or it is not known.
        is_known: whether the record says which row there is now.
        is_truncate: whether all rows are gone.
    """

    key: Row | None
    row: Row | None
    is_known: bool = True
    is_truncate: bool = False


def said_by(key: Any, value: Any, *, is_document: bool) -> Said | None:
    """Return what a record says; None: nothing about rows, as a message of PostgreSQL's log.

    Args:
        key, value: in plain form.
        is_document: whether rows are MongoDB's documents as texts, by `_id`.

    Raises:
        NotComparableError: the key or the value is no struct.
    """
    found = key if isinstance(key, Mapping) else None
    if found is None and key is not None:
        raise NotComparableError("the keys of its records are no structs")
    if is_document and found is not None and found.keys() == {"id"}:
        found = {"_id": text_of_id(str(found["id"]))}
    if value is None:
        return Said(found, None)
    if not isinstance(value, Mapping):
        raise NotComparableError("the values of its records are no structs")
    if not {"op", "after", "source"} <= value.keys():
        return Said(found, None if value.get("__deleted") in (True, "true") else value)
    if value["op"] == "m":
        return None
    if value["op"] == "t":
        return Said(None, None, is_truncate=True)
    after = value["after"]
    if after is None:
        return Said(found, None, is_known=value["op"] == "d")
    return Said(found, {"document": after} if isinstance(after, str) else after)


class Form:
    """Reads records by a connector's converters, and rows of its source as these would write them.

    Args:
        worker: the worker's properties, whose converters apply where the connector names none; where nobody names one, it is JSON with or
            without schemas.

    Raises:
        ConfigError: a converter is not installed, or cannot be configured.
    """

    def __init__(self, plugins: Plugins, worker: Mapping[str, str], config: Mapping[str, str]) -> None:
        self.read_key, self._write_key = _both_ways(plugins, worker, config, "key.converter")
        self.read_value, self._write_value = _both_ways(plugins, worker, config, "value.converter")

    def key(self, row: SourceRow) -> Row:
        """Return the key of a row. Raises NotComparableError: it has none."""
        if row.key is None:
            raise NotComparableError("its records have no key that is a struct")
        return self._write_key(row.topic, row.key)

    def row(self, row: SourceRow) -> Row:
        """Return the row."""
        return self._write_value(row.topic, row.row)


_Read = Callable[[str, bytes | None], Any]
_Write = Callable[[str, Struct], Row]


def _both_ways(plugins: Plugins, worker: Mapping[str, str], config: Mapping[str, str], name: str) -> tuple[_Read, _Write]:
    owner = converter_owner(worker, config, name)
    if not owner.get(name):
        owner = {**{key: value for key, value in owner.items() if key.startswith(name)}, name: _JSON}
    if plugins.resolve(owner[name].strip()) == _JSON:
        return _json(owner, name)
    made = converter(plugins, {}, owner, name)
    # whether Avro writes a default in the place of a null
    fills = owner.get(f"{name}.ignore.default.for.nullables", "false").strip().lower() != "true"

    def read(topic: str, data: bytes | None) -> Any:
        if data is None:
            return None
        schema, value = made.to_connect_data(topic, data)
        return _plain(schema, value, fills=False)

    return read, lambda _, struct: {
        field.name: _plain(field.schema, value, fills=fills) for field, value in zip(struct.schema.fields, struct.values, strict=True)
    }


def _json(owner: Mapping[str, str], name: str) -> tuple[_Read, _Write]:
    writer = JsonConverter()
    writer.configure({**with_prefix(owner, f"{name}."), "schemas.enable": "false"}, is_key=name.startswith("key"))
    exact = writer.numeric_decimals
    # a worker that is known by its address alone may have either form
    has_schemas = owner.get(f"{name}.schemas.enable", "true").strip().lower() == "true"

    def read(_topic: str, data: bytes | None) -> Any:
        found = None if data is None else parse_json(data, exact=exact)
        return found["payload"] if has_schemas and isinstance(found, dict) and found.keys() == {"schema", "payload"} else found

    def write(topic: str, struct: Struct) -> Row:
        found: Row = parse_json(writer.from_connect_data(topic, struct.schema, struct) or b"null", exact=exact)
        return found

    return read, write


def _plain(schema: Schema | None, value: Any, *, fills: bool) -> Any:
    """Return Connect's data as plain values; with `fills`, a default in the place of a null."""
    if value is None:
        return _plain(schema, schema.default, fills=False) if fills and schema is not None and schema.default is not None else None
    if isinstance(value, Struct):
        pairs = zip(value.schema.fields, value.values, strict=True)
        return {field.name: _plain(field.schema, entry, fills=fills) for field, entry in pairs}
    item = schema.value_schema if schema is not None else None
    if isinstance(value, Mapping):
        return {str(name): _plain(item, entry, fills=fills) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, entry, fills=fills) for entry in value]
    if isinstance(value, float):
        return of_float(value, single=schema is not None and schema.type is Type.FLOAT32)
    return _moment(value)


def _moment(value: Any) -> Any:
    if isinstance(value, datetime.datetime):
        return (value.replace(tzinfo=None) - _EPOCH) // datetime.timedelta(microseconds=1)
    if isinstance(value, datetime.date):
        return value.toordinal()
    if isinstance(value, datetime.time):
        return value.isoformat()
    return bytes(value) if isinstance(value, bytearray | memoryview) else value


# -- digests ---------------------------------------------------------------------------------------------------------------------------


def key_values(key: Row) -> tuple[Any, ...]:
    """Return a key's values in the order of their names: of numbers and texts those that a lakehouse table's rows are known by, too."""
    return tuple([_hashable(key[name]) for name in sorted(key)])


class States:
    """Makes digests of rows, one for each column, so that a value that was not sent can be that of the record before.

    Args:
        names: the compared columns; None: rows have different ones, so all are compared as one.
        unavailable: `unavailable.value.placeholder`, which stands for a value that was not sent; None: there is none.
    """

    def __init__(self, names: Sequence[str] | None, unavailable: str | None) -> None:
        self.names = None if names is None else tuple(names)
        self.unknown = UNKNOWN * (1 if names is None else len(names))
        self._unsent = frozenset[str]() if unavailable is None else _forms(unavailable)
        self._octets = b"" if unavailable is None else _octets(unavailable)

    def of(self, row: Row) -> bytes:
        """Return the state of a row; a column that it lacks is null."""
        if self.names is None:
            return _short(tuple(sorted((name, _hashable(value)) for name, value in row.items() if value is not None)))
        return b"".join([self._of_value(row.get(name)) for name in self.names])

    def _of_value(self, value: Any) -> bytes:
        if self._unsent and self._is_unsent(value):
            return UNSENT
        return _short(_hashable(value))

    def _is_unsent(self, value: Any) -> bool:
        if isinstance(value, str):
            return value in self._unsent
        if isinstance(value, list):
            return (len(value) == 1 and self._is_unsent(value[0])) or value == [b - 256 if b > 127 else b for b in self._octets]
        if isinstance(value, bytes):
            return value == self._octets
        return isinstance(value, Mapping) and len(value) == 1 and all(k in self._unsent and v in self._unsent for k, v in value.items())


def _octets(placeholder: str) -> bytes:
    return bytes.fromhex(placeholder[4:]) if placeholder.startswith("hex:") else placeholder.encode()


def _forms(placeholder: str) -> frozenset[str]:
    """Return the texts that stand for an unsent text, binary, map or (in an array) UUID."""
    octets = _octets(placeholder)
    named = uuid.UUID(bytes=hashlib.md5(octets, usedforsecurity=False).digest(), version=3)
    pair = json.dumps({placeholder: placeholder}, separators=(",", ":"), ensure_ascii=False)
    return frozenset({placeholder, base64.b64encode(octets).decode(), pair, str(named)})


def _short(value: Any) -> bytes:
    found = hashlib.blake2b(repr(value).encode("utf-8", "surrogatepass"), digest_size=_WIDTH).digest()
    return found if found not in (UNKNOWN, UNSENT) else b"\x01" * _WIDTH


def _hashable(value: Any) -> Any:
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, Mapping):
        return tuple(sorted((name, _hashable(entry)) for name, entry in value.items()))
    if isinstance(value, list | tuple):
        return tuple([_hashable(entry) for entry in value])
    return of_decimal(value) if isinstance(value, Decimal) else of_float(value) if isinstance(value, float) else value


def filled(state: bytes, before: bytes | None) -> bytes:
    """Return a state whose unsent values are those of the state before, unknown where that has none."""
    if UNSENT not in state:
        return state
    parts = []
    for at in range(0, len(state), _WIDTH):
        part = state[at : at + _WIDTH]
        if part == UNSENT:
            part = UNKNOWN if before is None or len(before) != len(state) else before[at : at + _WIDTH]
        parts.append(part)
    return b"".join(parts)


def is_same(state: bytes | None, other: bytes | None) -> bool:
    """Return whether two states stand for one row, as far as it is known; None for no row."""
    if state is None or other is None or len(state) != len(other):
        return state is other
    if state == other:
        return True
    places = range(0, len(state), _WIDTH)
    pairs = ((state[at : at + _WIDTH], other[at : at + _WIDTH]) for at in places)
    return all(part == theirs or UNKNOWN in (part, theirs) for part, theirs in pairs)


def has_unknown(state: bytes) -> bool:
    """Return whether any value of a state is not known."""
    return any(state[at : at + _WIDTH] == UNKNOWN for at in range(0, len(state), _WIDTH))
