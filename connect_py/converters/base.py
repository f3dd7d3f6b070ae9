"""What converters share: the property that every one has (`org.apache.kafka.connect.storage.ConverterConfig`), headers like data, and what
is refused of a value that its schema does not describe, in Connect's words.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

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


#: A row of JSON to what a converter makes of it, None for a null. Raises NeedsRecord for what only `from_connect_data` can judge.
RowWriter = Callable[[bytes], bytes | None]


class RowConverter(Protocol):
    """What a converter may offer in addition: to write rows as a connector serialised them (`connect_py.data.json_rows`).

    Attributes:
        handles_rows: whether the configuration lets it. Nulls that have a default are written as that default in these rows.
        numeric_decimals: whether rows must have decimals as numbers, else in base64.
    """

    @property
    def handles_rows(self) -> bool: ...

    @property
    def numeric_decimals(self) -> bool: ...

    def row_writer(self, topic: str, schema: Schema) -> RowWriter:
        """Return the function of a topic's rows; a row that is a null with a schema is the text ``null``.

        Both raise DataError or ValueError where only `from_connect_data` can tell, or fail, and RetriableError where a registry does not
        answer: the batch then goes that way, record by record.
        """
        ...


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
