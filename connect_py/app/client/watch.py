"""Decide from statuses when a connector that was changed has settled, and what is wrong with it. Pure: fed with statuses and seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Status = Mapping[str, Any]

#: A status may be older than the change that it should show: a worker of the group learns of it from Kafka, and a restarted task reports
#: when it runs. A state that stays for this long is taken for the answer.
SETTLE_SECONDS = 3.0


@dataclass
class Watch:
    """Decides when a connector has settled.

    A failure that was there before the change counts only when it stays, and so does the wanted state. A new failure counts at once.

    Args:
        before: `traces` before the change.
        state: of the tasks to wait for: RUNNING or PAUSED, or STOPPED, for which there must be no tasks.
        settle_seconds: for how long a state must stay.
    """

    before: Mapping[str, str] = field(default_factory=dict)
    state: str = "RUNNING"
    settle_seconds: float = SETTLE_SECONDS
    _since: float = 0.0
    _last: object = None

    @classmethod
    def after_change(cls, before: Status) -> Watch:
        """Return one for a change that leaves a paused connector paused, and a stopped one stopped.

        Args:
            before: the status before the change.
        """
        state = str(before["connector"]["state"])
        return cls(traces(before), state if state in ("PAUSED", "STOPPED") else "RUNNING")

    def look(self, status: Status | None, now: float) -> tuple[bool, str]:
        """Return (whether it is over, the first failure or an empty text).

        Args:
            status: the last one; None while the worker has none.
            now: in seconds, of any clock.
        """
        if status is None:
            return False, ""
        failures = traces(status)
        for where, trace in failures.items():
            if self.before.get(where) != trace:
                return True, f"{where}: {trace}"
        seen = [("connector", status["connector"]["state"]), *((task["id"], task["state"]) for task in status["tasks"])]
        if seen != self._last:
            self._last, self._since = seen, now
        if now - self._since < self.settle_seconds:
            return False, ""
        if failures:
            where, trace = next(iter(failures.items()))
            return True, f"{where}: {trace}"
        return self._is_reached(status), ""

    def _is_reached(self, status: Status) -> bool:
        if status["connector"]["state"] != self.state:
            return False
        tasks = status["tasks"]
        return not tasks if self.state == "STOPPED" else bool(tasks) and all(task["state"] == self.state for task in tasks)


def traces(status: Status) -> dict[str, str]:
    """Return the traces of what is FAILED: ``connector`` or ``task 0`` → trace."""
    parts = {"connector": status["connector"], **{f"task {task['id']}": task for task in status["tasks"]}}
    return {name: str(part.get("trace") or "no trace") for name, part in parts.items() if part["state"] == "FAILED"}


def state_text(status: Status) -> str:
    """Return one word for a connector with its tasks: FAILED when any of it has failed, else the connector's state, or that of tasks that
    are not there yet."""
    if traces(status):
        return "FAILED"
    state = str(status["connector"]["state"])
    others = [str(task["state"]) for task in status["tasks"] if task["state"] != state]
    return others[0] if state == "RUNNING" and others else state


def tasks_text(status: Status) -> str:
    """Return ``2/3``: how many of the tasks are in the connector's own state; ``-`` without tasks."""
    tasks, state = status["tasks"], status["connector"]["state"]
    return f"{sum(task['state'] == state for task in tasks)}/{len(tasks)}" if tasks else "-"


def snapshot_text(task: Mapping[str, Any]) -> str:
    """Return how far the snapshot of a task is, where this project's worker shows one that takes long."""
    snapshot = task.get("snapshot")
    if not isinstance(snapshot, dict) or snapshot.get("state") != "RUNNING":
        return ""
    rows, estimate = int(snapshot.get("rows", 0)), int(snapshot.get("estimated_rows") or 0)
    left = [int(table["seconds_left"]) for table in snapshot.get("tables", ()) if table.get("seconds_left") is not None]
    share = f", {min(99, 100 * rows // estimate)} %" if estimate else ""
    return f"snapshot {rows:,} rows{share}" + (f", {max(left)} s left" if left else "")
