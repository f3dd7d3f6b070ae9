"""Remember the last commits of a lakehouse sink's tables, by what the sink reports of them every few seconds. Pure; who owns it guards it.

A report says how many commits a table has had, not when each of them was. Two in one report are one entry, with the number of both.
For a while after its start a task also reports what the table's own history has of earlier commits; that counts where nothing is known.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from connect_py.api.task import NOTES_DOMAIN, MetricGroup

#: The type of the group by which a sink reports a table.
TABLE_GROUP = "lakehouse-table"

#: By such a note it reports one of a table's commits from before its start: ``at``, and where it is known ``records``.
PAST_GROUP = (NOTES_DOMAIN, "lakehouse-commit")

#: Of each table: a sink of 200 tables takes 2 MB then. Ten are shown, as a page asks for them every two seconds.
_KEPT, _SHOWN = 50, 10

#: What is counted, by the names of an entry.
_TOTALS = {"commits": "commits-total", "records": "records-applied-total", "seconds": "apply-seconds-total"}


@dataclass(slots=True)
class _Table:
    totals: Mapping[str, float]
    entries: deque[Mapping[str, float]] = field(default_factory=lambda: deque(maxlen=_KEPT))


class TableCommits:
    """The commits of one task's tables."""

    def __init__(self) -> None:
        self._tables: dict[str, _Table] = {}

    def note(self, groups: Iterable[MetricGroup]) -> None:
        """Take a report."""
        reported = list(groups)
        self._note_past([group for group in reported if (group.domain, group.type) == PAST_GROUP])
        for group in reported:
            if group.type != TABLE_GROUP or _TOTALS["commits"] not in group.values:
                continue
            totals = {name: _number(group, figure) for name, figure in _TOTALS.items()}
            name = group.tags.get("table", "")
            known = self._tables.get(name)
            if known is None or totals["commits"] < known.totals["commits"]:  # the first report, or the first of another process
                entries = known.entries if known is not None else deque[Mapping[str, float]](maxlen=_KEPT)
                known = self._tables[name] = _Table(dict.fromkeys(_TOTALS, 0.0), entries)
            if totals["commits"] > known.totals["commits"]:
                added = {each: totals[each] - known.totals[each] for each in totals}
                known.entries.append({"at": _number(group, "last-commit-timestamp-seconds"), **added})
                known.totals = totals

    def _note_past(self, notes: list[MetricGroup]) -> None:
        found: dict[str, list[Mapping[str, float]]] = {}
        for note in notes:
            values = {name: _number(note, name) for name in ("at", "records") if name in note.values}
            found.setdefault(note.tags.get("table", ""), []).append(values)
        for name, past in found.items():
            known = self._tables.setdefault(name, _Table(dict.fromkeys(_TOTALS, 0.0)))
            if not known.entries:
                known.entries.extend(sorted(past, key=lambda entry: entry["at"])[-_KEPT:])

    def shown(self) -> dict[str, list[Mapping[str, float]]]:
        """Return the last entries of each table, the oldest first: ``at`` (seconds since 1970, of the last commit of the entry),
        ``commits``, ``records`` and ``seconds``; of commits from before the task only ``at`` and, where it is known, ``records``."""
        return {name: list(table.entries)[-_SHOWN:] for name, table in self._tables.items()}


def _number(group: MetricGroup, figure: str) -> float:
    value = group.values.get(figure)
    return float(value) if isinstance(value, int | float) else 0.0
