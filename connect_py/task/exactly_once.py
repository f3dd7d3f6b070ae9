"""Commit the records and the offsets of an exactly-once source task together (KIP-618; `ExactlyOnceWorkerSourceTask.java`).

`TransactionCommitter` stands where `OffsetCommitter` does. When the boundary rule says so, it writes the offsets of all that was handed to
the producer into the transaction of these records, and commits. What a stored offset says is therefore always exactly what readers of
committed records see. The task is notified only after the commit.

A commit runs in the background; the next one begins when it is through. It takes some 20 ms, since a broker that still writes the markers
of a transaction has the client ask again for the next one (CONCURRENT_TRANSACTIONS): as long as batches are full, several share a
transaction, so that commits take a twentieth of the time. Where nothing but offsets is to be stored (a batch whose rows were
all filtered out), it waits for ``offset.flush.interval.ms``, because a transaction costs some milliseconds.

A batch that the connector has serialised itself has one offset, so it is in a transaction as a whole: one that a stop interrupts is
dropped, and read again.

The task's thread owns all of this.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from typing import Protocol

from connect_py.api import SourceOffset, SourcePartition, SourceRecord, SourceTask
from connect_py.errors import ConnectError, FatalTaskError, RetriableError
from connect_py.metrics.task import SourceMetrics
from connect_py.task.offsets import SubmittedRecords, commits_records
from connect_py.task.transaction_boundary import BoundaryRule, Decision, PollBoundary

log = logging.getLogger(__name__)

#: A batch of this many rows is one of a backlog: the next one is there already.
_FULL_BATCH_ROWS = 500
#: How long batches of a backlog share a transaction: this multiple of what the last commit took, and never longer than this (seconds).
_COMMITS_WORTH, _LONGEST_SHARED = 20, 0.5

_Offsets = list[tuple[SourcePartition, SourceOffset]]

#: An offset as a record: (key, value).
_Record = tuple[bytes, bytes | None]

#: Raises DataError.
OffsetsToRecords = Callable[[_Offsets], Iterable[_Record]]


class OffsetCopies(Protocol):
    """Writes offsets that count elsewhere (`offsets.offset_store.TaskOffsetWriter`); a failure is a warning."""

    def copy(self, offsets: Sequence[tuple[SourcePartition, SourceOffset]]) -> None: ...
    def serve(self) -> None: ...
    def close(self, timeout: float) -> None: ...


class CommittingProducer(Protocol):
    """What the committer asks of `connect_py.kafka.transactions.TransactionalProducer`."""

    @property
    def is_open(self) -> bool: ...
    def produce(self, topic: str, value: bytes | None, key: bytes | None = None) -> None: ...
    def open(self, while_waiting: Callable[[], None] | None = None) -> None: ...
    def start_commit(self) -> Future[None]: ...
    def await_commit(self, while_waiting: Callable[[], None] | None = None, deadline: float = ...) -> None: ...
    def abort(self, deadline: float) -> None: ...


class TransactionCommitter:
    """Ends the transactions of one task.

    Args:
        topic: of offsets.
        to_records: makes records of offsets; raises DataError.
        rule: when a transaction ends.
        interval_seconds: ``offset.flush.interval.ms``.
        metrics: where commits are counted.
        copies: writes committed offsets to another topic as well.
    """

    def __init__(
        self,
        task: SourceTask,
        submitted: SubmittedRecords,
        producer: CommittingProducer,
        topic: str,
        to_records: OffsetsToRecords,
        rule: BoundaryRule,
        interval_seconds: float,
        metrics: SourceMetrics | None = None,
        *,
        copies: OffsetCopies | None = None,
    ) -> None:
        self._task = task
        self._submitted = submitted
        self._producer = producer
        self._topic = topic
        self._to_records = to_records
        self._copies = copies
        self._rule = rule
        self._waits = isinstance(rule, PollBoundary)
        self._shares = type(rule) is PollBoundary
        self._first_batch = float("inf")
        self._commit_took = 0.0
        #: Records need not have been acknowledged when `commit` is called: the broker commits all of them or none. But where the task wants
        #: to be notified of each, their callbacks must have run.
        self.settles_first = commits_records(task)
        self._interval = interval_seconds
        self._next = time.monotonic() + interval_seconds
        self._metrics = metrics or SourceMetrics()
        self._decision = Decision.CONTINUE
        self._running: Future[None] | None = None
        self._writing: _Offsets = []
        self._confirmations: list[Callable[[], None]] = []
        self._confirming: list[Callable[[], None]] = []
        self._rows = self._rows_running = 0
        self._began = 0.0
        rule.begin(_now_ms())

    def commit_soon(self) -> None:
        """A milestone ends its transaction where the rule does as well, or later."""

    def before_rows(self, while_waiting: Callable[[], None]) -> None:
        """Rows are about to be handed to the client itself: they must not come into a transaction whose offsets are written."""
        self._producer.open(while_waiting)

    def after_record(self, record: SourceRecord) -> None:
        """A record was handed to the producer, or dropped by a transform. Raises FatalTaskError."""
        decision = self._rule.after_record(record)
        if decision is not Decision.CONTINUE:
            self._end(decision)

    def after_batch(self, rows: int) -> None:
        """All that `poll` returned is handed to the producer; it returned this number of rows. Raises FatalTaskError."""
        self._rows += rows
        decision = self._rule.after_batch(_now_ms())
        if self._shares and rows >= _FULL_BATCH_ROWS:
            current = time.monotonic()
            self._first_batch = min(self._first_batch, current)
            if current - self._first_batch < min(_LONGEST_SHARED, _COMMITS_WORTH * self._commit_took):
                return
        self._decide(decision)

    def at_pause(self) -> None:
        """The task is to rest: end what is open first. Raises FatalTaskError."""
        self._decide(self._rule.at_end(_now_ms()))

    def _decide(self, decision: Decision) -> None:
        """What a connector asks for is of this batch alone, so it is done at once; the rest may wait for a commit that runs."""
        if decision is Decision.CONTINUE:
            return
        if self._waits:
            self._decision = decision
        else:
            self._end(decision)

    def confirm(self, confirmation: Callable[[], None]) -> None:
        """Have something called after the commit of what was sent up to now."""
        self._confirmations.append(confirmation)

    @property
    def is_settled(self) -> bool:
        """Whether no transaction is open or being committed."""
        return self._running is None and not self._producer.is_open

    def is_due(self) -> bool:
        """Return whether it is time to `commit`: between two batches, when no commit runs."""
        if self._running is not None or self._decision is Decision.CONTINUE:
            return False
        return self._producer.is_open or time.monotonic() >= self._next

    def commit(self) -> None:
        """End the transaction as was decided; a commit continues in the background. Raises FatalTaskError."""
        decision, self._decision = self._decision, Decision.CONTINUE
        if decision is Decision.ABORT:
            self._producer.abort(time.monotonic() + self._interval)
        self._submitted.delivered()
        if not self._submitted.is_idle():
            raise FatalTaskError("A record of the transaction was refused. Nothing of it is visible to readers of committed records.")
        offsets = self._submitted.committable()
        self._next = time.monotonic() + self._interval
        self._began = time.monotonic()
        self._first_batch = float("inf")
        for key, value in self._to_records(offsets) if offsets else ():
            self._producer.produce(self._topic, value, key)
        self._writing = offsets
        self._confirming, self._confirmations = self._confirmations, []
        self._rows_running, self._rows = self._rows, 0
        if self._producer.is_open:
            self._running = self._producer.start_commit()
        else:
            self._committed()

    def serve(self) -> None:
        """Notify the task of a commit that is through. Raises what the commit failed with."""
        if self._copies is not None:
            self._copies.serve()
        running = self._running
        if running is not None and running.done():
            self._running = None
            try:
                running.result()
            except ConnectError:
                self._metrics.commit(time.monotonic() - self._began, succeeded=False)
                raise
            self._commit_took = time.monotonic() - self._began
            self._metrics.commit(self._commit_took, succeeded=True)
            self._metrics.transaction(self._rows_running)
            log.debug("Committed a transaction of %d records in %.0f ms", self._rows_running, self._commit_took * 1000)
            self._committed()

    def finish(self, deadline: float, *, failed: bool = False) -> bool:
        """End the last transaction until `deadline`; returns whether everything is stored. That of a failed task is dropped."""
        if failed:
            with contextlib.suppress(ConnectError):  # what the task failed with is more
                self._producer.await_commit(deadline=deadline)
                self.serve()
            self._producer.abort(deadline)
            return False
        try:
            self._producer.await_commit(deadline=deadline)
        except RetriableError:
            return False
        self.serve()
        self._submitted.delivered()
        if not self._submitted.is_idle():  # the rest of a batch was not sent
            self._producer.abort(deadline)
            return False
        self._decision = self._rule.at_end(_now_ms())
        if self._decision is not Decision.CONTINUE:
            self.commit()
            try:
                self._producer.await_commit(deadline=deadline)
            except RetriableError:
                return False
            self.serve()
        self._producer.abort(deadline)  # where the connector alone says when a transaction ends
        return True

    def _end(self, decision: Decision) -> None:
        """End a transaction in the middle of a batch, and wait for it."""
        self._producer.await_commit()
        self.serve()
        self._decision = decision
        self.commit()
        self._producer.await_commit()
        self.serve()

    def _committed(self) -> None:
        """Kafka holds the offsets and all before them."""
        written, self._writing = self._writing, []
        confirming, self._confirming = self._confirming, []
        for confirmation in confirming:
            confirmation()
        if not written:
            return
        if self._copies is not None:
            self._copies.copy(written)
        try:
            self._task.offsets_committed(written)
        except RetriableError as error:
            log.warning("The source could not be told that offsets are committed; the next commit tells it: %s", error)


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000
