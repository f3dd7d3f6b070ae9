"""Kill the lakehouse sink's process or its JVM at every boundary of a batch: tables end equal to their source, and no event is there twice.

One connector keeps three tables at once, one by each way of writing, so that a kill falls between tables too. `CONNECT_PY_LAKE_KILLS=30` makes
it thirty kills for each format and driver, at random boundaries, in place of a few; `CONNECT_PY_LAKE_SEED` repeats one such run.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fix_spark import INT, LAKES, Lake, event

pytestmark = [pytest.mark.services, pytest.mark.spark]

#: Where a batch can be cut off, in its order; those with an underscore are steps of a commit of Iceberg's.
BOUNDARIES = (
    "planned",
    "read",
    "loaded",
    "creating",
    "created",
    "writing",
    "before _publish",
    "after _publish",
    "after _keep",
    "committed",
    "before the report",
    "reported",
    "asked",
)
LONG = int(os.environ.get("CONNECT_PY_LAKE_KILLS", "0"))
#: In the short form: those in which a mistake costs most. By format and driver.
SHORT = {
    ("iceberg", "loop"): [("writing", "jvm", 2), ("committed", "process", 2)],
    ("delta", "stream"): [("writing", "process", 2), ("before the report", "jvm", 1)],
}


class Source:
    """What the topics' tables hold, and have held."""

    def __init__(self, lake: Lake, rng: random.Random) -> None:
        self._lake, self._rng = lake, rng
        self.kept, self.logged, self.versions = lake.topic("kept"), lake.topic("logged", partitions=2), lake.topic("versions")
        self.rows: dict[int, int] = {}
        self.events = [0, 0]
        #: of each key: the values of its versions, and whether the last one is current
        self.history: dict[int, list[int]] = {}
        self.alive: set[int] = set()

    def change(self) -> None:
        """Twenty changes of each table."""
        rng = self._rng
        for number in range(20):
            key, partition, value = rng.randrange(9), rng.randrange(2), rng.randrange(999)
            gone = key in self.rows and rng.random() < 0.3
            row = {"n": self.rows[key] if gone else value}
            self._lake.produce(self.kept, [event("d" if gone else "u", key, row, {"n": INT}, "kept")])
            self._lake.produce(self.versions, [event("d" if gone else "u", key, row, {"n": INT}, "versions")])
            if gone:
                del self.rows[key]
                self.alive.discard(key)
            else:
                self.rows[key] = value
                self.history.setdefault(key, []).append(value)
                self.alive.add(key)
            self._lake.produce(self.logged, [event("c", None, {"n": number}, {"n": INT}, "logged")], partition)
            self.events[partition] += 1


def check(lake: Lake, source: Source) -> None:
    """The tables are what the source says."""
    assert {row["id"]: row["n"] for row in lake.rows("kept")} == source.rows
    places = sorted((row["__partition"], row["__offset"]) for row in lake.whole_rows("logged"))
    assert places == [(partition, offset) for partition in (0, 1) for offset in range(source.events[partition])]
    versions = lake.whole_rows("versions")
    found: dict[int, list[int]] = {}
    for row in versions:
        found.setdefault(row["id"], []).append(row["n"])
    assert {key: sorted(values) for key, values in found.items()} == {key: sorted(values) for key, values in source.history.items()}
    assert {row["id"]: row["n"] for row in versions if row["__is_current"]} == {key: source.history[key][-1] for key in source.alive}
    assert sum(row["__is_current"] for row in versions) == len(source.alive)


@pytest.mark.timeout(600 + 90 * LONG)
@pytest.mark.parametrize(("format_", "driver"), [(f, d) for f in LAKES for d in ("loop", "stream")] if LONG else list(SHORT))
def test_whatever_is_killed_whenever_tables_equal_their_source_and_no_event_is_doubled(
    kafka: Any, tmp_path: Path, tag: str, format_: str, driver: str
) -> None:
    seed = int(os.environ.get("CONNECT_PY_LAKE_SEED") or random.randrange(10**6))
    print(f"CONNECT_PY_LAKE_SEED={seed}")
    rng = random.Random(seed)
    lake: Lake = LAKES[format_](kafka.bootstrap, tmp_path / "warehouse", tag)
    source = Source(lake, rng)
    config = lake.config(source.kept, source.logged, source.versions, max__offsets__per__trigger="40") | {
        "lakehouse.table.public.logged.write-mode": "append",
        "lakehouse.table.public.versions.write-mode": "scd2",
        "lakehouse.source.mode": driver,
        "lakehouse.checkpoint.location": f"file://{tmp_path}/checkpoint",
        "lakehouse.spark.conf.spark.driver.memory": "700m",
    }
    boundaries = [name for name in BOUNDARIES if format_ == "iceberg" or "_" not in name]
    kills = [(rng.choice(boundaries), rng.choice(("process", "jvm")), rng.randint(1, 4)) for _ in range(LONG)] or SHORT[format_, driver]
    fell = 0
    for boundary, who, countdown in [*kills, ("never", "process", 1)]:
        source.change()
        trap = {"boundary": boundary, "who": who, "countdown": countdown, "delay": rng.random()}
        order = {"group": str(tmp_path / "group.json"), "bootstrap": kafka.bootstrap, "config": config, "trap": trap}
        done = subprocess.run(
            [sys.executable, "-m", "tests.faults.lake_task"], input=json.dumps(order), text=True, capture_output=True, timeout=300
        )
        print(boundary, who, countdown, done.returncode, done.stderr[-300:].replace("\n", " ") if done.returncode else "")
        fell += done.returncode != 0
        if boundary == "never":
            assert done.returncode == 0, done.stderr[-3000:]
        else:
            assert done.returncode in (0, -9) or "Spark's Java process ended" in done.stderr, done.stderr[-3000:]
        if done.returncode == 0:
            check(lake, source)
    assert fell, "no kill fell into a batch"
