"""Kafka's system test `connect_distributed_test.py`, by its names, driven against a group of three workers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from connect_py.app.services.worker import RefusedError, Worker
from tests.canary import now_ms
from tests.cluster import Cluster, Written, assert_each_once, assert_nothing_lost_and_one_owner, last_leader_url
from tests.fix_kafka import Kafka
from tests.waiting import eventually

pytestmark = [pytest.mark.services, pytest.mark.timeout(900)]


KINDS = ["source", pytest.param("sink", marks=pytest.mark.long)]


@pytest.fixture(scope="module")
def shared(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three workers for the tests that end none of them; each test deletes its connectors."""
    made = Cluster(tmp_path_factory.mktemp("cluster"), kafka.bootstrap, "dist" + tmp_path_factory.getbasetemp().name.replace("-", ""))
    try:
        made.add(3)
        yield made
    finally:
        made.close()


def configured(cluster: Cluster, kind: str, name: str, **more: str) -> dict[str, str]:
    """A source, or a sink of a topic that a source of the test has written."""
    return cluster.counting(name, 1, 25, **more) if kind == "source" else cluster.noting(name, [f"{cluster.tag}-{name}-input"], 1, **more)


def await_state(worker: Worker, name: str, connector: str, task: str | None, seconds: float = 60) -> None:
    last: object = None

    def reached() -> bool:
        nonlocal last
        try:
            last = shown = worker.status(name)
        except RefusedError:  # there is no status yet
            return False
        tasks = [part["state"] for part in shown["tasks"]]
        return shown["connector"]["state"] == connector and (task is None or tasks == [task])

    eventually(reached, lambda: f"{connector}, {task}: {last}", seconds)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("restart", ["restart", "restart?includeTasks=true&onlyFailed=true"])
def test_restart_failed_connector(shared: Cluster, tmp_path: Path, kind: str, restart: str) -> None:
    """test_restart_failed_connector, test_restart_connector_and_tasks_failed_connector."""
    name, bad = f"failed-connector-{kind}-{len(restart)}", tmp_path / "fails"
    bad.touch()
    first, second, third = shared.workers
    first.request("POST", "/connectors", {"name": name, "config": configured(shared, kind, name, fails="connector", fails_while=str(bad))})
    for worker in shared.workers:
        eventually(lambda worker=worker: name in worker.request("GET", "/connectors"), "connector", 20)
        await_state(worker, name, "FAILED", None)
    bad.unlink()
    second.request("POST", f"/connectors/{name}/{restart}")
    await_state(third, name, "RUNNING", "RUNNING")
    third.delete(name)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("restart", ["tasks/0/restart", "restart?includeTasks=true&onlyFailed=true"])
def test_restart_failed_task(shared: Cluster, kafka: Kafka, tmp_path: Path, kind: str, restart: str) -> None:
    """test_restart_failed_task, test_restart_connector_and_tasks_failed_task."""
    name, bad = f"failed-task-{kind}-{len(restart)}", tmp_path / "fails"
    bad.touch()
    first, second, third = shared.workers
    config = configured(shared, kind, name, fails="task", fails_while=str(bad))
    third.request("POST", "/connectors", {"name": name, "config": config})
    for worker in shared.workers:
        eventually(lambda worker=worker: name in worker.request("GET", "/connectors"), "connector", 20)
        await_state(worker, name, "RUNNING", "FAILED")
    assert "fails since it was told to" in first.status(name)["tasks"][0]["trace"]
    bad.unlink()
    second.request("POST", f"/connectors/{name}/{restart}")
    await_state(first, name, "RUNNING", "RUNNING")
    first.delete(name)


def test_pause_and_resume_source(shared: Cluster, kafka: Kafka) -> None:
    """As in Connect, a source is PAUSED once it polls no more; what it had polled may still be on its way to Kafka. So records are judged
    by when they were polled, which they say themselves."""
    first, second, third = shared.workers
    shared.create("paused", shared.counting("paused"))
    topic = f"{shared.tag}-paused-0"
    eventually(lambda: kafka.count(topic) > 0, "records", 30)
    second.request("PUT", "/connectors/paused/pause")
    for worker in shared.workers:
        await_state(worker, "paused", "PAUSED", "PAUSED")
    paused = now_ms()
    eventually(lambda: now_ms() > paused + 2_000, "two seconds", 10)
    resumed = now_ms()
    third.request("PUT", "/connectors/paused/resume")
    for worker in shared.workers:
        await_state(worker, "paused", "RUNNING", "RUNNING")

    def polled() -> list[int]:
        return [Written.parse(record.value() or b"").ms for record in kafka.read(topic)]

    eventually(lambda: max(polled()) > resumed, "records again", 30)
    assert [moment for moment in polled() if paused < moment < resumed] == [], "a paused source polled"
    first.delete("paused")


