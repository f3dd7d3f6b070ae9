"""Bytes as they are, and another converter for everything else (Debezium's `BinaryDataConverter.java`, `ByteArrayConverter.java`).

The outbox pattern uses it: payloads are bytes that some service has serialised already, while heartbeats and transaction metadata, which go
through the same converter, are structs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from connect_py.api.config import ConfigDef, ConfigKey, ConfigType, Importance
from connect_py.converters.types import CONVERTER_TYPE
from connect_py.data import OPTIONAL_BYTES, Schema, Type
from connect_py.errors import ConfigError, DataError

DELEGATE = "delegate.converter.type"


class BinaryDataConverter:
    """Converts keys, values and headers; the delegate is asked for keys and values only, as in Java."""

    java_name = "io.debezium.converters.BinaryDataConverter"
    version = "3.6.1.Final"
    open_prefixes = (f"{DELEGATE}.",)

    def __init__(self) -> None:
        self._delegate: Any = None

    @classmethod
    def config_def(cls) -> ConfigDef:
        """The delegate; its own properties follow below its name (``delegate.converter.type.schemas.enable``)."""
        text = "Specifies the delegate converter class"
        return ConfigDef((CONVERTER_TYPE, ConfigKey(DELEGATE, ConfigType.STRING, None, Importance.LOW, text, display_name=DELEGATE)))

    def configure(self, config: Mapping[str, str], *, is_key: bool | None = None) -> None:
        """Make the delegate. Raises ConfigError when there is no such converter."""
        name = config.get(DELEGATE)
        if name is None or is_key is None:
            return
        from importlib.metadata import entry_points  # dear to import, and seldom needed

        found = next(iter(entry_points(group="connect_py.plugins", name=name.strip())), None)
        made: Any = found.load()() if found is not None else None
        if not hasattr(made, "from_connect_data"):
            raise ConfigError(f"Invalid value {name} for configuration {DELEGATE}: there is no converter of this class name")
        prefix = f"{DELEGATE}."
        made.configure({key.removeprefix(prefix): value for key, value in config.items() if key.startswith(prefix)}, is_key=is_key)
        self._delegate = made

    def from_connect_data(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """The bytes, or what the delegate makes. Raises DataError where there is none."""
        is_other = schema is not None and schema.type is not Type.BYTES
        if not is_other and (value is None or isinstance(value, bytes | bytearray | memoryview)):
            return None if value is None else bytes(value)
        if self._delegate is None:
            raise DataError(f"A {topic} of type '{'null' if value is None else value}' requires a {DELEGATE} to be configured")
        written: bytes | None = self._delegate.from_connect_data(topic, schema, value)
        return written

    def to_connect_data(self, topic: str, data: bytes | None) -> tuple[Schema | None, Any]:
        """Optional bytes."""
        return OPTIONAL_BYTES, data

    def from_connect_header(self, topic: str, name: str, schema: Schema | None, value: Any) -> bytes | None:
        """As `from_connect_data`, without a delegate."""
        return self.from_connect_data(topic, schema, value)

    def to_connect_header(self, topic: str, name: str, data: bytes | None) -> tuple[Schema | None, Any]:
        """As `to_connect_data`."""
        return self.to_connect_data(topic, data)


class DebeziumByteArrayConverter(BinaryDataConverter):
    """The older name of `BinaryDataConverter`."""

    java_name = "io.debezium.converters.ByteArrayConverter"
