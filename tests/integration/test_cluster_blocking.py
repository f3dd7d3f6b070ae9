"""Kafka's BlockingConnectorTest, by its names: a connector or a task that never returns from a method stops no other one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from connect_py.app.services.worker import RefusedError
from tests.cluster import Cluster
from tests.fix_kafka import Kafka
from tests.waiting import eventually, let_time_pass

pytestmark = [pytest.mark.services, pytest.mark.long]


@pytest.fixture(scope="module")
def alone(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One worker, as in Kafka's test, so that what blocks and what must run are on the same."""
    made = Cluster(tmp_path_factory.mktemp("cluster"), kafka.bootstrap, "block" + tmp_path_factory.getbasetemp().name.replace("-", ""))
    try:
        made.add()
        yield made
    finally:
        made.close()


#: Places that see no configuration.
EARLY = ("Connector::config", "Connector::initialize")


class Blocked:
    """A connector that blocks in one place until the end of the test."""

    def __init__(self, folder: Path, cluster: Cluster, place: str, kind: str = "Source") -> None:
        self._file = cluster.blocks if place in EARLY else folder / "blocks"
        self._file.write_text(place)
        self.name = f"{kind}-{place.replace('::', '-')}".lower()
        self.worker = cluster.workers[0]
        self.config = {
            "connector.class": f"tests.Blocking{kind}",
            "tasks.max": "1",
            **({} if place in EARLY else {"block": place, "while": str(self._file)}),
            **({"topics": f"{cluster.tag}-t"} if kind == "Sink" else {}),
        }

    def create(self) -> None:
        self.worker.request("PUT", f"/connectors/{self.name}/config", self.config)

    def await_block(self) -> None:
        reached = self._file.with_suffix(".reached")
        eventually(reached.exists, f"the block of {self.name}", 60)
        reached.unlink()

    def release(self) -> None:
        self._file.unlink(missing_ok=True)


def assert_another_works(cluster: Cluster, kafka: Kafka, name: str) -> None:
    """createNormalConnector, verifyNormalConnector."""
    cluster.create(name, cluster.counting(name, 1))
    eventually(lambda: kafka.count(f"{cluster.tag}-{name}-0") > 5, "records of another connector", 60)
    cluster.workers[0].delete(name)


@pytest.mark.parametrize("place", ["Connector::config", "Connector::validate"])
def test_block_in_a_validation(alone: Cluster, kafka: Kafka, tmp_path: Path, place: str) -> None:
    """testBlockInConnectorConfig, testBlockInConnectorValidate."""
    blocked = Blocked(tmp_path, alone, place)
    answers: list[object] = []

    def ask() -> None:
        try:
            blocked.create()
            answers.append("created")
        except RefusedError as error:
            answers.append(error)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    try:
        blocked.await_block()
        assert_another_works(alone, kafka, f"next-to-{blocked.name}")
        assert answers == []
        assert blocked.name not in blocked.worker.request("GET", "/connectors")
    finally:
        blocked.release()
    asking.join(60)
    assert answers == ["created"]
    blocked.worker.delete(blocked.name)


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        ("Connector::initialize", "Source"),
        ("Connector::start", "Source"),
        ("Connector::taskConfigs", "Source"),
        ("Task::start", "Source"),
        ("Task::start", "Sink"),
    ],
)
def test_block_in_a_start(alone: Cluster, kafka: Kafka, tmp_path: Path, place: str, kind: str) -> None:
    """testBlockInConnectorInitialize, testBlockInConnectorStart, testBlockInSourceTaskStart, testBlockInSinkTaskStart."""
    blocked = Blocked(tmp_path, alone, place, kind)
    blocked.create()
    try:
        blocked.await_block()
        assert_another_works(alone, kafka, f"next-to-{blocked.name}")
        blocked.worker.delete(blocked.name)
        assert_another_works(alone, kafka, f"after-{blocked.name}")
    finally:
        blocked.release()


@pytest.mark.parametrize(("place", "kind"), [("Connector::stop", "Source"), ("Task::stop", "Source"), ("Task::stop", "Sink")])
def test_block_in_a_stop(alone: Cluster, kafka: Kafka, tmp_path: Path, place: str, kind: str) -> None:
    """testBlockInConnectorStop, testBlockInSourceTaskStop, testBlockInSinkTaskStop."""
    blocked = Blocked(tmp_path, alone, place, kind)
    blocked.create()
    try:
        blocked.worker.wait_for(blocked.name, "RUNNING")
        blocked.worker.delete(blocked.name)
        blocked.await_block()
        assert_another_works(alone, kafka, f"next-to-{blocked.name}")
        if place == "Task::stop":
            eventually(lambda: len(blocked.worker.children()) == 0, "the end of the task's process", 60)
    finally:
        blocked.release()


def test_poll_timeout_expiry(cluster: Cluster, kafka: Kafka, tmp_path: Path) -> None:
    """ConnectWorkerIntegrationTest.testPollTimeoutExpiry: a task does not return from its stop when it is restarted. Kafka's worker stands
    still and is out of the group after `rebalance.timeout.ms`; this one starts the task again, stays a member, and its other task runs on.
    """
    worker = cluster.add(rebalance_timeout_ms="3000", task_shutdown_graceful_timeout_ms="30000")
    cluster.create("normal", cluster.counting("normal", 1))
    blocked = Blocked(tmp_path, cluster, "Task::stop")
    blocked.create()
    try:
        worker.wait_for(blocked.name, "RUNNING")
        rounds, starts, before = worker.log.read_text().count("Joined group"), cluster.starts("normal", 0), {*worker.children()}
        worker.request("POST", f"/connectors/{blocked.name}/tasks/0/restart")
        blocked.await_block()
        eventually(lambda: len(before - {*worker.children()}) == len({*worker.children()} - before) == 1, "another process", 20)
        worker.wait_for(blocked.name, "RUNNING")
        count = kafka.count(f"{cluster.tag}-normal-0")
        let_time_pass(4, "more than the group waits for a worker in a round")
        assert worker.log.read_text().count("Joined group") == rounds, "there was a round of the group"
        assert cluster.starts("normal", 0) == starts
        assert kafka.count(f"{cluster.tag}-normal-0") > count
    finally:
        blocked.release()


@pytest.mark.parametrize("place", ["Connector::start", "Connector::stop"])
def test_worker_restart_with_a_block(cluster: Cluster, kafka: Kafka, tmp_path: Path, place: str) -> None:
    """testWorkerRestartWithBlockInConnectorStart, testWorkerRestartWithBlockInConnectorStop."""
    worker = cluster.add()
    blocked = Blocked(tmp_path, cluster, place)
    blocked.create()
    try:
        if place == "Connector::start":
            blocked.await_block()
        else:
            worker.wait_for(blocked.name, "RUNNING")
        cluster.create("normal", cluster.counting("normal", 1))
        worker.restart()
        blocked.await_block()
        worker.wait_for("normal", "RUNNING")
        before = kafka.count(f"{cluster.tag}-normal-0")
        eventually(lambda: kafka.count(f"{cluster.tag}-normal-0") > before + 5, "records of the other connector", 60)
    finally:
        blocked.release()
