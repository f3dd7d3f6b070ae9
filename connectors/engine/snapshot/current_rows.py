"""The current rows of tables, read by key outside of any stream, to compare them with what was made of the stream.

Rows are those of an incremental snapshot, so that every setting of the connector holds for them: columns, masks, types, keys, topics.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Protocol

from connect_py.api.record import EncodedRow, JsonEncoding
from connectors.engine.java_object import StoredKey

#: How rows are written: schemas are in their routes, decimals are exact, and nulls stay nulls.
SCAN_ENCODING = JsonEncoding(key_schemas=False, value_schemas=False, nulls_as_defaults=False)


class TableScan(Protocol):
    """Reads tables. Used by one thread; every method raises ConnectError, RetriableError for what passes."""

    def names(self) -> Sequence[str]:
        """Return the captured tables that exist, as `table.include.list` and the like name them."""
        ...

    def topic(self, name: str) -> str:
        """Return the topic to which the connector writes a table's events."""
        ...

    def source(self, name: str) -> Mapping[str, str]:
        """Return what identifies a table in its events' source block: `db`, `schema`, `table`, `collection`, `name`."""
        ...

    def maximum(self, name: str) -> StoredKey | None:
        """Return the current largest key; None of an empty table. Raises NoKeyError."""
        ...

    def read(self, name: str, after: StoredKey | None, until: StoredKey, limit: int) -> tuple[list[EncodedRow], StoredKey | None]:
        """Read rows after `after` up to `until`, and the key of the last one; from the beginning, regardless of `until`, without `after`.

        Rows are events of op `r`.
        """
        ...

    def scan(self, name: str) -> Generator[list[EncodedRow]]:
        """Read all rows of one consistent snapshot, in no order, for tables without a key. If you do not read to the end, close it."""
        ...

    def close(self) -> None:
        """Close connections."""
        ...
