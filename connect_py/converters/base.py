"""What converters share: the property that every one has (`org.apache.kafka.connect.storage.ConverterConfig`), headers like data, and what
is refused of a value that its schema does not describe, in Connect's words.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Final

from connect_py.api.config import ConfigKey, ConfigType, Importance, one_of
from connect_py.data import Schema, Struct, Type
from connect_py.data.java_text import java_class
from connect_py.errors import DataError

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


#: Bits of integers by their type, without the sign.
BITS: Final[Mapping[Type, int]] = {Type.INT8: 7, Type.INT16: 15, Type.INT32: 31, Type.INT64: 63}


def wrong_type(schema: Schema, value: Any) -> DataError:
    """Return the refusal of a value that is not of its schema's type."""
    return DataError(f"Invalid type for {schema.type.name}: {java_class(value)}")


def wrong_logical(name: str, value: Any) -> DataError:
    """Return the refusal of a value that is not of its logical type, such as `Date`."""
    return DataError(f"Invalid type for {name}, expected {'BigDecimal' if name == 'Decimal' else 'Date'} but was {java_class(value)}")


def struct_values(schema: Schema, value: Any, mismatch: str = "Mismatching struct schema") -> list[Any]:
    """Return the values of a struct. Raises DataError: it is none, or has another schema."""
    if not isinstance(value, Struct):
        raise wrong_type(schema, value)
    if value.schema is not schema and value.schema != schema:
        raise DataError(mismatch)
    return value.values
