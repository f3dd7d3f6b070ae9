"""Ask the other workers of the group, for the page, what only they know: figures, snapshots and log lines of the tasks that they run.

A question is a request that is signed with the group's session key (KIP-507), so workers need no password of each other, and none is sent.
Its body names the worker that is asked, and the time: what listens at the address of a worker that is gone can do nothing with it. Groups
of the protocols before `sessioned` have no key, and Java's workers have no page: of their tasks nothing is known then but the states.

A worker that does not answer is left out for some seconds, so that a page never waits longer than `_ANSWER_SECONDS`. While no page is open
nothing is asked.

Threads: those of the REST server ask, a few of this module wait for the answers; one lock guards what is known. `merged_…` are pure.
"""

from __future__ import annotations

import concurrent.futures
import json
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from connect_py.errors import BadRequestError, RetriableError
from connect_py.herder.applier import Applier

log = logging.getLogger(__name__)

#: Where a worker answers; `rest_api.routes.page` has the route.
PATH: Final = "ui/api/group"

#: For how long an answer is waited for, and by how much the clocks of two workers may differ.
_ANSWER_SECONDS, _CLOCKS_MS = 2.0, 300_000

#: For how long a worker that does not answer, or that has no page, is not asked again.
_SILENT_SECONDS, _PAGELESS_SECONDS = 5.0, 60.0

#: The list of a worker is asked for so often while a page is open, and shown for so long without news. The first page waits a little.
_LIST_SECONDS, _STALE_SECONDS, _FIRST_SECONDS = 1.0, 10.0, 0.7

_AT_A_TIME = 8

#: Verdicts that follow from the states of a connector and its tasks.
_OF_STATES = frozenset({"running", "starting", "restarting", "failed", "paused", "stopped", "unassigned", "destroyed"})

Entry = Mapping[str, Any]


class OtherWorkers:
    """Asks. Any thread may call.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, applier: Applier, clock: Callable[[], float] = time.monotonic) -> None:
        self._applier, self._clock = applier, clock
        self._pool = concurrent.futures.ThreadPoolExecutor(_AT_A_TIME, thread_name_prefix="other-workers")
        self._lock = threading.Lock()
        self._is_closed = False
        self._silent_until: dict[str, float] = {}
        self._asked_at: dict[str, float] = {}
        self._lists: dict[str, tuple[float, Mapping[str, Entry]]] = {}

    def ids(self) -> list[str]:
        """Return the workers that have reported something that they run, without this one."""
        return sorted(self.work().keys() - {self._applier.worker_id})

    def work(self) -> dict[str, dict[str, int]]:
        """Return the number of ``connectors`` and ``tasks`` by worker, as they were reported; this worker is there in any case."""
        statuses = self._applier.statuses
        found = {self._applier.worker_id: {"connectors": 0, "tasks": 0}}
        for name in self._applier.configs.snapshot().connectors:
            reports = [("connectors", statuses.connector(name)), *(("tasks", status) for status in statuses.tasks(name).values())]
            for what, status in reports:
                if status is not None and status.state not in ("UNASSIGNED", "DESTROYED"):
                    found.setdefault(status.worker_id, {"connectors": 0, "tasks": 0})[what] += 1
        return found

    def ask(self, questions: Mapping[str, Sequence[object]]) -> dict[str, Any]:
        """Return the answers to a question for each worker; who does not answer in time is left out.

        Args:
            questions: by worker; their shapes are those of `PageRequests.answer`.
        """
        with self._lock:
            if self._is_closed:
                return {}
            asked = {worker: self._pool.submit(self._ask, worker, question) for worker, question in questions.items()}
        concurrent.futures.wait(asked.values(), _ANSWER_SECONDS + 0.5)
        return {worker: future.result() for worker, future in asked.items() if future.done() and future.result() is not None}

    def lists(self) -> dict[str, Mapping[str, Entry]]:
        """Return the entries of the page's list by worker, as they were a second or two ago."""
        now, workers = self._clock(), self.ids()
        with self._lock:
            if self._is_closed:
                return {}
            for known in (self._asked_at, self._lists, self._silent_until):
                for gone in known.keys() - set(workers):
                    del known[gone]
            due = [worker for worker in workers if now - self._asked_at.get(worker, float("-inf")) >= _LIST_SECONDS]
            self._asked_at |= dict.fromkeys(due, now)
            asked = {worker: self._pool.submit(self._take_list, worker) for worker in due}
            first = [asked[worker] for worker in due if worker not in self._lists and now >= self._silent_until.get(worker, 0.0)]
        concurrent.futures.wait(first, _FIRST_SECONDS)
        with self._lock:
            return {worker: entries for worker, (at, entries) in self._lists.items() if self._clock() - at < _STALE_SECONDS}

    def close(self) -> None:
        """Wait for no answer any more; threads that wait for one end within seconds."""
        with self._lock:
            self._is_closed = True
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _take_list(self, worker: str) -> None:
        found = self._ask(worker, ["list"])
        if found is not None:
            with self._lock:
                self._lists[worker] = self._clock(), found

    def _ask(self, worker: str, question: Sequence[object]) -> Any:
        """Return an answer; None without one."""
        with self._lock:
            if self._clock() < self._silent_until.get(worker, 0.0):
                return None
        body = json.dumps({"to": worker, "at": int(time.time() * 1000), "ask": list(question)}).encode()
        signed = self._applier.sign(body)
        if not signed:
            return None
        url = f"{self._applier.worker.advertised_scheme}://{worker}/{PATH}"
        headers = {"Content-Type": "application/json", "Accept": "application/json", **signed}
        try:
            answer = self._applier.peers.send("POST", url, body, headers, _ANSWER_SECONDS)
            if answer.status == 200:
                return json.loads(answer.body)
            problem, seconds = f"HTTP {answer.status}", _PAGELESS_SECONDS if answer.status == 404 else _SILENT_SECONDS
        except (RetriableError, ValueError) as error:
            problem, seconds = str(error), _SILENT_SECONDS
        log.debug("The worker %s does not say what its tasks do: %s", worker, problem)
        with self._lock:
            self._silent_until[worker] = self._clock() + seconds
        return None


