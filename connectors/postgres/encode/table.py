"""A table's encoder for the rows that PostgreSQL sends: lines of COPY and messages of pgoutput, bytes to bytes.

Functions are generated for each table, in addition to those of `connectors.engine.encode.generate`:

  quick_copy_rows  a loop over lines of COPY text that hold no NULL and nothing that JSON must escape
  nulls_copy_rows  the same where some fields are `\\N`
  quick_tuple      a pgoutput tuple whose values are all sent, short, ASCII and need no escape

pgoutput's values are split off by the marker of a length below 256, `t\\0\\0\\0`, which no text can hold: 0.3 µs a row; a regular
expression for any length takes 0.9 µs, unpacking lengths one by one 1.7 µs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import orjson

from connect_py.api import Route
from connect_py.api.record import EncodedRow
from connect_py.errors import DataError
from connect_py.rowcode import Code
from connectors.engine.encode.columnwise import Encoded
from connectors.engine.encode.generate import escape_check, variables, write_row, write_row_loop
from connectors.engine.encode.plan import UNCHANGED, RowPlan, Text
from connectors.engine.encode.table import TableEncoder
from connectors.engine.plugins.post_processors import Fill
from connectors.postgres.encode.tuples import MARK, SHORT_MARK, read_copy_line, read_tuple, split_tuple


def _write_ways(code: Code, plan: RowPlan, mixed_stream: str) -> None:
    """Write the functions for the rows that PostgreSQL sends."""
    unpack = f"{variables(plan)} = row{'.split(TAB)' if len(plan.columns) > 1 else ''}"
    write_row_loop(code, plan, "quick_copy_rows", unpack, careful="convert_line")
    write_row_loop(code, plan, "nulls_copy_rows", unpack, tests=[("$ == NULL", "null")], careful="convert_line")
    targets = ["_"] * plan.width
    for index, position in enumerate(plan.positions):
        targets[position] = f"c{index}"
    texts = [
        f"_, {', '.join(targets)} = pieces",
        *(f"c{i} = c{i}[1:]" for i in range(len(plan.columns))),
        *escape_check(plan, f"return {mixed_stream}(({variables(plan)},))", ascii_only=True),
    ]
    write_row(code, plan, "quick_tuple", "pieces", texts, stream=True)


_NULL = "\\N"


class KeyChange(NamedTuple):
    """An update that moved a row to another key: Debezium shows a delete of the old and a create of the new one.

    Attributes:
        old_key_text: JSON text of the old key without schema, decimals as numbers: header `__debezium.oldkey` of the create.
        new_key_text: the same of the new key: header `__debezium.newkey` of the delete and its tombstone.
    """

    old_key: bytes
    new_key: bytes
    delete_value: bytes
    create_value: bytes
    old_key_text: str
    new_key_text: str


class PostgresEncoder(TableEncoder):
    """Encoder of a table's rows from COPY and pgoutput.

    Its columns are those of the pgoutput relation, in its order; COPY must select exactly those of `columns`.
    """

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        functions = self._functions
        self._quick_copy_rows: Callable[..., None] = functions["quick_copy_rows"]
        self._nulls_copy_rows: Callable[..., None] = functions["nulls_copy_rows"]
        self._quick_tuple: Callable[[list[str]], Encoded] = functions["quick_tuple"]

    def _code(self) -> Code:
        code = super()._code()
        code.bind_all({"NULL": _NULL, "TAB": "\t", "convert_line": self._convert_line})
        return code

    def _write(self, code: Code) -> str:
        mixed_stream = super()._write(code)
        _write_ways(code, self._plan, mixed_stream)
        return mixed_stream

    # -- COPY ----------------------------------------------------------------------------------------------------------------------

    def copy_rows(self, rows: Iterable[bytes], route: Route, source: bytes, tail: bytes) -> list[EncodedRow]:
        """Encode lines of `COPY (SELECT columns…) TO STDOUT` in text format.

        Args:
            rows: lines, each with its newline, a few thousand at most: they are handled as one text.
            route: goes into every result.
            source: JSON text of the source block that all of them share.
            tail: the payload's end (`envelope.tail`).

        Raises:
            DataError: a row is none of the table's, or a required column's value has no JSON form.
        """
        joined = b"".join(rows)
        text = _decoded(joined)
        end = self.end(source, tail)
        lines = text.split("\n")
        lines.pop()
        out: list[EncodedRow] = []
        # what JSON adds to this text: a byte for each tab, newline, quote and backslash, five for another control character
        added = len(orjson.dumps(text)) - len(joined) - 2 - len(lines) * max(len(self.columns), 1)
        astral = not text.isascii() and len(text.encode("utf-16-le")) != 2 * len(text)
        if added == 0 and not astral:
            self._quick_copy_rows(lines, route, end, out.append)
        elif not astral and added == text.count(_NULL):
            self._nulls_copy_rows(lines, route, end, out.append)
        else:
            self._mixed_copy_rows(lines, route, end, out.append, odd=astral or added != text.count('"') + text.count("\\"))
        return out

    def _mixed_copy_rows(self, lines: list[str], route: Route, end: bytes, append: Callable[[EncodedRow], None], *, odd: bool) -> None:
        """Encode lines of which some need an escape; `odd` when there are control characters or characters beyond U+FFFF among them."""
        head, dumps, tabs = self._row_head, orjson.dumps, max(len(self.columns), 1) + 1
        for line in lines:
            if '"' in line or (odd and not (line.isascii() and len(dumps(line)) - len(line) - tabs == line.count("\\"))):
                key, row = self._line(line)
                append((route, key, b"".join((head, row, end))))
            elif "\\" not in line:
                self._quick_copy_rows((line,), route, end, append)
            elif line.count("\\") == line.count(_NULL):
                self._nulls_copy_rows((line,), route, end, append)
            else:
                key, row = self._line(line)
                append((route, key, b"".join((head, row, end))))

    def copy_row(self, row: bytes, source: bytes, tail: bytes) -> Encoded:
        """Encode one line; the newline may be missing. Raises as `copy_rows`."""
        key, text = self._line(_decoded(row).removesuffix("\n"))
        return key, b"".join((self._row_head, text, b',"source":', source, b",", tail, self._close))

    def _line(self, line: str) -> Encoded:
        try:
            return self._mixed_snapshot(read_copy_line(line) if self.columns else [])
        except (ValueError, IndexError, TypeError):
            return self._convert_line(line)

    def _convert_line(self, line: str) -> Encoded:
        return self.columnwise.encode(read_copy_line(line) if self.columns else [], snapshot=True)

    # -- pgoutput ------------------------------------------------------------------------------------------------------------------

    def insert(self, message: bytes, position: int, source: bytes, tail: bytes) -> Encoded:
        """Encode an Insert message.

        Args:
            message: the whole message.
            position: index of the byte after the relation's id, the kind of the tuple.
            source: JSON text of the source block.
            tail: the payload's end.

        Raises:
            DataError: the message does not fit the table, or a required column's value has no JSON form.
        """
        key, row = self._tuple(message, position + 1)
        return key, b"".join((self._row_head, row, b',"source":', source, b",", tail, self._close))

    def update(self, message: bytes, position: int, source: bytes, tail: bytes) -> tuple[bytes | None, bytes, bytes | None]:
        """Encode an Update message.

        Returns:
            Key, value and None; or, where the key changed, the new key, nothing and the old key: the caller then asks `split`; or, where
            nothing of the row changed and that is to be left out, nothing at all.

        Raises:
            DataError: as `insert`.
        """
        if message[position : position + 1] == b"N":
            return (*self.insert(message, position, source, tail), None)
        old_key, old_row, key, row = self._old_and_new(message, position)
        if self.skip_unchanged and old_row == row:
            return None, b"", None
        if old_key != key:
            return key, b"", old_key
        return key, b"".join((self._old_head, old_row, b',"after":', row, b',"source":', source, b",", tail, self._close)), None

    def split(self, message: bytes, position: int, source: bytes, delete_tail: bytes, create_tail: bytes) -> KeyChange:
        """Encode an Update message that changed the key as a delete and a create. Raises DataError as `insert`."""
        old_key, old_row, key, row = self._old_and_new(message, position)
        if old_key is None or key is None:
            raise DataError(f"An update of {self.value_schema.name}, which has no key, cannot be split into a delete and a create")
        old, new = self._both_texts(message, position)
        return KeyChange(
            old_key,
            key,
            b"".join((self._old_head, old_row, b',"after":null,"source":', source, b",", delete_tail, self._close)),
            b"".join((self._row_head, row, b',"source":', source, b",", create_tail, self._close)),
            self.columnwise.header_key(old),
            self.columnwise.header_key(new),
        )

    def delete(self, message: bytes, position: int, source: bytes, tail: bytes) -> Encoded:
        """Encode a Delete message, whose old tuple is whole (O) or holds the replica identity's columns only (K). Raises as `insert`."""
        key, row = self._tuple(message, position + 1)
        return key, b"".join((self._old_head, row, b',"after":null,"source":', source, b",", tail, self._close))

    def _tuple(self, message: bytes, at: int) -> Encoded:
        """Return key and row of a message's last tuple."""
        data = message[at + 2 :]
        sent = data.count(MARK)
        try:
            if sent == self._width and data.isascii():
                pieces = data.decode().split(SHORT_MARK)
                if len(pieces) == sent + 1:
                    return self._quick_tuple(pieces)
            texts = split_tuple(data, sent, self._width)
            if texts is not None:
                return self._mixed_stream(self._select(texts))
        except (ValueError, LookupError, TypeError):
            pass
        return self._row(self._select(read_tuple(message, at, self._width)[0]))

    def _old_and_new(self, message: bytes, position: int) -> tuple[bytes | None, bytes, bytes | None, bytes]:
        """Return key and row of a message's old and new tuple."""
        data = message[position + 3 :]
        if data.isascii():
            width = self._width
            pieces = data.decode().split(SHORT_MARK)
            if len(pieces) == 2 * width + 1:
                # all values of both were sent; the kind and width of the new tuple follow the last one of the old
                pieces[width] = pieces[width][:-3]
                try:
                    return (*self._quick_tuple(pieces[: width + 1]), *self._quick_tuple(pieces[width:]))
                except (ValueError, IndexError, TypeError):
                    pass
        old, new = self._both_texts(message, position)
        return (*self._row(old), *self._row(new))

    def _both_texts(self, message: bytes, position: int) -> tuple[Sequence[Text], Sequence[Text]]:
        """Return the texts of the old and the new tuple; what the new one leaves out as unchanged is taken from a whole old one."""
        old, at = read_tuple(message, position + 1, self._width)
        if message[at : at + 1] != b"N":
            raise DataError("An update's old tuple is not followed by a new one")
        new, _ = read_tuple(message, at + 1, self._width)
        if message[position : position + 1] == b"O":
            new = [before if text is UNCHANGED else text for before, text in zip(old, new, strict=True)]
        return self._select(old), self._select(new)

    def _select(self, texts: Sequence[Text]) -> Sequence[Text]:
        if self._width == len(self.columns):
            return texts
        return [texts[position] for position in self._plan.positions]

    def _row(self, texts: Sequence[Text]) -> Encoded:
        try:
            return self._mixed_stream(texts)
        except (ValueError, IndexError, TypeError):
            return self.columnwise.encode(texts, snapshot=False)


