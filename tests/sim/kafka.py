"""Kafka in memory, as a source task sees it: a producer whose records are on their way, a writer of offsets, and the topics, which look at
each record that reaches them (`tests.sim.ledger`).

A record or an offset is first accepted, then appended by the broker, then acknowledged, each at some later step. A process that dies leaves
what the broker had taken; what was on its way is lost or appended, in order, before the next process starts: a connection of a dead process
is closed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from connect_py.api import SourceOffset, SourcePartition
from connect_py.errors import FatalTaskError, RetriableError
from offsets.cache import OffsetCache, offset_records
from tests.sim.chance import Chance, SimClock
from tests.sim.ledger import Ledger

PARTITIONS = 2

#: How long a record waits for others when nobody asks for it to be sent.
LINGER_SECONDS = 5.0

#: Records that a producer takes before it is full.
ROOM = 60


def partition_of(key: bytes | None) -> int:
    """Return the partition of a key."""
    return key[-1] % PARTITIONS if key else 0


class _Message:
    """What a callback gets of a record."""

    def __init__(self, topic: str, key: bytes | None, value: bytes | None) -> None:
        self._topic, self._key, self._value = topic, key, value

    def topic(self) -> str:
        return self._topic

    def key(self) -> bytes | None:
        return self._key

    def value(self) -> bytes | None:
        return self._value

    def __len__(self) -> int:
        return 1


class _Flight:
    __slots__ = ("appended", "key", "leaves", "refused", "value")

    def __init__(self, key: bytes | None, value: bytes | None, refused: Any, leaves: float) -> None:
        self.key, self.value, self.refused, self.leaves = key, value, refused, leaves
        self.appended = False


class SimProducer:
    """`connect_py.task.source.SourceProducer`.

    Args:
        ledger: the topics.
        process: number of the process that sends.
        step: lets the world act.
    """

    holds_back = True

    def __init__(self, ledger: Ledger, process: int, chance: Chance, clock: SimClock, step: Callable[[], None]) -> None:
        self._ledger, self._process, self._chance, self._clock, self._step = ledger, process, chance, clock, step
        self._flights: dict[tuple[str, int], deque[_Flight]] = {}
        self._count = 0
        self._refusals: deque[tuple[Any, _Message]] = deque()
        self.is_gone = False

    # -- what the task asks

    def __len__(self) -> int:
        return self._count + len(self._refusals)

    def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int,
        refused: Any,
        on_delivery: Any,
        timestamp: int,
        headers: Any,
    ) -> None:
        """Accept a record; raises BufferError when there is no room."""
        if self._count >= ROOM:
            raise BufferError
        place = topic, partition_of(key) if partition < 0 else partition
        flights = self._flights.get(place)
        if flights is None:
            flights = self._flights[place] = deque()
        flights.append(_Flight(key, value, refused, self._clock.seconds + LINGER_SECONDS))
        self._count += 1

    def produce(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        headers: Any = None,
        on_delivery: Any = None,
        *,
        partition: int = -1,
        timestamp: int = 0,
        while_waiting: Callable[[], None] | None = None,
    ) -> None:
        """Accept a record, after a while."""
        while True:
            try:
                self.send(topic, value, key, partition, on_delivery, None, timestamp, headers)
                return
            except BufferError:
                self.flush(1.0)
                if while_waiting is not None:
                    while_waiting()

    def __bool__(self) -> bool:
        return bool(self._count or self._refusals)

    def poll(self, timeout_seconds: float = 0.0) -> int:
        """Run callbacks."""
        self._step()
        return self._call_back()

    def flush(self, timeout_seconds: float) -> int:
        """Wait for acknowledgements."""
        self.send_now()
        self._clock.until(lambda: not self._count, timeout_seconds)
        self._call_back()
        return len(self)

    def send_now(self) -> None:
        """Send what waits for others."""
        for flights in self._flights.values():
            for flight in flights:
                flight.leaves = 0.0

    def release(self) -> bool:
        """Close the client at rest."""
        assert not self, "the client was closed while records were under way"
        return True

    def _call_back(self) -> int:
        count = 0
        while self._refusals:
            refused, message = self._refusals.popleft()
            refused(RetriableError("The broker did not take the record."), message)
            count += 1
        return count

    # -- what the broker does

    def append(self) -> None:
        """The broker takes the next record of a partition."""
        found = self._next(appended=False)
        if found is not None and found[1].leaves <= self._clock.seconds:
            (topic, _), flight = found
            flight.appended = True
            self._ledger.append(topic, flight.key, flight.value, self._process)

    def acknowledge(self) -> None:
        """An acknowledgement arrives."""
        found = self._next(appended=True)
        if found is not None:
            self._flights[found[0]].popleft()
            self._count -= 1

    def refuse(self) -> None:
        """A record is not taken, or its acknowledgement comes too late; the next ones of its partition are not taken either, as those of
        the same batch."""
        found = self._next(appended=self._chance.happens(0.3))
        if found is None:
            return
        self._ledger.lacks(self._process)
        place, _ = found
        flights = self._flights[place]
        for _ in range(1 + self._chance.below(len(flights))):
            flight = flights.popleft()
            self._count -= 1
            self._refusals.append((flight.refused, _Message(place[0], flight.key, flight.value)))

    def vanish(self) -> None:
        """The process is gone. A prefix of what was on its way is appended."""
        self.is_gone = True
        for (topic, _), flights in self._flights.items():
            left = [flight for flight in flights if not flight.appended and flight.leaves <= self._clock.seconds]
            for flight in left[: self._chance.below(len(left) + 1)]:
                self._ledger.append(topic, flight.key, flight.value, self._process)
        self._flights.clear()
        self._count = 0

    def _next(self, *, appended: bool) -> tuple[tuple[str, int], _Flight] | None:
        """Return a partition with the first record of it that was not appended, or that was and waits for its acknowledgement."""
        if not self._count:
            return None
        places = [place for place, flights in self._flights.items() if flights]
        if not places:
            return None
        place = self._chance.pick(places)
        if appended:
            first = self._flights[place][0]
            return (place, first) if first.appended else None
        for flight in self._flights[place]:
            if not flight.appended:
                return place, flight
        return None


Done = Callable[[Exception | None], None]
Offsets = Sequence[tuple[SourcePartition, SourceOffset]]


class OffsetTopic:
    """The offsets topic. What is compacted away is not needed: only the last record of each key is.

    Args:
        stored: called with each offset that is appended.
    """

    def __init__(self, stored: Callable[[SourceOffset], None]) -> None:
        self._records: list[tuple[bytes, bytes | None]] = []
        self._stored = stored

    def append(self, connector: str, offsets: Offsets) -> None:
        """Append the records of one write."""
        self._records += offset_records(connector, offsets)
        for _, offset in offsets:
            self._stored(offset)

    def compact(self) -> None:
        """Keep the last record of each key."""
        self._records = list({key: (key, value) for key, value in self._records}.values())

    def read(self, connector: str) -> list[tuple[SourcePartition, SourceOffset]]:
        """Read from the begin to the end, as a worker does before it starts a task."""
        cache = OffsetCache()
        for key, value in self._records:
            cache.apply(key, value)
        return cache.of_connector(connector)


class SimOffsetWriter:
    """`connect_py.api.storage.OffsetWriter`."""

    def __init__(self, topic: OffsetTopic, connector: str, chance: Chance, clock: SimClock, step: Callable[[], None]) -> None:
        self._topic, self._connector, self._chance, self._clock, self._step = topic, connector, chance, clock, step
        self._waiting: deque[tuple[Offsets, Done]] = deque()
        self._appended: deque[Done] = deque()
        self._answers: deque[tuple[Done, Exception | None]] = deque()

    def write(self, offsets: Offsets, done: Done) -> None:
        """Send offsets."""
        self._waiting.append(([(dict(p), dict(o)) for p, o in offsets], done))

    def serve(self, timeout: float = 0.0) -> None:
        """Run callbacks."""
        if timeout:
            self._clock.until(lambda: bool(self._answers), timeout)
        else:
            self._step()
        while self._answers:
            done, error = self._answers.popleft()
            done(error)

    def release(self) -> None:
        """Connections are of no matter."""

    def close(self, timeout: float) -> None:
        """Wait for nothing."""

    def append(self) -> None:
        """The broker takes the next write."""
        if self._waiting:
            offsets, done = self._waiting.popleft()
            self._topic.append(self._connector, offsets)
            self._appended.append(done)

    def acknowledge(self) -> None:
        """An acknowledgement arrives."""
        if self._appended:
            self._answers.append((self._appended.popleft(), None))

    def fail(self) -> None:
        """A write fails, or its acknowledgement comes too late."""
        error = RetriableError("The broker does not answer.")
        if self._appended and self._chance.happens(0.5):
            self._answers.append((self._appended.popleft(), error))
        elif self._waiting and not self._appended:
            self._answers.append((self._waiting.popleft()[1], error))

    def vanish(self) -> None:
        """The process is gone. A prefix of what was on its way is appended."""
        for _ in range(self._chance.below(len(self._waiting) + 1)):
            self.append()
        self._waiting.clear()


def delivery_error(error: Any, topic: str, size: int) -> FatalTaskError:
    """Return what a task fails with when a record is refused."""
    return FatalTaskError(f"A record for {topic} was refused: {error}")


def offset_of(stored: Sequence[tuple[SourcePartition, SourceOffset]]) -> Mapping[str, Any] | None:
    """Return the one offset that is stored."""
    return stored[0][1] if stored else None
