"""Runs the checks and the test suites in lanes next to each other, each with servers of its own on free ports.

    python tests/lanes.py [--long | --slice MINUTES] [--record] [pytest options ...]

Without an option everything but the tests marked `long` runs; with `--long` those too, in their long forms; with `--slice` only a choice of
the long ones, by the seed that is printed. `--record` writes how long each file took to `tests/durations.json`, by which lanes that share
files (`tests/fix_lanes.py`) begin with the longest.

Most tests wait for servers, so that lanes together take little more time than the longest alone. What failed is run again, alone, and
what fails there once more: a test that only fails next to others, or in a bad minute of the machine, is named, and does not count. Exit
code: 0 when all is green.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
DURATIONS = Path(__file__).with_name("durations.json")
#: What tests that start Spark say of themselves: they share lanes, each with one JVM and one session.
_SPARK = "pytest.mark.spark"
#: Starts hundreds of processes: what runs beside it becomes five times slower.
_CROWD = "pytest.mark.crowd"
#: Begins when another lane has ended, unless the long tests run: two cores have enough to do until then.
_SPARK_TWO = "spark two"
#: For a file that nobody has measured.
_UNKNOWN_SECONDS = 10.0
#: A run without a word for this long shows that it is alive.
SIGN_OF_LIFE_SECONDS = 300.0

#: `RUN` of `tests/seeds.py` and `MEASURED` of `tests/fix_long.py`: this file runs as a script, outside of the package.
SEEDS = "CONNECT_PY_SEEDS"
MEASURED = "CONNECT_PY_DURATIONS"
#: Tests that can be longer read it: more kills, more seeds.
LONG = "CONNECT_PY_LONG"
_TESTS_FAILED, _NO_TESTS = 1, 5
#: A lane that takes longer to import its tests does not hold the others up.
_COLLECTED_SECONDS = 60.0
#: For all lanes of `make test`: what still runs then is ended and shown. Who ends it from outside learns only that it took too long.
_LIMIT_SECONDS = 65 * 60.0
#: How often what failed may run alone.
_TRIES_ALONE = 2
#: For an interrupted lane, to say what it was at and to stop its servers.
_ENDING_SECONDS = 60.0
#: Before what waits for nothing: it uses the time in which the other lanes wait.
_LATER = ("nice", "-n", "5")
#: Before what waits more than it works: the lane of Spark, which works all the time, would end minutes after the others.
_WAITING = ("nice", "-n", "2")
#: Where it is set, each of some thousand processes would compile every module again: 0.3 s of CPU each.
_NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"

#: Some thirty brokers are started, each with a third less CPU for it.
_MAKE_ARCHIVE = "from connect_py.app.services.kafka import make_archive; make_archive()"

CHECKS = [
    ["ruff", "check"],
    ["ruff", "format", "--check"],
    ["mypy"],
    ["lint-imports", "--no-logo"],
    ["python", "tests/words.py"],
    ["python", "tests/privates.py"],
    ["python", "tests/prose.py"],
    ["python", "tests/messages.py"],
]


class Lane(NamedTuple):
    """A process and where its output goes."""

    name: str
    suites: list[str]
    process: subprocess.Popen[bytes]
    output: Path


def main(arguments: list[str]) -> int:
    """Run the lanes; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--slice", type=float, metavar="MINUTES")
    parser.add_argument("--record", action="store_true")
    asked, options = parser.parse_known_args(arguments)
    os.environ.pop(_NO_BYTECODE, None)
    # a shell's job in the background ignores it, and all that it starts would: tests interrupt commands
    signal.signal(signal.SIGINT, signal.default_int_handler)
    print(f"seeds of this run: {SEEDS}={os.environ.setdefault(SEEDS, str(random.randrange(1_000_000)))}", flush=True)
    if asked.long:
        os.environ[LONG] = "1"
        options = ["-m", "", *options]
    elif asked.slice is not None:
        options = ["-m", "long", "--slice-seconds", str(60 * asked.slice / 2), *options]
    subprocess.run([sys.executable, "-c", _MAKE_ARCHIVE], cwd=ROOT, check=False)  # what is missing is reported by the tests that need it
    shared = _lanes(asked)
    deadline = math.inf if asked.long else time.monotonic() + _LIMIT_SECONDS
    if asked.long:
        print(f"about {_expected_minutes(shared):.0f} min, by what tests took when their times were kept (--record)", flush=True)
    with tempfile.TemporaryDirectory(prefix="lanes-") as folder:
        lanes = [_start_checks(Path(folder))] if asked.slice is None else []
        try:
            later: list[Callable[[], Lane]] = []
            for names, seconds in shared.items():
                sharing = ["--claims", folder] if len(names) > 1 else []
                for name in names:
                    start = partial(_start, name, _longest_first(seconds), [*options, *sharing], Path(folder))
                    if name == _SPARK_TWO and not asked.long:
                        later.append(start)
                        continue
                    lanes.append(start())
                    if name == names[0] and len(names) > 1:
                        _await_collection(lanes[-1])
            codes = _wait(lanes, deadline, later)
            if asked.long:
                lanes.append(_start("crowd", [str(path.relative_to(ROOT)) for path in sorted(_crowds())], options, Path(folder)))
                codes |= _wait(lanes[-1:], deadline)
        except KeyboardInterrupt:
            for lane in lanes:
                lane.process.wait()
            return 130
        was_green = not any(codes.values())
        for lane in lanes:
            if codes[lane.name] == _TESTS_FAILED and lane.suites:
                codes[lane.name] = _alone(lane, options, deadline)
        _tell_times(Path(folder), record=asked.record)
        if asked.record and was_green:
            _keep_fault_counts(Path(folder))
        failed = sum(_counted(lane, "failed") + _counted(lane, "error") for lane in lanes if codes[lane.name] not in (0, _NO_TESTS))
        passed, skipped = (sum(_counted(lane, word) for lane in lanes) for word in ("passed", "skipped"))
        print(f"\n{'tests' if asked.slice is None else 'slice'}: {passed} passed, {failed} failed, {skipped} skipped", flush=True)
        if torn := [lane.name for lane in lanes if codes[lane.name] not in (0, _TESTS_FAILED, _NO_TESTS)]:
            print(f"not run to their end: {', '.join(torn)}", flush=True)
    green = (0, _NO_TESTS) if asked.slice is not None else (0,)
    return 0 if all(code in green for code in codes.values()) else 1  # the code of a process that was killed is below 0


