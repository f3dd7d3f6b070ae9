"""A group of workers: herder, applier, hosts of connectors and tasks, membership and assignor are the product's. Configuration and status
topics, the group's coordinator, task processes and the requests of clients are simulated; each worker has its own threads (`fibers`).

A task writes while it lives and its lease lasts. No two processes of one task may write in turns, and in the end every task that is
configured runs once, with the newest configuration.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from connect_py.api import ConfigDef, ConfigKey, ConfigType, SourceConnector
from connect_py.api.storage import TargetState
from connect_py.config.worker import WorkerConfig
from connect_py.errors import ConnectError, RetriableError
from connect_py.group.assignor import Assignor
from connect_py.group.membership import GroupTimings, Membership
from connect_py.group.peers import Peers, UnsentError
from connect_py.group.protocol import GroupProtocol, WorkerDetails
from connect_py.herder.applier import Applier
from connect_py.herder.base import MisdirectedError
from connect_py.herder.modes import DistributedHerder
from connect_py.herder.session_key import InternalSignature
from connect_py.host.process import Event, Exited
from connect_py.plugins.registry import Plugins
from offsets.config_store import COMMIT
from offsets.local_stores import MemoryOffsetStore
from tests.sim.chance import Chance, Crash, Violation, Weighted
from tests.sim.fibers import Fibers, FiberThreads, Owner
from tests.sim.group import HEARTBEAT_SECONDS, REBALANCE_SECONDS, SESSION_SECONDS, Coordinator, SimGroupClient
from tests.sim.topics import SimConfigStore, SimStatusStore, Topic

CLASS = "tests.sim.Connector"
NAMES = ("a", "b", "c")
#: Choices until the world is quiet, and seconds of simulated time that the workers have from then on.
CHOICES, QUIET_SECONDS = 1200, 240.0
#: Real seconds never pass: a run that makes so many choices has got stuck.
MOST_CHOICES = 60_000

_JSON = "org.apache.kafka.connect.json.JsonConverter"


class SimConnector(SourceConnector):
    """Has as many tasks as its configuration says, each with its version."""

    java_name = CLASS
    java_task_name = "tests.sim.Task"
    version = "1"

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef([ConfigKey("v", ConfigType.STRING, ""), ConfigKey("n", ConfigType.INT, 1)])

    def start(self, config: Mapping[str, str]) -> None:
        self._config = config

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [{"v": self._config["v"], "task": str(number)} for number in range(int(self._config["n"]))]

    def task_class(self) -> Any:
        raise AssertionError("tasks run in processes of their own")


PLUGINS = Plugins(
    {
        CLASS: SimConnector,
        _JSON: "connect_py.converters.json_converter:JsonConverter",
        "org.apache.kafka.connect.storage.SimpleHeaderConverter": "connect_py.converters.primitive:SimpleHeaderConverter",
    }
)


@functools.cache
def worker_config(delay_ms: int) -> WorkerConfig:
    """Return the properties of all workers."""
    return WorkerConfig.parse(
        {
            "bootstrap.servers": "none:1",
            "group.id": "g",
            "key.converter": _JSON,
            "value.converter": _JSON,
            "config.storage.topic": "c",
            "offset.storage.topic": "o",
            "status.storage.topic": "s",
            "session.timeout.ms": str(int(SESSION_SECONDS * 1000)),
            "heartbeat.interval.ms": str(int(HEARTBEAT_SECONDS * 1000)),
            "rebalance.timeout.ms": str(int(REBALANCE_SECONDS * 1000)),
            "scheduled.rebalance.max.delay.ms": str(delay_ms),
            "task.shutdown.graceful.timeout.ms": "3000",
            "source.facts.interval.ms": "0",
            "task.fork.server": "false",
        }
    )


class ClusterPieces:
    """What a run takes of the product. A planted bug gives another piece in one place."""

    membership: type[Membership] = Membership
    applier: type[Applier] = Applier
    assignor: type[Assignor] = Assignor
    configs: type[SimConfigStore] = SimConfigStore


class SimProcess:
    """A task's process (`connect_py.host.process.TaskProcess`), with the task in it."""

    def __init__(self, world: ClusterWorld, worker: Worker, start: Mapping[str, Any], on_event: Callable[[Event], None]) -> None:
        self.world, self.worker, self.start = world, worker, start
        self.task = (str(start["connector"]), int(start["task"]))
        self.version = str(start["task_config"].get("v"))
        self.pid = world.next_pid()
        self.paused = bool(start["paused"])
        self.until = -1.0 if start["leased"] else 1e12
        self.state = "starting"
        self.ends_at = 1e12  # by when it is killed that was asked to stop
        self._events: list[Event] = []
        self._on_event = on_event

    @property
    def is_alive(self) -> bool:
        """Whether its end has not been noticed yet."""
        return self.state != "gone" or bool(self._events)

    def send(self, message: Mapping[str, Any]) -> None:
        """Take a message of the worker."""
        match message["type"]:
            case "lease":
                if self.until > 0 or message["until"] > self.world.fibers.seconds:
                    self.until = max(self.until, message["until"])
            case "pause" | "resume":
                self.paused = message["type"] == "pause"

    def stop(self, timeout_seconds: float) -> None:
        """Ask the task to end."""
        if self.ends_at > 1e11:
            self.ends_at = self.world.fibers.seconds + timeout_seconds + 0.5

    def kill(self) -> None:
        """End the process at once."""
        self._end(-9)

    # -- what the process does

    def step(self) -> None:
        """Do something."""
        self._deliver()
        if self.state == "gone":
            return
        now = self.world.fibers.seconds
        if 0 < self.until < now or now > self.ends_at or not self.worker.owner.is_alive:
            self._end(-9)
        elif self.state == "starting":
            if self.until > 0:
                self.state = "paused" if self.paused else "running"
                self._say(self.state)
        elif self.ends_at < 1e11:
            if not self.world.chance.happens(0.3):
                return
            self._events.append({"type": "stopped"})
            self._end(0)
        elif self.paused != (self.state == "paused"):
            self.state = "paused" if self.paused else "running"
            self._say(self.state)
        elif self.state == "running":
            self.world.written(self)

    def dies(self) -> None:
        """The kernel's out-of-memory killer."""
        self._end(-9)

    def _say(self, state: str) -> None:
        self._events.append({"type": "state", "state": "PAUSED" if state == "paused" else "RUNNING"})

    def _end(self, code: int) -> None:
        if self.state != "gone":
            self.state = "gone"
            self._events.append(Exited(code, ()))
            self.world.note("   process %d of %s-%d ends (%d)", self.pid, *self.task, code)

    def _deliver(self) -> None:
        if self._events and not self.worker.owner.is_frozen:
            event = self._events.pop(0)
            if self.worker.owner.is_alive:
                self._on_event(event)


