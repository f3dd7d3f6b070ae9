"""Decide from statuses when a connector that was changed has settled, and what is wrong with it. Pure: fed with statuses and seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Status = Mapping[str, Any]

#: A status may be older than the change that it should show: a worker of the group learns of it from Kafka, and a restarted task reports
#: when it runs. A state that stays for this long is taken for the answer.
SETTLE_SECONDS = 3.0

#: For how long a failure from before the change must stay, unless the part was seen in another state since: a task that starts again on a
#: busy machine reports nothing for seconds, and the same mistake gives the same trace.
OLD_FAILURE_SECONDS = 15.0


@dataclass
class Watch:
    """Decides when a connector has settled.

    The wanted state counts when it stays, and so does a failure that was there before the change. A new failure counts at once.

    Args:
        before: `traces` before the change.
        state: to wait for: RUNNING, which needs a task, PAUSED, or STOPPED, which must have none.
        settle_seconds: for how long the wanted state must stay.
        old_failure_seconds: for how long a failure of `before` must stay.
    """

    before: Mapping[str, str] = field(default_factory=dict)
    state: str = "RUNNING"
    settle_seconds: float = SETTLE_SECONDS
    old_failure_seconds: float = OLD_FAILURE_SECONDS
    _since: float = 0.0
    _last: object = None
    _left: set[str] = field(default_factory=set)

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
        self._left |= {where for where in self.before if where not in failures}
        for where, trace in failures.items():
            if self.before.get(where) != trace or where in self._left:
                return True, f"{where}: {trace}"
        seen = [("connector", status["connector"]["state"]), *((task["id"], task["state"]) for task in status["tasks"])]
        if seen != self._last:
            self._last, self._since = seen, now
        if now - self._since < (self.old_failure_seconds if failures else self.settle_seconds):
            return False, ""
        if failures:
            where, trace = next(iter(failures.items()))
            return True, f"{where}: {trace}"
        return self._is_reached(status), ""

    def _is_reached(self, status: Status) -> bool:
        if status["connector"]["state"] != self.state:
            return False
        tasks = status["tasks"]
        if self.state == "STOPPED":
            return not tasks
        # a connector that was created paused has no tasks before it is resumed (KIP-980)
        return (bool(tasks) or self.state == "PAUSED") and all(task["state"] == self.state for task in tasks)


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
