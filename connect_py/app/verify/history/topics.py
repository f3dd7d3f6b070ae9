"""Make events of what change topics hold: envelopes as plain values, whichever converter has written them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from connect_py.app.verify.history.journal import digest_of, key_text
from connect_py.app.verify.history.records import Event, Op, Position
from connect_py.errors import DataError


class EventReader:
    """Makes events of the records of one connector; give it each partition's in their order. Used by one thread.

    Args:
        sequence: the field of a row that counts the changes of its key.
        digest: fields that digests are made of, by table; of others values are not compared.
    """

    def __init__(self, sequence: str, digest: Mapping[str, Sequence[str]] | None = None) -> None:
        self._sequence = sequence
        self._digest = digest or {}
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
        table = table_of(source)
        self._tables[topic, row_key or ""] = table
        op = Op(value["op"])
        row = _row(value.get("before" if op is Op.DELETE else "after"))
        sequence = row.get(self._sequence) if row else None
        columns = self._digest.get(table)
        whole = columns and row and op is not Op.DELETE
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
            digest_of(row.get(column) for column in columns) if whole and row and columns else None,
            position_of(source) if streamed else None,
            str(block.get("id") or source.get("txId") or source.get("gtid") or "") if streamed else "",
            source.get("snapshot") == "incremental",
            block.get("total_order"),
            block.get("data_collection_order"),
        )


def table_of(source: Mapping[str, Any]) -> str:
    """Return the name that the journal has for the table of a source block."""
    if source.get("collection"):
        return f"{source['db']}.{source['collection']}"
    return f"{source.get('schema') or source['db']}.{source['table']}"


def position_of(source: Mapping[str, Any]) -> Position | None:
    """Return the place in the log that a source block says; None: it says none with an order."""
    if source.get("file") is not None:
        return (source["file"], source["pos"], source.get("row") or 0)
    if source.get("sequence"):
        return tuple(int(part) if part else 0 for part in json.loads(source["sequence"]))
    if source.get("ord") is not None:
        return (source["ts_ms"], source["ord"])
    return None


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
