"""What a batch holds and which one comes next: kinds of records, ranges that are promised, reading ahead."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import pytest

from connect_py.api.record import TopicPartition
from spark_sink.config.sink_config import parse
from spark_sink.errors import is_of_size
from spark_sink.plan.triggers import LoopTrigger
from spark_sink.read.formats import Fingerprint
from spark_sink.read.ranges import Range
from spark_sink.read.reader import Prefetch
from spark_sink.read.summary import Truncate, count_rows, kinds

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def counted(topic: str, partition: int, key: int | None, value: int | None, n: int, first: int, **more: Any) -> Any:
    row = {"topic": topic, "partition": partition, "kfp": key, "vfp": value, "route": None, "n": n, "first": first}
    return row | {"placeholder": False, "truncate": None, "truncates": 0, "marks": 0, "longest": 0} | more


def seen(partition: int, offset: int, *, placeholder: bool = False, truncate: bool = False, size: int = 0) -> dict[str, Any]:
    """A record as the driver looks at it."""
    kind = {"topic": "a", "kfp": 7, "vfp": 8, "route": None, "partition": partition}
    return kind | {"offset": offset, "placeholder": placeholder, "truncate": offset if truncate else None, "mark": False, "size": size}


def test_records_that_the_driver_holds_are_counted_by_kind_and_partition() -> None:
    rows = [seen(0, 9, size=5), seen(0, 4, truncate=True), seen(0, 7, truncate=True, placeholder=True), seen(1, 2, size=3)]
    first, second = count_rows(rows)
    assert (first["n"], first["first"], first["placeholder"], first["truncate"], first["truncates"]) == (3, 4, True, 7, 2)
    assert (first["longest"], first["marks"]) == (5, 0)
    assert (second["partition"], second["n"], second["truncate"]) == (1, 1, None)


def test_partitions_of_a_kind_are_added_up_and_its_place_is_in_the_lowest() -> None:
    rows = [counted("a", 1, 7, 8, 30, 5, placeholder=True), counted("a", 0, 7, 8, 12, 90), counted("a", 0, 7, None, 2, 3)]
    rows_kind, tombstones = kinds(rows, {})
    assert rows_kind.fingerprint == Fingerprint("a", 7, 8)
    assert (rows_kind.count, rows_kind.position, rows_kind.placeholder) == (42, (A0, 90), True)
    assert tombstones.fingerprint.value is None, "tombstones come last, however early their offset"


def test_the_last_truncate_is_the_youngest_of_the_partitions_last_ones() -> None:
    rows = [counted("a", 0, 7, 8, 9, 0, truncate=5, truncates=2), counted("a", 1, 7, 8, 9, 0, truncate=2, truncates=1)]
    (found,) = kinds(rows, {(A0, 5): 1000, (A1, 2): 2000})
    assert found.truncate == Truncate(2000, 1, 2)
    assert found.truncates == 3


def loop(bound: int = 100, interval_ms: int = 0, *, adaptive: bool = False) -> LoopTrigger:
    return LoopTrigger(
        parse(
            {
                "name": "lake",
                "topics": "a,b",
                "lakehouse.catalog.type": "hadoop",
                "lakehouse.catalog.warehouse": "/tmp/none",
                "lakehouse.control.commit.interval-ms": str(interval_ms),
                "lakehouse.batch.adaptive": str(adaptive).lower(),
                "lakehouse.max-offsets-per-trigger": str(bound),
            }
        )
    )


def test_what_a_driver_promises_is_what_it_plans_although_the_log_has_grown() -> None:
    driver = loop()
    promised = driver.after({A0: 100, B0: 50}, {A0: (0, 500), B0: (0, 150)})
    assert promised == {A0: (100, 180), B0: (50, 70)}
    pending = driver.next({A0: 100, B0: 50}, {A0: (0, 500), B0: (0, 9000)})
    assert pending is not None
    assert pending.ranges == promised


def test_a_partition_with_new_records_is_in_the_next_promise_of_a_backlog() -> None:
    driver = loop()
    assert driver.after({A0: 100, B0: 50}, {A0: (0, 500), B0: (0, 50)}) == {A0: (100, 200)}
    assert driver.next({A0: 100, B0: 50}, {A0: (0, 500), B0: (0, 60)}) is not None
    assert B0 in (driver.after({A0: 200, B0: 50}, {A0: (0, 500), B0: (0, 60)}) or {})


def test_nothing_is_promised_without_a_whole_batch() -> None:
    assert loop().after({A0: 100}, {A0: (0, 199)}) is None


def test_a_promise_that_no_longer_starts_at_the_positions_is_forgotten() -> None:
    driver = loop()
    log = {A0: (0, 500)}
    assert driver.after({A0: 100}, log) is not None
    pending = driver.next({A0: 40}, log)
    assert pending is not None
    assert pending.ranges == {A0: (40, 140)}
    driver.after({A0: 140}, log)
    driver.failed()
    again = driver.next({A0: 100}, log)
    assert again is not None
    assert again.ranges == {A0: (100, 200)}


def size(driver: LoopTrigger, start: int) -> int:
    pending = driver.next({A0: start}, {A0: (0, 100_000)})
    assert pending is not None
    return pending.ranges[A0][1] - start


def test_a_batch_that_was_too_large_comes_smaller_and_later_ones_grow_again() -> None:
    driver = loop(1000, 60_000, adaptive=True)
    assert size(driver, 0) == 1000
    driver.failed(too_large=True)
    assert size(driver, 0) == 500
    driver.failed(too_large=True)
    assert [size(driver, start) for start in (0, 250, 562, 952, 1439, 2047, 2807)] == [250, 312, 390, 487, 608, 760, 950]
    assert [size(driver, 4000), size(driver, 5000)] == [1000, 1000]


def test_a_slow_batch_does_not_grow_and_another_failure_does_not_shrink() -> None:
    driver = loop(1000, 0, adaptive=True)
    size(driver, 0)
    driver.failed(too_large=True)
    assert [size(driver, 0), size(driver, 500)] == [500, 500]
    driver.failed()
    assert size(driver, 500) == 500
    for _ in range(9):
        driver.failed(too_large=True)
        assert size(driver, 500) >= 100


def test_without_leave_a_batch_keeps_its_size() -> None:
    driver = loop(1000, 60_000)
    size(driver, 0)
    driver.failed(too_large=True)
    assert size(driver, 0) == 1000


@pytest.mark.parametrize(
    ("text", "too_large"),
    [
        ("java.lang.OutOfMemoryError: Java heap space", True),
        ("[UNABLE_TO_ACQUIRE_MEMORY] Unable to acquire 64 bytes of memory", True),
        ("org.apache.kafka.common.errors.TimeoutException: Timeout expired", True),
        ("[CAST_INVALID_INPUT] The value 'x' cannot be cast", False),
    ],
)
def test_memory_and_time_are_told_from_other_failures(text: str, too_large: bool) -> None:
    wrapped = RuntimeError("writing failed")
    wrapped.__cause__ = OSError(text)
    assert is_of_size(wrapped) is too_large


class Held:
    """Stands for a batch: says whether it was released."""

    def __init__(self, released: threading.Event) -> None:
        self.closed = False
        self._released = released

    def close(self) -> None:
        self.closed = True
        self._released.set()


class Source:
    """Stands for a reader: answers when it is let, or fails."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.go = threading.Event()
        self.released = threading.Event()
        self.failure = failure
        self.made: list[Held] = []

    def read(self, ranges: Mapping[TopicPartition, Range]) -> Held:
        assert self.go.wait(60)
        if self.failure is not None:
            raise self.failure
        self.made.append(Held(self.released))
        return self.made[-1]


