"""What a worker adds to requests that it passes on to another worker of its group."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from starlette.testclient import TestClient

from connect_py.app.services.memory_herder import MemoryHerder
from connect_py.errors import NotFoundError
from connect_py.group.peers import Answer, Peers
from connect_py.herder.base import ConnectorInfo, MisdirectedError
from rest_api import RestConfig, create_app

CONFIG = {"name": "orders", "connector.class": "FileStreamSource", "tasks.max": "1", "file": "/lines", "topic": "lines"}
LOOKS = 5


class Follower(MemoryHerder):
    """Sends changes to a leader, and reads the leader's configurations only at the fifth look after each change."""

    def __init__(self, leader: MemoryHerder, unknown: float = 0) -> None:
        """The leader is not known at the first `unknown` looks."""
        super().__init__()
        self._leader = leader
        self._looks = 0
        self._unknown = unknown

    def change(self, *_: Any, **__: Any) -> Any:
        """Stand for each request that only the leader can answer."""
        self._looks = 0
        raise MisdirectedError(self._leader_url, "the leader")

    def _leader_url(self) -> str | None:
        self._unknown -= 1
        return "http://leader/" if self._unknown < 0 else None

    put_connector = create_connector = delete_connector = put_task_configs = fence_zombies = change

    def connector_info(self, name: str) -> ConnectorInfo:
        self._looks += 1
        was_there = self._looks < LOOKS
        try:
            found = self._leader.connector_info(name)
        except NotFoundError:
            if was_there:
                return ConnectorInfo(name, CONFIG, [0], "source")
            raise
        if was_there:
            raise NotFoundError(f"Connector {name} not found")
        return found


class ToLeader(Peers):
    """Carries requests to an application in this process."""

    def __init__(self, leader: MemoryHerder) -> None:
        super().__init__()
        self._client = TestClient(create_app(leader))
        self.sent: list[Mapping[str, str]] = []
        self.urls: list[str] = []
        self.refusals: list[Answer] = []

    def send(self, method: str, url: str, body: bytes, headers: Mapping[str, str], seconds: float = 5) -> Answer:
        self.urls.append(url)
        if self.refusals:
            return self.refusals.pop(0)
        self.sent.append({name.lower(): value for name, value in headers.items()})
        answer = self._client.request(method, url.removeprefix("http://leader"), content=body, headers=dict(headers))
        return Answer(answer.status_code, answer.headers.get("content-type"), answer.content)


@pytest.fixture
def client() -> TestClient:
    leader = MemoryHerder()
    return TestClient(create_app(Follower(leader), replace(RestConfig(), peers=ToLeader(leader))))


@pytest.mark.parametrize(
    "create",
    [
        lambda client: client.put("/connectors/orders/config", json=CONFIG),
        lambda client: client.post("/connectors", json={"name": "orders", "config": CONFIG}),
    ],
    ids=["PUT", "POST"],
)
def test_a_connector_made_through_a_follower_is_there_for_the_next_request(client: TestClient, create: Callable[[TestClient], Any]) -> None:
    made = create(client)
    assert made.status_code == 201, made.text
    read = client.get("/connectors/orders")
    assert read.status_code == 200
    assert read.json()["config"] == json.loads(made.content)["config"]


def test_a_connector_deleted_through_a_follower_is_gone_for_the_next_request(client: TestClient) -> None:
    assert client.put("/connectors/orders/config", json=CONFIG).status_code == 201
    assert client.delete("/connectors/orders").status_code == 204
    assert client.get("/connectors/orders").status_code == 404


@pytest.mark.parametrize(
    ("path", "body"),
    [("/connectors", {"name": "orders", "config": CONFIG}), ("/connectors/orders/tasks", [])],
    ids=["by a user", "by a worker"],
)
def test_of_a_clients_headers_only_its_login_travels_and_no_signature(path: str, body: object) -> None:
    """As in Connect: the signature of a worker's request holds for the hop that it was made for."""
    leader = MemoryHerder()
    peers = ToLeader(leader)
    client = TestClient(create_app(Follower(leader), replace(RestConfig(), peers=peers)))
    signature = {"X-Connect-Authorization": "bWFj", "X-Connect-Request-Signature-Algorithm": "HmacSHA256"}
    others = {"Cookie": "session=1", "X-Forwarded-For": "10.0.0.1", "X-Request-Id": "7", "traceparent": "00-1-2-01"}
    client.post(path, json=body, headers={"Authorization": "Basic dTpw", **signature, **others})
    assert [sent["authorization"] for sent in peers.sent] == ["Basic dTpw"]
    assert {*peers.sent[0]} == {"accept", "authorization", "content-type", "user-agent"}


