"""What exactly-once delivery costs: the same rows of PostgreSQL drained by two workers of one build in turn, one with support disabled, one
with it enabled.

    python tests/bench/bench_exactly_once.py [--rows 200000] [--rounds 3] [--set transaction.boundary=interval]

Starts a broker, PostgreSQL and the workers, and runs `bench.py drain` on them; its last line is the ratio. The records that end
transactions count as rows of the topic; each stands for 2,048 rows (`max.batch.size`) or more.
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="200000")
    parser.add_argument("--rounds", default="3")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a property of the connector")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        kafka = KafkaBroker(folder / "kafka")
        stack.callback(kafka.stop)
        postgres = PostgresServer(folder / "postgres")
        stack.callback(postgres.stop)
        command = [sys.executable, str(Path(__file__).with_name("bench.py")), "drain", "postgres", "--schemas", "no"]
        command += ["--rows", asked.rows, "--rounds", asked.rounds, *(part for each in asked.set for part in ("--set", each))]
        for support in ("disabled", "enabled"):
            worker = Worker(folder / support, kafka.bootstrap, properties={"exactly.once.source.support": support})
            stack.callback(worker.stop)
            command += ["--worker", f"{support}={worker.url}@{worker.pid}"]
        address = {"PG_HOST": postgres.host, "PG_PORT": str(postgres.port), "PG_USER": postgres.user, "PG_PASSWORD": postgres.password}
        print(f"load before: {os.getloadavg()[0]:.1f}", flush=True)
        subprocess.run(command, env={**os.environ, **address, "BOOTSTRAP": kafka.bootstrap}, check=True)
        print(f"load after: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
