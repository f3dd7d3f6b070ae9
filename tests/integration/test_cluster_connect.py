"""What Kafka Connect's own integration tests assert of clusters, by their names, of a group of these workers.

RebalanceSourceConnectorsIntegrationTest, ConnectWorkerIntegrationTest, ConnectorRestartApiIntegrationTest,
SessionedProtocolIntegrationTest, OffsetsApiIntegrationTest and ExactlyOnceSourceIntegrationTest; BlockingConnectorTest is
`test_cluster_blocking.py`, with testPollTimeoutExpiry of ConnectWorkerIntegrationTest. More of what they assert is in
`test_cluster_rest.py`, `test_group_https.py` and `test_exactly_once.py`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, AdminClient, ResourcePatternType, ResourceType

from connect_py.app.services.kafka import KafkaBroker
from connect_py.app.services.worker import RefusedError, Worker
from tests.canary import now_ms
from tests.cluster import Cluster, Places, Written, assert_each_once, assert_nothing_lost_and_one_owner, tasks_on
from tests.fix_kafka import GuardedKafka, Kafka
from tests.killable_broker import KillableBroker
from tests.waiting import eventually

pytestmark = [pytest.mark.services, pytest.mark.long]

#: As Kafka's tests set them, so that connectors may name other brokers.
ALL_OVERRIDES = {"connector.client.config.override.policy": "All"}

#: How long a write to the configuration topic may take to be refused: 30 s, on a busy machine.
WRITE_MS = 40_000


@pytest.fixture(scope="module")
def shared(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three workers for the tests that end none of them; each test deletes its connectors."""
    tag = "java" + tmp_path_factory.getbasetemp().name.replace("-", "")
    made = Cluster(tmp_path_factory.mktemp("cluster"), kafka.bootstrap, tag, ALL_OVERRIDES)
    try:
        made.add(3)
        yield made
    finally:
        made.close()


def states(worker: Worker, name: str) -> list[str]:
    """Of the connector and its tasks; empty before there is a status."""
    try:
        shown = worker.status(name)
    except RefusedError:
        return []
    return [part["state"] for part in (shown["connector"], *shown["tasks"])]


def await_states(worker: Worker, name: str, *wanted: str, seconds: float = 60) -> None:
    last: list[str] = []

    def reached() -> bool:
        last[:] = states(worker, name)
        return last == [*wanted]

    eventually(reached, lambda: f"{name} is {last}, not {wanted}", seconds)


def await_balance(cluster: Cluster, connectors: int, tasks: int) -> Places:
    """Everything runs on the living workers, shared out evenly: connectors and tasks each for themselves."""
    living = [worker.url.removeprefix("http://") for worker in cluster.living]

    def balanced(shown: Places) -> bool:
        owners = [[parts[0][1] for parts in shown.values()], [owner for parts in shown.values() for _, owner in parts[1:]]]
        loads = [[found.count(worker) for worker in living] for found in owners]
        return [sum(load) for load in loads] == [connectors, tasks] and all(max(load) - min(load) < 2 for load in loads)

    return cluster.await_places(balanced, f"{connectors} connectors, {tasks} tasks on {living}", 120)


# -- RebalanceSourceConnectorsIntegrationTest


