"""Kill the lakehouse sink's process or its JVM at every boundary of a batch: tables end equal to their source, and no event is there twice.

`CONNECT_PY_LAKE_KILLS=30` makes it thirty kills a format, at random boundaries, in place of a few.
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

BOUNDARIES = ("read", "writing", "committed", "before the report", "reported")
LONG = int(os.environ.get("CONNECT_PY_LAKE_KILLS", "0"))
#: In the short form: those in which a mistake costs most.
SHORT = {"iceberg": [("writing", "jvm"), ("committed", "process")], "delta": [("writing", "process"), ("before the report", "jvm")]}


@pytest.mark.timeout(600 + 60 * LONG)
@pytest.mark.parametrize("format_", list(LAKES))
def test_whatever_is_killed_whenever_tables_equal_their_source_and_no_event_is_doubled(
    kafka: Any, tmp_path: Path, tag: str, format_: str
) -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    rng = random.Random(seed)
    lake: Lake = LAKES[format_](kafka.bootstrap, tmp_path / "warehouse", tag)
    logged, kept = lake.topic("logged", partitions=2), lake.topic("kept")
    config = lake.config(logged, kept, max__offsets__per__trigger="25") | {"lakehouse.table.public.logged.write-mode": "append"}
    model: dict[int, int] = {}
    written = [0, 0]
    kills = [(rng.choice(BOUNDARIES), rng.choice(("process", "jvm"))) for _ in range(LONG)] or SHORT[format_]
    for boundary, who in [*kills, ("never", "process")]:
        for number in range(20):
            key, partition = rng.randrange(9), rng.randrange(2)
            gone = key in model and rng.random() < 0.3
            row = None if gone else {"n": rng.randrange(999)}
            lake.produce(kept, [event("d" if gone else "u", key, row or {"n": model.get(key, 0)}, {"n": INT}, "kept")])
            if row is None:
                del model[key]
            else:
                model[key] = row["n"]
            lake.produce(logged, [event("c", None, {"n": number}, {"n": INT}, "logged")], partition)
            written[partition] += 1
        trap = {"boundary": boundary, "who": who, "countdown": rng.randint(1, 2), "delay": rng.random()}
        order = {"group": str(tmp_path / "group.json"), "bootstrap": kafka.bootstrap, "config": config, "trap": trap}
        done = subprocess.run(
            [sys.executable, "-m", "tests.faults.lake_task"], input=json.dumps(order), text=True, capture_output=True, timeout=300
        )
        if boundary == "never":
            assert done.returncode == 0, done.stderr[-3000:]
    assert {row["id"]: row["n"] for row in lake.rows("kept")} == model
    places = sorted((row["__partition"], row["__offset"]) for row in lake.whole_rows("logged"))
    assert places == [(partition, offset) for partition in (0, 1) for offset in range(written[partition])]
