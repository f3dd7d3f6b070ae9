"""Requests through each worker of a group of three: the same answers from all, and the same effect wherever they are sent.

What Kafka's RestForwardingIntegrationTest, ConnectorRestartApiIntegrationTest and OffsetsApiIntegrationTest assert of clusters.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from connect_py.app.client.rest import ConnectClient, Target
from connect_py.app.services.worker import RefusedError, Worker
from tests.canary import now_ms, within
from tests.cluster import Cluster, address, places
from tests.fix_kafka import Kafka
from tests.waiting import eventually

pytestmark = pytest.mark.services

#: None of these tests is about the end of a session: a slow machine, or a worker that stands still for some seconds, must not bring it.
_SESSION_MS = "60000"


@pytest.fixture(scope="module")
def three(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three workers with a counting source `a` of three tasks, a noting sink `s` of its topics, and a counting source `b` of one."""
    made = Cluster(tmp_path_factory.mktemp("cluster"), kafka.bootstrap, "rest" + tmp_path_factory.getbasetemp().name.replace("-", ""))
    try:
        made.add(3, session_timeout_ms=_SESSION_MS)
        made.create("a", made.counting("a", 3))
        made.create("b", made.counting("b", 1))
        made.create("s", made.noting("s", [f"{made.tag}-a-0", f"{made.tag}-b-0"], 2))
        made.await_all_running(6)
        yield made
    finally:
        made.close()


def ask(worker: Worker, method: str, path: str, body: object = None) -> tuple[int, Any]:
    """Status (200 for all that succeed) and what was answered."""
    try:
        return 200, worker.request(method, path, body)
    except RefusedError as error:
        return error.status, error.message


def settled(three: Cluster) -> None:
    three.await_all_running(6)
    first = places(three.workers[0])
    for worker in three.workers[1:]:
        eventually(lambda worker=worker: places(worker) == first, "the same states from all", 20)
    eventually(lambda: sum(len(worker.children()) for worker in three.workers) == 6, "the end of tasks that were deleted", 20)


READS = [
    "/connectors",
    "/connectors?expand=info",
    "/connectors?expand=status",
    "/connectors/a",
    "/connectors/a/config",
    "/connectors/a/tasks",
    "/connectors/a/status",
    "/connectors/a/tasks/2/status",
    "/connectors/b/status",
    "/connectors/s/status",
    "/health",
    "/connector-plugins",
    "/connectors/none",
    "/connectors/none/status",
    "/connectors/none/offsets",
    "/connectors/a/tasks/9/status",
    "/connectors/a/tasks-config",
]


@pytest.mark.parametrize("path", READS)
def test_every_worker_answers_a_read_the_same(three: Cluster, path: str) -> None:
    settled(three)
    answers = [ask(worker, "GET", path) for worker in three.workers]
    assert answers[1:] == answers[:1] * 2


def test_the_page_of_every_worker_shows_the_tasks_of_all(three: Cluster) -> None:
    settled(three)
    assert len({place for found in places(three.workers[0]).values() for _, place in found}) == 3
    for worker in three.workers:
        client = ConnectClient(Target(worker.url))

        def shown(client: ConnectClient = client) -> Mapping[str, Any]:
            return client.page_state()["connectors"]

        eventually(lambda shown=shown: all(entry["rate"] for entry in shown().values()), "rates of all three", 30)
        assert {entry["verdict"] for entry in shown().values()} <= {"running", "streaming", "unknown"}
        for name, tasks in (("a", 3), ("b", 1), ("s", 2)):
            detail = client.page_connector(name)
            assert detail["silent"] == []
            assert [task["here"] for task in detail["task_list"]] == [True] * tasks
            assert all("rss_bytes" in task["latest"] for task in detail["task_list"])
            history = worker.request("GET", f"/ui/api/connectors/{name}/history?seconds=60")
            assert sorted(history["tasks"]) == [str(number) for number in range(tasks)]
        lines, following = client.log_lines("a")
        assert {text.partition("Counting ")[2].partition(" ")[0] for _, _, text in lines} >= {f"{three.tag}-a-{task}" for task in range(3)}
        assert [number for number, _, _ in lines] == sorted(number for number, _, _ in lines)
        assert client.log_lines("a", following)[0] == []


def test_a_worker_that_stands_still_is_named_and_holds_no_page_up(three: Cluster) -> None:
    settled(three)
    first, second, _ = three.workers
    client = ConnectClient(Target(first.url))
    three.freeze(second)
    try:
        with within(8, "a page waits for others for two seconds"):
            details = [client.page_connector(name) for name in ("a", "b", "s")]
        assert [address(second)] in [detail["silent"] for detail in details]
    finally:
        three.thaw()
    settled(three)


def test_a_question_of_nobody_of_the_group_is_refused(three: Cluster) -> None:
    for worker in three.workers:
        question = {"to": address(worker), "at": now_ms(), "ask": ["list"]}
        assert ask(worker, "POST", "/ui/api/group", question) == (400, "Internal request missing required signature")


