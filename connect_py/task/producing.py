"""What the task loops need of a producer, and what they give it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol


class Produced(NamedTuple):
    """A record as the producer takes it.

    Attributes:
        is_dead_letter: whether it tells of a record that failed, in place of that record.
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
