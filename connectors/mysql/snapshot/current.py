"""MySQL's and MariaDB's tables as they are now. Structures are the server's, not the schema history's."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import TypeVar

from connect_py.api.record import EncodedRow
from connect_py.errors import ConnectError
from connectors.engine.java_object import StoredKey
from connectors.engine.relational.tables import TableId
from connectors.engine.snapshot.current_rows import SCAN_ENCODING
from connectors.engine.snapshot.incremental.contract import BusyError
from connectors.engine.snapshot.incremental.offset import WantedCollection
from connectors.engine.snapshot.initial.run import Marker
from connectors.engine.topic_naming import TopicNaming
from connectors.mysql.config.config import parse_config
from connectors.mysql.ddl.lexer import DdlError
from connectors.mysql.model import MyTable
from connectors.mysql.position.offset import EventPosition
from connectors.mysql.schema.captured import CapturedTables, TableFactory
from connectors.mysql.schema.structure import StructureCheck, read_structure
from connectors.mysql.server import queries
from connectors.mysql.server.queries import GeneralSession
from connectors.mysql.snapshot.chunks import MySqlChunks
from connectors.mysql.snapshot.rows import select_rows, snapshot_encoder, table_start_us

T = TypeVar("T")


class MySqlTableScan:
    """Reads the current rows of the captured tables (`TableScan`). Raises ConnectError.

    Args:
        connector: mysql or mariadb.
    """

    def __init__(self, config: Mapping[str, str], connector: str) -> None:
        self._config = parse_config(config, connector)
        self._naming = TopicNaming.from_config(self._config.raw, "default")
        self._general = GeneralSession(self._config)
        self._models: dict[TableId, MyTable] = {}
        self._tables = CapturedTables(TableFactory(self._config, SCAN_ENCODING, ()), self._config.filters.is_captured, self._models)
        self._chunks = MySqlChunks(
            self._general,
            self._config,
            lambda: self._tables,
            lambda: self._tables.names(),
            StructureCheck(self._config, lambda: None),
            lambda: None,
        )

    def names(self) -> list[str]:
        connection = self._general()
        self._models.clear()
        for id_ in queries.all_tables(connection, with_system=not self._config.flag("table.ignore.builtin")):
            if self._config.filters.is_captured(id_) and id_ != self._config.signal_table:
                self._read_structure(id_)
        return [str(id_) for id_ in self._tables.names()]

    def topic(self, name: str) -> str:
        id_ = self._chunks.table(name)
        return name if id_ is None else self._naming.data_topic(id_.schema, id_.table)

    def source(self, name: str) -> Mapping[str, str]:
        id_ = self._chunks.table(name)
        return {"name": self._config.topic_prefix} | ({} if id_ is None else {"db": id_.schema, "table": id_.table})

    def maximum(self, name: str) -> StoredKey | None:
        return self._with_current_structure(name, lambda: self._chunks.maximum(WantedCollection(name)))

    def read(self, name: str, after: StoredKey | None, until: StoredKey, limit: int) -> tuple[list[EncodedRow], StoredKey | None]:
        chunk = self._with_current_structure(name, lambda: self._chunks.read(WantedCollection(name), after, until, limit))
        return self._chunks.records([row for _, row in chunk.rows], EventPosition("", 0)), chunk.last

    def scan(self, name: str) -> Generator[list[EncodedRow]]:
        id_ = self._chunks.table(name)
        if id_ is not None:
            self._read_structure(id_)
        table = None if id_ is None else self._tables.get(id_)
        if table is None:
            raise ConnectError(f"The table {name} is gone")
        connection = queries.open_connection(self._config)
        try:
            encode = snapshot_encoder(table, EventPosition("", 0), table_start_us())
            for rows in select_rows(connection, table):
                yield encode(rows, Marker.MIDDLE)
        finally:
            connection.close()

    def close(self) -> None:
        self._general.close()

    def _read_structure(self, id_: TableId) -> None:
        try:
            found = read_structure(self._general(), id_)
        except DdlError as error:
            raise ConnectError(f"The server's own statement for {id_} cannot be understood: {error}") from error
        if found is None:
            self._models.pop(id_, None)
        else:
            self._models[id_] = found[0]

    def _with_current_structure(self, name: str, read: Callable[[], T]) -> T:
        """Read; if the structure changed since it was read, read it again, once."""
        try:
            return read()
        except BusyError:
            id_ = self._chunks.table(name)
            if id_ is not None:
                self._read_structure(id_)
        try:
            return read()
        except BusyError as error:
            raise ConnectError(f"Table {name} cannot be read now: {error}") from error