class _Launcher:
    def __init__(self, world: ClusterWorld, worker: Worker) -> None:
        self._world, self._worker = world, worker

    def begin(self) -> None:
        """Nothing is forked."""

    def run(self, name: str, start: Mapping[str, Any], on_event: Callable[[Event], None], **_: Any) -> SimProcess:
        """Start a process."""
        if not self._worker.owner.is_alive:
            raise Crash
        process = SimProcess(self._world, self._worker, start, on_event)
        self._world.processes.append(process)
        self._world.note(
            "   %s starts process %d of %s-%d, version %s", self._worker.owner.name, process.pid, *process.task, process.version
        )
        self._world.started(process)
        return process

    def close(self) -> None:
        """Nothing is left."""


class _Peers(Peers):
    """Requests to other workers, which may be lost, or their answers."""

    def __init__(self, world: ClusterWorld) -> None:
        super().__init__()
        self._world = world

    def put_task_configs(
        self, leader_url: str | None, connector: str, configs: Sequence[Mapping[str, str]], sign: Callable[[bytes], Mapping[str, str]]
    ) -> None:
        if leader_url is None:
            raise RetriableError("The group's leader is not known.")
        body = repr(configs).encode()
        headers = sign(body)
        self._world.wait_a_little()
        worker = self._world.at(leader_url)
        if worker is None or self._world.loses_request():
            raise UnsentError("The worker does not listen.")
        self._world.call(worker, lambda herder: herder.put_task_configs(connector, lambda: configs, signature(headers, body)))
        if self._world.loses_request():
            raise RetriableError("The connection ended before the answer.")


