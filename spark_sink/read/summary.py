"""What is in a batch: how many records of each kind, by one pass of Spark over it.

The aggregates are numbers and flags only, by partition: of a struct Spark would make a sort of the whole batch. The rest is put together
here, from as many rows as a batch has partitions and kinds.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from connect_py.api.record import TopicPartition
from spark_sink.read.formats import CutRecord, Fingerprint
from spark_sink.types.columns import literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

#: What records of one kind and partition share.
_BY = ("topic", "kfp", "vfp", "route", "partition")

#: Only a text that might be a truncate is parsed. Spark compares where the first character is found, and quotes are everywhere.
_LIKE_TRUNCATE = 'p":"t"'
#: SQL: it is one.
_IS_TRUNCATE = f"contains(value, '{_LIKE_TRUNCATE}') AND get_json_object(value, '$.op') = 't'"

#: What the source block of the first and of the last row of a table in a snapshot says.
_MARKS = ("first", "first_in_data_collection", "last_in_data_collection", "last")
_LIKE_MARKS = ('"snapshot":"first', '"snapshot":"last')

#: SQL: such a row. As with truncates, few texts are parsed.
IS_MARK = (
    f"({' OR '.join(f'contains(value, {literal(text)})' for text in _LIKE_MARKS)}) AND get_json_object(value, '$.op') = 'r' "
    f"AND get_json_object(value, '$.source.snapshot') IN {_MARKS}"
)


@dataclass(frozen=True, order=True, slots=True)
class Truncate:
    """Where the last truncate of some records stands. `time` is the record's timestamp, microseconds since 1970."""

    time: int
    partition: int
    offset: int


@dataclass(frozen=True)
class RecordKind:
    """Records of a batch that share a fingerprint and a routing value.

    Attributes:
        position: of the first of them, in the lowest partition.
        placeholder: whether the unavailable-value placeholder occurs in some of them.
        truncate: the last truncate among them, if there is one.
        truncates: how many of them are truncates.
        marks: how many of them are the first or the last row of a table in a snapshot, if that was looked for.
        longest: bytes of the longest value.
    """

    fingerprint: Fingerprint
    route: str | None
    count: int
    position: tuple[TopicPartition, int]
    placeholder: bool = False
    truncate: Truncate | None = None
    truncates: int = 0
    marks: int = 0
    longest: int = 0


def summarize(rows: DataFrame, placeholder: str, *, marks: bool = False, is_held: bool = False) -> list[RecordKind]:
    """Count the kinds of records in a batch, in order of their first offsets, tombstones last.

    Args:
        rows: with topic, partition, offset, timestamp, kfp, vfp, value and route (see `changes.Batch`).
        marks: whether they are counted.
        is_held: whether the driver holds the rows: then they are counted here, without a job of Spark's.
    """
    found = rows.selectExpr(
        "topic",
        "partition",
        "kfp",
        "vfp",
        "route",
        "offset",
        f"{_has_placeholder('value', placeholder)} placeholder",
        f"IF({_IS_TRUNCATE}, offset, NULL) truncate",
        f"{IS_MARK if marks else 'false'} mark",
        "coalesce(octet_length(value), 0) size",
    )
    by_partition = count_rows(found.collect()) if is_held else _counted(found)
    truncates = _last_truncates(by_partition)
    return kinds(by_partition, _times(rows, truncates) if truncates else {})


def summarize_cut(records: Sequence[CutRecord], placeholder: str, *, marks: bool = False) -> list[RecordKind]:
    """Count kinds of records as `summarize` does, of records that the driver has cut and that have no routing value. Pure."""
    placeholders = (placeholder.encode(), base64.b64encode(placeholder.encode()))
    like_truncate, like_marks = _LIKE_TRUNCATE.encode(), tuple(text.encode() for text in _LIKE_MARKS)

    def looked_at() -> Iterator[Mapping[str, Any]]:
        for record in records:
            value = record.value or b""
            yield {
                "topic": record.topic,
                "partition": record.partition,
                "kfp": record.kfp,
                "vfp": record.vfp,
                "route": None,
                "offset": record.offset,
                "placeholder": record.value is not None and any(text in value for text in placeholders),
                "truncate": record.offset if like_truncate in value and _members(value)[0] == "t" else None,
                "mark": marks and any(text in value for text in like_marks) and _is_mark(value),
                "size": len(value),
            }

    by_partition = count_rows(looked_at())
    if not (truncates := frozenset(_last_truncates(by_partition))):
        return kinds(by_partition, {})
    places = ((TopicPartition(record.topic, record.partition), record.offset) for record in records)
    return kinds(
        by_partition, {place: 1000 * record.timestamp for place, record in zip(places, records, strict=True) if place in truncates}
    )


