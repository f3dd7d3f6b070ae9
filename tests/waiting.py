"""The ways in which a test waits; the linter refuses `time.sleep` everywhere else.

A test that waits for a state polls it with a deadline (`eventually`, or `wait_until`). A test that needs time to pass, since the passing of
time is its subject, says so with `let_time_pass`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import pytest

from connect_py.app.services import process

T = TypeVar("T")

#: Deadlines are written for a quiet machine. They end what never comes; how long something took is for a test of times to assert, since
#: next to other tests, on a machine that has a bad hour, whatever is waited for may take several times as long.
_PATIENCE = 4


def eventually(probe: Callable[[], T], what: str | Callable[[], str], seconds: float = 60, pause: float = 0.05) -> T:
    """Return the first true value of the probe; fail the test when the time is over.

    Args:
        what: names the state, or describes after the deadline what was found instead of it.
        seconds: on a quiet machine; a busy one has `_PATIENCE` times as many.
        pause: between two probes, in seconds.
    """
    began = time.monotonic()
    while not (found := probe()):
        if (waited := time.monotonic() - began) > _PATIENCE * seconds:
            pytest.fail(f"after {waited:.0f} s still no {what}" if isinstance(what, str) else f"after {waited:.0f} s {what()}")
        time.sleep(pause)  # noqa: TID251
    return found


def wait_until(probe: Callable[[], object], seconds: float, what: str, alive: Callable[[], bool] = lambda: True) -> None:
    """As that of the services, with as much patience as `eventually` has."""
    process.wait_until(probe, _PATIENCE * seconds, what, alive)


def let_time_pass(seconds: float, why: str) -> None:
    """Do nothing for a while, for a reason that is no state: the random moment of a kill, load at a rate, a slow peer."""
    assert why
    time.sleep(seconds)  # noqa: TID251
