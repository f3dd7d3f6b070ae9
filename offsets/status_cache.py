"""The status topic's records, folded: what is known of connectors, tasks and topics. Pure; not thread-safe."""

from __future__ import annotations

from connect_py.api.storage import Status
from offsets import status_records as records


class StatusCache:
    """Last accepted report of everything.

    Attributes:
        connectors: by name.
        tasks: by connector, then number.
        topics: used topics by connector, in the order of their discovery.
    """

    def __init__(self) -> None:
        self.connectors: dict[str, Status] = {}
        self.tasks: dict[str, dict[int, Status]] = {}
        self.topics: dict[str, dict[str, None]] = {}

    def known(self, key: records.StatusKey) -> Status | None:
        """The report about a connector or task."""
        if isinstance(key, records.ConnectorKey):
            return self.connectors.get(key.connector)
        return self.tasks.get(key.connector, {}).get(key.task)

    def apply(self, key: bytes | None, value: bytes | None) -> None:
        """Take the next record. Raises DataError for one that means nothing; it is skipped."""
        place = records.parse_key(key)
        match place:
            case records.TopicKey(connector, topic):
                self._topic(connector, topic, value)
            case records.ConnectorKey(connector):
                if value is None:
                    # as Connect's cache does, a connector's tombstone takes its tasks' entries along
                    self.connectors.pop(connector, None)
                    self.tasks.pop(connector, None)
                else:
                    self.connectors[connector] = records.decode_status(value)
            case records.TaskKey(connector, task):
                self._task(connector, task, value)

    def _topic(self, connector: str, topic: str, value: bytes | None) -> None:
        if value is None:
            self.topics.get(connector, {}).pop(topic, None)
        else:
            records.check_topic(value)
            self.topics.setdefault(connector, {})[topic] = None

    def _task(self, connector: str, task: int, value: bytes | None) -> None:
        if value is None:
            self.tasks.get(connector, {}).pop(task, None)
            return
        status = records.decode_status(value)
        if not records.is_stale(self.tasks.get(connector, {}).get(task), status):
            self.tasks.setdefault(connector, {})[task] = status
