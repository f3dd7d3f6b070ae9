"""Compare tables for a worker whose client asks: the inside of a process that ends with the comparison (`connect_py.host.verifications`).

The worker gives all of its connectors as they are stored, and a name among them; what belongs to it is found as the command `verify` finds
it. Values of variables are looked up here, by the worker's providers. Messages to the worker, one JSON object a line:

    progress {table, phase, rows, expected}     phase: table, source or settling
    result {source, sink, verdict, notes, …}    with the fields of `report.as_json`, unless the verdict is "nothing in common"; else it is
                                                equal, different or not compared. Of a topic there is no sink
    verification_failed {error}

Keys and values of rows are only told where the worker's property `rest.ui.records` allows it; else the names of columns that differ are.
"""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from connect_py.app.verify.progress import Progress, Side
from connect_py.errors import ConnectError
from connect_py.extras import install_command
from connect_py.plugins.registry import Plugins

if TYPE_CHECKING:
    from connect_py.app.verify.pairs import Pair, Result

#: The comparison may use what time tasks leave.
_NICENESS = 10
_PROGRESS_SECONDS = 0.5
_SHOWN = 20

Report = Callable[[Mapping[str, Any]], None]
Resolve = Callable[[Mapping[str, str]], Mapping[str, str]]


def compare(start: Mapping[str, Any], plugins: Plugins, resolve: Resolve, report: Report, describe: Callable[[Exception], str]) -> None:
    """Compare, and report what is found.

    Args:
        start: ``connector`` (a source or a sink), ``connectors`` (``name``, ``config``, ``topics`` of each), ``tables`` (Python regexes of
            whole names; none means all), ``topics`` (whether the topics are compared, too, after the tables: those of the tables' sources),
            ``shows_rows`` and ``worker``, its properties.
        resolve: returns a configuration with the values of its variables.
        describe: makes a text of an error, without secrets.
    """
    os.nice(_NICENESS)
    try:
        _compare(start, plugins, resolve, report)
    except ImportError as error:
        report(_failure(f"To compare tables, the worker needs the package {error.name}: {install_command('verify')}"))
    except ConnectError as error:
        report(_failure(describe(error)))


def _failure(error: str) -> Mapping[str, Any]:
    return {"type": "verification_failed", "error": error}


def _compare(start: Mapping[str, Any], plugins: Plugins, resolve: Resolve, report: Report) -> None:
    from connect_py.app.verify.pairs import Connector, Pair, pairs_of, verify_pairs

    known = [Connector(each["name"], each["config"], frozenset(each["topics"])) for each in start["connectors"]]
    values: dict[str, Connector] = {}

    def with_values(connector: Connector) -> Connector:
        if connector.name not in values:
            values[connector.name] = Connector(connector.name, resolve(connector.config), connector.topics)
        return values[connector.name]

    pairs = [Pair(with_values(pair.source), with_values(pair.sink)) for pair in pairs_of(start["connector"], known, plugins)]
    progress = _Told(report)
    of_tables: dict[str, set[str]] = {}
    for result in verify_pairs(pairs, start["tables"], shown=_SHOWN, progress=progress):
        of_tables.setdefault(result.pair.source.name, set()).update(result.outcome.sources if result.outcome is not None else ())
        report(_message_of(result, shows_rows=start["shows_rows"]))
    if start["topics"]:
        for result in _topics(pairs, start, of_tables, progress):
            report(_message_of(result, shows_rows=start["shows_rows"]))


def _topics(pairs: Sequence[Pair], start: Mapping[str, Any], of_tables: Mapping[str, set[str]], progress: Progress) -> Iterator[Result]:
    """Compare the topics between the sources and the sinks of pairs, of these tables of the sources."""
    from connect_py.app.verify.pairs import Result, Topics
    from connect_py.app.verify.topic.run import Brokers, verify_topics
    from connect_py.kafka.client import internal_properties

    brokers = Brokers(start["worker"], internal_properties(start["worker"], "verify"))
    for source in {pair.source.name: pair.source for pair in pairs}.values():
        topics = Topics(source, [pair.sink for pair in pairs if pair.source is source])
        names = [re.escape(name) for name in sorted(of_tables.get(source.name, ()))]
        if names:
            for outcome in verify_topics(source.config, brokers, names, shown=_SHOWN, read_by=topics.read_by, progress=progress):
                yield Result(topics, outcome)


def _message_of(result: Result, *, shows_rows: bool) -> Mapping[str, Any]:
    """Return the message that tells what came of a table or a topic."""
    from connect_py.app.verify.report import as_json, notes_of

    outcome, names = result.outcome, {"type": "result", **result.pair.names}
    if outcome is None:
        return {**names, "verdict": "nothing in common"}
    verdict = "not compared" if outcome.problem else "equal" if outcome.equal else "different"
    columns = Counter(name for difference in outcome.differences for name in difference.columns)
    found = as_json(outcome)
    if not shows_rows:
        found.pop("differences")
    return {**names, **found, "verdict": verdict, "notes": notes_of(outcome), "columns": dict(columns)}


class _Told(Progress):
    """Tells the worker, at most twice a second."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._table = ""
        self._estimate: int | None = None
        self._rows: dict[Side, int] = {}
        self._told_at = float("-inf")

    def begin(self, table: str, estimate: int | None) -> None:
        self._table, self._estimate, self._rows = table, estimate, {}
        self._tell("table", 0, estimate)

    def read(self, side: Side, rows: int) -> None:
        self._rows[side] = self._rows.get(side, 0) + rows
        if time.monotonic() - self._told_at >= _PROGRESS_SECONDS:
            self._tell(side, self._rows[side], self._estimate if side == "table" else self._rows.get("table"))

    def wait(self, keys: int, seconds: float) -> None:
        self._tell("settling", keys, None)

    def _tell(self, phase: str, rows: int, expected: int | None) -> None:
        self._told_at = time.monotonic()
        self._report({"type": "progress", "table": self._table, "phase": phase, "rows": rows, "expected": expected})