def ahead(source: Source) -> Prefetch:
    return Prefetch(source)  # type: ignore[arg-type]


def test_reading_ahead_gives_the_batch_of_the_ranges_once_and_waits_for_it() -> None:
    source = Source()
    reading = ahead(source)
    reading.begin({A0: (0, 10)})
    threading.Timer(0.05, source.go.set).start()
    assert reading.take({A0: (0, 10)}) is source.made[0]
    assert reading.take({A0: (0, 10)}) is None
    assert not source.made[0].closed
    reading.close()


def test_what_was_read_of_other_ranges_is_released() -> None:
    source = Source()
    source.go.set()
    reading = ahead(source)
    reading.begin({A0: (0, 10)})
    assert reading.take({A0: (5, 10)}) is None
    assert source.made[0].closed
    reading.begin({A0: (5, 10)})
    reading.drop()
    assert source.made[1].closed
    reading.close()


def test_closing_does_not_wait_for_a_read_and_releases_what_it_gives() -> None:
    source = Source()
    reading = ahead(source)
    reading.begin({A0: (0, 10)})
    reading.close()
    reading.close()
    assert not source.made
    source.go.set()
    assert source.released.wait(60)


def test_a_failure_while_reading_ahead_is_left_to_the_task() -> None:
    source = Source(OSError("no broker"))
    source.go.set()
    reading = ahead(source)
    reading.begin({A0: (0, 10)})
    assert reading.take({A0: (0, 10)}) is None
    reading.begin({A0: (0, 10)})
    reading.drop()
    reading.close()
