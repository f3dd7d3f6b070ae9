"""A table's encoder: rows as PostgreSQL sends them in, keys and values as JsonConverter would write them out, bytes to bytes.

One object a table and schema version. It is used by one thread, the task's; between rows it keeps nothing but bounded caches of values.
Which bytes are right is `JsonConverter`'s to say (connect_py.converters.json_write): schemas, names, defaults and escapes come from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from connect_py.api import JsonEncoding, Route
from connect_py.api.record import EncodedRow
from connect_py.converters.json_schema import schema_to_json
from connect_py.converters.json_write import quote
from connect_py.data import Schema
from connect_py.data.schema import STRING
from connect_py.errors import DataError
from connectors.engine import envelope
from connectors.engine.encode.fused import FusedSource, fused_text, wanted_forms
from connectors.engine.encode.fused_rows import FusedRows
from connectors.engine.encode.generate import RowPlan, source_text
from connectors.engine.encode.plan import ColumnPlan, Stored
from connectors.engine.encode.slow import Encoded, Slow, null_text, plain_size, quick_quote
from connectors.engine.encode.tuples import MARK, SHORT_MARK, UNCHANGED, Text, read_copy_line, read_tuple, split_tuple

_NEW, _KEY, _OLD = b"NKO"
_BEFORE = b'"before":null,"after":'
_NULL = "\\N"


class KeyChange(NamedTuple):
    """An update that moved a row to another key: Debezium shows a delete of the old and a create of the new one (postgres.md §12.3).

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