def test_rebalance_source_connectors(cluster: Cluster, kafka: Kafka) -> None:
    """testStartTwoConnectors, testReconfigConnector, testDeleteConnector, testAddingWorker, testRemovingWorker,
    testMultipleWorkersRejoining and ConnectWorkerIntegrationTest.testAddAndRemoveWorker."""
    cluster.add(3)
    for name in "abcd":
        cluster.create(name, cluster.counting(name, 3))
    await_balance(cluster, 4, 12)

    cluster.workers[1].request("PUT", "/connectors/a/config", {**cluster.counting("a", 3), "topic": f"{cluster.tag}-other"})
    for task in range(3):
        eventually(lambda task=task: kafka.count(f"{cluster.tag}-other-{task}") > 0, "records in the other topic", 60)
    cluster.workers[2].request("PUT", "/connectors/a/config", cluster.counting("a", 3))
    await_balance(cluster, 4, 12)

    cluster.living[0].delete("d")
    await_balance(cluster, 3, 9)
    added = cluster.add()
    await_balance(cluster, 3, 9)
    cluster.terminate(added)
    eventually(lambda: not added.service.is_alive(), "the end of the worker", 60)
    await_balance(cluster, 3, 9)

    gone = cluster.living[:2]
    for worker in gone:
        cluster.terminate(worker)
    eventually(lambda: len(cluster.living) == 1, "the end of two workers", 60)
    await_balance(cluster, 3, 9)
    for worker in gone:
        worker.restart()
    shown = await_balance(cluster, 3, 9)
    histories = cluster.histories(kafka, {name: parts for name, parts in shown.items() if name != "a"})
    assert_nothing_lost_and_one_owner(cluster, histories, kafka)


# -- ConnectWorkerIntegrationTest


def test_restart_failed_task(shared: Cluster, kafka: Kafka) -> None:
    """testRestartFailedTask."""
    name, worker = "bad-broker", shared.workers[0]
    config = shared.counting(name, 1)
    bad = {**config, "producer.override.bootstrap.servers": "nobrokerrunningatthisaddress"}
    worker.request("PUT", f"/connectors/{name}/config", bad)
    await_states(worker, name, "RUNNING", "FAILED")
    shared.workers[1].request("PUT", f"/connectors/{name}/config", config)
    shared.workers[2].request("POST", f"/connectors/{name}/tasks/0/restart")
    await_states(worker, name, "RUNNING", "RUNNING")
    eventually(lambda: kafka.count(f"{shared.tag}-{name}-0") > 0, "records", 30)
    worker.delete(name)


def test_task_statuses(shared: Cluster) -> None:
    """testTaskStatuses."""
    for number, tasks in enumerate((1, 5, 3)):
        shared.workers[number].request("PUT", "/connectors/sizes/config", shared.counting("sizes", tasks))
        for worker in shared.workers:
            await_states(worker, "sizes", *["RUNNING"] * (tasks + 1))
    shared.workers[0].delete("sizes")


def test_pause_stop_resume(shared: Cluster) -> None:
    """testPauseStopResume: each change of the state once, each asked for twice, through all workers in turn."""
    first, second, third = shared.workers
    shared.create("states", shared.counting("states", 4))
    for request, state, tasks in (
        ("stop", "STOPPED", 0),
        ("resume", "RUNNING", 4),
        ("pause", "PAUSED", 4),
        ("stop", "STOPPED", 0),
        ("pause", "PAUSED", 0),
        ("resume", "RUNNING", 4),
    ):
        for worker in (first, second):
            worker.request("PUT", f"/connectors/states/{request}")
        await_states(third, "states", *[state] * (tasks + 1))
        if not tasks:
            assert third.request("GET", "/connectors/states")["tasks"] == third.request("GET", "/connectors/states/tasks") == []
    second.delete("states")


def test_stopped_state(shared: Cluster, tmp_path: Path) -> None:
    """testStoppedState: a failed connector can be stopped, resumed and deleted."""
    first, second, third = shared.workers
    bad = tmp_path / "fails"
    bad.touch()
    first.request("PUT", "/connectors/broken/config", shared.counting("broken", 1, fails="connector", fails_while=str(bad)))
    eventually(lambda: states(first, "broken")[:1] == ["FAILED"], "the failure", 60)
    second.request("PUT", "/connectors/broken/stop")
    await_states(third, "broken", "STOPPED")
    third.request("PUT", "/connectors/broken/resume")
    eventually(lambda: states(first, "broken")[:1] == ["FAILED"], "the failure", 60)
    second.request("PUT", "/connectors/broken/stop")
    await_states(third, "broken", "STOPPED")
    bad.unlink()
    third.request("PUT", "/connectors/broken/resume")
    await_states(first, "broken", "RUNNING", "RUNNING")
    second.request("PUT", "/connectors/broken/stop")
    await_states(first, "broken", "STOPPED")
    third.delete("broken")
    eventually(lambda: states(first, "broken") == [], "the end", 30)


