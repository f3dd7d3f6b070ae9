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

    def __init__(self, leader: MemoryHerder) -> None:
        super().__init__()
        self._leader = leader
        self._looks = 0

    def change(self, *_: Any, **__: Any) -> Any:
        """Stand for each request that only the leader can answer."""
        self._looks = 0
        raise MisdirectedError(lambda: "http://leader/", "the leader")

    put_connector = create_connector = delete_connector = put_task_configs = change

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

    def send(self, method: str, url: str, body: bytes, headers: Mapping[str, str], seconds: float = 5) -> Answer:
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
