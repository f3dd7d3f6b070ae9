"""Reading and writing rows in one: functions that take the bytes in which a reader finds rows and append finished records to a list.

A connector's reader says by `FusedSource` how values come out of bytes; the table's writer says what becomes of them. Nothing is made for a
row but its record: no list of texts, no texts of numbers and timestamps where the column has a way from the value or its parts (`Stored`).
Whatever is unusual makes the function raise, or leave something that must be escaped in the texts that it notes: `FusedRows`, which calls
the functions, then drops what it got, and the caller takes these rows the careful way.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import orjson

from connect_py.api import Route
from connect_py.api.record import EncodedRow
from connect_py.rowcode import Code
from connectors.engine.encode.columnwise import Encoded, plain_size
from connectors.engine.encode.generate import Writer, checked_columns, fstring, object_parts
from connectors.engine.encode.plan import RowPlan, Stored

#: What malformed bytes and unusual values raise in the functions.
UNUSUAL = (ValueError, LookupError, OverflowError, TypeError, struct.error)


@dataclass(frozen=True, slots=True)
class Single:
    """How one value is read by itself.

    Attributes:
        column: which of the columns of events has it; None for one that is passed over.
        before: statements ahead of the test for NULL.
        null: condition that holds for NULL.
        value: statements that set the variable.
    """

    column: int | None
    null: str
    value: Sequence[str]
    before: Sequence[str] = ()


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


def write_fused(code: Code, plan: RowPlan, source: FusedSource, *, stream: bool, escape: bool) -> None:
    """Write two functions.

    `append_records(d, s, p, end, route, mid, close, n, append, note)` appends records, whose values are the head of rows, the row, `mid`,
    in streams the row's number from `n` on, and `close`. `append_images(d, s, p, end, append, note)` appends keys and objects. Both return
    the offset after the last row.

    Args:
        escape: whether texts are escaped; else `note` is given those of each row that must need no escape.
    """
    checked = [] if escape else checked_columns(plan)
    note = [f"note({fstring([('', f'c{i}') for i in checked])})"] if checked else []

    def records(apart: bool) -> _Written:
        writer = Writer(code, plan, stream=stream, escape=escape, stored=source.stored, apart=apart)
        row = fstring([*object_parts("{", *writer.row_parts, "}"), *([("", "mid"), ("", "n")] if stream else [])])
        emit = f"append((route, {writer.key}, join_bytes((HEAD, {row}.encode(), close))))"
        return _written(writer, checked, [*note, emit, *(["n += 1"] if stream else [])])

    def images(apart: bool) -> _Written:
        writer = Writer(code, plan, stream=stream, escape=escape, stored=source.stored, apart=apart)
        return _written(writer, checked, [*note, f"append(({writer.key}, {writer.row}))"])

    _write_rows(code, source, "append_records", "d, s, p, end, route, mid, close, n, append, note", records)
    _write_rows(code, source, "append_images", "d, s, p, end, append, note", images)


def write_texts(code: Code, source: FusedSource, name: str, parameters: str, emit: Sequence[str]) -> None:
    """Write a function that reads rows as texts, None for NULL.

    Args:
        source: of which the variables hold texts.
        emit: statements for the variables of a row.
    """
    nothing: dict[int, Sequence[str]] = defaultdict(list)
    nulls = {single.column: [f"c{single.column} = None"] for single in source.single or () if single.column is not None}
    _write_rows(code, source, name, parameters, lambda _: _Written([], nothing, nulls, emit))


class _Written(NamedTuple):
    """What becomes of a row's values.

    Attributes:
        lines: statements for all columns of a row without NULL.
        shown, nulls: for a column that is read by itself; for its NULL.
        emit: statements for the row.
    """

    lines: Sequence[str]
    shown: Mapping[int, Sequence[str]]
    nulls: Mapping[int, Sequence[str]]
    emit: Sequence[str]


def _written(writer: Writer, checked: Sequence[int], emit: Sequence[str]) -> _Written:
    nulls = {i: [*lines, *([f"c{i} = ''"] if i in checked else [])] for i, lines in enumerate(writer.nulls)}
    return _Written(writer.lines, dict(enumerate(writer.shown)), nulls, emit)


def _write_rows(code: Code, source: FusedSource, name: str, parameters: str, write: Callable[[bool], _Written]) -> None:
    """Write a function over rows.

    Args:
        write: says what becomes of rows whose columns are read together (False), or each by itself (True), which may be NULL then.
    """
    named = code.bind_all(source.names)

    def add(statements: Sequence[str]) -> None:
        code.add(*map(named, statements))

    def together(statements: Sequence[str]) -> None:
        written = write(False)
        add(statements)
        code.add(*written.lines, *written.emit)

    def single(columns: Sequence[Single]) -> None:
        written = write(True)
        for column in columns:
            shown, nulls = ([], []) if column.column is None else (written.shown[column.column], written.nulls[column.column])
            add(column.before)
            with code.block(f"if {column.null}:"):
                code.add(*nulls)
            with code.block("else:"):
                add(column.value)
                code.add(*shown)
        code.add(*written.emit)

    with code.function(name, parameters):
        add(source.opening)
        with code.block(f"while {named(source.loop)}:"):
            add(source.begin)
            if source.together is not None and source.single is not None:
                with code.block(f"if not {source.nulls}:"):
                    together(source.together)
                with code.block("else:"):
                    single(source.single)
            elif source.together is not None:
                together(source.together)
            elif source.single is not None:
                single(source.single)
        add(source.closing)
        code.add("return p")


#: Where texts needed escapes, those of the next batches are escaped at once.
_ESCAPED_BATCHES = 64


class FusedRows:
    """Rows of one table in one form of bytes.

    Args:
        make: makes the functions `append_records` and `append_images`, whose texts are escaped or not.
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