@pytest.mark.parametrize("state", ["PAUSED", "STOPPED"])
def test_create_connector_with_an_initial_state(shared: Cluster, state: str) -> None:
    """testCreateConnectorWithPausedInitialState, testCreateSourceConnectorWithStoppedInitialStateAndModifyOffsets,
    testDeleteConnectorCreatedWithPausedOrStoppedInitialState."""
    first, second, third = shared.workers
    name = f"initially-{state.lower()}"
    wanted = {"name": name, "config": shared.counting(name, 2), "initial_state": state}
    first.request("POST", "/connectors", wanted)
    await_states(second, name, state)
    assert third.request("GET", f"/connectors/{name}/tasks") == []
    if state == "STOPPED":
        offsets = [{"partition": {"task": 0}, "offset": {"number": 500}}]
        second.request("PATCH", f"/connectors/{name}/offsets", {"offsets": offsets})
    second.request("PUT", f"/connectors/{name}/resume")
    await_states(third, name, *["RUNNING"] * 3)
    second.delete(name)
    eventually(lambda: states(first, name) == [], "the end", 30)
    first.request("POST", "/connectors", wanted)
    await_states(second, name, state)
    third.delete(name)
    eventually(lambda: name not in first.request("GET", "/connectors"), "the end", 30)


def test_create_sink_connector_with_stopped_initial_state_and_modify_offsets(shared: Cluster, kafka: Kafka) -> None:
    """testCreateSinkConnectorWithStoppedInitialStateAndModifyOffsets: the first five records are left out."""
    first, second, third = shared.workers
    topic = f"{shared.tag}-ten"
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for number in range(1, 11):
        producer.produce(topic, str(number).encode(), partition=0)
    assert producer.flush(30) == 0
    first.request("POST", "/connectors", {"name": "ten", "config": shared.noting("ten", [topic]), "initial_state": "STOPPED"})
    await_states(second, "ten", "STOPPED")
    assert third.request("GET", "/connectors/ten")["tasks"] == third.request("GET", "/connectors/ten/tasks") == []
    offsets = [{"partition": {"kafka_topic": topic, "kafka_partition": 0}, "offset": {"kafka_offset": 5}}]
    second.request("PATCH", "/connectors/ten/offsets", {"offsets": offsets})
    third.request("PUT", "/connectors/ten/resume")
    await_states(first, "ten", "RUNNING", "RUNNING")

    def noted() -> list[str]:
        notes = shared.notes("ten")
        return notes.read_text().splitlines() if notes.exists() else []

    eventually(lambda: len(noted()) >= 5, lambda: f"five notes: {noted()}", 60)
    assert [line.split()[-1] for line in noted()] == ["6", "7", "8", "9", "10"]
    second.delete("ten")


@pytest.fixture
def strict_kafka(tmp_path: Path) -> Iterator[str]:
    """The address of a broker that creates no topics by itself."""
    broker = KafkaBroker(tmp_path / "strict", more="auto.create.topics.enable=false\n")
    yield broker.bootstrap
    broker.discard()


def test_source_task_not_blocked_on_shutdown_with_non_existent_topic(strict_kafka: str, tmp_path: Path, tag: str) -> None:
    """testSourceTaskNotBlockedOnShutdownWithNonExistentTopic: nothing creates the topic; a task that waits for it ends all the same."""
    cluster = Cluster(tmp_path, strict_kafka, tag)
    try:
        cluster.add(2)
        first, second = cluster.workers
        first.create("lost", cluster.counting("lost", 2), tasks=2)
        owned = [*first.children(), *second.children()]
        assert len(owned) >= 2
        eventually(lambda: all("Counting" in worker.log.read_text() for worker in cluster.workers), "the first records", 60)
        second.delete("lost")
        eventually(lambda: not {*first.children(), *second.children()} & {*owned}, "the end of the tasks", 60)
        assert states(first, "lost") == []
    finally:
        cluster.close()


