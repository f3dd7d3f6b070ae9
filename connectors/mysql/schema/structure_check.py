"""Whether a table looks on the server as the stream's model has it, for rows that are read beside the stream.

Rows are read as the table is now, and go out with the model that the stream has, whose place in the log may be older: a change of the
structure that it has not come to yet makes the rows wait. A model that still differs when the stream has passed the place where the log
ended then will not become equal (the statement was skipped, or is remembered in other words): it is then held to the columns' names.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass

from connect_py.errors import ConnectError
from connectors.engine.relational.table import TableId
from connectors.engine.snapshot.incremental.contract import BusyError, UnknownCollectionError
from connectors.mysql import error_codes
from connectors.mysql.changes import Tables
from connectors.mysql.config import MySqlConfig
from connectors.mysql.ddl.lexer import DdlError
from connectors.mysql.ddl.statements import apply
from connectors.mysql.errors import ServerError
from connectors.mysql.model import MyColumn, MyTable
from connectors.mysql.position.log_place import LogPlace
from connectors.mysql.server import queries
from connectors.mysql.server.connection import Connection, quote_name

log = logging.getLogger(__name__)

_COUNTER = re.compile(r" AUTO_INCREMENT=\d+")
_WITH_LENGTH = frozenset(("CHAR", "VARCHAR", "BINARY", "VARBINARY", "DECIMAL", "NUMERIC", "BIT", "DATETIME", "TIMESTAMP", "TIME"))


@dataclass(frozen=True, slots=True)
class _Dispute:
    """A structure and a model that differ. `end` is where the log ended when that was seen."""

    statement: str
    model: MyTable
    end: LogPlace


class StructureCheck:
    """Remembers what was compared; used by the task's thread.

    Args:
        config: of the connector.
        received: up to where the stream has been read; None without a stream.
    """

    def __init__(self, config: MySqlConfig, received: Callable[[], LogPlace | None]) -> None:
        self._config = config
        self._received = received
        self._agreed: dict[TableId, tuple[str, MyTable]] = {}
        self._disputes: dict[TableId, _Dispute] = {}

    def __call__(self, connection: Connection, model: MyTable) -> None:
        """Compare. Inside of a transaction that has read the table, the answer is that of its rows.

        Raises:
            BusyError: the stream has to come to a change of the table first.
            UnknownCollectionError: the table is gone.
            ConnectError: the two stay different.
            ServerError: the server cannot be asked.
        """
        id_ = model.id
        try:
            ((_, statement, *_),) = connection.texts(f"SHOW CREATE TABLE {quote_name(id_.schema, id_.table)}")
        except ServerError as error:
            if error.code in error_codes.GONE:
                raise UnknownCollectionError(f"The table '{id_}' is gone") from None
            raise
        statement = _COUNTER.sub("", statement, count=1)
        agreed = self._agreed.get(id_)
        if agreed is not None and agreed[0] == statement and agreed[1] is model:
            return
        present = _parsed(statement, id_)
        if not are_alike(present, model):
            self._settle(connection, statement, present, model)
        self._agreed[id_] = (statement, model)
        self._disputes.pop(id_, None)

    def _settle(self, connection: Connection, statement: str, present: MyTable | None, model: MyTable) -> None:
        id_ = model.id
        dispute = self._disputes.get(id_)
        if dispute is None or dispute.statement != statement or dispute.model is not model:
            status = queries.log_status(connection, self._config)
            dispute = self._disputes[id_] = _Dispute(statement, model, LogPlace(status.file, status.position))
        received = self._received()
        if received is None or received < dispute.end:
            raise BusyError(f"the structure of {id_} has changed, and the stream has not come to that yet")
        if present is not None and [column.name.lower() for column in present.columns] != [column.name.lower() for column in model.columns]:
            raise ConnectError(
                f"The table {id_} has other columns than the schema history tells of. Streaming goes on. To mend it, send a signal "
                "schema-changes, or restart with snapshot.mode=recovery"
            )
        log.info("The schema history remembers %s in other words than the server; its columns are the same", id_)


def _parsed(statement: str, id_: TableId) -> MyTable | None:
    tables = Tables()
    try:
        apply(statement, tables, id_.schema)
    except DdlError as error:
        log.warning("The server's own statement for %s could not be understood: %s", id_, error)
        return None
    return tables.tables.get(id_)


def are_alike(present: MyTable | None, model: MyTable) -> bool:
    return present is not None and present.key == model.key and list(map(facts, present.columns)) == list(map(facts, model.columns))


def facts(column: MyColumn) -> tuple[object, ...]:
    """What rows depend on."""
    kind = column.base_type
    length = (column.length, column.scale) if kind in _WITH_LENGTH else None
    return column.name.lower(), kind, column.unsigned, length, column.charset, column.labels, column.nullable
