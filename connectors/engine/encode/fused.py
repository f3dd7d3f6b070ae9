"""Reading and writing rows in one: functions that take the bytes in which a reader finds rows and append finished records to a list.

A connector's reader says by `FusedSource` how values come out of bytes; the table's writer says what becomes of them. Nothing is made for a
row but its record: no list of texts, no texts of numbers and timestamps where the column has a way from the value or its parts (`Stored`).
Whatever is unusual makes the function raise, or leave something that must be escaped in the texts that it notes: `FusedRows`, which calls
the functions, then drops what it got, and the caller takes these rows the careful way.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import orjson

from connect_py.api import Route
from connect_py.api.record import EncodedRow
from connectors.engine.encode.columnwise import Encoded, plain_size
from connectors.engine.encode.generate import RowPlan, Writer, fstring, object_parts
from connectors.engine.encode.plan import Stored

#: What malformed bytes and unusual values raise in the functions.
UNUSUAL = (ValueError, LookupError, OverflowError, TypeError, struct.error)


@dataclass(frozen=True, slots=True)
class Single:
    """How one value is read by itself.

    Attributes:
        column: which of the columns of events has it; None for one that is passed over.
        before: statements ahead of the test for NULL.
        null: condition that holds for NULL; empty where there is none.
        passing: statements for NULL.
        value: statements that set the variable.
    """

    column: int | None
    null: str
    value: Sequence[str]
    before: Sequence[str] = ()
    passing: Sequence[str] = ("pass",)


@dataclass(frozen=True, slots=True)
class FusedSource:
    """How rows stand in bytes `d`, of which `s` is the text with a character for each: from `p` up to `end`, one after the other.

    The statements set the variable `c0` for the first column of events, and so on: texts, or what `stored` says. They may raise what is in
    `UNUSUAL`.

    Attributes:
        opening: statements ahead of the first row.
        loop: what is true where a row follows.
        closing: statements after the last row; `p` is its end then.
        begin: statements at a row's begin.
        together: statements for all columns of a row without NULL; None where each is always read by itself.
        single: for rows with NULL; None where there are none.
        nulls: condition that distinguishes the two, where there are both.
        stored: of the columns whose variables hold another form than the text, by index, which one.
        names: that the statements use.
    """

    opening: Sequence[str] = ()
    loop: str = "p < end"
    closing: Sequence[str] = ()
    begin: Sequence[str] = ()
    together: Sequence[str] | None = None
    single: Sequence[Single] | None = None
    nulls: str = ""
    stored: Mapping[int, Stored] = field(default_factory=dict)
    names: Mapping[str, object] = field(default_factory=dict)


def wanted_forms(plan: RowPlan) -> list[Mapping[str, Stored]]:
    """Return, for each column of events, the forms other than text that its writer accepts, by their names."""
    found: list[Mapping[str, Stored]] = []
    for index, column in enumerate(plan.columns):
        stored = column.stored
        if plan.numeric_row and column.numeric is not None:
            stored = ()
        if index in plan.key and (column.of_key.stored != stored or (plan.numeric_key and column.of_key.numeric is not None)):
            stored = ()
        found.append({way.form: way for way in stored})
    return found


def fused_text(plan: RowPlan, source: FusedSource, *, stream: bool, escape: bool) -> str:
    """Return the text of a module with two functions.

    `records(d, s, p, end, route, mid, close, n, append, note)` appends records, whose values are the head of rows, the row, `mid`, in
    streams the row's number from `n` on, and `close`. `images(d, s, p, end, append, note)` appends keys and objects. Both return the offset
    after the last row.

    Args:
        escape: whether texts are escaped; else `note` is given those of each row that must need no escape.
    """
    record = "append((route, {key}, join((HEAD, {row}, close))))"
    return "\n".join(
        [
            *_function(plan, source, "records(d, s, p, end, route, mid, close, n, append, note)", record, stream, escape, numbered=stream),
            *_function(plan, source, "images(d, s, p, end, append, note)", "append(({key}, {row}))", stream, escape, numbered=False),
            "",
        ]
    )


def _function(plan: RowPlan, source: FusedSource, head: str, emit: str, stream: bool, escape: bool, *, numbered: bool) -> list[str]:
    lines = [f"def {head}:", *_indented(source.opening, 1), f"    while {source.loop}:", *_indented(source.begin, 2)]
    both = source.together is not None and source.single is not None
    depth = 3 if both else 2
    if both:
        lines.append(f"        if not {source.nulls}:")
    if source.together is not None:
        lines += _indented([*source.together, *_together(plan, source, emit, stream, escape, numbered=numbered)], depth)
    if both:
        lines.append("        else:")
    if source.single is not None:
        lines += _indented(_single(plan, source, emit, stream, escape, numbered=numbered), depth)
    if numbered:
        lines.append("        n += 1")
    return [*lines, *_indented(source.closing, 1), "    return p"]


def _together(plan: RowPlan, source: FusedSource, emit: str, stream: bool, escape: bool, *, numbered: bool) -> list[str]:
    writer = Writer(plan, stream=stream, escape=escape, stored=source.stored)
    return [*writer.lines, *_emitted(plan, writer, emit, escape, numbered=numbered)]


def _single(plan: RowPlan, source: FusedSource, emit: str, stream: bool, escape: bool, *, numbered: bool) -> list[str]:
    """Return statements that make each column's JSON text where its value is read, since it stands for NULL otherwise."""
    assert source.single is not None
    writer = Writer(plan, stream=stream, escape=escape, stored=source.stored, apart=True)
    checked = _checked(plan, escape)
    lines: list[str] = []
    for single in source.single:
        index = single.column
        lines += single.before
        shown = [] if index is None else writer.shown[index]
        if not single.null:
            lines += [*single.value, *shown]
            continue
        passing = list(single.passing) if index is None else [*single.passing, *writer.nulls[index]]
        if index in checked:
            passing.append(f"c{index} = ''")
        lines += [f"if {single.null}:", *_indented(passing, 1), "else:", *_indented([*single.value, *shown], 1)]
    return [*lines, *_emitted(plan, writer, emit, escape, numbered=numbered)]