def _decoded(rows: bytes) -> str:
    try:
        return rows.decode()
    except UnicodeDecodeError as error:
        raise DataError(f"Rows of COPY are not UTF-8, the encoding of the connection: {error}") from None


class FillingEncoder(PostgresEncoder):
    """Encoder that fills in values which a row of the stream lacks. Rows of snapshots and deleted rows are left as they are.

    Attributes:
        fill: returns the texts of each new row in which some are missing.
    """

    fill: Fill

    def __init__(self, *args: Any, fill: Fill, **more: Any) -> None:
        super().__init__(*args, **more)
        self.fill = fill

    def insert(self, message: bytes, position: int, source: bytes, tail: bytes) -> Encoded:
        """Encode as `PostgresEncoder.insert`; raises what `fill` raises."""
        texts = self.fill(self._select(read_tuple(message, position + 1, self._width)[0]))
        if texts is None:
            return super().insert(message, position, source, tail)
        key, row = self._row(texts)
        return key, self.value(None, row, source, tail)

    def update(self, message: bytes, position: int, source: bytes, tail: bytes) -> tuple[bytes | None, bytes, bytes | None]:
        """Encode as `PostgresEncoder.update`; raises what `fill` raises."""
        if message[position : position + 1] == b"N":
            return (*self.insert(message, position, source, tail), None)
        return super().update(message, position, source, tail)

    def _old_and_new(self, message: bytes, position: int) -> tuple[bytes | None, bytes, bytes | None, bytes]:
        old, new = self._both_texts(message, position)
        filled: Sequence[Text] | None = self.fill(new)
        return (*self._row(old), *self._row(new if filled is None else filled))
