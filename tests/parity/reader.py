"""Reads topics once for all scenarios of a session: one consumer that gains partitions as scenarios ask for topics.

The reader's thread owns the consumer and appends its messages; others wait on its condition. A topic is read from its beginning when it
is first asked for, and goes on being read until `release`.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.parity.waiting import poll_until

#: A topic made a moment ago has no leader for a while.
LEADER_SECONDS = 80.0
#: How long the broker gathers records for the reader.
FETCH_WAIT_MS = 40
#: No record takes so long from the broker to here.
READ_SECONDS = 120.0


class TopicReader:
    """What topics hold, kept up to date.

    Args:
        bootstrap: of Kafka.
    """

    def __init__(self, bootstrap: str) -> None:
        common: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "group.id": f"parity-{uuid.uuid4().hex}",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
        # what comes within a moment comes in one answer: each request names all topics that are watched, and takes 1 ms of the broker's CPU
        fetches = {"fetch.wait.max.ms": FETCH_WAIT_MS, "fetch.min.bytes": 1_000_000}
        self._consumer = Consumer({**common, **fetches, "enable.partition.eof": True, "isolation.level": "read_committed"})
        # asked for offsets and metadata, by any thread
        self._asked = Consumer(common)
        self.admin = AdminClient({"bootstrap.servers": bootstrap})
        self.producer = Producer({"bootstrap.servers": bootstrap})
        self._changed = threading.Condition()
        self._records: dict[str, dict[int, list[dict[str, Any]]]] = {}
        self._next: dict[tuple[str, int], int] = defaultdict(int)
        # topic, key: how many records, and the last one's value
        self._index: dict[str, dict[bytes, tuple[int, bytes | None]]] = {}
        self._arrived: dict[str, float] = {}
        self._to_assign: list[TopicPartition] = []
        self._to_unassign: list[TopicPartition] = []
        self._ended = False
        self._thread = threading.Thread(target=self._read, name="parity-reader", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread and leave Kafka."""
        self._ended = True
        self._thread.join()
        self._consumer.close()
        self._asked.close()

    def read(self, topic: str) -> list[dict[str, Any]]:
        """Return all records that the topic holds now, partition by partition; none when it does not exist.

        Raises:
            TimeoutError: the records did not come.
        """
        if not self._watch(topic):
            return []
        ends = {number: self._end(TopicPartition(topic, number)) for number in self._records[topic]}
        with self._changed:
            if not self._changed.wait_for(lambda: all(self._next[topic, n] >= end for n, end in ends.items()), READ_SECONDS):
                raise TimeoutError(f"{topic} has ends {ends}, of which {[self._next[topic, n] for n in ends]} were read")
            return self._held(topic)

    def wait(self, topic: str, count: int, deadline: float) -> bool:
        """Wait until the topic holds at least `count` records or the clock (monotonic) shows `deadline`; return whether it does."""
        if count and not poll_until(lambda: self._watch(topic), deadline - time.monotonic()):
            return False
        with self._changed:
            return self._changed.wait_for(lambda: self._count(topic) >= count, max(deadline - time.monotonic(), 0))

    def wait_keys(self, topic: str, keys: Sequence[bytes], count: int, seconds: float) -> int:
        """Wait until a topic holds at least `count` records with some keys; return how many it holds."""
        self._watch(topic)

        def held() -> int:
            index = self._index.get(topic, {})
            return sum(index[key][0] for key in keys if key in index)

        with self._changed:
            self._changed.wait_for(lambda: held() >= count, max(seconds, 0))
            return held()

    def wait_gone(self, topic: str, keys: Sequence[bytes], seconds: float) -> bool:
        """Wait until a topic's last record of each key is a tombstone; return whether they are."""
        with self._changed:
            index = self._index.get(topic, {})
            return self._changed.wait_for(lambda: not any(index[key][1] for key in keys), seconds)

    def keys(self, topic: str) -> list[bytes]:
        """Return the keys that a topic's records have."""
        with self._changed:
            return list(self._index.get(topic, ()))

    def quiet_since(self, word: str) -> float:
        """When (monotonic) the last record came in a topic whose name holds a word; 0 when none has."""
        with self._changed:
            return max((when for topic, when in self._arrived.items() if word in topic), default=0.0)

    def names(self) -> list[str]:
        """Return the names of all topics."""
        return list(self.admin.list_topics(timeout=60).topics)

    def watched(self) -> list[str]:
        """Return the names of the topics that are being read."""
        with self._changed:
            return list(self._records)

    def release(self, topics: Iterable[str]) -> None:
        """Forget topics."""
        with self._changed:
            for topic in topics:
                numbers = self._records.pop(topic, {})
                self._arrived.pop(topic, None)
                self._index.pop(topic, None)
                self._to_unassign += [TopicPartition(topic, number) for number in numbers]

    def _watch(self, topic: str) -> bool:
        if topic in self._records:
            return True
        found = self._asked.list_topics(topic, timeout=60).topics[topic]
        if found.error or not found.partitions:
            return False
        with self._changed:
            if topic not in self._records:
                self._records[topic] = {number: [] for number in sorted(found.partitions)}
                self._to_assign += [TopicPartition(topic, number, 0) for number in found.partitions]
        return True

    def _end(self, partition: TopicPartition) -> int:
        def ask() -> tuple[int] | None:
            try:
                return (self._asked.get_watermark_offsets(partition, timeout=60)[1],)
            except KafkaException:
                return None

        found = poll_until(ask, LEADER_SECONDS)
        if found is None:
            raise TimeoutError(f"{partition.topic} [{partition.partition}] has no leader")
        return found[0]

    def _held(self, topic: str) -> list[dict[str, Any]]:
        return [record for records in self._records[topic].values() for record in records]

    def _count(self, topic: str) -> int:
        return sum(map(len, self._records.get(topic, {}).values()))

    def _read(self) -> None:
        while not self._ended:
            with self._changed:
                begun, done = self._to_assign, self._to_unassign
                self._to_assign, self._to_unassign = [], []
            # without the lock: the consumer answers to these in its own time
            if begun:
                self._consumer.incremental_assign(begun)
                for topic in {partition.topic for partition in begun}:
                    # its answer tells the consumer of the leaders, which it would look for once a second
                    self._consumer.list_topics(topic, timeout=60)
            if done:
                self._consumer.incremental_unassign(done)
            first = self._consumer.poll(0.05)
            if first is not None:
                messages = [first, *self._consumer.consume(500, 0)]
                with self._changed:
                    for message in messages:
                        self._take(message)
                    self._changed.notify_all()

    def _take(self, message: Message) -> None:
        topic, number = message.topic(), message.partition()
        error = message.error()
        if topic not in self._records:
            return
        if error is not None:
            if error.code() == KafkaError._PARTITION_EOF:
                self._next[topic, number] = message.offset()
            return
        self._next[topic, number] = message.offset() + 1
        self._arrived[topic] = time.monotonic()
        if message.key() is not None:
            index = self._index.setdefault(topic, {})
            index[message.key()] = (index.get(message.key(), (0,))[0] + 1, message.value())
        self._records[topic][number].append(
            {"partition": number, "key": message.key(), "value": message.value(), "headers": message.headers() or []}
        )
