"""Make events of what change topics hold: envelopes as plain values, whichever converter has written them. And positions of offsets."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from connect_py.app.verify.history.journal import digest_of, key_text
from connect_py.app.verify.history.records import Event, Op, Position
from connect_py.errors import DataError

#: Stands for a value that the database did not send (`unavailable.value.placeholder`).
UNAVAILABLE = "__debezium_unavailable_value"


class EventReader:
    """Makes events of the records of one connector; give it each partition's in their order. Used by one thread.

    Args:
        sequence: the field of a row that counts the changes of its key.
        digest: fields that digests are made of, by table; of others values are not compared.
        unavailable: stands for a value that the database did not send; a row with one among its digest's fields has no digest.
        keys_only: tables whose deletions say the key alone: other fields then hold nulls and defaults.
    """

    def __init__(
        self,
        sequence: str,
        digest: Mapping[str, Sequence[str]] | None = None,
        *,
        unavailable: str = UNAVAILABLE,
        keys_only: Collection[str] = (),
    ) -> None:
        self._sequence = sequence
        self._digest = digest or {}
        self._unavailable = unavailable
        self._keys_only = keys_only
        self._tables: dict[tuple[str, str], str] = {}

    def event(self, topic: str, partition: int, offset: int, key: Any, value: Any) -> Event | None:
        """Return a record as an event; None: it is none, as a message of PostgreSQL's log.

        Args:
            key: the key's fields by name, or None.
            value: the envelope's fields by name; None of a tombstone.

        Raises:
            DataError: it is no change event.
        """
        row_key = key_text(key.values()) if isinstance(key, Mapping) else None
        if value is None:
            table = self._tables.get((topic, row_key or ""), topic)
            return Event(topic, partition, offset, table, row_key, Op.TOMBSTONE)
        if not isinstance(value, Mapping) or "op" not in value or not isinstance(value.get("source"), Mapping):
            raise DataError(
                f"{topic}-{partition}@{offset} is no change event: a history needs envelopes, so transforms must not flatten them"
            )
        if value["op"] == "m":
            return None
        source: Mapping[str, Any] = value["source"]
        try:
            table, op = table_of(source), Op(value["op"])
        except (KeyError, ValueError) as error:
            raise DataError(f"{topic}-{partition}@{offset} is no change event of a table: {error}") from error
        self._tables[topic, row_key or ""] = table
        row = _row(value.get("before" if op is Op.DELETE else "after"))
        sequence = None if op is Op.DELETE and table in self._keys_only else row.get(self._sequence)
        block = value.get("transaction") or {}
        streamed = op is not Op.READ
        return Event(
            topic,
            partition,
            offset,
            table,
            None if op is Op.TRUNCATE else row_key,
            op,
            # a source that logs only keys has null or 0 in the other columns of a row that was removed
            int(sequence) if sequence else None,
            self._digest_of(table, row) if op is not Op.DELETE else None,
            position_of(source) if streamed else None,
            str(block.get("id") or source.get("txId") or source.get("gtid") or "") if streamed else "",
            source.get("snapshot") == "incremental",
            block.get("total_order"),
            block.get("data_collection_order"),
        )

    def _digest_of(self, table: str, row: Mapping[str, Any]) -> str | None:
        values = [row.get(column) for column in self._digest.get(table, ())]
        return digest_of(values) if row and values and self._unavailable not in values else None


def table_of(source: Mapping[str, Any]) -> str:
    """Return the name that the journal has for the table of a source block."""
    if source.get("collection"):
        return f"{source['db']}.{source['collection']}"
    return f"{source.get('schema') or source['db']}.{source['table']}"


def position_of(source: Mapping[str, Any]) -> Position | None:
    """Return the place in the log that a source block says; None: it says none with an order."""
    if source.get("file") is not None:
        return (_file_number(source["file"]), source["pos"], source.get("row") or 0)
    if source.get("sequence"):
        return tuple(int(part) if part else 0 for part in json.loads(source["sequence"]))
    if source.get("ord") is not None:
        return (source["ts_ms"], source["ord"])
    return None


def position_of_offset(offset: Mapping[str, Any]) -> Position | None:
    """Return the place in the log of a stored source offset, whichever database's; None: it has none with an order.

    A transaction of PostgreSQL that commits later may hold changes with smaller positions, so the last whole transaction counts first. A
    snapshot's offset is the position of a stream that has not begun. Files of MySQL's log are counted; those of another server, after a
    failover, have other numbers.
    """
    if offset.get("lsn_proc") is not None:
        commit, lsn = offset.get("lsn_commit") or 0, offset["lsn_proc"]
        return (commit, 0, 0) if lsn == commit else (commit, lsn, offset.get("lsn_events_processed") or 1)
    if offset.get("file") is not None:
        return _file_number(offset["file"]), offset["pos"], offset.get("event") or 0, offset.get("row") or 0
    if (offset.get("sec") or 0) > 0:
        return offset["sec"], offset.get("ord") or 0
    return None


def _file_number(file: str) -> int:
    """Return the number with which the name of a file of MySQL's log ends: it grows beyond six digits."""
    digits = file.rpartition(".")[2]
    return int(digits) if digits.isdigit() else 0


def _row(value: Any) -> Mapping[str, Any]:
    if isinstance(value, str):  # a document of MongoDB
        value = json.loads(value)
    return {name: _plain(entry) for name, entry in value.items()} if isinstance(value, Mapping) else {}


def _plain(value: Any) -> Any:
    """Return a number of extended JSON as a number."""
    if isinstance(value, Mapping) and len(value) == 1:
        for name in ("$numberLong", "$numberInt"):
            if name in value:
                return int(value[name])
    return value
