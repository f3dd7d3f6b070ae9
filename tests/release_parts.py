"""What a newcomer does first with one extra alone, on real servers; `make release` runs it with an installed wheel.

The worker is that of the environment, which has one extra and nothing of this checkout. Databases, rows and connectors are the
tutorial's (`docs/tutorial`). Servers are started when the first part asks for them.
"""

from __future__ import annotations

import functools
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

from connect_py.app.services.process import Service
from connect_py.app.services.worker import Worker
from docs.tutorial import servers
from tests.fix_kafka import Kafka
from tests.fix_registry import SchemaRegistry
from tests.waiting import eventually

TUTORIAL = Path(servers.__file__).parent
#: The tutorial's databases have as many customers.
CUSTOMERS = 4
POSTGRES_TOPIC = "dbserver1.inventory.customers"


class Parts:
    """The servers, and the part of each extra.

    Args:
        folder: for the servers' files; any user may read it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stack = ExitStack()
        self._variables: dict[str, str] = {}
        self._started: set[str] = set()
        self._of: Mapping[str, Callable[[Path], str]] = {
            "none": self._lines,
            "postgres": functools.partial(self._source, "postgres", POSTGRES_TOPIC),
            "mysql": functools.partial(self._source, "mysql", "dbserver2.inventory.customers"),
            "mongodb": functools.partial(self._source, "mongodb", "dbserver3.inventory.customers"),
            "jdbc": self._sqlite,
            "scripting": self._condition,
            "tracing": self._spans,
            "registry": functools.partial(self._registered, "io.confluent.connect.avro.AvroConverter"),
            "protobuf": functools.partial(self._registered, "io.confluent.connect.protobuf.ProtobufConverter"),
            "cli": self._applied,
            "spark": self._table,
            "spark-connect": self._table,
        }

    def close(self) -> None:
        """Stop the servers."""
        self._stack.close()

    def run(self, extra: str, environment: Path) -> str:
        """Run the part of an extra; returns what was seen, "" where it has none.

        Raises:
            ServiceError: a server, the worker or a task did not do what it has to.
            Failed: a state did not come in time (`pytest.fail`).
        """
        part = self._of.get(extra)
        return part(environment) if part else ""

    # -- servers and workers

    def _need(self, *names: str) -> None:
        for name in names:
            if name in self._started:
                continue
            start, _ = servers.SERVERS[name]
            service, variables = start(self._folder / name)
            assert isinstance(service, Service)
            self._stack.callback(service.stop)
            self._variables |= {key: str(value) for key, value in variables.items() if key != "PATH"}
            self._started.add(name)

    @property
    def _kafka(self) -> Kafka:
        self._need("kafka")
        return Kafka(self._variables["KAFKA"])

    @contextmanager
    def _worker(self, environment: Path | None) -> Iterator[Worker]:
        """A worker of an environment, or of this checkout."""
        program = Path(sys.executable) if environment is None else environment / "bin/python"
        providers = {
            "config.providers": "env",
            "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
        }
        folder = self._folder / f"worker-{os.urandom(4).hex()}"
        command = [str(program), *(() if environment is None else ("-I",)), "-m", "connect_py.app.cli", "distributed"]
        variables = self._variables if environment is None else {**self._variables, "PYTHONPATH": ""}
        worker = Worker(folder, self._kafka.bootstrap, properties=providers, env=variables, command=command)
        try:
            yield worker
        finally:
            worker.stop()

    def _rows(self, topic: str) -> list[Any]:
        return [json.loads(message.value() or b"null") for message in self._kafka.read(topic)]

    def _seed(self) -> None:
        """Have the tutorial's rows of PostgreSQL in their topic."""
        self._need("kafka", "postgres")
        if not self._kafka.count(POSTGRES_TOPIC):
            with self._worker(None) as worker:
                self._run_source(worker, "postgres", POSTGRES_TOPIC)

    def _run_source(self, worker: Worker, name: str, topic: str) -> None:
        asked = json.loads((TUTORIAL / f"{name}.json").read_text())
        before = self._kafka.count(topic)
        worker.create(asked["name"], asked["config"])
        eventually(lambda: self._kafka.count(topic) == before + CUSTOMERS, f"{CUSTOMERS} records in {topic}", 60)
        worker.delete(asked["name"])

    def _file_source(self, worker: Worker, topic: str, count: int, **more: str) -> None:
        """Run a source of three lines until `count` records have come of it."""
        lines = self._folder / f"{topic}.txt"
        lines.write_text("one\ntwo\nthree\n")
        config = {"connector.class": "FileStreamSource", "tasks.max": "1", "file": str(lines), "topic": topic}
        worker.create(topic, config | {name.replace("_", "."): value for name, value in more.items()})
        eventually(lambda: self._kafka.count(topic) == count, f"{count} records in {topic}", 60)
        worker.delete(topic)

    # -- the parts

    def _source(self, name: str, topic: str, environment: Path) -> str:
        self._need("kafka", name)
        with self._worker(environment) as worker:
            self._run_source(worker, name, topic)
        return f"{CUSTOMERS} customers in {topic}"

    def _lines(self, environment: Path) -> str:
        with self._worker(environment) as worker:
            self._file_source(worker, "lines", 3)
        return f"three lines in a topic: {[row['payload'] for row in self._rows('lines')]}"

    def _condition(self, environment: Path) -> str:
        with self._worker(environment) as worker:
            self._file_source(
                worker,
                "chosen",
                2,
                transforms="filter",
                transforms_filter_type="io.debezium.transforms.Filter",
                transforms_filter_language="cel",
                transforms_filter_condition="value != 'two'",
            )
        return f"two of three lines: {[row['payload'] for row in self._rows('chosen')]}"

    def _spans(self, environment: Path) -> str:
        span = "io.debezium.transforms.tracing.ActivateTracingSpan"
        with self._worker(environment) as worker:
            self._file_source(worker, "traced", 3, transforms="span", transforms_span_type=span)
        return "three lines through ActivateTracingSpan"

    def _registered(self, converter: str, environment: Path) -> str:
        registry = SchemaRegistry()
        topic = converter.rpartition(".")[2].lower()
        try:
            with self._worker(environment) as worker:
                self._file_source(worker, topic, 3, value_converter=converter, value_converter_schema_registry_url=registry.url)
            assert all(message.value()[:1] == b"\0" for message in self._kafka.read(topic))
            return f"three records by {converter.rpartition('.')[2]}, subjects {sorted(registry.subjects)}"
        finally:
            registry.stop()

    def _sqlite(self, environment: Path) -> str:
        self._seed()
        path = self._folder / "copy.db"
        config = {
            "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
            "tasks.max": "1",
            "topics": POSTGRES_TOPIC,
            "connection.url": f"jdbc:sqlite:{path}",
            "insert.mode": "upsert",
            "primary.key.mode": "record_key",
            "schema.evolution": "basic",
            "collection.name.format": "customers",
            "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        }

        def rows() -> list[Any]:
            with closing(sqlite3.connect(path)) as database:
                if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'customers'").fetchall():
                    return []
                return database.execute("SELECT id, email FROM customers ORDER BY id").fetchall()

        with self._worker(environment) as worker:
            worker.create("copy", config)
            eventually(lambda: len(rows()) == CUSTOMERS, f"{CUSTOMERS} rows in SQLite", 60)
        return f"{CUSTOMERS} customers in SQLite, the first {rows()[0]}"

    def _applied(self, environment: Path) -> str:
        lines = self._folder / "applied.txt"
        lines.write_text("one\n")
        file = self._folder / "applied.yaml"
        file.write_text(f"name: applied\nconfig:\n  connector.class: FileStreamSource\n  file: {lines}\n  topic: applied\n")
        with self._worker(environment) as worker:
            command = [str(environment / "bin/connect-py"), "apply", "-f", str(file), "--wait", "--worker", worker.url]
            done = subprocess.run(command, capture_output=True, text=True, cwd=self._folder, timeout=120)
            assert done.returncode == 0, done.stdout + done.stderr
            eventually(lambda: self._kafka.count("applied") == 1, "a record in the topic applied", 60)
        return f"apply -f {file.name}: {done.stdout.strip().splitlines()[-1]}"

    def _table(self, environment: Path) -> str:
        self._seed()
        asked = json.loads((TUTORIAL / "lakehouse.json").read_text())
        warehouse = self._folder / f"warehouse-{environment.name}"
        config = asked["config"] | {"topics": POSTGRES_TOPIC, "lakehouse.catalog.warehouse": str(warehouse)}
        with self._worker(environment) as worker:
            worker.create(asked["name"], config)
            eventually(lambda: any(warehouse.rglob("*.parquet")), "a data file in the warehouse", 300)
        return f"an Iceberg table: {sorted(str(path.relative_to(warehouse).parent) for path in warehouse.rglob('*.parquet'))[0]}"
