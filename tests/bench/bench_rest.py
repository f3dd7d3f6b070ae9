"""The REST API and an idle worker: `python tests/bench/bench_rest.py worker.properties [--connectors 100] [--running 0]`.

Starts a worker of its own with these properties (its topics should be new; file.connectors.allowed.paths=/ among them), and prints

- the time from the start of the process to the first answer of GET /, and the CPU time till then,
- the resident memory and the share of a core of the idle worker, over `--idle` seconds, before and after the connectors,
- for each read the median, the 99th percentile and the longest of `--requests` requests, one after the other over one connection, with
  `--connectors` file source connectors registered, of which `--running` run a task (a process each) and the others are stopped.

The connectors are deleted at the end.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from connect_py.app.services.process import cpu_seconds
from connect_py.data.java_properties import parse_properties

READS = (
    "/",
    "/health",
    "/connectors",
    "/connectors?expand=status&expand=info",
    "/connectors/bench-0",
    "/connectors/bench-0/status",
    "/connectors/bench-0/tasks",
    "/connectors/bench-0/topics",
    "/connector-plugins",
    "/connector-plugins/FileStreamSource/config",
    "/admin/loggers/root",
    "/metrics",
)
TICKS = os.sysconf("SC_CLK_TCK")


class Client:
    """One kept connection."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)

    def __call__(self, method: str, path: str, body: object = None) -> tuple[int, bytes]:
        data = None if body is None else json.dumps(body).encode()
        self._connection.request(method, path, data, {"Content-Type": "application/json"} if data else {})
        answer = self._connection.getresponse()
        return answer.status, answer.read()


def resident_mib(pid: int) -> float:
    """Memory of one process that is its own or shared."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def first_answer(port: int, process: subprocess.Popen[bytes], began: float) -> float:
    while process.poll() is None:
        try:
            if Client(port)("GET", "/")[0] == 200:
                return time.monotonic() - began
        except OSError:
            time.sleep(0.005)
    raise SystemExit("The worker ended before it answered.")


def show_idle(pid: int, seconds: float, what: str) -> None:
    time.sleep(5)
    before, began = cpu_seconds(pid), time.monotonic()
    time.sleep(seconds)
    share = (cpu_seconds(pid) - before) / (time.monotonic() - began) * 100
    print(f"{what}: {resident_mib(pid):.0f} MiB resident, {share:.2f} % of a core over {seconds:.0f} s")


def show_reads(ask: Client, requests: int) -> None:
    print(f"{'read':48} {'bytes':>8} {'p50 ms':>8} {'p99 ms':>8} {'max ms':>8}")
    for path in READS:
        ask("GET", path)
        times = []
        for _ in range(requests):
            began = time.perf_counter()
            status, body = ask("GET", path)
            times.append((time.perf_counter() - began) * 1000)
            assert status == 200, (path, status, body[:200])
        times.sort()
        p99 = times[min(len(times) - 1, int(len(times) * 0.99))]
        print(f"{path:48} {len(body):8} {statistics.median(times):8.2f} {p99:8.2f} {times[-1]:8.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("properties", type=Path)
    parser.add_argument("--connectors", type=int, default=100)
    parser.add_argument("--running", type=int, default=0)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--idle", type=float, default=20)
    options = parser.parse_args()
    port = int(parse_properties(options.properties.read_text())["listeners"].rpartition(":")[2])
    began = time.monotonic()
    process = subprocess.Popen([sys.executable, "-m", "connect_py.app.cli", "distributed", str(options.properties)])
    try:
        seconds = first_answer(port, process, began)
        print(f"start to first answer: {seconds:.2f} s, {cpu_seconds(process.pid):.2f} s of it on a core")
        show_idle(process.pid, options.idle, "idle, no connectors")
        ask = Client(port)
        config = {"connector.class": "FileStreamSource", "file": "/no/such/file", "topic": "bench-lines", "tasks.max": "1"}
        for number in range(options.connectors):
            state = "RUNNING" if number < options.running else "STOPPED"
            status, body = ask("POST", "/connectors", {"name": f"bench-{number}", "config": config, "initial_state": state})
            assert status in (201, 409), body
        show_idle(process.pid, options.idle, f"{options.connectors} connectors, {options.running} of them running, the worker alone")
        if options.connectors:
            show_reads(ask, options.requests)
        for number in range(options.connectors):
            ask("DELETE", f"/connectors/bench-{number}")
    finally:
        process.terminate()
        process.wait(30)


if __name__ == "__main__":
    main()
