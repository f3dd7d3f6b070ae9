"""Say what the task loops need of a producer, when records are sent that wait in its queue, and how long polls wait.

A client that decides by itself how long records wait for others (`linger.ms`) waits too long where changes come one by one, or not long
enough where they come in masses: librdkafka has one request of a partition under way at a time, and spins, a whole core, as long as the
oldest waiting record is older than its linger. So its linger is long (`LINGER_MS` of `kafka/producer.py`), full batches are sent without
it, and the rest is sent from here: at once after a pause, and every `EVERY_SECONDS` while records come in handfuls. (Measured with MySQL's
snapshot, 3.3 kB rows: 9.4 us of CPU a row where 10 ms of linger took 11.5.)
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from connect_py.api import EncodedBatch, SourceRecord, SourceTask
from connect_py.task.offsets import RELEASE_SECONDS


class Produced(NamedTuple):
    """A record as the producer takes it.

    Attributes:
        is_dead_letter: whether it describes a record that failed, in place of that record.
    """

    topic: str
    partition: int | None
    timestamp: int | None
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]] | None
    is_dead_letter: bool = False


class RecordProducer(Protocol):
    """The calls of `connect_py.kafka.producer.Producer` that the runtime makes."""

    def produce(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        headers: Sequence[tuple[str, bytes | None]] | None = None,
        on_delivery: Callable[..., None] | None = None,
        *,
        partition: int = -1,
        timestamp: int = 0,
        while_waiting: Callable[[], None] | None = None,
    ) -> None: ...
    def poll(self, timeout_seconds: float = 0.0) -> int: ...


#: As long as the linger that it stands for.
EVERY_SECONDS = 0.01

#: This many records in that time, or this many bytes as the last of each poll says, are a mass, which fills batches.
MASS_ROWS = 500
MASS_BYTES = 500_000


#: A source to which nothing has happened for so long rests: its polls wait as long as it can.
REST_AFTER_SECONDS = 5.0

#: So long after the last record the producer may close its client, as the writer of offsets does: so seldom that heartbeats of a minute do
#: not open one each.
RELEASE_AFTER_SECONDS = RELEASE_SECONDS


class HoldingProducer(Protocol):
    """What the policy asks of a producer (`connect_py.kafka.producer.Producer`)."""

    @property
    def holds_back(self) -> bool: ...
    def send_now(self) -> None: ...
    def release(self) -> bool: ...


class FlushPolicy:
    """Used by the loop of a source task, in its thread.

    Args:
        task: its `patience` is set before each poll.
        producer: of which nothing is asked where the user has chosen a linger, but to release its client at rest.
        clock: monotonic seconds.
    """

    def __init__(self, task: SourceTask, producer: HoldingProducer, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._task = task
        self._producer = producer
        self._patience = task.patience
        self._is_waiting = False
        self._rests_from: float | None = None
        self._release_at = self._clock() + RELEASE_AFTER_SECONDS
        self._begin(float("-inf"))

    def sent(self, batch: EncodedBatch | Sequence[SourceRecord]) -> None:
        """Send now or later, after a poll's records were handed to the producer."""
        rows = batch.rows if isinstance(batch, EncodedBatch) else batch
        if rows:  # a position alone, which a server's housekeeping moves, ends no rest
            self._end_rest()
            self._release_at = self._clock() + RELEASE_AFTER_SECONDS
        if not rows or not self._producer.holds_back:
            return
        self._is_waiting = True
        self._rows += len(rows)
        if isinstance(batch, EncodedBatch):
            self._bytes += len(batch.rows) * len(batch.rows[-1][2] or b"")
        now = self._clock()
        left = self._began + EVERY_SECONDS - now
        if self._rows >= MASS_ROWS or self._bytes >= MASS_BYTES:
            if left <= 0:
                self._begin(now)
            self._poll_again_in(EVERY_SECONDS)
        elif left > 0 and self._patience is not None:
            self._poll_again_in(left)
        else:
            self._send()

    def on_idle(self, *, is_settled: bool = False) -> None:
        """Send what waits: a poll brought nothing.

        Args:
            is_settled: nothing is under way that has to be looked after: records, offsets, a transaction.
        """
        if self._is_waiting:
            self._send()
        if not is_settled:
            self._task.patience = self._patience
        elif self._rests_from is None:
            self._rests_from = self._clock() + REST_AFTER_SECONDS
        elif self._patience is not None and self._clock() >= self._rests_from:
            self._task.patience = max(self._patience, self._task.rest_patience)
        if is_settled and self._clock() >= self._release_at and self._producer.release():
            self._release_at = math.inf

    def _end_rest(self) -> None:
        if self._rests_from is not None:
            self._rests_from = None
            self._task.patience = self._patience

    def _poll_again_in(self, seconds: float) -> None:
        if self._patience is not None:
            self._task.patience = min(seconds, self._patience)

    def _send(self) -> None:
        self._producer.send_now()
        self._is_waiting = False
        self._begin(self._clock())
        self._task.patience = self._patience

    def _begin(self, now: float) -> None:
        self._began = now
        self._rows = self._bytes = 0