@pytest.fixture
def killable_kafka(tmp_path: Path) -> Iterator[KillableBroker]:
    """A broker that creates no topics by itself."""
    broker = KillableBroker(tmp_path / "killable", more="auto.create.topics.enable=false\n")
    yield broker
    broker.stop()


def test_request_timeouts(killable_kafka: KillableBroker, tmp_path: Path, tag: str) -> None:
    """testRequestTimeouts: requests that Kafka leaves waiting are refused in time, with what was under way; the next ones, too.

    Kafka's requests end with a time of their own and name the stage of the worker; here the write ends first, and says why.
    """
    cluster = Cluster(tmp_path, killable_kafka.bootstrap, tag)
    try:
        worker = cluster.add()
        cluster.create("sizes", cluster.counting("sizes", 2))

        def refused(method: str, path: str, body: object = None) -> str:
            began = now_ms()
            with pytest.raises(RefusedError) as refused:
                worker.request(method, f"/connectors/sizes{path}", body)
            assert refused.value.status == 500
            assert now_ms() - began < WRITE_MS, "a write waits for half a minute"
            return refused.value.message

        killable_kafka.kill()
        message = refused("PUT", "/config", cluster.counting("sizes", 3))
        assert re.fullmatch(
            r"Error writing connector configuration to Kafka: Topic '.*' did not take 1 of 1 records within 30 s\.", message
        )
        killable_kafka.bring_back()
        worker.request("PUT", "/connectors/sizes/config", cluster.counting("sizes", 3))
        await_states(worker, "sizes", *["RUNNING"] * 4)

        topic = worker.topic("config")
        admin = AdminClient({"bootstrap.servers": killable_kafka.bootstrap})
        admin.delete_topics([topic])[topic].result(30)
        message = refused("PUT", "/config", cluster.counting("sizes", 2))
        assert message.startswith(f"Error writing connector configuration to Kafka: Topic '{topic}'")
        assert refused("DELETE", "").startswith(f"Error removing connector configuration from Kafka: Topic '{topic}'")
        await_states(worker, "sizes", *["RUNNING"] * 4)
    finally:
        cluster.close()


def test_tasks_max_enforcement(shared: Cluster) -> None:
    """testTasksMaxEnforcement, of what a connector makes; not of an older, larger set that the topic holds."""
    first, second, third = shared.workers
    config = shared.counting("many", 1)
    first.request("PUT", "/connectors/many/config", {**config, "tasks": "2"})
    await_states(third, "many", "FAILED")
    said = "The connector many has generated 2 tasks, which is greater than 1, the maximum number of tasks it is configured to create."
    assert said in second.status("many")["connector"]["trace"]
    for tasks in (2, 3):
        second.request("PUT", "/connectors/many/config", {**config, "tasks": str(tasks), "tasks.max.enforce": "false"})
        await_states(first, "many", *["RUNNING"] * (tasks + 1))
    third.request("PUT", "/connectors/many/config", config)
    await_states(first, "many", "RUNNING", "RUNNING")
    first.delete("many")


def test_patch_connector_config(shared: Cluster) -> None:
    """testPatchConnectorConfig."""
    first, second, third = shared.workers
    config = {**shared.noting("patched", [f"{shared.tag}-sizes-0"], 2), "kept": "1", "dropped": "1"}
    shared.create("patched", config)
    second.request("PATCH", "/connectors/patched/config", {"tasks.max": "3", "added": "1", "dropped": None})
    await_states(third, "patched", *["RUNNING"] * 4)
    del config["dropped"]
    assert first.request("GET", "/connectors/patched/config") == {**config, "name": "patched", "tasks.max": "3", "added": "1"}
    first.delete("patched")


