"""A group of workers that a test may kill, freeze, end and start one by one, with sources that count, and what their topics say of it.

Which start of a task wrote what, where and when, is in its records (`tests.counting_plugin`), so that loss, repetition, two owners at a
time and pauses are read from the topics and not from what workers report.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from types import ModuleType

from connect_py.app.services.postgres import PostgresAddress
from connect_py.app.services.process import free_port, process_tree
from connect_py.app.services.worker import RefusedError, Worker
from tests import blocking_plugin, counting_plugin
from tests.canary import WAITS_OF_A_TASK, Canary
from tests.fix_kafka import Kafka
from tests.folding import payload
from tests.waiting import eventually

#: A session as short as tests can bear on a busy machine, and a delay by which a lost worker's work moves soon.
SESSION_MS, HEARTBEAT_MS, DELAY_MS = 4_000, 1_000, 1_000
SETTINGS = {
    "session.timeout.ms": str(SESSION_MS),
    "heartbeat.interval.ms": str(HEARTBEAT_MS),
    "scheduled.rebalance.max.delay.ms": str(DELAY_MS),
    "offset.flush.interval.ms": "500",
}

#: State and worker of a connector and its tasks, by connector; the connector comes first.
Places = Mapping[str, Sequence[tuple[str, str]]]


#: Of plugins that are files of tests: their classes.
COUNTING: Mapping[ModuleType, Sequence[str]] = {
    counting_plugin: ("CountingSource", "NotingSink"),
    blocking_plugin: ("BlockingSource", "BlockingSink"),
}


def plugin_folder(folder: Path, plugins: Mapping[ModuleType, Sequence[str]] = COUNTING) -> Path:
    """Make a folder for ``plugin.path`` that has plugins under names like `tests.CountingSource`."""
    target = folder / "plugins" / "counting"
    metadata = target / "counting-1.dist-info"
    if not metadata.exists():
        metadata.mkdir(parents=True)
        for plugin in plugins:
            shutil.copy(str(plugin.__file__), target / f"{_short(plugin)}.py")
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: counting\nVersion: 1\n")
        points = "".join(f"tests.{name} = {_short(plugin)}:{name}\n" for plugin, names in plugins.items() for name in names)
        (metadata / "entry_points.txt").write_text(f"[connect_py.plugins]\n{points}")
    return target.parent


def _short(plugin: ModuleType) -> str:
    return plugin.__name__.rpartition(".")[2]


def address(worker: Worker) -> str:
    """As statuses name the worker."""
    return worker.url.removeprefix("http://")


class Cluster:
    """Workers of one group.

    Args:
        folder: for their files.
        bootstrap: of their broker.
        tag: begins the names of topics.
        properties: of the workers, in addition to `SETTINGS`.

    Attributes:
        workers: all of them, the ones that do not run included.
        frozen: processes that are stopped now.
    """

    def __init__(self, folder: Path, bootstrap: str, tag: str, properties: Mapping[str, str] | None = None) -> None:
        self._folder, self._bootstrap, self.tag = folder, bootstrap, tag
        self._properties = {**SETTINGS, "plugin.path": str(plugin_folder(folder)), **(properties or {})}
        self.workers: list[Worker] = []
        self.frozen: list[int] = []

    def add(self, count: int = 1, **more: str) -> Worker:
        """Start workers; dots of further properties are written as underscores."""
        for _ in range(count):
            names: dict[str, str] = {}
            if self.workers:
                first = self.workers[0].properties
                names = {name: first[name] for name in first if name == "group.id" or name.endswith(".storage.topic")}
            settings = {name.replace("_", "."): value for name, value in more.items()}
            port = free_port()
            self.workers.append(
                Worker(
                    self._folder / f"worker-{len(self.workers)}",
                    self._bootstrap,
                    port=port,
                    properties={**self._properties, **names, **settings},
                    env={counting_plugin.WORKER: f"127.0.0.1:{port}"},
                )
            )
        return self.workers[-1]

    def close(self) -> None:
        """End all workers."""
        self.thaw()
        for worker in self.workers:
            if worker.service.is_alive():
                os.kill(worker.pid, signal.SIGTERM)
        for worker in self.workers:
            worker.service.stop(seconds=40)

    # -- who runs

    @property
    def living(self) -> list[Worker]:
        """Workers whose processes run."""
        return [worker for worker in self.workers if worker.service.is_alive()]

    def others(self, worker: Worker) -> list[Worker]:
        """The living ones without this one."""
        return [other for other in self.living if other is not worker]

    def leader(self) -> Worker:
        """The worker that leads, as the living ones' logs said last."""
        urls = {url for worker in self.living if (url := last_leader_url(worker))}
        assert len(urls) == 1, urls
        return next(worker for worker in self.workers if worker.url in urls)

    # -- connectors

    def counting(self, name: str, tasks: int = 1, rate: float = 25, **more: str) -> dict[str, str]:
        """A configuration of a counting source."""
        settings = {key.replace("_", "."): value for key, value in more.items()}
        return {
            "connector.class": "tests.CountingSource",
            "tasks.max": str(tasks),
            "topic": f"{self.tag}-{name}",
            "rate": str(rate),
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            **settings,
        }

    def noting(self, name: str, topics: Iterable[str], tasks: int = 1, **more: str) -> dict[str, str]:
        """A configuration of a noting sink; its file is `notes`."""
        settings = {key.replace("_", "."): value for key, value in more.items()}
        return {
            "connector.class": "tests.NotingSink",
            "tasks.max": str(tasks),
            "topics": ",".join(topics),
            "notes": str(self.notes(name)),
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            "consumer.override.auto.offset.reset": "earliest",
            "consumer.override.session.timeout.ms": str(SESSION_MS),
            "consumer.override.heartbeat.interval.ms": str(HEARTBEAT_MS),
            **settings,
        }

    def notes(self, name: str) -> Path:
        """Where a noting sink notes."""
        return self._folder / f"{name}.notes"

    def create(self, name: str, config: Mapping[str, str], by: Worker | None = None) -> None:
        """Create a connector and wait for all of its tasks."""
        worker = by or self.living[0]
        worker.request("POST", "/connectors", {"name": name, "config": dict(config)})
        worker.wait_for(name, "RUNNING", int(config.get("tasks.max", "1")))

    # -- states

    def places(self, by: Worker | None = None) -> Places:
        """State and worker of each connector and its tasks, as one worker shows them."""
        return places(by or self.living[0])

    def await_places(self, wanted: Callable[[Places], bool], what: str, seconds: float = 60, by: Worker | None = None) -> Places:
        """Wait until everything is RUNNING as wanted, as one worker shows it; it may refuse to answer meanwhile."""
        last: Places = {}

        def reached() -> bool:
            nonlocal last
            try:
                last = self.places(by)
            except (OSError, RefusedError):
                return False
            return all(state == "RUNNING" for parts in last.values() for state, _ in parts) and wanted(last)

        eventually(reached, lambda: f"{what}: {last}", seconds)
        return last

    def await_all_running(self, tasks: int, on: Iterable[Worker] | None = None, seconds: float = 60, *, shared: bool = True) -> Places:
        """Wait until so many tasks run, on these workers (the living ones) and no others.

        Args:
            shared: each of the workers has a share, and shares are equal.
        """
        workers = [address(worker) for worker in (self.living if on is None else on)]
        by = next(worker for worker in self.living if address(worker) in workers)

        def wanted(shown: Places) -> bool:
            owners = [owner for parts in shown.values() for _, owner in parts[1:]]
            loads = [owners.count(worker) for worker in workers]
            ours = {owner for parts in shown.values() for _, owner in parts} <= {*workers}
            return len(owners) == tasks and ours and (not shared or max(loads) - min(loads) <= 1)

        return self.await_places(wanted, f"{tasks} tasks on {workers}", seconds, by)

    @property
    def blocks(self) -> Path:
        """The file by which `tests.blocking_plugin` blocks where it has no configuration yet."""
        return Path(self._properties["plugin.path"]) / "counting" / "blocks"

    def starts(self, name: str, task: int) -> int:
        """How often a counting task has been started, as the workers' logs say. A worker that is started again shows what it ran as RUNNING
        until it runs it."""
        return sum(worker.log.read_text().count(f"Counting {self.tag}-{name}-{task} on from ") for worker in self.workers)

    # -- faults

    def freeze(self, worker: Worker, *, with_tasks: bool = True) -> None:
        """SIGSTOP of the worker, with its tasks or without them."""
        pids = process_tree(worker.pid) if with_tasks else [worker.pid]
        self.frozen += pids
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """SIGCONT of everything that is frozen; tasks may have been killed in their sleep."""
        for pid in self.frozen:
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                continue
        self.frozen = []

    def terminate(self, worker: Worker) -> None:
        """SIGTERM, without waiting for the end."""
        os.kill(worker.pid, signal.SIGTERM)

    # -- what the topics say

    def histories(self, kafka: Kafka, places: Places) -> dict[tuple[str, int], History]:
        """What each counting task has written, by connector and task."""
        found = {}
        for name, parts in places.items():
            for task in range(len(parts) - 1):
                messages = kafka.read(f"{self.tag}-{name}-{task}")
                if messages:
                    found[name, task] = History([Written.parse(message.value() or b"") for message in messages])
        return found


