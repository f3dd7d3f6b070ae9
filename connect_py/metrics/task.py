"""Count what one task does (`WorkerTask.TaskMetricsGroup`, `AbstractWorkerSourceTask.SourceTaskMetricsGroup`,
`WorkerSinkTask.SinkTaskMetricsGroup`, `errors/ErrorHandlingMetrics.java`).

Rates, averages and extremes are those of a moving window, as Kafka computes them (`common/metrics/stats/{SampledStat,Rate,Avg,Max}.java`):
a window of ``metrics.sample.window.ms`` × ``metrics.num.samples`` (30 s × 2) is kept in that many samples, and one falls out as a whole
when its last event is older than the window.

The task's thread owns these. Each method is called once for a batch, a commit or a failure; what it costs is about a microsecond.
"""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from connect_py.api.task import NOTES_DOMAIN, MetricGroup, MetricValue
from connect_py.errors import ConfigError

log = logging.getLogger(__name__)


_DEFAULT_WINDOW_MS = 30_000
_DEFAULT_SAMPLES = 2

#: How many of the records that were left out a report shows, the last ones, and how many characters of what is said of each.
_KEPT_SKIPPED, _NOTE_LENGTH = 10, 400


@dataclass(frozen=True, slots=True)
class MetricSettings:
    """How windows are cut.

    Attributes:
        window_seconds: length of one sample.
        samples: how many are kept.
    """

    window_seconds: float = _DEFAULT_WINDOW_MS / 1000
    samples: int = _DEFAULT_SAMPLES

    @classmethod
    def of(cls, worker: Mapping[str, str]) -> MetricSettings:
        """From the worker's properties. Raises ConfigError."""

        def number(name: str, default: int) -> int:
            text = worker.get(name, str(default)).strip()
            if not text.isdigit() or int(text) < 1:
                raise ConfigError(f"Invalid value {text} for configuration {name}: it must be a whole number of at least 1.")
            return int(text)

        return cls(number("metrics.sample.window.ms", _DEFAULT_WINDOW_MS) / 1000, number("metrics.num.samples", _DEFAULT_SAMPLES))


class _Sample:
    __slots__ = ("count", "last", "maximum", "minimum", "started", "total")

    def __init__(self, started: float) -> None:
        self.started = self.last = started
        self.total = 0.0
        self.count = 0
        self.minimum = math.inf
        self.maximum = -math.inf


class Sampled:
    """A series of measurements. Owned by one thread."""

    __slots__ = ("_clock", "_samples", "_settings")

    def __init__(self, settings: MetricSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._clock = clock
        # one more than are counted: the oldest may reach into the window
        self._samples: deque[_Sample] = deque(maxlen=settings.samples + 1)

    def record(self, value: float) -> None:
        """Take one measurement."""
        now = self._clock()
        if not self._samples or now - self._samples[-1].started >= self._settings.window_seconds:
            self._samples.append(_Sample(now))
        sample = self._samples[-1]
        sample.last = now
        sample.total += value
        sample.count += 1
        sample.minimum = min(sample.minimum, value)
        sample.maximum = max(sample.maximum, value)

    @property
    def rate(self) -> float:
        """The sum for each second. A window that has only begun counts as if all but its last sample had passed, so that the first second
        is no peak."""
        now = self._clock()
        live = self._live(now)
        if not live:
            return 0.0
        window, full = self._settings.window_seconds, self._settings.samples - 1
        elapsed = now - live[0].started
        elapsed += max(0, full - int(elapsed / window)) * window
        return sum(sample.total for sample in live) / (elapsed or window)

    @property
    def average(self) -> float:
        """NaN when nothing was measured."""
        live = self._live(self._clock())
        count = sum(sample.count for sample in live)
        return sum(sample.total for sample in live) / count if count else math.nan

    @property
    def maximum(self) -> float:
        """NaN when nothing was measured."""
        return max((sample.maximum for sample in self._live(self._clock())), default=math.nan)

    @property
    def minimum(self) -> float:
        """NaN when nothing was measured."""
        return min((sample.minimum for sample in self._live(self._clock())), default=math.nan)

    def _live(self, now: float) -> list[_Sample]:
        oldest = now - self._settings.window_seconds * self._settings.samples
        return [sample for sample in self._samples if sample.last > oldest]


#: How often a task reports to the worker; a scrape sees figures of at most this age.
REPORT_SECONDS = 2.0
#: The same while nothing was read, written or committed since the last report.
REST_REPORT_SECONDS = 15.0


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
        self._skipped: deque[Mapping[str, MetricValue]] = deque(maxlen=_KEPT_SKIPPED)

    def error(self) -> None:
        """An operation failed for good."""
        self.failures += 1
        self.errors += 1
        self._last = int(time.time() * 1000)

    def skip(self, stage: str, error: str, message: str, place: str, topic: str | None) -> None:
        """A record is left out.

        Args:
            error: the name of its class; `message` may hold values of the record.
            place: where the record is from, in words.
            topic: where its dead letter is; None without one.
        """
        self.skipped += 1
        about = {"stage": stage, "error": error, "message": message[:_NOTE_LENGTH], "place": place[:_NOTE_LENGTH], "letter": topic or ""}
        self._skipped.append({"at": int(time.time() * 1000), **about})

    def retry(self) -> None:
        """An operation failed and is repeated."""
        self.failures += 1
        self.retries += 1

    def groups(self) -> list[MetricGroup]:
        """Return the figures as they are now, and the last records that were left out."""
        notes = [MetricGroup(NOTES_DOMAIN, "skipped-record", {"number": str(number)}, about) for number, about in enumerate(self._skipped)]
        return [self._figures(), *notes]

    def _figures(self) -> MetricGroup:
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
        self._reported = float("-inf")
        self._has_news = True

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
        self._has_news = self._has_news or records > 0
        self._batches.record(records)

    def commit(self, seconds: float, *, succeeded: bool) -> None:
        """A commit of offsets ended."""
        self._has_news = True
        if succeeded:
            self._commit_ms.record(seconds * 1000)
        self._commit_outcomes.record(1.0 if succeeded else 0.0)

    def is_due(self) -> bool:
        """Return whether it is time for a report; true once in `REPORT_SECONDS`, or `REST_REPORT_SECONDS`."""
        now = self._clock()
        if now < self._reported + (REPORT_SECONDS if self._has_news else REST_REPORT_SECONDS):
            return False
        self._reported, self._has_news = now, False
        return True

    def message(self) -> dict[str, Any]:
        """Return the report to the worker."""
        groups = [self._common(), *self._own(), *self.errors.groups()]
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
