"""How far one table has got in each topic partition, and which watermark counts of those that it stores. Pure.

A watermark is stored inside the table's own commits and copied into a table property, which survives the expiry of commits. For an
Iceberg table `newest_stored` reads it from the snapshots' summaries, for a Delta table `newest_commit` from the commits' user metadata: a
JSON object with the watermark and the connector's *sequence*, the version that goes with Delta's transaction identifier. A sequence never
restarts and is the same counter across changes of offsets: Delta ignores a statement whose version is not above the stored one, so a task
that read a sequence can commit the next one only once.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from connect_py.api.record import TopicPartition
from connect_py.errors import FatalTaskError
from spark_sink.types.columns import literal

#: Of `Watermark.snapshots`: none is under way. Once there, a partition's entry stays, so that an older one is not taken for it.
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
        """Parse the JSON forms, ``{"topic": {"0": 17}}``.

        Raises:
            FatalTaskError: a text is not of that form; someone else wrote it, and guessing could lose or repeat records.
        """
        return cls(_parse_offsets(text), _parse_offsets(snapshots))

    def to_json(self) -> str:
        """Return the JSON form, sorted, so that equal watermarks have equal texts."""
        return _offsets_json(self.offsets)

    def snapshots_json(self) -> str:
        """Return the JSON form of the snapshots."""
        return _offsets_json(self.snapshots)

    def advanced(self, offsets: Mapping[TopicPartition, int]) -> Watermark:
        """Return the higher of both, partition by partition; a partition that `offsets` lacks is kept."""
        advanced = {tp: max(self.offsets.get(tp, 0), offsets.get(tp, 0)) for tp in {*self.offsets, *offsets}}
        return Watermark(advanced, self.snapshots)

    def merged(self, other: Watermark) -> Watermark:
        """Merge with a watermark of the same rows, as `advanced` does: the one that is further in a partition has its snapshot."""
        ahead = {tp for tp, offset in other.offsets.items() if offset >= self.offsets.get(tp, 0)}
        snapshots = {**self.snapshots, **{tp: begun for tp, begun in other.snapshots.items() if tp in ahead}}
        return Watermark(self.advanced(other.offsets).offsets, snapshots)

    def covers(self, ranges: Mapping[TopicPartition, tuple[int, int]]) -> bool:
        """Return whether every offset of the ranges [start, end) has been applied."""
        return all(self.offsets.get(tp, 0) >= end for tp, (_, end) in ranges.items())

    def condition(self, ranges: Mapping[TopicPartition, tuple[int, int]]) -> str | None:
        """Return SQL that is true for rows of the ranges still to be applied, over topic, partition and offset; None when all are."""
        applied = [
            f"(`topic` = {literal(tp.topic)} AND `partition` = {tp.partition} AND `offset` < {self.offsets[tp]})"
            for tp, (start, _) in sorted(ranges.items())
            if self.offsets.get(tp, 0) > start
        ]
        return f"NOT ({' OR '.join(applied)})" if applied else None


def _parse_offsets(text: str | None) -> dict[TopicPartition, int]:
    try:
        topics = json.loads(text) if text else {}
        return {TopicPartition(t, int(p)): int(o) for t, partitions in topics.items() for p, o in partitions.items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise FatalTaskError(f"A table's stored offsets cannot be read ({error}): {text}") from None


def _offsets_json(offsets: Mapping[TopicPartition, int]) -> str:
    topics: dict[str, dict[str, int]] = {}
    for tp, offset in sorted(offsets.items()):
        topics.setdefault(tp.topic, {})[str(tp.partition)] = offset
    return json.dumps(topics, separators=(",", ":"))


#: Beginning of the key that `Watermark.snapshots` has, where there are any, in summaries, metadata of commits and properties of tables.
SNAPSHOTS_BEGUN = "kafka.connect.snapshots-begun."


@dataclass(frozen=True)
class Stored:
    """What a table says about one connector.

    Attributes:
        generation: how often the offsets have been altered or reset.
        snapshot: the newest snapshot of this connector's that is left, if any.
        in_property: whether the table's property says all of it.
        epoch: start of the task that made that snapshot, milliseconds since 1970; 0 when unknown.
    """

    watermark: Watermark
    generation: int
    snapshot: int | None
    in_property: bool
    epoch: int = 0


def newest_stored(
    head: int | None, snapshots: Mapping[int, tuple[int | None, Mapping[str, str]]], properties: Mapping[str, str], connector: str
) -> Stored:
    """Return the watermark that counts.

    Of the snapshots it is the first with one, from the head through its ancestors. The property can be ahead of it (records that change
    nothing; snapshots that have expired) and counts partition by partition if so, unless it was written for a snapshot that the table was
    rolled back from, or that went with a table which another has replaced (CREATE OR REPLACE keeps properties): then the rows are gone, and
    the snapshots alone say what is there. A higher generation replaces a lower one.

    Args:
        snapshots: parent and summary by id.

    Raises:
        FatalTaskError: what is stored cannot be read.
    """
    offsets_key, begun_key = f"kafka.connect.offsets.{connector}", f"{SNAPSHOTS_BEGUN}{connector}"
    line: list[int] = [head] if head is not None and head in snapshots else []
    while (parent := snapshots[line[-1]][0] if line else None) is not None and parent in snapshots:
        line.append(parent)
    step = next((snapshot for snapshot in line if offsets_key in snapshots[snapshot][1]), None)
    text = properties.get(offsets_key)
    of_property = Watermark.parse(text, properties.get(begun_key))
    property_generation = int(properties.get(f"kafka.connect.generation.{connector}", 0))
    written_for = properties.get(f"kafka.connect.snapshot.{connector}")
    rolled_back = written_for is not None and int(written_for) not in line
    if step is None:
        from_the_first = not line or snapshots[line[-1]][0] is None  # else those before have expired
        lost = rolled_back and from_the_first
        return Stored(Watermark() if lost else of_property, property_generation, None, in_property=True)
    summary = snapshots[step][1]
    committed = Watermark.parse(summary[offsets_key], summary.get(begun_key))
    generation = int(summary.get("kafka.connect.generation", 0))
    epoch = int(summary.get("kafka.connect.task-epoch", 0))
    if text is None or rolled_back or property_generation < generation:
        return Stored(committed, generation, step, in_property=False, epoch=epoch)
    if property_generation > generation:
        return Stored(of_property, property_generation, step, in_property=True, epoch=epoch)
    both = committed.merged(of_property)
    return Stored(both, generation, step, in_property=both == of_property, epoch=epoch)


#: How many of a table's past commits a task reports: as many as a page shows.
MAX_PAST = 10


@dataclass(frozen=True)
class PastCommit:
    """A commit of the connector's that a table had when the task started.

    Attributes:
        at: seconds since the epoch.
        records: offsets that it applied; None where the one before it is not known.
    """

    at: float
    records: int | None


def past_commits(stored: Iterable[tuple[float, str | None]]) -> list[PastCommit]:
    """Return the last commits that applied something, the newest first.

    Args:
        stored: time and stored offsets of each commit, the newest first; None for commits of others, and of compaction. Offsets that
            cannot be read end the list: nothing but what is shown rests on it.
    """
    found: list[PastCommit] = []
    later: tuple[float, Watermark] | None = None
    for at, text in stored:
        if len(found) == MAX_PAST:
            break
        if text is None:
            continue
        try:
            earlier = Watermark.parse(text)
        except FatalTaskError:
            break
        if later is not None:
            records = sum(max(0, offset - earlier.offsets.get(tp, 0)) for tp, offset in later[1].offsets.items())
            found += [PastCommit(later[0], records)] if records else []
        later = (at, earlier)
    return found if later is None or len(found) == MAX_PAST else [*found, PastCommit(later[0], None)]


@dataclass(frozen=True)
class Commit:
    """One line of a table's history.

    Attributes:
        restored: the version that a RESTORE brought back, or the time whose version it brought back.
        metadata: the commit's user metadata, if it is a JSON object.
        replaces: whether it put another table in place of what was there (CREATE OR REPLACE); the log continues, the rows are gone.
        time: when it was made, UTC.
    """

    version: int
    time: datetime.datetime
    metadata: Mapping[str, Any]
    restored: int | datetime.datetime | None = None
    replaces: bool = False


@dataclass(frozen=True)
class Applied:
    """What a table says about one connector.

    Attributes:
        sequence: of the connector's newest commit, rolled back or not; 0 before the first.
        time: of the commit that holds the watermark; None when a property holds it, or nothing does.
        epoch: start of the task that made that commit, milliseconds since 1970; 0 when unknown.
    """

    watermark: Watermark
    sequence: int = 0
    generation: int = 0
    epoch: int = 0
    time: datetime.datetime | None = None


def parse_metadata(text: str | None) -> Mapping[str, Any]:
    """Parse a commit's metadata; those of other writers carry any text, or none."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def metadata_json(connector: str, applied: Applied, more: Mapping[str, str]) -> str:
    """Return what a commit carries; the inverse of `newest_commit` for one commit."""
    own = {
        f"kafka.connect.offsets.{connector}": json.loads(applied.watermark.to_json()),
        "kafka.connect.sequence": applied.sequence,
        "kafka.connect.generation": applied.generation,
        "kafka.connect.task-epoch": applied.epoch,
    }
    if applied.watermark.snapshots:
        own[SNAPSHOTS_BEGUN + connector] = json.loads(applied.watermark.snapshots_json())
    return json.dumps(own | dict(more), separators=(",", ":"))


