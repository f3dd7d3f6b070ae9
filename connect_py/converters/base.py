"""What converters share: the property that every one has (`org.apache.kafka.connect.storage.ConverterConfig`), and headers like data."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from connect_py.api.config import ConfigKey, ConfigType, Importance, one_of
from connect_py.data import Schema

#: The runtime sets it; no user has to.
CONVERTER_TYPE = ConfigKey(
    "converter.type",
    ConfigType.STRING,
    importance=Importance.LOW,
    documentation="How this converter will be used.",
    display_name="converter.type",
    validator=one_of("key", "value", "header"),
)


class HeadersLikeData:
    """The headers' half of a converter that treats headers as it treats keys and values."""

    @abstractmethod
    def from_connect_data(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """As of `Converter`."""

    @abstractmethod
    def to_connect_data(self, topic: str, data: bytes | None) -> tuple[Schema | None, Any]:
        """As of `Converter`."""

    def from_connect_header(self, topic: str, name: str, schema: Schema | None, value: Any) -> bytes | None:
        """As `from_connect_data`."""
        return self.from_connect_data(topic, schema, value)

    def to_connect_header(self, topic: str, name: str, data: bytes | None) -> tuple[Schema | None, Any]:
        """As `to_connect_data`."""
        return self.to_connect_data(topic, data)
