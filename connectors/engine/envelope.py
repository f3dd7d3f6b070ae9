"""The change event's envelope (`io.debezium.data.Envelope`): schemas, the parts of its JSON that many rows share, the fields of the
`source` block that all relational connectors have, and the records of a row whose key an update changed.

A value's payload is `{"before":…,"after":…,"source":…,` followed by what `tail` returns; all three timestamps of a tail come from one
instant. A connector's source block has the common fields first and its own after them; its JSON text is built from parts that are rendered
once.
"""

from __future__ import annotations

from dataclasses import dataclass

from connect_py.api import Route
from connect_py.api.record import EncodedRow, KeyText
from connect_py.data import Schema, Type
from connect_py.data.schema import INT64, OPTIONAL_INT64, OPTIONAL_STRING, STRING, struct

#: Position and order of an event inside its transaction; its name is not subject to name adjustment.
TRANSACTION_SCHEMA = struct(
    [("id", STRING), ("total_order", INT64), ("data_collection_order", INT64)], optional=True, name="event.block", version=1
)


def row_schema(schema_name: str, fields: list[tuple[str, Schema]]) -> Schema:
    """Return the schema of `before` and `after`; `schema_name` is the adjusted name of the topic."""
    return struct(fields, optional=True, name=f"{schema_name}.Value")


def key_schema(schema_name: str, fields: list[tuple[str, Schema]]) -> Schema | None:
    """Return the schema of keys, None where no column is part of a key."""
    return struct(fields, name=f"{schema_name}.Key") if fields else None


def envelope_schema(schema_name: str, row: Schema, source: Schema) -> Schema:
    """Return the schema of values, version 2 (since Debezium 2.6)."""
    if row.type is not Type.STRUCT:
        raise ValueError(f"a row is a struct, not {row.type.value}")
    return struct(
        [
            ("before", row),
            ("after", row),
            ("source", source),
            ("transaction", TRANSACTION_SCHEMA),
            ("op", STRING),
            ("ts_ms", OPTIONAL_INT64),
            ("ts_us", OPTIONAL_INT64),
            ("ts_ns", OPTIONAL_INT64),
        ],
        name=f"{schema_name}.Envelope",
        version=2,
    )


def tail(op: str, now_ns: int, transaction: bytes = b"null") -> bytes:
    """Return the end of a payload, from `"transaction"` on, closing brace included.

    Args:
        op: r, c, u, d or t.
        now_ns: nanoseconds since 1970 at which the event is built.
        transaction: JSON text of the transaction block.
    """
    return b'"transaction":%b,"op":"%b","ts_ms":%d,"ts_us":%d,"ts_ns":%d}' % (
        transaction,
        op.encode(),
        now_ns // 1_000_000,
        now_ns // 1_000,
        now_ns,
    )


#: Whether, and where in a snapshot, a row was read. Unset while streaming, which reads as the default.
SNAPSHOT_SCHEMA = Schema(
    Type.STRING,
    optional=True,
    name="io.debezium.data.Enum",
    version=1,
    parameters=(("allowed", "true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"),),
    default="false",
)


def source_schema(connector: str, more: list[tuple[str, Schema]]) -> Schema:
    """Return the schema of a connector's block; `more` are its own fields, after the common ones."""
    return struct(
        [
            ("version", STRING),
            ("connector", STRING),
            ("name", STRING),
            ("ts_ms", INT64),
            ("snapshot", SNAPSHOT_SCHEMA),
            ("db", STRING),
            ("sequence", OPTIONAL_STRING),
            ("ts_us", OPTIONAL_INT64),
            ("ts_ns", OPTIONAL_INT64),
            *more,
        ],
        name=f"io.debezium.connector.{connector}.Source",
        version=1,
    )


@dataclass(frozen=True, slots=True)
class KeyChangeRecords:
    """Makes the records of a row whose key an update changed: the old one's delete and tombstone, then the new one's creation, each with a
    header that shows the other's key (`io.debezium.relational.RelationalChangeRecordEmitter`).

    Attributes:
        tombstones: whether a delete is followed by a null value.
        headers: those that all records have.
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