def test_offsets_and_topics_are_the_same_from_every_worker(three: Cluster) -> None:
    first, *others = three.workers
    for name in ("b", "s"):
        ask(three.workers[0], "PUT", f"/connectors/{name}/stop")
        eventually(lambda name=name: first.status(name)["tasks"] == [], "the end of the tasks", 30)
        found = ask(first, "GET", f"/connectors/{name}/offsets")
        assert found[0] == 200
        assert found[1]["offsets"]
        for worker in others:
            eventually(
                lambda worker=worker, name=name, found=found: ask(worker, "GET", f"/connectors/{name}/offsets") == found, "offsets", 20
            )
            topics = first.request("GET", f"/connectors/{name}/topics")
            assert {*worker.request("GET", f"/connectors/{name}/topics")[name]["topics"]} == {*topics[name]["topics"]}
        ask(first, "PUT", f"/connectors/{name}/resume")
    settled(three)


@pytest.mark.parametrize("number", range(3))
def test_offsets_are_altered_and_reset_through_each_worker(three: Cluster, kafka: Kafka, number: int) -> None:
    """OffsetsApiIntegrationTest: testAlterSourceConnectorOffsets, testResetSourceConnectorOffsets, testAlterSinkConnectorOffsets."""
    worker = three.workers[number]
    refused = ask(worker, "DELETE", "/connectors/b/offsets")
    assert refused[0] == 400
    assert "must be in the STOPPED state" in refused[1]
    worker.request("PUT", "/connectors/b/stop")
    eventually(lambda: worker.status("b")["tasks"] == [], "the end of the tasks", 30)
    new = {"offsets": [{"partition": {"task": 0}, "offset": {"number": 1_000_000 * (number + 1)}}]}
    assert "successfully" in worker.request("PATCH", "/connectors/b/offsets", new)["message"]
    for each in three.workers:
        assert each.request("GET", "/connectors/b/offsets") == new
    assert "successfully" in worker.request("DELETE", "/connectors/b/offsets")["message"]
    for each in three.workers:
        assert each.request("GET", "/connectors/b/offsets") == {"offsets": []}
    worker.request("PATCH", "/connectors/b/offsets", new)
    worker.request("PUT", "/connectors/b/resume")
    settled(three)
    topic = f"{three.tag}-b-0"

    def is_taken_up() -> bool:
        return any(int((record.value() or b"0").split()[0]) == 1_000_000 * (number + 1) + 1 for record in kafka.read(topic))

    eventually(is_taken_up, "a record from the altered offset", 30)

    worker.request("PUT", "/connectors/s/stop")
    eventually(lambda: worker.status("s")["tasks"] == [], "the end of the sink's tasks", 30)
    back = {"offsets": [{"partition": {"kafka_topic": topic, "kafka_partition": 0}, "offset": {"kafka_offset": 1}}]}
    eventually(lambda: ask(worker, "PATCH", "/connectors/s/offsets", back)[0] == 200, "the consumers' end", 30)
    for each in three.workers:
        shown = each.request("GET", "/connectors/s/offsets")["offsets"]
        assert back["offsets"][0] in shown
    worker.request("PUT", "/connectors/s/resume")
    settled(three)


@pytest.mark.parametrize("number", range(3))
def test_restarts_through_each_worker_reach_the_owners(three: Cluster, number: int) -> None:
    """ConnectorRestartApiIntegrationTest: of running connectors and tasks, only the connector, both, only what failed; of unknown ones."""
    worker = three.workers[number]
    settled(three)
    assert ask(worker, "POST", "/connectors/none/restart?includeTasks=true&onlyFailed=true")[0] == 404
    assert ask(worker, "POST", "/connectors/none/restart")[0] == 404
    assert ask(worker, "POST", "/connectors/a/tasks/9/restart")[0] == 404

    def processes() -> set[int]:
        return {pid for each in three.workers for pid in each.children()}

    before = processes()
    answer = worker.request("POST", "/connectors/a/restart?includeTasks=true&onlyFailed=true")
    assert [part["state"] for part in (answer["connector"], *answer["tasks"])] == ["RUNNING"] * 4
    worker.request("POST", "/connectors/a/restart")
    settled(three)
    assert processes() == before, "tasks were restarted without need"

    answer = worker.request("POST", "/connectors/a/restart?includeTasks=true&onlyFailed=false")
    assert [part["state"] for part in (answer["connector"], *answer["tasks"])] == ["RESTARTING"] * 4
    eventually(lambda: len(before - processes()) == 3 and len(processes()) == len(before), "three new processes", 30)
    settled(three)

    before = processes()
    for task in range(3):
        worker.request("POST", f"/connectors/a/tasks/{task}/restart")
    eventually(lambda: len(before - processes()) == 3 and len(processes()) == len(before), "three new processes", 30)
    settled(three)


@pytest.mark.parametrize("number", range(3))
def test_target_states_through_each_worker_are_everybodys(three: Cluster, number: int) -> None:
    worker = three.workers[number]
    for request, state, tasks in (("pause", "PAUSED", 3), ("resume", "RUNNING", 3), ("stop", "STOPPED", 0), ("resume", "RUNNING", 3)):
        worker.request("PUT", f"/connectors/a/{request}")
        for each in three.workers:

            def reached(each: Worker = each, state: str = state, tasks: int = tasks) -> bool:
                shown = each.status("a")
                return [part["state"] for part in (shown["connector"], *shown["tasks"])] == [state] * (1 + tasks)

            eventually(reached, lambda each=each: str(each.status("a")), 40)
    settled(three)


