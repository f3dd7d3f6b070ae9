"""The change event's envelope: schemas, and the parts of its JSON that many rows share.

Rules: debezium-common.md §1.1 and §1.2, `io.debezium.data.Envelope`. A value's payload is `{"before":…,"after":…,"source":…,` followed by
what `tail` gives; all three timestamps of a tail come from one instant.
"""

from __future__ import annotations

from connect_py.data import Schema, Type
from connect_py.data.schema import INT64, OPTIONAL_INT64, STRING, struct

#: Position and order of an event inside its transaction; its name is not subject to name adjustment.
TRANSACTION_SCHEMA = struct(
    [("id", STRING), ("total_order", INT64), ("data_collection_order", INT64)], optional=True, name="event.block", version=1
)


def row_schema(schema_name: str, fields: list[tuple[str, Schema]]) -> Schema:
    """Schema of `before` and `after`; `schema_name` is the adjusted name of the topic."""
    return struct(fields, optional=True, name=f"{schema_name}.Value")


def key_schema(schema_name: str, fields: list[tuple[str, Schema]]) -> Schema | None:
    """Schema of keys, None where no column is part of a key."""
    return struct(fields, name=f"{schema_name}.Key") if fields else None


def envelope_schema(schema_name: str, row: Schema, source: Schema) -> Schema:
    """Schema of values, version 2 (since Debezium 2.6)."""
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
    """The end of a payload, from `"transaction"` on, closing brace included.

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
