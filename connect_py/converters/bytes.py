"""Bytes as they are (`org.apache.kafka.connect.converters.ByteArrayConverter`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from connect_py.api.config import ConfigDef
from connect_py.converters.types import CONVERTER_TYPE, HeadersLikeData
from connect_py.data import Schema, Type
from connect_py.data.java_classes import java_class
from connect_py.data.schema import OPTIONAL_BYTES
from connect_py.errors import DataError


class ByteArrayConverter(HeadersLikeData):
    """Converts keys, values and headers that are bytes already."""

    java_name = "org.apache.kafka.connect.converters.ByteArrayConverter"
    version = "4.3.1"

    @classmethod
    def config_def(cls) -> ConfigDef:
        """The converter's type alone."""
        return ConfigDef((CONVERTER_TYPE,))

    def configure(self, config: Mapping[str, str], *, is_key: bool = False) -> None:
        """There is nothing to set."""

    def from_connect_data(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """The bytes. Raises DataError for anything else."""
        if schema is not None and schema.type is not Type.BYTES:
            raise DataError(f"Invalid schema type for ByteArrayConverter: {schema.type.name}")
        if value is not None and not isinstance(value, bytes | bytearray | memoryview):
            raise DataError(f"ByteArrayConverter is not compatible with objects of type {java_class(value)}")
        return None if value is None else bytes(value)

    def to_connect_data(self, topic: str, data: bytes | None) -> tuple[Schema | None, Any]:
        """Optional bytes."""
        return OPTIONAL_BYTES, data