def test_runtime_property_reconfiguration(shared: Cluster, kafka: Kafka) -> None:
    """testRuntimePropertyReconfiguration (KAFKA-9228): what only the worker reads of a configuration restarts the tasks, too."""
    first, second, third = shared.workers
    shared.create("texts", shared.counting("texts", 1))
    eventually(lambda: kafka.count(f"{shared.tag}-texts-0") > 0, "records", 30)
    config = shared.noting("converted", [f"{shared.tag}-texts-0"], 1)
    first.request("PUT", "/connectors/converted/config", {**config, "value.converter": "org.apache.kafka.connect.json.JsonConverter"})
    await_states(third, "converted", "RUNNING", "FAILED")
    second.request("PUT", "/connectors/converted/config", config)
    await_states(third, "converted", "RUNNING", "RUNNING")
    eventually(lambda: shared.notes("converted").exists() and shared.notes("converted").stat().st_size > 0, "notes", 60)
    for name in ("texts", "converted"):
        first.delete(name)


# -- SessionedProtocolIntegrationTest


def test_ensure_internal_endpoint_is_secured(shared: Cluster) -> None:
    """ensureInternalEndpointIsSecured: with and without the connector, through leader and followers, no signature and a wrong one."""

    def hand_in(worker: Worker) -> tuple[int, str]:
        with pytest.raises(RefusedError) as refused:
            worker.request("POST", "/connectors/guarded/tasks", [])
        return refused.value.status, refused.value.message

    for worker in shared.workers:
        assert hand_in(worker) == (400, "Internal request missing required signature")
    shared.create("guarded", shared.counting("guarded", 1))
    for worker in shared.workers:
        assert hand_in(worker) == (400, "Internal request missing required signature")
    assert len(shared.workers[0].request("GET", "/connectors/guarded/tasks")) == 1
    shared.workers[0].delete("guarded")


# -- ConnectorRestartApiIntegrationTest


def test_connector_restart_api(shared: Cluster, kafka: Kafka, tmp_path: Path) -> None:
    """testFailedConnectorRestart…, testFailedTasksRestart…, testOneFailedTasksRestartOnlyOneTasks: what each form of the request starts."""
    name, bad = "restarted", tmp_path / "fails"
    first, second, third = shared.workers
    bad.touch()
    failing = shared.counting(name, 2, fails="connector", fails_while=str(bad))
    first.request("PUT", f"/connectors/{name}/config", failing)
    eventually(lambda: states(first, name)[:1] == ["FAILED"], "the failure", 60)
    for worker, form in ((second, "false&includeTasks=false"), (third, "false&includeTasks=true"), (second, "true&includeTasks=true")):
        answer = worker.request("POST", f"/connectors/{name}/restart?onlyFailed={form}") or worker.status(name)
        assert answer["connector"]["state"] in ("RESTARTING", "FAILED", "RUNNING")
        eventually(lambda: states(first, name)[:1] == ["FAILED"], "the failure again", 60)
    bad.unlink()

    def starts(task: int) -> list[str]:
        found = [Written.parse(message.value() or b"").incarnation for message in kafka.read(f"{shared.tag}-{name}-{task}")]
        return list(dict.fromkeys(found))

    for fails, failed in (("task", [0, 1]), ("task 1", [1])):
        task_bad = tmp_path / f"{fails} fails"  # another one, at which the tasks of the configuration before do not look
        task_bad.touch()
        first.request("PUT", f"/connectors/{name}/config", shared.counting(name, 2, fails=fails, fails_while=str(task_bad)))
        await_states(second, name, "RUNNING", *["FAILED" if task in failed else "RUNNING" for task in range(2)])
        task_bad.unlink()
        before = [starts(task) for task in range(2)]
        for form in ("onlyFailed=true&includeTasks=false", "onlyFailed=false&includeTasks=false"):
            third.request("POST", f"/connectors/{name}/restart?{form}")
            await_states(second, name, "RUNNING", *["FAILED" if task in failed else "RUNNING" for task in range(2)])
        answer = third.request("POST", f"/connectors/{name}/restart?onlyFailed=true&includeTasks=true")
        assert [part["state"] for part in answer["tasks"]] == ["RESTARTING" if task in failed else "RUNNING" for task in range(2)]
        assert answer["connector"]["state"] == "RUNNING"
        await_states(second, name, *["RUNNING"] * 3)
        for task in failed:
            eventually(lambda task=task, before=before: len(starts(task)) == len(before[task]) + 1, f"a new start of task {task}", 60)
        for task in {0, 1} - {*failed}:
            assert len(starts(task)) <= len(before[task]) + 1, "a task that had not failed was started again"
            last = starts(task)[-1]
            third.request("POST", f"/connectors/{name}/restart?onlyFailed=true&includeTasks=true")
            await_states(second, name, *["RUNNING"] * 3)
            assert starts(task)[-1] == last
    first.delete(name)


