"""Reconciling (`lakehouse.snapshot.reconcile`): rows that a whole snapshot of their table did not show are deleted, as deletes that no
source captured.

Each row keeps the topic and the offset of the event that wrote it last. A source sends the rows of a table's snapshot between one that is
marked as the table's first and one that is marked as its last (`source.snapshot`; Debezium's threads wait for each other to keep it so,
`TableChunkProgress.java`). In a topic of one partition a row that was seen, or changed since, has therefore an offset from the first mark's
on; of the others nothing is known but from before, and they go in the commit that applies the last mark. Where the first mark was is stored
with the offsets (`Watermark.snapshots`), so a kill changes nothing. A last mark without a first one says nothing: rows that are sent again
after a source's restart end with one, and the only row of a table has no other. Of two first marks the later counts, since a source that
begins a table again reads all of it. All of this is wrong where records are missing in between, hence `check_reconcile` of
`config.sink_config`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace

from connect_py.api.record import TopicPartition
from connect_py.errors import FatalTaskError
from spark_sink.read.summary import IS_MARK
from spark_sink.tables.watermark import NO_SNAPSHOT
from spark_sink.write.table_batch import TableBatch, Target

_log = logging.getLogger("io.github.connectpy.spark.SparkLakehouseSinkTask")


def follow_snapshots(batch: TableBatch, at: Target) -> TableBatch:
    """Note in the watermark which snapshots of the table are under way, and in the shape which have ended.

    Raises:
        FatalTaskError: a topic has several partitions, or rows of several tables.
    """
    known = batch.watermark.snapshots
    if not at.config["snapshot.reconcile"]:  # what is passed over meanwhile must not be taken for deleted later
        return replace(batch, watermark=replace(batch.watermark, snapshots=dict.fromkeys(known, NO_SNAPSHOT))) if known else batch
    begun, ended = dict(known), dict[str, int]()
    for topic in sorted({group.fingerprint.topic for group in batch.groups if group.marks}):
        _check_topic(topic, batch)
        for tp, marks in _marks(topic, batch, at).items():
            begun[tp], start = follow(begun.get(tp, NO_SNAPSHOT), marks)
            if start is not None:
                ended[topic] = start
    batch = replace(batch, watermark=replace(batch.watermark, snapshots=begun))
    if not (batch.shape.keys and ended):
        return batch
    _log.info("Table %s: rows that its snapshot did not show are deleted; it began at %s", batch.table, ended)
    return replace(batch, shape=replace(batch.shape, unseen=ended))


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


def _marks(topic: str, batch: TableBatch, at: Target) -> dict[TopicPartition, list[Mark]]:
    marks: dict[TopicPartition, list[Mark]] = {}
    for group in batch.groups:
        if group.marks and group.fingerprint.topic == topic:
            found = at.records.records(group, batch.condition, at.config).where(IS_MARK)
            rows = found.selectExpr("partition", "offset", "get_json_object(value, '$.source.snapshot') LIKE 'last%' is_last").collect()
            for row in rows:
                marks.setdefault(TopicPartition(topic, row["partition"]), []).append(Mark(row["offset"], row["is_last"]))
    return marks


def _check_topic(topic: str, batch: TableBatch) -> None:
    partitions = sum(tp.topic == topic for tp in batch.watermark.offsets)
    sources = {tuple(sorted(group.route.items())) for group in batch.groups if group.fingerprint.topic == topic and group.route}
    why = f"has {partitions} partitions" if partitions > 1 else "carries several tables" if len(sources) > 1 else None
    if why:
        raise FatalTaskError(
            f"Table {batch.table} cannot be reconciled with its snapshot: topic {topic} {why}, so the snapshot's first and last row do not "
            f"say which rows of the table it did not show. Nothing was written; set lakehouse.table.{batch.table}.snapshot.reconcile=false."
        )
