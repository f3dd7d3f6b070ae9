"""Several workers in one group over a real broker: who runs what, what happens when one is lost or ends, and requests to each of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from connect_py.app.services.worker import RefusedError, Worker
from tests.fix_kafka import Kafka
from tests.waiting import eventually

pytestmark = pytest.mark.services

#: A session as short as tests can bear on a busy machine, and a delay by which a lost worker's work moves soon.
SETTINGS = {"session.timeout.ms": "6000", "heartbeat.interval.ms": "1000", "scheduled.rebalance.max.delay.ms": "2000"}

Places = dict[str, list[tuple[str, str]]]


class Group:
    """Workers of one group with connectors that copy files."""

    def __init__(self, make_worker: Callable[..., Worker], folder: Path, tag: str) -> None:
        self._make, self._folder, self._tag = make_worker, folder, tag
        self.workers: list[Worker] = []

    def add(self, count: int = 1, **more: str) -> Worker:
        for _ in range(count):
            names: dict[str, str] = {}
            if self.workers:
                first = self.workers[0].properties
                names = {name: first[name] for name in first if name == "group.id" or name.endswith(".storage.topic")}
            settings = {name.replace("_", "."): value for name, value in more.items()}
            self.workers.append(self._make(properties={**SETTINGS, **names, **settings}))
        return self.workers[-1]

    def config(self, name: str) -> dict[str, str]:
        path = self._folder / f"{name}.txt"
        path.write_text("one\ntwo\n")
        return {"connector.class": "FileStreamSource", "file": str(path), "topic": self.topic(name), "tasks.max": "1"}

    def append(self, name: str, line: str) -> None:
        with (self._folder / f"{name}.txt").open("a") as file:
            file.write(f"{line}\n")

    def topic(self, name: str) -> str:
        return f"{self._tag}-{name}"

    def create(self, *names: str, by: Worker | None = None) -> None:
        for name in names:
            (by or self.workers[0]).request("POST", "/connectors", {"name": name, "config": self.config(name)})
        for name in names:
            (by or self.workers[0]).wait_for(name, "RUNNING")

    def await_places(self, wanted: Callable[[Places], bool], what: str, seconds: float = 60, by: Worker | None = None) -> Places:
        last: Places = {}

        def reached() -> bool:
            nonlocal last
            last = places(by or self.workers[0])
            return all(state == "RUNNING" for parts in last.values() for state, _ in parts) and wanted(last)

        eventually(reached, lambda: f"{what}: {last}", seconds)
        return last

    def leader(self) -> tuple[Worker, list[Worker]]:
        """The leader and the others."""
        urls = {found for worker in self.workers if (found := leader_url(worker))}
        assert len(urls) == 1, urls
        leads = next(worker for worker in self.workers if worker.url in urls)
        return leads, [worker for worker in self.workers if worker is not leads]


def leader_url(worker: Worker) -> str:
    """As the worker's log said it last."""
    lines = [line for line in worker.log.read_text().splitlines() if "leaderUrl='" in line]
    return lines[-1].partition("leaderUrl='")[2].partition("'")[0].rstrip("/") if lines else ""


def address(worker: Worker) -> str:
    return worker.url.removeprefix("http://")


def places(worker: Worker) -> Places:
    """State and worker of each connector and its tasks."""
    found: Places = {}
    for name, shown in worker.request("GET", "/connectors?expand=status").items():
        status = shown["status"]
        found[name] = [(part["state"], part["worker_id"]) for part in (status["connector"], *status["tasks"])]
    return found


def counts(shown: Places) -> dict[str, int]:
    """Parts by worker."""
    owners = [owner for parts in shown.values() for _, owner in parts]
    return {owner: owners.count(owner) for owner in set(owners)}


def gone(worker: Worker, dead: Worker) -> set[str]:
    """States of what a dead worker ran, once they say that it is gone."""
    shown = worker.request("GET", "/connectors?expand=status").values()
    parts = [part for one in shown for part in (one["status"]["connector"], *one["status"]["tasks"])]
    found = [part for part in parts if part["worker_id"] == address(dead)]
    return {part["state"] for part in found if f"The worker {address(dead)} is gone." in part.get("trace", "")} if found else set()