# -- OffsetsApiIntegrationTest


def test_offsets_of_connectors_that_target_a_different_kafka_cluster(shared: Cluster, kafka: Kafka, tmp_path: Path) -> None:
    """test{Get,Alter,Reset}{Sink,Source}ConnectorOffsetsDifferentKafkaClusterTargeted, …OverriddenConsumerGroupId, …CustomOffsetsTopic."""
    first, second, third = shared.workers
    broker = KafkaBroker(tmp_path / "kafka")
    other = Kafka(broker.bootstrap)
    try:
        there = {f"{client}.override.bootstrap.servers": other.bootstrap for client in ("producer", "consumer", "admin")}
        own = {"offsets.storage.topic": f"{shared.tag}-own"}
        group = {"consumer.override.group.id": f"{shared.tag}-group"}
        topic = f"{shared.tag}-elsewhere-0"
        shared.create("elsewhere", {**shared.counting("elsewhere", 1), **there, **own})
        shared.create("reader", {**shared.noting("reader", [topic], 1), **there, **group})
        eventually(lambda: other.count(topic) > 10, "records there", 60)
        assert kafka.count(topic) == 0

        def offsets(worker: Worker, name: str) -> Any:
            return worker.request("GET", f"/connectors/{name}/offsets")["offsets"]

        eventually(lambda: offsets(second, "elsewhere"), "the source's offset", 60)
        assert other.count(own["offsets.storage.topic"]) > 0
        eventually(lambda: offsets(third, "reader"), "the sink's offset", 60)
        for name in ("elsewhere", "reader"):
            first.request("PUT", f"/connectors/{name}/stop")
            await_states(first, name, "STOPPED")
        altered = {
            "elsewhere": [{"partition": {"task": 0}, "offset": {"number": 5}}],
            "reader": [{"partition": {"kafka_topic": topic, "kafka_partition": 0}, "offset": {"kafka_offset": 5}}],
        }
        for name, wanted in altered.items():
            eventually(lambda name=name, wanted=wanted: is_done(second, "PATCH", name, {"offsets": wanted}), "the change", 60)
            assert offsets(third, name) == wanted
            for _ in range(2):
                eventually(lambda name=name: is_done(third, "DELETE", name, None), "the reset, also of what is empty", 60)
                assert offsets(second, name) == []
    finally:
        for name in ("elsewhere", "reader"):
            first.delete(name)
        broker.stop()


@pytest.mark.parametrize(("method", "verb"), [("PATCH", "alter"), ("DELETE", "reset")])
def test_sink_connector_offsets_of_zombie_sink_tasks(shared: Cluster, kafka: Kafka, tmp_path: Path, method: str, verb: str) -> None:
    """testAlterSinkConnectorOffsetsZombieSinkTasks, testResetSinkConnectorOffsetsZombieSinkTasks: a task that does not end keeps its
    consumer group, so offsets stay as they are until it has ended."""
    first, second, third = shared.workers
    name, topic, blocks = f"zombie-{verb}", f"{shared.tag}-zombie-{verb}", tmp_path / "blocks"
    blocks.touch()
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for _ in range(10):
        producer.produce(topic, b"value", partition=0)
    assert producer.flush(30) == 0
    config = shared.noting(name, [topic]) | {"connector.class": "tests.BlockingSink", "block": "Task::stop", "while": str(blocks)}
    first.create(name, config)
    partition = {"kafka_topic": topic, "kafka_partition": 0}
    caught_up = {"offsets": [{"partition": partition, "offset": {"kafka_offset": 10}}]}
    eventually(lambda: second.request("GET", f"/connectors/{name}/offsets") == caught_up, "the offset of the last record", 60)
    second.request("PUT", f"/connectors/{name}/stop")
    eventually(lambda: third.request("GET", f"/connectors/{name}/tasks") == [], "the end of the tasks' configurations", 30)
    body = {"offsets": [{"partition": partition, "offset": None}]} if method == "PATCH" else None
    with pytest.raises(RefusedError, match=f"Failed to {verb} consumer group offsets .* zombie sink task") as refused:
        third.request(method, f"/connectors/{name}/offsets", body)
    assert refused.value.status == 500
    assert first.request("GET", f"/connectors/{name}/offsets") == caught_up
    blocks.unlink()
    eventually(lambda: is_done(third, method, name, body), "the request", 60)
    assert first.request("GET", f"/connectors/{name}/offsets") == {"offsets": []}
    second.delete(name)


