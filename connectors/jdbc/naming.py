"""Names of tables and columns, and which fields are written (`io.debezium.sink.naming`, `FieldFilterFactory.java`). Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from connect_py.errors import DataError

DEFAULT_TABLES: Final = "io.debezium.sink.naming.DefaultCollectionNamingStrategy"
PASSTHROUGH: Final = "io.debezium.sink.naming.PassthroughCollectionNamingStrategy"
OLD_TABLES: Final = "io.debezium.connector.jdbc.naming.DefaultTableNamingStrategy"
DEFAULT_COLUMNS: Final = "io.debezium.connector.jdbc.naming.DefaultColumnNamingStrategy"
SINK_COLUMNS: Final = "io.debezium.sink.naming.DefaultColumnNamingStrategy"


class TableId(NamedTuple):
    """A table's name; the empty space is the connection's own (PostgreSQL's schema, MySQL's database)."""

    space: str
    name: str

    @property
    def shown(self) -> str:
        """As it appears in messages."""
        return f"{self.space}.{self.name}" if self.space else self.name


def table_id(name: str) -> TableId:
    """Divide a name at its dots, but for those between quotes (`io.debezium.relational.TableId.parseParts`).

    Of three parts the first, a database, is left out: a connection writes into one. Raises DataError for another number of parts.
    """
    parts, current, quote = [], "", ""
    for character in name:
        if quote:
            if character == quote:
                quote = ""
            else:
                current += character
        elif character in "\"'`":
            quote = character
        elif character == ".":
            parts.append(current)
            current = ""
        else:
            current += character
    parts.append(current)
    if len(parts) > 3 or not all(parts) or quote:
        raise DataError(f"Failed to parse table name into TableId: {name}")
    return TableId(parts[-2] if len(parts) > 1 else "", parts[-1])


def field_filter(include: str, exclude: str) -> Callable[[str, str], bool]:
    """Return the function that says whether a field of a topic is written; entries are ``field`` or ``topic:field``."""
    if exclude.strip():
        listed = _entries(exclude)
        return lambda topic, field: ("", field) not in listed and (topic, field) not in listed
    if include.strip():
        listed = _entries(include)
        return lambda topic, field: ("", field) in listed or (topic, field) in listed
    return lambda topic, field: True


def _entries(text: str) -> frozenset[tuple[str, str]]:
    found = set()
    for entry in text.split(","):
        parts = [part.strip() for part in entry.strip().split(":")]
        if len(parts) == 1 and parts[0]:
            found.add(("", parts[0]))
        elif len(parts) == 2:
            found.add((parts[0], parts[1]))
    return frozenset(found)