def signature(headers: Mapping[str, str], body: bytes) -> InternalSignature | None:
    """Return the signature of a request."""
    return InternalSignature.of_headers(headers.get("X-Connect-Request-Signature-Algorithm"), headers.get("X-Connect-Authorization"), body)


class Worker:
    """One worker's process.

    Attributes:
        read: how far it had read the configuration when it last asked for a round.
    """

    def __init__(self, world: ClusterWorld, number: int) -> None:
        fibers = world.fibers
        world.lives += 1
        self.number = number
        self.url = f"http://w{number}:1/"
        self.owner = Owner(f"w{number}.{world.lives}")
        self.threads = threads = FiberThreads(fibers, self.owner)
        config = worker_config(world.delay_ms)
        self.configs = world.pieces.configs(world.config_topic, self.owner, lambda: world.interrupted(self))
        self.statuses = SimStatusStore(world.status_topic, fibers)
        client_id = f"connect-w{number}:1"
        self.client = SimGroupClient(world.coordinator, fibers, threads, self.owner, world.chance, client_id)
        self.client.loses = world.loses_request  # type: ignore[method-assign]
        self.client.begins = self._note_read  # type: ignore[method-assign]
        self.membership = world.pieces.membership(
            lambda: self.client,
            world.pieces.assignor(world.delay_ms),
            url=self.url,
            preferred=GroupProtocol.SESSIONED,
            timings=GroupTimings.parse(config.raw),
            client_id=client_id,
            details=WorkerDetails(version="1"),
            clock=threads.now,
            threads=threads,
        )
        self.applier = world.pieces.applier(
            config,
            PLUGINS,
            self.configs,  # type: ignore[arg-type]
            self.statuses,  # type: ignore[arg-type]
            MemoryOffsetStore(),
            admin=None,  # type: ignore[arg-type]  # there are no sinks
            assignment=self.membership,
            worker_id=f"w{number}:1",
            cluster_id="k",
            task_command=[],
            peers=_Peers(world),
            threads=threads,
            launcher=_Launcher(world, self),  # type: ignore[arg-type]
            lease_clock=threads.now,
        )
        self.herder = DistributedHerder(self.applier)
        self.has_started = False
        self.read = -1
        threads.start("main", self._start)

    def _note_read(self) -> None:
        self.read = self.configs.snapshot().offset

    def _start(self) -> None:
        self.herder.start()
        self.has_started = True


