"""One source task, run over an in-memory database and Kafka, killed and started again: the loop of the task's process, the committer of its
offsets, and the engine of the connectors, with signals and incremental snapshots.

The product's code runs in the caller's thread. Each of its calls to the outside is a `SourceWorld.step`, at which the world does some
things first: the broker takes records or answers, somebody changes rows, sends a signal or a request, time passes, the process is killed.
After a number of these steps the world becomes quiet, and the task has to come to rest with everything in Kafka.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from connect_py.api import JsonEncoding, SourceTask
from connect_py.api.storage import OffsetWriter
from connect_py.errors import ConnectError
from connect_py.host.tasks import TaskSignals
from connect_py.plugins.registry import Plugins
from connect_py.task.chain import Chain
from connect_py.task.control import SourceContext, TaskControl
from connect_py.task.failed_records import SendErrorHandler, SourceErrorReporter, Tolerance
from connect_py.task.offsets import OffsetCommitter, SubmittedRecords
from connect_py.task.source import SourceTaskLoop
from connectors.engine.batches import Tuning
from connectors.engine.java_object import StoredKey
from connectors.engine.services import Fields
from connectors.engine.signal.taps import Taps
from connectors.engine.snapshot.incremental.contract import SnapshotHooks, Watermarks
from connectors.engine.snapshot.incremental.machine import IncrementalSnapshot
from tests.sim.chance import Chance, Crash, SimClock, Violation, Weighted
from tests.sim.connector import CONFIG, Row, Session, SimTask
from tests.sim.database import TABLES, Database, SignalRow
from tests.sim.kafka import OffsetTopic, SimOffsetWriter, SimProducer, delivery_error
from tests.sim.ledger import Ledger

CONNECTOR = "sim"
_TASK = (CONNECTOR, 0)
KEYS = 8
#: Steps of the world until it is quiet, and how many more the task may take until it rests.
STEPS, QUIET_STEPS = 300, 6000
#: Snapshots that a run asks for: what is asked for late has few steps to be disturbed in.
SNAPSHOTS = 4
#: How long a task may take to rest in a quiet world: retries, commits, and a log that is read one entry at a time.
QUIET_SECONDS = 900.0

_JSON = "org.apache.kafka.connect.json.JsonConverter"
_TEXT = "org.apache.kafka.connect.storage.StringConverter"
#: How rows would have to look; ours are texts.
_ENCODING = JsonEncoding(key_schemas=False, value_schemas=False)
_WORKER = {"key.converter": _JSON, "value.converter": _JSON, "header.converter": _TEXT}
_PLUGINS = Plugins({_JSON: "connect_py.converters.json_converter:JsonConverter", _TEXT: "connect_py.converters.primitive:StringConverter"})


class Pieces:
    """What a run takes of the product. A planted bug (`tests.sim.bugs`) gives another piece in one place."""

    machine: type[IncrementalSnapshot[Row]] = IncrementalSnapshot
    submitted: Callable[[], SubmittedRecords] = SubmittedRecords
    committer: type[OffsetCommitter] = OffsetCommitter

    database: Database

    def chunk_read(self, last: StoredKey | None) -> None:
        """Note the last key of a chunk that was read."""

    def watermarks(self, marks: Watermarks) -> Watermarks:
        """Return what marks the log."""
        return marks

    def tap(self, taps: Taps) -> Taps:
        """Return what listens to the stream."""
        return taps

    def fields(self, fields: Fields, incremental: IncrementalSnapshot[Row]) -> Fields:
        """Return what is put into an offset."""
        return fields

    def task(self, task: SourceTask) -> SourceTask:
        """Return the task that the loop runs."""
        return task

    def writer(self, writer: OffsetWriter) -> OffsetWriter:
        """Return what writes offsets."""
        return writer


class _Hooks(SnapshotHooks):
    def __init__(self, step: Callable[[], None]) -> None:
        self._step = step

    def reached(self, phase: str) -> None:
        self._step()


class SourceWorld:
    """A run.

    Args:
        chance: decides everything.
        pieces: what of the product is run.
    """

    def __init__(self, chance: Chance, pieces: Pieces) -> None:
        self.chance = chance
        self.pieces = pieces
        self.clock = SimClock(self.step)
        self.database = pieces.database = Database()
        self.ledger = Ledger(self.database)
        self.offsets = OffsetTopic(self.ledger.store)
        self.steps = 0
        self.is_quiet = False
        self.process = 0
        self._alive = False
        self._depth = 0
        self._silent_until = {"broker": 0.0, "database": 0.0}
        self._signals = self._snapshots = 0
        self._rest_signals = TaskSignals()
        self._completed: set[str] = set()
        self._stopped: set[str] = set()
        self._quiet_since = 0.0
        self._rest = ""
        self._failures = 0
        self._prepare()

    # -- what a seed decides beforehand

    def _prepare(self) -> None:
        chance, database = self.chance, self.database
        for table in TABLES:
            for key in range(chance.below(KEYS + 1)):
                database.put(table, key)
        self.ledger.begin(database.end)
        strategy = chance.pick(("insert_insert", "insert_delete", "positions"))
        self.config = {
            **CONFIG,
            "incremental.snapshot.chunk.size": str(1 + chance.below(4)),
            "incremental.snapshot.watermarking.strategy": "insert_delete" if strategy == "insert_delete" else "insert_insert",
            "read.only": "true" if strategy == "positions" else "false",
        }
        self._limit = 1 + chance.below(12)
        self._interval = chance.pick((0.05, 1.0, 10.0))

        # each run has its own kinds of faults, so that some meet often; half of the runs are without the other half
        def often(weight: float) -> float:
            return weight * chance.pick((0.0, 0.5, 1.0, 3.0))

        self._stops_snapshots = chance.happens(0.4)
        self._actions = Weighted(
            [
                (self._broker_appends, 40),
                (self._broker_acknowledges, 40),
                (self._offsets_arrive, 14),
                (self._offsets_are_acknowledged, 14),
                (self._somebody_writes, 8 * chance.pick((0.3, 1.0, 2.0))),
                (self._time_passes, 8),
                (self._signal_arrives, 4 * chance.pick((0.5, 1.0, 2.0))),
                (self._killed, often(0.8)),
                (self._asked_to_stop, often(0.5)),
                (self._paused_or_resumed, often(1.2)),
                (self._record_refused, often(0.4)),
                (self._offsets_fail, often(1.5)),
                (self._broker_falls_silent, often(0.5)),
                (self._database_falls_silent, often(0.5)),
                (self._connection_breaks, often(1.2)),
                (self._statement_refused, often(0.5)),
                (self._structure_changes, often(1.5)),
                (self._log_purged, 1.5),
                (self._offsets_compacted, 1.0),
            ]
        )
        size = self.config["incremental.snapshot.chunk.size"]
        chance.note("rows to begin with: %s; %s; chunks of %s", str(database.rows), strategy, size)

    # -- the life of the task

    def run(self) -> None:
        """Run until the world is quiet and the task rests. Raises Violation."""
        while not self._rest:
            self._run_process()
        self.ledger.check_end(frozenset(self._completed - self._stopped))

    def _run_process(self) -> None:
        self.process += 1
        chance, clock = self.chance, self.clock
        clock.seconds += chance.pick((0.5, 2.0))
        chance.note("%.2f process %d starts", clock.seconds, self.process)
        self._control = control = TaskControl(clock=clock)
        self._producer = producer = SimProducer(self.ledger, self.process, chance, clock, self.step)
        self._writer = writer = SimOffsetWriter(self.offsets, CONNECTOR, chance, clock, self.step)
        self._session = session = Session(self.database, self.step)
        pieces = self.pieces
        self._task = sim_task = SimTask(
            session,
            pieces,
            base=self.ledger.base,
            limit=self._limit,
            confirm=self._confirm,
            hooks=_Hooks(self.step),
            tuning=Tuning(batch_rows=10),
            clock=clock,
        )
        task = pieces.task(sim_task)
        errors = SourceErrorReporter(CONNECTOR, 0, {})
        tolerance = Tolerance({}, control.wait, errors, now=clock.now)
        submitted = pieces.submitted()
        loop = SourceTaskLoop(
            task,
            Chain(_PLUGINS, _WORKER, {}, tolerance, errors),
            producer,
            submitted,
            pieces.committer(task, submitted, pieces.writer(writer), self._interval, clock=clock.now),
            control,
            self._report,
            SendErrorHandler(tolerance, errors),
            delivery_error=delivery_error,
            clock=clock.now,
        )
        context = SourceContext(CONNECTOR, 0, _ENCODING, self.offsets.read(CONNECTOR), self._report)
        for message in self._rest_signals.again(_TASK):
            control.ask(message)
        self._alive = True
        was_quiet = self.is_quiet
        try:
            loop.run(self.config, context)
            chance.note("%.2f process %d ends", clock.seconds, self.process)
        except Crash:
            chance.note("%.2f process %d was killed", clock.seconds, self.process)
        except ConnectError as error:
            self._failures += 1
            chance.note("%.2f process %d failed: %s", clock.seconds, self.process, error)
            if "log begins" in str(error):
                raise Violation(f"lost: {error}") from None
            if was_quiet:
                raise Violation(f"the task fails in a quiet world: {error}") from None
        finally:
            self._alive = False
            producer.vanish()
            writer.vanish()
            self._rest_signals.ended(_TASK)

    def _report(self, message: Mapping[str, Any]) -> None:
        if message["type"] == "answer":
            self._rest_signals.answered(_TASK, message["id"], message["problem"])
        if message["type"] == "signal_done":
            self._rest_signals.done(_TASK, message["id"])
        if message["type"] == "notification":
            found = message["notification"]
            kind, more = found["type"], found["additional_data"]
            self.chance.note("%.2f    %s %s", self.clock.seconds, kind, more)
            if kind == "TABLE_SCAN_COMPLETED" and more["status"] in ("SUCCEEDED", "EMPTY"):
                self._completed.add(more["scanned_collection"].removeprefix("sim."))

    def _confirm(self, position: int) -> None:
        self.ledger.confirm(position)
        self.database.confirmed = max(self.database.confirmed, position)

    # -- the world

    def step(self) -> None:
        """Let the world act, before the product's next call to the outside has its effect. Raises Crash."""
        if not self._alive:
            raise Crash
        self.clock.seconds += 0.002
        self.steps += 1
        if self.is_quiet:
            self._quiet_step()
        else:
            for _ in range(1 + self.chance.below(3)):
                self._actions.draw(self.chance)()
            if self.steps >= STEPS:
                self._become_quiet()
        if not self._alive:
            raise Crash

    def _become_quiet(self) -> None:
        self.is_quiet = True
        self._quiet_since = self.clock.seconds
        self._silent_until = dict.fromkeys(self._silent_until, 0.0)
        self._session.fails, self._session.refuses = "", False
        self._control.pause(False)
        self.chance.note("%.2f the world is quiet", self.clock.seconds)

    def _quiet_step(self) -> None:
        if self._producer:
            for _ in range(3):
                self._producer.append()
                self._producer.acknowledge()
        else:
            self.clock.seconds += 0.1
        self._writer.append()
        self._writer.acknowledge()
        if self._is_at_rest():
            self._rest = "at rest"
            self._control.stop(5.0)
        elif self.steps > STEPS + QUIET_STEPS or self.clock.seconds > self._quiet_since + QUIET_SECONDS:
            incremental = self._task.incremental
            raise Violation(
                f"stuck: position {self._task.position} of {self.database.end}, stored {self.ledger.stored}, "
                f"{len(self._producer)} records on their way, snapshot of {incremental.collections if incremental else None}, "
                f"window {incremental and incremental.chunk!r}"
            )

    def _is_at_rest(self) -> bool:
        incremental, position = self._task.incremental, self._task.position
        if incremental is None or position is None or position.position < self.database.end or self.ledger.stored < self.database.end:
            return False
        if incremental.is_running:
            if incremental.is_paused and not self._signals_are_due():
                self._send_signal("resume-snapshot", {}, by_table=True)
            return False
        return not self._task.has_unsent and dict(self.ledger.fields) == position.dump()

    def _signals_are_due(self) -> bool:
        return self.database.end > (self._task.position.position if self._task.position else 0)

    # -- what happens

    def _broker_appends(self) -> None:
        if self.clock.seconds >= self._silent_until["broker"]:
            self._producer.append()

    def _broker_acknowledges(self) -> None:
        if self.clock.seconds >= self._silent_until["broker"]:
            self._producer.acknowledge()

    def _offsets_arrive(self) -> None:
        if self.clock.seconds >= self._silent_until["broker"]:
            self._writer.append()

    def _offsets_are_acknowledged(self) -> None:
        if self.clock.seconds >= self._silent_until["broker"]:
            self._writer.acknowledge()

    def _somebody_writes(self) -> None:
        chance, database = self.chance, self.database
        for _ in range(1 + chance.below(3) if chance.happens(0.9) else 15):
            table, key = chance.pick(TABLES), chance.below(KEYS)
            kind = chance.below(10)
            if kind < 6:
                database.put(table, key)
            elif kind < 9:
                database.delete(table, key)
            else:
                database.rename(table, key, chance.below(KEYS))
        chance.note("%.2f   rows are changed, up to %d", self.clock.seconds, database.end)

    def _time_passes(self) -> None:
        self.clock.seconds += self.chance.random.random() * self.chance.pick((0.1, 3.0))

    def _signal_arrives(self) -> None:
        chance = self.chance
        kind = chance.below(10)
        by_table = chance.happens(0.7)
        if kind < 5 and self._snapshots < SNAPSHOTS:
            self._snapshots += 1
            tables = [chance.pick(TABLES)] if chance.happens(0.6) else list(TABLES)
            self._send_signal("execute-snapshot", {"data-collections": tables}, by_table=by_table)
        elif not self._stops_snapshots or kind < 5:
            return
        elif kind < 7:
            tables = [chance.pick(TABLES)] if chance.happens(0.6) else []
            self._stopped |= set(tables or TABLES)
            self._send_signal("stop-snapshot", {"data-collections": tables}, by_table=by_table)
        else:
            self._send_signal(chance.pick(("pause-snapshot", "resume-snapshot", "resume-snapshot")), {}, by_table=by_table)

    def _send_signal(self, kind: str, data: Mapping[str, Any], *, by_table: bool) -> None:
        self._signals += 1
        id_ = f"signal-{self._signals}"
        self.chance.note("%.2f   signal %s %s, %s", self.clock.seconds, kind, dict(data), "as a row" if by_table else "by REST")
        if by_table:
            self.database.signal(SignalRow("c", id_, kind, json.dumps(data)))
        else:
            signal = {"id": id_, "type": kind, "data": dict(data), "additional-data": {}}
            message, _ = self._rest_signals.ask(_TASK, signal)
            self._control.ask(message)

    def _structure_changes(self) -> None:
        table = self.chance.pick(TABLES)
        self.database.alter(table)
        self.chance.note("%.2f   %s has another structure, at %d", self.clock.seconds, table, self.database.end)

    def _log_purged(self) -> None:
        self.database.purge()

    def _offsets_compacted(self) -> None:
        self.offsets.compact()

    # -- faults

    def _killed(self) -> None:
        if self.chance.fault():
            self.chance.note("%.2f   SIGKILL", self.clock.seconds)
            self._alive = False

    def _asked_to_stop(self) -> None:
        if self.chance.fault():
            self.chance.note("%.2f   the worker asks the task to stop", self.clock.seconds)
            self._control.stop(self.chance.pick((0.2, 5.0)))

    def _paused_or_resumed(self) -> None:
        if self.chance.fault():
            self._control.pause(not self._control.is_paused)
            self.chance.note("%.2f   the task is %s", self.clock.seconds, "paused" if self._control.is_paused else "resumed")

    def _record_refused(self) -> None:
        if self.chance.fault():
            self.chance.note("%.2f   the broker refuses a record", self.clock.seconds)
            self._producer.refuse()

    def _offsets_fail(self) -> None:
        if self.chance.fault():
            self.chance.note("%.2f   a write of offsets fails", self.clock.seconds)
            self._writer.fail()

    def _broker_falls_silent(self) -> None:
        self._falls_silent("broker")

    def _database_falls_silent(self) -> None:
        self._falls_silent("database")

    def _falls_silent(self, who: str) -> None:
        if self.chance.fault():
            seconds = self.chance.pick((0.5, 5.0, 40.0))
            self.chance.note("%.2f   the %s falls silent for %g s", self.clock.seconds, who, seconds)
            self._silent_until[who] = self.clock.seconds + seconds

    def _connection_breaks(self) -> None:
        if self.chance.fault():
            self._session.fails = self.chance.pick(("before", "after"))
            self.chance.note("%.2f   the connection to the database breaks %s the next answer", self.clock.seconds, self._session.fails)

    def _statement_refused(self) -> None:
        if self.chance.fault() and self._task.incremental is not None and self._task.incremental.is_running:
            self.chance.note("%.2f   the database refuses the next statement", self.clock.seconds)
            self._session.refuses = True
