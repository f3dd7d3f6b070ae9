"""Keep what the sources say of their logs, and what tasks report of their progress, and judge by it.

What is kept of a task is when a figure of it last changed: a report alone does not say whether the task moves. `WorkerMetrics` owns this
and guards it with its lock. Times are monotonic seconds.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from connect_py.api.facts import POSITION_GROUP
from connect_py.api.task import MetricGroup
from connect_py.metrics.verdict import OPENING_SECONDS, STALL_SECONDS, STORED_SECONDS, Judgement, Observed, judge

#: Facts are shown for so long after the source was last able to give them.
_STALE_SECONDS = 90.0

#: How long ends of the log are remembered.
_HEADS_SECONDS = 2 * STORED_SECONDS


@dataclass(slots=True)
class Changing:
    """A figure, and when it last changed."""

    value: Any = None
    since: float = 0.0

    def note(self, value: Any, now: float) -> None:
        """Note the figure as it is now."""
        if value != self.value:
            self.value, self.since = value, now


@dataclass(slots=True)
class TaskProgress:
    """What a task's reports say of its progress."""

    reported: float | None = None
    events: Changing = field(default_factory=Changing)
    position: Changing = field(default_factory=Changing)
    acknowledged: Changing = field(default_factory=Changing)
    unacknowledged: float = 0
    waits_since: float = 0.0
    lag_ms: float = -1
    connected: Changing = field(default_factory=Changing)
    was_connected: bool = False
    is_snapshotting: bool = False

    def report(self, groups: Iterable[MetricGroup], now: float) -> None:
        """Note a report."""
        self.reported = now
        for group in groups:
            values: Mapping[str, Any] = group.values
            if group.type == "source-task-metrics":
                active = values.get("source-record-active-count") or 0
                if not self.unacknowledged or not active:
                    self.waits_since = now
                self.acknowledged.note((values.get("source-record-write-total") or 0) - active, now)
                self.unacknowledged = active
            # a connector may report a bean in parts: MySQL's adds what it alone has
            elif group.tags.get("context") == "streaming" and "Connected" in values:
                seen = values.get("TotalNumberOfEventsSeen")
                if seen or self.events.value:
                    self.events.note(seen, now)
                self.lag_ms = values.get("MilliSecondsBehindSource") or -1
                self.connected.note(bool(values.get("Connected")), now)
                self.was_connected = self.was_connected or self.connected.value
            elif group.tags.get("context") == "snapshot" and "SnapshotRunning" in values:
                self.is_snapshotting = bool(values.get("SnapshotRunning"))
            elif (group.domain, group.type) == POSITION_GROUP and "position" in values:
                self.position.note((values.get("segment"), values["position"]), now)


@dataclass(slots=True)
class _Facts:
    taken: float | None = None
    error: str = ""
    uses_offsets: bool = False
    head: int | None = None
    position: int | None = None
    unit: str = "bytes"
    segments: Mapping[str, int] = field(default_factory=dict)
    groups: Sequence[MetricGroup] = ()
    heads: deque[tuple[float, int]] = field(default_factory=deque)