def test_pause_and_resume_sink(shared: Cluster, kafka: Kafka) -> None:
    first, second, third = shared.workers
    shared.create("feed", shared.counting("feed"))
    shared.create("drain", shared.noting("drain", [f"{shared.tag}-feed-0"]))
    notes = shared.notes("drain")
    eventually(lambda: notes.exists() and notes.stat().st_size > 0, "notes", 40)
    first.request("PUT", "/connectors/drain/pause")
    for worker in shared.workers:
        await_state(worker, "drain", "PAUSED", "PAUSED")
    size, count = notes.stat().st_size, kafka.count(f"{shared.tag}-feed-0")
    eventually(lambda: kafka.count(f"{shared.tag}-feed-0") > count + 25, "more records", 30)
    assert notes.stat().st_size == size, "a paused sink took records"
    second.request("PUT", "/connectors/drain/resume")
    eventually(lambda: notes.stat().st_size > size, "notes again", 30)
    for name in ("drain", "feed"):
        third.delete(name)


def test_file_source_and_sink(shared: Cluster, kafka: Kafka, tmp_path: Path) -> None:
    """The file source writes into a topic, the file sink reads it, and what is added while both run follows."""
    given, taken = tmp_path / "input.txt", tmp_path / "output.txt"
    lines = [f"line {number}" for number in range(1_000)]
    given.write_text("".join(f"{line}\n" for line in lines))
    topic = f"{shared.tag}-file"
    source = {"connector.class": "FileStreamSource", "tasks.max": "1", "file": str(given), "topic": topic}
    sink = {"connector.class": "FileStreamSink", "tasks.max": "1", "file": str(taken), "topics": topic}
    shared.create("file-source", source, shared.workers[1])
    shared.create("file-sink", {**sink, "consumer.override.auto.offset.reset": "earliest"}, shared.workers[2])
    eventually(lambda: taken.exists() and taken.read_text() == given.read_text(), "the first lines", 40)
    with given.open("a") as file:
        file.writelines(f"second {number}\n" for number in range(1_000))
    eventually(lambda: taken.read_text() == given.read_text(), "the second lines", 40)
    for name in ("file-source", "file-sink"):
        shared.workers[0].delete(name)


def test_transformations(shared: Cluster, kafka: Kafka, tmp_path: Path) -> None:
    """HoistField, InsertField and MakeTimestamp-like fields of a file's lines."""
    given, topic = tmp_path / "input.txt", f"{shared.tag}-transformed"
    given.write_text("one\ntwo\n")
    transform = "org.apache.kafka.connect.transforms."
    config = {
        "connector.class": "FileStreamSource",
        "tasks.max": "1",
        "file": str(given),
        "topic": topic,
        "transforms": "hoistToStruct,insertTimestampField",
        "transforms.hoistToStruct.type": f"{transform}HoistField$Value",
        "transforms.hoistToStruct.field": "content",
        "transforms.insertTimestampField.type": f"{transform}InsertField$Value",
        "transforms.insertTimestampField.timestamp.field": "ts",
    }
    shared.create("transformed", config, shared.workers[2])
    eventually(lambda: kafka.count(topic) == 2, "two records", 30)
    found = [json.loads(record.value() or b"")["payload"] for record in kafka.read(topic)]
    assert [one["content"] for one in found] == ["one", "two"]
    assert all(abs(one["ts"] - now_ms()) < 300_000 for one in found)
    shared.workers[0].delete("transformed")


def level_of(worker: Worker, logger: str) -> str | None:
    """As the worker shows it; None for a logger that it does not know."""
    try:
        return str(worker.request("GET", f"/admin/loggers/{logger}")["level"])
    except RefusedError as error:
        assert error.status == 404
        return None


def test_dynamic_logging(shared: Cluster) -> None:
    """Levels of one worker's loggers are its own (`scope=worker`), those of the cluster everybody's; roots, children and unknown ones."""
    first, *others = shared.workers
    name = "connectors.file"
    before = [level_of(worker, name) for worker in others]
    wanted = "ERROR" if "ERROR" not in before else "TRACE"
    assert name in first.request("PUT", f"/admin/loggers/{name}?scope=worker", {"level": wanted})
    assert level_of(first, name) == wanted
    assert [level_of(worker, name) for worker in others] == before
    assert others[0].request("PUT", f"/admin/loggers/{name}?scope=cluster", {"level": "DEBUG"}) is None
    for worker in shared.workers:
        eventually(lambda worker=worker: level_of(worker, name) == "DEBUG", "level everywhere", 20)
        assert worker.request("GET", "/admin/loggers")[name]["last_modified"] is not None
    others[1].request("PUT", f"/admin/loggers/{name}?scope=cluster", {"level": "INFO"})


