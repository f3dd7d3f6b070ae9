"""A custom converter and a post-processor of database connectors: what changes columns, and events, before they leave the source."""

from __future__ import annotations

from collections.abc import Mapping

from connect_py.api import Conversion, ConvertedColumn, CustomConverter, PostProcessor
from connect_py.data import INT64, Struct
from connect_py.errors import ConfigError


class IsbnConverter(CustomConverter):
    """ISBNs, which the database keeps as texts with hyphens, as numbers. ``column``: which columns hold some, by name."""

    def configure(self, properties: Mapping[str, str]) -> None:
        """Take properties, without the alias."""
        self._column = properties.get("column", "").strip()
        if not self._column:
            raise ConfigError("column must say which columns hold ISBNs")

    def converter_for(self, column: ConvertedColumn) -> Conversion | None:
        """Columns of that name; None leaves a column to the connector."""
        if column.name != self._column:
            return None
        return Conversion(INT64, lambda text: None if text is None else int(text.replace("-", "")))


class InitialsProcessor(PostProcessor):
    """Shows persons by their initials. ``field``: of the row."""

    def configure(self, properties: Mapping[str, str]) -> None:
        """Take properties, without the alias."""
        self._field = properties.get("field", "name")

    def apply(self, key: Struct | None, value: Struct) -> None:
        """Changes the row before and after the event."""
        for state in ("before", "after"):
            row = value[state]
            if row is not None and row[self._field]:
                row[self._field] = "".join(word[0] for word in row[self._field].split())
