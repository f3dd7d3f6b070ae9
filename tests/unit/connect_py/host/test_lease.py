"""Leases: what keeps two processes from running one source."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from connect_py.api.storage import Status
from connect_py.errors import RetriableError
from connect_py.herder.assignment import Takeover
from connect_py.task.lease import Leases, lease_seconds, now
from offsets.local_stores import MemoryStatusStore
from tests.waiting import eventually, let_time_pass

LEASED = """
import sys
from connect_py.task import lease
{before}
timer = lease.LeaseTimer()
timer.extend(lease.now() - 1)
assert not timer.is_armed, "an old line is no lease"
timer.extend(lease.now() + 0.2)
timer.extend(lease.now() + 1)
print("leased", flush=True)
sys.stdin.read()
"""


def leased(before: str = "") -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, "-c", LEASED.format(before=before)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == b"leased\n"
    return process


def test_a_frozen_process_dies_in_its_sleep_when_its_lease_is_over() -> None:
    with leased() as process:
        process.send_signal(signal.SIGSTOP)
        assert process.wait(10) == -signal.SIGKILL, "nobody has continued it"


def test_without_the_kernels_timer_a_frozen_process_dies_as_it_wakes() -> None:
    with leased("lease._kernel_timer = lambda: None") as process:
        process.send_signal(signal.SIGSTOP)
        let_time_pass(1.5, "the lease runs out")
        assert process.poll() is None
        process.send_signal(signal.SIGCONT)
        assert process.wait(10) == -signal.SIGALRM


def test_a_lease_is_the_session_but_for_a_heartbeat() -> None:
    assert lease_seconds({}) == 7
    assert lease_seconds({"session.timeout.ms": "3000", "heartbeat.interval.ms": "1000"}) == 2
    assert lease_seconds({"session.timeout.ms": "3000"}) == 1.5


class Process:
    """Notes what it is sent."""

    def __init__(self) -> None:
        self.is_alive = True
        self.until: list[float] = []

    def send(self, message: Mapping[str, Any]) -> None:
        assert message["type"] == "lease"
        self.until.append(message["until"])


class Clock:
    """Time that a test moves; what waits for it sees 20 ms as a line's interval."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return now() + self.ahead


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def make_leases(clock: Clock) -> Iterator[Callable[[Callable[[float], None]], Leases]]:
    made: list[Leases] = []

    def make(confirm: Callable[[float], None]) -> Leases:
        made.append(Leases(2.0, confirm, clock))
        made[-1].start()
        return made[-1]

    yield make
    for leases in made:
        leases.stop()


def test_a_worker_that_slept_sends_no_lease_before_it_knows_what_was_written_meanwhile(
    make_leases: Callable[[Callable[[float], None]], Leases], clock: Clock
) -> None:
    asked, may_answer = threading.Event(), threading.Event()

    def confirm(seconds: float) -> None:
        asked.set()
        if not may_answer.wait(0.01):
            raise RetriableError("Kafka does not answer.")

    leases, process = make_leases(confirm), Process()
    leases.add(process)
    assert leases.is_sure and process.until
    clock.ahead += 60
    assert not leases.is_sure, "at once, whoever asks first"
    sent = len(process.until)
    assert asked.wait(10)
    asked.clear()
    assert asked.wait(10), "it asks again"
    assert len(process.until) == sent and not leases.is_sure
    may_answer.set()
    eventually(lambda: len(process.until) > sent, "a lease")
    assert leases.is_sure


def test_a_worker_that_lost_its_work_sends_no_lease(make_leases: Callable[[Callable[[float], None]], Leases], clock: Clock) -> None:
    confirmed = threading.Event()

    def confirm(seconds: float) -> None:
        leases.stop()
        confirmed.set()

    leases, process = make_leases(confirm), Process()
    leases.add(process)
    clock.ahead += 60
    assert confirmed.wait(10)
    eventually(lambda: all(thread.name != "leases" for thread in threading.enumerate()), "end of the thread")
    assert len([until for until in process.until if until > now() + 30]) == 0
    assert not leases.is_sure


def test_a_process_that_has_ended_is_sent_nothing(make_leases: Callable[[Callable[[float], None]], Leases]) -> None:
    leases, gone, living = make_leases(lambda seconds: None), Process(), Process()
    leases.add(gone)
    gone.is_alive = False
    leases.add(living)
    eventually(lambda: len(living.until) > 2, "leases")
    assert len(gone.until) == 1


@pytest.mark.parametrize(
    ("status", "held"),
    [
        (Status("RUNNING", "there:1"), True),
        (Status("PAUSED", "there:1"), True),
        (Status("UNASSIGNED", "there:1"), False),
        (Status("FAILED", "there:1"), False),
        (Status("RUNNING", "here:1"), False),
    ],
)
def test_sources_wait_for_the_session_of_a_worker_that_may_be_running_them(status: Status, held: bool) -> None:
    statuses = MemoryStatusStore()
    statuses.put_task("c", 0, status)
    takeover = Takeover("here:1", 10.0, Leases(7.0, lambda seconds: None))
    takeover.look(statuses, ["c", "other"])
    assert (9 < takeover.held("c") <= 10) == held
    assert takeover.held("other") == 0


def test_a_worker_without_a_group_waits_for_nobody() -> None:
    statuses = MemoryStatusStore()
    statuses.put_task("c", 0, Status("RUNNING", "there:1"))
    takeover = Takeover("here:1", 10.0, None)
    takeover.look(statuses, ["c"])
    assert takeover.held("c") == 0 and takeover.is_sure()
