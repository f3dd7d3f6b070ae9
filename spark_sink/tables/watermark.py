"""How far one table has got in each topic partition; stored inside the table's own commits. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from connect_py.api.record import TopicPartition
from connect_py.errors import FatalTaskError
from spark_sink.types.columns import literal

#: Of `Watermark.snapshots`: none is under way. Once there, a partition's entry stays, lest an older one be taken for it.
NO_SNAPSHOT = -1


@dataclass(frozen=True)
class Watermark:
    """The next offset to apply, by topic partition. What lies below is in the table and is never applied again.

    Attributes:
        snapshots: the offset at which a snapshot of the table began that has not ended yet, or `NO_SNAPSHOT`.
    """

    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    snapshots: Mapping[TopicPartition, int] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str | None, snapshots: str | None = None) -> Watermark:
        """From the JSON forms, ``{"topic": {"0": 17}}``.

        Raises:
            FatalTaskError: a text is not of that form; someone else wrote it, and guessing could lose or repeat records.
        """
        return cls(_parsed(text), _parsed(snapshots))

    def to_json(self) -> str:
        """The JSON form, sorted, so that equal watermarks have equal texts."""
        return _text(self.offsets)

    def snapshots_json(self) -> str:
        """The JSON form of the snapshots."""
        return _text(self.snapshots)

    def advanced(self, offsets: Mapping[TopicPartition, int]) -> Watermark:
        """Partition by partition the higher of both; a partition that `offsets` lacks is not forgotten."""
        advanced = {tp: max(self.offsets.get(tp, 0), offsets.get(tp, 0)) for tp in {*self.offsets, *offsets}}
        return Watermark(advanced, self.snapshots)

    def merged(self, other: Watermark) -> Watermark:
        """As `advanced`, of two that tell of the same rows: the snapshot of a partition is that of whoever knows more of it."""
        ahead = {tp for tp, offset in other.offsets.items() if offset >= self.offsets.get(tp, 0)}
        snapshots = {**self.snapshots, **{tp: begun for tp, begun in other.snapshots.items() if tp in ahead}}
        return Watermark(self.advanced(other.offsets).offsets, snapshots)

    def covers(self, ranges: Mapping[TopicPartition, tuple[int, int]]) -> bool:
        """Whether every offset of the ranges [start, end) has been applied."""
        return all(self.offsets.get(tp, 0) >= end for tp, (_, end) in ranges.items())

    def condition(self, ranges: Mapping[TopicPartition, tuple[int, int]]) -> str | None:
        """SQL that is true for rows of the ranges still to be applied, over columns topic, partition and offset; None when all are."""
        applied = [
            f"(`topic` = {literal(tp.topic)} AND `partition` = {tp.partition} AND `offset` < {self.offsets[tp]})"
            for tp, (start, _) in sorted(ranges.items())
            if self.offsets.get(tp, 0) > start
        ]
        return f"NOT ({' OR '.join(applied)})" if applied else None


def _parsed(text: str | None) -> dict[TopicPartition, int]:
    try:
        topics = json.loads(text) if text else {}
        return {TopicPartition(t, int(p)): int(o) for t, partitions in topics.items() for p, o in partitions.items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise FatalTaskError(f"A table's stored offsets cannot be read ({error}): {text}") from None


def _text(offsets: Mapping[TopicPartition, int]) -> str:
    topics: dict[str, dict[str, int]] = {}
    for tp, offset in sorted(offsets.items()):
        topics.setdefault(tp.topic, {})[str(tp.partition)] = offset
    return json.dumps(topics, separators=(",", ":"))
