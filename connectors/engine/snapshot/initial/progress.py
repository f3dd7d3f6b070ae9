"""What of an initial snapshot is in Kafka: tables that were read whole, and key ranges of others. Pure.

It travels in the source offset as one text, under a name that Debezium does not know: there such an offset means what it meant before,
that the snapshot did not end and is taken again. An offset without the field, or with one of another format, means the same here.

The form is ``{"v":1,"tables":{"public.a":{"rows":10},"public.b":{"rows":2000,"key":["id int4"],"done":[[null,["2000"]]]}}}``: a table
without ranges is done. A range holds the keys after its first bound up to its second one; null stands for no bound. Ranges are only as
good as the key that they are cut by: for another key, nothing of the table is done.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from connectors.engine.snapshot.chunks import Key

log = logging.getLogger(__name__)

T = TypeVar("T")

#: The field of the source offset.
FIELD: Final = "connect_py_snapshot"
_VERSION = 1
#: Nothing is done yet, but the position of the beginning counts.
BEGUN: Final = f'{{"v":{_VERSION},"tables":{{}}}}'
#: A larger text is not kept: Kafka takes no record of a megabyte. It is that of more than ten thousand tables.
MAX_CHARACTERS = 500_000


@dataclass(frozen=True, slots=True)
class KeyRange:
    """Keys after `after` up to `until`; None is no bound."""

    after: Key | None = None
    until: Key | None = None


WHOLE: Final = KeyRange()


@dataclass(frozen=True, slots=True)
class Chunk(Generic[T]):
    """What is read in one go.

    Attributes:
        key: of the table, columns with their types; empty where the table is read whole.
        is_last: whether it is the last one of its table.
    """

    table: T
    range: KeyRange = WHOLE
    key: tuple[str, ...] = ()
    is_last: bool = True


@dataclass(slots=True)
class _Part:
    range: KeyRange
    is_done: bool = False


@dataclass(slots=True)
class _Table:
    """`parts` follow each other by key and hold all keys between them; of a table that is done they do not matter."""

    rows: int = 0
    key: tuple[str, ...] = ()
    parts: list[_Part] = field(default_factory=lambda: [_Part(WHOLE)])
    is_done: bool = False

    @property
    def done(self) -> list[KeyRange]:
        return [part.range for part in self.parts if part.is_done]


class SnapshotProgress:
    """What of an initial snapshot is done. Tables are known by their names.

    Args:
        text: of the stored offset; None at the beginning.
    """

    def __init__(self, text: str | None = None) -> None:
        self._tables: dict[str, _Table] = {}
        self._texts: dict[str, str] = {}
        self._text: str | None = None
        self._is_too_large = False
        if text:
            try:
                self._tables = _parse(text)
            except (ValueError, TypeError, KeyError, AttributeError, IndexError):
                log.warning("The stored progress of the snapshot cannot be read; the snapshot begins anew")
        for name in self._tables:
            self._changed(name)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is done."""
        return not self._texts

    @property
    def text(self) -> str | None:
        """For the source offset; None while nothing is done. Made again only when something has changed."""
        if self._text is None and self._texts and not self._is_too_large:
            self._text = f'{{"v":{_VERSION},"tables":{{{",".join(self._texts.values())}}}}}'
            if len(self._text) > MAX_CHARACTERS:
                self._is_too_large, self._text = True, None
                log.warning("So many tables are read that what is done of them is not kept: an interrupted snapshot begins anew")
        return self._text

    def is_done(self, table: str) -> bool:
        """Return whether the table was read whole."""
        return table in self._tables and self._tables[table].is_done

    def is_begun(self, table: str) -> bool:
        """Return whether something of the table is done."""
        return table in self._tables and _is_begun(self._tables[table])

    def rows(self, table: str) -> int:
        """Return the number of rows of what is done."""
        return self._tables[table].rows if table in self._tables else 0

    def left(self, table: str, key: Sequence[str]) -> list[KeyRange]:
        """Return what is left to read of a table that is not done: one range, or the gaps between those that are done. A table that is cut
        by another key now is left whole, and forgotten."""
        found = self._tables.get(table)
        if found is None or found.key != tuple(key):
            self._tables[table] = _Table(key=tuple(key))
            self._changed(table)
            return [WHOLE]
        return [part.range for part in found.parts if not part.is_done]

    def planned(self, table: str, chunk: KeyRange) -> None:
        """Cut a chunk off the start of a range that `left` returned, or of what other chunks have left of it."""
        parts = self._tables[table].parts
        place = next(i for i, part in enumerate(parts) if part.range.after == chunk.after and not part.is_done)
        rest = KeyRange(chunk.until, parts[place].range.until)
        parts[place : place + 1] = [_Part(chunk)] if rest.after == rest.until else [_Part(chunk), _Part(rest)]

    def chunk_done(self, table: str, chunk: KeyRange, rows: int) -> None:
        """Note that everything of a planned chunk was sent."""
        known = self._tables[table]
        known.rows += rows
        next(part for part in known.parts if part.range == chunk).is_done = True
        merged: list[_Part] = []
        for part in known.parts:
            if merged and merged[-1].is_done and part.is_done:
                merged[-1] = _Part(KeyRange(merged[-1].range.after, part.range.until), is_done=True)
            else:
                merged.append(part)
        known.parts = merged
        self._changed(table)

    def table_done(self, table: str, rows: int = 0) -> None:
        """Note that everything of a table was sent, in chunks that were done before or as a whole of `rows` rows."""
        known = self._tables.setdefault(table, _Table())
        known.rows += rows
        known.is_done = True
        self._changed(table)

    def _changed(self, table: str) -> None:
        """Write a table's part of the text when it changes, so that thousands of tables are not written out for each of them."""
        self._text = None
        if _is_begun(self._tables[table]):
            self._texts[table] = json.dumps({table: _shown(self._tables[table])}, separators=(",", ":"), ensure_ascii=False)[1:-1]
        else:
            self._texts.pop(table, None)


def _is_begun(table: _Table) -> bool:
    return table.is_done or any(part.is_done for part in table.parts)


def _shown(table: _Table) -> dict[str, Any]:
    if table.is_done:
        return {"rows": table.rows}
    return {"rows": table.rows, "key": table.key, "done": [[one.after, one.until] for one in table.done]}


def _parse(text: str) -> dict[str, _Table]:
    found = json.loads(text)
    if found["v"] != _VERSION:
        return {}
    return {str(name): _table(value) for name, value in found["tables"].items()}


def _table(value: Mapping[str, Any]) -> _Table:
    rows = int(value["rows"])
    if "done" not in value:
        return _Table(rows, is_done=True)
    parts: list[_Part] = []
    end: Key | None = None
    for after, until in ((_bound(one[0]), _bound(one[1])) for one in value["done"]):
        if after != end:
            parts.append(_Part(KeyRange(end, after)))
        parts.append(_Part(KeyRange(after, until), is_done=True))
        end = until
    if end is not None:
        parts.append(_Part(KeyRange(end)))
    return _Table(rows, tuple(map(str, value["key"])), parts)


def _bound(value: Sequence[str | None] | None) -> Key | None:
    return None if value is None else tuple(None if part is None else str(part) for part in value)
