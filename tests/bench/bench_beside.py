"""Two sinks at the same time: what a change is worth on a machine whose pace changes from minute to minute.

    BOOTSTRAP=127.0.0.1:9092 python tests/bench/bench_beside.py --one TREE=../old --other JDK_JAVA_OPTIONS=-XX:-UseTransparentHugePages \\
        -- --mode upsert --batches 14 --warm 4 --memory default

Each is `bench_sink.py` with the arguments after `--`. One after the other, the same code may differ by a half; at the same time both have
the same machine, each some half of it, so that the ratio counts and not the rates. It ends with the first of the two: what the other one
does alone is not compared. Repeat it with the two exchanged.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
_ENDING_SECONDS = 60.0
_BATCH = re.compile(r"^(?P<warm>warming up: )?\s*(?P<rate>[\d,]+) events/s,\s+(?P<cpu>[\d.]+) CPU µs/event,.* (?P<mb>[\d,]+) MB")


class Batch(NamedTuple):
    """What one batch cost: events a second, CPU in µs an event, and MB that are resident after it."""

    rate: float
    cpu: float
    mb: float


class Side:
    """One of the two.

    Attributes:
        batches: the counted ones so far.
    """

    def __init__(self, variables: list[str], arguments: list[str]) -> None:
        chosen = dict(variable.split("=", 1) for variable in variables)
        tree = Path(chosen.pop("TREE", ROOT)).resolve()
        environment = {**os.environ, **chosen, "PYTHONPATH": str(tree)}
        command = [sys.executable, str(tree / "tests/bench/bench_sink.py"), *arguments]
        self.process = subprocess.Popen(command, cwd=tree, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.batches: list[Batch] = []
        self._last = ""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._last = line
            if (found := _BATCH.match(line)) and not found["warm"]:
                self.batches.append(Batch(*(float(found[name].replace(",", "")) for name in ("rate", "cpu", "mb"))))

    def end(self) -> None:
        """Let it remove its topics and tables; return when it has ended."""
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(_ENDING_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._reader.join()

    def median(self) -> Batch:
        """Of the counted batches, each figure by itself."""
        if not self.batches:
            raise SystemExit(f"{self.process.args} has no counted batch: {self._last.strip()}")
        return Batch(*(statistics.median(figures) for figures in zip(*self.batches, strict=True)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--one", "--other"):
        parser.add_argument(name, nargs="*", default=[], metavar="NAME=VALUE", help="variables of its environment; TREE: its checkout")
    parser.add_argument("arguments", nargs="*", help="of both, after `--`")
    asked = parser.parse_args()
    sides = [Side(variables, asked.arguments) for variables in (asked.one, asked.other)]
    try:
        while all(side.process.poll() is None for side in sides):
            time.sleep(0.2)
    finally:
        for side in sides:
            side.end()
    one, other = (side.median() for side in sides)
    for name, side, median in (("one", sides[0], one), ("other", sides[1], other)):
        print(f"{name:>6}: {median.rate:9,.0f} events/s, {median.cpu:6.1f} CPU µs/event, {median.mb:,.0f} MB; {len(side.batches)} batches")
    print(f"other ÷ one: events {other.rate / one.rate:.2f}, CPU {other.cpu / one.cpu:.2f}")


if __name__ == "__main__":
    main()