class SourceFactsStore:
    """The last facts of each connector of this worker."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._facts: dict[str, _Facts] = {}

    def reported(self, connector: str, message: Mapping[str, Any], *, uses_offsets: bool) -> None:
        """Note what the source of a connector said; the message is `connect_py.task.facts.as_message`'s."""
        now = self._clock()
        facts = self._facts.setdefault(connector, _Facts())
        facts.taken, facts.error, facts.uses_offsets = now, "", uses_offsets
        facts.head, facts.position, facts.unit = message["head"], message["position"], message["unit"]
        facts.segments = message["segments"]
        where = {"connector": connector}
        facts.groups = [MetricGroup(domain, type_, {**tags, **where}, values) for domain, type_, tags, values in message["groups"]]
        if facts.head is not None:
            facts.heads.append((now, facts.head))
        while facts.heads and facts.heads[0][0] < now - _HEADS_SECONDS:
            facts.heads.popleft()

    def failed(self, connector: str, error: str) -> None:
        """Note that the source did not answer."""
        self._facts.setdefault(connector, _Facts()).error = error

    def gone(self, connector: str) -> None:
        """Forget a connector."""
        self._facts.pop(connector, None)

    def uses_offsets(self, connector: str) -> bool:
        """Return whether the source's facts are made with the stored offsets."""
        facts = self._facts.get(connector)
        return facts is not None and facts.uses_offsets

    def observe(
        self, connector: str, state: str, task_states: Sequence[str], task: TaskProgress | None, *, runs_elsewhere: bool = False
    ) -> Observed:
        """Return what is known of a connector now."""
        now = self._clock()
        facts = self._facts.get(connector) or _Facts()
        is_fresh = facts.taken is not None and now - facts.taken < _STALE_SECONDS
        seen = task or TaskProgress()
        position, since = facts.position, facts.taken or now
        if seen.position.value is not None:
            position, since = self._on_scale(facts, *seen.position.value), seen.position.since
        return Observed(
            connector_state=state,
            task_states=task_states,
            runs_elsewhere=runs_elsewhere,
            report_age=None if seen.reported is None else now - seen.reported,
            is_snapshotting=seen.is_snapshotting,
            is_connected=seen.connected.value,
            is_opening=not seen.was_connected and now - seen.connected.since < OPENING_SECONDS,
            quiet_for=None if seen.events.value is None else now - seen.events.since,
            lag_ms=seen.lag_ms,
            unacknowledged=seen.unacknowledged,
            unacknowledged_for=now - max(seen.acknowledged.since, seen.waits_since),
            head=facts.head if is_fresh else None,
            earlier_head=self._earlier(facts, now - (STORED_SECONDS if runs_elsewhere else STALL_SECONDS)) if is_fresh else None,
            position=position,
            position_age=now - since,
            unit=facts.unit,
            facts_error=facts.error,
            retained_bytes=_retained(facts.groups) if is_fresh else None,
        )

    @staticmethod
    def _on_scale(facts: _Facts, segment: int | None, position: int) -> int | None:
        if segment is None:
            return position
        start = facts.segments.get(str(segment))
        return None if start is None else start + position

    @staticmethod
    def _earlier(facts: _Facts, before: float) -> int | None:
        return max((head for at, head in facts.heads if at <= before), default=None)

    def groups(self, connector: str, judgement: Judgement, seen: Observed) -> list[MetricGroup]:
        """Return the figures of /metrics; none of a connector whose source was never asked."""
        facts = self._facts.get(connector)
        if facts is None:
            return []
        is_fresh = facts.taken is not None and self._clock() - facts.taken < _STALE_SECONDS
        values: dict[str, Any] = {"verdict": judgement.verdict.value, "facts-up": int(not facts.error)}
        if seen.head is not None and seen.position is not None:
            values[f"distance-{seen.unit}"] = max(0, seen.head - seen.position)
        own = MetricGroup("connect.py", "source", {"connector": connector}, values)
        return [own, *facts.groups] if is_fresh else [own]

    def shown(self, connector: str, judgement: Judgement, seen: Observed) -> dict[str, Any]:
        """Return a connector's state as JSON.

        ``{"verdict", "reason", "unit", "head", "position", "distance", "facts_age_seconds", "facts_error", "facts", "segments"}``, facts by
        type and name, and where each file of the log begins on the scale of `head`; what is not known is None.
        """
        facts = self._facts.get(connector) or _Facts()
        distance = None if seen.head is None or seen.position is None else max(0, seen.head - seen.position)
        return {
            "verdict": judgement.verdict.value,
            "reason": judgement.reason,
            "unit": facts.unit,
            "head": seen.head,
            "position": seen.position,
            "distance": distance,
            "facts_age_seconds": None if facts.taken is None else round(self._clock() - facts.taken, 1),
            "facts_error": facts.error or None,
            "facts": {group.type: dict(group.values) for group in facts.groups},
            "segments": facts.segments,
        }

    def judged(
        self, connector: str, state: str, task_states: Sequence[str], task: TaskProgress | None, *, runs_elsewhere: bool = False
    ) -> tuple[Judgement, Observed]:
        """Return the verdict, and what it was made of."""
        seen = self.observe(connector, state, task_states, task, runs_elsewhere=runs_elsewhere)
        return judge(seen), seen


def _retained(groups: Iterable[MetricGroup]) -> float | None:
    for group in groups:
        value = group.values.get("retained-bytes")
        if isinstance(value, int | float):
            return value
    return None
