"""Answer what the page of the worker asks, from memory (`connect_py.herder.base.Page`; the shapes are in docs/ui.md).

The list of connectors is made at most twice a second, whatever the number of pages that look at it, and each entry has the number of
the answer in which it last changed: a page that has seen an answer is sent what is different since. Numbers grow over a worker's restarts,
since they begin at the time of its start in milliseconds.

Threads: those of the REST server; one lock guards the last answer.
"""

from __future__ import annotations

import functools
import os
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from connect_py import __version__
from connect_py.api import ConfigType
from connect_py.api.doctor import Diagnosis
from connect_py.api.storage import ClusterConfig, Status
from connect_py.api.tables import SourceTables
from connect_py.api.task import NOTES_DOMAIN, MetricGroup
from connect_py.config.connector import CONNECTOR_CLASS, NAME, secrets_of
from connect_py.data.java_map import in_java_order
from connect_py.errors import BadRequestError, ConnectError, NotFoundError
from connect_py.herder import validation
from connect_py.herder.applier import Applier
from connect_py.herder.base import ConfigInfos, ConnectorInfo
from connect_py.herder.other_workers import OtherWorkers, merged_connector, merged_entry, merged_history, read_question
from connect_py.herder.secret_values import hidden, restored, without_secrets
from connect_py.log import lines as line_logging
from connect_py.log.redact import HIDDEN, MIN_LENGTH, is_secret_name, redactor, scrub
from connect_py.log.traces import cause_of, statement_of
from connect_py.metrics.commits import TABLE_GROUP
from connect_py.metrics.verdict import BEHIND_SECONDS, time_text
from connect_py.metrics.worker import ConnectorFigures
from connect_py.plugins.registry import kinds_of

#: The release of Kafka Connect whose behaviour this worker has.
VERSION = "4.3.1"

#: Two pages that ask within this time see the same answer.
_FRESH_SECONDS = 0.5

#: Names of connectors that are gone are kept for pages that saw them; an older page is sent everything.
_MOST_GONE = 1000

#: Characters of the line that says what is wrong.
_LINE_LENGTH = 400

#: Stores a connector (`Herder.put_connector`).
PutConnector = Callable[..., tuple[bool, ConnectorInfo]]

#: Looks at a configuration and its servers (`Herder.doctor`).
Diagnose = Callable[[Mapping[str, str | None]], Diagnosis]

#: Lists the tables of a source (`Herder.list_tables`).
ListTables = Callable[[Mapping[str, str | None]], SourceTables]


