"""The schema history: its records, their order, and the structures to which they fold. Pure: `HistoryWriter` is given the log.

A record (`HistoryRecord`, `JsonTableChangeSerializer`) is self-contained: it says how tables look from a position on. Debezium and we both
read it. `is_at_or_before` compares a record's position with an offset (`MySqlHistoryRecordComparator`).

Records are many and tables are few, so structures stay JSON until the end, and only the last one of each table is parsed. Statements
without structures (settings, databases, and records of old versions) are applied to what was folded before them.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Protocol

import orjson

from connect_py.errors import DataError
from connectors.engine.relational.tables import TableId
from connectors.mysql.ddl.lexer import DdlError
from connectors.mysql.ddl.statements import Parser, apply, concerned_table
from connectors.mysql.model import Change, MyColumn, MyTable, Tables
from connectors.mysql.position.gtid import covers, parse_transactions

log = logging.getLogger(__name__)


JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True)
class HistoryRecord:
    """One statement and what it changed.

    Attributes:
        source: the partition.
        position: the offset at the statement.
        ts_ms: when the record was made.
        database: the affected one; empty for settings of the server.
        ddl: None for changes that a signal made.
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
        """Return the record as Debezium writes it."""
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


class HistoryLog(Protocol):
    """Where records are kept (`KafkaSchemaHistory`)."""

    def append(self, record: JsonObject, *, wait: bool = True) -> None: ...
    def flush(self) -> None: ...


