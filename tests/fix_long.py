"""Long tests: when they run, which of them a slice takes, how long each file takes, and the end of those that never end.

A test that takes long, or is the twin of one that runs always, is marked `long`. Plain `pytest` and `make test` leave it out (`-m "not
long"` in pyproject.toml), `make test-long` runs everything, and continuous integration runs a slice: as many long tests, chosen by the
run's seed, as fit into the time that is left.

A test that tries the same with many values, each of which takes seconds, is marked `rotates`: in `make test` the run's seed chooses some of
its cases. They all run in `make test-long`, and where pytest is called by hand.

pytest-timeout ends a test by an exception, which a call of a C library (Kafka's client, a driver) does not see: where that has not helped,
the process ends, and shows where its threads are.
"""

from __future__ import annotations

import faulthandler
import json
import os
import random
import resource
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Set
from pathlib import Path

import pytest
from hypothesis import settings

from tests import fault_counts
from tests.seeds import LONG, RUN, examples

#: Seconds by test file, and by long test, of an earlier run; `tests/lanes.py --record` writes them.
DURATIONS = Path(__file__).with_name("durations.json")
#: Where this process writes what it measured, for `tests/lanes.py`; failures go into the same name with `.failed`, as they come.
MEASURED = "CONNECT_PY_DURATIONS"
#: For a long test that nobody has measured.
UNKNOWN_SECONDS = 60.0

_seconds: dict[str, float] = defaultdict(float)
_long: set[str] = set()
_end: list[float] = []
#: Standard error, which pytest replaces while a test runs.
_stderr: list[int] = []


def known_seconds() -> dict[str, float]:
    """What earlier runs measured; empty without the file."""
    return json.loads(DURATIONS.read_text()) if DURATIONS.exists() else {}


def chosen(tests: list[str], seconds: float, seed: str | None, known: dict[str, float]) -> set[str]:
    """Return the tests of a slice: in an order that the seed gives, each that still fits into the time.

    Args:
        tests: ids of the long tests.
        seconds: for all of them together.
        seed: the run's; None for another choice each time.
        known: seconds by test id, of an earlier run.
    """
    order = sorted(tests)
    random.Random(seed).shuffle(order)
    taken: set[str] = set()
    for test in order:
        if known.get(test, UNKNOWN_SECONDS) <= seconds:
            taken.add(test)
            seconds -= known.get(test, UNKNOWN_SECONDS)
    return taken


def rotated(cases: Mapping[str, int], seed: str) -> set[str]:
    """Return which cases of tests that rotate run with this seed.

    Args:
        cases: how many of its test's cases run, by the id of each case.
    """
    tests: dict[str, list[str]] = defaultdict(list)
    for case in sorted(cases):
        tests[case.partition("[")[0]].append(case)
    dice = random.Random(seed)
    return {case for its in tests.values() for case in dice.sample(its, min(len(its), cases[its[0]]))}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slice-seconds", type=float, default=None, help="run a choice of the selected tests that takes this long")
    parser.addoption("--stuck-seconds", type=float, default=60.0, help="end the process of a test this long after its timeout")


def pytest_configure() -> None:
    _stderr.append(os.dup(2))
    # no deadline: what a case costs in time depends on what else the machine does
    settings.register_profile("tests", max_examples=examples(300), deadline=None)
    settings.load_profile("tests")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    tests = [item.nodeid for item in items if item.get_closest_marker("long")]
    _long.update(tests)
    seconds, seed = config.getoption("--slice-seconds"), os.environ.get(RUN) or None
    if seconds is not None:
        _keep(config, items, chosen(tests, seconds, seed, known_seconds()))
        _end.append(time.monotonic() + seconds)
    elif seed is not None and LONG not in os.environ:
        cases = {
            item.nodeid: int(marker.kwargs.get("keep", 1))
            for item in items
            if (marker := item.get_closest_marker("rotates")) and item.nodeid not in _long
        }
        _keep(config, items, {item.nodeid for item in items} - cases.keys() | rotated(cases, seed))


def _keep(config: pytest.Config, items: list[pytest.Item], wanted: Set[str]) -> None:
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in wanted])
    items[:] = [item for item in items if item.nodeid in wanted]


def pytest_runtest_setup(item: pytest.Item) -> None:
    if _end and time.monotonic() > _end[0]:
        pytest.skip("the slice's time is over")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    began = time.monotonic()
    marker = item.get_closest_marker("timeout")
    timeout = float(marker.args[0] if marker and marker.args else item.config.getini("timeout"))
    faulthandler.dump_traceback_later(timeout + item.config.getoption("--stuck-seconds"), exit=True, file=_stderr[-1])
    result = yield
    faulthandler.cancel_dump_traceback_later()
    spent = time.monotonic() - began
    _seconds[item.nodeid if item.nodeid in _long else item.nodeid.partition("::")[0]] += spent
    return result


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    path = os.environ.get(MEASURED)
    if path and report.failed:
        with Path(path).with_suffix(".failed").open("a") as file:
            file.write(f"\n===== {report.nodeid} ({report.when}) =====\n{report.longreprtext}\n")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    minutes = sum(each.ru_utime + each.ru_stime for each in used) / 60
    terminalreporter.write_line(f"CPU of these tests and of what they started and ended: {minutes:.1f} min")


def pytest_sessionfinish() -> None:
    path = os.environ.get(MEASURED)
    if path:
        Path(path).write_text(json.dumps(_seconds))
        fault_counts.write(Path(path).with_suffix(".faults"))
