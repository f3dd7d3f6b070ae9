"""Verify that a schema history holds the structures that the server has, and repair it where it does not (`connect-py history`).

The connector's offset says up to where the history counts. Statements that follow in the log are applied to the history's structures; the
result must be what the server shows. If it is not, a record between the table's last one and the offset is missing, or was never
understood. A table that no later statement concerns had at the offset the structure that it has now: that structure can be put into the
history there.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from connect_py.errors import ConnectError, DataError
from connectors.engine.relational.tables import TableId
from connectors.mysql.binlog.events import Heartbeat, Query, Rotate
from connectors.mysql.config.config import Heartbeats, MySqlConfig
from connectors.mysql.ddl.lexer import DdlError
from connectors.mysql.ddl.statement_text import Kind, kind_of, without_settings
from connectors.mysql.ddl.statements import apply, concerned_table
from connectors.mysql.model import Change, MyTable, Tables
from connectors.mysql.position.offset import BinlogPosition, MySqlOffset
from connectors.mysql.schema.history import HistoryFold, HistoryRecord
from connectors.mysql.schema.structure import are_alike, facts, read_structure
from connectors.mysql.server import queries
from connectors.mysql.server.binlog_client import BinlogClient
from connectors.mysql.server.connection import Connection
from offsets.schema_history import SETTINGS, KafkaSchemaHistory

#: A heartbeat shows where the log ends if the server filtered everything that is left.
_HEARTBEATS = Heartbeats(period=1.0)
#: Seconds of nothing but heartbeats after which the log is at its end, whatever they say: old servers cut positions beyond 4 GB.
_ONLY_HEARTBEATS = 30.0

#: Text, default database, and the session's modes.
Statement = tuple[str, str, int]


def statements_after(connection: Connection, config: MySqlConfig, offset: MySqlOffset) -> list[Statement]:
    """Return the statements after an offset, in order.

    Raises:
        ServerError: the log cannot be read, or no longer from there on.
        LostConnectionError: the connection broke, or nothing arrives.
        MalformedEventError: an event cannot be decoded.
    """
    end = queries.log_status(connection, config)
    limit = BinlogPosition(end.file, end.position)
    gtids = queries.gtids_to_skip(connection, config, offset)
    # the connector's own number would end its dump
    client = BinlogClient(
        config.connection,
        config.server_id + config.number("database.server.id.offset"),
        mariadb=queries.is_mariadb(config),
        heartbeats=_HEARTBEATS,
    )
    found: list[Statement] = []
    file = offset.file
    try:
        client.dump(gtids, offset.file, offset.pos)
        moved = time.monotonic()
        while True:
            for header, body in client.read(_HEARTBEATS.period):
                if isinstance(body, Heartbeat):
                    at_end = not BinlogPosition(body.file, body.position or header.end) < limit
                    if at_end or time.monotonic() - moved > _ONLY_HEARTBEATS:
                        return found
                    continue
                moved = time.monotonic()
                if isinstance(body, Rotate):
                    file = body.file
                elif isinstance(body, Query) and kind_of(body.text) is Kind.DDL:
                    found.append((without_settings(body.text), body.schema, body.sql_mode or 0))
                if header.timestamp and header.end and not BinlogPosition(file, header.end) < limit:
                    return found
    finally:
        client.close()


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong.

    Attributes:
        text: with the range of the log that it is about.
        table: that it is about; None for the history itself.
        present: the structure that a repair puts into the history, with its statement; None where nothing can be done from here.
    """

    text: str
    table: TableId | None = None
    present: tuple[MyTable, str] | None = None


@dataclass(slots=True)
class _History:
    """The content of the history.

    Attributes:
        last: of each table the position of its last record.
        offset: up to where it counts.
    """

    fold: HistoryFold
    last: dict[TableId, str] = field(default_factory=dict)
    first: str = ""
    offset: Mapping[str, Any] = field(default_factory=dict)


