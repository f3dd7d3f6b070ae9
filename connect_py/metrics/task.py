"""Count what one task does (`WorkerTask.TaskMetricsGroup`, `AbstractWorkerSourceTask.SourceTaskMetricsGroup`,
`WorkerSinkTask.SinkTaskMetricsGroup`, `errors/ErrorHandlingMetrics.java`).

The task's thread owns these. Each method is called once for a batch, a commit or a failure; what it costs is about a microsecond.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from connect_py.api.task import MetricGroup, MetricValue
from connect_py.metrics.stats import MetricSettings, Sampled

#: How often a task reports to the worker; a scrape sees figures of at most this age.
REPORT_SECONDS = 2.0

log = logging.getLogger(__name__)

_DOMAIN = "kafka.connect"

#: Gives further groups when a report is made: a task's own, its clients'.
GroupSource = Callable[[], Sequence[MetricGroup]]


class ErrorMetrics:
    """Records that failed. A failed operation may have been tried several times, and the record that it was for may have been skipped."""

    def __init__(self) -> None:
        self.failures = 0
        self.errors = 0
        self.skipped = 0
        self.retries = 0
        self.logged = 0
        self.dead_letter_requests = 0
        self.dead_letter_failures = 0
        self._last = 0

    def error(self) -> None:
        """An operation failed for good."""
        self.failures += 1
        self.errors += 1
        self._last = int(time.time() * 1000)

    def retry(self) -> None:
        """An operation failed and is repeated."""
        self.failures += 1
        self.retries += 1

    def group(self) -> MetricGroup:
        """As it stands now."""
        values = {
            "total-record-failures": self.failures,
            "total-record-errors": self.errors,
            "total-records-skipped": self.skipped,
            "total-retries": self.retries,
            "total-errors-logged": self.logged,
            "deadletterqueue-produce-requests": self.dead_letter_requests,
            "deadletterqueue-produce-failures": self.dead_letter_failures,
            "last-error-timestamp": self._last,
        }
        return MetricGroup(_DOMAIN, "task-error-metrics", {}, values)


class TaskMetrics:
    """What every task counts: its state, its commits, the size of its batches.

    Args:
        clock: monotonic seconds.

    Attributes:
        errors: where failures of records are counted.
    """

    def __init__(self, settings: MetricSettings | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.settings = settings or MetricSettings()
        self.errors = ErrorMetrics()
        self._clock = clock
        self._sources: list[GroupSource] = []
        self._began = self._since = clock()
        self._state = "unassigned"
        self._spent = {"running": 0.0, "paused": 0.0}
        self._commit_ms = self._sampled()
        self._commit_outcomes = self._sampled()
        self._batches = self._sampled()
        self._next_report = 0.0

    def _sampled(self) -> Sampled:
        return Sampled(self.settings, self._clock)

    def add_source(self, source: GroupSource) -> None:
        """Have further groups in every report."""
        self._sources.append(source)

    def state(self, state: str) -> None:
        """The task is in another state: RUNNING, PAUSED …"""
        now = self._clock()
        if self._state in self._spent:
            self._spent[self._state] += now - self._since
        self._state, self._since = state.lower(), now

    def batch(self, records: int) -> None:
        """So many records were handed on at once."""
        self._batches.record(records)

    def commit(self, seconds: float, *, succeeded: bool) -> None:
        """A commit of offsets ended."""
        if succeeded:
            self._commit_ms.record(seconds * 1000)
        self._commit_outcomes.record(1.0 if succeeded else 0.0)

    def is_due(self) -> bool:
        """Return whether it is time for a report; true once in `REPORT_SECONDS`."""
        now = self._clock()
        if now < self._next_report:
            return False
        self._next_report = now + REPORT_SECONDS
        return True

    def message(self) -> dict[str, Any]:
        """Return the report to the worker."""
        groups = [self._common(), *self._own(), self.errors.group()]
        for source in self._sources:
            try:
                groups += source()
            except Exception:  # a figure is no reason to fail a task
                log.debug("Metrics of a plugin could not be taken", exc_info=True)
        return {"type": "metrics", "groups": [(group.domain, group.type, dict(group.tags), dict(group.values)) for group in groups]}

    def _own(self) -> list[MetricGroup]:
        return []

    def _common(self) -> MetricGroup:
        now = self._clock()
        spent = dict(self._spent)
        if self._state in spent:
            spent[self._state] += now - self._since
        whole = max(now - self._began, 1e-9)
        share = self._commit_outcomes.average
        values = {
            "running-ratio": spent["running"] / whole,
            "pause-ratio": spent["paused"] / whole,
            "offset-commit-max-time-ms": self._commit_ms.maximum,
            "offset-commit-avg-time-ms": self._commit_ms.average,
            # Frequencies.java: without an attempt in the window both are 0
            "offset-commit-success-percentage": share if share == share else 0.0,
            "offset-commit-failure-percentage": 1 - share if share == share else 0.0,
            "batch-size-max": self._batches.maximum,
            "batch-size-avg": self._batches.average,
        }
        return MetricGroup(_DOMAIN, "connector-task-metrics", {}, values)


class SourceMetrics(TaskMetrics):
    """What a source task counts.

    Attributes:
        active: returns how many records are on their way to Kafka.
    """

    def __init__(self, settings: MetricSettings | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(settings, clock)
        self.active: Callable[[], int] = lambda: 0
        self._polled = self._written = 0
        self._poll_rate, self._write_rate = self._sampled(), self._sampled()
        self._poll_ms, self._active = self._sampled(), self._sampled()
        self._transactions: Sampled | None = None

    def polled(self, records: int, seconds: float) -> None:
        """Count what a `poll` returned, and how long it took."""
        self._polled += records
        self._poll_rate.record(records)
        self._poll_ms.record(seconds * 1000)
        self.batch(records)

    def written(self, records: int) -> None:
        """So many records were handed to the producer, transformed and converted."""
        self._written += records
        self._write_rate.record(records)
        self._active.record(self.active())

    def transaction(self, records: int) -> None:
        """Count a committed transaction with its number of records (exactly-once delivery)."""
        if self._transactions is None:
            self._transactions = self._sampled()
        self._transactions.record(records)

    def _own(self) -> list[MetricGroup]:
        values: dict[str, MetricValue] = {
            "source-record-poll-total": self._polled,
            "source-record-poll-rate": self._poll_rate.rate,
            "source-record-write-total": self._written,
            "source-record-write-rate": self._write_rate.rate,
            "source-record-active-count": self.active(),
            "source-record-active-count-max": self._active.maximum,
            "source-record-active-count-avg": self._active.average,
            "poll-batch-max-time-ms": self._poll_ms.maximum,
            "poll-batch-avg-time-ms": self._poll_ms.average,
        }
        if self._transactions is not None:
            values |= {
                "transaction-size-min": self._transactions.minimum,
                "transaction-size-max": self._transactions.maximum,
                "transaction-size-avg": self._transactions.average,
            }
        return [MetricGroup(_DOMAIN, "source-task-metrics", {}, values)]


class SinkMetrics(TaskMetrics):
    """What a sink task counts.

    Attributes:
        partitions: how many it reads.
        active: returns how many records were read whose offsets are not committed.
    """

    def __init__(self, settings: MetricSettings | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(settings, clock)
        self.partitions: Callable[[], int] = lambda: 0
        self.active: Callable[[], int] = lambda: 0
        self._read = self._sent = 0
        self._completed = self._skipped = self._commits_begun = 0
        self._read_rate, self._send_rate = self._sampled(), self._sampled()
        self._complete_rate, self._skip_rate = self._sampled(), self._sampled()
        self._put_ms, self._active = self._sampled(), self._sampled()

    def read(self, records: int) -> None:
        """So many records came from Kafka."""
        self._read += records
        self._read_rate.record(records)
        self._active.record(self.active())

    def put(self, records: int, seconds: float) -> None:
        """Count the records that the sink took, and how long it took."""
        self._sent += records
        self._send_rate.record(records)
        self._put_ms.record(seconds * 1000)
        self.batch(records)

    def commit_begun(self) -> None:
        """A commit of offsets is under way."""
        self._commits_begun += 1

    def commit(self, seconds: float, *, succeeded: bool) -> None:
        """A commit of offsets ended."""
        super().commit(seconds, succeeded=succeeded)
        if succeeded:
            self._completed += 1
            self._complete_rate.record(1)

    def commit_skipped(self) -> None:
        """An answer came to a commit that had been given up."""
        self._skipped += 1
        self._skip_rate.record(1)

    def _own(self) -> list[MetricGroup]:
        values: Mapping[str, MetricValue] = {
            "sink-record-read-total": self._read,
            "sink-record-read-rate": self._read_rate.rate,
            "sink-record-send-total": self._sent,
            "sink-record-send-rate": self._send_rate.rate,
            "sink-record-active-count": self.active(),
            "sink-record-active-count-max": self._active.maximum,
            "sink-record-active-count-avg": self._active.average,
            "partition-count": self.partitions(),
            "offset-commit-seq-no": self._commits_begun,
            "offset-commit-completion-total": self._completed,
            "offset-commit-completion-rate": self._complete_rate.rate,
            "offset-commit-skip-total": self._skipped,
            "offset-commit-skip-rate": self._skip_rate.rate,
            "put-batch-max-time-ms": self._put_ms.maximum,
            "put-batch-avg-time-ms": self._put_ms.average,
        }
        return [MetricGroup(_DOMAIN, "sink-task-metrics", {}, values)]
