"""Kill the lakehouse sink's task, process or JVM at every boundary of a batch: tables end equal to their source, no event is there twice.

One connector keeps three tables at once, one by each way of writing. `CONNECT_PY_LAKE_KILLS=30` makes it at least thirty kills in upsert
mode and thirty in append mode for each format and driver, at every boundary, in place of a few, and leaves the third table out; a kill at a
boundary of the whole batch counts for both. `CONNECT_PY_LAKE_SEED` repeats one such run.
"""

from __future__ import annotations

import collections
import itertools
import json
import os
import random
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.fault_counts import Fault, note, note_changes
from tests.faults.lake_boundaries import OF_CREATION, OF_THE_BATCH, of_format
from tests.faults.lake_source import Source
from tests.fix_spark import LAKES, Lake

pytestmark = [pytest.mark.services, pytest.mark.spark]

LONG = int(os.environ.get("CONNECT_PY_LAKE_KILLS", "0"))
MODES = {"kept": "upsert", "logged": "append"}


@dataclass(frozen=True)
class Kill:
    """Who dies where. The table decides only where a boundary is a table's."""

    boundary: str
    who: str
    table: str
    countdown: int = 1

    @property
    def modes(self) -> list[str]:
        """The ways of writing that it cuts off."""
        return list(MODES.values()) if self.boundary in OF_THE_BATCH else [MODES[self.table]]


NOBODY = Kill("never", "process", "kept")

#: In the short form: those in which a mistake costs most, by format and driver.
SHORT = {
    ("iceberg", "loop"): [
        Kill("publishing", "task", "logged"),
        Kill("writing", "jvm", "kept"),
        Kill("committed", "process", "logged"),
    ],
    ("delta", "stream"): [Kill("writing", "process", "logged"), Kill("before the report", "jvm", "kept")],
}


