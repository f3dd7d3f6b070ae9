"""The tables' models, their history, and the records of schema changes: one owner for all three, used by the task's thread.

A statement first changes the models, then is kept in the history, then becomes a record. A task that dies in between reads the statement
again, which then changes nothing.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from connect_py.api.record import EncodedRow
from connect_py.errors import DataError
from connectors.engine.relational.tables import TableId, matches_any
from connectors.mysql.config.config import MySqlConfig
from connectors.mysql.ddl.lexer import DdlError
from connectors.mysql.ddl.statement_text import normalised, without_settings
from connectors.mysql.ddl.statements import ANSI_QUOTES, Parser, apply, concerned_table
from connectors.mysql.figures import HistoryFigures
from connectors.mysql.model import Change, MyTable, Tables
from connectors.mysql.position.offset import MySqlOffset
from connectors.mysql.position.source_info import SourceBlock
from connectors.mysql.schema.changes_topic import SchemaChangeRecords, parts_of
from connectors.mysql.schema.history import HistoryFold, HistoryWriter, apply_changes, changes_from_json
from offsets.schema_history import KafkaSchemaHistory

log = logging.getLogger(__name__)

_MAKES_DATABASE = re.compile(r"\s*(CREATE|DROP)\s+(DATABASE|SCHEMA)\b", re.IGNORECASE)


class Schema:
    """The owner of the models, the history and the records.

    Args:
        partition: the source partition, which history records name.
        records: None where `include.schema.changes` is off.
        lower_case_table_names: the server's ``lower_case_table_names``.
        parser: reads statements.
        figures: counts what is read of the history and added to it.

    Attributes:
        tables: the models.
        unsure: tables with a statement that could not be understood; the log or the server is asked when their rows come.
    """

    def __init__(
        self,
        config: MySqlConfig,
        history: KafkaSchemaHistory,
        partition: Mapping[str, str],
        records: SchemaChangeRecords | None,
        *,
        lower_case_table_names: int = 0,
        parser: Parser = apply,
        figures: HistoryFigures | None = None,
    ) -> None:
        self._config = config
        self._parse = parser
        self._figures = figures or HistoryFigures()
        self._history = history
        self._partition = dict(partition)
        self._records = records
        self._only_tables = config.flag("schema.history.internal.store.only.captured.tables.ddl")
        self._only_databases = config.flag("schema.history.internal.store.only.captured.databases.ddl")
        self._skips = config.flag("schema.history.internal.skip.unparseable.ddl")
        self._unread = config.unread_statements
        self._writer = HistoryWriter(history, partition, self._figures.wrote)
        self._lower_case_table_names = lower_case_table_names
        self.tables = Tables(lower_case_table_names=lower_case_table_names, keeps_comments=config.flag("include.schema.comments"))
        self.unsure: set[TableId] = set()

    def recover(self, offset: MySqlOffset) -> int:
        """Bring the models to where they were at an offset. Returns how many records were applied.

        Raises:
            RetriableError: the broker is not there.
            DataError: the history holds what is none.
        """
        fold = HistoryFold(
            self._partition,
            offset.dump(),
            self._config.gtid_sources,
            by_file_position=self._config.flag("gtid.ignore.on.recovery"),
            lower_case_table_names=self._lower_case_table_names,
            parser=self._parse,
        )
        self._figures.begin()
        for number, value in self._history.read_values():
            try:
                if fold.add(value or b""):
                    self._figures.took()
            except DataError as error:
                log.warning("Record %d of the schema history '%s' was passed over: %s", number, self._history.topic, error)
        self.tables, self.unsure = fold.tables(), fold.unsure
        self.tables.keeps_comments = self._config.flag("include.schema.comments")
        return fold.count

    def batched_history_writes(self) -> AbstractContextManager[None]:
        """Write statements to the history without waiting for each, as `HistoryWriter.batched`."""
        return self._writer.batched()

    def statement(
        self,
        sql: str,
        database: str,
        position: Mapping[str, Any],
        source: tuple[int, str, str, int, dict[str, Any]],
        *,
        sql_mode: int = 0,
    ) -> tuple[list[EncodedRow], list[Change]]:
        """Apply a statement, keep it, and make its records.

        Args:
            database: the default one.
            position: the offset at the statement.
            source: what the source block shows: microseconds since 1970, marker, file, position, and named values.

        Returns:
            Records for the schema change topic, and what changed.

        Raises:
            DdlError: it cannot be understood, and is not to be skipped.
            RetriableError: the history was not written.
        """
        sql = without_settings(sql)
        if self._unread and matches_any(self._unread, sql.strip()):
            return [], []
        new_parser = self._config.connector == "mysql"
        normal = normalised(sql, ansi_quotes=bool(sql_mode & ANSI_QUOTES)) if new_parser else sql
        try:
            changes = self._parse(normal, self.tables, database, sql_mode=sql_mode)
        except DdlError as error:
            changes = self._not_understood(sql, database, error, position)
        rows: list[EncodedRow] = []
        if any(change.kind == "TRUNCATE" for change in changes):
            return rows, changes
        for part_database, part, part_changes, names in parts_of(normal if changes else sql, database, changes, has_new_parser=new_parser):
            now_ms = time.time_ns() // 1_000_000
            if self._is_stored(part_database, part_changes):
                self._writer.append(position, part_database, part, part_changes)
            if self._records is not None and self._is_emitted(part_database, part_changes, source[1], sql):
                rows.append(self._records.row(self._block(part_database, names, source, sql), now_ms, part_database, part, part_changes))
        return rows, changes

    @property
    def emits_schema_changes(self) -> bool:
        """Whether there is a schema change topic."""
        return self._records is not None

    def reemit_schema(self, statements: Sequence[tuple[str, str]], source: tuple[int, str, str, int, dict[str, Any]]) -> list[EncodedRow]:
        """Return records of structures that are already known. Neither the models nor their history change, so nothing depends on whether
        all of them arrive. Only where `emits_schema_changes` holds.

        Args:
            statements: (database, statement) that make the tables.
            source: as of `statement`.
        """
        rows: list[EncodedRow] = []
        assert self._records is not None
        tables = Tables(lower_case_table_names=self._lower_case_table_names, keeps_comments=self.tables.keeps_comments)
        for database, sql in statements:
            try:
                changes = self._parse(sql, tables, database)
            except DdlError as error:
                log.warning("A structure is not told again, since its statement could not be understood. %s", error)
                continue
            names = sorted({change.id.table for change in changes})
            block = self._block(database, names, source, sql)
            rows.append(self._records.row(block, time.time_ns() // 1_000_000, database, sql, changes))
        return rows

    def _not_understood(self, sql: str, database: str, error: DdlError, position: Mapping[str, Any]) -> list[Change]:
        """Handle a statement that could not be understood: what concerns a captured table is settled when its next rows come, all else by
        `skip.unparseable.ddl`."""
        id_ = concerned_table(sql, database)
        if id_ is not None and self._config.filters.is_captured(id_) and self.is_known(id_):
            log.warning("A statement about %s could not be understood; its structure is read when rows of it come. %s", id_, error)
            self.unsure.add(id_)
            if self._only_tables:
                # it names no table's change, and would be left out of such a history
                self._writer.append(position, id_.schema, sql)
        elif not self._skips:
            raise error
        else:
            log.warning("Ignoring unparseable DDL statement. %s", error)
        return []

    def settle(self, table: MyTable, ddl: str, position: Mapping[str, Any]) -> None:
        """Use a structure that no statement made, and keep it in the history. Raises RetriableError: the history was not written."""
        self.tables.tables[table.id] = table
        self.unsure.discard(table.id)
        self._writer.append(position, table.id.schema, ddl, [Change("ALTER", table.id, table)])

    def repair(
        self,
        database: str,
        schema: str,
        ddl: str | None,
        changes: Sequence[Mapping[str, Any]],
        position: Mapping[str, Any],
        source: bytes,
    ) -> tuple[list[EncodedRow], list[TableId]]:
        """Use structures that a signal holds (`SchemaChanges.java`): they count from a position on.

        Args:
            changes: as records of the history have them.
            source: the source block that the record shows.

        Returns:
            Records for the schema change topic, and the tables that are other ones now.

        Raises:
            DataError: a change cannot be understood; nothing was changed.
            RetriableError: the history was not written.
        """
        rows = []
        parsed = changes_from_json(changes)
        for change in parsed:
            apply_changes([change], self.tables)
            self._writer.append(position, database, ddl, [change], schema)
            if self._records is not None:
                rows.append(self._records.row(source, time.time_ns() // 1_000_000, database, ddl, [change], schema))
            log.info("A signal gave the table %s another structure", change.id)
        return rows, [change.id for change in parsed]

    def _block(self, database: str, names: list[str], source: tuple[int, str, str, int, dict[str, Any]], sql: str) -> bytes:
        ts_us, marker, file, pos, more = source
        # Debezium shows no table for databases made and dropped, and an empty name for all else that changes no table's structure
        none = "" if marker == "false" and not _MAKES_DATABASE.match(sql) else None
        block = SourceBlock(self._config.connector, self._config.version, self._config.topic_prefix, database, ",".join(names) or none)
        return block.render(ts_us, marker, file, pos, **more)

    def _is_stored(self, database: str, changes: list[Change]) -> bool:
        if not database:
            return True
        filters = self._config.filters
        if self._only_tables:
            return any(filters.is_captured(change.id) or (change.previous and filters.is_captured(change.previous)) for change in changes)
        return not self._only_databases or filters.schemas(database)

    def _is_emitted(self, database: str, changes: list[Change], marker: str, sql: str) -> bool:
        # how databases are made and dropped shows even where the history keeps only captured tables (`DdlChanges.anyMatch`)
        of_database = not changes and (marker != "false" or _MAKES_DATABASE.match(sql) is not None)
        return self._is_stored(database, changes) or (of_database and self._config.filters.schemas(database))

    def is_known(self, id_: TableId) -> bool:
        """Return whether there is a model of a table."""
        return id_ in self.tables.tables
