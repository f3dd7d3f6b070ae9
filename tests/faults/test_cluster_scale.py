"""A hundred connectors and three hundred tasks on a group of three workers: how long they take to run, and to run again elsewhere."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from connect_py.app.services.process import process_tree
from tests.canary import now_ms
from tests.cluster import Cluster, assert_nothing_lost_and_one_owner, tasks_on
from tests.fix_kafka import Kafka
from tests.waiting import eventually

pytestmark = [pytest.mark.services, pytest.mark.long, pytest.mark.crowd, pytest.mark.timeout(1800)]

CONNECTORS, TASKS_EACH = int(os.environ.get("CLUSTER_CONNECTORS") or 100), 3
TASKS = CONNECTORS * TASKS_EACH


def resident_mb(pid: int) -> float:
    """Memory of a process by its own pages and its part of shared ones."""
    try:
        with open(f"/proc/{pid}/smaps_rollup") as rollup:
            return sum(int(line.split()[1]) for line in rollup if line.startswith("Pss:")) / 1024
    except OSError:
        return 0.0


def test_a_hundred_connectors_of_three_tasks_on_three_workers(cluster: Cluster, kafka: Kafka) -> None:
    for _ in range(3):  # a session as by default: so many processes start at a time that a short one would be lost
        cluster.add(session_timeout_ms="10000")
    first, second, third = cluster.workers
    began = now_ms()
    with ThreadPoolExecutor(4) as pool:

        def create(number: int) -> None:
            name = f"c{number:03}"
            body = {"name": name, "config": cluster.counting(name, TASKS_EACH, rate=0.5)}
            cluster.workers[number % 3].request("POST", "/connectors", body)

        list(pool.map(create, range(CONNECTORS)))
    created = now_ms() - began
    cluster.await_all_running(TASKS, seconds=400)
    running = now_ms() - began
    memory = [sum(map(resident_mb, process_tree(worker.pid))) for worker in cluster.workers]
    print(f"{CONNECTORS} connectors created in {created} ms, {TASKS} tasks RUNNING after {running} ms")
    print(f"MB by worker, its tasks included: {[int(mb) for mb in memory]}")

    shown = cluster.places(first)
    kept = {pid for worker in (first, second) for pid in worker.children()}
    lost = tasks_on(shown, third)
    began = now_ms()
    third.kill()
    cluster.await_all_running(TASKS, [first, second], seconds=300, shared=False)
    print(f"{len(lost)} tasks of a killed worker RUNNING after {now_ms() - began} ms")
    assert kept <= {pid for worker in (first, second) for pid in worker.children()}, "tasks of the others were restarted"

    began = now_ms()
    third.restart()
    cluster.await_all_running(TASKS, seconds=300)
    print(f"shared by three again after {now_ms() - began} ms")

    lost = tasks_on(cluster.places(second), first)
    began = now_ms()
    cluster.terminate(first)
    cluster.await_all_running(TASKS, [second, third], seconds=300, shared=False)
    print(f"{len(lost)} tasks of a terminated worker RUNNING after {now_ms() - began} ms")
    first.service.stop(seconds=60)

    began = now_ms()
    names = [f"c{number:03}" for number in range(0, CONNECTORS, 10)]
    for name in names:
        second.request("PUT", f"/connectors/{name}/stop")
    eventually(lambda: all(second.status(name)["tasks"] == [] for name in names), "the end of some tasks", 60)
    print(f"{len(names)} connectors stopped after {now_ms() - began} ms")
    histories = cluster.histories(kafka, {name: shown[name] for name in names})
    assert len(histories) == len(names) * TASKS_EACH
    assert_nothing_lost_and_one_owner(cluster, histories, kafka)