def dealt(format_: str, rng: random.Random, least: int) -> list[Kill]:
    """At least so many kills a mode: at each boundary the task and, in turns, the process or the JVM, at those of the batch all three.

    The tasks die between the others, since they leave their JVM to the next one, which is what costs; so they fill up, too. Kills at a
    creation come early: the table is removed for them, and all that was ever said is written again.
    """
    hard = itertools.cycle(("process", "jvm"))
    kills: list[Kill] = []
    count: collections.Counter[str] = collections.Counter()
    while min(count[mode] for mode in MODES.values()) < least:
        deck = [Kill(boundary, who, "kept") for boundary in OF_THE_BATCH for who in ("task", "process", "jvm")]
        for table in MODES:
            deck += [Kill(b, who, table) for b in of_format(format_) if b not in OF_THE_BATCH for who in ("task", next(hard))]
            next(hard)
        rng.shuffle(deck)
        if kills:  # everybody has died everywhere: what is still to come costs little
            deck.sort(key=lambda kill: kill.who != "task")
        for kill in deck:
            if min(count[mode] for mode in MODES.values()) < least and any(count[mode] < least for mode in kill.modes):
                kills.append(kill)
                count.update(kill.modes)
    tasks, others = [k for k in kills if k.who == "task"], [k for k in kills if k.who != "task"]
    for group in (tasks, others):
        group.sort(key=lambda kill: kill.boundary not in OF_CREATION)
    share = -(-len(tasks) // max(1, len(others)))
    return [k for number, other in enumerate(others) for k in (*tasks[number * share : (number + 1) * share], other)]


class Process:
    """One that hosts tasks, one after the other."""

    def __init__(self, connector: dict[str, Any]) -> None:
        command = [sys.executable, "-m", "tests.faults.lake_task"]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, text=True, stdin=pipe, stdout=pipe, stderr=pipe)
        self._said: collections.deque[str] = collections.deque(maxlen=200)
        self._listener = threading.Thread(target=lambda: self._said.extend(self._process.stderr or ()), daemon=True)
        self._listener.start()
        self._tell(connector)

    def _tell(self, order: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()

    def run(self, kill: Kill, delay: float, remove: Path | None = None) -> bool:
        """Let a task run, without that directory, until somebody dies or nothing is left to do; whether somebody died."""
        trap = {"boundary": kill.boundary, "who": kill.who, "table": kill.table, "countdown": kill.countdown, "delay": delay}
        self._tell(trap | {"remove": None if remove is None else str(remove)})
        assert self._process.stdout is not None
        watch = threading.Timer(600, self._process.kill)
        watch.start()
        said = next((line.strip() for line in self._process.stdout if line.strip() in ("sprung", "drained")), None)
        watch.cancel()
        if said is None:
            self.end()
            raise AssertionError(f"a task failed by itself:\n{self.error}")
        return said == "sprung"

    @property
    def error(self) -> str:
        """What it said at last."""
        return "".join(self._said)[-4000:]

    def kill(self) -> None:
        """Leave nothing behind."""
        self._process.kill()

    def end(self) -> int:
        """Wait for its end, which nothing but the end of its input may have to bring about; its exit code."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        code = self._process.wait(300)
        self._listener.join(60)
        return code


@pytest.mark.long  # each kill starts a JVM, for half a minute of CPU
@pytest.mark.timeout(1200 + 300 * LONG)  # next to other lanes each JVM takes minutes to start
@pytest.mark.parametrize(("format_", "driver"), [(f, d) for f in LAKES for d in ("loop", "stream")] if LONG else list(SHORT))
def test_whatever_is_killed_whenever_tables_equal_their_source_and_no_event_is_doubled(
    kafka: Any, tmp_path: Path, tag: str, request: pytest.FixtureRequest, format_: str, driver: str
) -> None:
    seed = int(os.environ.get("CONNECT_PY_LAKE_SEED") or random.randrange(10**6))
    print(f"CONNECT_PY_LAKE_SEED={seed}")
    rng = random.Random(seed)
    lake: Lake = LAKES[format_](kafka.bootstrap, tmp_path / "warehouse", tag)
    source = Source(lake, rng, with_versions=not LONG)
    config = source.config(driver, max__offsets__per__trigger="12") | {"lakehouse.spark.conf.spark.driver.memory": "700m"}
    connector = {"group": str(tmp_path / "group.json"), "bootstrap": kafka.bootstrap, "config": config}
    fell: collections.Counter[tuple[str, str, str]] = collections.Counter()
    process: Process | None = None
    request.addfinalizer(lambda: process.kill() if process is not None else None)
    for kill in [*(dealt(format_, rng, LONG) if LONG else SHORT[format_, driver]), NOBODY]:
        source.change(6)
        process = process or Process(connector)
        died = process.run(kill, rng.random(), tmp_path / "warehouse" / "public" / kill.table if kill.boundary in OF_CREATION else None)
        print(f"{kill.boundary}, {kill.who}, {kill.table}: {'died' if died else 'drained'}", flush=True)
        if not died:
            source.check()
            continue
        for mode in kill.modes:
            fell[mode, kill.boundary, kill.who] += 1
        note(Fault.KILLED_TASK if kill.who == "task" else Fault.KILLED_SPARK, f"{format_.capitalize()} sink")
        if kill.who != "task":
            code = process.end()
            assert code in (0, -9) or "Spark ended while" in process.error, process.error
            process = None
        elif rng.random() < 0.5:  # else the next one dies on the way to where this one was
            assert not process.run(NOBODY, 0)
            source.check()
    note_changes(f"{format_.capitalize()} sink", source.events)
    assert process is not None
    assert process.end() == 0, process.error
    for mode in MODES.values():
        found = {boundary: {w: n for (m, b, w), n in fell.items() if (m, b) == (mode, boundary)} for boundary in of_format(format_)}
        print(f"{format_}, {driver}, {mode}: {sum(n for (m, _, _), n in fell.items() if m == mode)} kills: {found}", flush=True)
        assert sum(n for (m, _, _), n in fell.items() if m == mode) >= (LONG or 1), "too few kills fell into a batch"
