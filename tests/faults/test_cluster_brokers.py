"""What a group of workers does while brokers go: its coordinator moves to another one, or the only one is started again in a rebalance."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from connect_py.app.services.worker import RefusedError, Worker
from tests.brokers import Brokers
from tests.canary import now_ms
from tests.cluster import SETTINGS, Cluster, assert_nothing_lost_and_one_owner
from tests.fault_counts import Fault, note
from tests.fix_kafka import Kafka
from tests.killable_broker import KillableBroker
from tests.kills import new_dice
from tests.waiting import eventually, let_time_pass

pytestmark = [pytest.mark.services, pytest.mark.timeout(1200)]

TASKS = 6


@pytest.fixture
def dice() -> random.Random:
    return new_dice()


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[Brokers]:
    made = Brokers(tmp_path / "brokers")
    yield made
    made.close()


def rounds(default: int) -> int:
    return int(os.environ.get("CLUSTER_FAULTS") or default)


def begin(cluster: Cluster, workers: int = 3) -> None:
    cluster.add(workers)
    for name in ("a", "b"):
        cluster.create(name, cluster.counting(name, TASKS // 2))
    cluster.await_all_running(TASKS)


def assert_all_is_well(cluster: Cluster, kafka: Kafka) -> None:
    """After the faults all tasks write, nothing is lost, and no task had two owners."""
    shown = cluster.await_all_running(TASKS, seconds=120)
    topics = [f"{cluster.tag}-{name}-{task}" for name in shown for task in range(TASKS // 2)]
    counts = {topic: kafka.count(topic) for topic in topics}
    eventually(lambda: all(kafka.count(topic) > count + 10 for topic, count in counts.items()), "more records of all tasks", 60)
    histories = cluster.histories(kafka, shown)
    assert len(histories) == TASKS
    pauses = {task: history.longest_pause(0, now_ms()) for task, history in histories.items()}
    print(f"longest pauses in ms: {sorted(pauses.values())}; repeated: {sum(history.repeated for history in histories.values())}")
    assert_nothing_lost_and_one_owner(cluster, histories, kafka)


@pytest.mark.long
def test_the_coordinator_moves(brokers: Brokers, tmp_path: Path, tag: str, dice: random.Random) -> None:
    """The broker that coordinates the group is killed or ended, and comes back; the group goes on with another."""
    factors = {f"{kind}.storage.replication.factor": "3" for kind in ("config", "offset", "status")}
    group = brokers.group_of(tag, (2, 3))
    cluster = Cluster(tmp_path, brokers.bootstrap, tag, {**factors, "group.id": group})
    kafka = Kafka(brokers.bootstrap)
    try:
        begin(cluster)
        moves = []
        for number in range(rounds(3)):
            let_time_pass(dice.uniform(0, 2), "a random moment")
            eventually(lambda: brokers.coordinator(group), "a coordinator", 60)
            before = brokers.coordinator(group)
            victim = before
            assert victim is not None
            (brokers.kill if number % 2 else brokers.end)(victim)

            def has_moved(victim: int = victim) -> bool:
                return brokers.coordinator(group) not in (None, victim)

            eventually(has_moved, "another coordinator", 60)
            moves.append((before, brokers.coordinator(group)))
            if dice.random() < 0.5:
                dice.choice(cluster.living).request("PUT", "/connectors/a/pause")
                cluster.living[0].request("PUT", "/connectors/a/resume")
            cluster.await_all_running(TASKS, seconds=120)
            brokers.start(victim)
            eventually(lambda: brokers.in_sync([cluster.workers[0].topic("config"), "__consumer_offsets"]), "all replicas", 120, pause=0.5)
            eventually(lambda: brokers.coordinator(group) in (2, 3), "the first coordinator again", 60)
        print(f"coordinators: {moves}")
        assert_all_is_well(cluster, kafka)
    finally:
        cluster.close()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[KillableBroker]:
    made = KillableBroker(tmp_path / "broker")
    yield made
    made.stop()


@pytest.mark.long
@pytest.mark.parametrize("count", [pytest.param(1, id="once"), pytest.param(3, id="again-and-again", marks=pytest.mark.long)])
def test_the_broker_is_started_again_in_a_rebalance(
    broker: KillableBroker, tmp_path: Path, tag: str, dice: random.Random, count: int
) -> None:
    """A worker that joins, or that leaves, has the group in a rebalance; then the broker is killed, and comes back."""
    cluster = Cluster(tmp_path, broker.bootstrap, tag, SETTINGS)
    try:
        begin(cluster, 2)
        third: Worker = cluster.add()
        for _ in range(rounds(count)):
            cluster.await_all_running(TASKS, seconds=120)
            third.kill()
            third.restart()  # answers before its first round
            let_time_pass(dice.uniform(0, 0.6), "a random moment of the rebalance")
            broker.kill()
            let_time_pass(dice.choice([0.0, 2.0, 6.0]), "the broker is away")
            broker.bring_back()
            note(Fault.KILLED_WORKER, "a group of three")
            note(Fault.KILLED_BROKER, "a group of three")
            for worker in cluster.workers:

                def answers(worker: Worker = worker) -> bool:
                    try:
                        return sorted(worker.request("GET", "/connectors")) == ["a", "b"]
                    except (OSError, RefusedError):
                        return False

                eventually(answers, "connectors", 60)
        assert_all_is_well(cluster, Kafka(broker.bootstrap))
    finally:
        cluster.close()
