"""Rounds of fencing, by what the configuration topic says of a connector's tasks."""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from connect_py.errors import BadRequestError, ConflictError, NotFoundError, RestError, RetriableError
from connect_py.group.peers import UnsentError
from connect_py.herder.fencing import Fencing, ask_leader
from offsets.local_stores import MemoryConfigStore
from tests.waiting import eventually, let_time_pass


class Cluster:
    def __init__(self) -> None:
        self.configs = MemoryConfigStore()
        self.fenced: list[list[int]] = []
        self.error: Exception | None = None
        self.is_source, self.asked = True, 0
        self.new_tasks = 0
        self.fences, self.may_fence = threading.Semaphore(0), threading.Event()
        self.may_fence.set()
        self.fencing = Fencing(self.configs, self._is_source, self._fence)
        self.configs.put_connector("c", {"name": "c"})

    def _is_source(self, snapshot: object, name: str) -> bool:
        self.asked += 1
        return self.is_source

    def _fence(self, name: str, tasks: Sequence[int]) -> None:
        self.fences.release()
        assert self.may_fence.wait(60)
        if self.error is not None:
            raise self.error
        self.fenced.append(list(tasks))
        if self.new_tasks:
            self.tasks(self.new_tasks)

    def tasks(self, count: int) -> None:
        self.configs.put_task_configs("c", [{"n": str(number)} for number in range(count)])

    def round(self) -> list[list[int]]:
        self.fenced = []
        self.fencing.fence("c")
        return self.fenced

    @property
    def record(self) -> int | None:
        return self.configs.snapshot().task_count_records.get("c")


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_the_first_set_is_noted_and_nothing_fenced(cluster: Cluster) -> None:
    cluster.tasks(3)
    assert cluster.round() == []
    assert cluster.record == 3


def test_a_set_that_has_been_noted_needs_no_round(cluster: Cluster) -> None:
    cluster.tasks(3)
    cluster.round()
    assert cluster.round() == []


def test_the_tasks_of_the_set_before_are_fenced(cluster: Cluster) -> None:
    cluster.tasks(4)
    cluster.round()
    cluster.tasks(1)
    assert cluster.round() == [[0, 1, 2, 3]]
    assert cluster.record == 1


def test_from_one_task_to_one_the_record_is_written_and_nothing_fenced(cluster: Cluster) -> None:
    cluster.tasks(1)
    cluster.round()
    cluster.tasks(1)
    assert "c" not in cluster.configs.snapshot().fenced
    assert cluster.round() == []
    assert "c" in cluster.configs.snapshot().fenced


def test_an_empty_set_makes_a_round_necessary(cluster: Cluster) -> None:
    cluster.tasks(1)
    cluster.round()
    cluster.tasks(0)
    assert cluster.round() == [[0]]
    assert cluster.record == 0


def test_a_new_set_fails_a_round(cluster: Cluster) -> None:
    cluster.tasks(2)
    cluster.round()
    cluster.tasks(3)
    cluster.new_tasks = 4
    with pytest.raises(ConflictError, match="new task configurations were generated"):
        cluster.round()
    assert cluster.record == 2


def test_what_cannot_be_fenced_is_not_noted(cluster: Cluster) -> None:
    cluster.tasks(2)
    cluster.round()
    cluster.tasks(2)
    cluster.error = RetriableError("no coordinator")
    with pytest.raises(RestError, match="no coordinator"):
        cluster.round()
    assert cluster.record == 2
    assert "c" not in cluster.configs.snapshot().fenced


