"""The demo's servers: started in a folder of their own, stopped at the end, or left running and stopped by a later call.

What is left running is written to one file in the user's state folder, so that `connect-py demo --stop` finds it.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from connect_py.app.demo.databases import DemoDatabase, Postgres
from connect_py.app.services.guard import started_at
from connect_py.app.services.kafka import KafkaBroker
from connect_py.app.services.process import Service, free_port, is_listening
from connect_py.app.services.worker import Worker
from connect_py.errors import ConnectError

#: Where a person expects the REST API; a free port is taken when something is there already.
REST_PORT = 8083

#: Of workers in a group: the demo shows within seconds what takes the defaults' 10 s and five minutes. On a busy machine a heartbeat can be
#: late by a second or two, so the session is not shorter.
GROUP_SETTINGS = {"session.timeout.ms": "6000", "heartbeat.interval.ms": "1000", "scheduled.rebalance.max.delay.ms": "2000"}

#: How long `--stop` waits for a server before it is killed, in seconds.
STOP_SECONDS = 30.0


@dataclass(frozen=True)
class LeftRunning:
    """One process that outlives the demo, and when it started, so that another one with the same id is not taken for it."""

    name: str
    pid: int
    started: str
    signal: int


class Stage:
    """The servers and the folder. Everything belongs to the main thread.

    Attributes:
        folder: for logs, configuration and the lakehouse's warehouse.
        database: the source's.
        kafka: the broker, once started.
        workers: those that were started, of one group.
    """

    kafka: KafkaBroker

    def __init__(self, database: DemoDatabase | None = None) -> None:
        """Make the folder; without a database it is PostgreSQL."""
        self.database = database or Postgres()
        self.folder = Path(tempfile.mkdtemp(prefix="connect-py-demo-"))
        self.workers: list[Worker] = []
        self._started: list[tuple[Service, int]] = []

    @property
    def warehouse(self) -> Path:
        """The lakehouse's folder."""
        return self.folder / "warehouse"

    def start_kafka(self) -> KafkaBroker:
        """Start the broker."""
        self.kafka = KafkaBroker(self.folder / "kafka")
        self._started.append((self.kafka.service, signal.SIGTERM))
        return self.kafka

    def start_database(self) -> str:
        """Start the database; returns where it is, for people."""
        where = self.database.start(self.folder / "database")
        self._started.append((self.database.service, self.database.stop_signal))
        return where

    @property
    def worker(self) -> Worker:
        """A worker that runs: the first one, until it is killed."""
        return next(worker for worker in self.workers if worker.service.is_alive())

    def start_workers(self, count: int) -> None:
        """Start the workers of a group, on 8083 and the ports after it where these are free."""
        properties = {"file.connectors.allowed.paths": str(self.folder)}
        for number in range(count):
            port = REST_PORT + number
            if count > 1:
                properties |= GROUP_SETTINGS
            if number:
                properties |= group_names(self.workers[0].properties)
            worker = Worker(
                self.folder / (f"worker-{number + 1}" if number else "worker"),
                self.kafka.bootstrap,
                port=free_port() if is_listening(port) else port,
                properties=properties,
            )
            self.workers.append(worker)
            self._started.append((worker.service, signal.SIGTERM))

    def restart_worker(self, worker: Worker) -> None:
        """Start a killed worker again, with the same properties and port."""
        self._started = [(service, number) for service, number in self._started if service is not worker.service]
        worker.restart()
        self._started.append((worker.service, signal.SIGTERM))

    @property
    def has_logs(self) -> bool:
        """Whether a server was started."""
        return bool(self._started)

    def stop(self, *, keep_folder: bool = False) -> None:
        """Stop all servers, the worker first, and delete the data; also the folder with the logs, unless it is to be kept."""
        while self._started:
            service, with_signal = self._started.pop()
            service.stop(with_signal=with_signal)
        if not keep_folder:
            shutil.rmtree(self.folder, ignore_errors=True)
        for folder in self._folders():
            shutil.rmtree(folder, ignore_errors=True)

    def leave_running(self) -> None:
        """Let all servers that run outlive this process, and write down which they are."""
        running = [(service, with_signal) for service, with_signal in self._started if service.is_alive()]
        left = [LeftRunning(service.name, service.pid, started_at(service.pid), with_signal) for service, with_signal in running]
        folders = [str(self.folder), *map(str, self._folders())]
        state = state_file()
        state.parent.mkdir(parents=True, exist_ok=True)
        state.write_text(json.dumps({"processes": [asdict(process) for process in left], "folders": folders}))
        for service, _ in running:
            service.leave_running()

    def _folders(self) -> list[Path]:
        """Return the database's folders outside of this one, once it has been started."""
        return self.database.folders() if hasattr(self.database, "service") else []


def group_names(properties: Mapping[str, str]) -> dict[str, str]:
    """Return what workers of one group have in common: the group's name and the internal topics."""
    return {name: value for name, value in properties.items() if name == "group.id" or name.endswith(".storage.topic")}


def state_file() -> Path:
    """Return the file that says what was left running."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state") / "connect-py/demo.json"


def stop_what_was_left() -> list[str]:
    """Stop what an earlier demo left running, and delete its folders; returns what was stopped.

    Raises:
        ConnectError: no demo was left running.
    """
    file = state_file()
    if not file.exists():
        raise ConnectError("No demo was left running.")
    state = json.loads(file.read_text())
    stopped = []
    for process in reversed([LeftRunning(**fields) for fields in state["processes"]]):
        if is_still(process):
            os.kill(process.pid, process.signal)
            _await_end(process)
            stopped.append(process.name)
    for folder in state["folders"]:
        shutil.rmtree(folder, ignore_errors=True)
    file.unlink()
    return stopped


def is_still(process: LeftRunning) -> bool:
    """Return whether the process runs and is not another one with the same id."""
    return started_at(process.pid) == process.started != ""


def _await_end(process: LeftRunning) -> None:
    deadline = time.monotonic() + STOP_SECONDS
    while is_still(process):
        if time.monotonic() > deadline:
            os.kill(process.pid, signal.SIGKILL)
            return
        time.sleep(0.1)