def _await_collection(lane: Lane) -> None:
    """Wait until a lane has imported its tests: those after it find packages and tests compiled, 8 s of CPU each in a fresh clone."""
    deadline = time.monotonic() + _COLLECTED_SECONDS
    while lane.process.poll() is None and time.monotonic() < deadline and b"collected" not in lane.output.read_bytes():
        time.sleep(0.2)  # noqa: TID251 - the lane has a deadline of its own


def _wait(lanes: list[Lane], deadline: float, later: Sequence[Callable[[], Lane]] = ()) -> dict[str, int]:
    """Wait for the lanes and show each when it is done; returns their exit codes. With the first lane of tests that ends, the lanes that
    come later are started, and appended to `lanes`.
    """
    codes: dict[str, int] = {}
    said = began = time.monotonic()
    while len(codes) < len(lanes):
        for lane in list(lanes):
            if lane.name not in codes and lane.process.poll() is not None:
                codes[lane.name] = lane.process.returncode
                _show(lane, time.monotonic() - began)
                if lane.suites and later:
                    lanes.extend(start() for start in later)
                    later = ()
        if time.monotonic() > deadline:
            late = [lane for lane in lanes if lane.name not in codes]
            print(f"\nended after {(time.monotonic() - began) / 60:.0f} min: {', '.join(map(_last_line, late))}", flush=True)
            _interrupt([lane.process for lane in late])
            deadline, later = math.inf, ()
        if time.monotonic() - said > SIGN_OF_LIFE_SECONDS:
            said = time.monotonic()
            print(f"after {(said - began) / 60:.0f} min: {', '.join(map(_last_line, lanes))}", flush=True)
            for lane in lanes:
                _show_failures(lane)
        time.sleep(0.5)  # noqa: TID251 - processes have no common deadline
    return codes


