"""Leases: what keeps two processes from running one source."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from connect_py.task.lease import Leases, now
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
        assert process.wait(60) == -signal.SIGKILL, "nobody has continued it"


def test_without_the_kernels_timer_a_frozen_process_dies_as_it_wakes() -> None:
    with leased("lease._kernel_timer = lambda: None") as process:
        process.send_signal(signal.SIGSTOP)
        let_time_pass(1.5, "the lease runs out")
        assert process.poll() is None
        process.send_signal(signal.SIGCONT)
        assert process.wait(60) == -signal.SIGALRM


class Process:
    """Notes what it is sent."""

    def __init__(self) -> None:
        self.is_alive = True
        self.until: list[float] = []

    def send(self, message: Mapping[str, Any]) -> None:
        assert message["type"] == "lease"
        self.until.append(message["until"])


class Membership:
    """A group that a test lets the worker fall out of."""

    def __init__(self) -> None:
        self.until = now() + 60

    def lease_until(self) -> float:
        return self.until


@pytest.fixture
def membership() -> Membership:
    return Membership()


@pytest.fixture
def leases(membership: Membership) -> Iterator[Leases]:
    made = Leases(0.1, membership.lease_until)
    made.start()
    yield made
    made.stop()


def test_a_worker_hands_its_own_lease_to_its_tasks_again_and_again(leases: Leases, membership: Membership) -> None:
    process = Process()
    leases.add(process)
    assert leases.is_sure and process.until == [membership.until], "at once"
    membership.until += 5
    eventually(lambda: process.until[-1] == membership.until, "a longer lease")


def test_a_worker_that_is_silent_for_the_group_sends_no_lease_until_it_is_heard_again(leases: Leases, membership: Membership) -> None:
    process = Process()
    leases.add(process)
    membership.until = now() - 1
    assert not leases.is_sure, "at once, whoever asks first"
    late = Process()
    leases.add(late)
    let_time_pass(0.2, "lines would have been sent")
    assert late.until == [] and membership.until not in process.until
    membership.until = now() + 60
    eventually(lambda: late.until and process.until[-1] == membership.until, "leases")
    assert leases.is_sure


def test_what_was_abandoned_is_sent_nothing_more_and_later_work_is(leases: Leases) -> None:
    lost, later = Process(), Process()
    leases.add(lost)
    leases.abandon()
    leases.add(later)
    eventually(lambda: len(later.until) > 2, "leases")
    assert len(lost.until) == 1


def test_a_worker_that_ends_sends_no_lease(leases: Leases) -> None:
    leases.stop()
    process = Process()
    leases.add(process)
    assert process.until == [] and not leases.is_sure


def test_a_process_that_has_ended_is_sent_nothing(leases: Leases) -> None:
    gone, living = Process(), Process()
    leases.add(gone)
    gone.is_alive = False
    leases.add(living)
    eventually(lambda: len(living.until) > 2, "leases")
    assert len(gone.until) == 1
