"""Records of the schema history (mysql.md §10.1; `HistoryRecord`, `JsonTableChangeSerializer`), to JSON and back. Pure.

A record is self-contained: it says from which position on which tables look how. Readers are Debezium's and ours.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from connect_py.errors import DataError
from connectors.engine.relational.table import TableId
from connectors.mysql.changes import Change, Tables
from connectors.mysql.model import MyColumn, MyTable

JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True)
class HistoryRecord:
    """One statement and what it changed.

    Attributes:
        source: the partition.
        position: the offset at the statement.
        ts_ms: when the record was made.
        database: the affected one; empty for settings of the server.
        ddl: None of changes that a signal told of.
        changes: of tables; databases and settings have none.
        schema: only such changes name one.
    """

    source: Mapping[str, Any]
    position: Mapping[str, Any]
    ts_ms: int
    database: str
    ddl: str | None
    changes: tuple[Change, ...] = field(default=())
    schema: str | None = None

    def to_json(self) -> JsonObject:
        """As Debezium writes it."""
        return {
            "source": dict(self.source),
            "position": dict(self.position),
            "ts_ms": self.ts_ms,
            "databaseName": self.database,
            **({} if self.schema is None else {"schemaName": self.schema}),
            **({} if self.ddl is None else {"ddl": self.ddl}),
            "tableChanges": [_change_to_json(change) for change in self.changes if change.kind in _KINDS],
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> HistoryRecord:
        """Read one. Raises DataError: it is no history record."""
        try:
            return cls(
                source=value["source"],
                position=value["position"],
                ts_ms=int(value.get("ts_ms") or 0),
                database=str(value.get("databaseName") or ""),
                ddl=str(value.get("ddl") or ""),
                changes=tuple(change_from_json(change) for change in value.get("tableChanges") or ()),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(f"A record of the schema history cannot be understood: {error!r}") from error


_KINDS = ("CREATE", "ALTER", "DROP")
#: An attribute of ours, which Debezium keeps and does not look at.
_VERSIONED = "system_versioning"


def apply_changes(changes: Sequence[Change], tables: Tables) -> None:
    """Bring tables to the state after a record's changes."""
    for change in changes:
        if change.previous is not None:
            tables.tables.pop(change.previous, None)
        if change.table is None:
            tables.tables.pop(change.id, None)
        else:
            tables.tables[change.id] = change.table


def quoted_id(id_: TableId) -> str:
    """`"db"."table"`, with quotes in names doubled. Debezium leaves those at a name's ends, and cannot read such names again."""
    return ".".join('"' + name.replace('"', '""') + '"' for name in (id_.schema, id_.table))


_ID = re.compile(r'"((?:[^"]|"")+)"\."((?:[^"]|"")+)"')


def parse_id(text: str) -> TableId:
    """The table behind `"db"."table"`. Raises ValueError."""
    found = _ID.fullmatch(text)
    if found is not None:
        return TableId(*(name.replace('""', '"') for name in found.groups()))
    # a name with quotes, as it was written before they were doubled, and by Debezium
    schema, dot, table = text.removeprefix('"').partition('".')
    if not dot:
        raise ValueError(f"{text!r} is no name of a table")
    is_quoted = len(table) > 2 and table.startswith('"') and table.endswith('"')
    return TableId(schema, table[1:-1] if is_quoted else table)


def changes_from_json(changes: Sequence[Mapping[str, Any]]) -> tuple[Change, ...]:
    """Changes of tables as records have them. Raises DataError."""
    try:
        return tuple(change_from_json(change) for change in changes)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"A change of a table cannot be understood: {error!r}") from error


def _change_to_json(change: Change) -> JsonObject:
    found: JsonObject = {"type": change.kind, "id": quoted_id(change.id)}
    if change.previous is not None:
        found["previousId"] = quoted_id(change.previous)
    if change.table is not None:
        found["table"] = table_to_json(change.table)
        found["comment"] = change.table.comment
    return found


def table_to_json(table: MyTable) -> JsonObject:
    """A table's structure."""
    return {
        "defaultCharsetName": table.charset,
        "primaryKeyColumnNames": list(table.key),
        "columns": [_column_to_json(column, place) for place, column in enumerate(table.columns, 1)],
        "attributes": [{"name": _VERSIONED, "value": "hidden"}] if table.versioned else [],
    }


def _column_to_json(column: MyColumn, place: int) -> JsonObject:
    found: JsonObject = {
        "name": column.name,
        "jdbcType": column.jdbc_type,
        "typeName": column.type_name,
        "typeExpression": column.type_name,
        "charsetName": column.charset,
    }
    if column.length is not None:
        found["length"] = column.length
    if column.scale is not None:
        found["scale"] = column.scale
    found |= {
        "position": place,
        "optional": column.nullable,
        "autoIncremented": column.auto_increment,
        "generated": column.generated,
        "comment": column.comment,
        "hasDefaultValue": column.has_default,
    }
    if column.default is not None:
        found["defaultValueExpression"] = column.default
    found["enumValues"] = ["'" + label.replace("'", "''") + "'" for label in column.labels]
    return found


def change_from_json(value: Mapping[str, Any]) -> Change:
    id_ = parse_id(value["id"])
    previous = parse_id(value["previousId"]) if value.get("previousId") else None
    structure = value.get("table")
    table = None
    if structure is not None:
        columns = sorted(structure.get("columns") or (), key=lambda column: column.get("position") or 0)
        table = MyTable(
            id=id_,
            columns=tuple(_column_from_json(column) for column in columns),
            key=tuple(structure.get("primaryKeyColumnNames") or ()),
            charset=structure.get("defaultCharsetName"),
            comment=value.get("comment") or structure.get("comment"),
            versioned=any(attribute.get("name") == _VERSIONED for attribute in structure.get("attributes") or ()),
        )
    return Change(str(value["type"]), id_, table, previous)


def _column_from_json(value: Mapping[str, Any]) -> MyColumn:
    return MyColumn(
        name=value["name"],
        type_name=str(value["typeName"]).upper(),
        jdbc_type=int(value["jdbcType"]),
        length=value.get("length"),
        scale=value.get("scale"),
        charset=value.get("charsetName"),
        labels=tuple(_label(text) for text in value.get("enumValues") or ()),
        nullable=bool(value.get("optional", True)),
        auto_increment=bool(value.get("autoIncremented")),
        generated=bool(value.get("generated")),
        has_default=bool(value.get("hasDefaultValue")),
        default=value.get("defaultValueExpression"),
        comment=value.get("comment"),
    )


def _label(text: str) -> str:
    """Older records have labels without quotes."""
    return text[1:-1].replace("''", "'") if len(text) > 1 and text[0] == text[-1] == "'" else text