def last_leader_url(worker: Worker) -> str:
    """As the worker's log said it last."""
    lines = [line for line in worker.log.read_text().splitlines() if "leaderUrl='" in line]
    return lines[-1].partition("leaderUrl='")[2].partition("'")[0].rstrip("/") if lines else ""


def places(worker: Worker) -> Places:
    """State and worker of each connector and its tasks, as the worker shows them."""
    found = {}
    for name, shown in worker.request("GET", "/connectors?expand=status").items():
        status = shown["status"]
        found[name] = [(part["state"], part["worker_id"]) for part in (status["connector"], *status["tasks"])]
    return found


def tasks_on(shown: Places, worker: Worker) -> set[tuple[str, int]]:
    """Tasks that a worker runs."""
    return {(name, task) for name, parts in shown.items() for task, (_, owner) in enumerate(parts[1:]) if owner == address(worker)}


@dataclass(frozen=True, slots=True)
class Written:
    """A record of a counting source: the number, which start of the task wrote it, on which worker, and when."""

    number: int
    incarnation: str
    worker: str
    ms: int

    @classmethod
    def parse(cls, value: bytes) -> Written:
        number, incarnation, worker, ms = value.decode().split()
        return cls(int(number), incarnation, worker, int(ms))


@dataclass(slots=True)
class History:
    """What one task has written, in the order of its partition."""

    records: Sequence[Written]

    @property
    def missing(self) -> list[int]:
        """Numbers below the highest that are not there: lost changes."""
        numbers = {record.number for record in self.records}
        return sorted({*range(1, max(numbers, default=0) + 1)} - numbers)

    @property
    def repeated(self) -> int:
        """How many records are there a second time."""
        return len(self.records) - len({record.number for record in self.records})

    @property
    def interleaved(self) -> list[tuple[str, str]]:
        """Starts of the task that wrote after a later one had begun to write, each with that one: two owners at a time."""
        seen: list[str] = []
        found = []
        for record in self.records:
            if not seen or record.incarnation != seen[-1]:
                if record.incarnation in seen:
                    found.append((record.incarnation, seen[-1]))
                seen.append(record.incarnation)
        return found

    @property
    def jumps(self) -> list[tuple[int, int]]:
        """Numbers that follow a lower one than their predecessor: a start from an offset beyond what Kafka holds."""
        return [(one.number, two.number) for one, two in pairwise(self.records) if two.number > one.number + 1]

    def incarnations(self, since: int, until: int) -> set[str]:
        """Starts that wrote within a time."""
        return {record.incarnation for record in self.records if since <= record.ms <= until}

    def longest_pause(self, since: int, until: int) -> int:
        """Longest time between two records within a time, in milliseconds."""
        return max((ended - began for began, ended in self.pauses(since, until)), default=0)

    def pauses(self, since: int, until: int) -> list[tuple[int, int]]:
        """Times between two records within a time, the longest last."""
        times = sorted(record.ms for record in self.records if since <= record.ms <= until)
        return sorted(pairwise(times), key=lambda pause: pause[1] - pause[0])

    def stood_still(self, since: int, until: int) -> int:
        """Milliseconds of a time that belong to pauses of more than `PAUSE_MS`."""
        return sum(ended - began for began, ended in self.pauses(since, until) if ended - began > PAUSE_MS)

    def handed_over(self, since: int) -> int | None:
        """Milliseconds from a fault to the first record of another start of the task; None when there is none."""
        before = [record.incarnation for record in self.records if record.ms < since]
        after = [record.ms for record in self.records if record.ms >= since and before and record.incarnation != before[-1]]
        return min(after) - since if after else None