def _interrupt(processes: list[subprocess.Popen[bytes]]) -> None:
    """End lanes as Control-C does, so that each says which test it was at; one that does not end in time is killed."""
    for process in processes:
        process.send_signal(signal.SIGINT)
    deadline = time.monotonic() + _ENDING_SECONDS
    for process in processes:
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()


def _lanes(asked: argparse.Namespace) -> dict[tuple[str, ...], dict[str, float]]:
    """Return the test files and their seconds, by the lanes that share them: what needs no server; what starts Spark, in two lanes, each
    with a JVM; and everything else in three lanes, which wait more than they work.
    """
    known = json.loads(DURATIONS.read_text()) if DURATIONS.exists() else {}
    only_long = asked.slice is not None
    tests = ROOT / "tests"
    unit: dict[str, float] = {}
    spark: dict[str, float] = {}
    others: dict[str, float] = {}
    crowds = _crowds()
    for path in sorted(tests.rglob("test_*.py")):
        name = str(path.relative_to(ROOT))
        if (only_long and name.startswith("tests/parity/")) or (asked.long and path in crowds):
            continue
        seconds = 0.0 if only_long else known.get(name, _UNKNOWN_SECONDS)
        if only_long or asked.long:
            seconds += sum(spent for test, spent in known.items() if test.startswith(f"{name}::"))
        lane = spark if _SPARK in path.read_text() else unit if name.startswith("tests/unit/") else others
        lane[name] = seconds
    if only_long:
        return {("spark",): spark, ("others",): {**unit, **others}}
    return {("one", "two", "three"): others, ("spark one", _SPARK_TWO): spark, ("unit",): unit}


def _crowds() -> list[Path]:
    """Return the files that run after all others, one at a time."""
    return [path for path in (ROOT / "tests").rglob("test_*.py") if _CROWD in path.read_text()]


def _longest_first(seconds: dict[str, float]) -> list[str]:
    """Return the files so that lanes end together; first the parity suite, whose worker must be one that no other test has used."""
    return sorted(seconds, key=lambda file: (not file.startswith("tests/parity/"), -seconds[file], file))


def _expected_minutes(lanes: dict[tuple[str, ...], dict[str, float]]) -> float:
    return max(sum(seconds.values()) / len(names) for names, seconds in lanes.items()) / 60


def _start(name: str, suites: list[str], options: list[str], folder: Path) -> Lane:
    output = folder / f"{name}.log"
    # pytest keeps the folders of three runs, and removes those of others that are still running; short, since sockets' paths are limited
    basetemp = f"--basetemp={folder / ''.join(word[:2] for word in name.split())}"
    after = () if name.startswith("spark") else _LATER if name == "unit" else _WAITING
    command = [*after, *_pytest(name), "--cache-clear", basetemp, "--durations=15", *options, *suites]
    print(f"lane {name}: {len(suites)} files", flush=True)
    with output.open("wb") as file:
        environment = {**os.environ, MEASURED: str(folder / f"{name}.json")}
        return Lane(name, suites, subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, env=environment, cwd=ROOT), output)


def _start_checks(folder: Path) -> Lane:
    output = folder / "check.log"
    bin_ = Path(sys.executable).parent
    script = " && ".join(f"echo '$ {' '.join(command)}' && '{bin_ / command[0]}' {' '.join(command[1:])}" for command in CHECKS)
    script += "; code=$?; echo 'CPU of this shell, and of the checks (user, system):'; times; exit $code"
    print("lane check: ruff, mypy, import-linter, words", flush=True)
    with output.open("wb") as file:
        command = [*_LATER, "sh", "-c", script]
        return Lane("check", [], subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, cwd=ROOT), output)


