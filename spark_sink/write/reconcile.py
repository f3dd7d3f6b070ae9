"""Rows that a whole snapshot of their table did not show: deletes that no source captured (`lakehouse.snapshot.reconcile`).

Each row keeps the topic and the offset of the event that wrote it last. A source sends the rows of a table's snapshot between one that is
marked as the table's first and one that is marked as its last (`source.snapshot`; Debezium's threads wait for each other to keep it so,
`TableChunkProgress.java`). In a topic of one partition a row that was seen, or changed since, has therefore an offset from the first
mark's on; of the others nothing is known but from before, and they go in the commit that applies the last mark.

Where the first mark was is stored with the offsets (`Watermark.snapshots`), so a kill changes nothing. A last mark without a first one says
nothing: rows that are sent again after a source's restart end with one, and the only row of a table has no other. Of two first marks the
later counts, since a source that begins a table again reads all of it.

All of this is wrong where records are missing in between, hence `check_reconcile` of `config.sink_config`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from connect_py.api.record import TopicPartition
from connect_py.errors import FatalTaskError
from spark_sink.config.sink_config import SinkConfig
from spark_sink.read.reader import Batch, Group
from spark_sink.read.summary import IS_MARK
from spark_sink.tables.watermark import NO_SNAPSHOT, Watermark


@dataclass(frozen=True, order=True)
class Mark:
    """The first or the last row of a table's snapshot."""

    offset: int
    is_last: bool


def follow(begun: int, marks: Iterable[Mark]) -> tuple[int, int | None]:
    """Return what the marks of one partition say.

    Args:
        begun: where the snapshot that is under way began, or `NO_SNAPSHOT`.

    Returns:
        The same after the marks, and where the last snapshot began that ended among them; None when none did.
    """
    ended: int | None = None
    for mark in sorted(marks):
        if not mark.is_last:
            begun = mark.offset
        elif begun != NO_SNAPSHOT:
            begun, ended = NO_SNAPSHOT, begun
    return begun, ended


def snapshots_of(
    table: str, groups: Sequence[Group], batch: Batch, condition: str | None, watermark: Watermark, config: SinkConfig
) -> tuple[Mapping[TopicPartition, int], dict[str, int]]:
    """Return what a batch's records say of snapshots of a table.

    Args:
        condition: SQL that is true for records that the table does not have yet.
        watermark: of the table after the batch, with the snapshots from before it.

    Returns:
        `Watermark.snapshots` after the batch, and by topic where a snapshot began that has ended.

    Raises:
        FatalTaskError: a topic has several partitions, or rows of several tables.
    """
    if not config["snapshot.reconcile"]:  # what is passed over meanwhile must not be taken for deleted later
        return dict.fromkeys(watermark.snapshots, NO_SNAPSHOT), {}
    begun, ended = dict(watermark.snapshots), dict[str, int]()
    marked = [group for group in groups if group.marks]
    for topic in sorted({group.fingerprint.topic for group in marked}):
        _check(table, topic, groups, watermark)
        marks: dict[int, list[Mark]] = {}
        for group in marked:
            if group.fingerprint.topic == topic:
                found = batch.records(group, condition, config).where(IS_MARK)
                rows = found.selectExpr("partition", "offset", "get_json_object(value, '$.source.snapshot') LIKE 'last%' is_last").collect()
                for row in rows:
                    marks.setdefault(row["partition"], []).append(Mark(row["offset"], row["is_last"]))
        for partition, of_partition in marks.items():
            tp = TopicPartition(topic, partition)
            begun[tp], start = follow(begun.get(tp, NO_SNAPSHOT), of_partition)
            if start is not None:
                ended[topic] = start
    return begun, ended


def _check(table: str, topic: str, groups: Sequence[Group], watermark: Watermark) -> None:
    partitions = sum(tp.topic == topic for tp in watermark.offsets)
    sources = {tuple(sorted(group.route.items())) for group in groups if group.fingerprint.topic == topic and group.route}
    why = f"has {partitions} partitions" if partitions > 1 else "carries several tables" if len(sources) > 1 else None
    if why:
        raise FatalTaskError(
            f"Table {table} cannot be reconciled with its snapshot: topic {topic} {why}, so the snapshot's first and last row do not say "
            f"which rows of the table it did not show. Nothing was written; set lakehouse.table.{table}.snapshot.reconcile=false."
        )
