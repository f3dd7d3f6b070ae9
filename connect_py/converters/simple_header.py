"""Headers as texts whose types are inferred when they are read (`org.apache.kafka.connect.storage.SimpleHeaderConverter`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from connect_py.api.config import ConfigDef
from connect_py.data import Schema, values
from connect_py.errors import DataError


class SimpleHeaderConverter:
    """The default converter of headers."""

    java_name = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
    version = "4.3.1"

    @classmethod
    def config_def(cls) -> ConfigDef:
        """No keys."""
        return ConfigDef()

    def configure(self, config: Mapping[str, str]) -> None:
        """There is nothing to set."""

    def from_connect_header(self, topic: str, name: str, schema: Schema | None, value: Any) -> bytes | None:
        """The value's text. Raises DataError."""
        if value is None:
            return None
        try:
            return values.to_text(schema, value).encode()
        except UnicodeEncodeError:
            raise DataError(f"The header '{name}' on topic '{topic}' holds half a surrogate pair, which UTF-8 cannot write") from None

    def to_connect_header(self, topic: str, name: str, data: bytes | None) -> tuple[Schema | None, Any]:
        """The inferred value; bytes that are no UTF-8 are read with replacement characters, as Java does."""
        return (None, None) if data is None else tuple(values.parse(data.decode(errors="replace")))