def _pytest(name: str) -> list[str]:
    return [sys.executable, "-m", "pytest", "-o", f"cache_dir=.pytest_cache/{name}"]


def _alone(lane: Lane, options: list[str], deadline: float) -> int:
    """Run what failed in a lane, and what fails again once more; returns pytest's exit code."""
    code = _TESTS_FAILED
    for times in range(1, _TRIES_ALONE + 1):
        if time.monotonic() > deadline:
            break
        code = _last_failed(lane, options, deadline)
        if code == 0:
            seldom = "only next to others" if times == 1 else "next to others, and not always alone"
            print(f"\nThe tests above fail {seldom}, in lane {lane.name}: look at what they wait for, and for how long.", flush=True)
            break
    return code


def _last_failed(lane: Lane, options: list[str], deadline: float) -> int:
    print(f"\n===== what failed in lane {lane.name}, alone =====\n", flush=True)
    command = [*_pytest(lane.name), "-v", "--last-failed", "--last-failed-no-failures=none", *options, *lane.suites]
    process = subprocess.Popen(command, cwd=ROOT)
    try:
        return process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        print("\nended, since the time for all tests is over", flush=True)
        _interrupt([process])
        return _TESTS_FAILED


def _show(lane: Lane, seconds: float) -> None:
    print(f"\n===== lane {lane.name}, {seconds / 60:.1f} min, exit code {lane.process.returncode} =====\n", flush=True)
    print(lane.output.read_text(errors="replace"), flush=True)


def _counted(lane: Lane, word: str) -> int:
    """Return the number before a word in pytest's closing line; 0 without one."""
    lines = [line for line in lane.output.read_text(errors="replace").splitlines() if line.startswith("=") and " in " in line]
    found = re.search(rf"(\d+) {word}", lines[-1]) if lines else None
    return int(found[1]) if found else 0


def _last_line(lane: Lane) -> str:
    lines = lane.output.read_text(errors="replace").splitlines()
    return f"{lane.name}: {lines[-1][-60:] if lines else 'starting'}"


def _show_failures(lane: Lane) -> None:
    """Name the tests that have failed so far; pytest itself says why at the lane's end."""
    path = lane.output.with_suffix(".failed")
    for line in path.read_text(errors="replace").splitlines() if path.exists() else ():
        if line.startswith("===== "):
            print(f"  failed: {line.strip('= ')}", flush=True)


def _tell_times(folder: Path, *, record: bool) -> None:
    """Print the files that took longest, and keep all times if asked."""
    measured: dict[str, float] = {}
    for path in folder.glob("*.json"):
        measured.update(json.loads(path.read_text()))
    files: dict[str, float] = {}
    for name, seconds in measured.items():
        file = name.partition("::")[0]
        files[file] = files.get(file, 0.0) + seconds
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"\nCPU of all lanes and of what they started: {(used.ru_utime + used.ru_stime) / 60:.1f} min")
    print("Where the time went (s):", flush=True)
    for file in sorted(files, key=lambda file: -files[file])[:20]:
        print(f"{files[file]:7.0f}  {file}", flush=True)
    if record:
        known = json.loads(DURATIONS.read_text()) if DURATIONS.exists() else {}
        known.update({name: round(seconds, 1) for name, seconds in measured.items()})
        kept = {name: seconds for name, seconds in known.items() if (ROOT / name.partition("::")[0]).exists()}
        DURATIONS.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")


def _keep_fault_counts(folder: Path) -> None:
    if counted := sorted(folder.glob("*.faults")):
        subprocess.run([sys.executable, "-m", "tests.fault_counts", *map(str, counted)], cwd=ROOT, check=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
