"""docker-compose.yaml comes up, Debezium's tutorial is sent to it, the worker is killed, and all is taken down.

podman-compose reads the file as it is, with `compose.override.yaml` for the network. The containers share a network namespace that is made
here, so that no port of this machine is taken. podman's health checks need systemd's timers; where there is none, a thread runs them.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.images.engine import ImageTestError, command, say, wait_until
from tests.images.tools import tool
from tests.paths import ROOT

#: The engine's settings for everything that podman-compose calls.
_ENGINE = """[engine]
runtime = "runc"
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1000:1000"]
"""
_REGISTRIES = 'unqualified-search-registries = ["docker.io"]\nshort-name-mode = "permissive"\n'

#: Debezium's tutorial, for PostgreSQL.
CONNECTOR = {
    "name": "inventory-connector",
    "config": {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "database.hostname": "postgres",
        "database.port": "5432",
        "database.user": "postgres",
        "database.password": "postgres",
        "database.dbname": "postgres",
        "topic.prefix": "dbserver1",
        "schema.include.list": "inventory",
    },
}

#: Prints the records of a topic, keys and operations, as the worker's own Kafka client reads them.
_READ = """
import json, sys
from confluent_kafka import Consumer, TopicPartition
c = Consumer({"bootstrap.servers": "kafka:9092", "group.id": "test", "enable.auto.commit": False})
t = TopicPartition(sys.argv[1], 0, 0)
_, end = c.get_watermark_offsets(t, timeout=20)
c.assign([t])
found = []
while len(found) < end:
    m = c.poll(10)
    if m is None: break
    if m.value(): found.append([json.loads(m.value())["payload"][k] for k in ("op", "after")])
