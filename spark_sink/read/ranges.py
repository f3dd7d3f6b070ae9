"""Ranges of the log: which wait, which are taken next, and how they are written. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from connect_py.api.record import TopicPartition
from connect_py.errors import FatalTaskError

#: [start, end) of one partition.
Range = tuple[int, int]


def start_position(group: int | None, applied: Iterable[int | None], fresh: int) -> int:
    """Return where to start in a partition: at the lowest of what its tables have applied and what the consumer group says.

    Args:
        group: the group's offset; None when it has none (Kafka forgets those of a group that nobody has used for seven days).
        applied: the next offset to apply by each table of the partition's topic; None for a table that does not know the partition.
        fresh: where to start when nothing else is known.
    """
    known = [fresh if offset is None else offset for offset in applied]
    return min([*known, group] if group is not None else known, default=fresh)


def waiting_ranges(
    positions: Mapping[TopicPartition, int], log: Mapping[TopicPartition, Range], *, fail_on_data_loss: bool = True
) -> dict[TopicPartition, Range]:
    """Return what is in the log and not read yet.

    Args:
        positions: the next offset to read, for every partition of `log`.
        log: first and next offset that Kafka holds.

    Returns:
        Non-empty ranges only.

    Raises:
        FatalTaskError: Kafka has deleted offsets that were still to be read, or a log ends before what was read.
    """
    waiting: dict[TopicPartition, Range] = {}
    for tp, (first, following) in sorted(log.items()):
        start = positions[tp]
        if fail_on_data_loss and (start < first or start > following):
            what = f"offsets {start} to {first - 1} have been deleted" if start < first else f"the log ends at {following}"
            raise FatalTaskError(
                f"Topic {tp.topic} partition {tp.partition} should be read from offset {start}, but {what}. Nothing was skipped. If the "
                "loss is acceptable set lakehouse.fail-on-data-loss=false; the sink then goes on with the first offset that Kafka holds."
            )
        start = max(start, first) if start <= following else first
        if start < following:
            waiting[tp] = (start, following)
    return waiting


def plan_ranges(waiting: Mapping[TopicPartition, Range], bound: int) -> dict[TopicPartition, Range]:
    """Choose at most about `bound` offsets of `waiting_ranges`, in proportion to what each has; every waiting partition gets its share."""
    backlog = sum(end - start for start, end in waiting.values())
    if backlog <= bound:
        return dict(waiting)
    return {tp: (start, min(end, start + max(1, (end - start) * bound // backlog))) for tp, (start, end) in waiting.items()}


def enclosing_ranges(positions: Iterable[tuple[TopicPartition, int]]) -> dict[TopicPartition, Range]:
    """Return the smallest range of each partition that has all positions in it."""
    ranges: dict[TopicPartition, Range] = {}
    for tp, offset in positions:
        first, end = ranges.get(tp, (offset, offset + 1))
        ranges[tp] = (min(first, offset), max(end, offset + 1))
    return ranges


def offsets_json(offsets: Iterable[tuple[TopicPartition, int]]) -> str:
    """Return offsets in the form of the options startingOffsets and endingOffsets of Spark's Kafka source."""
    topics: dict[str, dict[str, int]] = {}
    for tp, offset in offsets:
        topics.setdefault(tp.topic, {})[str(tp.partition)] = offset
    return json.dumps(topics)


def describe_record(tp: TopicPartition, offset: int) -> str:
    """Describe a record for people: ``topic t partition 0 offset 5``."""
    return f"topic {tp.topic} partition {tp.partition} offset {offset}"


def describe(ranges: Mapping[TopicPartition, Range]) -> str:
    """Describe ranges for people, naming partitions as Connect does: ``topic-0 [5, 9), …``; a long list is cut."""
    shown = [f"{tp.topic}-{tp.partition} [{start}, {end})" for tp, (start, end) in sorted(ranges.items())]
    return ", ".join(shown[:10]) + (f" and {len(shown) - 10} more" if len(shown) > 10 else "")