@pytest.mark.parametrize("error", [None, RetriableError("no coordinator")])
def test_tasks_that_ask_while_a_round_is_under_way_share_its_outcome(cluster: Cluster, error: Exception | None) -> None:
    """`DistributedHerder.fenceZombieSourceTasks`: a coordinator that never answers holds each task up for one round, not for one a task."""
    cluster.tasks(2)
    cluster.round()
    cluster.tasks(3)
    cluster.may_fence.clear()
    cluster.error = error
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(cluster.fencing.fence, "c")
        assert cluster.fences.acquire(timeout=60)
        asked = cluster.asked
        others = [pool.submit(cluster.fencing.fence, "c") for _ in range(2)]
        eventually(lambda: cluster.asked == asked + 2, "their questions")
        let_time_pass(0.1, "they wait")
        cluster.may_fence.set()
        found = {str(each.exception(10)) for each in (first, *others)}
    assert not cluster.fences.acquire(blocking=False), "there was a second round"
    assert len(found) == 1
    assert ("no coordinator" in found.pop()) == (error is not None)
    cluster.error = None
    assert cluster.round() == ([[0, 1]] if error else []), "a failure is of its round alone"


def test_tasks_of_a_newer_set_wait_for_a_round_of_an_earlier_one_and_have_their_own(cluster: Cluster) -> None:
    cluster.tasks(2)
    cluster.round()
    cluster.tasks(3)
    cluster.may_fence.clear()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(cluster.fencing.fence, "c")
        assert cluster.fences.acquire(timeout=60)
        cluster.tasks(4)
        second = pool.submit(cluster.fencing.fence, "c")
        let_time_pass(0.1, "it has asked")
        assert not second.done() and not cluster.fences.acquire(blocking=False)
        cluster.may_fence.set()
        assert isinstance(first.exception(10), ConflictError)
        second.result(10)
    assert cluster.record == 4


def test_sinks_and_unknown_connectors_are_refused(cluster: Cluster) -> None:
    with pytest.raises(NotFoundError, match="Connector x not found"):
        cluster.fencing.fence("x")
    cluster.is_source = False
    with pytest.raises(BadRequestError, match="Connector c is not a source connector"):
        cluster.round()


class Leader:
    """Answers with these errors, one after the other, and then with none."""

    def __init__(self, *errors: Exception) -> None:
        self.errors, self.asked = list(errors), 0

    def __call__(self) -> None:
        self.asked += 1
        if self.errors:
            raise self.errors.pop(0)


def test_a_task_waits_for_a_leader_that_can_be_reached() -> None:
    leader = Leader(
        UnsentError("connection refused by http://dead:1/"),
        RestError("a rebalance", 409),
        RestError("another key", 403),
        RetriableError("cut"),
    )
    reading = Leader()
    ask_leader(leader, lambda: True, reading)
    assert (leader.asked, reading.asked) == (5, 1)


def wrong_signatures(count: int) -> Leader:
    return Leader(*[RestError("Internal request contained invalid signature.", 403)] * count)


def test_a_signature_that_is_wrong_by_the_newest_key_is_refused_at_once() -> None:
    leader, reading = wrong_signatures(100), Leader()
    began = time.monotonic()
    with pytest.raises(RestError, match="invalid signature"):
        ask_leader(leader, lambda: True, reading)
    assert (leader.asked, reading.asked) == (4, 3)
    assert time.monotonic() - began < 10


def test_a_key_that_cannot_be_read_is_waited_for() -> None:
    leader, reading = wrong_signatures(5), Leader(RetriableError("no broker"), RetriableError("no broker"))
    ask_leader(leader, lambda: True, reading)
    assert (leader.asked, reading.asked) == (6, 5)


@pytest.mark.parametrize("status", [400, 404, 500])
def test_a_leader_that_refuses_is_not_asked_again(status: int) -> None:
    leader = Leader(RestError("no", status))
    with pytest.raises(RestError, match="no"):
        ask_leader(leader, lambda: True, Leader())
    assert leader.asked == 1


def test_no_leader_is_waited_for_longer_than_its_time_or_for_a_task_of_another_worker() -> None:
    for seconds, is_wanted in ((0.0, True), (60.0, False)):
        leader = Leader(UnsentError("connection refused by http://dead:1/"))
        with pytest.raises(UnsentError):
            ask_leader(leader, lambda is_wanted=is_wanted: is_wanted, Leader(), seconds)  # type: ignore[misc]
        assert leader.asked == 1
