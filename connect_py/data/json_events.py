"""Take apart change events that a connector serialised, without parsing them.

A value is ``{"before":…,"after":…,"source":{…},"transaction":…,"op":…}`` (`connectors.engine.envelope`), JSON without a schema. A text
inside of it has its quotes escaped, so the bytes ``,"source":{"version":`` are never a part of one. They begin the source block, since
nothing behind it has such a field; rows may, and stand before it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from connect_py.data import Schema, Type
from connect_py.data.json_rows import NULL, NeedsRecord, field_pattern, is_plain, label

_NO_BEFORE = b'{"before":null,"after":'
_BEFORE = b'{"before":'
_AFTER = b',"after":'
_FIELDS = ("before", "after", "source")
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}]', re.DOTALL)


class Event(NamedTuple):
    """A change event in parts, each JSON text.

    Attributes:
        before, after: None where there is no such row.
        rest: from the comma before the source block to the end.
    """

    before: bytes | None
    after: bytes | None
    rest: bytes


def event_reader(envelope: Schema) -> Callable[[bytes], Event]:
    """Return a function that takes events of a schema apart. It raises NeedsRecord for a value that is no such event.

    Raises:
        NeedsRecord: events of the schema look otherwise.
    """
    if tuple(field.name for field in envelope.fields[:3]) != _FIELDS:
        raise NeedsRecord("Not an event of a table")
    row, source = envelope.fields[1].schema, envelope.fields[2].schema
    if row.type is not Type.STRUCT or source.type is not Type.STRUCT or not source.fields:
        raise NeedsRecord("Not an event of a table")
    mark = b',"source":{' + label(source.fields[0].name)
    end_of_before = _end_by_depth if _may_hold(row, "after") else _end_by_name
    first = len(_NO_BEFORE)

    def read(value: bytes) -> Event:
        at = value.rindex(mark)
        if value.startswith(_NO_BEFORE):
            before, after = None, value[first:at]
        else:
            end = end_of_before(value, at)
            before, after = value[len(_BEFORE) : end], value[end + len(_AFTER) : at]
        return Event(before, None if after == NULL else after, value[at:])

    return read


def _end_by_name(value: bytes, end: int) -> int:
    return value.index(_AFTER, len(_BEFORE), end)


def _end_by_depth(value: bytes, end: int) -> int:
    """Count braces: a column, or a key of a map in one, may be called `after`."""
    depth = 0
    for token in _TOKEN.finditer(value, len(_BEFORE), end):
        depth += {b"{": 1, b"}": -1}.get(token[0], 0)
        if not depth:
            return token.end()
    raise NeedsRecord("An event's row before has no end")


def _may_hold(schema: Schema, name: str) -> bool:
    """Return whether a key of that name can be anywhere in values of the schema."""
    if schema.type is Type.MAP:
        return True
    parts = [field.schema for field in schema.fields] + ([schema.value_schema] if schema.value_schema is not None else [])
    return any(field.name == name for field in schema.fields) or any(_may_hold(part, name) for part in parts)


def rest_reader(envelope: Schema, wanted: Sequence[tuple[str | None, str]]) -> Callable[[bytes], list[bytes]]:
    """Return a function of `Event.rest` that finds fields in it.

    Args:
        wanted: pairs of a block (None for the envelope itself) and a field of it.

    Returns:
        A function that returns JSON texts in the order of `wanted`, ``null`` for a field of a block that is null, and raises NeedsRecord
        for what is no such rest.

    Raises:
        NeedsRecord: such rests hold more than blocks of plain values, or not all that is wanted.
    """
    parts, places = [], []
    for field in envelope.fields[2:]:
        inside, block = ([field], None) if is_plain(field.schema) else (field.schema.fields, field.name)
        if not inside or not all(is_plain(inner.schema) for inner in inside):
            raise NeedsRecord(f"The field {field.name} is no block of plain values")
        places += [(block, inner.name) for inner in inside if (block, inner.name) in wanted]
        pattern = b",".join(field_pattern(inner, wanted=(block, inner.name) in wanted) for inner in inside)
        parts.append(b"," + (pattern if block is None else rb"%b(?:null|\{%b\})" % (re.escape(label(block)), pattern)))
    if not set(wanted) <= set(places):
        raise NeedsRecord("A wanted field is not there")
    order = [places.index(place) + 1 for place in wanted]
    match = re.compile(b"".join(parts) + rb"\}", re.DOTALL).fullmatch

    def read(rest: bytes) -> list[bytes]:
        found = match(rest)
        if found is None:
            raise NeedsRecord("What follows an event's rows is not what its schema says")
        return [found[group] or NULL for group in order]

    return read
