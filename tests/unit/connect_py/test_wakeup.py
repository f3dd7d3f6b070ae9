"""A wait for a socket that another thread ends."""

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from connect_py.wakeup import Wakeup

LONG = 30.0


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


@pytest.fixture
def wakeup() -> Iterator[Wakeup]:
    made = Wakeup()
    yield made
    made.close()


def test_another_thread_ends_a_wait(wakeup: Wakeup, pair: tuple[socket.socket, socket.socket]) -> None:
    began = time.monotonic()
    waker = threading.Timer(0.05, wakeup.wake)
    waker.start()
    assert not wakeup.wait_readable(pair[0].fileno(), LONG)
    waker.join()
    assert time.monotonic() - began < LONG / 2


def test_many_wakes_end_one_wait_also_one_that_begins_later(wakeup: Wakeup, pair: tuple[socket.socket, socket.socket]) -> None:
    for _ in range(200_000):  # more than the pipe holds
        wakeup.wake()
    while not wakeup.wait_readable(pair[0].fileno(), 0.0):
        pass
    assert wakeup.wait_readable(pair[0].fileno(), 0.01)


def test_a_socket_with_something_to_read_ends_a_wait(wakeup: Wakeup, pair: tuple[socket.socket, socket.socket]) -> None:
    pair[1].sendall(b"x")
    began = time.monotonic()
    assert wakeup.wait_readable(pair[0].fileno(), LONG)
    assert time.monotonic() - began < LONG / 2


def test_a_wake_after_the_end_writes_to_nothing(wakeup: Wakeup) -> None:
    wakeup.close()
    wakeup.wake()
    wakeup.close()
