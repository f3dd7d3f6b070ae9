"""Numbers and booleans as fixed-width big-endian bytes (`org.apache.kafka.connect.converters.{Short,…,Boolean}Converter`)."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, ClassVar

from connect_py.api.config import ConfigDef
from connect_py.converters.types import CONVERTER_TYPE, HeadersLikeData
from connect_py.data import Schema, Type
from connect_py.data.java_classes import java_class
from connect_py.errors import ConnectError, DataError


class _Fixed(HeadersLikeData):
    """One value in a fixed number of bytes; what the subclasses share.

    Args (of a subclass):
        layout: how the bytes lie, as `struct` says it.
        type_: what reading gives; a null is allowed.
    """

    java_name: ClassVar[str]
    version: ClassVar[str] = "4.3.1"
    kind: ClassVar[str]
    layout: ClassVar[struct.Struct]
    schema: ClassVar[Schema]

    def __init_subclass__(cls, *, layout: str, type_: Type) -> None:
        cls.java_name = f"org.apache.kafka.connect.converters.{cls.__name__}"
        cls.kind = cls.__name__.removesuffix("Converter").lower()
        cls.layout = struct.Struct(layout)
        cls.schema = Schema(type_, optional=True)

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
            reader = "Deserializer" if self.schema.type in (Type.FLOAT32, Type.FLOAT64) else f"{self.kind.capitalize()}Deserializer"
            raise self._unreadable(f"Size of data received by {reader} is not {self.layout.size}")
        return self.schema, self._unpack(data)

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


class ShortConverter(_Fixed, layout=">h", type_=Type.INT16):
    """16-bit integers."""


class IntegerConverter(_Fixed, layout=">i", type_=Type.INT32):
    """32-bit integers."""


class LongConverter(_Fixed, layout=">q", type_=Type.INT64):
    """64-bit integers."""


class FloatConverter(_Fixed, layout=">f", type_=Type.FLOAT32):
    """32-bit floats."""


class DoubleConverter(_Fixed, layout=">d", type_=Type.FLOAT64):
    """64-bit floats."""


class BooleanConverter(_Fixed, layout=">?", type_=Type.BOOLEAN):
    """One byte, 0 or 1."""

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
