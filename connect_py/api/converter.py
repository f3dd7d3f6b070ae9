"""Between Connect data and the bytes in Kafka (`org.apache.kafka.connect.storage.Converter`, `HeaderConverter`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from connect_py.api.config import ConfigDef
from connect_py.data import Schema


class Converter(Protocol):
    """Keys or values of records. A class may derive from this protocol, or just have its methods. One instance serves one task's keys or
    values and is used by that task's thread alone.

    A converter whose bytes depend on the record's headers has one more method, which sources then call in place of `from_connect_data`
    (`Converter.fromConnectData(topic, headers, schema, value)` in Java)::

        def from_connect_data_with_headers(self, topic, headers, schema, value): ...

    `headers` are pairs of name and converted value, in the record's order.

    Class attributes:
        java_name: the class name that configurations use; the entry point's name, where the class states none.
        version: shown by ``GET /connector-plugins``; the distribution's, where the class states none.
        open_prefixes: optional; beginnings of properties that are passed on to other converters, such as ``json.``.
    """

    java_name: ClassVar[str]
    version: ClassVar[str]

    @classmethod
    def config_def(cls) -> ConfigDef:
        """Return every property, without prefix."""
        return ConfigDef()

    def configure(self, config: Mapping[str, str], *, is_key: bool) -> None:
        """Take properties, prefix stripped. Raises ConfigError."""

    def from_connect_data(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """Serialise; None is a tombstone's value or a missing key.

        Args:
            schema: None for data without one.
            value: of the Python type that `connect_py.data.Struct` names for the schema.

        Raises:
            DataError: the format cannot hold it; ``errors.tolerance`` decides.
            RetriableError: what the format needs, such as a registry, does not answer now.
        """
        ...

    def to_connect_data(self, topic: str, data: bytes | None) -> tuple[Schema | None, Any]:
        """Deserialise into (schema, value). Raises as `from_connect_data`."""
        ...


class HeaderConverter(Protocol):
    """Headers of records. What is not said here is as with `Converter`; one class may be both."""

    java_name: ClassVar[str]
    version: ClassVar[str]

    @classmethod
    def config_def(cls) -> ConfigDef:
        """Return every property, without prefix."""
        return ConfigDef()

    def configure(self, config: Mapping[str, str]) -> None:
        """Take properties, prefix stripped. Raises ConfigError."""

    def from_connect_header(self, topic: str, name: str, schema: Schema | None, value: Any) -> bytes | None:
        """Serialise one header. Raises DataError."""
        ...

    def to_connect_header(self, topic: str, name: str, data: bytes | None) -> tuple[Schema | None, Any]:
        """Deserialise one header. Raises DataError."""
        ...