def new_client(unknown: float = 0, wait_seconds: float = 10) -> tuple[TestClient, ToLeader]:
    leader = MemoryHerder()
    peers = ToLeader(leader)
    return TestClient(create_app(Follower(leader, unknown), replace(RestConfig(), peers=peers, conflict_wait_seconds=wait_seconds))), peers


STALE = "Cannot complete request momentarily due to stale configuration (typically caused by a concurrent config change)"


def conflict(message: str) -> Answer:
    return Answer(409, "application/json", json.dumps({"error_code": 409, "message": message}).encode())


def test_a_request_waits_until_it_is_known_who_leads_and_the_leader_is_ready() -> None:
    client, peers = new_client(unknown=2)
    peers.refusals = [conflict(STALE)] * 2
    assert client.post("/connectors", json={"name": "orders", "config": CONFIG}).status_code == 201
    assert peers.urls == ["http://leader/connectors?forward=true"] * 3, "no doubled slash"


def test_a_rebalance_that_lasts_is_a_409_that_says_when_to_ask_again() -> None:
    client, peers = new_client(unknown=float("inf"), wait_seconds=0.05)
    refused = client.post("/connectors", json={"name": "orders", "config": CONFIG})
    assert (refused.status_code, refused.headers["retry-after"], peers.urls) == (409, "1", [])
    assert refused.json()["message"] == (
        "Cannot complete request momentarily due to no known leader URL, likely because a rebalance was underway."
    )
    client, peers = new_client(wait_seconds=0)
    peers.refusals = [conflict(STALE)]
    refused = client.put("/connectors/orders/config", json=CONFIG)
    assert (refused.status_code, refused.headers["retry-after"], refused.json()["message"]) == (409, "1", STALE)


def test_a_connector_that_exists_does_not_become_another_by_asking_again() -> None:
    client, peers = new_client()
    created = [client.post("/connectors", json={"name": "orders", "config": CONFIG}) for _ in range(2)]
    assert [answer.status_code for answer in created] == [201, 409]
    assert "retry-after" not in created[1].headers
    assert len(peers.urls) == 2


def test_a_request_is_passed_on_twice_at_most() -> None:
    client, peers = new_client()
    assert client.put("/connectors/orders/config?forward=true", json=CONFIG).status_code == 201
    assert peers.urls == ["http://leader/connectors/orders/config?forward=false"]
    refused = client.put("/connectors/orders/config?forward=false", json=CONFIG)
    assert (refused.status_code, refused.headers["retry-after"], len(peers.urls)) == (409, "1", 1)
    assert refused.json()["message"] == "Cannot complete request because of a conflicting operation (e.g. worker rebalance)"


def test_a_worker_that_leads_no_more_says_so_when_it_is_asked_to_fence() -> None:
    """Passed on without its signature the request was refused for good, and a task with exactly once failed."""
    leader = MemoryHerder()
    peers = ToLeader(leader)
    old_leader = TestClient(create_app(Follower(leader), replace(RestConfig(), peers=peers)))
    answer = old_leader.put("/connectors/orders/fence?forward=false", headers={"X-Connect-Authorization": "bWFj"})
    assert (answer.status_code, peers.urls) == (409, [])


def test_a_follower_gives_its_task_configurations_to_the_leader_at_an_address_without_a_doubled_slash() -> None:
    _, peers = new_client()
    peers.refusals = [Answer(204, None, b""), Answer(204, None, b"")]
    peers.put_task_configs("http://leader/", "e/é", [], lambda body: {})
    peers.fence("http://leader/", "e/é", lambda body: {})
    assert peers.urls == ["http://leader/connectors/e%2F%C3%A9/tasks", "http://leader/connectors/e%2F%C3%A9/fence?forward=false"]
