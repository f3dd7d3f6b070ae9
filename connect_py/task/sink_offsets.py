"""Decide which offsets of a sink task may be committed (`WorkerSinkTask.commitOffsets`). Pure.

For each assigned partition two offsets are known: the next one after what `put` took, and the last committed one. One thread owns a
`SinkOffsets`: the task's.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from connect_py.api import TopicPartition

log = logging.getLogger(__name__)


class SinkOffsets:
    """Offsets of the assigned partitions."""

    def __init__(self) -> None:
        self._taken: dict[TopicPartition, int] = {}
        self._committed: dict[TopicPartition, int] = {}

    def __len__(self) -> int:
        return len(self._committed)

    def uncommitted(self) -> int:
        """Return how many offsets lie between what was taken and what is committed."""
        return sum(self._taken[partition] - offset for partition, offset in self._committed.items())

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """Partitions came, to be read from these offsets."""
        self._taken.update(positions)
        self._committed.update(positions)

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Partitions went."""
        for partition in partitions:
            self._taken.pop(partition, None)
            self._committed.pop(partition, None)

    def take(self, reached: Mapping[TopicPartition, int]) -> None:
        """`put` took every record before these offsets; those of partitions that went meanwhile are left out."""
        for partition, offset in reached.items():
            if partition in self._committed:
                self._taken[partition] = offset

    def of(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return what to offer to `pre_commit`."""
        return {partition: self._taken[partition] for partition in partitions if partition in self._taken}

    def committable(self, offered: Mapping[TopicPartition, int], accepted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """What to commit after `pre_commit` accepted some of the offer: as in Connect, all partitions of the offer as soon as one of them
        moves, so that the group shows those without records, too; nothing when none does.

        Offsets ahead of what was put, and partitions that are not assigned or not offered, are left out with a warning.
        """
        before = {partition: self._committed[partition] for partition in offered if partition in self._committed}
        due = dict(before)
        for partition, offset in accepted.items():
            where = f"{partition[0]}-{partition[1]}"
            key = TopicPartition(*partition)
            if key not in self._committed:
                log.warning("Ignoring invalid task provided offset %s/%s -- partition not assigned", where, offset)
            elif key in offered and offset > offered[key]:
                log.warning("Ignoring invalid task provided offset %s/%s -- not yet consumed, taken offset=%s", where, offset, offered[key])
            elif key in offered:
                due[key] = offset
        return due if due != before else {}

    def committed(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Kafka holds these."""
        for partition, offset in offsets.items():
            if partition in self._committed:
                self._committed[partition] = offset

    def rewind(self, partition: TopicPartition, offset: int) -> None:
        """A partition is read again from an offset."""
        if partition in self._committed:
            self._taken[partition] = self._committed[partition] = offset

    def rewind_all(self) -> dict[TopicPartition, int]:
        """Go back to the committed offsets; returns them."""
        self._taken = dict(self._committed)
        return dict(self._committed)
