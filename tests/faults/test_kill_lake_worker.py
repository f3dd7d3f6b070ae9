"""A lakehouse sink in a real worker, whose JVM, task and worker are killed at random moments: its tables end as the source's.

`CONNECT_PY_LAKE_KILLS=30` kills so often, for each format.
"""

from __future__ import annotations

import os
import random
import signal
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from connect_py.app.demo.kills import spark_processes
from connect_py.app.services.worker import Worker
from tests.fault_counts import Fault, note, note_changes
from tests.faults.lake_source import Source
from tests.fix_spark import LAKES, Lake
from tests.waiting import let_time_pass, wait_until

pytestmark = [pytest.mark.services, pytest.mark.spark]

LONG = int(os.environ.get("CONNECT_PY_LAKE_KILLS", "0"))


def metric(worker: Worker, name: str) -> float | None:
    """A figure of the sink's, as Prometheus reads it."""
    with urllib.request.urlopen(f"{worker.url}/metrics", timeout=60) as answer:
        lines = [line for line in answer.read().decode().splitlines() if line.startswith(f"connect_py_lakehouse_sink_{name}{{")]
    return float(lines[0].rsplit(" ", 1)[1]) if lines else None


def is_reached(worker: Worker, name: str, ends: dict[str, int]) -> bool:
    """Whether the consumer group says that all has been applied."""
    found = worker.request("GET", f"/connectors/{name}/offsets")["offsets"]
    reached = {f"{o['partition']['kafka_topic']}-{o['partition']['kafka_partition']}": o["offset"]["kafka_offset"] for o in found}
    return all(reached.get(place, 0) >= end for place, end in ends.items())


def ends_of(lake: Lake, config: dict[str, str]) -> dict[str, int]:
    """Where the topics end."""
    log = lake.context.log_offsets(config["topics"].split(","), None)
    return {f"{tp.topic}-{tp.partition}": end for tp, (_, end) in log.items() if end}


@pytest.mark.long
@pytest.mark.timeout(420 + 780 * LONG)
@pytest.mark.parametrize(("format_", "driver"), [(f, d) for f in LAKES for d in ("loop", "stream")] if LONG else [("iceberg", "loop")])
def test_a_sink_whose_jvm_task_and_worker_are_killed_goes_on_and_says_what_happened(
    worker: Worker, kafka: Any, tmp_path: Path, tag: str, format_: str, driver: str
) -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    rng = random.Random(seed)
    lake = LAKES[format_](kafka.bootstrap, tmp_path / "warehouse", tag)
    source = Source(lake, rng)
    name = f"lake-{tag}"
    config = source.config(driver, max__offsets__per__trigger="40", control_commit_interval__ms="200") | {
        "connector.class": "SparkLakehouseSink",
        "lakehouse.spark.conf.spark.driver.memory": "700m",
    }
    source.change()
    worker.create(name, config)
    worker.wait_for(name, "RUNNING")
    assert metric(worker, "spark_session_starting") in (None, 1), "the task runs before Spark does"
    for victim in ["jvm", "worker"] if not LONG else [rng.choice(("jvm", "task", "worker")) for _ in range(LONG)]:
        wait_until(lambda: spark_processes(worker), 400, "a JVM")
        let_time_pass(rng.random() * 15 if LONG else 0, "the moment of the kill is what the test is about")
        source.change()
        match victim:
            case "jvm":
                wait_until(lambda: metric(worker, "spark_session_starting") == 0, 400, "Spark's start")
                for pid in spark_processes(worker):
                    os.kill(pid, signal.SIGKILL)
                task = worker.wait_for(name, "FAILED")["tasks"][0]
                assert "Spark ended while" in task["trace"]
                assert "killed by SIGKILL" in task["trace"]
                worker.request("POST", f"/connectors/{name}/restart?includeTasks=true&onlyFailed=true")
            case "task":
                for pid in worker.children():
                    os.kill(pid, signal.SIGKILL)
            case "worker":
                worker.kill()
                worker.restart()
        note({"jvm": Fault.KILLED_SPARK, "task": Fault.KILLED_TASK, "worker": Fault.KILLED_WORKER}[victim], f"{format_.capitalize()} sink")
        worker.wait_for(name, "RUNNING")
    ends = ends_of(lake, config)
    wait_until(lambda: is_reached(worker, name, ends), 400, "the tables")
    source.check()
    note_changes(f"{format_.capitalize()} sink", source.events)
    worker.request("PUT", f"/connectors/{name}/pause")
    worker.wait_for(name, "PAUSED")
    source.change(3)
    [paused] = spark_processes(worker)
    worker.request("PUT", f"/connectors/{name}/resume")
    ends = ends_of(lake, config)
    wait_until(lambda: is_reached(worker, name, ends), 400, "the tables")
    source.check()
    assert spark_processes(worker) == [paused], "a pause keeps Spark"
