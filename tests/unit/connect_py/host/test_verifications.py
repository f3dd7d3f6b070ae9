"""A worker's comparisons of lakehouse tables: one at a time, in a process whose every end is noticed."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from connect_py.errors import ConflictError, RestError
from connect_py.host.process import Event, TaskProcess, spawn
from connect_py.host.verifications import Verifications
from tests import waiting

#: Does what its start message says, one thing after the other.
SCRIPT = textwrap.dedent(
    """
    import json, os, sys
    start = json.loads(sys.stdin.readline())
    for message in start["say"]:
        print(json.dumps(message), flush=True)
    if start.get("waits"):
        sys.stdin.read()
    os._exit(start.get("code", 0))
    """
)
PROGRESS = {"type": "progress", "table": "public.a", "phase": "table", "rows": 5, "expected": 10}
RESULT = {"type": "result", "source": "s", "sink": "lake", "table": "public.a", "verdict": "equal"}


@pytest.fixture
def site() -> Iterator[Verifications]:
    def start_process(start: Mapping[str, Any], on_event: Callable[[Event], None]) -> TaskProcess:
        if start.get("cannot"):
            raise OSError("no more processes")
        return TaskProcess(lambda: spawn([sys.executable, "-c", SCRIPT]), start, on_event)

    made = Verifications(start_process, clock=lambda: 100.0)
    yield made
    made.close()


def until(site: Verifications, condition: Callable[[Mapping[str, Any]], object]) -> Mapping[str, Any]:
    """What is shown when a condition holds."""
    waiting.eventually(lambda: condition(site.of("lake") or {}), "the comparison", 20)
    return site.of("lake") or {}


def test_progress_and_results_are_shown_and_a_process_that_ends_is_done(site: Verifications) -> None:
    assert site.of("lake") is None
    site.begin("lake", ["public.a"], {"say": [PROGRESS], "waits": True})
    shown = until(site, lambda shown: shown["progress"])
    assert shown["progress"] == {"table": "public.a", "phase": "table", "rows": 5, "expected": 10}
    assert (shown["state"], shown["tables"], shown["began"], shown["ended"]) == ("running", ["public.a"], 100.0, None)
    site.cancel("lake")
    site.begin("lake", [], {"say": [PROGRESS, RESULT]})
    shown = until(site, lambda shown: shown["state"] != "running")
    assert (shown["state"], shown["ended"], shown["progress"], shown["error"]) == ("done", 100.0, None, None)
    assert shown["results"] == [{name: value for name, value in RESULT.items() if name != "type"}]


def test_a_failure_is_shown_with_what_was_found_before(site: Verifications) -> None:
    site.begin("lake", [], {"say": [RESULT, {"type": "verification_failed", "error": "the bucket is gone"}]})
    shown = until(site, lambda shown: shown["state"] != "running")
    assert (shown["state"], shown["error"], len(shown["results"])) == ("failed", "the bucket is gone", 1)


def test_a_process_that_dies_is_a_failure(site: Verifications) -> None:
    site.begin("lake", [], {"say": [], "code": 3})
    shown = until(site, lambda shown: shown["state"] != "running")
    assert shown["state"] == "failed"
    assert "has ended (exit code 3)" in shown["error"]


def test_one_runs_at_a_time_and_can_be_cancelled(site: Verifications) -> None:
    site.begin("lake", [], {"say": [], "waits": True})
    for name in ("lake", "other"):
        with pytest.raises(ConflictError, match="tables of connector lake are being compared"):
            site.begin(name, [], {"say": []})
    site.cancel("other")
    site.cancel("lake")
    assert (site.of("lake") or {})["state"] == "cancelled"
    site.begin("other", [], {"say": []})
    site.cancel("lake")


def test_a_process_that_cannot_be_started_leaves_nothing_behind(site: Verifications) -> None:
    with pytest.raises(RestError, match=r"could not be started: no more processes\. Nothing was begun") as refusal:
        site.begin("lake", [], {"cannot": True})
    assert refusal.value.status == 503
    assert site.of("lake") is None


def test_a_worker_that_ends_ends_its_comparison_and_begins_no_other(site: Verifications) -> None:
    site.begin("lake", [], {"say": [], "waits": True})
    site.close()
    assert (site.of("lake") or {})["state"] == "cancelled"
    with pytest.raises(RestError, match="The worker is ending"):
        site.begin("lake", [], {"say": []})


def test_outcomes_are_kept_of_the_last_hundred_connectors(site: Verifications) -> None:
    for number in range(101):
        site.begin(f"sink-{number}", [], {"say": [], "waits": True})
        site.cancel(f"sink-{number}")
    assert site.of("sink-0") is None
    assert site.of("sink-1") is not None