def _last_truncates(by_partition: Iterable[Row | Mapping[str, Any]]) -> list[tuple[TopicPartition, int]]:
    """Return where the last truncates of partitions stand."""
    return [(TopicPartition(row["topic"], row["partition"]), row["truncate"]) for row in by_partition if row["truncates"]]


def _members(value: bytes) -> tuple[Any, Any]:
    """Return `op` and `source.snapshot` of an envelope, as far as a text has these."""
    try:
        event = json.loads(value)
    except (ValueError, RecursionError):
        return None, None
    source = event.get("source") if isinstance(event, dict) else None
    return (event.get("op") if isinstance(event, dict) else None), (source.get("snapshot") if isinstance(source, dict) else None)


def _is_mark(value: bytes) -> bool:
    op, snapshot = _members(value)
    return op == "r" and snapshot in _MARKS


def _counted(found: DataFrame) -> Sequence[Row]:
    from pyspark.sql import functions as f

    counted = found.groupBy(*_BY).agg(
        f.expr("count(1) n"),
        f.expr("min(offset) first"),
        f.expr("bool_or(placeholder) placeholder"),
        f.expr("max(truncate) truncate"),
        f.expr("count(truncate) truncates"),
        f.expr("count_if(mark) marks"),
        f.expr("max(size) longest"),
    )
    rows: list[Row] = counted.collect()
    return rows


def count_rows(rows: Iterable[Row | Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Count rows as Spark does in `summarize`. Pure."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        by = tuple(row[name] for name in _BY)
        if (count := found.get(by)) is None:
            count = found[by] = dict(zip(_BY, by, strict=True)) | {
                "n": 0,
                "first": row["offset"],
                "placeholder": False,
                "truncate": None,
                "truncates": 0,
                "marks": 0,
                "longest": 0,
            }
        count["n"] += 1
        count["first"] = min(count["first"], row["offset"])
        count["placeholder"] = count["placeholder"] or row["placeholder"]
        count["longest"] = max(count["longest"], row["size"])
        count["marks"] += bool(row["mark"])
        if row["truncate"] is not None:
            count["truncate"] = max(row["truncate"], row["truncate"] if count["truncate"] is None else count["truncate"])
            count["truncates"] += 1
    return list(found.values())


def kinds(by_partition: Sequence[Row | Mapping[str, Any]], times: Mapping[tuple[TopicPartition, int], int]) -> list[RecordKind]:
    """Put kinds together from the aggregates of each partition. Pure.

    Args:
        times: timestamps of the partitions' last truncates.
    """
    parts: dict[tuple[Fingerprint, str | None], list[Row | Mapping[str, Any]]] = {}
    for row in sorted(by_partition, key=lambda row: int(row["partition"])):
        parts.setdefault((Fingerprint(row["topic"], row["kfp"], row["vfp"]), row["route"]), []).append(row)
    made = [
        RecordKind(
            fingerprint,
            route,
            sum(row["n"] for row in found),
            (TopicPartition(fingerprint.topic, found[0]["partition"]), found[0]["first"]),
            any(row["placeholder"] for row in found),
            max(
                (
                    Truncate(times[TopicPartition(fingerprint.topic, row["partition"]), row["truncate"]], row["partition"], row["truncate"])
                    for row in found
                    if row["truncates"]
                ),
                default=None,
            ),
            sum(row["truncates"] for row in found),
            sum(row["marks"] for row in found),
            max(row["longest"] for row in found),
        )
        for (fingerprint, route), found in parts.items()
    ]
    return sorted(made, key=lambda kind: (kind.fingerprint.value is None, kind.fingerprint.topic, kind.position[1]))


def _times(rows: DataFrame, positions: Iterable[tuple[TopicPartition, int]]) -> dict[tuple[TopicPartition, int], int]:
    found = rows.where(at_positions(positions)).selectExpr("topic", "partition", "offset", "unix_micros(timestamp) time").collect()
    return {(TopicPartition(row["topic"], row["partition"]), row["offset"]): row["time"] for row in found}


def at_positions(positions: Iterable[tuple[TopicPartition, int]]) -> str:
    """Return SQL that is true for the records at the given positions, of which there must be one."""
    offsets: dict[TopicPartition, list[str]] = {}
    for tp, offset in sorted(positions):
        offsets.setdefault(tp, []).append(str(offset))
    parts = [
        f"(`topic` = {literal(tp.topic)} AND `partition` = {tp.partition} AND `offset` IN ({', '.join(o)}))" for tp, o in offsets.items()
    ]
    return " OR ".join(parts)


def _has_placeholder(column: str, placeholder: str) -> str:
    """Return SQL: whether the placeholder occurs in a JSON text, as text or as base64 of its bytes."""
    encoded = base64.b64encode(placeholder.encode()).decode()
    return f"coalesce(contains({column}, {literal(placeholder)}) OR contains({column}, {literal(encoded)}), false)"
