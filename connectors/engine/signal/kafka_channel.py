"""Signals from a Kafka topic (`KafkaSignalChannel.java`): key `topic.prefix`, value a document, partition 0 only.

Unlike Debezium, the group's position is committed only when the offsets topic holds what the signals brought about: a task that is killed
in between is given them again.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from confluent_kafka import OFFSET_STORED, Consumer, KafkaException, TopicPartition

from connect_py.kafka.client_log import ClientLog
from connect_py.kafka.settings import ClientKind, librdkafka_config
from connectors.engine.signal.records import SignalRecord, parse_document

log = logging.getLogger(__name__)

_PREFIX = "signal.consumer."
#: Signals are few and small.
_SMALL = {"queued.max.messages.kbytes": 1024, "fetch.wait.max.ms": 100}


class KafkaChannel:
    """One consumer; used by the task's thread.

    Args:
        config: the connector's properties.
        prefix: `topic.prefix`, the key of signals that are ours.
    """

    def __init__(self, config: Mapping[str, str], prefix: str) -> None:
        self._prefix = prefix
        self._topic = config.get("signal.kafka.topic") or f"{prefix}-signal"
        self._wait = max(int(config.get("signal.kafka.poll.timeout.ms") or 0) / 1000, 0.05)
        properties = {name.removeprefix(_PREFIX): value for name, value in config.items() if name.startswith(_PREFIX)}
        properties["bootstrap.servers"] = config["signal.kafka.bootstrap.servers"]
        properties.setdefault("auto.offset.reset", "earliest")
        settings = librdkafka_config(properties, ClientKind.CONSUMER) | _SMALL
        settings |= {
            "group.id": config.get("signal.kafka.groupId") or "kafka-signal",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
        }
        self._consumer = Consumer(settings, logger=ClientLog())
        self._consumer.assign([TopicPartition(self._topic, 0, OFFSET_STORED)])
        self._next: int | None = None
        log.info("Signals are read from the topic '%s', records with the key '%s'", self._topic, prefix)

    def read(self) -> list[SignalRecord]:
        """Return new records of the topic; waits `signal.kafka.poll.timeout.ms`, at least 50 ms, for the first ones."""
        found = []
        for message in self._consumer.consume(500, self._wait):
            if message.error() is not None:
                log.warning("The signal topic '%s' cannot be read just now: %s", self._topic, message.error())
                continue
            offset = message.offset() or 0
            self._next = offset + 1
            key, value = message.key(), message.value()
            if key is None or key.decode("utf-8", "replace") != self._prefix:
                log.info("Signal key '%s' doesn't match the connector's name '%s'", key and key.decode("utf-8", "replace"), self._prefix)
                continue
            if not value:
                continue
            try:
                text = value.decode()
                found.append(parse_document(text, "kafka", default_id="", channelOffset=offset))
            except ValueError as error:
                log.warning("Skipped a signal of the topic '%s' at offset %d: %s", self._topic, offset, error)
        return found

    def committed(self) -> None:
        """Commit the group's position."""
        if self._next is None:
            return
        try:
            self._consumer.commit(offsets=[TopicPartition(self._topic, 0, self._next)], asynchronous=True)
            self._next = None
        except KafkaException as error:
            log.warning("The position in the signal topic '%s' was not committed; its signals may come again: %s", self._topic, error)

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()
