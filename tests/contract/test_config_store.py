"""What every configuration store does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from connect_py.api.storage import ConfigStore, RestartRequest, TargetState
from offsets.config_store import KafkaConfigStore
from offsets.local_stores import MemoryConfigStore
from tests.fix_kafka import Kafka


@dataclass
class Listener:
    """Notes what it hears; `wait` gives it time to arrive."""

    heard: list[tuple[object, ...]] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def note(self, *news: object) -> None:
        with self.changed:
            self.heard.append(news)
            self.changed.notify_all()

    def wait(self, *news: object, seconds: float = 60) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: news in self.heard, seconds), (news, self.heard)

    def on_connector_config(self, connector: str) -> None:
        self.note("config", connector)

    def on_connector_removed(self, connector: str) -> None:
        self.note("removed", connector)

    def on_task_configs(self, connector: str) -> None:
        self.note("tasks", connector)

    def on_target_state(self, connector: str) -> None:
        self.note("state", connector)

    def on_restart_request(self, request: RestartRequest) -> None:
        self.note("restart", request)

    def on_logger_level(self, namespace: str, level: str) -> None:
        self.note("level", namespace, level)


Store = Callable[[], ConfigStore]


@pytest.fixture(params=["memory", pytest.param("kafka", marks=pytest.mark.services)])
def make_store(request: pytest.FixtureRequest, tag: str) -> Iterator[Store]:
    """Makes stores over the same topic; memory has only one."""
    made: list[ConfigStore] = []

    def make() -> ConfigStore:
        if request.param == "memory":
            made.append(MemoryConfigStore())
        else:
            kafka: Kafka = request.getfixturevalue("kafka")
            worker = {
                "bootstrap.servers": kafka.bootstrap,
                "group.id": tag,
                "config.storage.topic": f"{tag}-configs",
                "config.storage.replication.factor": "1",
            }
            made.append(KafkaConfigStore(worker))
        return made[-1]

    yield make
    for store in made:
        store.stop()


@pytest.fixture
def listener() -> Listener:
    return Listener()


@pytest.fixture
def store(make_store: Store, listener: Listener) -> ConfigStore:
    store = make_store()
    store.start(listener)
    return store


CONFIG = {"name": "c", "connector.class": "X", "empty": ""}


def test_a_new_store_is_empty(store: ConfigStore) -> None:
    assert (dict(store.snapshot().connectors), store.snapshot().offset) == ({}, -1)


def test_a_write_is_in_the_snapshot_when_it_returns(store: ConfigStore, listener: Listener) -> None:
    store.put_connector("c", CONFIG)
    assert store.snapshot().connectors == {"c": CONFIG}
    assert store.snapshot().target_state("c") is TargetState.STARTED
    store.put_task_configs("c", [{"a": "0"}, {"a": "1"}])
    assert store.snapshot().tasks("c") == [0, 1]
    assert store.snapshot().task_configs == {("c", 0): {"a": "0"}, ("c", 1): {"a": "1"}}
    assert store.snapshot().applied == {"c": CONFIG}
    store.put_target_state("c", TargetState.STOPPED)
    assert store.snapshot().target_state("c") is TargetState.STOPPED
    store.put_task_configs("c", [])
    assert store.snapshot().tasks("c") == []
    listener.wait("config", "c")
    listener.wait("tasks", "c")
    listener.wait("state", "c")


def test_an_initial_state_is_no_news_of_its_own(store: ConfigStore, listener: Listener) -> None:
    store.put_connector("c", CONFIG, TargetState.PAUSED)
    assert store.snapshot().target_state("c") is TargetState.PAUSED
    listener.wait("config", "c")
    assert listener.heard == [("config", "c")]


def test_a_removed_connector_is_gone_with_its_tasks(store: ConfigStore, listener: Listener) -> None:
    store.put_connector("c", CONFIG, TargetState.PAUSED)
    store.put_task_configs("c", [{}])
    store.remove_connector("c")
    listener.wait("removed", "c")
    found = store.snapshot()
    assert (dict(found.connectors), dict(found.target_states), dict(found.task_configs), found.tasks("c")) == ({}, {}, {}, [])


def test_restart_requests_and_log_levels_are_passed_on(store: ConfigStore, listener: Listener) -> None:
    request = RestartRequest("c", include_tasks=True, only_failed=True)
    store.put_restart_request(request)
    store.put_logger_level("a.b", "debug")
    listener.wait("restart", request)
    listener.wait("level", "a.b", "debug")


def test_a_snapshot_stays_as_it_is(store: ConfigStore) -> None:
    store.put_connector("c", CONFIG)
    before = store.snapshot()
    store.put_connector("d", CONFIG)
    store.remove_connector("c")
    assert (list(before.connectors), list(store.snapshot().connectors)) == (["c"], ["d"])


def test_the_offset_grows_with_each_record(store: ConfigStore) -> None:
    store.put_connector("c", CONFIG, TargetState.PAUSED)
    assert store.snapshot().offset == 2


def test_names_and_values_of_any_language_come_back(store: ConfigStore) -> None:
    config = {"name": "ä-1-😀", "x": '"\\\n\x01é'}
    store.put_connector("ä-1-😀", config)
    store.put_task_configs("ä-1-😀", [config])
    assert store.snapshot().connectors == {"ä-1-😀": config}
    assert store.snapshot().task_configs == {("ä-1-😀", 0): config}


def test_refresh_returns_when_everything_is_read(store: ConfigStore) -> None:
    store.put_connector("c", CONFIG)
    store.refresh(10)
    assert "c" in store.snapshot().connectors
