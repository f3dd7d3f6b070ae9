"""Many tasks on one worker: how long until all run, how much memory they take together, what they cost when nothing happens.

    python tests/bench/bench_density.py [--tasks 40] [--property task.fork.server=false]

Each task is a file source of its own connector. Memory is PSS: pages that processes share are counted once, in parts.
"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
import time
from pathlib import Path

from connect_py.app.services.kafka import KafkaBroker
from connect_py.app.services.process import cpu_seconds, process_tree
from connect_py.app.services.worker import Worker


def pss_mb(pid: int) -> float:
    """The memory of a process, shared pages divided among those that share them."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=40)
    parser.add_argument("--property", action="append", default=[], metavar="NAME=VALUE")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        kafka = KafkaBroker(Path(folder) / "kafka")
        stack.callback(kafka.stop)
        source = Path(folder) / "lines.txt"
        source.write_text("one\n")
        properties = dict(setting.split("=", 1) for setting in asked.property)
        worker = Worker(Path(folder) / "worker", kafka.bootstrap, properties=properties)
        began, before = time.monotonic(), sum(map(cpu_seconds, process_tree(worker.pid)))
        names = [f"file-{number}" for number in range(asked.tasks)]
        for name in names:
            config = {"connector.class": "FileStreamSource", "file": str(source), "topic": name, "tasks.max": "1"}
            worker.request("PUT", f"/connectors/{name}/config", config)
        for name in names:
            worker.wait_for(name, "RUNNING", seconds=300)
        print(f"{asked.tasks} tasks run after {time.monotonic() - began:.1f} s")
        pids = process_tree(worker.pid)
        print(f"CPU until then: {sum(map(cpu_seconds, pids)) - before:.1f} s")
        print(f"PSS: worker {pss_mb(worker.pid):.0f} MB, all {sum(map(pss_mb, pids)):.0f} MB in {len(pids)} processes")
        idle, began = sum(map(cpu_seconds, pids)), time.monotonic()
        time.sleep(20)
        print(f"idle: {100 * (sum(map(cpu_seconds, pids)) - idle) / (time.monotonic() - began):.1f} % of one core")
        worker.stop()


if __name__ == "__main__":
    main()
