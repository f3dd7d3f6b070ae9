"""Which long tests a slice of continuous integration runs, which files each of the lanes that share them, and how a stuck test ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.fix_long import UNKNOWN_SECONDS, chosen, rotated
from tests.paths import ROOT
from tests.seeds import LONG, RUN

TESTS = [f"tests/faults/test_x.py::test_{number}" for number in range(20)]


@given(st.dictionaries(st.sampled_from(TESTS), st.floats(0, 500)), st.floats(0, 2000), st.text(max_size=5))
def test_a_slice_fits_into_its_time_and_is_the_same_for_its_seed(known: dict[str, float], seconds: float, seed: str) -> None:
    taken = chosen(TESTS, seconds, seed, known)
    assert sum(known.get(test, UNKNOWN_SECONDS) for test in taken) <= seconds + 1e-6
    assert taken == chosen(TESTS[::-1], seconds, seed, known)
    left = seconds - sum(known.get(test, UNKNOWN_SECONDS) for test in taken)
    assert all(known.get(test, UNKNOWN_SECONDS) > left - 1e-6 for test in TESTS if test not in taken)


def test_slices_of_many_seeds_reach_every_test() -> None:
    assert set().union(*(chosen(TESTS, 3 * UNKNOWN_SECONDS, str(seed), {}) for seed in range(100))) == set(TESTS)


def test_each_run_takes_as_many_cases_of_a_test_as_it_keeps_and_many_runs_take_all() -> None:
    cases = {f"{test}[{number}]": keep for test, count, keep in (("a", 5, 2), ("b", 3, 1), ("c", 2, 9)) for number in range(count)}
    runs = [rotated(cases, str(seed)) for seed in range(100)]
    assert {tuple(sum(case.startswith(test) for case in run) for test in "abc") for run in runs} == {(2, 1, 2)}
    assert set().union(*runs) == cases.keys()
    assert rotated(dict(reversed(cases.items())), "7") == runs[7]


#: Loading what other tests need takes longer than these.
ALONE = {name: value for name, value in os.environ.items() if name not in (RUN, LONG)} | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
TWO_TESTS = "import pytest\ndef test_short(): pass\n@pytest.mark.long\ndef test_long(): pass\n"


ROTATING = "import pytest\n@pytest.mark.rotates(keep=2)\n@pytest.mark.parametrize('n', range(5))\ndef test_n(n): pass\n"


def run_pytest(tests: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run tests with the plugins of the long tests and of the lanes alone."""
    plugins = ["-p", "tests.fix_lanes", "-p", "tests.fix_long", "-p", "pytest_timeout", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", "-q", "--noconftest", "-c", "pyproject.toml", *plugins]
    return subprocess.run([*command, *options, str(tests)], capture_output=True, text=True, cwd=ROOT, env=ALONE | environment)


def last_line(tests: Path, *options: str, **environment: str) -> str:
    return run_pytest(tests, *options, **environment).stdout.splitlines()[-1]


def test_long_tests_run_only_when_asked_for(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TWO_TESTS)
    assert last_line(tmp_path).startswith("1 passed, 1 deselected")
    assert last_line(tmp_path, "-m", "").startswith("2 passed")


def test_cases_rotate_in_runs_that_have_a_seed_unless_they_are_long(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(ROTATING)
    assert last_line(tmp_path).startswith("5 passed")
    assert last_line(tmp_path, **{RUN: "1"}).startswith("2 passed, 3 deselected")
    assert last_line(tmp_path, **{RUN: "1", LONG: "1"}).startswith("5 passed")


def test_lanes_that_share_files_run_each_file_in_one_of_them(tmp_path: Path) -> None:
    tests, claimed = tmp_path / "tests", tmp_path / "claimed"
    tests.mkdir()
    claimed.mkdir()
    for number in range(3):
        (tests / f"test_{number}.py").write_text(TWO_TESTS)
    sharing = ("-m", "", "--claims", str(claimed))
    assert last_line(tests / "test_1.py", *sharing).startswith("2 passed")
    assert last_line(tests, *sharing).startswith("4 passed")
    assert last_line(tests, *sharing).startswith("no tests ran")


def test_a_test_that_nothing_can_interrupt_ends_with_its_stack(tmp_path: Path) -> None:
    test = tmp_path / "test_it.py"
    call = "hashlib.pbkdf2_hmac('sha256', b'', b'', 2**31 - 1)"
    test.write_text(f"import hashlib, pytest\n@pytest.mark.timeout(1)\ndef test_stuck():\n    {call}\n")
    ended = run_pytest(test, "--stuck-seconds", "1")
    assert ended.returncode == 1
    assert "in test_stuck" in ended.stderr
