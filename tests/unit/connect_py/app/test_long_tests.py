"""Which long tests a slice of continuous integration runs, and how files are dealt out to lanes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.fix_long import UNKNOWN_SECONDS, chosen
from tests.lanes import balanced
from tests.paths import ROOT

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


@given(st.dictionaries(st.text("abc", min_size=1), st.floats(0, 100), min_size=1))
def test_lanes_share_all_files_and_none_waits_for_more_than_one_file(seconds: dict[str, float]) -> None:
    lanes = balanced(seconds, ("one", "two"))
    assert sorted(file for files in lanes.values() for file in files) == sorted(seconds)
    one, two = (sum(seconds[file] for file in files) for files in lanes.values())
    assert abs(one - two) <= max(seconds.values()) + 1e-6


def test_long_tests_run_only_when_asked_for(tmp_path: Path) -> None:
    test = tmp_path / "test_it.py"
    test.write_text("import pytest\ndef test_short(): pass\n@pytest.mark.long\ndef test_long(): pass\n")
    root = ROOT

    def passed(*options: str) -> str:
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-c",
            "pyproject.toml",
            f"--basetemp={tmp_path}/t",
            *options,
            str(test),
        ]
        return subprocess.run(command, capture_output=True, text=True, cwd=root).stdout.splitlines()[-1]

    assert passed().startswith("1 passed, 1 deselected")
    assert passed("-m", "").startswith("2 passed")
