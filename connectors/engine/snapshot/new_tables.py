"""Tables that a running connector begins to capture: which they are, and that each is read once (ours; ``snapshot.new.tables``). Pure.

The names of the tables whose rows were read, or that are followed since they were made, travel in the source offset, under a name that
Debezium does not know. A start compares them with what is captured now. What is new goes to the queue of the incremental snapshot in the
same step in which its name is noted, so that one offset has both: a task that is killed resumes with the queue, or finds the table new
again.

A table that is no longer captured is forgotten: when it comes back its rows have changed unseen, and it is read again. One that was made
while the stream was read is in the stream from its first row on, and is not new to the next start.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Final

log = logging.getLogger(__name__)

#: The field of the source offset.
FIELD: Final = "connect_py_tables"


class NewTables:
    """Owned by the task's thread.

    Args:
        is_on: whether the property asks for it; otherwise nothing is noted and nothing is new.
        ignored: tables that no snapshot reads, such as the signal table.

    Attributes:
        is_on: as given.
    """

    def __init__(self, *, is_on: bool, ignored: Collection[str] = ()) -> None:
        self.is_on = is_on
        self._ignored = frozenset(ignored)
        self._known: frozenset[str] | None = None
        self._captured: frozenset[str] | None = None
        self._fields: Mapping[str, str] = {}
        self._due: list[str] = []

    def fields(self) -> Mapping[str, str]:
        """Return the fields for the source offset; empty while nothing is known."""
        return self._fields

    def restore(self, stored: Mapping[str, object]) -> None:
        """Resume from an offset; a field that cannot be read counts as none."""
        self._due = []
        text = stored.get(FIELD) if self.is_on else None
        found = None
        if text is not None:
            try:
                found = frozenset(str(name) for name in json.loads(str(text)))
            except (ValueError, TypeError):
                log.warning("The field '%s' of the stored offset is no list of tables and is made from_start: %r", FIELD, text)
        self._note(found)

    def captures(self, names: Sequence[str], *, from_start: bool, before: Collection[str] | None = None) -> None:
        """Note what is captured from now on.

        Args:
            from_start: whether all of it counts as read: there was no position, or an initial snapshot reads it.
            before: what was captured before this start, where that is known without the offset; None where not. For offsets of before
                this was asked for.
        """
        if not self.is_on:
            return
        captured = self._captured = frozenset(names)
        known = self._known
        if from_start:
            known = captured
        elif known is None:
            known = captured if before is None else captured & frozenset(before)
        self._due = [name for name in names if name not in known and name not in self._ignored]
        self._note((known & captured) | (self._ignored & captured))

    def seen(self, name: str) -> None:
        """Note a table that the stream shows; one that was not there at the start was created since."""
        if self._captured is not None and self._known is not None and name not in self._captured and name not in self._known:
            self._note(self._known | {name})

    @property
    def due(self) -> Sequence[str]:
        """What has to be read, in the order of the last `captures`; the same until `queued`."""
        return self._due

    def queued(self) -> None:
        """Note that what was due is in the queue of the incremental snapshot."""
        self._note((self._known or frozenset()) | set(self._due))
        self._due = []

    def _note(self, known: frozenset[str] | None) -> None:
        self._known = known
        self._fields = {} if known is None else {FIELD: json.dumps(sorted(known), ensure_ascii=False, separators=(",", ":"))}