class ClusterWorld:
    """A run.

    Args:
        chance: decides everything.
        pieces: what of the product is run.
    """

    def __init__(self, chance: Chance, pieces: ClusterPieces) -> None:
        self.chance, self.pieces = chance, pieces
        self.fibers = Fibers(chance, self._act)
        self.coordinator = Coordinator(self.fibers)
        self.config_topic, self.status_topic = Topic(), Topic()
        self.workers: dict[int, Worker] = {}
        self.processes: list[SimProcess] = []
        self.wanted: dict[str, dict[str, str]] = {}
        self.lives = 0
        self._pids = 0
        self._choices = 0
        self._versions = 0
        self._is_quiet = False
        self._quiet_until = 0.0
        self._writers: dict[tuple[str, int], int] = {}
        self._superseded: set[int] = set()
        self._requests = 0
        self._broken = ""
        self._kill_in_write: Worker | None = None
        self._frozen_until: dict[int, float] = {}
        self._silent_until = 0.0
        self._rested = 0.0
        self._count = 1 + chance.below(3)
        self.delay_ms = chance.pick((0, 5000, 20000))
        self._loss = chance.pick((0.0, 0.0, 0.05, 0.2))

        def often(weight: float) -> float:
            return weight * chance.pick((0.0, 0.5, 1.0, 3.0))

        self._actions = Weighted(
            [
                (self._group_progresses, 20),
                (self._records_are_read, 20),
                (self._processes_step, 25),
                (self._request, 2.0 * chance.pick((0.5, 1.0, 2.0))),
                (self._time_passes, 6),
                (self._compaction, 1),
                (self._worker_killed, often(0.25)),
                (self._worker_killed_in_write, often(0.2)),
                (self._worker_frozen, often(0.2)),
                (self._process_dies, often(0.3)),
                (self._broker_falls_silent, often(0.2)),
            ]
        )

    # -- the run

    def run(self) -> None:
        """Run until the world is quiet and everything runs as it is configured. Raises Violation."""
        for number in range(self._count):
            self.workers[number] = Worker(self, number)
        self.fibers.run()

    def note(self, text: str, *values: object) -> None:
        """Add to the story."""
        self.chance.note("%.2f " + text, self.fibers.seconds, *values)

    def next_pid(self) -> int:
        """Return the number of the next process."""
        self._pids += 1
        return self._pids

    def wait_a_little(self) -> None:
        """In a worker's thread: a request is on its way."""
        self.fibers.wait(bool, self.chance.random.random() * 0.3)

    def loses_request(self) -> bool:
        """Return whether the next request or answer is lost."""
        return not self._is_quiet and self._loss > 0 and self.chance.happens(self._loss)

    def at(self, url: str) -> Worker | None:
        """Return the worker that answers at an address."""
        worker = next((worker for worker in self.workers.values() if worker.url == url), None)
        return worker if worker is not None and worker.owner.is_alive and worker.has_started else None

    def call(self, worker: Worker, request: Callable[[DistributedHerder], Any]) -> Any:
        """In a worker's thread: have another one answer a request. Raises what it answers."""
        done: list[tuple[Any, Exception | None]] = []

        def answer() -> None:
            try:
                done.append((request(worker.herder), None))
            except Exception as error:  # noqa: BLE001  # it is the answer
                done.append((None, error))

        worker.threads.start("rest", answer)
        if not self.fibers.wait(lambda: bool(done) or not worker.owner.is_alive, 90.0) or not done:
            raise RetriableError("The connection ended before the answer.")
        value, error = done[0]
        if error is not None:
            raise error
        return value

    def written(self, process: SimProcess) -> None:
        """A task writes to Kafka. Raises Violation: another process of it has written since."""
        last = self._writers.get(process.task, 0)
        if self._is_cut_off_alone(process.worker):
            return  # and whoever has the task by now goes on
        if process.pid in self._superseded:
            raise Violation(
                f"two at once: process {process.pid} of {process.task[0]}-{process.task[1]} on {process.worker.owner.name} writes after "
                f"process {last} has"
            )
        if last != process.pid:
            self._superseded.add(last)
            self._writers[process.task] = process.pid

    def started(self, process: SimProcess) -> None:
        """Note it if tasks of an older set run still, although both workers had read of the newest one before they asked for a round. (What
        a worker reads while it waits for a round to begin is in what it says of itself, as with Kafka Connect.)"""
        name = process.task[0]
        key = (COMMIT + name).encode()
        committed = max((offset for offset, (found, _) in self.config_topic.records.items() if found == key), default=-1)
        for other in self.processes:
            is_of_older_set = other.task[0] == name and other.version != process.version and other.state != "gone"
            if is_of_older_set and other.worker.owner.is_alive and min(other.worker.read, process.worker.read) > committed:
                self._broken = (
                    f"two sets at once: {name}-{process.task[1]}, version {process.version}, is started while {name}-{other.task[1]}, "
                    f"version {other.version}, runs on {other.worker.owner.name}"
                )

    def _is_cut_off_alone(self, worker: Worker) -> bool:
        """A worker that is alone in its group keeps its lease without heartbeats; docs/guarantees.md says what a second one then means."""
        return worker.client.is_alone and self.fibers.seconds > worker.client.heard + worker.membership.lease_seconds

    def interrupted(self, worker: Worker) -> None:
        """Called before each record that a worker writes to the configuration topic."""
        if self._kill_in_write is worker and self.chance.happens(0.4):
            self._kill_in_write = None
            self._kill(worker)
            raise Crash

    # -- each choice

    def _act(self) -> None:
        self._choices += 1
        if self._broken:
            raise Violation(self._broken)
        if self._choices > MOST_CHOICES:
            raise Violation(f"stuck: {self._described()}")
        now = self.fibers.seconds
        self.coordinator.watch()
        for number, until in list(self._frozen_until.items()):
            if now >= until:
                del self._frozen_until[number]
                self.workers[number].owner.is_frozen = False
                self.note("  %s wakes", self.workers[number].owner.name)
        silent = now < self._silent_until
        self.coordinator.is_silent = self.config_topic.is_silent = self.status_topic.is_silent = silent
        for number, worker in list(self.workers.items()):
            if not worker.owner.is_alive and (self._is_quiet or self.chance.happens(0.02)):
                self.workers[number] = Worker(self, number)
                self.note("  %s starts", self.workers[number].owner.name)
        if not self._is_quiet:
            self._actions.draw(self.chance)()
            if self._choices >= CHOICES:
                self._become_quiet()
            return
        self._group_progresses()
        self._records_are_read()
        for process in list(self.processes):
            process.step()
        self._forget_gone()
        if self._choices % 8 == 0:
            self._look_for_rest()

    def _become_quiet(self) -> None:
        self._is_quiet = True
        self._kill_in_write = None
        self._silent_until = 0.0
        self._frozen_until = dict.fromkeys(self._frozen_until, 0.0)
        self._quiet_until = self.fibers.seconds + QUIET_SECONDS
        self.note("the world is quiet")

    def _look_for_rest(self) -> None:
        problem = self._problem()
        if problem is None:
            self._rested += 1
            if self._rested >= 5:
                self.fibers.finish()
        else:
            self._rested = 0
            if self.fibers.seconds > self._quiet_until:
                raise Violation(f"not as configured: {problem}; {self._described()}")

    def _problem(self) -> str | None:
        """Return what is not as it is configured."""
        if self._requests:
            return "a request is not answered"
        worker = next(iter(self.workers.values()))
        snapshot = worker.configs.snapshot()
        if any(each.configs.snapshot().offset != snapshot.offset for each in self.workers.values()):
            return "not all workers have read the configuration"
        running = [process for process in self.processes if process.state in ("running", "paused")]
        tasks = [process.task for process in running]
        wanted: list[tuple[str, int]] = []
        hidden: set[str] = set()
        for name, config in snapshot.connectors.items():
            target = snapshot.target_state(name)
            views = {tuple(each.configs.snapshot().tasks(name)) for each in self.workers.values()}
            if target is not TargetState.STARTED and len(views) > 1:
                # compaction took the configuration that a set of tasks was made of, or half of a set: who has read the topic since sees no
                # tasks until the resume, as with Kafka Connect (KAFKA-16838)
                hidden.add(name)
                continue
            # a connector that rests divides its work when it is resumed
            numbers = range(int(config["n"])) if target is TargetState.STARTED else snapshot.tasks(name)
            if target is TargetState.STOPPED and numbers:
                return f"connector {name} is to be stopped, and has the tasks {numbers}"
            wanted += [(name, number) for number in numbers]
            for process in running:
                stored = snapshot.task_configs.get(process.task, {}).get("v")
                newest = config["v"] if target is TargetState.STARTED else stored
                if process.task[0] == name and not process.version == stored == newest:
                    return f"{process.task} runs with version {process.version}; {stored} is stored, of the connector {newest}"
                if process.task[0] == name and (process.state == "paused") != (target is TargetState.PAUSED):
                    return f"{process.task} is {process.state}, and should be {target.value}"
            status = worker.statuses.connector(name)
            shown = {TargetState.STARTED: "RUNNING", TargetState.PAUSED: "PAUSED", TargetState.STOPPED: "STOPPED"}[target]
            if status is None or status.state != shown:
                return f"connector {name} shows {status and status.state}, not {shown}"
            for number in numbers:
                task = worker.statuses.task(name, number)
                owner = next((process.worker.number for process in running if process.task == (name, number)), None)
                if task is None or task.state != shown or task.worker_id != f"w{owner}:1":
                    return f"task {name}-{number} shows {task and (task.state, task.worker_id)}, not {shown} on w{owner}:1"
        tasks = [task for task in tasks if task[0] not in hidden]
        if sorted(tasks) != sorted(wanted):
            return f"tasks {sorted(tasks)} run, and {sorted(wanted)} are configured"
        return None

    def _described(self) -> str:
        alive = [process for process in self.processes if process.state != "gone"]
        return f"running: {[(process.task, process.worker.owner.name, process.state) for process in alive]}"

    # -- what happens

    def _group_progresses(self) -> None:
        for worker in list(self.workers.values()):
            if self._is_quiet or self.chance.happens(0.6):
                worker.client.progress()

    def _records_are_read(self) -> None:
        for worker in list(self.workers.values()):
            owner = worker.owner
            if owner.is_frozen or not owner.is_alive or not worker.has_started:
                continue
            count = 3 if self._is_quiet else self.chance.below(3)
            worker.statuses.send(count)
            if not self.config_topic.is_silent:
                worker.configs.read(count)
                worker.statuses.read(count)

    def _processes_step(self) -> None:
        for process in list(self.processes):
            if self.chance.happens(0.5):
                process.step()
        self._forget_gone()

    def _forget_gone(self) -> None:
        self.processes = [
            process for process in self.processes if process.is_alive and (process.state != "gone" or process.worker.owner.is_alive)
        ]

    def _time_passes(self) -> None:
        self.fibers.seconds += self.chance.random.random() * self.chance.pick((0.1, 1.0, 4.0))

    def _compaction(self) -> None:
        self.chance.pick((self.config_topic, self.status_topic)).compact()

    def _request(self) -> None:
        chance = self.chance
        living = [worker for worker in self.workers.values() if worker.owner.is_alive and worker.has_started]
        if not living or self._requests > 3:
            return
        worker, name = chance.pick(living), chance.pick(NAMES)
        kind = chance.below(20)
        if kind < 9:
            self._versions += 1
            config = {"connector.class": CLASS, "name": name, "tasks.max": "3", "v": str(self._versions), "n": str(1 + chance.below(3))}
            self.ask(worker, f"put {name} {self._versions}", lambda herder: herder.put_connector(name, config, may_replace=True))
        elif kind < 11:
            self.ask(worker, f"delete {name}", lambda herder: herder.delete_connector(name))
        elif kind < 17:
            state = chance.pick((TargetState.PAUSED, TargetState.STARTED, TargetState.STARTED, TargetState.STOPPED))
            self.ask(worker, f"{name} to be {state.value}", lambda herder: herder.set_target_state(name, state))
        else:
            number = chance.below(3)
            self.ask(worker, f"restart {name}-{number}", lambda herder: herder.restart_task(name, number))

    def ask(self, worker: Worker, what: str, request: Callable[[DistributedHerder], Any]) -> None:
        """Have a client send a request."""
        self.note("  %s is asked: %s", worker.owner.name, what)
        client = Owner("client")
        self._requests += 1

        def work() -> None:
            try:
                self._send(worker, request, 2)
                self.note("  answered: %s", what)
            except ConnectError as error:
                self.note("  refused: %s: %s", what, error)
            finally:
                self._requests -= 1

        self.fibers.start(client, "client", work)

    def _send(self, worker: Worker, request: Callable[[DistributedHerder], Any], hops: int) -> None:
        try:
            self.call(worker, request)
        except MisdirectedError as error:
            url = error.find()
            other = self.at(url) if url is not None else None
            if other is None or not hops:
                raise
            self.wait_a_little()
            self._send(other, request, hops - 1)

    # -- faults

    def _kill(self, worker: Worker) -> None:
        self.note("  %s is killed", worker.owner.name)
        worker.owner.is_alive = False
        worker.owner.is_frozen = False
        self._frozen_until.pop(worker.number, None)

    def _living(self) -> Worker | None:
        living = [worker for worker in self.workers.values() if worker.owner.is_alive]
        return self.chance.pick(living) if living else None

    def _worker_killed(self) -> None:
        worker = self._living()
        if worker is not None and self.chance.fault():
            self._kill(worker)

    def _worker_killed_in_write(self) -> None:
        worker = self._living()
        if worker is not None and self.chance.fault():
            self._kill_in_write = worker

    def _worker_frozen(self) -> None:
        worker = self._living()
        if worker is not None and self.chance.fault():
            seconds = self.chance.pick((1.0, 5.0, 15.0))
            self.note("  %s is frozen for %g s", worker.owner.name, seconds)
            worker.owner.is_frozen = True
            self._frozen_until[worker.number] = self.fibers.seconds + seconds

    def _process_dies(self) -> None:
        running = [process for process in self.processes if process.state in ("running", "paused")]
        if running and self.chance.fault():
            self.chance.pick(running).dies()

    def _broker_falls_silent(self) -> None:
        if self.chance.fault():
            seconds = self.chance.pick((1.0, 4.0, 12.0))
            self.note("  Kafka falls silent for %g s", seconds)
            self._silent_until = self.fibers.seconds + seconds