class HistoryWriter:
    """Adds records to the history, one after the other, each acknowledged before the next.

    Args:
        source: the partition, which all records name.
        wrote: called after each of them.
    """

    def __init__(self, log: HistoryLog, source: Mapping[str, str], wrote: Callable[[], None]) -> None:
        self._log = log
        self._source = dict(source)
        self._wrote = wrote
        self._waits = True

    def append(
        self, position: Mapping[str, Any], database: str, ddl: str | None, changes: Iterable[Change] = (), schema: str | None = None
    ) -> None:
        """Add a record, whose parts are those of `HistoryRecord`. Raises RetriableError: it was not written."""
        record = HistoryRecord(self._source, position, time.time_ns() // 1_000_000, database, ddl, tuple(changes), schema)
        self._log.append(record.to_json(), wait=self._waits)
        self._wrote()

    @contextmanager
    def batched(self) -> Iterator[None]:
        """Write without waiting for each; at the end the history has them all. Raises RetriableError there."""
        self._waits = False
        try:
            yield
        finally:
            self._waits = True
        self._log.flush()


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
    """Return `"db"."table"`, with quotes in names doubled. Debezium keeps those at a name's ends, and cannot read such names again."""
    return ".".join('"' + name.replace('"', '""') + '"' for name in (id_.schema, id_.table))


_ID = re.compile(r'"((?:[^"]|"")+)"\."((?:[^"]|"")+)"')


def parse_id(text: str) -> TableId:
    """Return the table named by `"db"."table"`. Raises ValueError."""
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
    """Parse changes of tables as records have them. Raises DataError."""
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
    """Return a table's structure."""
    return {
        "defaultCharsetName": table.charset,
        "primaryKeyColumnNames": list(table.key),
        "columns": [_column_to_json(column, index) for index, column in enumerate(table.columns, 1)],
        "attributes": [{"name": _VERSIONED, "value": "hidden"}] if table.versioned else [],
    }


def _column_to_json(column: MyColumn, index: int) -> JsonObject:
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
        "position": index,
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
    """Return a label without its quotes, which older records lack."""
    return text[1:-1].replace("''", "'") if len(text) > 1 and text[0] == text[-1] == "'" else text


#: The same offset is compared with every record of a history.
_limit = lru_cache(maxsize=2)(parse_transactions)


def is_at_or_before(recorded: Mapping[str, Any], desired: Mapping[str, Any], wanted: Callable[[str], bool]) -> bool:
    """Compare two positions.

    Args:
        recorded: of the record.
        desired: the stored offset.
        wanted: returns whether a server's transactions count.
    """
    recorded_gtids, desired_gtids = recorded.get("gtids"), desired.get("gtids")
    if desired_gtids is not None:
        if recorded_gtids is None:
            return True
        ours = parse_transactions(str(recorded_gtids)).filtered(wanted)
        limit = _limit(str(desired_gtids)).filtered(wanted)
        if ours != limit:
            return covers(limit, ours)
        if _in_snapshot(desired) and not _in_snapshot(recorded):
            return False
        return _number(recorded, "event") <= _number(desired, "event")
    if recorded_gtids is not None:
        return False
    servers = recorded.get("server_id"), desired.get("server_id")
    if servers[0] and servers[1] and servers[0] != servers[1]:
        return _number(recorded, "ts_sec") <= _number(desired, "ts_sec")
    base, number = _file(recorded)
    desired_base, desired_number = _file(desired)
    if base != desired_base:
        return True
    names = ("pos", "event", "row")
    return (number, *(_number(recorded, name) for name in names)) <= (desired_number, *(_number(desired, name) for name in names))


def _in_snapshot(position: Mapping[str, Any]) -> bool:
    return position.get("snapshot") not in (None, False, "false", "")


def _number(position: Mapping[str, Any], name: str) -> int:
    return int(position.get(name) or 0)


def _file(position: Mapping[str, Any]) -> tuple[str, int]:
    """Return the base name and the number of a log file."""
    base, _, number = str(position.get("file") or "").rpartition(".")
    return base, int(number) if number.isdigit() else 0


_CHANGES = b'"tableChanges"'
#: Inside of strings quotes have a backslash before them, so these are keys; structures have no other key of the name.
_TYPE, _TABLE = b'"type"', b'"table"'
#: Names of tables have up to 64 characters of up to six bytes each.
_NEAR = 4000
_CHANGE = re.compile(rb'"type"\s*:\s*"\w+"\s*,\s*"id"\s*:\s*"((?:[^"\\]|\\.)*)"(?:\s*,\s*"previousId"\s*:\s*"((?:[^"\\]|\\.)*)")?')
_RENAMES = re.compile(r"\s*ALTER\s.*\bRENAME\b", re.IGNORECASE | re.DOTALL)
#: Statements that leave tables as they are.
_OF_NO_TABLE = re.compile(r"\s*(SET|USE|(CREATE|ALTER)\s+(DATABASE|SCHEMA))\b", re.IGNORECASE)


class HistoryFold:
    """Tables after the records that were added.

    Args:
        partition: the source partition whose records count.
        until: the offset after which records do not count; None for all.
        wanted: returns whether a server's transactions count.
        lower_case_table_names: the server's ``lower_case_table_names``.
        by_file_position: whether files and positions decide although GTIDs are known (`gtid.ignore.on.recovery`). They also decide where
            the offset has no GTIDs: those of older records come from a time in which the server's mode was another one. Debezium takes
            all such records for newer than the offset, and knows no table then.
        parser: reads statements.

    Attributes:
        count: of records that were applied.
        unsure: tables with a statement that could not be understood, and no structure after it.
    """

    def __init__(
        self,
        partition: Mapping[str, str],
        until: Mapping[str, Any] | None,
        wanted: Callable[[str], bool],
        *,
        by_file_position: bool = False,
        lower_case_table_names: int = 0,
        parser: Parser = apply,
    ) -> None:
        self._parse = parser
        self._partition = dict(partition)
        self._until = until
        self._wanted = wanted
        self._by_file_position = by_file_position or (until is not None and until.get("gtids") is None)
        if self._by_file_position and until is not None:
            self._until = _without_gtids(until)
        self._tables = Tables(lower_case_table_names=lower_case_table_names)
        # JSON of a whole record about one table, or one of its changes
        self._unread: dict[TableId, bytes | Mapping[str, Any]] = {}
        self.count = 0
        self.unsure: set[TableId] = set()

    def add(self, data: bytes) -> bool:
        """Add the next record's JSON. Returns whether it counts.

        Raises:
            DataError: it is no record of a schema history.
        """
        # of a record about one table the structure, which is nearly all of it, is read only if it is the last one
        at = data.find(_CHANGES)
        found = _CHANGE.search(data, at, at + _NEAR) if at > 0 and data.count(_TYPE, at) == 1 else None
        if found is not None:
            try:
                head = orjson.loads(data[:at].rstrip().rstrip(b",") + b"}")
                id_, previous = (orjson.loads(b'"' + (text or b"") + b'"') for text in found.groups())
            except orjson.JSONDecodeError:
                return self._add(data)
            if not self._counts(head):
                return False
            self._forget_renamed(head, id_)
            self._fold([{"id": id_, "previousId": previous, "table": None if data.find(_TABLE, at) < 0 else data}])
            return True
        return self._add(data)

    def _add(self, data: bytes) -> bool:
        try:
            record = orjson.loads(data)
        except orjson.JSONDecodeError as error:
            raise DataError(f"A record of the schema history is no JSON: {error}") from error
        if not isinstance(record, dict) or not self._counts(record):
            return False
        changes = record.get("tableChanges")
        if changes and not (isinstance(changes, list) and all(isinstance(change, dict) for change in changes)):
            raise DataError("The tableChanges of a record of the schema history are no list of changes")
        if changes:
            if len(changes) == 1:
                self._forget_renamed(record, str(changes[0].get("id")))
            self._fold(changes)
        else:
            self._apply(str(record.get("ddl") or ""), str(record.get("databaseName") or ""))
        return True

    def _counts(self, record: Mapping[str, Any]) -> bool:
        source, position = record.get("source"), record.get("position")
        if not isinstance(source, Mapping) or not isinstance(position, Mapping):
            raise DataError("A record of the schema history has no source or no position")
        if dict(source) != self._partition:
            return False
        if self._by_file_position:
            position = _without_gtids(position)
        if self._until is not None and not is_at_or_before(position, self._until, self._wanted):
            return False
        self.count += 1
        return True

    def _fold(self, changes: Iterable[Mapping[str, Any]]) -> None:
        for change in changes:
            try:
                id_ = self._named(str(change["id"]))
                previous = change.get("previousId")
                gone = None if not previous else self._named(str(previous))
            except (KeyError, ValueError) as error:
                raise DataError(f"A record of the schema history names no table: {error!r}") from error
            if gone is not None:
                self._drop(gone)
            if change.get("table") is None:
                self._drop(id_)
            else:
                self.unsure.discard(id_)
                table = change["table"]
                self._unread[id_] = table if isinstance(table, bytes) else change

    def _forget_renamed(self, record: Mapping[str, Any], quoted: str) -> None:
        """Drop the old name of ALTER TABLE … RENAME: its record does not contain that name, which another table may get."""
        ddl = str(record.get("ddl") or "")
        if _RENAMES.match(ddl) is None:
            return
        old = concerned_table(ddl, str(record.get("databaseName") or ""))
        try:
            new = self._named(quoted)
        except ValueError:
            return  # said where the change is taken
        if old is not None and (old := self._tables.named(old.schema, old.table)) != new and new not in self._unread:
            self._drop(old)

    def _named(self, text: str) -> TableId:
        id_ = parse_id(text)
        return self._tables.named(id_.schema, id_.table) if self._tables.lower_case_table_names else id_

    def _drop(self, id_: TableId) -> None:
        self.unsure.discard(id_)
        self._unread.pop(id_, None)
        self._tables.tables.pop(id_, None)

    def _apply(self, ddl: str, database: str) -> None:
        if not _OF_NO_TABLE.match(ddl):
            self._read()
        try:
            self._parse(ddl, self._tables, database)
        except DdlError as error:
            log.warning("A statement of the schema history was passed over: %s", error)
            id_ = concerned_table(ddl, database)
            if id_ is not None and id_ in self._tables.tables:
                self.unsure.add(id_)

    def _read(self) -> None:
        for id_, found in self._unread.items():
            try:
                change = orjson.loads(found)["tableChanges"][0] if isinstance(found, bytes) else found
                table = change_from_json(change).table
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise DataError(f"The schema history's last structure of {id_} cannot be understood: {error!r}") from error
            if table is not None:
                self._tables.tables[id_] = table if table.id == id_ else replace(table, id=id_)
        self._unread.clear()

    def tables(self) -> Tables:
        """Return the current structures. Raises DataError: one of them cannot be understood."""
        self._read()
        return self._tables


def _without_gtids(position: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in position.items() if name != "gtids"}