def stored_numbers(kafka: Kafka, worker: Worker) -> dict[str, list[int]]:
    """Every offset of counting sources that was stored, by source partition."""
    found: dict[str, list[int]] = defaultdict(list)
    for message in kafka.read(worker.topic("offset")):
        key, value = json.loads(message.key() or b"null"), json.loads(message.value() or b"null")
        if value and "number" in value:
            found[json.dumps(key)].append(value["number"])
    return found


@dataclass(slots=True)
class Fault:
    """Something that was done to a worker.

    Attributes:
        tasks: what the worker ran.
        began: when, in milliseconds.
        limit_ms: within which others must have written in these tasks.
        until: when everything ran again.
    """

    what: str
    worker: str
    tasks: set[tuple[str, int]]
    began: int
    limit_ms: int
    until: int = 0


#: A task that a rebalance does not concern writes again within this time.
PAUSE_MS = 200

#: A pause that such a task has by a fault is longer than this multiple of what tasks of another group have on the same machine.
USUAL_PAUSES = 2


@dataclass(slots=True)
class Figures:
    """Times of faults, read from the topics.

    Attributes:
        handed_over: by kind of fault, how long after it another worker wrote.
        late: what took longer than is allowed and than the machine withheld.
        pauses: the longest of each task that a fault did not concern.
        usual: the longest of tasks of another group, in all that time.
        stopped: pauses that neither `PAUSE_MS`, nor what the machine withheld, nor the usual ones explain.
    """

    handed_over: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    late: list[str] = field(default_factory=list)
    pauses: list[int] = field(default_factory=list)
    usual: int = 0
    stopped: list[str] = field(default_factory=list)

    @classmethod
    def of(
        cls, faults: Sequence[Fault], histories: Mapping[tuple[str, int], History], canary: Canary, apart: Collection[History] = ()
    ) -> Figures:
        """Read what the topics say.

        Args:
            apart: of tasks of another group, with which nothing was done: what stops them is the machine, or the broker on it.
        """
        began, ended = min(fault.began for fault in faults), max(fault.until for fault in faults)
        found = cls(usual=max((history.longest_pause(began, ended) for history in apart), default=0))
        for fault in faults:
            for task, history in histories.items():
                if task in fault.tasks:
                    found._note_hand_over(fault, task, history.handed_over(fault.began), canary, apart)
                elif len(history.incarnations(fault.began, fault.until)) == 1:
                    found._note_pauses(fault, task, history.pauses(fault.began, fault.until), canary)
        return found

    def _note_hand_over(self, fault: Fault, task: tuple[str, int], took: int | None, canary: Canary, apart: Collection[History]) -> None:
        withheld = stood = 0
        if took is not None:
            self.handed_over[fault.what].append(took)
            withheld = canary.withheld(fault.began, fault.began + took)
            stood = max((history.stood_still(fault.began, fault.began + took) for history in apart), default=0)
        if took is None or took > fault.limit_ms + WAITS_OF_A_TASK * withheld + stood:
            self.late.append(
                f"{fault.what} of {fault.worker}: {task[0]}-{task[1]} after {took} ms; {fault.limit_ms} ms are allowed, "
                f"{withheld} ms were withheld, and another group's tasks stood still for {stood} ms"
            )

    def _note_pauses(self, fault: Fault, task: tuple[str, int], pauses: Sequence[tuple[int, int]], canary: Canary) -> None:
        if not pauses:
            return
        self.pauses.append(pauses[-1][1] - pauses[-1][0])
        for began, ended in pauses:
            if (took := ended - began) <= PAUSE_MS:
                continue
            withheld = canary.withheld(began, ended)
            if took > max(PAUSE_MS + WAITS_OF_A_TASK * withheld, USUAL_PAUSES * self.usual):
                self.stopped.append(
                    f"{fault.what} of {fault.worker}: {task[0]}-{task[1]} wrote nothing for {took} ms, {began - fault.began} ms after it; "
                    f"{withheld} ms were withheld, and tasks of another group paused for up to {self.usual} ms"
                )

    def __str__(self) -> str:
        lines = [
            f"{what}: {len(times)} tasks handed over, ms: median {sorted(times)[len(times) // 2]}, longest {max(times)}"
            for what, times in self.handed_over.items()
        ]
        if self.pauses:
            over = sum(pause > PAUSE_MS for pause in self.pauses)
            ordered = sorted(self.pauses)
            lines.append(
                f"{len(ordered)} windows of unaffected tasks, longest pause in ms: median {ordered[len(ordered) // 2]}, "
                f"p99 {ordered[int(len(ordered) * 0.99)]}, longest {ordered[-1]}; over {PAUSE_MS} ms: {over}, "
                f"all but {len(self.stopped)} of them by the machine; longest of another group's tasks: {self.usual}"
            )
        return "\n".join(lines)


