"""Change rows that a connector serialised: objects of JSON without a schema, as its schema says and without spaces."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from connect_py.data import Field, Schema, Type

#: What a null that has a schema is.
NULL = b"null"

_TEXT = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
#: Bytes of a text, number, boolean or null, as a pattern.
PLAIN_VALUE = rb'(?:%b|[^,{}\[\]"]++)' % _TEXT
#: What `json_write.quote` leaves as it is.
_UNESCAPED = re.compile(r'[^\x00-\x1f"\\\ud800-\udfff\U00010000-\U0010ffff]*')


class NeedsRecord(ValueError):
    """What becomes of a row, or of all rows of a route, can only be told, or refused, with the record that it stands for."""


def is_plain(schema: Schema) -> bool:
    """Return whether values of the schema are `PLAIN_VALUE`s."""
    return schema.type not in (Type.STRUCT, Type.MAP, Type.ARRAY)


def label(name: str) -> bytes:
    """Return what stands before a field's value. Raises NeedsRecord for a name that needs an escape."""
    return b"%b:" % quoted(name)


def quoted(text: str) -> bytes:
    """Return a text of JSON. Raises NeedsRecord for one that needs an escape."""
    if not _UNESCAPED.fullmatch(text):
        raise NeedsRecord(f"{text!r} needs an escape")
    return b'"%b"' % text.encode()


def field_pattern(field: Field, *, wanted: bool) -> bytes:
    """Return a pattern of a field, its value in a group if it is wanted.

    Raises:
        NeedsRecord: its name, or one within its value, needs an escape, or it holds a map whose keys are no texts.
    """
    value = _value_pattern(field.schema)
    return re.escape(label(field.name)) + (b"(%b)" % value if wanted else value)


def _value_pattern(schema: Schema) -> bytes:
    if is_plain(schema):
        return PLAIN_VALUE
    if schema.type is Type.STRUCT:
        return rb"(?:null|\{%b\})" % b",".join([field_pattern(field, wanted=False) for field in schema.fields])
    if schema.value_schema is None:
        raise NeedsRecord("Values without a schema")
    item = _value_pattern(schema.value_schema)
    if schema.type is Type.ARRAY:
        return rb"(?:null|\[(?:%b(?:,%b)*+)?+\])" % (item, item)
    if schema.key_schema is None or schema.key_schema.type is not Type.STRING:
        raise NeedsRecord("A map whose keys are no texts")
    entry = b"%b:%b" % (_TEXT, item)
    return rb"(?:null|\{(?:%b(?:,%b)*+)?+\})" % (entry, entry)


def fields_reader(schema: Schema, wanted: Sequence[int]) -> Callable[[bytes], tuple[bytes, ...]]:
    """Return a function that finds values of an object.

    Args:
        wanted: positions of fields, in any order.

    Returns:
        A function that returns their JSON texts in the order of `wanted`. It raises NeedsRecord for what is no object of the schema.

    Raises:
        NeedsRecord: none is wanted, or as of `field_pattern`.
    """
    if not wanted:
        raise NeedsRecord("No field is wanted")
    fields = [field_pattern(field, wanted=index in wanted) for index, field in enumerate(schema.fields)]
    match = re.compile(rb"\{%b\}" % b",".join(fields), re.DOTALL).fullmatch
    groups = {index: number for number, index in enumerate(sorted(set(wanted)), 1)}
    order = [groups[index] for index in wanted]

    def read(row: bytes) -> tuple[bytes, ...]:
        found = match(row)
        if found is None:
            raise NeedsRecord("A row is not what its schema says")
        return (found[order[0]],) if len(order) == 1 else found.group(*order)

    return read


def leaves_reader(schema: Schema) -> Callable[[bytes], tuple[bytes | None, ...]]:
    """Return a function that finds the values of an object and of the objects in it; arrays and maps are values.

    Returns:
        A function that returns their JSON texts in order, None for each that would be in an object that is null. It raises NeedsRecord for
        what is no object of the schema.

    Raises:
        NeedsRecord: as of `field_pattern`, or an object that is null would show as a default.
    """
    match = re.compile(_leaves_pattern(schema), re.DOTALL).fullmatch

    def read(row: bytes) -> tuple[bytes | None, ...]:
        found = match(row)
        if found is None:
            raise NeedsRecord("A row is not what its schema says")
        return found.groups()

    return read


def _leaves_pattern(schema: Schema) -> bytes:
    if schema.default is not None:
        raise NeedsRecord("An object has a default")
    parts = []
    for field in schema.fields:
        below = field.schema
        if below.type is Type.STRUCT:
            inner = _leaves_pattern(below)
            parts.append(re.escape(label(field.name)) + (b"(?:null|%b)" % inner if below.optional else inner))
        else:
            parts.append(field_pattern(field, wanted=True))
    return rb"\{%b\}" % b",".join(parts)


def fields_changer(schema: Schema, changes: Mapping[int, Callable[[bytes], bytes]]) -> Callable[[bytes], bytes]:
    """Return a function that changes values of an object, and leaves the rest of it as it is.

    Args:
        changes: position of a field to a function of its value's JSON text.

    Returns:
        A function that raises NeedsRecord for what is no object of the schema, and what the changes raise.

    Raises:
        NeedsRecord: as of `field_pattern`, of a field up to the last that is changed.
    """
    if not changes:
        return lambda row: row
    fields = schema.fields[: max(changes) + 1]
    patterns = [field_pattern(field, wanted=index in changes) for index, field in enumerate(fields)]
    match = re.compile(rb"\{%b" % b",".join(patterns), re.DOTALL).match
    numbered = [(number, changes[index]) for number, index in enumerate(sorted(changes), 1)]

    def change(row: bytes) -> bytes:
        found = match(row)
        if found is None:
            raise NeedsRecord("A row is not what its schema says")
        parts: list[bytes] = []
        end = 0
        for number, convert in numbered:
            at = found.start(number)
            parts += (row[end:at], convert(found[number]))
            end = found.end(number)
        parts.append(row[end:])
        return b"".join(parts)

    return change


def object_of(names: Sequence[str]) -> bytes:
    """Return a template for `%` of an object with fields of these names. Raises NeedsRecord for a name that needs an escape."""
    return b"{%b}" % b",".join(label(name).replace(b"%", b"%%") + b"%b" for name in names)


def adder(
    constant: Sequence[bytes], names: Sequence[str], read: Callable[[bytes], Sequence[bytes]], *, is_first: bool
) -> Callable[[bytes, bytes], bytes]:
    """Return a function of a row and the rest of its event that adds fields to the row.

    Args:
        constant: fields that all rows get, each with its label.
        names: of further fields.
        read: finds their JSON texts in the rest.
        is_first: whether rows have no field of their own.

    Raises:
        NeedsRecord: a name needs an escape.
    """
    labels = [label(name) for name in names]
    last: bytes | None = None  # rows of a snapshot's batch all have the same rest
    added = b""

    def add(row: bytes, rest: bytes) -> bytes:
        nonlocal last, added
        if rest != last:
            found = [name + text for name, text in zip(labels, read(rest), strict=True)] if labels else []
            last, added = rest, appendix([*constant, *found], is_first=is_first)
        return row[:-1] + added

    return add


def appendix(fields: Sequence[bytes], *, is_first: bool) -> bytes:
    """Return what takes the place of a row's last byte, its brace, to add fields, each with its label."""
    return (b"" if is_first or not fields else b",") + b",".join(fields) + b"}"
