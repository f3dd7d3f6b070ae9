"""When transactions of exactly-once sources end."""

import threading

import pytest

from connect_py.api.record import SourceRecord
from connect_py.errors import ConfigError, FatalTaskError
from connect_py.task.transaction_boundary import (
    Decision,
    TransactionBoundary,
    TransactionRequests,
    boundary_rule,
)

POLL, INTERVAL, CONNECTOR = TransactionBoundary
CONTINUE, COMMIT, ABORT = Decision


def record(number: int, partition: int | None = None) -> SourceRecord:
    return SourceRecord({"p": 1}, {"o": number}, "t", value=number, partition=partition)


def test_the_property_is_read_in_any_case_and_trimmed() -> None:
    assert TransactionBoundary.of_property(" Interval ") is INTERVAL
    with pytest.raises(ConfigError, match="poll, interval, connector"):
        TransactionBoundary.of_property("never")


def test_poll_commits_every_batch_and_what_is_left_at_the_end() -> None:
    rule = boundary_rule(POLL, interval_ms=60_000, requests=None)
    rule.begin(0)
    assert rule.after_record(record(1)) is CONTINUE
    assert [rule.after_batch(now) for now in (0, 0, 1)] == [COMMIT] * 3
    assert rule.at_end(1) is COMMIT


def test_interval_commits_the_first_batch_after_the_interval() -> None:
    rule = boundary_rule(INTERVAL, interval_ms=100, requests=None)
    rule.begin(1_000)
    assert rule.after_record(record(1)) is CONTINUE
    times = (1_000, 1_099, 1_100, 1_101, 1_199, 1_350, 1_449, 1_450)
    assert [now for now in times if rule.after_batch(now) is COMMIT] == [1_100, 1_350, 1_450]
    assert rule.at_end(1_451) is COMMIT


def test_a_pause_begins_an_interval_again() -> None:
    rule = boundary_rule(INTERVAL, interval_ms=100, requests=None)
    rule.begin(0)
    rule.begin(5_000)
    assert rule.after_batch(5_099) is CONTINUE
    assert rule.after_batch(5_100) is COMMIT


def test_an_interval_of_zero_commits_every_batch() -> None:
    rule = boundary_rule(INTERVAL, interval_ms=0, requests=None)
    rule.begin(7)
    assert [rule.after_batch(7) for _ in range(3)] == [COMMIT] * 3


def test_the_connector_decides_for_records_and_batches_once_for_each_request() -> None:
    requests = TransactionRequests()
    rule = boundary_rule(CONNECTOR, interval_ms=0, requests=requests)
    rule.begin(0)
    assert rule.after_batch(0) is rule.at_end(0) is rule.after_record(record(1)) is CONTINUE
    requests.commit_transaction(record(2))
    requests.abort_transaction(record(3))
    assert [rule.after_record(record(number)) for number in (1, 2, 2, 3, 3)] == [CONTINUE, COMMIT, CONTINUE, ABORT, CONTINUE]
    requests.commit_transaction()
    assert [rule.after_batch(0), rule.after_batch(0)] == [COMMIT, CONTINUE]
    requests.abort_transaction()
    assert [rule.after_batch(0), rule.after_batch(0)] == [ABORT, CONTINUE]


def test_the_end_commits_for_a_connector_that_asked_for_it_only() -> None:
    requests = TransactionRequests()
    rule = boundary_rule(CONNECTOR, interval_ms=0, requests=requests)
    assert rule.at_end(0) is CONTINUE
    requests.commit_transaction()
    assert rule.at_end(0) is COMMIT


def test_requests_for_the_same_record_count_once() -> None:
    requests = TransactionRequests()
    requests.commit_transaction(record(1))
    requests.commit_transaction(record(1))
    assert [requests.take_for(record(1)), requests.take_for(record(1))] == [COMMIT, CONTINUE]


@pytest.mark.parametrize(("partition", "named"), [(None, "t/null"), (3, "t/3")])
def test_a_commit_and_an_abort_of_the_same_record_fail_the_task(partition: int | None, named: str) -> None:
    requests = TransactionRequests()
    requests.commit_transaction(record(1, partition))
    requests.abort_transaction(record(1, partition))
    assert requests.take_for(record(2)) is CONTINUE
    for _ in range(2):
        with pytest.raises(FatalTaskError, match=rf"^Connector requested both commit and abort of same record .*{named}$"):
            requests.take_for(record(1, partition))


def test_a_commit_and_an_abort_of_the_same_batch_fail_the_task() -> None:
    requests = TransactionRequests()
    requests.commit_transaction()
    requests.abort_transaction()
    rule = boundary_rule(CONNECTOR, interval_ms=0, requests=requests)
    for decide in (rule.after_batch, rule.at_end):
        with pytest.raises(FatalTaskError, match=r"^Connector requested both commit and abort of same transaction$"):
            decide(0)


def test_any_thread_may_ask() -> None:
    requests = TransactionRequests()
    threads = [threading.Thread(target=requests.commit_transaction, args=(record(number),)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [requests.take_for(record(number)) for number in range(9)] == [*[COMMIT] * 8, CONTINUE]


def test_a_connector_boundary_needs_the_connectors_requests() -> None:
    with pytest.raises(ValueError, match="must be provided"):
        boundary_rule(CONNECTOR, interval_ms=0, requests=None)
