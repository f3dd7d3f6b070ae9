"""What the sink asks of a way to read records: to cut them into schema and payload, by the schema's number.

A *number* stands for the schemas of keys or values that are alike; None for a key or value that is not there. Whoever reads a batch knows
only numbers; for each new one the driver reads one record whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

#: Number of values that cannot be read; each record's `problem` says why.
PROBLEM = -1


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What tells records of one topic with the same schemas apart from others; None stands for an absent key or value."""

    topic: str
    key: int | None
    value: int | None


class RecordFormat(Protocol):
    """One way to read records. The task's thread is the only caller.

    Attributes:
        needs_headers: whether the frames given must have Kafka's headers.
        peeks: whether it is quicker on schemas that it has learned, so that a look ahead pays before a large batch.
        numeric_decimals: whether decimals are JSON numbers in the texts that it gives, not base64.
    """

    needs_headers: bool
    peeks: bool
    numeric_decimals: bool

    def rows(self, kafka: DataFrame) -> DataFrame:
        """Kafka's records, cut: topic, partition, offset, timestamp, kfp, vfp (the numbers), key, value (JSON texts of the payloads),
        headers if the frame had any, and problem (why the record cannot be read, else null)."""
        ...

    def whole(self, kafka: DataFrame) -> DataFrame:
        """Kafka's records, whole: topic, partition, offset, timestamp, key, value (bytes as JsonConverter writes them), khead, vhead (their
        text up to the payload), routed (the topic to which a transform has moved the record) and problem."""
        ...

    def learn(self, fingerprint: Fingerprint, record: Row | None) -> None:
        """A record of `whole` with the numbers given, or None when there is none."""
        ...

    def counted(self, records: Mapping[Fingerprint, int]) -> None:
        """How many records of each a batch had."""
        ...