class PageRequests:
    """Implements `connect_py.herder.base.Page`.

    Args:
        put_connector, doctor, list_tables: of the herder whose page this is.
        others: tell what their tasks do.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        applier: Applier,
        put_connector: PutConnector,
        doctor: Diagnose,
        list_tables: ListTables,
        others: OtherWorkers,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._applier, self._others = applier, others
        self._put_connector, self._doctor, self._list_tables = put_connector, doctor, list_tables
        self._clock = clock
        self._lock = threading.Lock()
        self._began_ms = self._number = int(time.time() * 1000)
        self._made_at = float("-inf")
        self._entries: dict[str, tuple[int, Mapping[str, Any]]] = {}
        self._gone: dict[str, int] = {}
        self._oldest = self._began_ms

    # -- the list

    def state(self, since: int | None) -> Mapping[str, Any]:
        """Return all connectors, or those that have changed since an answer."""
        if self._is_stale():
            others = self._others.lists()  # may wait for other workers: not with the lock
            with self._lock:
                if self._is_stale():
                    self._make(others)
                    self._made_at = self._clock()
        with self._lock:
            is_full = since is None or not self._oldest <= since <= self._number
            after = -1 if is_full or since is None else since
            return {
                "seq": self._number,
                "full": is_full,
                "worker": self._applier.worker_id,
                "connectors": {name: entry for name, (number, entry) in self._entries.items() if number > after},
                "gone": [] if is_full else [name for name, number in self._gone.items() if number > after],
            }

    def _is_stale(self) -> bool:
        return self._clock() - self._made_at >= _FRESH_SECONDS

    def _make(self, others: Mapping[str, Mapping[str, Any]]) -> None:
        snapshot, figures = self._applier.configs.snapshot(), self._applier.metrics.figures()
        number = self._number + 1
        made: dict[str, tuple[int, Mapping[str, Any]]] = {}
        for name, config in snapshot.connectors.items():
            own = self._entry(snapshot, name, config, figures.get(name))
            entry = merged_entry(own, {worker: entries[name] for worker, entries in others.items() if name in entries})
            known = self._entries.get(name)
            made[name] = known if known is not None and known[1] == entry else (number, entry)
        for name in self._entries.keys() - made.keys():
            self._gone[name] = number
        for name in made:
            self._gone.pop(name, None)
        while len(self._gone) > _MOST_GONE:
            self._oldest = max(self._oldest, self._gone.pop(next(iter(self._gone))))
        if made != self._entries:
            self._number = number
        self._entries = made

    def _entry(self, snapshot: ClusterConfig, name: str, config: Mapping[str, str], figures: ConnectorFigures | None) -> Mapping[str, Any]:
        connector, tasks = self._applier.statuses.connector(name), self._applier.statuses.tasks(name)
        kind = self._kind(config)
        verdict, reason = _verdict(connector, tasks, figures, kind, self._applier.worker_id)
        own = {} if figures is None else figures.tasks
        rates = [values["records_out"] for values in own.values() if "records_out" in values]
        return {
            "class": config.get(CONNECTOR_CLASS, ""),
            "type": kind,
            "state": "UNASSIGNED" if connector is None else connector.state,
            "target": snapshot.target_state(name).value,
            "worker": None if connector is None else connector.worker_id,
            "here": figures is not None,
            "tasks_here": len(own),
            "tasks": dict(Counter(status.state for status in tasks.values())),
            "verdict": verdict,
            "reason": reason,
            "rate": _short(sum(rates)) if rates else None,
            "behind": _behind(figures, verdict),
            "snapshot": _snapshot(figures),
            "trouble": _trouble(connector, tasks),
            "trend": [] if figures is None or not any(figures.trend) else list(figures.trend),
        }

    def _kind(self, config: Mapping[str, str]) -> str:
        try:
            return kinds_of(self._applier.plugins.connector(config.get(CONNECTOR_CLASS, "")))[0]
        except ConnectError:
            return "unknown"

    # -- one connector

    def connector(self, name: str) -> Mapping[str, Any]:
        """Return everything about one connector. Raises NotFoundError."""
        own = self._own_connector(name)
        reported = {own["worker"], *(task["worker"] for task in own["task_list"] if task["state"] != "UNASSIGNED")}
        workers = [worker for worker in self._others.ids() if worker in reported]
        answers = self._others.ask({worker: ["connector", name] for worker in workers})
        return {**merged_connector(own, answers), "silent": [worker for worker in workers if worker not in answers]}

    def _own_connector(self, name: str) -> Mapping[str, Any]:
        snapshot = self._applier.configs.snapshot()
        config, metrics = _config_of(snapshot, name), self._applier.metrics
        figures, own = metrics.figures().get(name), metrics.tasks(name)
        connector, tasks = self._applier.statuses.connector(name), self._applier.statuses.tasks(name)
        groups, events = [group for task in own.values() for group in task.groups], metrics.events(name)
        return {
            "name": name,
            **self._entry(snapshot, name, config, figures),
            "trace": _clean(connector),
            "task_list": [
                {
                    "task": number,
                    "state": status.state,
                    "worker": status.worker_id,
                    "here": number in own,
                    "version": status.version,
                    "trace": _clean(status),
                    "statement": statement_of(status.trace or ""),
                    "restarts": status.restarts,
                    "latest": {series: _short(value) for series, value in own[number].latest.items()} if number in own else {},
                    "errors": _values(own[number].groups, "task-error-metrics") if number in own else {},
                    "skipped": self._notes(own[number].groups, "skipped-record") if number in own else [],
                    "events": [{**event, "why": line_logging.clean(event["why"])} for event in events.get(number, ())],
                }
                for number, status in sorted(tasks.items())
            ],
            "source": None if figures is None else figures.source,
            "snapshots": {str(number): shown for number, shown in metrics.snapshots(name).items()},
            "topics": list(self._applier.statuses.topics(name)) if self._applier.worker.topic_tracking else None,
            "debug_until": self._applier.logs_more_until(name),
            "sink": _values(groups, "lakehouse-sink"),
            "tables": _tables(groups, metrics.commits(name)),
            "rejected": self._notes(groups, "rejected-record"),
        }

    def _notes(self, groups: Iterable[MetricGroup], kind: str) -> list[Mapping[str, Any]]:
        """Return what tasks note of single records, the last one first; a message may hold values, which only ``rest.ui.records`` shows."""
        shows = self._applier.worker.shows_records
        found = [
            {name: line_logging.clean(value) if isinstance(value, str) else value for name, value in group.values.items()}
            for group in groups
            if (group.domain, group.type) == (NOTES_DOMAIN, kind)
        ]
        notes = [note if shows else {name: value for name, value in note.items() if name != "message"} for note in found]
        return sorted(notes, key=lambda note: note["at"], reverse=True)

    def history(self, name: str, seconds: int) -> Mapping[str, Any]:
        """Return what the connector's tasks measured."""
        answers = self._others.ask({worker: ["history", name, seconds] for worker in self._others.ids()})
        return merged_history(self._own_history(name, seconds), answers)

    def _own_history(self, name: str, seconds: int) -> Mapping[str, Any]:
        found = self._applier.metrics.history(name, seconds)
        return {"tasks": {str(number): points for number, points in found.items()}, "began": self._began_ms // 1000}

    def log(self, name: str, since: str) -> Mapping[str, Any]:
        """Return the last lines that the connector's tasks have logged. Raises BadRequestError."""
        seen = _read_marks(since)
        own_id, workers = self._applier.worker_id, self._others.ids()
        answers = self._others.ask({worker: ["log", name, seen(worker)] for worker in workers})
        found = {own_id: self._applier.recent_lines.of(name, seen(own_id)), **answers}
        marks = {worker: max((line[0] for line in found.get(worker, ())), default=seen(worker)) for worker in (own_id, *workers)}
        return {
            "lines": sorted((line for lines in found.values() for line in lines), key=lambda line: line[0]),
            "next": ",".join(f"{worker}={number}" for worker, number in marks.items()),
        }

    def log_more(self, name: str, seconds: int) -> None:
        """Have a connector's tasks log DEBUG for a while. Raises NotFoundError."""
        _config_of(self._applier.configs.snapshot(), name)
        self._applier.log_more(name, seconds)
        self._others.ask({worker: ["debug", name, seconds] for worker in self._others.ids()})

    # -- what other workers ask

    def answer(self, body: bytes) -> Any:
        """Tell another worker what only this one knows; None where it knows nothing. The question's signature has been checked.

        Questions and answers: ``["list"]``: the entries of connectors of which something runs here, by name; ``["connector", NAME]`` and
        ``["history", NAME, SECONDS]``: what those methods return, without other workers; ``["log", NAME, NUMBER]``: the lines after it;
        ``["debug", NAME, SECONDS]``: true, after `log_more`.

        Raises:
            BadRequestError: it is no question.
        """
        try:
            match read_question(body, self._applier.worker_id, int(time.time() * 1000)):
                case ["list"]:
                    snapshot, figures = self._applier.configs.snapshot(), self._applier.metrics.figures()
                    known = {name: config for name, config in snapshot.connectors.items() if name in figures}
                    return {name: self._entry(snapshot, name, config, figures[name]) for name, config in known.items()}
                case ["connector", str(name)]:
                    return self._own_connector(name)
                case ["history", str(name), int(seconds)]:
                    return self._own_history(name, seconds)
                case ["log", str(name), int(number)]:
                    return self._applier.recent_lines.of(name, number)
                case ["debug", str(name), int(seconds)]:
                    self._applier.log_more(name, seconds)
                    return True
        except NotFoundError:  # this worker has not read of it yet
            return None
        raise BadRequestError("This worker does not know the question; is it of an older version than the worker that asks?")

    # -- configurations

    def config(self, name: str) -> Mapping[str, str]:
        """Return a connector's configuration, secrets hidden. Raises NotFoundError."""
        config = _config_of(self._applier.configs.snapshot(), name)
        return in_java_order(without_secrets(self._applier.plugins, config))

    def put_config(self, name: str, config: Mapping[str, str | None], *, may_replace: bool) -> tuple[bool, Mapping[str, str]]:
        """Store a configuration. Raises as `Herder.put_connector`."""
        created, info = self._put_connector(name, self._meant(name, config), may_replace=may_replace)
        return created, in_java_order(without_secrets(self._applier.plugins, info.config))

    def validate(self, config: Mapping[str, str | None], *, connects: bool) -> ConfigInfos:
        """Check a configuration. Raises as `Herder.validate`."""
        meant = self._meant(config.get(NAME) or "", config)
        secrets = {secret for secret in secrets_of(self._applier.plugins, meant) if len(secret) >= MIN_LENGTH}
        with line_logging.scope(config.get(NAME) or "", "validate"), line_logging.hiding(secrets):
            infos = validation.validate(self._applier.plugins, self._applier.worker.raw, meant, self._applier.variables, connects=connects)
        return _without_secrets(infos, redactor(secrets))

    def doctor(self, config: Mapping[str, str | None]) -> Diagnosis:
        """Look at everything that a configuration needs. Raises as `Herder.doctor`."""
        return self._doctor(self._meant(config.get(NAME) or "", config))

    def list_tables(self, config: Mapping[str, str | None]) -> SourceTables:
        """Return the tables that a source could capture. Raises as `Herder.list_tables`."""
        return self._list_tables(self._meant(config.get(NAME) or "", config))

    def _meant(self, name: str, config: Mapping[str, str | None]) -> dict[str, str | None]:
        return restored(config, self._applier.configs.snapshot().connectors.get(name, {}))

    # -- tables

    def verify(self, name: str, tables: Sequence[str], *, topics: bool = False) -> None:
        """Begin to compare a connector's lakehouse tables with their sources. Raises as `Page.verify`."""
        snapshot, statuses, has_topics = self._applier.configs.snapshot(), self._applier.statuses, self._applier.worker.topic_tracking
        _config_of(snapshot, name)
        start = {
            "connector": name,
            "connectors": [
                {"name": each, "config": dict(config), "topics": list(statuses.topics(each)) if has_topics else []}
                for each, config in snapshot.connectors.items()
            ],
            "tables": [re.escape(table) for table in tables],
            "topics": topics,
            "shows_rows": self._applier.worker.shows_records,
        }
        self._applier.verifications.begin(name, tables, start)

    def verification(self, name: str) -> Mapping[str, Any] | None:
        """Return the last comparison of a connector's tables. Raises NotFoundError."""
        _config_of(self._applier.configs.snapshot(), name)
        return self._applier.verifications.of(name)

    def cancel_verification(self, name: str) -> None:
        """End the comparison of a connector's tables. Raises NotFoundError."""
        _config_of(self._applier.configs.snapshot(), name)
        self._applier.verifications.cancel(name)

    # -- the worker

    def worker(self) -> Mapping[str, Any]:
        """Return what this worker is, its properties, and the other workers of its group."""
        applier, assignment = self._applier, self._applier.assignment
        return {
            "product_version": __version__,
            "version": VERSION,
            "worker": applier.worker_id,
            "cluster": applier.cluster_id,
            "group": applier.worker.group_id,
            "leader": assignment.is_leader,
            "leader_url": assignment.leader_url,
            "generation": assignment.generation,
            "scheme": applier.worker.advertised_scheme,
            "began_ms": self._began_ms,
            "memory_bytes": _memory_bytes(),
            "workers": self._others.work(),
            "properties": self._properties(),
        }

    def _properties(self) -> list[Mapping[str, Any]]:
        """Return this worker's properties by name, each with where its value is from: `file` and `environment`, with the `place` there, or
        `default`."""
        worker = self._applier.worker
        given = {name: scrub(value) for name, value in hidden(worker.raw, None).items()}
        return [
            {"name": name, "value": value, **dict(zip(("origin", "place"), worker.origins.get(name, ("default", "")), strict=True))}
            for name, value in sorted({**worker.defaults, **given}.items())
        ]


def _read_marks(since: str) -> Callable[[str], int]:
    """Return which line of a worker was the last that a client has seen, given the `next` of an answer, or one number for all workers.

    Raises:
        BadRequestError: it is neither.
    """
    try:
        if since.isdecimal():
            return lambda worker: int(since)
        marks = {worker: int(number) for worker, _, number in (mark.rpartition("=") for mark in since.split(","))}
    except ValueError as error:
        raise BadRequestError("since is a number, or what the last answer gave as next.") from error
    return lambda worker: marks.get(worker, 0)


def _config_of(snapshot: ClusterConfig, name: str) -> Mapping[str, str]:
    config = snapshot.connectors.get(name)
    if config is None:
        raise NotFoundError(f"Connector {name} not found")
    return config


def _clean(status: Status | None) -> str | None:
    """Return a trace without secrets: a worker that hides none may have written it."""
    return None if status is None or not status.trace else line_logging.clean(status.trace)


def _verdict(
    connector: Status | None, tasks: Mapping[int, Status], figures: ConnectorFigures | None, kind: str, worker_id: str
) -> tuple[str, str]:
    """Return how a connector is doing, in one word, and why."""
    failed = sum(status.state == "FAILED" for status in tasks.values())
    if connector is not None and connector.state == "FAILED":
        return "failed", "the connector has failed"
    if failed:
        return "failed", f"{failed} of {len(tasks)} tasks failed"
    if connector is None:
        return "unassigned", "no worker has reported it yet"
    if connector.state != "RUNNING":
        return connector.state.lower(), ""
    if kind == "source" and figures is not None:
        source = figures.source
        is_asked = source["facts_age_seconds"] is not None or source["facts_error"] is not None
        if is_asked or source["verdict"] != "unknown":
            return str(source["verdict"]), str(source["reason"])
    elsewhere = sorted({status.worker_id for status in tasks.values()} - {worker_id})
    if elsewhere and (figures is None or not figures.tasks):
        return "running", f"its figures are on worker {', '.join(elsewhere)}"
    if not tasks or any(status.state != "RUNNING" for status in tasks.values()):
        return "starting", "not all of its tasks run"
    lag = _largest(figures, "lag_ms")
    if kind == "sink" and lag is not None and lag >= BEHIND_SECONDS * 1000:
        return "behind", f"{time_text(lag / 1000)} behind"
    return "running", ""


def _largest(figures: ConnectorFigures | None, series: str) -> float | None:
    return None if figures is None else max((values[series] for values in figures.tasks.values() if series in values), default=None)


def _behind(figures: ConnectorFigures | None, verdict: str) -> Mapping[str, Any] | None:
    """Return how far a connector is behind: ``seconds``, ``distance`` in ``unit``, ``records``, ``retained_bytes``; what is known."""
    if figures is None:
        return None
    source = figures.source
    found: dict[str, Any] = {}
    age = _largest(figures, "age_ms")
    if age is not None and verdict in ("streaming", "behind"):
        found["seconds"] = round(age / 1000, 1)
    lag, offsets = _largest(figures, "lag_ms"), _largest(figures, "lag_offsets")
    if lag is not None:
        found["seconds"] = round(lag / 1000, 1)
    if offsets is not None:
        found["records"] = offsets
    if source.get("distance") is not None:
        found["distance"], found["unit"] = source["distance"], source["unit"]
    for facts in (source.get("facts") or {}).values():
        if "retained-bytes" in facts:
            found["retained_bytes"] = facts["retained-bytes"]
    return found or None


def _snapshot(figures: ConnectorFigures | None) -> Mapping[str, Any] | None:
    """Return a snapshot's sum: ``state``, ``rows``, ``tables``, ``tables_done``, and where known ``estimated_rows``, ``rows_per_second``,
    ``seconds_left``."""
    whole = None if figures is None else figures.snapshot
    if whole is None:
        return None
    tables = whole["tables"]
    found = {name: whole[name] for name in ("state", "rows", "estimated_rows") if name in whole}
    found |= {"tables": len(tables), "tables_done": sum(table["state"] == "COMPLETED" for table in tables)}
    rate = sum(table.get("rows_per_second", 0.0) for table in tables if table["state"] == "RUNNING")
    if whole["state"] == "RUNNING" and rate > 0:
        found["rows_per_second"] = _short(rate)
        left = whole.get("estimated_rows", 0) - whole["rows"]
        if left > 0:
            found["seconds_left"] = round(left / rate)
    return found


def _trouble(connector: Status | None, tasks: Mapping[int, Status]) -> Mapping[str, Any] | None:
    """Return the first line of what failed, and the statement that would mend it."""
    failed: list[tuple[int | None, Status]] = [(number, status) for number, status in sorted(tasks.items()) if status.state == "FAILED"]
    if connector is not None and connector.state == "FAILED":
        failed.insert(0, (None, connector))
    for number, status in failed:
        if status.trace:
            line, statement = _headline(status.trace)
            return {"task": number, "line": line, "statement": statement}
    return None


@functools.lru_cache(maxsize=512)
def _headline(trace: str) -> tuple[str, str | None]:
    """Return the line and the statement of a trace, whose beginning holds the causes."""
    cleaned = line_logging.clean(trace[:4000])
    return cause_of(cleaned)[:_LINE_LENGTH], statement_of(cleaned)


def _values(groups: Iterable[MetricGroup], kind: str) -> dict[str, Any]:
    for group in groups:
        if group.type == kind:
            return dict(group.values)
    return {}


def _tables(groups: Iterable[MetricGroup], commits: Mapping[str, Sequence[Mapping[str, float]]]) -> list[Mapping[str, Any]]:
    """Return what a lakehouse sink reports of each table: its figures, ``operations``, ``schema_changes`` and its last ``commits``."""
    found: dict[str, dict[str, Any]] = {}
    for group in groups:
        if group.type != TABLE_GROUP:
            continue
        name = group.tags.get("table", "")
        table = found.setdefault(name, {"table": name, "operations": {}, "schema_changes": {}, "commits": commits.get(name, [])})
        if "op" in group.tags:
            table["operations"][group.tags["op"]] = group.values.get("records-applied-by-op-total")
        elif "kind" in group.tags:
            table["schema_changes"][group.tags["kind"]] = group.values.get("schema-changes-total")
        else:
            table.update(group.values)
    return list(found.values())


def _without_secrets(infos: ConfigInfos, redact: Callable[[str], str]) -> ConfigInfos:
    for key, value in infos.configs:
        is_secret = key.type is ConfigType.PASSWORD if key is not None else is_secret_name(value.name)
        if is_secret and value.value not in (None, ""):
            value.value = HIDDEN
        value.errors = [redact(error) for error in value.errors]
    return replace(infos, warnings=[redact(warning) for warning in infos.warnings])


def _short(value: float) -> float:
    """Return a number with four significant digits, so that an entry does not change for nothing."""
    return float(f"{value:.4g}")


def _memory_bytes() -> int | None:
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return None
