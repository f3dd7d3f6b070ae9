"""Records as JSON, with or without their schemas (`org.apache.kafka.connect.json.JsonConverter`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from connect_py.api.config import ConfigDef, ConfigKey, ConfigType, Importance, Width, one_of_ignoring_case
from connect_py.converters.base import CONVERTER_TYPE, HeadersLikeData, RowWriter
from connect_py.converters.json_read import Reader, has_decimals, parse_json, payload_reader
from connect_py.converters.json_schema import schema_from_json, schema_to_json
from connect_py.converters.json_struct import rows_writer
from connect_py.converters.json_write import WriteOptions, Writer
from connect_py.data import Schema
from connect_py.data.schema import SchemaCache
from connect_py.errors import ConfigError, DataError

_NO_ENVELOPE = (
    'JsonConverter with schemas.enable requires "schema" and "payload" fields and may not contain additional fields. '
    "If you are trying to deserialize plain JSON data, set schemas.enable=false in your converter configuration."
)

#: The definitions that `GET /connector-plugins/JsonConverter/config` shows, texts included.
_KEYS = (
    CONVERTER_TYPE,
    ConfigKey(
        "schemas.enable",
        ConfigType.BOOLEAN,
        True,
        Importance.HIGH,
        "Include schemas within each of the serialized values and keys.",
        "Schemas",
        0,
        Width.MEDIUM,
        "Enable Schemas",
    ),
    ConfigKey(
        "schemas.cache.size",
        ConfigType.INT,
        1000,
        Importance.HIGH,
        "The maximum number of schemas that can be cached in this converter instance.",
        "Schemas",
        1,
        Width.MEDIUM,
        "Schema Cache Size",
    ),
    ConfigKey(
        "schema.content",
        ConfigType.STRING,
        None,
        Importance.HIGH,
        "When set, this is used as the schema for all messages, and the schemas within each of the message will be "
        "ignored.Otherwise, the schema will be included in the content of each message. This configuration applies only "
        "'schemas.enable' is true, and it exclusively affects the sink connector.",
        "Schemas",
        2,
        Width.MEDIUM,
        "Schema Content",
    ),
    ConfigKey(
        "decimal.format",
        ConfigType.STRING,
        "BASE64",
        Importance.LOW,
        "Controls which format this converter will serialize decimals in. This value is case insensitive and can be either "
        "'BASE64' (default) or 'NUMERIC'",
        "Serialization",
        0,
        Width.MEDIUM,
        "Decimal Format",
        one_of_ignoring_case("BASE64", "NUMERIC"),
    ),
    ConfigKey(
        "replace.null.with.default",
        ConfigType.BOOLEAN,
        True,
        Importance.LOW,
        "Whether to replace fields that have a default value and that are null to the default value. When set to true, the "
        "default value is used, otherwise null is used.",
        "Serialization",
        1,
        Width.MEDIUM,
        "Replace null with default",
    ),
)


class JsonConverter(HeadersLikeData):
    """Converts keys, values and headers. One thread uses an instance."""

    java_name = "org.apache.kafka.connect.json.JsonConverter"
    version = "4.3.1"

    def __init__(self) -> None:
        self._use({key.name: key.default for key in _KEYS})

    @classmethod
    def config_def(cls) -> ConfigDef:
        """Return the keys that Connect documents for this converter."""
        return ConfigDef(_KEYS)

    def configure(self, config: Mapping[str, str], *, is_key: bool = False) -> None:
        """Take properties, prefix stripped. Raises ConfigError."""
        self._use(self.config_def().parse({**config, "converter.type": "key" if is_key else "value"}))

    def _use(self, values: Mapping[str, Any]) -> None:
        self.schemas_enabled: bool = values["schemas.enable"]
        self.numeric_decimals: bool = values["decimal.format"].upper() == "NUMERIC"
        replace: bool = values["replace.null.with.default"]
        self.handles_rows = replace
        size: int = values["schemas.cache.size"]
        options = WriteOptions(self.numeric_decimals, replace)

        def writer(schema: Schema | None) -> tuple[bytes, Writer]:
            return b'{"schema":%b,"payload":' % schema_to_json(schema, numeric_decimals=self.numeric_decimals), rows_writer(schema, options)

        self._writers: SchemaCache[tuple[bytes, Writer]] = SchemaCache(writer, size)
        self._readers: SchemaCache[tuple[Reader, bool]] = SchemaCache(lambda s: (payload_reader(s, replace), has_decimals(s)), size)
        self._prefixes: dict[bytes, Schema | None] = {}
        self._size = size
        self._last_prefix: tuple[bytes, Schema | None] | None = None
        self._fixed: Schema | None = None
        content: str | None = values["schema.content"]
        if content:
            try:
                self._fixed = schema_from_json(parse_json(content.encode()))
            except DataError as error:
                raise ConfigError(f"schema.content is no schema: {error}") from None

    # -- writing -------------------------------------------------------------------------------------------------------------------

    def from_connect_data(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """JSON bytes; None for a null without a schema (a tombstone), in both modes. Raises DataError."""
        if value is None and schema is None:
            return None
        envelope, write = self._writers(schema)
        payload = write(value).encode()
        return b"".join((envelope, payload, b"}")) if self.schemas_enabled else payload

    def row_writer(self, topic: str, schema: Schema) -> RowWriter:
        """Return the function that writes rows of JSON as `from_connect_data` does; see `RowConverter`."""
        if not self.schemas_enabled:
            return lambda row: row
        head = self._writers(schema)[0]
        return lambda row: b"%b%b}" % (head, row)

    # -- reading -------------------------------------------------------------------------------------------------------------------

    def to_connect_data(self, topic: str, data: bytes | None) -> tuple[Schema | None, Any]:
        """Return schema and value; (None, None) for no bytes. Raises DataError."""
        if data is None:
            return None, None
        if not self.schemas_enabled:
            return None, parse_json(data) if data else None
        if self._fixed is not None:
            return self._fixed, self._payload(self._fixed, data)
        if self._last_prefix is not None and data.startswith(self._last_prefix[0]) and data.endswith(b"}"):
            prefix, schema = self._last_prefix
            try:
                return schema, self._payload(schema, data[len(prefix) : -1])
            except DataError:
                pass  # perhaps more than a payload follows the prefix: let the slow way judge the whole
        return self._from_envelope(data)

    def _payload(self, schema: Schema | None, data: bytes) -> Any:
        read, exact = self._readers(schema)
        return read(parse_json(data, exact=exact))

    def _from_envelope(self, data: bytes) -> tuple[Schema | None, Any]:
        parsed = parse_json(data) if data else None
        if not isinstance(parsed, dict) or parsed.keys() != {"schema", "payload"}:
            raise DataError(_NO_ENVELOPE)
        schema = self._schema(parsed["schema"], data)
        read, exact = self._readers(schema)
        return schema, read(parse_json(data, exact=True)["payload"] if exact else parsed["payload"])

    def _schema(self, node: Any, data: bytes) -> Schema | None:
        """The schema of an envelope; if its bytes come first, as this converter writes them, the next record needs not parse them again."""
        start, end = b'{"schema":', data.find(b',"payload":')
        prefix = data[: end + len(b',"payload":')] if data.startswith(start) and end > 0 else None
        if prefix is not None and prefix in self._prefixes:
            schema = self._prefixes[prefix]
        else:
            schema = schema_from_json(node)
            try:
                if prefix is None or parse_json(data[len(start) : end]) != node:
                    return schema
            except DataError:
                return schema  # the text occurs inside the schema, in a default for example
            if len(self._prefixes) >= self._size:
                self._prefixes.clear()
            self._prefixes[prefix] = schema
        self._last_prefix = (prefix, schema)
        return schema