def is_done(worker: Worker, method: str, name: str, body: object) -> bool:
    """Whether offsets were changed; a sink's group may have members for a moment."""
    try:
        return "successfully" in worker.request(method, f"/connectors/{name}/offsets", body)["message"]
    except RefusedError as error:
        assert "Please retry" in error.message, error
        return False


# -- ExactlyOnceSourceIntegrationTest

ENABLED = {"exactly.once.source.support": "ENABLED", "offset.flush.interval.ms": "500"}


@pytest.fixture
def exact(kafka: Kafka, tmp_path: Path, tag: str) -> Iterator[Cluster]:
    """Two workers with exactly-once support, as capitals spell it."""
    made = Cluster(tmp_path, kafka.bootstrap, tag, {**ALL_OVERRIDES, **ENABLED})
    try:
        made.add(2)
        yield made
    finally:
        made.close()


def test_connector_reconfiguration(exact: Cluster, kafka: Kafka) -> None:
    """testConnectorReconfiguration: other numbers of tasks, with fencing of the last set, and each record once."""
    first, second = exact.workers
    exact.create("sizes", exact.counting("sizes", 3))
    for number, tasks in enumerate((5, 1, 4, 1)):
        (first, second)[number % 2].request("PUT", "/connectors/sizes/config", exact.counting("sizes", tasks))
        await_states(first, "sizes", *["RUNNING"] * (tasks + 1), seconds=120)
        before = kafka.count(f"{exact.tag}-sizes-0")
        eventually(lambda before=before: kafka.count(f"{exact.tag}-sizes-0") > before + 5, "records of this set", 60)
    records = [json.loads(m.value() or b"null") for m in kafka.read(first.topic("config")) if m.key() == b"tasks-fencing-sizes"]
    assert [record["task-count"] for record in records][-5:] == [3, 5, 1, 4, 1]
    second.request("PUT", "/connectors/sizes/stop")
    await_states(first, "sizes", "STOPPED")
    assert_each_once(exact, kafka, "sizes", 5)


def is_created(cluster: Cluster, name: str, by: Worker) -> bool:
    try:
        cluster.create(name, cluster.counting(name, 2), by)
    except RefusedError as error:
        assert "can be safely retried" in error.message, error
        return False
    return True


def test_fenced_leader_recovery(exact: Cluster, kafka: Kafka) -> None:
    """testFencedLeaderRecovery: a leader whose transactional id somebody else has taken claims it again, and requests are carried out."""
    group = exact.workers[0].properties["group.id"]
    interloper = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": f"connect-cluster-{group}"})
    interloper.init_transactions(30)
    with pytest.raises(RefusedError, match=r"500: Failed to write to config topic; .* can be safely retried"):
        exact.create("after-0", exact.counting("after-0", 2))
    for number, worker in enumerate(exact.workers):
        eventually(lambda n=number, by=worker: is_created(exact, f"after-{n}", by), "the leader's claim", 30)
        await_states(worker, f"after-{number}", "RUNNING", "RUNNING", "RUNNING")
    with pytest.raises(KafkaException, match=r"(?i)fenced|epoch"):
        interloper.begin_transaction()
        interloper.produce(exact.workers[0].topic("config"), b"{}", b"commit-nothing")
        interloper.commit_transaction(30)
    for number in range(2):
        assert_each_once(exact, kafka, f"after-{number}", 2)


