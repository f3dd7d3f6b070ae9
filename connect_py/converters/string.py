"""Whatever it is, as its text (`org.apache.kafka.connect.storage.StringConverter`). It never parses."""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from typing import Any

from connect_py.api.config import ConfigDef, ConfigKey, ConfigType, Importance, Width
from connect_py.converters.types import CONVERTER_TYPE, HeadersLikeData
from connect_py.data import Schema
from connect_py.data.schema import OPTIONAL_STRING
from connect_py.data.text import to_text
from connect_py.errors import ConfigError, DataError


class StringConverter(HeadersLikeData):
    """Converts keys, values and headers."""

    java_name = "org.apache.kafka.connect.storage.StringConverter"
    version = "4.3.1"

    def __init__(self) -> None:
        self.encoding = "UTF-8"

    @classmethod
    def config_def(cls) -> ConfigDef:
        """The converter's type and its encoding."""
        encoding = ConfigKey(
            "converter.encoding",
            ConfigType.STRING,
            "UTF-8",
            Importance.HIGH,
            "The name of the Java character set to use for encoding strings as byte arrays.",
            width=Width.MEDIUM,
            display_name="Encoding",
        )
        return ConfigDef((CONVERTER_TYPE, encoding))

    def configure(self, config: Mapping[str, str], *, is_key: bool = False) -> None:
        """Take properties, prefix stripped. Raises ConfigError for an unknown character set."""
        values = self.config_def().parse({**config, "converter.type": "key" if is_key else "value"})
        try:
            self.encoding = codecs.lookup(values["converter.encoding"]).name
        except LookupError:
            raise ConfigError(f"converter.encoding names an unknown character set: {values['converter.encoding']}") from None

    def from_connect_data(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """The value's Java text, encoded; None stays None. Raises DataError when the character set cannot hold it."""
        try:
            return None if value is None else to_text(schema, value).encode(self.encoding)
        except UnicodeEncodeError as error:
            raise DataError(f"Failed to serialize to a string: {error.reason} ({self.encoding})") from None

    def to_connect_data(self, topic: str, data: bytes | None) -> tuple[Schema | None, Any]:
        """An optional string. Raises DataError."""
        try:
            return OPTIONAL_STRING, None if data is None else data.decode(self.encoding)
        except UnicodeDecodeError as error:
            raise DataError(f"Failed to deserialize string: {error.reason} ({self.encoding})") from None