def newest_commit(history: Iterable[Commit], properties: Mapping[str, str], connector: str) -> tuple[Applied, bool]:
    """Return the watermark that counts: the newest commit's that was not rolled back or replaced, else the table property's.

    Args:
        history: newest first.

    Returns:
        What the table says, and whether it came from a commit (else a longer history might say more).

    Raises:
        FatalTaskError: what is stored cannot be read.
    """
    key = f"kafka.connect.offsets.{connector}"
    sequence = int(properties.get(f"kafka.connect.sequence.{connector}", 0))
    visible: int | datetime.datetime | None = None
    replaced = False
    for commit in history:
        mine = key in commit.metadata
        if mine:
            sequence = max(sequence, _number(commit, "kafka.connect.sequence"))
        if _is_hidden(commit, visible):
            continue
        if commit.restored is not None:
            visible = commit.restored
        elif commit.replaces:
            replaced = True
        elif mine:
            begun = json.dumps(commit.metadata.get(SNAPSHOTS_BEGUN + connector, {}))
            watermark = Watermark() if replaced else Watermark.parse(json.dumps(commit.metadata[key]), begun)
            generation, epoch = _number(commit, "kafka.connect.generation"), _number(commit, "kafka.connect.task-epoch")
            return Applied(watermark, sequence, generation, epoch, commit.time), True
    generation = int(properties.get(f"kafka.connect.generation.{connector}", 0))
    return Applied(Watermark.parse(properties.get(key), properties.get(SNAPSHOTS_BEGUN + connector)), sequence, generation), False


def _is_hidden(commit: Commit, visible: int | datetime.datetime | None) -> bool:
    if visible is None:
        return False
    return commit.version > visible if isinstance(visible, int) else commit.time > visible


def _number(commit: Commit, key: str) -> int:
    value = commit.metadata.get(key, 0)
    if not isinstance(value, int):
        raise FatalTaskError(f"A table's commit {commit.version} has {key} {value!r}, which is not a number; somebody else wrote it.")
    return value