def test_tasks_fail_on_inability_to_fence(guarded_kafka: GuardedKafka, tmp_path: Path, tag: str) -> None:
    """testTasksFailOnInabilityToFence: tasks do not start while their predecessors cannot be fenced, and a restart helps once they can."""
    cluster = Cluster(tmp_path, guarded_kafka.bootstrap, tag, {**ALL_OVERRIDES, **ENABLED})
    try:
        worker = cluster.add()
        login = guarded_kafka.login("worker", "admin.override.")
        cluster.create("guarded", {**cluster.counting("guarded", 2), **login})
        await_states(worker, "guarded", "RUNNING", "RUNNING", "RUNNING")
        worker.request("PUT", "/connectors/guarded/config", {**cluster.counting("guarded", 1), **login})
        await_states(worker, "guarded", "RUNNING", "FAILED")
        assert "Failed to fence out zombie source tasks of connector guarded" in worker.status("guarded")["tasks"][0]["trace"]
        prefix = f"{worker.properties['group.id']}-guarded-"
        right = AclBinding(
            ResourceType.TRANSACTIONAL_ID,
            prefix,
            ResourcePatternType.PREFIXED,
            "User:worker",
            "*",
            AclOperation.ALL,
            AclPermissionType.ALLOW,
        )
        admin = AdminClient({"bootstrap.servers": guarded_kafka.bootstrap})
        admin.create_acls([right])[right].result(20)
        worker.request("POST", "/connectors/guarded/tasks/0/restart")
        await_states(worker, "guarded", "RUNNING", "RUNNING")
        guarded = Kafka(guarded_kafka.bootstrap)
        before = guarded.count(f"{tag}-guarded-0")
        eventually(lambda: guarded.count(f"{tag}-guarded-0") > before, "records of the new task")
        assert_each_once(cluster, guarded, "guarded", 2)
    finally:
        cluster.close()


def test_exactly_once_is_enabled_by_two_rolling_restarts(cluster: Cluster, kafka: Kafka) -> None:
    """What KIP-618 says of a group that runs: every worker is ``preparing`` before one is ``enabled``, and a source runs through it. The
    leader comes last, so that workers of the next step are led by one of the last."""
    cluster.add(3)
    tasks = 3
    cluster.create("counted", cluster.counting("counted", tasks))

    def await_records() -> None:
        cluster.await_all_running(tasks)
        for task in range(tasks):
            topic = f"{cluster.tag}-counted-{task}"
            before = kafka.count(topic)
            eventually(lambda topic=topic, before=before: kafka.count(topic) > before + 5, f"more records of task {task}", 60)

    await_records()
    for support in ("preparing", "enabled"):
        leader = cluster.leader()
        for worker in sorted(cluster.workers, key=lambda worker, leader=leader: worker is leader):  # type: ignore[misc]
            worker.restart({"exactly.once.source.support": support})
            await_records()
    for worker in cluster.workers:
        starts = {task: cluster.starts("counted", task) for _, task in tasks_on(cluster.places(), worker)}
        worker.kill()
        worker.restart()
        eventually(lambda starts=starts: all(cluster.starts("counted", task) > before for task, before in starts.items()), "starts", 60)
        await_records()
    assert_each_once(cluster, kafka, "counted", tasks)


def test_potential_deadlock_when_producing_to_offsets_topic(exact: Cluster, tmp_path: Path) -> None:
    """testPotentialDeadlockWhenProducingToOffsetsTopic."""
    worker, lines = exact.workers[0], tmp_path / "lines.txt"
    lines.write_text("one\n")
    config = {"connector.class": "FileStreamSource", "file": str(lines), "topic": worker.topic("offset"), "tasks.max": "1"}
    worker.request("PUT", "/connectors/deadlock/config", config)
    await_states(worker, "deadlock", "RUNNING", "FAILED")
    trace = worker.status("deadlock")["tasks"][0]["trace"]
    assert "Source tasks may not produce to their own offsets topics when exactly-once support is enabled" in trace
