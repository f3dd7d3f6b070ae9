"""Every suffix of the log is applied again: what the tables have stays as it is, to the commit.

`CONNECT_PY_LAKE_ZOMBIES=1` replays each suffix in both formats, with both drivers.
"""

from __future__ import annotations

import os
import random

import pytest

from tests.faults.lake_source import Source
from tests.fix_spark import LAKES, Lake

pytestmark = [pytest.mark.services, pytest.mark.spark]

LONG = bool(os.environ.get("CONNECT_PY_LAKE_ZOMBIES"))
TABLES = ("kept", "logged", "versions")


@pytest.mark.long
@pytest.mark.timeout(420 + 4080 * LONG)
@pytest.mark.parametrize(
    ("lake", "driver"),
    [(f, d) for f in LAKES for d in ("loop", "stream")]
    if LONG
    else [("iceberg", "stream"), pytest.param("delta", "loop", marks=pytest.mark.long)],
    indirect=["lake"],
)
def test_no_suffix_of_the_log_changes_a_table_that_has_it(lake: Lake, driver: str) -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    source = Source(lake, random.Random(seed))
    config = source.config(driver, max__offsets__per__trigger="12")
    for _ in range(2):
        source.change(6)
        task = lake.start(config)
        lake.drain(task)
        task.close()
    reached = dict(lake.context.group)
    before = {table: lake.snapshots(table) for table in TABLES}
    for back in range(1, max(reached.values()) + 1, 1 if LONG else 15):
        lake.context.group = {tp: max(0, end - back) for tp, end in reached.items()}
        task = lake.start(config)
        lake.drain(task)
        task.close()
        assert lake.context.group == reached
        assert {table: lake.snapshots(table) for table in TABLES} == before, f"{back} offsets back"
    source.check()
