"""The producer of a source, whose client is closed while the source rests.

A client of librdkafka has three threads, each of which wakes up once a second: a third to two thirds of the CPU of a source at rest. So
`release` closes it, and the next record opens another. That record is in Kafka some 65 ms later than by a client that is there
(`docs/evidence/benchmarks.md`). While a broker is reported to be unavailable the client is kept, to report that it answers again.

A client is closed only while nothing of it is under way, so the next one, whose producer id is another, repeats and overtakes nothing.
Transactional producers are not closed: to initialise their id again is a step of its own, which fences.

Threads: as `Producer`.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable
from typing import Any, Protocol


class Client(Protocol):
    """What is asked of `connect_py.kafka.producer.Producer`."""

    holds_back: bool
    send: Callable[..., None]

    @property
    def produce(self) -> Callable[..., None]: ...

    def __len__(self) -> int: ...
    def connect(self, topic: str) -> None: ...
    def poll(self, timeout_seconds: float = 0.0) -> int: ...
    def send_now(self) -> None: ...
    def flush(self, timeout_seconds: float) -> int: ...
    def close(self, timeout_seconds: float) -> int: ...


class Figures(Protocol):
    """What is asked of the client's `connect_py.kafka.client_statistics.ClientStatistics`."""

    @property
    def awaits_broker(self) -> bool: ...
    def client_closed(self) -> None: ...


def return_free_memory() -> None:
    """Give free pages back to the system: threads of a client have heaps of their own, whose pages stay when the client has gone, as do
    those of a snapshot. It takes 3 ms and gives 0.2 to 0.4 MB of a task that has done little. With glibc only."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


class RestingProducer:
    """A producer that has a client while there is something to send.

    Args:
        open_client: makes a client. Raises ConfigError.
        figures: of the clients, one after the other.
        on_close: called when a client has been closed at rest.

    Attributes:
        holds_back: as of the client.
        send, produce: as of the client, whose own methods they are but for the first batch after a rest. That one raises ConfigError, too:
            a client cannot be opened any more.

    Raises:
        ConfigError: the client's properties cannot be used.
    """

    def __init__(self, open_client: Callable[[], Client], figures: Figures, on_close: Callable[[], None] = return_free_memory) -> None:
        self._open_client = open_client
        self._figures = figures
        self._on_close = on_close
        client = open_client()
        self._client: Client | None = client
        self.holds_back = client.holds_back
        self.send, self.produce = client.send, client.produce

    def __len__(self) -> int:
        """Return records handed over whose callback has not run yet."""
        return 0 if self._client is None else len(self._client)

    def poll(self, timeout_seconds: float = 0.0) -> int:
        """Run callbacks; returns how many events there were."""
        return 0 if self._client is None else self._client.poll(timeout_seconds)

    def send_now(self) -> None:
        """Have what is queued sent."""
        if self._client is not None:
            self._client.send_now()

    def flush(self, timeout_seconds: float) -> int:
        """Send what is queued and wait; returns how many records are still not acknowledged."""
        return 0 if self._client is None else self._client.flush(timeout_seconds)

    def release(self) -> bool:
        """Close the client until the next record. Returns False, and changes nothing, while it is needed."""
        if self._client is not None:
            self._client.poll(0.0)  # its statistics count as under way
            if len(self._client) or self._figures.awaits_broker:
                return False
            self._client.close(0.0)
            self.send, self.produce = self._send_after_rest, self._produce_after_rest
            self._client = None
            self._figures.client_closed()
            self._on_close()
        return True

    def close(self, timeout_seconds: float) -> int:
        """Flush for at most `timeout_seconds`, give up the rest; returns how many records were given up."""
        return 0 if self._client is None else self._client.close(timeout_seconds)

    def _awake(self, topic: str) -> Client:
        if self._client is None:
            self._client = self._open_client()
            self.send, self.produce = self._client.send, self._client.produce
            self._client.connect(topic)
        return self._client

    def _send_after_rest(self, topic: str, *others: Any) -> None:
        self._awake(topic).send(topic, *others)

    def _produce_after_rest(self, topic: str, *others: Any, **named: Any) -> None:
        self._awake(topic).produce(topic, *others, **named)