def topics(worker: Worker, name: str) -> list[str]:
    found: list[str] = worker.request("GET", f"/connectors/{name}/topics")[name]["topics"]
    return found


def values(kafka: Kafka, topic: str) -> list[str]:
    return [json.loads(message.value())["payload"] for message in kafka.read(topic)]


@pytest.fixture
def group(make_worker: Callable[..., Worker], tmp_path: Path, tag: str) -> Group:
    return Group(make_worker, tmp_path, tag)


def is_shared(group: Group, connectors: int) -> Callable[[Places], bool]:
    def shared(shown: Places) -> bool:
        found = counts(shown)
        parts = [len(parts) for parts in shown.values()]
        return len(parts) == connectors and sum(parts) == 2 * connectors and set(found) == {address(worker) for worker in group.workers}

    return shared


def test_workers_share_the_work_and_each_answers_every_request(group: Group, kafka: Kafka) -> None:
    group.add(2)
    group.create("a", "b", "c", "d")
    shown = group.await_places(is_shared(group, 4), "four connectors on two workers")
    assert sorted(counts(shown).values()) == [4, 4]
    first, second = group.workers
    assert places(second) == places(first)
    assert sorted(second.request("GET", "/connectors")) == ["a", "b", "c", "d"]
    _, (follower,) = group.leader()

    # creating, changing and deleting is the leader's
    created = follower.request("POST", "/connectors", {"name": "e/é", "config": group.config("e"), "initial_state": None})
    assert (created["name"], created["tasks"]) == ("e/é", [])
    follower.wait_for("e%2F%C3%A9", "RUNNING")
    with pytest.raises(RefusedError) as refused:
        follower.request("POST", "/connectors", {"name": "e/é", "config": group.config("e")})
    assert (refused.value.status, refused.value.message) == (409, "Connector e/é already exists")
    with pytest.raises(RefusedError) as refused:
        follower.request("PUT", "/connectors/a/config", {"connector.class": "FileStreamSource"})
    assert refused.value.status == 400
    changed = follower.request("PATCH", "/connectors/a/config", {"batch.size": "7"})
    assert changed["config"]["batch.size"] == "7"
    follower.wait_for("a", "RUNNING")
    follower.request("DELETE", "/connectors/e%2F%C3%A9")
    for worker in group.workers:
        eventually(lambda worker=worker: "e/é" not in worker.request("GET", "/connectors"), "end of the connector")
    with pytest.raises(RefusedError) as refused:
        follower.request("DELETE", "/connectors/none")
    assert (refused.value.status, refused.value.message) == (404, "Connector none not found")

    # restarts are their owners', wherever they are asked for
    for worker in group.workers:
        for name in "abcd":
            worker.request("POST", f"/connectors/{name}/restart")
            worker.request("POST", f"/connectors/{name}/tasks/0/restart")
            answer = worker.request("POST", f"/connectors/{name}/restart?includeTasks=true")
            assert answer["connector"]["state"] == "RESTARTING"
            worker.wait_for(name, "RUNNING")
    with pytest.raises(RefusedError) as refused:
        follower.request("POST", "/connectors?forward=false", {"name": "f", "config": group.config("f")})
    assert refused.value.status == 409
    assert refused.value.message == "Cannot complete request because of a conflicting operation (e.g. worker rebalance)"

    # offsets
    for name in "abcd":
        eventually(lambda name=name: len(follower.request("GET", f"/connectors/{name}/offsets")["offsets"]) == 1, "an offset")
    follower.request("PUT", "/connectors/a/stop")
    follower.wait_for("a", "RUNNING", 0)
    assert "successfully" in follower.request("DELETE", "/connectors/a/offsets")["message"]
    for worker in group.workers:
        assert worker.request("GET", "/connectors/a/offsets") == {"offsets": []}
    before = kafka.count(group.topic("a"))
    follower.request("PUT", "/connectors/a/resume")
    follower.wait_for("a", "RUNNING")
    eventually(lambda: kafka.count(group.topic("a")) == before + 2, "the file from its beginning")

    # topics in use, of tasks wherever they run
    for name in "bcd":
        eventually(lambda name=name: group.topic(name) in topics(follower, name), "topic")
        follower.request("PUT", f"/connectors/{name}/topics/reset")
        assert topics(follower, name) == []
        group.append(name, "three")
        for worker in group.workers:
            eventually(lambda name=name, worker=worker: topics(worker, name) == [group.topic(name)], "topic again")

    # levels of loggers
    follower.request("PUT", "/admin/loggers/connectors.file?scope=cluster", {"level": "DEBUG"})
    for worker in group.workers:
        eventually(lambda worker=worker: worker.request("GET", "/admin/loggers/connectors.file")["level"] == "DEBUG", "level everywhere")
    text = "".join(worker.log.read_text() for worker in group.workers)
    assert "Traceback" not in text and " ERROR " not in text


