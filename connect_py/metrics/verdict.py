"""Say in one word how a source connector is doing, with the reason. Pure.

The rule that tells a quiet source from a stuck task: the task has not reached, by now, the end that the log had `STALL_SECONDS` ago, and
its position has not moved since. A source that is quiet has nothing beyond the task's position.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

#: A task that reads takes a fraction of a second for what is new; with a look at the source every 10 s a stall is known within 30 s.
STALL_SECONDS = 15.0

#: A task opens its stream within a second or two; a busy server takes longer.
OPENING_SECONDS = 15.0

#: A task reports every 2 s, from a thread that a batch may hold up.
SILENT_SECONDS = 20.0

#: Kafka acknowledges within milliseconds; an election of leaders takes seconds.
KAFKA_SECONDS = 10.0

#: After so long without an event a source is called idle.
IDLE_SECONDS = 60.0

#: So far behind, changes are late for people, too.
BEHIND_SECONDS = 30.0
BEHIND_BYTES = 64 << 20

#: A stored offset is so old at most: it is stored once a minute (``offset.flush.interval.ms``), and read once a minute.
STORED_SECONDS = 150.0

#: What a log may hold beyond the last position that its server tells a reader who has read everything: PostgreSQL's record of a
#: checkpoint, MongoDB's note every 10 s that nothing has happened.
_SLACK = {"bytes": 16 << 10, "seconds": 12}


class Verdict(enum.StrEnum):
    """How a source connector is doing."""

    STREAMING = "streaming"
    IDLE = "idle"
    BEHIND = "behind"
    STALLED = "stalled"
    WAITING_FOR_KAFKA = "waiting for Kafka"
    DISCONNECTED = "disconnected"
    SNAPSHOTTING = "snapshotting"
    STARTING = "starting"
    PAUSED = "paused"
    STOPPED = "stopped"
    FAILED = "failed"
    UNKNOWN = "unknown"


class Judgement(NamedTuple):
    """A verdict, and a sentence without a full stop that says why."""

    verdict: Verdict
    reason: str


_AWAY = "its task runs on another worker"


@dataclass(frozen=True, slots=True)
class Observed:
    """What is known of a connector at one moment. Times are seconds.

    Attributes:
        connector_state: running, paused, stopped, failed, unassigned or restarting.
        task_states: of its tasks on this worker.
        runs_elsewhere: no task of it runs here, and another worker, which knows what it does, has its task.
        report_age: since a task has last reported; None before the first report.
        is_snapshotting: a snapshot runs.
        is_connected: the stream is open; None where the task does not say.
        is_opening: it has not been open yet, and the task has just begun.
        quiet_for: since the task's count of events has last changed; None before the first event.
        lag_ms: age of the last event when it was read; -1 before the first.
        unacknowledged: records on their way to Kafka.
        unacknowledged_for: since Kafka has last acknowledged one, while some were on their way.
        head: the end of the source's log now; earlier_head: as it was known `STALL_SECONDS` ago, where the task runs elsewhere
            `STORED_SECONDS`.
        position: the task's, where it runs elsewhere the one that it has stored; position_age: since it last changed.
        unit: of these: bytes or seconds.
        facts_error: why the source does not say; empty when it does.
        retained_bytes: log that the server keeps for the connector, where it says.
    """

    connector_state: str
    task_states: Sequence[str] = ()
    runs_elsewhere: bool = False
    report_age: float | None = None
    is_snapshotting: bool = False
    is_connected: bool | None = None
    is_opening: bool = False
    quiet_for: float | None = None
    lag_ms: float = -1
    unacknowledged: float = 0
    unacknowledged_for: float = 0.0
    head: int | None = None
    earlier_head: int | None = None
    position: int | None = None
    position_age: float = 0.0
    unit: str = "bytes"
    facts_error: str = ""
    retained_bytes: float | None = None


def judge(seen: Observed) -> Judgement:
    """Return the verdict: what is configured and has failed comes first, then what stands still, then what is late."""
    return _of_state(seen) or _of_a_stop(seen) or _of_progress(seen)


def _of_state(seen: Observed) -> Judgement | None:
    kept = f"; the server keeps {size_text(seen.retained_bytes)} of log for it" if seen.retained_bytes else ""
    failed = sum(state == "failed" for state in seen.task_states)
    if seen.connector_state == "failed" or failed:
        what = "the connector has failed" if seen.connector_state == "failed" else f"{failed} of {len(seen.task_states)} tasks failed"
        return Judgement(Verdict.FAILED, what + kept)
    if seen.connector_state == "stopped":
        return Judgement(Verdict.STOPPED, "stopped on request" + kept)
    if seen.connector_state == "paused":
        return Judgement(Verdict.PAUSED, "paused on request" + kept)
    if seen.runs_elsewhere:
        return None
    if not seen.task_states or any(state != "running" for state in seen.task_states) or seen.report_age is None:
        return Judgement(Verdict.STARTING, "its task has not reported yet" + kept)
    return None


def _of_a_stop(seen: Observed) -> Judgement | None:
    if seen.report_age is not None and seen.report_age >= SILENT_SECONDS:
        return Judgement(Verdict.STALLED, f"the task has not reported for {time_text(seen.report_age)}")
    if seen.unacknowledged and seen.unacknowledged_for >= KAFKA_SECONDS:
        return Judgement(
            Verdict.WAITING_FOR_KAFKA,
            f"{int(seen.unacknowledged)} records are on their way, and none was acknowledged for {time_text(seen.unacknowledged_for)}",
        )
    if seen.is_snapshotting:
        return Judgement(Verdict.SNAPSHOTTING, "the snapshot is being read")
    if _is_stuck(seen):
        left = _distance((seen.head or 0) - (seen.position or 0), seen.unit)
        reason = f"the source's log has moved, and the task has not for {time_text(seen.position_age)}; {left} to read"
        return Judgement(Verdict.STALLED, reason)
    if seen.is_connected is False and seen.is_opening:
        return Judgement(Verdict.STARTING, "it connects to its source")
    if seen.is_connected is False:
        return Judgement(Verdict.DISCONNECTED, "not connected to its source; it tries again")
    return None


def _is_stuck(seen: Observed) -> bool:
    if seen.position is None or seen.earlier_head is None or seen.position_age < STALL_SECONDS:
        return False
    return seen.earlier_head - seen.position > _SLACK.get(seen.unit, 0)


def _of_progress(seen: Observed) -> Judgement:
    # what the task has read since it stored its position is not known here
    head = seen.earlier_head if seen.runs_elsewhere else seen.head
    distance = None if head is None or seen.position is None else max(0, head - seen.position)
    is_flowing = seen.quiet_for is not None and seen.quiet_for < STALL_SECONDS
    lag = seen.lag_ms / 1000
    if is_flowing and lag >= BEHIND_SECONDS:
        return Judgement(Verdict.BEHIND, f"{time_text(lag)} behind, catching up")
    if distance is not None and distance >= (BEHIND_BYTES if seen.unit == "bytes" else BEHIND_SECONDS):
        return Judgement(Verdict.BEHIND, f"{_distance(distance, seen.unit)} behind, catching up")
    if seen.runs_elsewhere:
        known = seen.head is not None and seen.position is not None
        return Judgement(Verdict.STREAMING, f"its log was read; {_AWAY}") if known else Judgement(Verdict.UNKNOWN, _AWAY)
    if seen.quiet_for is not None and seen.quiet_for < IDLE_SECONDS:
        return Judgement(Verdict.STREAMING, "events are read as they happen")
    quiet = "since the task's start" if seen.quiet_for is None else f"for {time_text(seen.quiet_for)}"
    if distance is None:
        why = f": {seen.facts_error}" if seen.facts_error else ""
        return Judgement(Verdict.UNKNOWN, f"no event {quiet}, and the end of the source's log is not known{why}")
    return Judgement(Verdict.IDLE, f"source quiet {quiet}")


def _distance(distance: float, unit: str) -> str:
    return size_text(distance) if unit == "bytes" else time_text(distance)


def time_text(seconds: float) -> str:
    """Return `40 s`, `4 min`, `3 h` or `2 d`."""
    for size, name in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {name}"
    return f"{int(seconds)} s"


def size_text(size: float) -> str:
    """Return `512 B`, `48 MB` …"""
    for scale, name in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size >= scale:
            return f"{size / scale:.3g} {name}"
    return f"{int(size)} B"
