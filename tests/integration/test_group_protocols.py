"""Groups whose workers speak the protocols before `sessioned`: each alone, and with a worker that could speak more."""

from __future__ import annotations

import pytest

from connect_py.app.services.worker import RefusedError, Worker
from tests.cluster import Cluster
from tests.fix_kafka import Kafka
from tests.waiting import eventually

pytestmark = pytest.mark.services

PROTOCOLS = ["eager", pytest.param("compatible", marks=pytest.mark.long)]

#: What each worker with the property says at its start, and a worker that could speak more when the group turns to it.
DISABLED = (
    "Internal request verification will be disabled for this cluster as this worker's connect.protocol configuration has been set to '{}'"
)
SPEAKS = "The group speaks the protocol {0}, since at least one of its workers has connect.protocol={0}."


def hand_in(worker: Worker, connector: str) -> None:
    """Give the leader a connector's tasks as they are, without a signature, as workers of these protocols do. Raises RefusedError."""
    tasks = [task["config"] for task in worker.request("GET", f"/connectors/{connector}/tasks")]
    worker.request("POST", f"/connectors/{connector}/tasks", tasks)


@pytest.mark.long
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_workers_share_tasks_and_take_over_those_of_one_that_is_killed_without_signatures(
    cluster: Cluster, kafka: Kafka, protocol: str
) -> None:
    cluster.add(2, connect_protocol=protocol)
    for name in "abc":
        cluster.create(name, cluster.counting(name, tasks=2))
    cluster.await_all_running(6)
    leader = cluster.leader()
    (follower,) = cluster.others(leader)
    hand_in(leader, "a")
    cluster.await_all_running(6)
    for dead, living in ((follower, leader), (leader, follower)):
        dead.kill()
        cluster.await_all_running(6, on=[living])
        dead.restart()
        cluster.await_all_running(6)
    for worker in cluster.workers:
        text = worker.log.read_text()
        assert DISABLED.format(protocol) in text
        assert "The group speaks the protocol" not in text  # nothing that this worker was not set to
        assert "Traceback" not in text
    assert b"session-key" not in {message.key() for message in kafka.read(leader.topic("config"))}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_one_such_worker_brings_a_group_down_to_its_protocol_for_as_long_as_it_is_there(cluster: Cluster, protocol: str) -> None:
    first = cluster.add()
    for name in "ab":
        cluster.create(name, cluster.counting(name, tasks=2))
    with pytest.raises(RefusedError) as refused:
        hand_in(first, "a")
    assert (refused.value.status, refused.value.message) == (400, "Internal request missing required signature")

    second = cluster.add(connect_protocol=protocol)
    cluster.await_all_running(4)
    eventually(lambda: SPEAKS.format(protocol) in first.log.read_text(), "warning of the worker that could speak more")
    assert DISABLED.format(protocol) not in first.log.read_text()
    assert SPEAKS.format(protocol) not in second.log.read_text()
    hand_in(cluster.leader(), "a")
    cluster.await_all_running(4)

    second.stop()
    cluster.await_all_running(4, on=[first])

    def is_refused() -> bool:
        try:
            hand_in(first, "a")
        except RefusedError as error:
            return error.status == 400
        return False

    eventually(is_refused, "signatures again")