def read_question(body: bytes, worker_id: str, now_ms: int) -> list[Any]:
    """Return what another worker asks, whose signature has been found to be right.

    Raises:
        BadRequestError: it is no question, of another time, or for another worker.
    """
    try:
        asked = json.loads(body)
        to, at, question = asked["to"], asked["at"], asked["ask"]
    except (ValueError, KeyError, TypeError) as error:
        raise BadRequestError("The request's body must be a question of another worker.") from error
    if to != worker_id:
        raise BadRequestError(f"The question is for the worker {to}; this one is {worker_id}.")
    if not isinstance(at, int) or abs(now_ms - at) > _CLOCKS_MS:
        raise BadRequestError("The question is of another time: the clocks of the two workers differ by more than five minutes.")
    if not isinstance(question, list) or not question or not all(isinstance(part, str | int) for part in question):
        raise BadRequestError("The request's body must be a question of another worker.")
    return question


def merged_entry(own: Entry, others: Mapping[str, Entry]) -> Entry:
    """Return an entry of the list with what other workers measure, all tasks together.

    Args:
        others: of workers on which something of the connector runs.
    """
    if not others:
        return own
    parts = [*([own] if own["here"] else []), *others.values()]
    rates = [part["rate"] for part in parts if part["rate"] is not None]
    verdict, reason = _verdict(own, others)
    return {
        **own,
        "verdict": verdict,
        "reason": reason,
        "rate": float(f"{sum(rates):.4g}") if rates else None,
        "behind": _furthest(part["behind"] for part in parts),
        "snapshot": next((part["snapshot"] for part in parts if part["snapshot"] is not None), None),
        "trend": [float(f"{sum(at):.3g}") for at in zip(*(part["trend"] for part in parts if part["trend"]), strict=False)],
    }


def _verdict(own: Entry, others: Mapping[str, Entry]) -> tuple[str, str]:
    """Return the verdict of who knows most: a worker that runs a task, then the one that asks the connector's database.

    What follows from states alone is this worker's to say, which has read them later.
    """
    if own["verdict"] in _OF_STATES and own["verdict"] != "running":
        return own["verdict"], own["reason"]
    measured = [part for part in (own, *others.values()) if part["verdict"] not in _OF_STATES]
    measured.sort(key=lambda part: (part["verdict"] == "unknown", not part["tasks_here"], part["verdict"] != "behind"))
    return (measured[0]["verdict"], measured[0]["reason"]) if measured else ("running", "")


def _furthest(parts: Iterable[Mapping[str, Any] | None]) -> Mapping[str, Any] | None:
    found: dict[str, Any] = {}
    for part in parts:
        for name, value in (part or {}).items():
            found[name] = max(found[name], value) if name in found and name != "unit" else value
    return found or None


#: What only the worker that runs a task knows of it; an older worker does not tell all of it.
_OF_TASK = ("here", "latest", "errors", "skipped", "events")


def merged_connector(own: Mapping[str, Any], others: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return everything about a connector (`PageRequests.connector`), with the figures of the tasks that other workers run."""
    known = {task["task"]: task for other in others.values() for task in other["task_list"] if task["here"]}
    return {
        **merged_entry(own, {worker: other for worker, other in others.items() if other["here"]}),
        "task_list": [
            {**task, **{name: known[task["task"]][name] for name in _OF_TASK if name in known[task["task"]]}}
            if not task["here"] and task["task"] in known
            else task
            for task in own["task_list"]
        ],
        "source": max((part["source"] for part in (own, *others.values())), key=_known_of_log),
        "snapshots": {number: shown for part in (*others.values(), own) for number, shown in part["snapshots"].items()},
        "sink": next((part["sink"] for part in (own, *others.values()) if part["sink"]), {}),
        "tables": [table for part in (own, *others.values()) for table in part["tables"]],
        "rejected": [note for part in (own, *others.values()) for note in part.get("rejected", ())],
        "debug_until": max((until for part in (own, *others.values()) if (until := part.get("debug_until")) is not None), default=None),
    }


def _known_of_log(source: Mapping[str, Any] | None) -> int:
    return 0 if source is None else 2 if source["facts"] else 1


def merged_history(own: Mapping[str, Any], others: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the series of all tasks (`PageRequests.history`); of a task that has moved, those of both workers in one."""
    parts = [own, *others.values()]
    tasks: dict[str, Mapping[str, Any]] = {}
    for part in parts:
        for number, points in part["tasks"].items():
            tasks[number] = _laid_over(tasks[number], points) if number in tasks else points
    began = [part["began"] for part in parts if part["tasks"]]
    return {"tasks": dict(sorted(tasks.items())), "began": min(began, default=own["began"])}


def _laid_over(first: Mapping[str, Any], second: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return points with what is missing taken from points of other times."""
    if first["step"] != second["step"]:
        return first
    shift = (first["start"] - second["start"]) // first["step"]
    series = {}
    for name, values in first["series"].items():
        more = second["series"].get(name, [])
        series[name] = [more[at + shift] if value is None and 0 <= at + shift < len(more) else value for at, value in enumerate(values)]
    return {**first, "series": series}
