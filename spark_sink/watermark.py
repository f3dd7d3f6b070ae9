"""How far one table has got in each topic partition; stored inside the table's own commits. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from connect_py.api.record import TopicPartition
from connect_py.errors import FatalTaskError
from spark_sink.types import literal


@dataclass(frozen=True)
class Watermark:
    """The next offset to apply, by topic partition. What lies below is in the table and is never applied again."""

    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str | None) -> Watermark:
        """From the JSON form, ``{"topic": {"0": 17}}``.

        Raises:
            FatalTaskError: the text is not of that form; someone else wrote it, and guessing could lose or repeat records.
        """
        try:
            topics = json.loads(text) if text else {}
            return cls({TopicPartition(t, int(p)): int(o) for t, partitions in topics.items() for p, o in partitions.items()})
        except (ValueError, TypeError, AttributeError) as error:
            raise FatalTaskError(f"A table's stored offsets cannot be read ({error}): {text}") from None

    def to_json(self) -> str:
        """The JSON form, sorted, so that equal watermarks have equal texts."""
        topics: dict[str, dict[str, int]] = {}
        for tp, offset in sorted(self.offsets.items()):
            topics.setdefault(tp.topic, {})[str(tp.partition)] = offset
        return json.dumps(topics, separators=(",", ":"))

    def advanced(self, offsets: Mapping[TopicPartition, int]) -> Watermark:
        """Partition by partition the higher of both; a partition that `offsets` lacks is not forgotten."""
        return Watermark({tp: max(self.offsets.get(tp, 0), offsets.get(tp, 0)) for tp in {*self.offsets, *offsets}})

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
