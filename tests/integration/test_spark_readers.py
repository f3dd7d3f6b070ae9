"""The examples of docs/sinks/examples show the sink's tables: each is run as it stands."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fix_spark import INT, Lake, event, iceberg_and_long_delta

pytestmark = [pytest.mark.services, pytest.mark.spark, pytest.mark.long]

EXAMPLES = Path(__file__).parents[2] / "docs" / "sinks" / "examples"


def run(name: str, *arguments: object) -> str:
    """What an example prints."""
    env = os.environ | {"PYTHONPATH": str(EXAMPLES.parents[2]), "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -Xmx512m"}
    command = [sys.executable, str(EXAMPLES / name), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=env, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@iceberg_and_long_delta
def test_every_example_shows_a_table_with_its_deletes_and_offsets(lake: Lake) -> None:
    topic = lake.topic("t")
    task = lake.start(lake.config(topic))
    lake.produce(topic, [event("c", key, {"n": key}, {"n": INT}) for key in range(6)])
    lake.drain(task)
    lake.produce(topic, [event("d", 0, {"n": 0}, {"n": INT}), event("u", 1, {"n": 11}, {"n": INT})])
    lake.drain(task)
    assert "[('c', 4), ('u', 1)]" in run("read_with_duckdb.py", lake.format, lake.warehouse, "public.t")
    by_spark = run("read_with_spark.py", lake.format, lake.warehouse, "public.t")
    assert "5 rows" in by_spark and f'{topic}":{{"0":8}}' in by_spark.replace(" ", "")
    if lake.format == "iceberg":
        shown = run("read_with_pyiceberg.py", lake.warehouse, "public.t")
        assert "before the newest commit: 6 rows" in shown
    else:
        shown = run("read_with_deltalake.py", lake.warehouse, "public.t")
    assert "5 rows" in shown and f"'{topic}': {{'0': 8}}" in shown
