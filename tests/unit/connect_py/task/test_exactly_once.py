"""Which records and offsets an exactly-once task commits together, and when its source is notified."""

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any

import pytest

from connect_py.api import SourceTask
from connect_py.errors import FatalTaskError
from connect_py.task.exactly_once import TransactionCommitter
from connect_py.task.offsets import SubmittedRecords
from connect_py.task.transaction_boundary import TransactionBoundary, TransactionRequests, boundary_rule
from tests.waiting import let_time_pass

PARTITION = {"server": "a"}


class Task(SourceTask):
    def __init__(self) -> None:
        self.notified: list[Any] = []

    def start(self, config: Any, context: Any) -> None: ...
    def poll(self) -> None: ...
    def offsets_committed(self, offsets: Any) -> None:
        self.notified += [offset for _, offset in offsets]


class Transactions:
    """A producer that commits when `finish` is called."""

    def __init__(self) -> None:
        self.is_open = False
        self.log: list[Any] = []
        self.running: Future[None] | None = None

    def open(self, while_waiting: Callable[[], None] | None = None) -> None:
        if not self.is_open:
            self.await_commit()
            self.is_open = True
            self.log.append("begin")

    def produce(self, topic: str, value: Any, key: Any = None) -> None:
        self.open()
        self.log.append((topic, value))

    def start_commit(self) -> Future[None]:
        self.is_open = False
        self.running = Future()
        return self.running

    def finish(self, error: Exception | None = None) -> None:
        running, self.running = self.running, None
        assert running is not None
        if error is None:
            self.log.append("commit")
            running.set_result(None)
        else:
            running.set_exception(error)

    def await_commit(self, while_waiting: Callable[[], None] | None = None, deadline: float = 0.0) -> None:
        if self.running is not None:
            self.finish()

    def abort(self, deadline: float) -> None:
        if self.is_open:
            self.is_open = False
            self.log.append("abort")


class Run:
    def __init__(self, boundary: TransactionBoundary = TransactionBoundary.POLL, interval: float = 1000.0) -> None:
        self.task, self.producer, self.submitted = Task(), Transactions(), SubmittedRecords()
        self.requests = TransactionRequests() if boundary is TransactionBoundary.CONNECTOR else None
        rule = boundary_rule(boundary, interval_ms=10_000_000, requests=self.requests)
        self.committer = TransactionCommitter(self.task, self.submitted, self.producer, "offsets", self.records, rule, interval)

    @staticmethod
    def records(offsets: Any) -> Iterable[tuple[Any, Any]]:
        return [(b"k", offset["n"]) for _, offset in offsets]

    def send(self, number: int, rows: int = 1, *, is_whole: bool = True) -> None:
        """As the loop sends a batch of a connector that has serialised it."""
        if rows:
            self.committer.before_rows(lambda: None)
        submission = self.submitted.submit(PARTITION, {"n": number})
        self.producer.log += ["row"] * rows
        if is_whole:
            submission.held -= 1
            self.committer.after_batch(rows)

    def turn(self) -> None:
        self.committer.serve()
        if self.committer.is_due():
            self.committer.commit()


def test_a_batch_is_committed_with_its_offset_and_the_source_is_notified_afterwards() -> None:
    run = Run()
    run.send(1)
    run.turn()
    assert run.producer.log == ["begin", "row", ("offsets", 1)]
    assert run.task.notified == []
    run.producer.finish()
    run.turn()
    assert run.task.notified == [{"n": 1}]


def test_rows_that_come_while_a_commit_runs_are_in_the_next_transaction() -> None:
    run = Run()
    run.send(1)
    run.turn()
    run.send(2)
    run.turn()
    assert run.producer.log == ["begin", "row", ("offsets", 1), "commit", "begin", "row", ("offsets", 2)]


def test_full_batches_share_a_transaction_until_one_is_not_full() -> None:
    run = Run()
    run.send(1)
    run.turn()
    let_time_pass(0.05, "what the first commit takes says how long batches share the next one")
    run.producer.finish()
    run.turn()
    del run.producer.log[:]
    for number, rows in ((2, 1000), (3, 1000), (4, 1)):
        run.send(number, rows)
        run.turn()
    assert [entry for entry in run.producer.log if entry != "row"] == ["begin", ("offsets", 4)]
    assert run.producer.log.count("row") == 2001
    run.producer.finish()
    run.send(5, 1000)
    run.committer.after_batch(0)  # the source has nothing more
    run.turn()
    assert run.producer.log[-1] == ("offsets", 5)


def test_an_interval_takes_many_batches_and_the_last_offset() -> None:
    run = Run(TransactionBoundary.INTERVAL)
    for number in range(3):
        run.send(number)
        run.turn()
    assert run.producer.log == ["begin", "row", "row", "row"]
    run.committer.at_pause()
    run.turn()
    assert run.producer.log[4:] == [("offsets", 2)]


def test_a_batch_without_rows_waits_for_the_flush_interval() -> None:
    run = Run()
    run.send(1, rows=0)
    run.turn()
    assert run.producer.log == []
    run.send(2)
    run.turn()
    assert run.producer.log == ["begin", "row", ("offsets", 2)]


def test_a_batch_that_a_stop_interrupts_is_dropped() -> None:
    run = Run()
    run.send(1, is_whole=False)
    assert not run.committer.finish(float("inf"))
    assert run.producer.log == ["begin", "row", "abort"]


def test_what_a_failed_task_has_open_is_dropped_and_what_is_being_committed_is_not() -> None:
    run = Run()
    run.send(1)
    run.turn()
    run.send(2)
    run.committer.finish(float("inf"), failed=True)
    assert run.producer.log == ["begin", "row", ("offsets", 1), "commit", "begin", "row", "abort"]
    assert run.task.notified == [{"n": 1}]


def test_a_commit_that_fails_fails_the_task_and_nothing_is_confirmed() -> None:
    run = Run()
    run.send(1)
    run.turn()
    run.producer.finish(FatalTaskError("fenced"))
    with pytest.raises(FatalTaskError, match="fenced"):
        run.turn()
    assert run.task.notified == []


def test_an_abort_that_a_connector_asks_for_stores_the_offsets_nevertheless() -> None:
    run = Run(TransactionBoundary.CONNECTOR)
    assert run.requests is not None
    run.send(1)
    run.turn()
    run.requests.abort_transaction()
    run.send(2)
    run.turn()
    assert run.producer.log == ["begin", "row", "row", "abort", "begin", ("offsets", 2), "commit"]


def test_only_the_connector_ends_its_transactions() -> None:
    run = Run(TransactionBoundary.CONNECTOR)
    run.send(1)
    run.turn()
    assert run.committer.finish(float("inf"))
    assert run.producer.log == ["begin", "row", "abort"]
