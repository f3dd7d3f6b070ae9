"""Rows whose key an update changed: the old one's delete and tombstone, then the new one's creation (postgres.md §12.3)."""

from __future__ import annotations

from dataclasses import dataclass

from connect_py.api import Route
from connect_py.api.record import EncodedRow, KeyText
from connectors.postgres.encode.table import KeyChange


@dataclass(frozen=True, slots=True)
class MovedRows:
    """Makes their records.

    Attributes:
        skipped: operations of `skipped.operations`.
        tombstones: whether a delete is followed by a null value.
        headers: the context headers.
    """

    skipped: frozenset[str]
    tombstones: bool
    headers: tuple[tuple[str, str], ...]

    def add(self, rows: list[EncodedRow], route: Route, change: KeyChange) -> int:
        """Append a changed key's records; returns the bytes of their values. A header of each shows the other's key."""
        size = 0
        if "d" not in self.skipped:
            to = self._route(route, "__debezium.newkey", change.new_key_text)
            rows.append((to, change.old_key, change.delete_value))
            if self.tombstones:
                rows.append((to, change.old_key, None))
            size += len(change.delete_value)
        if "c" not in self.skipped:
            to = self._route(route, "__debezium.oldkey", change.old_key_text)
            rows.append((to, change.new_key, change.create_value))
            size += len(change.create_value)
        return size

    def _route(self, route: Route, name: str, key: str) -> Route:
        return Route(route.topic, route.key_schema, route.value_schema, ((name, KeyText(key)), *self.headers))
