"""Writes of the leader to the configuration topic: in transactions, and only by the last one that has claimed them."""

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer

from connect_py.api.storage import RestartRequest, TargetState
from connect_py.errors import ConnectError
from offsets.config_store import KafkaConfigStore
from tests.fix_kafka import Kafka

pytestmark = pytest.mark.services

Make = Callable[..., KafkaConfigStore]


class NoListener:
    def on_connector_config(self, connector: str) -> None: ...
    def on_connector_removed(self, connector: str) -> None: ...
    def on_task_configs(self, connector: str) -> None: ...
    def on_target_state(self, connector: str) -> None: ...
    def on_restart_request(self, request: RestartRequest) -> None: ...
    def on_logger_level(self, namespace: str, level: str) -> None: ...


@pytest.fixture
def make(kafka: Kafka, tag: str) -> Iterator[Make]:
    made: list[KafkaConfigStore] = []

    def store(support: str = "enabled") -> KafkaConfigStore:
        worker = {
            "bootstrap.servers": kafka.bootstrap,
            "group.id": tag,
            "config.storage.topic": f"{tag}-configs",
            "config.storage.replication.factor": "1",
            "exactly.once.source.support": support,
        }
        made.append(KafkaConfigStore(worker))
        made[-1].start(NoListener())
        return made[-1]

    yield store
    for each in made:
        each.stop()


def test_what_nobody_has_claimed_is_not_written(make: Make) -> None:
    with pytest.raises(ConnectError, match="Failed to write to config topic"):
        make().put_connector("c", {"name": "c"})


def test_a_leader_that_another_has_fenced_cannot_write_until_it_claims_again(make: Make) -> None:
    first, second = make(), make()
    first.claim()
    first.put_connector("c", {"name": "c", "by": "first"})
    second.claim()
    with pytest.raises(ConnectError, match="Failed to write to config topic"):
        first.put_connector("c", {"name": "c", "by": "nobody"})
    second.put_task_configs("c", [{"a": "0"}, {"a": "1"}])
    assert second.snapshot().connectors["c"]["by"] == "first"
    assert second.snapshot().tasks("c") == [0, 1]
    first.claim()
    first.put_connector("c", {"name": "c", "by": "first again"})
    second.refresh(10)
    assert second.snapshot().connectors["c"]["by"] == "first again"


def test_target_states_and_levels_of_loggers_need_no_claim(make: Make, kafka: Kafka, tag: str) -> None:
    store = make()
    store.put_target_state("c", TargetState.PAUSED)
    assert store.snapshot().target_states["c"] is TargetState.PAUSED
    store.put_logger_level("tests.levels", "DEBUG")
    assert [message.key() for message in kafka.read(f"{tag}-configs")] == [b"target-state-c", b"logger-cluster-tests.levels"]


def test_tasks_are_written_in_one_transaction_and_their_commit_in_the_next(make: Make, kafka: Kafka, tag: str) -> None:
    """As a Java leader writes them: a reader of committed records never sees a commit before all of its tasks."""
    store = make()
    store.claim()
    store.put_task_configs("c", [{"a": "0"}, {"a": "1"}])
    written = [(message.offset(), message.key()) for message in kafka.read(f"{tag}-configs")]
    assert written == [(0, b"task-c-0"), (1, b"task-c-1"), (3, b"commit-c")], "offset 2 is the end of the first transaction"


def test_the_offset_counts_records_and_not_the_ends_of_transactions(make: Make) -> None:
    store = make()
    store.claim()
    store.put_connector("c", {"name": "c"})
    assert store.snapshot().offset == 1
    store.put_connector("c", {"name": "c"})
    assert store.snapshot().offset == 3


@pytest.mark.parametrize(("support", "sees"), [("Preparing", True), ("ENABLED", False)])
def test_a_worker_that_prepares_reads_what_is_not_committed_yet(make: Make, kafka: Kafka, tag: str, support: str, sees: bool) -> None:
    first = make()
    first.claim()
    first.put_connector("committed", {"name": "committed"})
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": f"{tag}-open"})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce(f"{tag}-configs", b'{"properties":{"name":"open"}}', b"connector-open")
    assert producer.flush(20) == 0
    assert set(make(support).snapshot().connectors) == {"committed", *(["open"] if sees else [])}
    producer.abort_transaction(20)
