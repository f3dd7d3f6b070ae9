"""Records of a row whose key an update changed: the old one's delete and tombstone, then the new one's creation, each with a header that
shows the other's key (postgres.md §12.3; `io.debezium.relational.RelationalChangeRecordEmitter`)."""

from __future__ import annotations

from dataclasses import dataclass

from connect_py.api import Route
from connect_py.api.record import EncodedRow, KeyText


@dataclass(frozen=True, slots=True)
class MovedRows:
    """Makes them.

    Attributes:
        tombstones: whether a delete is followed by a null value.
        headers: of all records.
    """

    tombstones: bool
    headers: tuple[tuple[str, str], ...]

    def delete(self, rows: list[EncodedRow], route: Route, new_key: str, key: bytes | None, value: bytes) -> None:
        """Append the old row's. `new_key` is JSON text without schema, decimals as numbers."""
        to = self._route(route, "__debezium.newkey", new_key)
        rows.append((to, key, value))
        if self.tombstones:
            rows.append((to, key, None))

    def create(self, rows: list[EncodedRow], route: Route, old_key: str, key: bytes | None, value: bytes) -> None:
        """Append the new row's; see `delete`."""
        rows.append((self._route(route, "__debezium.oldkey", old_key), key, value))

    def _route(self, route: Route, name: str, key: str) -> Route:
        return Route(route.topic, route.key_schema, route.value_schema, ((name, KeyText(key)), *self.headers))
