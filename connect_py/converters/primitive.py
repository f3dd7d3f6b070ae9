"""Convert single values: texts, numbers, booleans and bytes.

- `StringConverter` (`org.apache.kafka.connect.storage`) writes anything as its text and never parses.
- `ShortConverter` … `BooleanConverter` (`org.apache.kafka.connect.converters`) write fixed-width big-endian bytes.
- `ByteArrayConverter` (`org.apache.kafka.connect.converters`) leaves bytes as they are.
- `SimpleHeaderConverter` (`org.apache.kafka.connect.storage`) writes headers as texts whose types are inferred when they are read.
- `BinaryDataConverter` and `DebeziumByteArrayConverter` (Debezium's `ByteArrayConverter.java`) leave bytes as they are and give everything
  else to another converter. The outbox pattern uses them: payloads are bytes that some service has serialised already, while heartbeats and
  transaction metadata, which go through the same converter, are structs.
"""

from __future__ import annotations

import codecs
import struct
from collections.abc import Mapping
from typing import Any, ClassVar

from connect_py.api.config import ConfigDef, ConfigKey, ConfigType, Importance, Width
from connect_py.converters.base import CONVERTER_TYPE, HeadersLikeData
from connect_py.data import OPTIONAL_BYTES, Schema, Type, values
from connect_py.data.java_text import java_class, to_text
from connect_py.data.schema import OPTIONAL_STRING
from connect_py.errors import ConfigError, ConnectError, DataError


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
        """Return the converter's type alone."""
        return ConfigDef((CONVERTER_TYPE,))

    def configure(self, config: Mapping[str, str], *, is_key: bool = False) -> None:
        """There is nothing to set."""

    def from_connect_data(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """Return the value's bytes; None stays None. Raises DataError."""
        return None if value is None else self._pack(value)

    def to_connect_data(self, topic: str, data: bytes | None) -> tuple[Schema | None, Any]:
        """Return the value. Raises DataError for another number of bytes."""
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
        """Return the byte. Raises DataError for anything but a boolean."""
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


class StringConverter(HeadersLikeData):
    """Converts keys, values and headers."""

    java_name = "org.apache.kafka.connect.storage.StringConverter"
    version = "4.3.1"

    def __init__(self) -> None:
        self.encoding = "UTF-8"

    @classmethod
    def config_def(cls) -> ConfigDef:
        """Return the converter's type and its encoding."""
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
        """Return the value's Java text, encoded; None stays None. Raises DataError when the character set cannot hold it."""
        try:
            return None if value is None else to_text(schema, value).encode(self.encoding)
        except UnicodeEncodeError as error:
            raise DataError(f"Failed to serialize to a string: {error.reason} ({self.encoding})") from None

    def to_connect_data(self, topic: str, data: bytes | None) -> tuple[Schema | None, Any]:
        """Return an optional string. Raises DataError."""
        try:
            return OPTIONAL_STRING, None if data is None else data.decode(self.encoding)
        except UnicodeDecodeError as error:
            raise DataError(f"Failed to deserialize string: {error.reason} ({self.encoding})") from None


class ByteArrayConverter(HeadersLikeData):
    """Converts keys, values and headers that are bytes already."""

    java_name = "org.apache.kafka.connect.converters.ByteArrayConverter"
    version = "4.3.1"

    @classmethod
    def config_def(cls) -> ConfigDef:
        """Return the converter's type alone."""
        return ConfigDef((CONVERTER_TYPE,))

    def configure(self, config: Mapping[str, str], *, is_key: bool = False) -> None:
        """There is nothing to set."""

    def from_connect_data(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """Return the bytes. Raises DataError for anything else."""
        if schema is not None and schema.type is not Type.BYTES:
            raise DataError(f"Invalid schema type for ByteArrayConverter: {schema.type.name}")
        if value is not None and not isinstance(value, bytes | bytearray | memoryview):
            raise DataError(f"ByteArrayConverter is not compatible with objects of type {java_class(value)}")
        return None if value is None else bytes(value)

    def to_connect_data(self, topic: str, data: bytes | None) -> tuple[Schema | None, Any]:
        """Return optional bytes."""
        return OPTIONAL_BYTES, data


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
        """Return the value's text. Raises DataError."""
        if value is None:
            return None
        try:
            return values.to_text(schema, value).encode()
        except UnicodeEncodeError:
            raise DataError(f"The header '{name}' on topic '{topic}' holds half a surrogate pair, which UTF-8 cannot write") from None

    def to_connect_header(self, topic: str, name: str, data: bytes | None) -> tuple[Schema | None, Any]:
        """Return the inferred value; bytes that are no UTF-8 are read with replacement characters, as Java does."""
        return (None, None) if data is None else tuple(values.parse(data.decode(errors="replace")))


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
        """Return the delegate; its own properties follow below its name (``delegate.converter.type.schemas.enable``)."""
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
        """Return the bytes, or what the delegate makes. Raises DataError where there is none."""
        is_other = schema is not None and schema.type is not Type.BYTES
        if not is_other and (value is None or isinstance(value, bytes | bytearray | memoryview)):
            return None if value is None else bytes(value)
        if self._delegate is None:
            raise DataError(f"A {topic} of type '{'null' if value is None else value}' requires a {DELEGATE} to be configured")
        written: bytes | None = self._delegate.from_connect_data(topic, schema, value)
        return written

    def to_connect_data(self, topic: str, data: bytes | None) -> tuple[Schema | None, Any]:
        """Return optional bytes."""
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
