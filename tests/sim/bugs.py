"""Planted bugs: the product with one rule broken. Each takes the place of one of the product's pieces; a simulation that does not find
them says nothing of the bugs that it does not find either (`tests/sim/test_sim.py`)."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from connect_py.api import EncodedBatch, SourceOffset, SourcePartition, SourceTask, SourceTaskContext
from connect_py.api.storage import ClusterConfig, OffsetWriter
from connect_py.errors import RetriableError
from connect_py.group.membership import Membership
from connect_py.group.protocol import Allocation
from connect_py.herder.applier import Applier
from connect_py.task.offsets import OffsetCommitter, Submission, SubmittedRecords
from connectors.engine.java_object import StoredKey, encode_key
from connectors.engine.services import Fields
from connectors.engine.signal.taps import Taps
from connectors.engine.snapshot.incremental.contract import Watermarks
from connectors.engine.snapshot.incremental.machine import IncrementalSnapshot
from connectors.engine.snapshot.incremental.offset import PREFIX
from tests.sim.cluster import ClusterPieces
from tests.sim.connector import Row
from tests.sim.source import Pieces
from tests.sim.topics import SimConfigStore


@dataclass(frozen=True, slots=True)
class Bug:
    """A planted bug.

    Attributes:
        rule: what is broken, in words.
        pieces: makes the pieces of a run.
        world: where it lives.
    """

    rule: str
    pieces: Callable[[], Any]
    world: str = "source"


# -- offsets -------------------------------------------------------------------------------------------------------------------------------


class _Hasty(SubmittedRecords):
    def committable(self) -> list[tuple[SourcePartition, SourceOffset]]:
        self.delivered()
        return super().committable()


class _Unsettled(OffsetCommitter):
    settles_first = False


class OffsetBeforeFlush(Pieces):
    submitted = _Hasty
    committer = _Unsettled


class _Forgiving(SubmittedRecords):
    """As a committer that looks at the last callback only."""

    def __init__(self) -> None:
        super().__init__()
        self._submissions: list[Submission] = []

    def submit(self, partition: SourcePartition, offset: SourceOffset) -> Submission:
        submission = super().submit(partition, offset)
        self._submissions.append(submission)
        return submission

    def delivered(self) -> None:
        for submission in self._submissions:
            submission.failed = False
        self._submissions.clear()
        super().delivered()


class OffsetPastRefused(Pieces):
    submitted = _Forgiving


Done = Callable[[Exception | None], None]
Offsets = Sequence[tuple[SourcePartition, SourceOffset]]


class _Writer:
    def __init__(self, inner: OffsetWriter) -> None:
        self.inner = inner

    def write(self, offsets: Offsets, done: Done) -> None:
        self.inner.write(offsets, done)

    def serve(self, timeout: float = 0.0) -> None:
        self.inner.serve(timeout)

    def release(self) -> None:
        self.inner.release()

    def close(self, timeout: float) -> None:
        self.inner.close(timeout)


class _EagerWriter(_Writer):
    def write(self, offsets: Offsets, done: Done) -> None:
        self.inner.write(offsets, lambda error: None)
        self._done = done

    def serve(self, timeout: float = 0.0) -> None:
        self.inner.serve(0.0)
        done, self._done = self._done, None
        if done is not None:
            done(None)

    _done: Done | None = None


class AcknowledgedEarly(Pieces):
    def writer(self, writer: OffsetWriter) -> OffsetWriter:
        return _EagerWriter(writer)


class _StubbornWriter(_Writer):
    """Writes again, by itself, what failed; something newer may have been written meanwhile."""

    def __init__(self, inner: OffsetWriter) -> None:
        super().__init__(inner)
        self._failed: deque[Offsets] = deque()

    def write(self, offsets: Offsets, done: Done) -> None:
        def answered(error: Exception | None) -> None:
            if error is not None:
                self._failed.append(offsets)
            done(error)

        self.inner.write(offsets, answered)
        while self._failed:
            self.inner.write(self._failed.popleft(), lambda error: None)


class OldOffsetRetried(Pieces):
    def writer(self, writer: OffsetWriter) -> OffsetWriter:
        return _StubbornWriter(writer)


class _Around(SourceTask):
    """A task around another one."""

    def __init__(self, inner: SourceTask) -> None:
        self.inner = inner

    def start(self, config: Mapping[str, str], context: SourceTaskContext) -> None:
        self.inner.start(config, context)

    def poll(self) -> Any:
        return self.inner.poll()

    def stop(self) -> None:
        self.inner.stop()

    def close(self) -> None:
        self.inner.close()

    def offsets_committed(self, offsets: Offsets) -> None:
        self.inner.offsets_committed(offsets)

    def take_signal(self, signal: Mapping[str, Any], done: Callable[[], None]) -> None:
        self.inner.take_signal(signal, done)


class _Splits(_Around):
    _rest: EncodedBatch | None = None

    def poll(self) -> Any:
        if self._rest is not None:
            rest, self._rest = self._rest, None
            return rest
        batch = self.inner.poll()
        if isinstance(batch, EncodedBatch) and len(batch.rows) > 1:
            half = len(batch.rows) // 2
            self._rest = EncodedBatch(batch.rows[half:], batch.source_partition, batch.source_offset)
            return EncodedBatch(batch.rows[:half], batch.source_partition, batch.source_offset)
        return batch


class EventOnBothSides(Pieces):
    def task(self, task: SourceTask) -> SourceTask:
        return _Splits(task)


class _PolledAcknowledged(_Around):
    def poll(self) -> Any:
        batch = self.inner.poll()
        if isinstance(batch, EncodedBatch):
            self.inner.offsets_committed([(batch.source_partition, batch.source_offset)])
        return batch


class PolledAcknowledged(Pieces):
    def task(self, task: SourceTask) -> SourceTask:
        return _PolledAcknowledged(task)


# -- windows -------------------------------------------------------------------------------------------------------------------------------


class _Duplicating(IncrementalSnapshot[Row]):
    def event(self, key: bytes | None) -> None:
        pass


class NoDedupe(Pieces):
    machine = _Duplicating


class _WrongKey(IncrementalSnapshot[Row]):
    def event(self, key: bytes | None) -> None:
        super().event(b'{"id":%s}' % (key or b""))


class DedupeByOtherKey(Pieces):
    machine = _WrongKey


class DeletesNotDeduped(Pieces):
    """A listener that sees a change of the key as one of the new key only, and no delete."""

    def tap(self, taps: Taps) -> Taps:
        def on_event(key: bytes | None, pass_on: Callable[[bytes | None], None] = taps.on_event) -> None:
            if key is not None and self.lives(key):
                pass_on(key)

        taps.on_event = on_event
        self._taps = taps
        return taps

    def lives(self, key: bytes) -> bool:
        """Return whether the row is there now."""
        watched = self._taps.watched
        return watched is None or int(key) in self.database.rows[str(watched)]


class _Marks(Watermarks):
    def __init__(self, inner: Watermarks) -> None:
        self.inner = inner
        self.open_at_once = inner.open_at_once

    def low(self, chunk: str) -> None:
        self.inner.low(chunk)

    def high(self, chunk: str) -> None:
        self.inner.high(chunk)

    def passed(self) -> str:
        return self.inner.passed()


class _LowLate(_Marks):
    def low(self, chunk: str) -> None:
        pass

    def high(self, chunk: str) -> None:
        self.inner.low(chunk)
        self.inner.high(chunk)


class LowAfterRead(Pieces):
    def watermarks(self, marks: Watermarks) -> Watermarks:
        return marks if marks.open_at_once else _LowLate(marks)


class _HighEarly(_Marks):
    def low(self, chunk: str) -> None:
        self.inner.low(chunk)
        self.inner.high(chunk)

    def high(self, chunk: str) -> None:
        pass


class HighBeforeRead(Pieces):
    def watermarks(self, marks: Watermarks) -> Watermarks:
        return _HighEarly(marks)


class _AnyMark(IncrementalSnapshot[Row]):
    """Watermarks of an earlier run of the task count too."""

    def window_closed(self, watermark: str) -> None:
        super().window_closed(self.chunk if self.chunk else watermark)


class OtherWindowsMark(Pieces):
    machine = _AnyMark


class _OldStructure(IncrementalSnapshot[Row]):
    def structure_seen(self, structure: object) -> None:
        pass


class StructureIgnored(Pieces):
    machine = _OldStructure


class ProgressInOpenWindow(Pieces):
    """The offset says that a chunk was sent as soon as it has been read."""

    last: StoredKey | None = None

    def chunk_read(self, last: StoredKey | None) -> None:
        self.last = last

    def fields(self, fields: Fields, incremental: IncrementalSnapshot[Row]) -> Fields:
        if incremental.chunk and self.last is not None and f"{PREFIX}primary_key" in fields:
            return {**fields, f"{PREFIX}primary_key": encode_key(self.last)}
        return fields


class _Forgetful(IncrementalSnapshot[Row]):
    """A failure in the middle of a batch does not take it back to the offset."""

    _is_started = False

    def restore(self, stored: Mapping[str, object]) -> None:
        if not self._is_started:
            super().restore(stored)
        self._is_started = True


class NotRestored(Pieces):
    machine = _Forgetful


# -- groups --------------------------------------------------------------------------------------------------------------------------------


class _KeepsLease(Membership):
    def lease_until(self) -> float:
        return 1e11


class LeaseKept(ClusterPieces):
    membership = _KeepsLease


class _HoldsNothing(Membership):
    def hold(self) -> None:
        pass

    def release(self) -> None:
        self.rejoin()


class NotHeld(ClusterPieces):
    membership = _HoldsNothing


class _DoesNotWait(Applier):
    def revoke(self, work: Allocation) -> threading.Event:
        super().revoke(work)
        done = threading.Event()
        done.set()
        return done


class RevocationNotAwaited(ClusterPieces):
    applier = _DoesNotWait


class _KeepsAll(Applier):
    def abandon(self) -> threading.Event:
        done = threading.Event()
        done.set()
        return done


class LostKept(ClusterPieces):
    applier = _KeepsAll


class _StubbornConfigs(SimConfigStore):
    """Writes again, by itself, the task configurations that could not be written."""

    _failed: tuple[str, Sequence[Mapping[str, str]]] | None = None

    def put_task_configs(self, connector: str, configs: Sequence[Mapping[str, str]]) -> None:
        try:
            super().put_task_configs(connector, configs)
        except RetriableError:
            self._failed = connector, configs
            raise
        failed, self._failed = self._failed, None
        if failed is not None:
            super().put_task_configs(*failed)


class _NeverLooksAgain(Applier):
    """What has been stored once is not looked at."""

    def _keep_published(self, name: str) -> None:
        pass


class OldConfigurationRetried(ClusterPieces):
    configs = _StubbornConfigs
    applier = _NeverLooksAgain


class _DeafToSets(Applier):
    """A new set of tasks stops none of the old ones."""

    def on_task_configs(self, connector: str) -> None:
        self.assignment.rejoin()


class OldTasksKept(ClusterPieces):
    applier = _DeafToSets


class _SeesNothingBehind(SimConfigStore):
    """What lies behind the last commit of a set of tasks is not looked at."""

    def snapshot(self) -> ClusterConfig:
        return replace(super().snapshot(), unfinished=frozenset())


class BehindCommitKept(ClusterPieces):
    configs = _SeesNothingBehind


BUGS: Mapping[str, Bug] = {
    "offset-before-flush": Bug("an offset is stored before Kafka holds the records before it", OffsetBeforeFlush),
    "offset-past-refused": Bug("an offset is stored although a record before it was refused", OffsetPastRefused),
    "acknowledge-early": Bug("the source is told before the offsets topic holds the offset", AcknowledgedEarly),
    "acknowledge-polled": Bug("the source is told what was polled", PolledAcknowledged),
    "old-offset-retried": Bug("a write that failed is repeated after a newer one", OldOffsetRetried),
    "event-on-both-sides": Bug("the first half of a source event carries the offset after it", EventOnBothSides),
    "no-dedupe": Bug("rows of a window are sent although the stream has shown them", NoDedupe),
    "dedupe-by-other-key": Bug("rows of a window are looked up by a key of another form", DedupeByOtherKey),
    "deletes-not-deduped": Bug("a delete does not drop the row of the window", DeletesNotDeduped),
    "low-after-read": Bug("the low watermark is written after the chunk was read", LowAfterRead),
    "high-before-read": Bug("the high watermark is written before the chunk is read", HighBeforeRead),
    "other-windows-mark": Bug("a high watermark of an earlier run closes the window", OtherWindowsMark),
    "structure-ignored": Bug("rows of the old structure follow those of the new one", StructureIgnored),
    "progress-in-open-window": Bug("the offset says that rows were sent that wait for their high watermark", ProgressInOpenWindow),
    "lease-kept": Bug("a worker that is cut off from its group lets its tasks run on", LeaseKept, "cluster"),
    "not-held": Bug("a worker joins a round before the tasks of an old set have ended", NotHeld, "cluster"),
    "revocation-not-awaited": Bug("work is given away before it has ended", RevocationNotAwaited, "cluster"),
    "lost-kept": Bug("a worker that has lost its lease goes on as if it had its work", LostKept, "cluster"),
    "old-configuration-retried": Bug(
        "task configurations that could not be stored are stored over newer ones, and nobody looks", OldConfigurationRetried, "cluster"
    ),
    "old-tasks-kept": Bug("a new set of tasks leaves the old ones running", OldTasksKept, "cluster"),
    "behind-commit-kept": Bug("tasks that compaction hides from later workers are not stored again", BehindCommitKept, "repeats"),
    "not-restored": Bug("after a lost connection the snapshot does not go back to the offset of the last batch", NotRestored),
}
