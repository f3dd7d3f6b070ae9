"""What exactly-once delivery costs: the same rows of PostgreSQL brought to Kafka by two workers of one build in turn, one with support
disabled, one with it enabled; by Kafka Connect's workers, too, where CONNECT_REFERENCE names it (`tests/reference.py`).

    python -m tests.bench.bench_exactly_once drain [--rows 200000] [--rounds 3] [--set transaction.boundary=interval]
    python -m tests.bench.bench_exactly_once latency [--rate 1000] [--seconds 20]

Starts a broker, PostgreSQL and the workers, and runs `bench.py` on them; the last line of each pair is the ratio. The records that end
transactions count as rows of the topic; each stands for 2,048 rows (`max.batch.size`) or more. Latency is that of a consumer that reads
committed records.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from connect_py.app.services.kafka import KafkaBroker
from connect_py.app.services.postgres import PostgresServer
from connect_py.app.services.worker import Worker
from tests.reference import REFERENCE, JavaWorker


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["drain", "latency"])
    parser.add_argument("--rows", default="200000")
    parser.add_argument("--rate", default="1000")
    parser.add_argument("--seconds", default="20")
    parser.add_argument("--rounds", default="3")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a property of the connector")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        kafka = KafkaBroker(folder / "kafka")
        stack.callback(kafka.stop)
        postgres = PostgresServer(folder / "postgres")
        stack.callback(postgres.stop)
        command = [sys.executable, str(Path(__file__).with_name("bench.py")), asked.kind, "postgres", "--schemas", "no"]
        command += ["--rows", asked.rows, "--rate", asked.rate, "--seconds", asked.seconds, "--rounds", asked.rounds]
        command += [part for each in asked.set for part in ("--set", each)]
        address = {"PG_HOST": postgres.host, "PG_PORT": str(postgres.port), "PG_USER": postgres.user, "PG_PASSWORD": postgres.password}
        environment = {**os.environ, **address, "BOOTSTRAP": kafka.bootstrap}
        print(f"load before: {os.getloadavg()[0]:.1f}", flush=True)
        for kind in (Worker, JavaWorker) if REFERENCE else (Worker,):
            workers: list[str] = []
            with contextlib.ExitStack() as running:
                for support in ("disabled", "enabled"):
                    worker = kind(
                        folder / f"{kind.__name__}-{support}", kafka.bootstrap, properties={"exactly.once.source.support": support}
                    )
                    running.callback(worker.stop)
                    workers += ["--worker", f"{support}={worker.url}@{worker.pid}"]
                print("Kafka Connect" if kind is JavaWorker else "connect-py", flush=True)
                subprocess.run([*command, *workers], env=environment, check=True)
        print(f"load after: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
