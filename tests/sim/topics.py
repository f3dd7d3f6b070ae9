"""The internal topics of simulated workers: configurations and statuses. Each worker reads them at its own pace; the records, and how they
are folded, are the product's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from connect_py.api.storage import ClusterConfig, ConfigListener, RestartRequest, Status, TargetState
from connect_py.errors import RetriableError
from offsets import config_store
from offsets.status_store import (
    ConnectorKey,
    OwnReports,
    Record,
    StatusCache,
    StatusKey,
    TaskKey,
    TopicKey,
    encode_topic,
)
from tests.sim.fibers import Fibers, Owner


class Topic:
    """A compacted topic.

    Attributes:
        end: the next offset.
        is_silent: nothing is appended or read.
    """

    def __init__(self) -> None:
        self.records: dict[int, Record] = {}
        self.end = 0
        self.is_silent = False

    def append(self, records: Sequence[Record]) -> None:
        """Append records."""
        for record in records:
            self.records[self.end] = record
            self.end += 1

    def compact(self) -> None:
        """Keep the last record of each key; the last record of all stays in any case."""
        last = {key: offset for offset, (key, _) in self.records.items()}
        self.records = {offset: record for offset, record in self.records.items() if last[record[0]] == offset}


class SimConfigStore:
    """`connect_py.api.storage.ConfigStore` of one worker.

    Args:
        interrupted: called before each record of a write; raises Crash when the worker is killed there.
    """

    def __init__(self, topic: Topic, owner: Owner, interrupted: Callable[[], None]) -> None:
        self._topic, self._owner, self._interrupted = topic, owner, interrupted
        self._fold = config_store.ConfigFold()
        self._at = 0
        self._listener: ConfigListener | None = None
        self._snapshot: ClusterConfig | None = None

    def start(self, listener: ConfigListener) -> None:
        """Read to the end, then follow."""
        self._catch_up()
        self._listener = listener

    def stop(self) -> None:
        """Follow no more."""
        self._listener = None

    def snapshot(self) -> ClusterConfig:
        """Return what has been read."""
        if self._snapshot is None:
            self._snapshot = self._fold.snapshot()
        return self._snapshot

    def refresh(self, timeout: float) -> None:
        """Read to the present end."""
        if self._topic.is_silent:
            raise RetriableError("The configuration topic cannot be read.")
        self._catch_up()

    def read(self, count: int) -> None:
        """Read on, some records; a step of the store's reader."""
        while count and self._at < self._topic.end:
            record = self._topic.records.get(self._at)
            offset, self._at = self._at, self._at + 1
            if record is None:
                continue
            count -= 1
            self._snapshot = None
            notice = self._fold.apply(*record, offset)
            if notice is not None and self._listener is not None:
                notice.notify(self._listener)

    def _catch_up(self) -> None:
        self.read(self._topic.end)

    def _write(self, records: Sequence[Record]) -> None:
        if self._topic.is_silent:
            raise RetriableError("The configuration topic cannot be written.")
        for record in records:
            self._interrupted()
            self._topic.append([record])
        self._catch_up()

    def put_connector(self, connector: str, config: Mapping[str, str], state: TargetState | None = None) -> None:
        before = [config_store.target_state_record(connector, state)] if state is not None else []
        self._write([*before, config_store.connector_record(connector, config)])

    def remove_connector(self, connector: str) -> None:
        self._write(config_store.removal_records(connector))

    def put_task_configs(self, connector: str, configs: Sequence[Mapping[str, str]]) -> None:
        self._write([*config_store.task_records(connector, configs), config_store.commit_record(connector, len(configs))])

    def put_target_state(self, connector: str, state: TargetState) -> None:
        self._write([config_store.target_state_record(connector, state)])

    def put_restart_request(self, request: RestartRequest) -> None:
        self._write([config_store.restart_record(request)])

    def put_logger_level(self, namespace: str, level: str) -> None:
        self._write([config_store.logger_record(namespace, level)])

    def put_session_key(self, key: str, algorithm: str, creation_timestamp: int) -> None:
        self._write([config_store.session_key_record(key, algorithm, creation_timestamp)])

    def put_task_count_record(self, connector: str, tasks: int) -> None:
        self._write([config_store.task_count_record(connector, tasks)])

    def claim(self) -> None:
        """Nothing is fenced: the workers are not exactly-once."""

    def release(self) -> None:
        """Nothing is fenced."""


