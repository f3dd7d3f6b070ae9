"""docker-compose.yaml comes up, Debezium's tutorial is sent to it, the worker is killed, a second one and one with Spark come, and go.

podman-compose reads the file as it is, with `compose.override.yaml` for the network. The containers share a network namespace that is made
here, so that no port of this machine is taken. podman's health checks need systemd's timers; where there is none, a thread runs them.
"""

from __future__ import annotations

import ast
import contextlib
import json
import os
import re
import shlex
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
from confluent_kafka import Consumer, KafkaException, TopicPartition
c = Consumer({"bootstrap.servers": "kafka:9092", "group.id": "test", "enable.auto.commit": False})
t = TopicPartition(sys.argv[1], 0, 0)
try: _, end = c.get_watermark_offsets(t, timeout=20)
except KafkaException: end = 0  # there is no such topic yet
c.assign([t])
found = []
while len(found) < end:
    m = c.poll(10)
    if m is None: break
    if m.value(): found.append([json.loads(m.value())["payload"][k] for k in ("op", "after")])
print(json.dumps(found))
"""


WORKERS = ("connect", "connect-2", "lakehouse")


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
            *(part for profile in ("cluster", "lakehouse") for part in ("--profile", profile)),
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
        return "\n".join(f"--- {name}\n" + self._log(name) for name in ("kafka", "postgres", *WORKERS))

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
            with _checks(project, *WORKERS[1:]):
                _second_worker(project)
                _lakehouse(project)
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
    project.compose("up", "-d", "kafka", "postgres", "connect")
    with _checks(project, "connect"):
        for service in ("kafka", "postgres", "connect"):
            wait_until(lambda service=service: project.is_healthy(service), f"{service} to be healthy")  # type: ignore[misc]
        say(f"compose up: kafka, postgres and connect are healthy after {time.monotonic() - began:.0f} s")
        url = "localhost:8083"
        headers = ("-H", "Accept:application/json", "-H", "Content-Type:application/json")
        created = project.curl("-X", "POST", *headers, f"{url}/connectors/", "-d", json.dumps(CONNECTOR))
        if not created or created.get("name") != CONNECTOR["name"]:
            raise ImageTestError(f"POST /connectors answered {created}")
        status = f"{url}/connectors/inventory-connector/status"
        wait_until(lambda: _runs(project.curl(status)), "the connector to run")
        topic = "dbserver1.inventory.customers"
        wait_until(_holds(project, topic, [["r", number] for number in (1001, 1002, 1003, 1004)]), "the snapshot's four customers")
        _sql(project, "INSERT INTO inventory.customers VALUES (default, 'Sarah', 'Thompson', 'kitt@acme.com')")
        wait_until(lambda: [row["email"] for op, row in project.records(topic) if op == "c"] == ["kitt@acme.com"], "the new customer")
        say("the tutorial's curl lines: a connector, four rows of the snapshot, one insert")

        # what is not stored yet would rightly come again
        stored = f"{url}/connectors/inventory-connector/offsets"
        wait_until(lambda: _is_streaming(project.curl(stored)), "offsets of the stream to be stored")
        pid = project.state("connect")["Pid"]
        os.kill(pid, signal.SIGKILL)
        _sql(project, "UPDATE inventory.customers SET first_name = 'Anne Marie' WHERE id = 1004")
        killed = time.monotonic()
        wait_until(lambda: project.state("connect")["Running"] and project.state("connect")["Pid"] != pid, "the worker's restart")
        wait_until(lambda: _runs(project.curl(status)), "the connector to run again")
        wait_until(lambda: [row["id"] for op, row in project.records(topic) if op == "u"] == [1004], "the update made while it was down")
        found = [[op, row["id"]] for op, row in project.records(topic)]
        if [op for op, _ in found[:5]] != ["r"] * 4 + ["c"] or found[5:] not in ([["u", 1004]], [["c", 1005], ["u", 1004]]):
            raise ImageTestError(f"After the kill the topic holds {found}")
        took = time.monotonic() - killed
        say(f"kill -9 of the worker: its restart policy brought it back, and the change made meanwhile is there after {took:.0f} s")


def _second_worker(project: Project) -> None:
    """The profile `cluster`: two workers of one group, each of which shows and changes what the other has."""
    began = time.monotonic()
    project.compose("up", "-d", "--no-recreate", "connect-2")
    wait_until(lambda: project.is_healthy("connect-2"), "connect-2 to be healthy")
    both = [project.curl(f"localhost:{port}/connectors") for port in (8083, 8084)]
    if both != [["inventory-connector"]] * 2:
        raise ImageTestError(f"The two workers list {both}")
    took = time.monotonic() - began
    stopping = time.monotonic()
    project.podman("stop", "-t", "30", project.container("connect"))
    status = "localhost:8084/connectors/inventory-connector/status"

    def moved() -> bool:
        found = project.curl(status)
        return _runs(found) and found["tasks"][0]["worker_id"] == "connect-2:8084"

    wait_until(moved, "the task to run on the second worker")
    waited = time.monotonic() - stopping
    project.podman("start", project.container("connect"))
    wait_until(lambda: project.is_healthy("connect"), "connect to be healthy again")
    say(f"profile cluster: the second is healthy after {took:.0f} s; a task runs there {waited:.0f} s after the first is stopped")


def _lakehouse(project: Project) -> None:
    """The profile `lakehouse`, with the requests and commands of docs/sinks/lakehouse.md."""
    began = time.monotonic()
    project.compose("up", "-d", "--no-recreate", "lakehouse")
    wait_until(lambda: project.is_healthy("lakehouse"), "lakehouse to be healthy")
    took = time.monotonic() - began
    page = (ROOT / "docs" / "sinks" / "lakehouse.md").read_text().partition("## Create the sink")[0]
    posts = re.findall(r"curl -s -X POST -H '(.+?)' localhost:8087/connectors -d '(.+?)'\n", page, re.S)
    shown, checked = re.findall(r"docker compose exec lakehouse (.+)", page)
    if len(posts) != 2:
        raise ImageTestError(f"docs/sinks/lakehouse.md has {len(posts)} requests")
    sent = time.monotonic()
    for header, body in posts:
        body = body.replace('"topic.prefix"', '"slot.name": "lakehouse", "publication.name": "lakehouse", "topic.prefix"')
        answer = project.curl("-X", "POST", "-H", header, "localhost:8087/connectors", "-d", body.replace("dbserver1", "lake"))
        if not answer or "name" not in answer:
            raise ImageTestError(f"POST /connectors answered {answer}")
    _sql(project, "UPDATE inventory.customers SET first_name = 'Anne' WHERE id = 1001")

    def names() -> list[str]:
        done = project.podman("exec", project.container("lakehouse"), *shlex.split(shown), check=False)
        with contextlib.suppress(ValueError, SyntaxError):
            return sorted(row["first_name"] for row in ast.literal_eval(done.stdout))
        return []

    wanted = ["Anne", "Anne Marie", "Edward", "George", "Sarah"]
    wait_until(lambda: names() == wanted, f"the table to hold {wanted}")
    waited = time.monotonic() - sent
    say(f"profile lakehouse: healthy after {took:.0f} s; the page's command shows five rows {waited:.0f} s after its requests")
    said = project.execute("lakehouse", *shlex.split(checked.replace("8083", "8087")))
    say(f"and its other one: {said.strip().splitlines()[-1]}")


def _runs(status: Any) -> bool:
    return bool(status and status.get("tasks") and status["tasks"][0]["state"] == "RUNNING")


def _is_streaming(stored: Any) -> bool:
    return bool(stored and stored["offsets"] and "snapshot" not in stored["offsets"][0]["offset"])


def _holds(project: Project, topic: str, wanted: list[list[Any]]) -> Callable[[], bool]:
    return lambda: [[op, row["id"]] for op, row in project.records(topic)] == wanted


def _sql(project: Project, statement: str) -> None:
    project.execute("postgres", "psql", "-U", "postgres", "-v", "ON_ERROR_STOP=1", "-c", statement)


@contextlib.contextmanager
def _checks(project: Project, *services: str) -> Iterator[None]:
    """Run health checks as systemd's timer would, so that `podman ps` shows it."""
    ended = threading.Event()

    def turn() -> None:
        while not ended.wait(5):
            for service in services:
                project.is_healthy(service)

    thread = threading.Thread(target=turn, daemon=True)
    if not Path("/run/systemd/private").exists():
        thread.start()
    try:
        yield
    finally:
        ended.set()
        if thread.is_alive():
            thread.join(60)
