"""Retries and tolerance of failing records, over a clock that only the waits move."""

from collections.abc import Callable

import pytest

from connect_py.errors import DataError, FatalTaskError, RetriableError
from connect_py.metrics.task import ErrorMetrics
from connect_py.task.control import TaskStopped
from connect_py.task.failed_records import Tolerance


class Rig:
    def __init__(self, *, stops_after: int = 1000, **config: str) -> None:
        self.time = 0.0
        self.waits: list[float] = []
        self.reported: list[tuple[str, str, Exception]] = []
        self.metrics = ErrorMetrics()
        self.topic: str | None = None
        self._stops_after = stops_after
        config = {name.replace("_", "."): value for name, value in config.items()}
        self.tolerance = Tolerance(config, self.wait, self, self.metrics, lambda: self.time)

    def wait(self, seconds: float) -> bool:
        self.waits.append(seconds)
        self.time += seconds
        return len(self.waits) > self._stops_after

    def report(self, stage: str, class_name: str, error: Exception) -> None:
        self.reported.append((stage, class_name, error))

    def place(self) -> str:
        return "somewhere"

    def run(self, operation: Callable[[], str]) -> tuple[bool, str | None]:
        return self.tolerance.run("TRANSFORMATION", "X", operation)


def failing(times: int, error: Exception) -> Callable[[], str]:
    left = [error] * times

    def operation() -> str:
        if left:
            raise left.pop()
        return "done"

    return operation


def test_a_retriable_failure_is_repeated_after_300_ms_doubled_until_it_passes() -> None:
    rig = Rig(errors_retry_timeout="60000")
    assert rig.run(failing(4, RetriableError("away"))) == (True, "done")
    assert rig.waits == [0.3, 0.6, 1.2, 2.4]
    assert (rig.metrics.retries, rig.metrics.failures, rig.metrics.errors, rig.reported) == (4, 4, 0, [])


def test_no_wait_is_longer_than_the_maximum_or_than_what_is_left() -> None:
    rig = Rig(errors_retry_timeout="5000", errors_retry_delay_max_ms="1000")
    with pytest.raises(FatalTaskError, match="Tolerance exceeded in error handler") as failure:
        rig.run(failing(1000, RetriableError("away")))
    assert rig.waits[:2] == [0.3, 0.6]
    assert max(rig.waits) <= 1.0
    assert rig.time == pytest.approx(5.0)
    assert isinstance(failure.value.__cause__, RetriableError)
    assert len(rig.reported) == 1


def test_without_a_retry_timeout_nothing_is_repeated_and_with_minus_one_everything_is() -> None:
    rig = Rig(errors_tolerance="all")
    assert rig.run(failing(1, RetriableError("away"))) == (False, None)
    assert (rig.waits, rig.metrics.skipped) == ([], 1)
    patient = Rig(errors_retry_timeout="-1")
    assert patient.run(failing(40, RetriableError("away"))) == (True, "done")


def test_only_retriable_failures_are_repeated() -> None:
    rig = Rig(errors_retry_timeout="60000", errors_tolerance="all")
    assert rig.run(failing(1, DataError("bad"))) == (False, None)
    assert rig.waits == []


def test_a_record_whose_retries_a_stop_interrupts_is_neither_skipped_nor_failed() -> None:
    rig = Rig(errors_retry_timeout="-1", errors_tolerance="all", stops_after=2)
    with pytest.raises(TaskStopped):
        rig.run(failing(1000, RetriableError("away")))
    assert (rig.metrics.skipped, rig.reported) == (0, [])


def test_a_failure_is_reported_also_when_it_is_not_tolerated() -> None:
    rig = Rig()
    with pytest.raises(FatalTaskError) as failure:
        rig.run(failing(1, ValueError("bad")))
    assert [(stage, name, str(error)) for stage, name, error in rig.reported] == [("TRANSFORMATION", "X", "bad")]
    assert failure.value.__notes__ == [
        "Stage TRANSFORMATION, class X, somewhere. No offset beyond it is committed; errors.tolerance=all would skip the record."
    ]