class SimStatusStore:
    """`connect_py.api.storage.StatusStore` of one worker. What it puts is on its way for a while."""

    def __init__(self, topic: Topic, fibers: Fibers) -> None:
        self._topic, self._fibers = topic, fibers
        self._cache = StatusCache()
        self._own = OwnReports()
        self._at = 0
        self._waiting: list[Record] = []
        self._on_topics_reset: Callable[[str], None] = lambda connector: None
        self._on_forgotten: Callable[[str, int | None], None] = lambda connector, task: None

    def on_topics_reset(self, listener: Callable[[str], None]) -> None:
        self._on_topics_reset = listener

    def on_forgotten(self, listener: Callable[[str, int | None], None]) -> None:
        self._on_forgotten = listener

    def start(self) -> None:
        self.read(self._topic.end)

    def stop(self) -> None:
        """Follow no more."""

    def flush(self, timeout: float) -> None:
        if not self._fibers.wait(lambda: not self._waiting, timeout):
            raise RetriableError("The status topic cannot be written.")

    def refresh(self, timeout: float) -> None:
        if self._topic.is_silent:
            raise RetriableError("The status topic cannot be read.")
        self.read(self._topic.end)

    def send(self, count: int) -> None:
        """Some of what was put arrives; a step of the producer."""
        if not self._topic.is_silent:
            arrived, self._waiting[:count] = self._waiting[:count], []
            self._topic.append(arrived)

    def read(self, count: int) -> None:
        """Read on; a step of the store's reader."""
        while count and self._at < self._topic.end:
            record = self._topic.records.get(self._at)
            self._at += 1
            if record is not None:
                count -= 1
                place = self._cache.apply(*record)
                is_forgotten = self._own.is_forgotten_by_others(place, record[1])
                again = self._own.read(place, record[1])
                if is_forgotten:
                    self._on_forgotten(place.connector, place.task if isinstance(place, TaskKey) else None)
                if again is not None:
                    self._waiting.append((record[0], again))

    def connectors(self) -> list[str]:
        return list(self._cache.connectors)

    def connector(self, name: str) -> Status | None:
        return self._cache.connectors.get(name)

    def task(self, connector: str, task: int) -> Status | None:
        return self._cache.tasks.get(connector, {}).get(task)

    def tasks(self, connector: str) -> Mapping[int, Status]:
        return dict(sorted(self._cache.tasks.get(connector, {}).items()))

    def topics(self, connector: str) -> Sequence[str]:
        return list(self._cache.topics.get(connector, ()))

    def put_connector(self, name: str, status: Status, *, safe: bool = False) -> None:
        self._put(ConnectorKey(name), status, safe)

    def put_task(self, connector: str, task: int, status: Status, *, safe: bool = False) -> None:
        self._put(TaskKey(connector, task), status, safe)

    def delete_connector(self, name: str) -> None:
        self._forget(ConnectorKey(name))

    def delete_task(self, connector: str, task: int) -> None:
        self._forget(TaskKey(connector, task))

    def put_topic(self, connector: str, task: int, topic: str) -> None:
        self._waiting.append((TopicKey(connector, topic).encode(), encode_topic(connector, task, topic, 0)))

    def delete_topics(self, connector: str) -> None:
        for topic in self.topics(connector):
            self._waiting.append((TopicKey(connector, topic).encode(), None))

    def _put(self, key: StatusKey, status: Status, safe: bool) -> None:
        record = self._own.put(key, status, self._cache.known(key) if safe else None)
        if record is not None:
            self._waiting.append(record)

    def _forget(self, key: StatusKey) -> None:
        self._waiting.append(self._own.forget(key))