class TableEncoder:
    """Encodes the rows of one table.

    Args:
        topic: where the rows go; the default of `schema_name`.
        columns: one a column of the pgoutput relation, in its order; None for one that tuples hold and events leave out.
        key_columns: names of the key's columns in key order; none gives records without key. Names of columns left out are passed over.
        source_schema: schema of the source block.
        encoding: the converters' settings.
        schema_name: what the names of schemas begin with.
        field_name: adjusts names of fields.
        on_failure: as of `Slow`.
        skip_unchanged: whether an update that changes no column of events gives no value (``skip.messages.without.change``).
        key_mark: name and text of a field that keys have beside their columns.

    Attributes:
        columns: the plans of the columns that keys or rows have; COPY must select exactly these, in this order.
        key_schema: None without key.
        value_schema: of the envelope.
    """

    def __init__(
        self,
        topic: str,
        columns: Sequence[ColumnPlan | None],
        key_columns: Sequence[str],
        source_schema: Schema,
        encoding: JsonEncoding,
        schema_name: str | None = None,
        field_name: Callable[[str], str] = lambda name: name,
        *,
        on_failure: str = "warn",
        skip_unchanged: bool = False,
        key_mark: tuple[str, str] | None = None,
    ) -> None:
        self.columns = tuple(plan for plan in columns if plan is not None)
        self._width = len(columns)
        name = schema_name or topic
        index = {plan.name: i for i, plan in enumerate(self.columns)}
        key = [index[column] for column in key_columns if column in index]
        fields = [(field_name(plan.name), plan.schema) for plan in self.columns]
        self.key_schema = envelope.key_schema(
            name, [(fields[i][0], self.columns[i].of_key.schema) for i in key] + ([(key_mark[0], STRING)] if key_mark else [])
        )
        shown = [field for plan, field in zip(self.columns, fields, strict=True) if not plan.only_in_key]
        self.value_schema = envelope.envelope_schema(name, envelope.row_schema(name, shown), source_schema)

        payload, close = "{", b""
        if encoding.value_schemas:
            payload = (
                f'{{"schema":{schema_to_json(self.value_schema, numeric_decimals=encoding.value_decimals_numeric).decode()},"payload":{{'
            )
            close = b"}"
        start = payload.encode()
        self._close = close
        self._row_head = start + _BEFORE
        self._old_head = start + b'"before":'
        key_head, key_end = "{", "}"
        if encoding.key_schemas and self.key_schema is not None:
            key_head = f'{{"schema":{schema_to_json(self.key_schema, numeric_decimals=encoding.key_decimals_numeric).decode()},"payload":{{'
            key_end = "}}"
        labels = [quote(field) + ":" for field, _ in fields]
        self._plan = RowPlan(
            columns=self.columns,
            positions=[i for i, plan in enumerate(columns) if plan is not None],
            width=self._width,
            labels=labels,
            key_labels=[labels[i] for i in key],
            key=key,
            key_head=key_head,
            key_end=key_end,
            numeric_key=encoding.key_decimals_numeric,
            numeric_row=encoding.value_decimals_numeric,
            nulls_as_defaults=encoding.nulls_as_defaults,
            key_mark=f"{quote(key_mark[0])}:{quote(key_mark[1])}" if key_mark else "",
        )
        self.source_text = source_text(self._plan)
        self._slow = Slow(self._plan, self.value_schema.name or name, on_failure)
        self.skip_unchanged = skip_unchanged
        functions = self._compile()
        self._quick_copy_rows: Callable[..., None] = functions["quick_copy_rows"]
        self._nulls_copy_rows: Callable[..., None] = functions["nulls_copy_rows"]
        self._text_rows: Callable[..., None] = functions["text_rows"]
        self._plain_tuple: Callable[[Sequence[Text]], Encoded] = functions["plain_tuple"]
        self._quick_tuple: Callable[[list[str]], Encoded] = functions["quick_tuple"]
        self._mixed_copy: Callable[[Sequence[Text]], Encoded] = functions["mixed_copy"]
        self._mixed_tuple: Callable[[Sequence[Text]], Encoded] = functions["mixed_tuple"]

    @property
    def heads(self) -> tuple[bytes, bytes]:
        """What stands before the object of a key, and of a value, where schemas go with them (a brace closes it); else nothing."""
        return self._plan.key_head[:-1].encode() if self._plan.key_end != "}" else b"", self._row_head[: -len(_BEFORE) - 1]

    def _compile(self) -> Mapping[str, Any]:
        names = self._names()
        exec(compile(self.source_text, f"<rows of {self.value_schema.name}>", "exec"), names)  # noqa: S102  # our own text; names are literals
        return names

    def _names(self) -> dict[str, Any]:
        """What generated functions use."""
        names: dict[str, object] = {
            "HEAD": self._row_head,
            "NULL": _NULL,
            "QUOTE": '"',
            "TAB": "\t",
            "UNCHANGED": UNCHANGED,
            "convert_line": self._convert_line,
            "dumps": orjson.dumps,
            "join": b"".join,
            "careful": self._careful_row,
            "plain_size": plain_size,
            "quote": quick_quote,
        }
        for index, column in enumerate(self.columns):
            for target, plan, numeric in (("j", column, self._plan.numeric_row), ("k", column.of_key, self._plan.numeric_key)):
                names |= plan.helpers
                names[f"{target}convert{index}"] = plan.convert
                names[f"{target}snapshot{index}"] = plan.snapshot
                names[f"{target}numeric{index}"] = plan.numeric
                names[f"{target}placeholder{index}"] = plan.placeholder
                names[f"{target}null{index}"] = null_text(plan, numeric=numeric, defaults=self._plan.nulls_as_defaults)
        return names

    # -- bytes that a connector finds rows in ----------------------------------------------------------------------------------------

    @property
    def wanted_forms(self) -> list[Stored | None]:
        """Of each column of events, the stored form that is taken in place of a text (`fused.py`)."""
        return wanted_forms(self._plan)

    def fused(self, source: FusedSource, *, stream: bool) -> FusedRows:
        """Functions that read rows where a connector finds them and write them in one.

        Args:
            stream: whether they are rows of a stream; else of a snapshot.
        """

        def make(escape: bool) -> tuple[Callable[..., int], Callable[..., int]]:
            names = self._names()
            assert not names.keys() & source.names.keys()
            names |= source.names
            text = fused_text(self._plan, source, stream=stream, escape=escape)
            exec(compile(text, f"<rows of {self.value_schema.name}>", "exec"), names)  # noqa: S102  # our own text; names are literals
            records, images = names["records"], names["images"]
            # a name that is assigned would hide the source's of the same name
            assert not source.names.keys() & {*records.__code__.co_varnames, *images.__code__.co_varnames}
            return records, images

        return FusedRows(make)

    # -- COPY ----------------------------------------------------------------------------------------------------------------------

    def copy_rows(self, rows: Iterable[bytes], route: Route, source: bytes, tail: bytes) -> list[EncodedRow]:
        """Encode lines of `COPY (SELECT columns…) TO STDOUT` in text format.

        Args:
            rows: lines, each with its newline, some thousand at most: they are looked at as one text.
            route: goes into every result.
            source: JSON text of the source block that all of them share.
            tail: the payload's end (`envelope.tail`).

        Raises:
            DataError: a required column's value has no JSON form.
        """
        joined = b"".join(rows)
        text = joined.decode()
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
        """Lines of which some need an escape; `odd` when there are control characters or characters beyond U+FFFF among them."""
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

    def end(self, source: bytes, tail: bytes) -> bytes:
        """What follows the row in a value: to give rows that were encoded earlier their source block and tail."""
        return b"%b%b%b%b%b" % (b',"source":', source, b",", tail, self._close)

    def closed(self, tail: bytes) -> bytes:
        """The end of a value, from behind the part of the payload that `fused` functions write."""
        return tail + self._close

    def copy_row(self, row: bytes, source: bytes, tail: bytes) -> Encoded:
        """Encode one line; the newline may be missing. Raises as `copy_rows`."""
        key, text = self._line(row.decode().removesuffix("\n"))
        return key, b"".join((self._row_head, text, b',"source":', source, b",", tail, self._close))

    def _line(self, line: str) -> Encoded:
        try:
            return self._mixed_copy(read_copy_line(line) if self.columns else [])
        except (ValueError, IndexError):
            return self._convert_line(line)

    def _convert_line(self, line: str) -> Encoded:
        return self._slow.encode(read_copy_line(line) if self.columns else [], snapshot=True)

    # -- pgoutput ------------------------------------------------------------------------------------------------------------------

    def insert(self, message: bytes, position: int, source: bytes, tail: bytes) -> Encoded:
        """Encode an Insert message.

        Args:
            message: the whole message.
            position: of the byte after the relation's id, the kind of the tuple.
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
        if message[position] == _NEW:
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
            self._slow.header_key(old),
            self._slow.header_key(new),
        )

    def delete(self, message: bytes, position: int, source: bytes, tail: bytes) -> Encoded:
        """Encode a Delete message, whose old tuple is whole (O) or holds the replica identity's columns only (K). Raises as `insert`."""
        key, row = self._tuple(message, position + 1)
        return key, b"".join((self._old_head, row, b',"after":null,"source":', source, b",", tail, self._close))

    # -- rows that a connector has read itself ---------------------------------------------------------------------------------------

    def text_rows(self, rows: Iterable[Sequence[Text]], route: Route, source: bytes, tail: bytes) -> list[EncodedRow]:
        """Encode rows of a snapshot that came as texts, one a column of events, None for NULL. Raises DataError as `copy_rows`."""
        out: list[EncodedRow] = []
        self._text_rows(rows, route, self.end(source, tail), out.append)
        return out

    def _careful_row(self, texts: Sequence[Text]) -> Encoded:
        return self.image(texts, snapshot=True)

    def image(self, texts: Sequence[Text], *, snapshot: bool = False) -> Encoded:
        """Key and object of a row that came as texts, one a column of events. Raises DataError as `insert`."""
        if not snapshot:
            try:
                return self._plain_tuple(texts)
            except (ValueError, IndexError):
                return self._slow.encode(texts, snapshot=False)
        try:
            return self._mixed_copy(texts)
        except (ValueError, IndexError):
            return self._slow.encode(texts, snapshot=True)

    def value(self, before: bytes | None, after: bytes | None, source: bytes, tail: bytes) -> bytes:
        """A value from the objects that `image` gave."""
        if before is None and after is not None:
            return b"".join((self._row_head, after, b',"source":', source, b",", tail, self._close))
        return b"".join((self._old_head, before or b"null", b',"after":', after or b"null", b',"source":', source, b",", tail, self._close))

    def key_text(self, texts: Sequence[Text]) -> str:
        """JSON text of a key without schema, decimals as numbers: what the headers of a moved row show."""
        return self._slow.header_key(texts)

    def truncate(self, source: bytes, tail: bytes) -> bytes:
        """The value of a truncate, whose key is null."""
        return b"".join((self._old_head, b'null,"after":null,"source":', source, b",", tail, self._close))

    def _tuple(self, message: bytes, at: int) -> Encoded:
        """Key and row of a message's last tuple."""
        data = message[at + 2 :]
        sent = data.count(MARK)
        try:
            if sent == self._width and data.isascii():
                pieces = data.decode().split(SHORT_MARK)
                if len(pieces) == sent + 1:
                    return self._quick_tuple(pieces)
            texts = split_tuple(data, sent, self._width)
            if texts is not None:
                return self._mixed_tuple(self._select(texts))
        except (ValueError, LookupError):
            pass
        return self._row(self._select(read_tuple(message, at, self._width)[0]))

    def _old_and_new(self, message: bytes, position: int) -> tuple[bytes | None, bytes, bytes | None, bytes]:
        """Key and row of a message's old and new tuple."""
        data = message[position + 3 :]
        if data.isascii():
            width = self._width
            pieces = data.decode().split(SHORT_MARK)
            if len(pieces) == 2 * width + 1:
                # all values of both were sent; the kind and width of the new tuple stand behind the last one of the old
                pieces[width] = pieces[width][:-3]
                try:
                    return (*self._quick_tuple(pieces[: width + 1]), *self._quick_tuple(pieces[width:]))
                except (ValueError, IndexError):
                    pass
        old, new = self._both_texts(message, position)
        return (*self._row(old), *self._row(new))

    def _both_texts(self, message: bytes, position: int) -> tuple[Sequence[Text], Sequence[Text]]:
        """Texts of the old and the new tuple; what the new one leaves out as unchanged is taken from a whole old one."""
        old, at = read_tuple(message, position + 1, self._width)
        if message[at] != _NEW:
            raise DataError("An update's old tuple is not followed by a new one")
        new, _ = read_tuple(message, at + 1, self._width)
        if message[position] == _OLD:
            new = [before if text is UNCHANGED else text for before, text in zip(old, new, strict=True)]
        return self._select(old), self._select(new)

    def _select(self, texts: Sequence[Text]) -> Sequence[Text]:
        if self._width == len(self.columns):
            return texts
        return [texts[position] for position in self._plan.positions]

    def _row(self, texts: Sequence[Text]) -> Encoded:
        try:
            return self._mixed_tuple(texts)
        except (ValueError, IndexError):
            return self._slow.encode(texts, snapshot=False)
