"""Records as Protobuf with a schema registry (`io.confluent.connect.protobuf.ProtobufConverter`).

Google's library is imported when a converter is configured: processes without Protobuf are spared it.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from connect_py.converters.protobuf.options import KEYS, ProtobufOptions
from connect_py.converters.registry.client import RegistrySchema
from connect_py.converters.registry.converter import Encode, Readable, RegistryConverter, Written
from connect_py.converters.registry.wire import HEADER_SIZE, read_message_indexes
from connect_py.data import Schema
from connect_py.errors import ConfigError
from connect_py.extras import install_command


class ProtobufConverter(RegistryConverter):
    """Converts keys and values. One thread uses an instance."""

    java_name = "io.confluent.connect.protobuf.ProtobufConverter"
    kind = "PROTOBUF"
    keys = KEYS

    def use(self, values: Mapping[str, Any]) -> None:
        """Take the format's own properties. Raises ConfigError when a Python package is missing."""
        try:
            format_ = importlib.import_module("connect_py.converters.protobuf.format")
        except ImportError as error:
            raise ConfigError(
                f"ProtobufConverter needs the Python package '{error.name}'. Install it with: {install_command('protobuf')}"
            ) from None
        self._format = format_.ProtobufFormat(ProtobufOptions.of(values), self._registry, self.version_in_registry)

    def written(self, schema: Schema | None) -> Written:
        """Return the Protobuf file of a Connect schema, and the function that writes its values."""
        return self._format.written(schema)  # type: ignore[no-any-return]

    def encoder_for(self, schema: Schema | None, registered: RegistrySchema) -> Encode:
        """Return the function that writes values with the subject's latest schema."""
        return self._format.encoder_for(schema, registered)  # type: ignore[no-any-return]

    def prefix(self, schema: RegistrySchema, written: Written) -> bytes:
        """Return the path to the message's type."""
        return self._format.prefix(schema, written)  # type: ignore[no-any-return]

    def selector(self, data: bytes) -> tuple[bytes, int]:
        """Return the path to the message's type, and where the message begins."""
        if data[HEADER_SIZE : HEADER_SIZE + 1] == b"\0":
            return b"\0", HEADER_SIZE + 1
        _, end = read_message_indexes(data, HEADER_SIZE)
        return data[HEADER_SIZE:end], end

    def readable(self, topic: str, registered: RegistrySchema, selector: bytes) -> Readable:
        """Return the Connect schema of a message type, and the function that reads its messages."""
        return self._format.readable(topic, registered, selector)  # type: ignore[no-any-return]
