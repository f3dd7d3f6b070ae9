"""Custom converters of a connector: which there are, and the plan of a column that one of them converts (`CustomConverterRegistry.java`).

A converter is known by the name of its entry point; nothing of a configuration is imported. A column that no converter claims costs nothing
at run time, one that is converted costs the converter's own call.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from connect_py.api import Conversion, ConvertedColumn, CustomConverter
from connect_py.converters.json_read import has_decimals
from connect_py.converters.json_write import WriteOptions, payload_writer, quote
from connect_py.data import Type
from connect_py.errors import ConfigError, ConnectError
from connectors.engine.encode.plan import ColumnPlan, Unrepresentable
from connectors.engine.plugins.extensions import aliases, make_plugin, properties_below

log = logging.getLogger(__name__)

#: Entry points of packages that add converters. The name is what ``<alias>.type`` says, the value a `CustomConverter`.
ENTRY_POINTS: Final = "connect_py.custom_converters"


@dataclass(frozen=True)
class CustomConverters:
    """The converters of one connector, in the order in which they are asked."""

    converters: tuple[CustomConverter, ...] = ()

    @classmethod
    def parse(cls, config: Mapping[str, str]) -> CustomConverters:
        """Make what `converters` names.

        Raises:
            ConfigError: one is not installed, has no type, or refuses its properties.
        """
        found = []
        for alias in aliases(config.get("converters")):
            properties = properties_below(config, f"{alias}.")
            name = properties.get("type", "").strip()
            if not name:
                raise ConfigError(f"converters names {alias}, for which there is no {alias}.type")
            converter = make_plugin(ENTRY_POINTS, "custom converter", name, CustomConverter)
            converter.configure({key: text for key, text in properties.items() if key != "type"})
            found.append(converter)
        return cls(tuple(found))

    def plan(self, column: ConvertedColumn, placeholder: str) -> ColumnPlan | None:
        """Return the plan of a column that a converter claims; None leaves it to the connector.

        Args:
            placeholder: stands for a value that the database did not send, where texts can.

        Raises:
            ConfigError: a converter fails, or gives something else.
        """
        for converter in self.converters:
            try:
                conversion = converter.converter_for(column)
            except ConnectError:
                raise
            except Exception as error:
                raise ConfigError(
                    f"The converter {type(converter).__name__} failed for {column.data_collection}.{column.name}: {error}"
                ) from error
            if conversion is not None:
                return _plan(column, conversion, placeholder)
        return None


def _plan(column: ConvertedColumn, conversion: Conversion, placeholder: str) -> ColumnPlan:
    given = conversion.schema
    write = payload_writer(given, WriteOptions())
    null = _of_null(conversion.convert, write)
    schema = given.as_optional() if column.optional else given
    missing = null or ("null" if schema.optional else _nothing(given.type))
    written = _guarded(conversion.convert, write, missing)
    if column.default is not None:
        try:
            schema = schema.with_default((conversion.default or conversion.convert)(column.default))
        except Exception as error:  # noqa: BLE001  # a plugin may raise anything
            log.warning("The default of %s.%s has no form in the schema of its converter: %s", column.data_collection, column.name, error)
    numeric = None
    if has_decimals(given):
        numeric = _guarded(conversion.convert, payload_writer(given, WriteOptions(numeric_decimals=True)), missing)
    return ColumnPlan(
        name=column.name,
        schema=schema,
        convert=written,
        numeric=numeric,
        null=null,
        fallback=null or _nothing(given.type),
        placeholder=quote(placeholder) if given.type is Type.STRING else missing,
    )


def _guarded(convert: Callable[[str | None], object], write: Callable[[object], str], missing: str) -> Callable[[str], str]:
    """Treat everything that a plugin raises as this one value's failure; what it returns None for is `missing`."""

    def written(text: str) -> str:
        try:
            value = convert(text)
            return missing if value is None else write(value)
        except Exception as error:
            raise Unrepresentable(f"{type(error).__name__}: {error}") from error

    return written


def _of_null(convert: Callable[[str | None], object], write: Callable[[object], str]) -> str:
    """Return what a converter writes for NULL; empty when it leaves it null, or cannot convert it."""
    try:
        value = convert(None)
        return "" if value is None else write(value)
    except Exception as error:  # noqa: BLE001  # a plugin may raise anything
        log.debug("A converter has nothing for NULL: %s", error)
        return ""


def _nothing(type_: Type) -> str:
    match type_:
        case Type.BOOLEAN:
            return "false"
        case Type.STRING | Type.BYTES:
            return '""'
        case Type.ARRAY:
            return "[]"
        case Type.STRUCT | Type.MAP:
            return "{}"
    return "0"