class HistoryCheck:
    """One check, and the repair of what it found. Used by one thread.

    Args:
        offset: of the connector; None for the position of the last record.
    """

    def __init__(self, config: MySqlConfig, offset: MySqlOffset | None) -> None:
        self._config = config
        self._offset = offset
        self._partition = {"server": config.topic_prefix}
        self._findings: list[Finding] = []
        self.tables = 0
        self.records = 0

    def run(self) -> list[Finding]:
        """Return the findings, those about the history first.

        Raises:
            ConnectError: Kafka or the server cannot be asked.
        """
        history = KafkaSchemaHistory(self._config.history_topic, self._config.history_client)
        try:
            recorded = self._read(history)
        finally:
            history.close()
        connection = queries.open_connection(self._config)
        try:
            self._compare(connection, recorded)
        finally:
            connection.close()
        return self._findings

    def repair(self) -> list[Finding]:
        """Put what was found missing into the history, at the offset. Returns what could not be repaired. Raises ConnectError."""
        history = KafkaSchemaHistory(self._config.history_topic, self._config.history_client)
        try:
            if not history.exists():
                history.create()
                self._begin(history)
            for finding in self._findings:
                if finding.table is not None and finding.present is not None:
                    table, statement = finding.present
                    self._append(history, table.id.schema, statement, (Change("CREATE", table.id, table),))
        finally:
            history.close()
        return [finding for finding in self._findings if finding.table is not None and finding.present is None]

    def _begin(self, history: KafkaSchemaHistory) -> None:
        """Begin a new history with the character sets of the server and of databases, which precede the tables."""
        connection = queries.open_connection(self._config)
        try:
            self._append(history, "", queries.charset_statement(connection))
            databases = sorted({finding.table.schema for finding in self._findings if finding.table is not None})
            for database, statements in queries.database_statements(connection, databases).items():
                self._append(history, database, statements[1])
        finally:
            connection.close()

    def _append(self, history: KafkaSchemaHistory, database: str, ddl: str, changes: tuple[Change, ...] = ()) -> None:
        assert self._offset is not None
        position = replace(self._offset, snapshot=None, more={}).dump()
        history.append(HistoryRecord(self._partition, position, time.time_ns() // 1_000_000, database, ddl, changes).to_json())

    # -- the history -------------------------------------------------------------------------------------------------------------------

    def _read(self, history: KafkaSchemaHistory) -> _History:
        until = None if self._offset is None else self._offset.dump()
        recorded = _History(
            HistoryFold(self._partition, until, self._config.gtid_sources, by_file_position=self._config.flag("gtid.ignore.on.recovery"))
        )
        if not history.exists():
            self._findings.append(Finding(f"The topic '{history.topic}' does not exist: all structures are missing"))
            return recorded
        self._check_topic(history)
        expected: int | None = None
        for number, value in history.read_values():
            if expected is not None and number != expected:
                self._findings.append(Finding(f"Records {expected} to {number - 1} are missing, behind {_position_text(recorded.offset)}"))
            expected = number + 1
            self._add(recorded, number, value or b"")
        self.records = recorded.fold.count
        if self._offset is None and recorded.offset:
            self._offset = replace(MySqlOffset.load(dict(recorded.offset)), snapshot=None)
        return recorded

    def _add(self, recorded: _History, number: int, value: bytes) -> None:
        try:
            counts = recorded.fold.add(value)
        except DataError as error:
            self._findings.append(Finding(f"Record {number} is none, behind {_position_text(recorded.offset)}: {error}"))
            return
        if not counts:
            return
        record = HistoryRecord.from_json(_object(value))
        recorded.offset = record.position
        recorded.first = recorded.first or _position_text(record.position)
        for change in record.changes:
            recorded.last[change.id] = _position_text(record.position)

    def _check_topic(self, history: KafkaSchemaHistory) -> None:
        partitions, begin, settings = history.describe()
        if partitions != 1:
            self._findings.append(Finding(f"The topic '{history.topic}' has {partitions} partitions and must have one"))
        if begin:
            self._findings.append(Finding(f"Records 0 to {begin - 1} of the topic '{history.topic}' are gone, from the beginning on"))
        for name, wanted in SETTINGS.items():
            found = settings.get(name, wanted)
            if found != wanted and not (name == "retention.ms" and found == "-1"):
                self._findings.append(Finding(f"The topic '{history.topic}' has {name}={found}: records can be lost. Set {name}={wanted}"))

    # -- the server --------------------------------------------------------------------------------------------------------------------

    def _compare(self, connection: Connection, recorded: _History) -> None:
        if self._offset is None:
            self._findings.append(Finding("The history is empty, and no offset of the connector was given: its structures are not needed"))
            return
        expected, touched, unsure = self._expected(connection, recorded)
        present: dict[TableId, tuple[MyTable, str] | None] = {}
        for id_ in queries.all_tables(connection, with_system=not self._config.flag("table.ignore.builtin")):
            if self._config.filters.is_captured(id_):
                try:
                    present[id_] = read_structure(connection, id_)
                except DdlError as error:
                    self._findings.append(Finding(f"The server's own statement for {id_} cannot be understood: {error}", id_))
        self.tables = len(present)
        end = _position_text(self._offset.dump())
        for id_, found in present.items():
            model = expected.tables.get(id_)
            if found is None or (model is not None and are_alike(found[0], model)):
                continue
            wrong = "has no structure" if model is None else f"has another structure ({_difference(found[0], model)})"
            since = recorded.last.get(id_) or recorded.first or "the beginning"
            later = (
                "; a statement behind the offset concerns it, so that what it looked like there cannot be read" if id_ in touched else ""
            )
            doubt = "; a statement about it cannot be understood" if id_ in unsure else ""
            text = f"{id_} {wrong} in the history: a record is missing between {since} and {end}{later}{doubt}"
            self._findings.append(Finding(text, id_, None if id_ in touched else found))

    def _expected(self, connection: Connection, recorded: _History) -> tuple[Tables, set[TableId], set[TableId]]:
        """Return the structures after the statements that follow the offset, the tables that these concern, and those of which one is not
        understood."""
        assert self._offset is not None
        tables, touched = recorded.fold.tables(), set[TableId]()
        unsure = set(recorded.fold.unsure)
        try:
            statements = statements_after(connection, self._config, self._offset)
        except ConnectError as error:
            self._findings.append(Finding(f"The log behind {_position_text(self._offset.dump())} cannot be read: {error}"))
            return tables, touched, unsure
        for sql, database, sql_mode in statements:
            concerned = concerned_table(sql, database)
            if concerned is not None:
                touched.add(concerned)
            try:
                for change in apply(sql, tables, database, sql_mode=sql_mode):
                    touched |= {change.id} | ({change.previous} if change.previous else set())
            except DdlError:
                if concerned is not None:
                    unsure.add(concerned)
        return tables, touched, unsure


def _object(value: bytes) -> Mapping[str, Any]:
    found: Mapping[str, Any] = orjson.loads(value)
    return found


def _position_text(position: Mapping[str, Any]) -> str:
    if not position:
        return "the beginning"
    gtids = f" ({position['gtids']})" if position.get("gtids") else ""
    return f"{position.get('file')}:{position.get('pos')}{gtids}"


def _difference(present: MyTable, model: MyTable) -> str:
    """Return the first difference, in words."""
    ours, theirs = [column.name.lower() for column in model.columns], [column.name.lower() for column in present.columns]
    if ours != theirs:
        return f"columns {', '.join(ours)}; the server has {', '.join(theirs)}"
    if present.key != model.key:
        return f"key {', '.join(model.key) or 'none'}; the server has {', '.join(present.key) or 'none'}"
    for mine, its in zip(model.columns, present.columns, strict=True):
        if facts(mine) != facts(its):
            return f"column {mine.name} as {_shown(mine)}; the server has {_shown(its)}"
    return "in its columns"


def _shown(column: Any) -> str:
    length = f"({column.length})" if column.length is not None else ""
    charset = f" of {column.charset}" if column.charset else ""
    return f"{column.type_name}{length}{charset}{'' if column.nullable else ' NOT NULL'}"
