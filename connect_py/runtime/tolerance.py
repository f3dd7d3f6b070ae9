"""What becomes of a record that cannot be transformed or converted (`runtime/errors/RetryWithToleranceOperator.java`).

Retriable failures are repeated with delays of 300 ms × 2ⁿ until ``errors.retry.timeout`` is over; anything else in a transform or a
converter is tolerated (the record is skipped) with ``errors.tolerance=all`` and fails the task otherwise.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

from connect_py.api.config import ConfigType, parse_value
from connect_py.errors import FatalTaskError, RetriableError
from connect_py.runtime.metrics.task import ErrorMetrics

log = logging.getLogger(__name__)

T = TypeVar("T")

#: RetryWithToleranceOperator.RETRIES_DELAY_MIN_MS.
_FIRST_DELAY_SECONDS = 0.3


class Tolerance:
    """The error settings of one connector. Used by the task's thread only.

    Args:
        config: the connector's configuration.
        wait: sleeps that many seconds or less; True means that the task is to stop.
        report: told of every failure (stage, class, error) before the record is skipped or the task fails; by default a skipped record
            is logged where ``errors.log.enable`` says so.
        metrics: where failures are counted.
    """

    def __init__(
        self,
        config: Mapping[str, str],
        wait: Callable[[float], bool],
        report: Callable[[str, str, Exception], None] | None = None,
        metrics: ErrorMetrics | None = None,
    ) -> None:
        def read(name: str, type_: ConfigType, default: str) -> object:
            return parse_value(name, config.get(name, default), type_)

        self._retry_seconds = int(str(read("errors.retry.timeout", ConfigType.LONG, "0"))) / 1000
        self._longest_delay = int(str(read("errors.retry.delay.max.ms", ConfigType.LONG, "60000"))) / 1000
        self._skips = config.get("errors.tolerance", "none").strip() == "all"
        self._logs = bool(read("errors.log.enable", ConfigType.BOOLEAN, "false"))
        self._wait = wait
        self._report = report
        self._metrics = metrics or ErrorMetrics()

    def run(self, stage: str, what: str, operation: Callable[[], T]) -> tuple[bool, T | None]:
        """Run one stage for one record.

        Args:
            stage: TRANSFORMATION, KEY_CONVERTER, VALUE_CONVERTER or HEADER_CONVERTER.
            what: the class that does the work, for messages.

        Returns:
            (True, result), or (False, None) when the record is to be skipped.

        Raises:
            FatalTaskError: the failure is not tolerated.
        """
        try:
            return True, self._repeat(operation)
        except Exception as error:  # noqa: BLE001  # a plugin's author may raise anything; tolerance covers all of it
            self.failed(stage, what, error)
            return False, None

    def failed(self, stage: str, what: str, error: Exception) -> None:
        """Report a record's failure; returns when the record is to be skipped.

        Raises:
            FatalTaskError: the failure is not tolerated.
        """
        self._metrics.error()
        if self._report is not None:
            self._report(stage, what, error)
        elif self._skips and self._logs:
            self._metrics.logged += 1
            log.error("Record skipped. Executing stage '%s' with class '%s': %s", stage, what, error)
        if not self._skips:
            raise FatalTaskError(f"Tolerance exceeded in error handler. Stage {stage} ({what}): {error}") from error
        self._metrics.skipped += 1

    def _repeat(self, operation: Callable[[], T]) -> T:
        deadline = None
        attempt = 0
        while True:
            try:
                return operation()
            except RetriableError:
                now = time.monotonic()
                deadline = deadline or now + self._retry_seconds
                if self._retry_seconds >= 0 and now >= deadline:
                    raise
                delay = _FIRST_DELAY_SECONDS * 2**attempt
                if delay > self._longest_delay:
                    delay = random.uniform(0, self._longest_delay)  # noqa: S311
                attempt += 1
                if self._wait(delay):
                    raise
                self._metrics.retry()