def bounce(cluster: Cluster, worker: Worker, *, clean: bool) -> None:
    """End a worker in order or not, and start it again once the others know who leads."""
    was_leader = last_leader_url(worker) == worker.url
    if clean:
        worker.stop()
    else:
        worker.kill()
    if was_leader and clean:
        eventually(lambda: all(last_leader_url(other) != worker.url for other in cluster.living), "another leader", 30)
    worker.restart()


@pytest.mark.long
def test_pause_state_persistent(cluster: Cluster) -> None:
    """A paused source is still paused when all workers have been started again."""
    cluster.add(3)
    cluster.create("paused", cluster.counting("paused"))
    cluster.workers[0].request("PUT", "/connectors/paused/pause")
    for worker in cluster.workers:
        await_state(worker, "paused", "PAUSED", "PAUSED")
    for worker in cluster.workers:
        worker.stop()
    for worker in cluster.workers:
        worker.restart()
    for worker in cluster.workers:
        await_state(worker, "paused", "PAUSED", "PAUSED")


ROUNDS = [pytest.param(1, id="once"), pytest.param(3, id="three-rounds", marks=pytest.mark.long)]


@pytest.mark.long
@pytest.mark.parametrize("rounds", ROUNDS)
@pytest.mark.parametrize("clean", [pytest.param(True, id="clean"), pytest.param(False, id="kill", marks=pytest.mark.long)])
def test_bounce(cluster: Cluster, kafka: Kafka, clean: bool, rounds: int) -> None:
    """Every worker in turn is ended and started, while a source of three tasks counts and a sink of three tasks notes.

    Clean bounces: no number is missing or there twice, neither in the topics nor in the notes. Kills: none is missing.
    """
    cluster.add(3)
    cluster.create("source", cluster.counting("source", 3, rate=100))
    topics = [f"{cluster.tag}-source-{task}" for task in range(3)]
    eventually(lambda: all(kafka.count(topic) for topic in topics), "first records", 30)
    cluster.create("sink", cluster.noting("sink", topics, 3))
    shown = cluster.await_all_running(6)
    for _ in range(rounds):
        for worker in cluster.workers:
            bounce(cluster, worker, clean=clean)
            cluster.await_all_running(6, seconds=90)
    cluster.workers[0].request("PUT", "/connectors/source/stop")
    eventually(lambda: cluster.workers[0].status("source")["tasks"] == [], "the end of the source's tasks", 30)
    histories = {task: history for task, history in cluster.histories(kafka, shown).items() if task[0] == "source"}
    assert len(histories) == 3
    assert_nothing_lost_and_one_owner(cluster, histories, kafka)
    written = Counter((task, record.number) for (_, task), history in histories.items() for record in history.records)

    def noted() -> Counter[tuple[int, int]]:
        lines = [line.split() for line in cluster.notes("sink").read_text().splitlines()]
        return Counter((int(line[0].rpartition("-")[2]), int(line[3])) for line in lines)

    eventually(lambda: noted().keys() == written.keys(), lambda: f"{len(written.keys() - noted().keys())} numbers are not noted", 60)
    twice, noted_twice = sum((written - Counter(set(written))).values()), sum((noted() - written).values())
    print(f"{'clean' if clean else 'kill'}, {rounds} rounds: {len(written)} numbers, {twice} written again, {noted_twice} noted again")
    if clean:
        assert twice == 0
        assert noted_twice == 0


@pytest.mark.long
@pytest.mark.parametrize("clean", [pytest.param(True, id="clean"), pytest.param(False, id="kill")])
def test_exactly_once_source(kafka: Kafka, tmp_path: Path, tag: str, clean: bool) -> None:
    """Every worker in turn is ended and started, three times, while a source of three tasks counts: each number is there once."""
    cluster = Cluster(tmp_path, kafka.bootstrap, tag, {"exactly.once.source.support": "enabled", "offset.flush.interval.ms": "500"})
    try:
        cluster.add(3)
        cluster.create("source", cluster.counting("source", 3, rate=100))
        topics = [f"{cluster.tag}-source-{task}" for task in range(3)]
        for _ in range(3):
            for worker in cluster.workers:
                before = {topic: kafka.count(topic) for topic in topics}
                bounce(cluster, worker, clean=clean)
                cluster.await_all_running(3, seconds=120)
                eventually(
                    lambda before=before: all(kafka.count(topic) > count for topic, count in before.items()), "more of each task", 120
                )
        cluster.workers[0].request("PUT", "/connectors/source/stop")
        eventually(lambda: cluster.workers[0].status("source")["tasks"] == [], "the end of the source's tasks", 30)
        assert_each_once(cluster, kafka, "source", 3)
    finally:
        cluster.close()
