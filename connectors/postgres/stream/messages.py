"""Logical decoding messages (`pg_logical_emit_message`) as records of the topic `<prefix>.message` (postgres.md §13.2;
`LogicalDecodingMessageMonitor`)."""

from __future__ import annotations

import base64

from connect_py.api import Route
from connect_py.api.record import EncodedRow, JsonEncoding
from connect_py.converters.json_schema import schema_to_json
from connect_py.converters.json_write import quote
from connect_py.data.schema import OPTIONAL_BYTES, OPTIONAL_INT64, OPTIONAL_STRING, STRING, struct
from connectors.engine.envelope import TRANSACTION_SCHEMA
from connectors.engine.relational.filters import NameFilter
from connectors.postgres.encode.source_info import SOURCE_SCHEMA, SourceBlock
from connectors.postgres.stream.pgoutput import LogicalMessage

#: What messages are counted as in their transaction. The reference shows a Java object there, whose number differs from run to run.
COLLECTION = "io.debezium.connector.postgresql.LogicalDecodingMessageMonitor$LogicalDecodingMessageId"
KEY_SCHEMA = struct([("prefix", OPTIONAL_STRING)], name="io.debezium.connector.postgresql.MessageKey", version=1)


class MessageEncoder:
    """Makes records of messages.

    Args:
        prefix: `topic.prefix`.
        binary_mode: `binary.handling.mode`, which decides how the content looks.
        wanted: which prefixes are captured.
    """

    def __init__(self, version: str, prefix: str, database: str, binary_mode: str, wanted: NameFilter, encoding: JsonEncoding) -> None:
        content = OPTIONAL_BYTES if binary_mode == "bytes" else OPTIONAL_STRING
        message = struct([("prefix", OPTIONAL_STRING), ("content", content)], name="io.debezium.connector.postgresql.Message", version=1)
        value_schema = struct(
            [
                ("op", STRING),
                ("ts_ms", OPTIONAL_INT64),
                ("source", SOURCE_SCHEMA),
                ("transaction", TRANSACTION_SCHEMA),
                ("message", message),
            ],
            name="io.debezium.connector.postgresql.MessageValue",
            version=1,
        )
        self._route = Route(f"{prefix}.message", KEY_SCHEMA, value_schema)
        self._block = SourceBlock(
            version=version, name=prefix, database=database, schema="", table="", nulls_as_defaults=encoding.nulls_as_defaults
        )
        self._binary_mode = binary_mode
        self._wanted = wanted
        self._key = _frame(schema_to_json(KEY_SCHEMA)) if encoding.key_schemas else (b"", b"")
        self._value = _frame(schema_to_json(value_schema)) if encoding.value_schemas else (b"", b"")

    def is_wanted(self, message: LogicalMessage) -> bool:
        """Whether its prefix is captured."""
        return self._wanted(message.prefix)

    def encode(
        self,
        message: LogicalMessage,
        *,
        lsn: int,
        xid: int | None,
        ts_us: int,
        last_commit: int | None,
        now_ns: int,
        block: bytes = b"null",
        xmin: int | None = None,
    ) -> EncodedRow:
        """A message's record; `block` is its place in its transaction, as JSON text."""
        prefix = quote(message.prefix).encode()
        source = self._block.transaction(ts_us, xid, last_commit, xmin=xmin)(lsn)
        payload = b'{"op":"m","ts_ms":%d,"source":%b,"transaction":%b,"message":{"prefix":%b,"content":"%b"}}' % (
            now_ns // 1_000_000,
            source,
            block,
            prefix,
            self._content(message.content),
        )
        return self._route, self._key[0] + b'{"prefix":' + prefix + b"}" + self._key[1], self._value[0] + payload + self._value[1]

    def _content(self, content: bytes) -> bytes:
        if self._binary_mode == "hex":
            return content.hex().encode()
        if self._binary_mode == "base64-url-safe":
            return base64.urlsafe_b64encode(content)
        return base64.b64encode(content)


def _frame(schema: bytes) -> tuple[bytes, bytes]:
    return b'{"schema":' + schema + b',"payload":', b"}"
