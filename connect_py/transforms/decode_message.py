"""Turn logical decoding messages with JSON content into change events (`DecodeLogicalDecodingMessageContent`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from connect_py.api import ConfigType, Importance, Width
from connect_py.data import Field, Schema, Struct, Type
from connect_py.errors import DataError
from connect_py.transforms import json_payload
from connect_py.transforms.base import AnyRecord, require_struct
from connect_py.transforms.debezium import DebeziumTransform, option
from connect_py.transforms.json_payload import JsonStructs

_MESSAGE_VALUE = "io.debezium.connector.postgresql.MessageValue"
_MAX_SCHEMAS = 10_000


class DecodeLogicalDecodingMessageContent(DebeziumTransform):
    """Makes insertions of what `pg_logical_emit_message` wrote: the JSON object becomes `after`, so that an outbox needs no table."""

    java_name = "io.debezium.connector.postgresql.transforms.DecodeLogicalDecodingMessageContent"
    KEYS = (
        option(
            "fields.null.include",
            ConfigType.BOOLEAN,
            False,
            Importance.MEDIUM,
            Width.MEDIUM,
            "Defines whether to include fields with null values to the decoded structure",
            "Whether nulls become null fields of optional bytes; without it they are left out.",
        ),
    )

    def use(self, config: Mapping[str, Any]) -> None:
        self._structs = JsonStructs(null_as_bytes=config["fields.null.include"], field_name=lambda name: name)
        self._schemas: dict[tuple[Schema, int], tuple[Schema, Schema]] = {}

    def apply(self, record: AnyRecord) -> AnyRecord:
        """Return the record as an insertion without a key; what is no logical decoding message is left alone.

        Raises:
            DataError: the content is not the UTF-8 text of a JSON object.
        """
        if record.value_schema is None or record.value_schema.name != _MESSAGE_VALUE:
            return record
        value = require_struct(record.value, "Retrieve a record value")
        content = self._content(require_struct(value["message"], "Retrieve content of a logical decoding message"))
        schema = self._schema(content.schema, value.schema)
        kept = {field.name: value[field.name] for field in value.schema.fields}
        kept |= {"after": content, "op": "c"}
        changed = Struct(schema, [kept[field.name] for field in schema.fields])
        return replace(record, key_schema=None, key=None, value_schema=schema, value=changed)

    def _content(self, message: Struct) -> Struct:
        content = message["content"]
        if not isinstance(content, bytes | bytearray | memoryview):
            raise DataError("The content of a logical decoding message is non-binary")
        text = bytes(content).decode("utf-8", "replace")
        if not text.startswith(("{", "[")):
            raise DataError(f"Unable to parse logical decoding message content JSON string '{text}'")
        node = json_payload.parse(text)
        schema = self._structs.schema(None, node)
        if schema is None or schema.type is not Type.STRUCT:
            raise DataError("The content of a logical decoding message is a JSON array; only an object can become a row")
        return self._structs.struct(node, schema)

    def _schema(self, content: Schema, source: Schema) -> Schema:
        known = self._schemas.get((content, id(source)))
        if known is not None and known[0] is source:
            return known[1]
        fields = [field for field in source.fields if field.name != "message"]
        made = Schema(Type.STRUCT, name=f"{source.name}.Envelope", fields=(*fields, Field("after", content)))
        if len(self._schemas) >= _MAX_SCHEMAS:
            self._schemas.clear()
        self._schemas[content, id(source)] = (source, made)
        return made
