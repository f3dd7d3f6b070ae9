"""A table's encoder: rows in, keys and values as JsonConverter would write them out.

One object a table and schema version. It is used by one thread, the task's; between rows it keeps nothing but bounded caches of values.
Which bytes are right is `JsonConverter`'s to say (connect_py.converters.json_write): schemas, names, defaults and escapes come from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import orjson

from connect_py.api import JsonEncoding, Route
from connect_py.api.record import EncodedRow
from connect_py.converters.json_schema import schema_to_json
from connect_py.converters.json_write import quote
from connect_py.data import Schema
from connect_py.data.schema import STRING
from connect_py.rowcode import Code
from connectors.engine import envelope
from connectors.engine.encode.columnwise import ColumnwiseEncoder, Encoded, plain_size, quick_quote
from connectors.engine.encode.fused import FusedRows, FusedSource, wanted_forms, write_fused
from connectors.engine.encode.generate import write_text_ways
from connectors.engine.encode.plan import UNCHANGED, ColumnPlan, RowPlan, Stored, Text

_BEFORE = b'"before":null,"after":'


class TableEncoder:
    """Encodes the rows of one table.

    Args:
        topic: where the rows go; the default of `schema_name`.
        columns: one a column that the source's rows have, in their order; None for one that events leave out.
        key_columns: names of the key's columns in key order; none gives records without key. Names of columns left out are passed over.
        source_schema: schema of the source block.
        encoding: the converters' settings.
        schema_name: what the names of schemas begin with.
        field_name: adjusts names of fields.
        on_failure: as of `ColumnwiseEncoder`.
        skip_unchanged: whether an update that changes no column of events gives no value (``skip.messages.without.change``).
        key_mark: name and text of a field that keys have in addition to their columns.

    Attributes:
        columns: the plans of the columns that keys or rows have, in the order of their texts.
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
        #: For rows that the generated functions leave out, and for tests of these: the same records, column by column.
        self.columnwise = ColumnwiseEncoder(self._plan, self.value_schema.name or name, on_failure)
        self.skip_unchanged = skip_unchanged
        code = self._code()
        self._write(code)
        self._functions = functions = code.make()
        self._text_rows: Callable[..., None] = functions["text_rows"]
        self._plain_stream: Callable[[Sequence[Text]], Encoded] = functions["plain_stream"]
        self._mixed_snapshot: Callable[[Sequence[Text]], Encoded] = functions["mixed_snapshot"]
        self._mixed_stream: Callable[[Sequence[Text]], Encoded] = functions["mixed_stream"]

    @property
    def constant_bytes(self) -> int:
        """Of each value of a snapshot, without its source block: what is the same in all of them."""
        return len(self._row_head) + sum(map(len, self._plan.labels)) + len(self._close)

    @property
    def heads(self) -> tuple[bytes, bytes]:
        """What stands before the object of a key, and of a value, where schemas go with them (a brace closes it); else nothing."""
        return self._plan.key_head[:-1].encode() if self._plan.key_end != "}" else b"", self._row_head[: -len(_BEFORE) - 1]

    @property
    def row_head(self) -> bytes:
        """What stands before the object of a row that has no old one, in a value; `end` gives what follows it."""
        return self._row_head

    def _code(self) -> Code:
        """Return a module that has what generated functions use, by names that nothing else can take."""
        code = Code(f"rows of {self.value_schema.name}")
        code.bind_all(
            {
                "HEAD": self._row_head,
                "UNCHANGED": UNCHANGED,
                "careful_row": self._careful_row,
                "dumps_json": orjson.dumps,
                "join_bytes": b"".join,
                "plain_size": plain_size,
                "quick_quote": quick_quote,
            }
        )
        return code

    def _write(self, code: Code) -> str:
        """Write the functions; return the name of `mixed_stream`."""
        return write_text_ways(code, self._plan)

    # -- bytes that a connector finds rows in ----------------------------------------------------------------------------------------

    @property
    def wanted_forms(self) -> list[Mapping[str, Stored]]:
        """Return, for each column of events, the forms that are accepted instead of a text, by their names (`fused.py`)."""
        return wanted_forms(self._plan)

    def fused(self, source: FusedSource, *, stream: bool) -> FusedRows:
        """Functions that read rows where a connector finds them and write them in one.

        Args:
            stream: whether they are rows of a stream; else of a snapshot.
        """

        def make(escape: bool) -> tuple[Callable[..., int], Callable[..., int]]:
            code = self._code()
            write_fused(code, self._plan, source, stream=stream, escape=escape)
            functions = code.make()
            return functions["append_records"], functions["append_images"]

        return FusedRows(make)

    def end(self, source: bytes, tail: bytes) -> bytes:
        """Return what follows the row in a value: to give rows that were encoded earlier their source block and tail."""
        return b"%b%b%b%b%b" % (b',"source":', source, b",", tail, self._close)

    def closed(self, tail: bytes) -> bytes:
        """Return the end of a value, from after the part of the payload that `fused` functions write."""
        return tail + self._close

    # -- rows that a connector has read itself ---------------------------------------------------------------------------------------

    def text_rows(self, rows: Iterable[Sequence[Text]], route: Route, source: bytes, tail: bytes) -> list[EncodedRow]:
        """Encode rows of a snapshot that came as texts, one a column of events, None for NULL.

        Raises:
            DataError: a required column's value has no JSON form.
        """
        out: list[EncodedRow] = []
        self._text_rows(rows, route, self.end(source, tail), out.append)
        return out

    def _careful_row(self, texts: Sequence[Text]) -> Encoded:
        return self.image(texts, snapshot=True)

    def image(self, texts: Sequence[Text], *, snapshot: bool = False) -> Encoded:
        """Key and object of a row that came as texts, one a column of events. Raises DataError as `text_rows`."""
        if not snapshot:
            try:
                return self._plain_stream(texts)
            except (ValueError, IndexError):
                return self.columnwise.encode(texts, snapshot=False)
        try:
            return self._mixed_snapshot(texts)
        except (ValueError, IndexError):
            return self.columnwise.encode(texts, snapshot=True)

    def value(self, before: bytes | None, after: bytes | None, source: bytes, tail: bytes) -> bytes:
        """Return a value from the objects that `image` gave."""
        if before is None and after is not None:
            return b"".join((self._row_head, after, b',"source":', source, b",", tail, self._close))
        return b"".join((self._old_head, before or b"null", b',"after":', after or b"null", b',"source":', source, b",", tail, self._close))

    def key_text(self, texts: Sequence[Text]) -> str:
        """Return JSON text of a key without schema, decimals as numbers: what the headers of a moved row show."""
        return self.columnwise.header_key(texts)

    def truncate(self, source: bytes, tail: bytes) -> bytes:
        """Return the value of a truncate, whose key is null."""
        return b"".join((self._old_head, b'null,"after":null,"source":', source, b",", tail, self._close))
