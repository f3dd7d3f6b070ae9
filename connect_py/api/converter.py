"""Between Connect data and the bytes in Kafka (`org.apache.kafka.connect.storage.Converter`, `HeaderConverter`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from connect_py.api.config import ConfigDef
from connect_py.data import Schema


class Converter(Protocol):
    """Keys or values of records.

    Class attributes:
        java_name: the class name that configurations use.
    """

    java_name: ClassVar[str]
    version: ClassVar[str]

    @classmethod
    def config_def(cls) -> ConfigDef:
        """Every property, without prefix."""
        ...

    def configure(self, config: Mapping[str, str], *, is_key: bool) -> None:
        """Take properties, prefix stripped. Raises ConfigError."""
        ...

    def from_connect_data(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """Serialise. Raises DataError."""
        ...

    def to_connect_data(self, topic: str, data: bytes | None) -> tuple[Schema | None, Any]:
        """Deserialise. Raises DataError."""
        ...


class HeaderConverter(Protocol):
    """Headers of records; the methods mirror `Converter`."""

    java_name: ClassVar[str]
    version: ClassVar[str]

    @classmethod
    def config_def(cls) -> ConfigDef: ...

    def configure(self, config: Mapping[str, str]) -> None: ...

    def from_connect_header(self, topic: str, name: str, schema: Schema | None, value: Any) -> bytes | None:
        """Serialise one header. Raises DataError."""
        ...

    def to_connect_header(self, topic: str, name: str, data: bytes | None) -> tuple[Schema | None, Any]:
        """Deserialise one header. Raises DataError."""
        ...