@pytest.mark.parametrize("number", range(3))
def test_connectors_are_created_changed_and_deleted_through_each_worker(three: Cluster, number: int) -> None:
    """RestForwardingIntegrationTest, without TLS: through the leader and through followers."""
    worker, name = three.workers[number], f"new-{number}"
    answer = worker.request("POST", "/connectors", {"name": name, "config": three.counting(name, 1)})
    assert (answer["name"], answer["tasks"], answer["type"]) == (name, [], "source")
    worker.wait_for(name, "RUNNING")
    assert ask(worker, "POST", "/connectors", {"name": name, "config": three.counting(name, 1)}) == (
        409,
        f"Connector {name} already exists",
    )
    assert ask(worker, "PUT", f"/connectors/{name}/config", {"connector.class": "tests.CountingSource"})[0] == 400
    worker.request("PATCH", f"/connectors/{name}/config", {"tasks.max": "2"})
    for each in three.workers:
        each.wait_for(name, "RUNNING", 2)
        eventually(lambda each=each: each.request("GET", f"/connectors/{name}")["config"]["tasks.max"] == "2", "the new configuration", 20)
    worker.request("DELETE", f"/connectors/{name}")
    for each in three.workers:
        eventually(lambda each=each: name not in each.request("GET", "/connectors"), "end of the connector", 20)
        eventually(lambda each=each: ask(each, "GET", f"/connectors/{name}/status")[0] == 404, "end of its status", 20)
    settled(three)


@pytest.mark.parametrize("number", range(3))
def test_the_same_configuration_through_each_worker_restarts_the_connector_and_no_task(three: Cluster, number: int) -> None:
    settled(three)

    def starts() -> int:
        return sum(worker.log.read_text().count("Connector a runs with 3 task(s)") for worker in three.workers)

    before, started = {pid for each in three.workers for pid in each.children()}, starts()
    answer = three.workers[number].request("PUT", "/connectors/a/config", three.counting("a", 3))
    assert (answer["name"], len(answer["tasks"]), answer["config"]["tasks.max"]) == ("a", 3, "3")
    eventually(lambda: starts() == started + 1, "another start of the connector", 20)
    settled(three)
    assert {pid for each in three.workers for pid in each.children()} == before


@pytest.mark.parametrize("number", range(3))
def test_levels_of_loggers_of_the_whole_cluster_are_set_through_each_worker(three: Cluster, number: int) -> None:
    worker, level = three.workers[number], ("DEBUG", "WARN", "INFO")[number]
    worker.request("PUT", "/admin/loggers/connect_py.group?scope=cluster", {"level": level})
    for each in three.workers:

        def is_set(each: Worker = each) -> bool:
            # A worker that has not had the level yet may not know the logger.
            return bool(each.request("GET", "/admin/loggers").get("connect_py.group", {}).get("level") == level)

        eventually(is_set, f"level of {address(each)}", 20)


def test_a_request_that_must_not_travel_is_refused_by_followers_only(three: Cluster) -> None:
    leader = three.leader()
    for worker in three.workers:
        status, message = ask(worker, "POST", "/connectors?forward=false", {"name": "a", "config": three.counting("a", 3)})
        assert status == 409
        exists = "Connector a already exists"
        conflict = "Cannot complete request because of a conflicting operation (e.g. worker rebalance)"
        assert message == (exists if worker is leader else conflict)


def test_no_worker_logged_an_error(three: Cluster) -> None:
    for worker in three.workers:
        text = worker.log.read_text()
        assert "Traceback" not in text
        assert [line for line in text.splitlines() if " ERROR " in line] == []


@pytest.mark.long
def test_a_request_waits_for_the_end_of_a_rebalance_and_is_refused_after_its_time(cluster: Cluster) -> None:
    """A worker that stands still holds a round up until its session is over."""
    cluster.add(2, rest_conflict_wait_ms="30000")
    hurried = cluster.add(1, rest_conflict_wait_ms="200")
    cluster.create("a", cluster.counting("a", 3))
    cluster.await_all_running(3)
    patient, stands = sorted(cluster.workers[:2], key=lambda worker: worker is not cluster.leader())
    restart = "/connectors/a/restart?includeTasks=true"
    cluster.freeze(stands)
    try:
        patient.request("POST", "/connectors", {"name": "b", "config": cluster.counting("b")})
        eventually(lambda: "b" in hurried.request("GET", "/connectors"), "a connector that calls for a round", 10)
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(urllib.request.Request(hurried.url + restart, method="POST"), timeout=60)
        assert refused.value.code == 409
        assert refused.value.headers["Retry-After"] == "1"
        assert json.load(refused.value)["message"].startswith("Cannot complete request momentarily")
        assert patient.request("POST", restart)["name"] == "a"
    finally:
        cluster.thaw()
    cluster.await_all_running(4)
