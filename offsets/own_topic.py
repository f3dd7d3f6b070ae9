"""The offsets topic that a source connector names itself, ``offsets.storage.topic`` (KIP-618; `ConnectorOffsetBackingStore.java`).

What it holds counts; the worker's topic has what it lacks, so that a connector that is given a topic of its own resumes where it was. The
worker's topic gets a copy of all that is written, so that one that loses its topic again does, too.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from types import TracebackType

from connect_py.api.storage import OWN_OFFSETS_TOPIC
from connect_py.errors import DataError
from connect_py.kafka.admin import KafkaAdmin
from connect_py.kafka.client import connector_admin_properties, is_exactly_once, sink_consumer_properties, source_producer_properties
from connect_py.kafka.shared_log import KafkaLog, LogRecord
from offsets.cache import OffsetCache
from offsets.topics import OFFSET_TOPIC

log = logging.getLogger(__name__)


def own_topic(worker: Mapping[str, str], config: Mapping[str, str] | None) -> str | None:
    """Return the topic of a connector's own offsets; None where it names none, or the very one that the worker has.

    Args:
        config: the connector's, without variables.
    """
    name = (config or {}).get(OWN_OFFSETS_TOPIC, "").strip()
    if not name:
        return None
    brokers = source_producer_properties(worker, "", 0, config)["bootstrap.servers"]
    is_the_workers = name == OFFSET_TOPIC.name(worker) and brokers == source_producer_properties(worker, "", 0)["bootstrap.servers"]
    return None if is_the_workers else name


class OwnOffsets:
    """A connector's own topic, opened for one question or change, by clients with the connector's overrides. A context manager.

    Args:
        worker: worker properties; those of the worker's offsets topic (`offset.storage.*`) are taken for this one as well.
        config: the connector's, without variables.
        topic: as `own_topic` has found it.
        seconds: until it is read to its end, and for each write.

    Raises:
        ConfigError: a client property cannot be used; entering the context: the topic is not compacted.
        RetriableError: entering the context: the topic could not be created, or read, in time.
    """

    def __init__(self, worker: Mapping[str, str], connector: str, config: Mapping[str, str], topic: str, seconds: float) -> None:
        self.cache = OffsetCache()
        self._topic, self._seconds = topic, seconds
        self._worker = {**worker, "offset.storage.topic": topic}
        consumer = sink_consumer_properties(worker, connector, 0, config)
        self._admin = KafkaAdmin(connector_admin_properties(worker, connector, 0, config))
        self._log = KafkaLog(
            topic,
            consumer,
            self._admin,
            self._take,
            read_committed=is_exactly_once(worker) or consumer.get("isolation.level", "read_committed").strip() != "read_uncommitted",
            write_timeout=seconds,
            producer_properties=source_producer_properties(worker, connector, 0, config),
        )

    def __enter__(self) -> OwnOffsets:
        deadline = time.monotonic() + self._seconds
        try:
            OFFSET_TOPIC.ensure(self._worker, self._admin, self._seconds)
            self._log.start(max(0.1, deadline - time.monotonic()))
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._log.stop()
        self._admin.close()

    def write(self, records: Sequence[tuple[bytes, bytes | None]]) -> None:
        """Write and wait for all acknowledgements. Raises ConnectError: Kafka did not take all of them."""
        self._log.write(records, self._seconds, read_back=False)

    def _take(self, record: LogRecord) -> None:
        try:
            self.cache.apply(record.key, record.value)
        except DataError as error:
            log.warning("%s (offset %d of partition %d of the topic '%s')", error, record.offset, record.partition, self._topic)
