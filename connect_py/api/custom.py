"""What changes single columns or whole events inside a database connector: custom converters and post-processors
(`io.debezium.spi.converter`, `io.debezium.processors.spi`). Packages offer them as entry points of the groups
``connect_py.custom_converters`` and ``connect_py.post_processors`` (docs/plugins.md)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from connect_py.data import Schema, Struct


@dataclass(frozen=True, slots=True)
class ConvertedColumn:
    """A column that a converter is asked about (`RelationalColumn`).

    Attributes:
        data_collection: the table, ``schema.table`` or ``database.table``.
        type_name: the database's name of the type: ``int4`` and ``varchar`` of PostgreSQL, ``TINYINT UNSIGNED`` of MySQL.
        length: characters, digits or bits; None where the type has none.
        scale: digits of a fraction; None where the type has none.
        optional: whether NULL is a value.
        default: the default's text as the database writes values; None without one, where it is an expression, and where it is none to the
            connector, as a date of zeros.
        charset: of character data in MySQL.
    """

    name: str
    data_collection: str
    type_name: str
    length: int | None = None
    scale: int | None = None
    optional: bool = True
    default: str | None = None
    charset: str | None = None


@dataclass(frozen=True, slots=True)
class Conversion:
    """How a converter writes a column.

    Attributes:
        schema: of the field; the connector makes it optional where the column is, and gives it the column's default. One that is optional
            stays so whatever the column is.
        convert: from the value as the database writes it in texts (None is NULL) to a value of the schema. Raise ValueError for a value
            that has none: it is written as null, or fails the task, as ``event.converting.failure.handling.mode`` says.
        default: from the text of the column's default to that of the field, where it is another than `convert` makes; None for a field
            without. Not called for a column without a default.
    """

    schema: Schema
    convert: Callable[[str | None], Any]
    default: Callable[[str], Any] | None = None


class CustomConverter(ABC):
    """Decides about columns; made once a task."""

    def configure(self, properties: Mapping[str, str]) -> None:  # noqa: B027  # not every converter has properties
        """Take the properties below the converter's alias, without it. Raises ConfigError."""

    @abstractmethod
    def converter_for(self, column: ConvertedColumn) -> Conversion | None:
        """How this column is written; None leaves it to the next converter, or to the connector. Asked once a structure of a table."""


class PostProcessor(ABC):
    """Changes events before they leave the connector; made once a task, called by one thread."""

    def configure(self, properties: Mapping[str, str]) -> None:  # noqa: B027
        """Take the properties below the post-processor's alias, without it. Raises ConfigError."""

    @abstractmethod
    def apply(self, key: Struct | None, value: Struct) -> None:
        """Change an event in place. Its schema stays as it is; tombstones are not shown. Raises DataError: it cannot be processed."""

    def close(self) -> None:  # noqa: B027
        """Free everything."""
