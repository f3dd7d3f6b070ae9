"""Tables by the numbers that stand for them in the log. A number is told before the rows that use it, and again and again."""

from __future__ import annotations

import logging
from collections.abc import Callable

from connect_py.errors import FatalTaskError
from connectors.engine.relational.table import TableId
from connectors.mysql.binlog.table_map import TableMap
from connectors.mysql.config import MySqlConfig
from connectors.mysql.position.offset import MySqlOffset
from connectors.mysql.schema.captured import CapturedTable, CapturedTables
from connectors.mysql.schema.schema import Schema
from connectors.mysql.schema.structure_source import structure_at
from connectors.mysql.stream.table_stream import TableStream

log = logging.getLogger(__name__)


class StreamTables:
    """The numbers of one dump.

    Args:
        offset: where the stream is, for a structure that is looked up.
    """

    def __init__(self, config: MySqlConfig, schema: Schema, captured: CapturedTables, offset: Callable[[], MySqlOffset]) -> None:
        self._config = config
        self._schema = schema
        self._captured = captured
        self._offset = offset
        self._tables: dict[int, TableStream | None] = {}
        #: Of numbers, the bytes that told them: the same again tell nothing.
        self._told: dict[int, TableMap] = {}

    def get(self, number: int) -> TableStream | None:
        """The table behind a number; None for one that is not captured."""
        return self._tables.get(number)

    def forget(self) -> None:
        """The numbers now mean other structures, or other tables."""
        self._tables.clear()
        self._told.clear()

    def structure_changed(self, id_: TableId) -> None:
        """A table's model is another one now, for rows behind a number that is in use too."""
        captured = self._captured.get(id_)
        for number, table in list(self._tables.items()):
            if table is not None and table.captured.id == id_:
                self._tables[number] = None if captured is None else TableStream(captured, table.map)

    def tell(self, map_: TableMap) -> None:
        """A number's table.

        Raises:
            FatalTaskError: rows of a captured table come whose structure is not known.
            MalformedEventError: its columns could not be read.
        """
        if self._told.get(map_.table_id) is map_:
            return
        id_ = self._schema.tables.named(map_.schema, map_.table)
        self._tables[map_.table_id] = self._found(id_, map_) if self._config.filters.is_captured(id_) else None
        self._told[map_.table_id] = map_

    def _found(self, id_: TableId, map_: TableMap) -> TableStream | None:
        captured = self._captured.get(id_)
        if captured is None:
            self._unknown(id_)
            return None
        known = self._tables.get(map_.table_id)
        if known is not None and known.captured is captured and known.map.columns == map_.columns:
            return known
        return TableStream(self._settled(captured, map_), map_)

    def _settled(self, captured: CapturedTable, map_: TableMap) -> CapturedTable:
        """The table, after its structure was looked up if statements do not tell it."""
        id_ = captured.id
        if id_ in self._schema.unsure:
            why = f"A statement about {id_} could not be understood"
        elif map_.problem is None and captured.model.width != len(map_.columns):
            why = f"The log has {len(map_.columns)} columns of {id_}, and the schema history tells of {captured.model.width}"
        else:
            return captured
        table, statement = structure_at(self._config, id_, map_, why)
        self._schema.settle(table, statement, self._offset().dump())
        found = self._captured.get(id_)
        assert found is not None
        return found

    def _unknown(self, id_: TableId) -> None:
        text = f"Encountered change event for table {id_} whose schema isn't known to this connector"
        mode = self._config.choice("inconsistent.schema.handling.mode", "fail")
        if mode == "fail":
            raise FatalTaskError(
                f"{text}. One possible cause is an incomplete database schema history topic. Take a new snapshot in this case, or restart "
                "with snapshot.mode=recovery"
            )
        if mode == "warn":
            log.warning("%s; the event is left out", text)
