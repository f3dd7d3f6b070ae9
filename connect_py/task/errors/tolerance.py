"""Decide what happens to a record that cannot be transformed or converted (`runtime/errors/RetryWithToleranceOperator.java`).

Retriable failures are repeated after 300 ms × 2ⁿ until ``errors.retry.timeout`` is over; anything else in a transform or a converter, and
what is left of a retriable one, is tolerated (the record is skipped) with ``errors.tolerance=all`` and fails the task otherwise.

Two differences from Connect, which skips a record without a word when its retries are over or when the task is stopped between two of them,
whatever the tolerance: here the end of the retries is a failure like any other, and a record whose retries a stop interrupts is neither
skipped nor failed (`TaskStopped`), so that it is read again.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

from connect_py.api.config import ConfigType, parse_value
from connect_py.errors import FatalTaskError, RetriableError, noted
from connect_py.metrics.task import ErrorMetrics
from connect_py.task.control import TaskStopped

T = TypeVar("T")

#: RetryWithToleranceOperator.RETRIES_DELAY_MIN_MS.
_FIRST_DELAY_SECONDS = 0.3


class ErrorReports(Protocol):
    """What failed records are reported to: `SinkErrorReporter`, `SourceErrorReporter`."""

    def report(self, stage: str, class_name: str, error: Exception) -> None: ...
    def place(self) -> str: ...


class Tolerance:
    """The error settings of one connector. Used by the task's thread only.

    Args:
        config: the connector's configuration.
        wait: sleeps that many seconds or less; True means that the task is to stop.
        reports: receives every failure before the record is skipped or the task fails.
        metrics: where failures are counted.
        now: monotonic seconds.
    """

    def __init__(
        self,
        config: Mapping[str, str],
        wait: Callable[[float], bool],
        reports: ErrorReports | None = None,
        metrics: ErrorMetrics | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        def millis(name: str, default: str) -> float:
            return int(parse_value(name, config.get(name, default), ConfigType.LONG)) / 1000

        self._retry_seconds = millis("errors.retry.timeout", "0")
        self._longest_delay = millis("errors.retry.delay.max.ms", "60000")
        self.is_skipping = config.get("errors.tolerance", "none").strip() == "all"
        self._wait = wait
        self._reports = reports
        self._metrics = metrics or ErrorMetrics()
        self._now = now

    def run(self, stage: str, what: str, operation: Callable[[], T]) -> tuple[bool, T | None]:
        """Run one stage for one record.

        Args:
            stage: TRANSFORMATION, KEY_CONVERTER, VALUE_CONVERTER or HEADER_CONVERTER.
            what: the class that does the work, for messages.

        Returns:
            (True, result), or (False, None) when the record is to be skipped.

        Raises:
            FatalTaskError: the failure is not tolerated.
            TaskStopped: the task is to end; what became of the record is open.
        """
        try:
            return True, self._repeat(operation)
        except TaskStopped:
            raise
        except Exception as error:  # noqa: BLE001  # a plugin's author may raise anything; tolerance covers all of it
            self.failed(stage, what, error)
            return False, None

    def failed(self, stage: str, what: str, error: Exception) -> None:
        """Report a record's failure; returns when the record is to be skipped.

        Raises:
            FatalTaskError: the failure is not tolerated.
        """
        self._metrics.error()
        if self._reports is not None:
            self._reports.report(stage, what, error)
        if not self.is_skipping:
            where = f", {self._reports.place()}" if self._reports is not None else ""
            raise noted(
                FatalTaskError("Tolerance exceeded in error handler"),
                f"Stage {stage}, class {what}{where}. No offset beyond it is committed; errors.tolerance=all would skip the record.",
            ) from error
        self._metrics.skipped += 1

    def _repeat(self, operation: Callable[[], T]) -> T:
        deadline = None
        delay = _FIRST_DELAY_SECONDS
        while True:
            try:
                return operation()
            except RetriableError as error:
                now = self._now()
                if deadline is None:
                    deadline = now + self._retry_seconds if self._retry_seconds >= 0 else float("inf")
                if now >= deadline:
                    raise
                pause = delay if delay <= self._longest_delay else random.uniform(0, self._longest_delay)  # noqa: S311
                delay *= 2
                if self._wait(min(pause, deadline - now)):
                    raise TaskStopped from error
                self._metrics.retry()
