"""The schema history folded to the last structure of each table (mysql.md §10.3). Pure.

Records are many and tables are few: structures stay JSON until the end, and only the last one of each table is read. Statements without
structures (settings, databases, and records of old versions) are applied to what was folded before them.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import orjson

from connect_py.errors import DataError
from connectors.engine.relational.table import TableId
from connectors.mysql.changes import Tables
from connectors.mysql.ddl.lexer import DdlError
from connectors.mysql.ddl.statements import apply, concerned_table
from connectors.mysql.schema.history_position import is_at_or_before
from connectors.mysql.schema.history_records import change_from_json, parse_id

log = logging.getLogger(__name__)

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
        until: the offset behind which records do not count; None for all.
        wanted: tells the servers whose transactions count.
        letters: the server's ``lower_case_table_names``.
        by_place: whether files and positions decide although GTIDs are known (`gtid.ignore.on.recovery`): offsets are then without
            GTIDs, which the reference takes for a server without them, and would find no record that is old enough.

    Attributes:
        count: of records that were applied.
        unsure: tables with a statement that could not be understood, and no structure behind it.
    """

    def __init__(
        self,
        partition: Mapping[str, str],
        until: Mapping[str, Any] | None,
        wanted: Callable[[str], bool],
        *,
        by_place: bool = False,
        letters: int = 0,
    ) -> None:
        self._partition = dict(partition)
        self._until = until
        self._wanted = wanted
        self._by_place = by_place
        if by_place and until is not None:
            self._until = _without_gtids(until)
        self._tables = Tables(letters=letters)
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
        if self._by_place:
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
        """ALTER TABLE … RENAME: its record does not name the table that came before, whose name another table may get."""
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
        return self._tables.named(id_.schema, id_.table) if self._tables.letters else id_

    def _drop(self, id_: TableId) -> None:
        self.unsure.discard(id_)
        self._unread.pop(id_, None)
        self._tables.tables.pop(id_, None)

    def _apply(self, ddl: str, database: str) -> None:
        if not _OF_NO_TABLE.match(ddl):
            self._read()
        try:
            apply(ddl, self._tables, database)
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
        """The structures as they are now. Raises DataError: one of them cannot be understood."""
        self._read()
        return self._tables


def _without_gtids(position: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in position.items() if name != "gtids"}