def assert_nothing_lost_and_one_owner(cluster: Cluster, histories: Mapping[tuple[str, int], History], kafka: Kafka) -> None:
    """What must hold after any fault, of every counting task."""
    assert histories
    for task, history in histories.items():
        assert history.missing == [], f"{task} has lost {history.missing[:10]}"
        assert history.jumps == [], f"{task} left out what came later or never: {history.jumps[:5]}"
        assert history.interleaved == [], f"two ran {task} at a time: {history.interleaved[:5]}"
    for partition, numbers in stored_numbers(kafka, cluster.workers[0]).items():
        assert numbers == sorted(numbers), f"a stored offset of {partition} went back"


def assert_each_once(cluster: Cluster, kafka: Kafka, name: str, tasks: int) -> None:
    """A reader of committed records has each number of each task once, in order."""
    for task in range(tasks):
        numbers = [Written.parse(message.value() or b"").number for message in kafka.read(f"{cluster.tag}-{name}-{task}")]
        print(f"{name}-{task}: {len(numbers)} numbers")
        assert numbers == [*range(1, len(numbers) + 1)], [(one, two) for one, two in pairwise(numbers) if two != one + 1]


class Inserting(threading.Thread):
    """Inserts numbered rows into a table of PostgreSQL until it is left."""

    def __init__(self, postgres: PostgresAddress, database: str) -> None:
        super().__init__(daemon=True)
        self._postgres, self._database = postgres, database
        self._enough = threading.Event()
        self.count = 0

    def run(self) -> None:
        with self._postgres.connect(self._database) as connection:
            while not self._enough.wait(0.01):
                connection.execute("INSERT INTO item VALUES (%s)", (self.count + 1,))
                self.count += 1

    def __enter__(self) -> Inserting:
        with self._postgres.connect(self._database) as connection:
            connection.execute("CREATE TABLE item (id bigint PRIMARY KEY)")
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        self.join()

    def await_all(self, kafka: Kafka, topic: str, seconds: float = 60) -> tuple[int, int]:
        """Wait until every row is in the topic; returns rows and records. Fails when a number follows that skips one."""
        found: list[int] = []

        def is_there() -> bool:
            found[:] = [payload(message.value() or b"")["after"]["id"] for message in kafka.read(topic)]
            return len(set(found)) >= self.count

        eventually(is_there, lambda: f"rows {sorted({*range(1, self.count + 1)} - set(found))[:10]} are missing", seconds, pause=0.5)
        skipped = [(one, two) for one, two in pairwise(found) if two > one + 1]
        assert skipped == []
        return self.count, len(found)
