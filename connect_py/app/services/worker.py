"""A Connect worker of this project as a child process, with internal topics of its own."""

from __future__ import annotations

import json
import os
import signal
import sys
import urllib.error
import urllib.request
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import connect_py
from connect_py.app.services.kafka import QUICK_START
from connect_py.app.services.process import Service, ServiceError, child_pids, command_of, free_port, wait_until
from connect_py.host.facts import FACTS_PROCESS
from connect_py.task.fork_server import FORK_SERVER

#: Offsets are flushed every two seconds, as the reference's rig does; a minute, Connect's default, would make every test wait.
DEFAULTS = {
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "config.storage.replication.factor": "1",
    "offset.storage.replication.factor": "1",
    "status.storage.replication.factor": "1",
    "offset.storage.partitions": "5",
    "status.storage.partitions": "2",
    "offset.flush.interval.ms": "2000",
    "file.connectors.allowed.paths": "/",
}

#: Kind of internal topic to the end of its name.
TOPICS = {"config": "configs", "offset": "offsets", "status": "status"}


class RefusedError(ServiceError):
    """A request was answered with an error.

    Args:
        status: the answer's HTTP status.
        message: the answer's `message`, or its text when it has none.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status
        self.message = message


class Worker:
    """A running `connect-py distributed`.

    Attributes:
        url: of the REST API, without a slash at the end.
        group: group.id; also the prefix of the internal topics.
        properties: the worker's configuration.
        service: the process; another one after each `restart`.
    """

    def __init__(
        self,
        folder: Path,
        bootstrap: str,
        *,
        port: int | None = None,
        properties: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
        python: str = sys.executable,
        command: Sequence[str] | None = None,
        headers: Mapping[str, str] | None = None,
        seconds: float = 180,
    ) -> None:
        """Write the properties file and start the worker; returns when it answers `GET /connectors`.

        Args:
            folder: for `worker.properties` and `worker.log`.
            bootstrap: the broker's address.
            port: of the REST API; a free one by default.
            properties: added to, or instead of, the usual ones.
            env: variables added to this process's; a Spark sink's JVM gets options for a quick start unless JDK_JAVA_OPTIONS is set.
            python: the interpreter whose environment the worker runs in.
            command: starts another worker than this project's; the properties file's path follows it.
            headers: of every request: a login.
            seconds: how long the worker may take to start.

        Raises:
            ServiceError: it ended or did not answer; the text holds the end of its log.
        """
        folder.mkdir(parents=True, exist_ok=True)
        port = port or free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.group = f"connect-{uuid.uuid4().hex[:8]}"
        self.properties = {
            "bootstrap.servers": bootstrap,
            "group.id": self.group,
            **{f"{kind}.storage.topic": f"{self.group}-{topic}" for kind, topic in TOPICS.items()},
            "listeners": self.url,
            "rest.advertised.host.name": "127.0.0.1",
            "rest.advertised.port": str(port),
            **DEFAULTS,
            **(properties or {}),
        }
        self._file = folder / "worker.properties"
        self._headers = {"Content-Type": "application/json", **(headers or {})}
        self._seconds = seconds
        self._command = command or [python, "-P", "-m", "connect_py.app.cli", "distributed"]
        self._log = folder / "worker.log"
        paths = [str(Path(connect_py.__file__).parent.parent), os.environ.get("PYTHONPATH")]
        java = os.environ.get("JDK_JAVA_OPTIONS") or " ".join(QUICK_START)
        self._env = {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "JDK_JAVA_OPTIONS": java, **(env or {})}
        self.service = self._start()

    def _start(self) -> Service:
        self._file.write_text("".join(f"{name}={value}\n" for name, value in self.properties.items()))
        service = Service("the worker", [*self._command, str(self._file)], self._log, env=self._env)
        service.wait_ready(self._answers, self._seconds)
        return service

    def _answers(self) -> bool:
        try:
            self.request("GET", "/connectors")
        except (OSError, RefusedError):
            return False
        return True

    @property
    def pid(self) -> int:
        """The worker process's id; the tasks are its children."""
        return self.service.pid

    @property
    def log(self) -> Path:
        """The worker's log."""
        return self._log

    def topic(self, kind: str) -> str:
        """Return the name of an internal topic: `config`, `offset` or `status`."""
        return self.properties[f"{kind}.storage.topic"]

    def request(self, method: str, path: str, body: object = None, timeout: float = 100) -> Any:
        """Send one request; returns the answer's JSON, None when it has no content.

        Raises:
            RefusedError: a status of 400 or more.
            OSError: no connection.
        """
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, method=method, headers=self._headers)  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:  # noqa: S310
                content = answer.read()
        except urllib.error.HTTPError as error:
            raise RefusedError(error.code, _message(error.read())) from None
        return json.loads(content) if content else None

    def create(self, name: str, config: Mapping[str, str], tasks: int = 1) -> None:
        """Create a connector and wait until it and its tasks run. Raises what `request` and `wait_for` raise."""
        self.request("POST", "/connectors", {"name": name, "config": dict(config)})
        self.wait_for(name, "RUNNING", tasks)

    def status(self, name: str) -> dict[str, Any]:
        """The answer of GET status; raises what `request` raises."""
        found: dict[str, Any] = self.request("GET", f"/connectors/{name}/status")
        return found

    def wait_for(self, name: str, state: str, tasks: int = 1, seconds: float = 180) -> dict[str, Any]:
        """Wait until this many tasks are in a state (UNASSIGNED, RUNNING, FAILED …); returns the status.

        Raises:
            ServiceError: they were not in time; the text holds the last status.
        """
        last: dict[str, Any] = {}

        def reached() -> bool:
            nonlocal last
            try:
                last = self.status(name)
            except RefusedError:
                return False
            return len([task for task in last["tasks"] if task["state"] == state]) >= tasks

        try:
            wait_until(reached, seconds, f"{tasks} tasks of {name} {state}", self.service.is_alive)
        except ServiceError as error:
            raise ServiceError(f"{error}; the last status: {json.dumps(last)}") from None
        return last

    def delete(self, name: str) -> None:
        """Delete a connector; one that does not exist is fine."""
        try:
            self.request("DELETE", f"/connectors/{name}")
        except RefusedError as error:
            if error.status != 404:
                raise

    def children(self) -> list[int]:
        """Return the ids of the processes that run tasks: children of the worker, or of the server that it has them forked from."""
        found = child_pids(self.pid)
        servers = [pid for pid in found if any(FORK_SERVER in word for word in command_of(pid))]
        children = {*found, *(task for server in servers for task in child_pids(server))} - {*servers}
        return sorted(pid for pid in children if not any(FACTS_PROCESS in word for word in command_of(pid)))

    def stop(self) -> None:
        """Ask the worker to end (SIGTERM) and wait."""
        self.service.stop(seconds=40, with_signal=signal.SIGTERM)

    def kill(self) -> None:
        """End the worker at once, as a power cut would (SIGKILL)."""
        self.service.kill()

    def restart(self, properties: Mapping[str, str] | None = None) -> None:
        """Stop the worker if it runs, start it again on the same port, and wait until it answers. Properties are added to, or replace, what
        it has."""
        if self.service.is_alive():
            self.stop()
        self.properties.update(properties or {})
        self.service = self._start()


def _message(content: bytes) -> str:
    try:
        return str(json.loads(content)["message"])
    except (ValueError, KeyError, TypeError):
        return content.decode(errors="replace")