def _emitted(plan: RowPlan, writer: Writer, emit: str, escape: bool, *, numbered: bool) -> list[str]:
    checked = _checked(plan, escape)
    note = [f"note({fstring([('', f'c{i}') for i in checked])})"] if checked else []
    row = object_parts("{", *writer.row_parts, "}")
    if numbered:
        row += [("", "mid"), ("", "n")]
    return [*note, emit.format(key=writer.key, row=fstring(row) + ".encode()")]


def _checked(plan: RowPlan, escape: bool) -> list[int]:
    """Columns whose texts stand in rows or keys as they are."""
    if escape:
        return []
    return [i for i, column in enumerate(plan.columns) if column.is_checked or (i in plan.key and column.of_key.is_checked)]


def _indented(lines: Sequence[str], depth: int) -> list[str]:
    return ["    " * depth + line for line in lines]


#: Where texts needed escapes, those of the next batches are escaped at once.
_ESCAPED_BATCHES = 64


class FusedRows:
    """Rows of one table in one form of bytes.

    Args:
        make: compiles the functions `records` and `images`, whose texts are escaped or not.
    """

    def __init__(self, make: Callable[[bool], tuple[Callable[..., int], Callable[..., int]]]) -> None:
        self._make = make
        self._made: dict[bool, tuple[Callable[..., int], Callable[..., int]]] = {}
        self._escaped = 0

    def records(self, data: bytes, route: Route, mid: str, close: bytes, *, text: str | None = None) -> list[EncodedRow] | None:
        """Return records of the rows that the bytes hold.

        Args:
            mid: text after a row's object, up to its number where the stream shows one.
            close: what follows.
            text: the bytes as characters U+0000 to U+00FF, where they are at hand.

        Returns:
            None where a row is unusual, or is none: nothing was given out, the careful way says which.
        """
        characters = data.decode("latin-1") if text is None else text

        def call(functions: tuple[Callable[..., int], Callable[..., int]], out: list[EncodedRow], texts: list[str]) -> int:
            return functions[0](data, characters, 0, len(data), route, mid, close, 0, out.append, texts.append)

        return self._read(call, len(data))

    def images(self, data: bytes) -> list[Encoded] | None:
        """Return keys and objects of the rows; None as `records`."""
        characters = data.decode("latin-1")

        def call(functions: tuple[Callable[..., int], Callable[..., int]], out: list[Encoded], texts: list[str]) -> int:
            return functions[1](data, characters, 0, len(data), out.append, texts.append)

        return self._read(call, len(data))

    def _read(self, call: Callable[..., int], end: int) -> list | None:  # type: ignore[type-arg]  # of what the call makes
        out: list = []  # type: ignore[type-arg]
        try:
            if not self._escaped:
                texts: list[str] = []
                if call(self._functions(False), out, texts) != end:
                    return None
                joined = "".join(texts)
                if len(orjson.dumps(joined)) == (len(joined) if joined.isascii() else plain_size(joined)) + 2:
                    return out
                out = []
                self._escaped = _ESCAPED_BATCHES
            self._escaped -= 1
            return out if call(self._functions(True), out, []) == end else None
        except UNUSUAL:
            return None

    def _functions(self, escape: bool) -> tuple[Callable[..., int], Callable[..., int]]:
        found = self._made.get(escape)
        if found is None:
            found = self._made[escape] = self._make(escape)
        return found
