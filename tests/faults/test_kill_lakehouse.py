"""Kill the lakehouse sink's process or its JVM at every boundary of a batch: tables end equal to their source, and no event is there twice.

One connector keeps three tables at once, one by each way of writing, so that a kill falls between tables too. `CONNECT_PY_LAKE_KILLS=30`
makes it thirty kills for each format and driver, at random boundaries, in place of a few; `CONNECT_PY_LAKE_SEED` repeats one such run.
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

from tests.faults.lake_boundaries import of_format
from tests.faults.lake_source import Source
from tests.fix_spark import LAKES, Lake

pytestmark = [pytest.mark.services, pytest.mark.spark]

LONG = int(os.environ.get("CONNECT_PY_LAKE_KILLS", "0"))
#: In the short form: those in which a mistake costs most, by format and driver; at the how many-th table or batch.
SHORT = {
    ("iceberg", "loop"): [("writing", "jvm", 2), ("committed", "process", 2)],
    ("delta", "stream"): [("writing", "process", 2), ("before the report", "jvm", 1)],
}


@pytest.mark.timeout(420 + 780 * LONG)
@pytest.mark.parametrize(("format_", "driver"), [(f, d) for f in LAKES for d in ("loop", "stream")] if LONG else list(SHORT))
def test_whatever_is_killed_whenever_tables_equal_their_source_and_no_event_is_doubled(
    kafka: Any, tmp_path: Path, tag: str, format_: str, driver: str
) -> None:
    seed = int(os.environ.get("CONNECT_PY_LAKE_SEED") or random.randrange(10**6))
    print(f"CONNECT_PY_LAKE_SEED={seed}")
    rng = random.Random(seed)
    lake: Lake = LAKES[format_](kafka.bootstrap, tmp_path / "warehouse", tag)
    source = Source(lake, rng)
    config = source.config(driver, max__offsets__per__trigger="40") | {"lakehouse.spark.conf.spark.driver.memory": "700m"}
    kills = [(rng.choice(of_format(format_)), rng.choice(("process", "jvm")), rng.randint(1, 3)) for _ in range(LONG)]
    fell = 0
    for boundary, who, countdown in [*(kills or SHORT[format_, driver]), ("never", "process", 1)]:
        source.change()
        trap = {"boundary": boundary, "who": who, "countdown": countdown, "delay": rng.random()}
        order = {"group": str(tmp_path / "group.json"), "bootstrap": kafka.bootstrap, "config": config, **trap}
        command = [sys.executable, "-m", "tests.faults.lake_task"]
        done = subprocess.run(command, input=json.dumps(order), text=True, capture_output=True, timeout=600)
        print(f"{boundary} ({countdown}), {who}: {done.returncode}", flush=True)
        fell += done.returncode != 0
        if boundary == "never":
            assert done.returncode == 0, done.stderr[-3000:]
        else:
            assert done.returncode in (0, -9) or "Spark ended while" in done.stderr, done.stderr[-3000:]
        if done.returncode == 0:
            source.check()
    assert fell, "no kill fell into a batch"