@pytest.mark.long
def test_the_work_of_a_worker_that_is_killed_is_done_by_the_other(group: Group, kafka: Kafka) -> None:
    group.add(2)
    group.create("a", "b", "c", "d")
    group.await_places(is_shared(group, 4), "four connectors on two workers")
    leader, (follower,) = group.leader()
    for dead, living in ((follower, leader), (leader, None)):
        rest = [worker for worker in group.workers if worker is not dead]
        dead.kill()
        if dead is follower:
            eventually(lambda: gone(leader, follower) == {"UNASSIGNED"}, "what nobody runs says so")
        for name in "abcd":
            group.append(name, f"after {address(dead)}")
        if living is None:  # the other was started again
            living = rest[0]
        group.await_places(lambda shown, living=living: set(counts(shown)) == {address(living)}, "all on one", 60, by=living)
        for name in "abcd":
            eventually(lambda name=name, dead=dead: f"after {address(dead)}" in values(kafka, group.topic(name)), f"lines of {name}")
        if dead is follower:
            dead.restart()
            group.await_places(is_shared(group, 4), "both again", 60, by=living)
    for name in "abcd":
        found = values(kafka, group.topic(name))
        assert list(dict.fromkeys(found)) == ["one", "two", f"after {address(follower)}", f"after {address(leader)}"]


def test_a_worker_that_ends_hands_its_work_over_at_once(group: Group) -> None:
    group.add(3, scheduled_rebalance_max_delay_ms="300000")
    group.create("a", "b", "c")
    group.await_places(lambda shown: len(counts(shown)) == 3, "three connectors on three workers")
    leader, (ends, stays) = group.leader()
    ends.stop()
    group.workers.remove(ends)
    group.await_places(lambda shown: set(counts(shown)) == {address(leader), address(stays)}, "handed over", 10, by=stays)
    leader.stop()
    group.workers.remove(leader)
    group.await_places(lambda shown: set(counts(shown)) == {address(stays)}, "a new leader knows of no delay", 10, by=stays)


def test_tasks_that_a_rebalance_does_not_concern_run_on(group: Group) -> None:
    group.add(2)
    group.create("a", "b")
    group.await_places(is_shared(group, 2), "two connectors on two workers")
    pids = [set(worker.children()) for worker in group.workers]
    group.create("c", "d", by=group.workers[1])
    group.await_places(is_shared(group, 4), "four connectors on two workers")
    group.workers[0].delete("c")
    group.await_places(is_shared(group, 3), "three connectors on two workers")
    for worker, before in zip(group.workers, pids, strict=True):
        assert before <= set(worker.children())


def test_requests_to_all_workers_at_once_are_answered_while_the_group_changes(group: Group) -> None:
    group.add(2)
    group.create("a")

    def ask(number: int) -> list[Any]:
        worker = group.workers[number % 2]
        name = f"n{number}"
        answers: list[Any] = [worker.request("PUT", f"/connectors/{name}/config", group.config(name))["name"]]
        answers.append(worker.request("GET", f"/connectors/{name}")["name"])
        worker.request("PUT", f"/connectors/{name}/pause")
        worker.request("DELETE", f"/connectors/{name}")
        return answers

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(ask, range(12)))
    assert found == [[f"n{number}", f"n{number}"] for number in range(12)]
    for worker in group.workers:
        eventually(lambda worker=worker: worker.request("GET", "/connectors") == ["a"], "end of the others")
    group.await_places(lambda shown: set(shown) == {"a"}, "the first one runs")
