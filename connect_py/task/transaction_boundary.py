"""Say when the transaction of an exactly-once source task ends, and how (KIP-618; `ExactlyOnceWorkerSourceTask.java`).

``transaction.boundary`` names the rule: `poll` ends it after each batch, `interval` after a batch when its time has come, `connector` where
the connector asks for it. The rules decide, `connect_py.task.exactly_once` carries it out. Times are arguments, in milliseconds of a clock
that is not set back.

An open transaction is ended before a pause and at an orderly end, not after a failure.
"""

from __future__ import annotations

import threading
from enum import Enum, StrEnum
from typing import Protocol

from connect_py.api.record import SourceRecord
from connect_py.errors import ConfigError, FatalTaskError


class TransactionBoundary(StrEnum):
    """The values of ``transaction.boundary`` (`SourceTask.TransactionBoundary`)."""

    POLL = "poll"
    INTERVAL = "interval"
    CONNECTOR = "connector"

    @classmethod
    def of_property(cls, text: str) -> TransactionBoundary:
        """Read the property, in any case. Raises ConfigError."""
        try:
            return cls(text.strip().lower())
        except ValueError:
            raise ConfigError(f"Invalid value {text} for configuration transaction.boundary: it must be one of {', '.join(cls)}") from None


class Decision(Enum):
    """What becomes of the transaction.

    `ABORT` drops its records and stores their offsets nevertheless, so that the task does not read them again.
    """

    CONTINUE = "continue"
    COMMIT = "commit"
    ABORT = "abort"


class BoundaryRule(Protocol):
    """Decides for one task. Called on the task's thread."""

    def begin(self, now_ms: int) -> None:
        """Note that the task starts, or continues after a pause."""
        ...

    def after_record(self, record: SourceRecord) -> Decision:
        """Decide once the producer has accepted a record, or a transform has dropped it; the record is the task's, not transformed."""
        ...

    def after_batch(self, now_ms: int) -> Decision:
        """Decide once all that `poll` returned is dispatched; called as well when it returned nothing."""
        ...

    def at_end(self, now_ms: int) -> Decision:
        """Decide before a pause and at an orderly end."""
        ...


class PollBoundary:
    """A transaction a batch."""

    def begin(self, now_ms: int) -> None:
        """Nothing to note."""

    def after_record(self, record: SourceRecord) -> Decision:
        """Batches are not divided."""
        return Decision.CONTINUE

    def after_batch(self, now_ms: int) -> Decision:
        """Every batch is one."""
        return Decision.COMMIT

    def at_end(self, now_ms: int) -> Decision:
        """What was sent of a batch that could not be sent completely is kept."""
        return Decision.COMMIT


class IntervalBoundary(PollBoundary):
    """As many batches as come in an interval.

    Args:
        interval_ms: ``transaction.boundary.interval.ms``, otherwise the worker's ``offset.flush.interval.ms``.
    """

    def __init__(self, interval_ms: int) -> None:
        self._interval_ms = interval_ms
        self._last_commit_ms = 0

    def begin(self, now_ms: int) -> None:
        """Begin an interval."""
        self._last_commit_ms = now_ms

    def after_batch(self, now_ms: int) -> Decision:
        """The first batch after the interval ends it and begins the next one."""
        if now_ms < self._last_commit_ms + self._interval_ms:
            return Decision.CONTINUE
        self._last_commit_ms = now_ms
        return Decision.COMMIT


class TransactionRequests:
    """What a connector asks for: its task's `TransactionContext` (`WorkerTransactionContext.java`). Any thread may ask.

    A request names a record that is in a batch, or counts for all that was sent when the batch is through.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._commits: list[SourceRecord] = []
        self._aborts: list[SourceRecord] = []
        self._batch: set[Decision] = set()

    def commit_transaction(self, record: SourceRecord | None = None) -> None:
        """Ask for a commit after the record, or after the next batch."""
        self._ask(Decision.COMMIT, self._commits, record)

    def abort_transaction(self, record: SourceRecord | None = None) -> None:
        """Ask that everything up to and including the record, or up to the end of the next batch, is dropped."""
        self._ask(Decision.ABORT, self._aborts, record)

    def _ask(self, decision: Decision, records: list[SourceRecord], record: SourceRecord | None) -> None:
        with self._lock:
            if record is None:
                self._batch.add(decision)
            elif record not in records:
                records.append(record)

    def take_for(self, record: SourceRecord) -> Decision:
        """Return what was asked for after a record, once. Raises FatalTaskError: both a commit and an abort."""
        with self._lock:
            commits, aborts = record in self._commits, record in self._aborts
            if commits and aborts:
                partition = "null" if record.partition is None else record.partition
                raise _contradiction(f"record against topic/partition {record.topic}/{partition}")
            if aborts:
                self._aborts.remove(record)
                return Decision.ABORT
            if commits:
                self._commits.remove(record)
                return Decision.COMMIT
            return Decision.CONTINUE

    def take_for_batch(self) -> Decision:
        """Return what was asked for after the batch, once. Raises FatalTaskError: both a commit and an abort."""
        with self._lock:
            if len(self._batch) > 1:
                raise _contradiction("transaction")
            return self._batch.pop() if self._batch else Decision.CONTINUE


def _contradiction(same: str) -> FatalTaskError:
    error = FatalTaskError(f"Connector requested both commit and abort of same {same}")
    error.java_name = "java.lang.IllegalStateException"
    return error


class ConnectorBoundary:
    """Where the connector asks for it, and nowhere else: not at the end either."""

    def __init__(self, requests: TransactionRequests) -> None:
        self._requests = requests

    def begin(self, now_ms: int) -> None:
        """Nothing to note."""

    def after_record(self, record: SourceRecord) -> Decision:
        """Raises FatalTaskError: the connector asked for both."""
        return self._requests.take_for(record)

    def after_batch(self, now_ms: int) -> Decision:
        """Raises FatalTaskError: the connector asked for both."""
        return self._requests.take_for_batch()

    def at_end(self, now_ms: int) -> Decision:
        """Raises FatalTaskError: the connector asked for both."""
        return self._requests.take_for_batch()


def boundary_rule(boundary: TransactionBoundary, *, interval_ms: int, requests: TransactionRequests | None) -> BoundaryRule:
    """Return the rule of a task.

    Args:
        interval_ms: for `interval`.
        requests: given to the connector with `connector`; None with the others, whose connectors get no context.
    """
    if boundary is TransactionBoundary.CONNECTOR:
        if requests is None:
            raise ValueError("Transaction context must be provided when using connector-defined transaction boundaries")
        return ConnectorBoundary(requests)
    return IntervalBoundary(interval_ms) if boundary is TransactionBoundary.INTERVAL else PollBoundary()
