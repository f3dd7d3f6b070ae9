"""The `source` block of events: the fields that all relational connectors share (debezium-common.md §1.4, §1.5).

A connector's block has the common fields first and its own after them. A block's JSON text is built from parts that are rendered once.
"""

from __future__ import annotations

from connect_py.data import Schema, Type
from connect_py.data.schema import INT64, OPTIONAL_INT64, OPTIONAL_STRING, STRING, struct

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
    """Schema of a connector's block; `more` are its own fields, after the common ones."""
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
