"""Runs the suites in three lanes side by side, each with servers of its own on free ports, and shows what each has printed when it is done.

    python tests/lanes.py [pytest options ...]

Most tests wait for servers, so that lanes together take little more time than the longest alone. What failed is run once more, alone: a
test that only fails beside others is named, and does not count. Exit code: 0 when all is green.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

#: What tests that start Spark say of themselves.
_SPARK = "pytest.mark.spark"
#: A lane without a word for so long is shown to be alive.
SIGN_OF_LIFE_SECONDS = 300.0


#: `RUN` of `tests/seeds.py`: this file runs as a script, outside of the package.
SEEDS = "CONNECT_PY_SEEDS"
_TESTS_FAILED = 1


class Lane(NamedTuple):
    """A pytest process and where its output goes."""

    name: str
    suites: list[str]
    process: subprocess.Popen[bytes]
    output: Path


def main(options: list[str]) -> int:
    """Run the lanes; returns the exit code."""
    print(f"seeds of this run: {SEEDS}={os.environ.setdefault(SEEDS, str(random.randrange(1_000_000)))}", flush=True)
    with tempfile.TemporaryDirectory(prefix="lanes-") as folder:
        lanes = [_start(name, suites, options, Path(folder)) for name, suites in _lanes(Path(__file__).parent).items()]
        codes: dict[str, int] = {}
        said = began = time.monotonic()
        try:
            while len(codes) < len(lanes):
                for lane in lanes:
                    if lane.name not in codes and lane.process.poll() is not None:
                        codes[lane.name] = lane.process.returncode
                        _show(lane, time.monotonic() - began)
                if time.monotonic() - said > SIGN_OF_LIFE_SECONDS:
                    said = time.monotonic()
                    print(f"after {(said - began) / 60:.0f} min: {', '.join(map(_last_line, lanes))}", flush=True)
                time.sleep(0.5)
        except KeyboardInterrupt:
            for lane in lanes:
                lane.process.wait()
            return 130
        for lane in lanes:
            if codes[lane.name] == _TESTS_FAILED:
                codes[lane.name] = _alone(lane, options)
    return max(codes.values())


def _lanes(tests: Path) -> dict[str, list[str]]:
    """Files by lane, balanced by how long they take: what the reference showed, what starts Spark, all else."""
    lanes: dict[str, list[str]] = {"parity": [], "spark": [], "others": []}
    for path in sorted(tests.rglob("test_*.py")):
        name = "parity" if path.is_relative_to(tests / "parity") else "spark" if _SPARK in path.read_text() else "others"
        lanes[name].append(f"tests/{path.relative_to(tests)}")
    return lanes


def _start(name: str, suites: list[str], options: list[str], folder: Path) -> Lane:
    output = folder / f"{name}.log"
    # pytest keeps the folders of three runs, and takes away those of others that go on
    command = [*_command(name), f"--basetemp={folder / name[0]}", "--durations=15", *options, *suites]
    print(f"lane {name}: {len(suites)} files", flush=True)
    with output.open("wb") as file:
        return Lane(name, suites, subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT), output)


def _command(name: str) -> list[str]:
    return [sys.executable, "-m", "pytest", "-o", f"cache_dir=.pytest_cache/{name}"]


def _alone(lane: Lane, options: list[str]) -> int:
    print(f"\n===== what failed in lane {lane.name}, alone =====\n", flush=True)
    code = subprocess.call([*_command(lane.name), "-v", "--last-failed", "--last-failed-no-failures=none", *options, *lane.suites])
    if code == 0:
        print(f"\nThe tests above fail only beside others, in lane {lane.name}: look at what they wait for, and for how long.", flush=True)
    return code


def _show(lane: Lane, seconds: float) -> None:
    print(f"\n===== lane {lane.name}, {seconds / 60:.1f} min, exit code {lane.process.returncode} =====\n", flush=True)
    print(lane.output.read_text(errors="replace"), flush=True)


def _last_line(lane: Lane) -> str:
    lines = lane.output.read_text(errors="replace").splitlines()
    return f"{lane.name}: {lines[-1][-60:] if lines else 'starting'}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