print(json.dumps(found))
"""


class Project:
    """The composition in a network namespace; commands for it."""

    def __init__(self, folder: Path, namespace: str) -> None:
        self.name = f"connect-py-{uuid.uuid4().hex[:6]}"
        (folder / "containers.conf").write_text(_ENGINE)
        (folder / "registries.conf").write_text(_REGISTRIES)
        self._environ = {
            **os.environ,
            "CONTAINERS_CONF": str(folder / "containers.conf"),
            "CONTAINERS_REGISTRIES_CONF": str(folder / "registries.conf"),
        }
        self._inside = ("nsenter", f"--net=/run/netns/{namespace}")

    def compose(self, *arguments: str, timeout: float = 600) -> str:
        """Run podman-compose; returns what it printed."""
        files = ("-f", ROOT / "docker-compose.yaml", "-f", Path(__file__).with_name("compose.override.yaml"))
        done = command(
            *self._inside,
            tool("podman-compose"),
            "-p",
            self.name,
            "--in-pod",
            "false",
            *files,
            *arguments,
            env=self._environ,
            timeout=timeout,
            cwd=ROOT,
        )
        return done.stdout + done.stderr

    def container(self, service: str) -> str:
        """The name of a service's container."""
        return f"{self.name}_{service}_1"

    def podman(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run podman in the namespace."""
        return command(*self._inside, "podman", *arguments, check=check, env=self._environ, timeout=120)

    def execute(self, service: str, *arguments: str) -> str:
        """Run a program in a service's container; returns its output."""
        return self.podman("exec", self.container(service), *arguments).stdout

    def state(self, service: str) -> dict[str, Any]:
        """A container's state, of which health is the last check's."""
        return dict(json.loads(self.podman("inspect", self.container(service)).stdout)[0]["State"])

    def is_healthy(self, service: str) -> bool:
        """Run the health check of docker-compose.yaml."""
        return self.podman("healthcheck", "run", self.container(service), check=False).returncode == 0

    def curl(self, *arguments: str) -> Any:
        """A tutorial's line, in the namespace; None where there is no JSON yet."""
        done = command(*self._inside, "curl", "-s", *arguments, check=False)
        with contextlib.suppress(ValueError):
            return json.loads(done.stdout)
        return None

    def records(self, topic: str) -> list[list[Any]]:
        """Operation and row of each record of a topic."""
        return list(json.loads(self.execute("connect", "python", "-c", _READ, topic)))

    def logs(self) -> str:
        """The end of each container's log."""
        return "\n".join(f"--- {name}\n" + self._log(name) for name in ("kafka", "postgres", "connect"))

    def _log(self, service: str) -> str:
        done = self.podman("logs", "--tail", "40", self.container(service), check=False)
        return done.stdout + done.stderr


@contextlib.contextmanager
def _namespace() -> Iterator[str]:
    name = f"connect-py-{uuid.uuid4().hex[:6]}"
    command("ip", "netns", "add", name)
    try:
        command("ip", "-n", name, "link", "set", "lo", "up")
        yield name
    finally:
        command("ip", "netns", "del", name)


def check() -> None:
    """Up, tutorial, kill, down. Raises ImageTestError."""
    with tempfile.TemporaryDirectory(prefix="connect-py-compose-") as scratch, _namespace() as namespace:
        project = Project(Path(scratch), namespace)
        say("docker-compose.yaml by podman-compose; STAND-IN postgres:17 and apache/kafka:4.3.1, our own image on a STAND-IN base")
        try:
            _tutorial(project)
        except BaseException:
            print(project.logs())
            raise
        finally:
            project.compose("down", "-v", "-t", "30")
        left = command("podman", "ps", "-a", "--format", "{{.Names}}").stdout
        if project.name in left:
            raise ImageTestError(f"After compose down there still is: {left}")
        say("compose down: no container is left")


def _tutorial(project: Project) -> None:
    began = time.monotonic()
    project.compose("up", "-d")
    with _checks(project):
        for service in ("kafka", "postgres", "connect"):
            wait_until(lambda service=service: project.is_healthy(service), 180, f"{service} to be healthy")  # type: ignore[misc]
        say(f"compose up: kafka, postgres and connect are healthy after {time.monotonic() - began:.0f} s")
        url = "localhost:8083"
        headers = ("-H", "Accept:application/json", "-H", "Content-Type:application/json")
        created = project.curl("-X", "POST", *headers, f"{url}/connectors/", "-d", json.dumps(CONNECTOR))
        if not created or created.get("name") != CONNECTOR["name"]:
            raise ImageTestError(f"POST /connectors answered {created}")
        status = f"{url}/connectors/inventory-connector/status"
        wait_until(lambda: _runs(project.curl(status)), 60, "the connector to run")
        topic = "dbserver1.inventory.customers"
        wait_until(_holds(project, topic, [["r", number] for number in (1001, 1002, 1003, 1004)]), 90, "the snapshot's four customers")
        _sql(project, "INSERT INTO inventory.customers VALUES (default, 'Sarah', 'Thompson', 'kitt@acme.com')")
        wait_until(lambda: [row["email"] for op, row in project.records(topic) if op == "c"] == ["kitt@acme.com"], 60, "the new customer")
        say("the tutorial's curl lines: a connector, four rows of the snapshot, one insert")

        pid = project.state("connect")["Pid"]
        os.kill(pid, signal.SIGKILL)
        _sql(project, "UPDATE inventory.customers SET first_name = 'Anne Marie' WHERE id = 1004")
        killed = time.monotonic()
        wait_until(lambda: project.state("connect")["Running"] and project.state("connect")["Pid"] != pid, 60, "the worker's restart")
        wait_until(lambda: _runs(project.curl(status)), 120, "the connector to run again")
        wait_until(
            lambda: [row["id"] for op, row in project.records(topic) if op == "u"] == [1004], 60, "the update made while it was down"
        )
        found = [[op, row["id"]] for op, row in project.records(topic)]
        if [op for op, _ in found] != ["r"] * 4 + ["c", "u"]:
            raise ImageTestError(f"After the kill the topic holds {found}")
        took = time.monotonic() - killed
        say(f"kill -9 of the worker: its restart policy brought it back, and the change made meanwhile is there after {took:.0f} s")


def _runs(status: Any) -> bool:
    return bool(status and status.get("tasks") and status["tasks"][0]["state"] == "RUNNING")


def _holds(project: Project, topic: str, wanted: list[list[Any]]) -> Callable[[], bool]:
    return lambda: [[op, row["id"]] for op, row in project.records(topic)] == wanted


def _sql(project: Project, statement: str) -> None:
    project.execute("postgres", "psql", "-h", "127.0.0.1", "-U", "postgres", "-v", "ON_ERROR_STOP=1", "-c", statement)


@contextlib.contextmanager
def _checks(project: Project) -> Iterator[None]:
    """Run the worker's health check as systemd's timer would, so that `podman ps` shows it."""
    ended = threading.Event()

    def turn() -> None:
        while not ended.wait(5):
            project.is_healthy("connect")

    thread = threading.Thread(target=turn, daemon=True)
    if not Path("/run/systemd/private").exists():
        thread.start()
    try:
        yield
    finally:
        ended.set()
        if thread.is_alive():
            thread.join(60)
