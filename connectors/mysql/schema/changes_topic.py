"""Records of the schema change topic, whose name is the topic prefix, and the parts into which Debezium splits statements about several
tables. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from connect_py.api import JsonEncoding
from connect_py.api.record import EncodedRow, Route
from connect_py.converters.json_schema import schema_to_json
from connect_py.converters.json_write import WriteOptions, payload_writer
from connect_py.data import Schema, Type
from connect_py.data.schema import INT32, INT64, OPTIONAL_STRING, STRING, Struct, array, struct
from connectors.engine.relational.tables import TableId
from connectors.mysql.ddl.lexer import without_surroundings
from connectors.mysql.model import Change
from connectors.mysql.schema.history import quoted_id, table_to_json

_OPTIONAL_INT32 = INT32.as_optional()
_OPTIONAL_BOOLEAN = Schema(Type.BOOLEAN, optional=True)
_COLUMN = struct(
    [
        ("name", STRING),
        ("jdbcType", INT32),
        ("nativeType", _OPTIONAL_INT32),
        ("typeName", STRING),
        ("typeExpression", OPTIONAL_STRING),
        ("charsetName", OPTIONAL_STRING),
        ("length", _OPTIONAL_INT32),
        ("scale", _OPTIONAL_INT32),
        ("position", INT32),
        ("optional", _OPTIONAL_BOOLEAN),
        ("autoIncremented", _OPTIONAL_BOOLEAN),
        ("generated", _OPTIONAL_BOOLEAN),
        ("comment", OPTIONAL_STRING),
        ("defaultValueExpression", OPTIONAL_STRING),
        ("enumValues", array(STRING, optional=True)),
    ],
    name="io.debezium.connector.schema.Column",
    version=1,
)
_TABLE = struct(
    [
        ("defaultCharsetName", OPTIONAL_STRING),
        ("primaryKeyColumnNames", array(STRING, optional=True)),
        ("columns", array(_COLUMN)),
        ("comment", OPTIONAL_STRING),
    ],
    name="io.debezium.connector.schema.Table",
    version=1,
    optional=True,
)
_CHANGE = struct([("type", STRING), ("id", STRING), ("table", _TABLE)], name="io.debezium.connector.schema.Change", version=1)


class SchemaChangeRecords:
    """Makes the records.

    Args:
        topic: the prefix.
        connector: `mysql` or `mariadb`.
        source: schema of the source block.
    """

    def __init__(self, topic: str, connector: str, source: Schema, encoding: JsonEncoding, headers: tuple[tuple[str, str], ...]) -> None:
        name = f"io.debezium.connector.{connector}"
        self._key_schema = struct([("databaseName", STRING)], name=f"{name}.SchemaChangeKey", version=1)
        self._tail_schema = struct(
            [
                ("ts_ms", INT64),
                ("databaseName", OPTIONAL_STRING),
                ("schemaName", OPTIONAL_STRING),
                ("ddl", OPTIONAL_STRING),
                ("tableChanges", array(_CHANGE)),
            ]
        )
        value_schema = struct(
            [("source", source), *((field.name, field.schema) for field in self._tail_schema.fields)],
            name=f"{name}.SchemaChangeValue",
            version=1,
        )
        self._route = Route(topic, self._key_schema, value_schema, headers, partition=0)
        self._write_key = payload_writer(self._key_schema, WriteOptions())
        self._write_tail = payload_writer(self._tail_schema, WriteOptions())
        self._key_frame = _frame(self._key_schema, encoding.key_schemas)
        self._value_frame = _frame(value_schema, encoding.value_schemas)

    def row(
        self, source: bytes, ts_ms: int, database: str, ddl: str | None, changes: Sequence[Change], schema: str | None = None
    ) -> EncodedRow:
        """Make one record.

        Args:
            source: JSON text of the source block.
        """
        key = self._write_key(Struct(self._key_schema, [database])).encode()
        tail = self._write_tail(Struct(self._tail_schema, [ts_ms, database, schema, ddl, [_change(change) for change in changes]]))
        value = b'{"source":' + source + b"," + tail.encode()[1:]
        return self._route, _framed(self._key_frame, key), _framed(self._value_frame, value)


def _frame(schema: Schema, wanted: bool) -> tuple[bytes, bytes]:
    return (b'{"schema":' + schema_to_json(schema) + b',"payload":', b"}") if wanted else (b"", b"")


def _framed(frame: tuple[bytes, bytes], payload: bytes) -> bytes:
    return frame[0] + payload + frame[1]


def _change(change: Change) -> Struct:
    table = None
    if change.table is not None:
        found = table_to_json(change.table)
        columns = [_struct(_COLUMN, {**column, "enumValues": column["enumValues"] or None}) for column in found["columns"]]
        table = Struct(_TABLE, [found["defaultCharsetName"], found["primaryKeyColumnNames"], columns, change.table.comment])
    return Struct(_CHANGE, [change.kind, quoted_id(change.id), table])


def _struct(schema: Schema, fields: dict[str, Any]) -> Struct:
    return Struct(schema, [fields.get(field.name) for field in schema.fields])


#: A statement that gives a table a key; Debezium shows it without its first word.
_UNIQUE_INDEX = re.compile(r"^.*?\bCREATE\s+(?=UNIQUE\s+INDEX\b)", re.IGNORECASE | re.DOTALL)


def parts_of(
    sql: str, database: str, changes: Sequence[Change], *, has_new_parser: bool = True
) -> list[tuple[str, str, list[Change], list[str]]]:
    """Return a statement as (database, statement, changes of tables, names of tables for the source block), cut where it concerns several.

    Args:
        database: the default one, for statements that name none.
        has_new_parser: whether Debezium parses this server's statements by the grammar that MySQL publishes.
    """
    tables = [change for change in changes if change.kind in ("CREATE", "ALTER", "DROP")]
    if not tables:
        named = next((change.id.schema for change in changes), database)
        return [(named, sql, [], sorted({change.id.table for change in changes if change.id.table}))]
    sql = without_surroundings(sql)
    if len(tables) == 1 and tables[0].previous is None and tables[0].kind != "DROP":
        return [(tables[0].id.schema, _UNIQUE_INDEX.sub("", sql, count=1) if has_new_parser else sql, tables, [tables[0].id.table])]
    left = _left_by(tables)
    found = []
    for schema, grouped in groupby(tables, key=lambda change: change.id.schema):
        group = list(grouped)
        names = sorted({change.id.table for change in group})
        for change in group:
            shown = change if change.kind == "DROP" else left.get(change.id)
            found.append((schema, _statement(sql, change, len(tables)), [replace(shown, previous=change.previous)] if shown else [], names))
    return found


def _left_by(changes: Sequence[Change]) -> dict[TableId, Change]:
    """Return what a whole statement leaves of the tables that it renames: Debezium looks at them after all of it was read."""
    left: dict[TableId, Change] = {}
    for change in changes:
        if change.previous is not None:
            left.pop(change.previous, None)
        left[change.id] = change
    return left


def _statement(sql: str, change: Change, count: int) -> str:
    """Return the statement for one table."""
    if change.kind == "DROP":
        head = sql[: _after_table(sql)]
        quoted = ("`" + part.replace("`", "``") + "`" for part in (change.id.schema, change.id.table))
        return head + ".".join(quoted)
    if change.previous is not None and count > 1:
        return change.written
    return sql


def _after_table(sql: str) -> int:
    """Return the position after DROP TABLE [IF EXISTS]."""
    upper = sql.upper()
    at = upper.index("TABLE") + len("TABLE")
    exists = upper.find("EXISTS", at)
    if exists >= 0 and upper[at:exists].split() == ["IF"]:
        at = exists + len("EXISTS")
    return at + len(sql[at:]) - len(sql[at:].lstrip())
