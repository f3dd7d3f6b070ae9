"""When a connector's offsets topic is its own (`ConnectorOffsetBackingStore`, the table of `Worker.offsetStoreFor…`)."""

import pytest

from offsets.own_topic import own_topic

WORKER = {"bootstrap.servers": "a:1", "offset.storage.topic": "offsets"}
ELSEWHERE = {"producer.override.bootstrap.servers": "b:1"}


@pytest.mark.parametrize(
    ("config", "own"),
    [
        (None, None),
        ({}, None),
        ({"offsets.storage.topic": " "}, None),
        ({"offsets.storage.topic": "mine"}, "mine"),
        ({"offsets.storage.topic": "offsets"}, None),
        (ELSEWHERE, None),
        ({"offsets.storage.topic": "offsets", **ELSEWHERE}, "offsets"),
        ({"offsets.storage.topic": "offsets", "producer.override.bootstrap.servers": "a:1"}, None),
    ],
)
def test_a_topic_is_a_connectors_own_unless_it_is_the_workers_on_the_same_brokers(config: dict[str, str] | None, own: str | None) -> None:
    assert own_topic(WORKER, config) == own


def test_brokers_of_all_producers_are_those_of_the_workers_topic() -> None:
    worker = {**WORKER, "producer.bootstrap.servers": "b:1"}
    assert own_topic(worker, {"offsets.storage.topic": "offsets"}) is None
