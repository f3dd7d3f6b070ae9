"""Numbers and booleans as fixed-width big-endian bytes (`org.apache.kafka.connect.converters.{Short,…,Boolean}Converter`)."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, ClassVar

from connect_py.api.config import ConfigDef
from connect_py.converters.types import CONVERTER_TYPE
from connect_py.data import Schema, Type
from connect_py.data.java_classes import java_class
from connect_py.errors import ConnectError, DataError


class _Fixed:
    """One value in a fixed number of bytes; what the subclasses share.

    Class attributes:
        kind: the type's Java name, for messages.
        reader: the name of Java's deserializer, for messages.
        layout: how the bytes lie.
        schema: what reading gives; a null is allowed.
    """

    java_name: ClassVar[str]
    version: ClassVar[str] = "4.3.1"
    kind: ClassVar[str]
    reader: ClassVar[str]
    layout: ClassVar[struct.Struct]
    schema: ClassVar[Schema]

    @classmethod
    def config_def(cls) -> ConfigDef:
        """The converter's type alone."""
        return ConfigDef((CONVERTER_TYPE,))

    def configure(self, config: Mapping[str, str], *, is_key: bool = False) -> None:
        """There is nothing to set."""

    def from_connect_data(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """The value's bytes; None stays None. Raises DataError."""
        return None if value is None else self._pack(value)

    def to_connect_data(self, topic: str, data: bytes | None) -> tuple[Schema | None, Any]:
        """The value. Raises DataError for another number of bytes."""
        if data is None:
            return self.schema, None
        if len(data) != self.layout.size:
            raise self._unreadable(f"Size of data received by {self.reader} is not {self.layout.size}")
        return self.schema, self._unpack(data)

    def from_connect_header(self, topic: str, name: str, schema: Schema | None, value: Any) -> bytes | None:
        """As `from_connect_data`."""
        return self.from_connect_data(topic, schema, value)

    def to_connect_header(self, topic: str, name: str, data: bytes | None) -> tuple[Schema | None, Any]:
        """As `to_connect_data`."""
        return self.to_connect_data(topic, data)

    def _pack(self, value: Any) -> bytes:
        try:
            if isinstance(value, bool):
                raise TypeError
            return self.layout.pack(value)
        except (struct.error, TypeError, OverflowError):
            if isinstance(value, int | float) and not isinstance(value, bool):
                raise DataError(f"Failed to serialize to {self.kind}: {value} is none") from None
            cause = ConnectError(f"{java_class(value)} cannot be cast to class java.lang.Number")
            cause.java_name = "java.lang.ClassCastException"
            raise DataError(f"Failed to serialize to {self.kind} (was {java_class(value)}): {cause}") from cause

    def _unpack(self, data: bytes) -> Any:
        return self.layout.unpack(data)[0]

    def _unreadable(self, why: str) -> DataError:
        cause = ConnectError(why)
        cause.java_name = "org.apache.kafka.common.errors.SerializationException"
        error = DataError(f"Failed to deserialize {self.kind}: {cause}")
        error.__cause__ = cause
        return error


class ShortConverter(_Fixed):
    """16-bit integers."""

    java_name = "org.apache.kafka.connect.converters.ShortConverter"
    kind, reader, layout, schema = "short", "ShortDeserializer", struct.Struct(">h"), Schema(Type.INT16, optional=True)


class IntegerConverter(_Fixed):
    """32-bit integers."""

    java_name = "org.apache.kafka.connect.converters.IntegerConverter"
    kind, reader, layout, schema = "integer", "IntegerDeserializer", struct.Struct(">i"), Schema(Type.INT32, optional=True)


class LongConverter(_Fixed):
    """64-bit integers."""

    java_name = "org.apache.kafka.connect.converters.LongConverter"
    kind, reader, layout, schema = "long", "LongDeserializer", struct.Struct(">q"), Schema(Type.INT64, optional=True)


class FloatConverter(_Fixed):
    """32-bit floats."""

    java_name = "org.apache.kafka.connect.converters.FloatConverter"
    kind, reader, layout, schema = "float", "Deserializer", struct.Struct(">f"), Schema(Type.FLOAT32, optional=True)


class DoubleConverter(_Fixed):
    """64-bit floats."""

    java_name = "org.apache.kafka.connect.converters.DoubleConverter"
    kind, reader, layout, schema = "double", "Deserializer", struct.Struct(">d"), Schema(Type.FLOAT64, optional=True)


class BooleanConverter(_Fixed):
    """One byte, 0 or 1."""

    java_name = "org.apache.kafka.connect.converters.BooleanConverter"
    kind, reader, layout, schema = "boolean", "BooleanDeserializer", struct.Struct(">?"), Schema(Type.BOOLEAN, optional=True)

    def from_connect_data(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """The byte. Raises DataError for anything but a boolean."""
        if schema is not None and schema.type is not Type.BOOLEAN:
            raise DataError(f"Invalid schema type for BooleanConverter: {schema.type.name}")
        return super().from_connect_data(topic, schema, value)

    def _pack(self, value: Any) -> bytes:
        if not isinstance(value, bool):
            raise DataError(f"BooleanConverter is not compatible with objects of type {java_class(value)}")
        return self.layout.pack(value)

    def _unpack(self, data: bytes) -> bool:
        if data not in (b"\0", b"\1"):
            raise self._unreadable(f"Unexpected byte received by BooleanDeserializer: {data[0]}")
        return data == b"\1"
