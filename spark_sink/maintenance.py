"""Maintains tables, one at a time: when a table's turn has come (`MaintenanceSchedule`), or when a client asks for it.

A turn has two parts. Compaction moves the table's state, so its commit stands between two batches; what it can write before that, it writes
next to the batches (`spark.lanes.Aside`), or between them over Spark Connect. Clean-up, which removes what no state needs any more, follows
there. Turns of the schedule take a fifth of the time at most, as their seconds count: where commits are more frequent, turns have more to
merge, which costs little more.

A client asks by the signal ``compact``. Its ``tables`` are names or Java regexes of whole names of tables that this sink has; without them
it means all. What is asked for comes first, whatever the schedule, its window and the lag say, and also where
`lakehouse.maintenance.enabled` is false. Notifications say what came of it: ``STARTED``, for each table ``TABLE_COMPLETED``,
``TABLE_SKIPPED`` or ``TABLE_FAILED``, and ``COMPLETED``; turns of the schedule have those of tables alone.
"""

from __future__ import annotations

import collections
import contextlib
import datetime
import functools
import logging
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from connect_py.data.java_regex import compile_java_regex
from connect_py.errors import ConfigError, FatalTaskError
from spark_sink.config.sink_config import SinkConfig
from spark_sink.errors import classify
from spark_sink.figures import SinkFigures
from spark_sink.routing import TableName
from spark_sink.spark.lanes import Aside, Work
from spark_sink.tables.base import Compaction, Extent, Tables, TableSetBack
from spark_sink.tables.upkeep import MaintenancePolicy, MaintenanceSchedule, Rest

_log = logging.getLogger("io.github.connectpy.spark.SparkLakehouseSinkTask")

COMPACT = "compact"
AGGREGATE_TYPE = "Table Maintenance"

#: Tables that a refusal names; a sink may have thousands.
_NAMED = 20


#: Seconds from a table's thorough clean-up to the next one, and from a task's start to the first. It lists all files of the table, to find
#: some that are days old.
_THOROUGH_EVERY, _FIRST_THOROUGH = 3600.0, 600.0

#: Of turns of the schedule.
_REST_FACTOR = 4


@dataclass(slots=True)
class _Request:
    """What a client has asked for. `left` is None until it begins: a task that is just starting does not know its tables yet."""

    id: str
    patterns: Sequence[str]
    done: Callable[[], None]
    left: list[TableName] | None = None


@dataclass(frozen=True)
class _Turn:
    """A table's turn that is under way.

    Attributes:
        asked: whether a client asks for it, who receives how many files there were and are. That takes two more queries.
        seconds: what the compaction took.
    """

    table: TableName
    id: str
    asked: bool
    before: Extent | None = None
    after: Extent | None = None
    began: float = 0.0
    seconds: float = 0.0


class Maintenance:
    """The maintenance of one task's tables; its thread uses it.

    Args:
        notify: shows a notification to clients.
        clock: seconds from some moment on.
    """

    def __init__(
        self,
        config: SinkConfig,
        connector: str,
        notify: Callable[[Mapping[str, Any]], None],
        figures: SinkFigures,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._turn: _Turn | None = None  # which has something under way aside: the compaction if there is one, else the clean-up
        self._compaction: Compaction | None = None
        self._cleaned: dict[TableName, float] = {}  # when thoroughly
        self._not_cleaned = clock() + _FIRST_THOROUGH - _THOROUGH_EVERY
        self._rest = Rest(_REST_FACTOR)
        self._config = config
        self._connector = connector
        self._notify = notify
        self._figures = figures
        self._schedule = MaintenanceSchedule(config)
        self._requests: collections.deque[_Request] = collections.deque()
        self._tables: dict[str, TableName] = {}
        self._knows_tables = False

    def reads(self, table: TableName) -> None:
        """Note a table of this sink."""
        self._tables.setdefault(str(table), table)

    def committed(self, table: TableName) -> None:
        """Count a commit of a table."""
        self.reads(table)
        self._schedule.committed(table)

    def has_looked(self) -> None:
        """Note that the task has found the tables of the topics that there are."""
        self._knows_tables = True

    def take_signal(self, signal: Mapping[str, Any], done: Callable[[], None]) -> None:
        """Take a signal ``compact``; `done` is called when each of its tables has had its turn. Raises ConfigError: it is refused."""
        if signal["type"] != COMPACT:
            raise ConfigError(f"There is no signal of the type '{signal['type']}' for this connector; it takes '{COMPACT}'.")
        if other := sorted(signal["data"].keys() - {"tables"}):
            raise ConfigError(f"The signal '{COMPACT}' has no {', '.join(other)}; it takes tables, a list of names.")
        patterns = signal["data"].get("tables")
        if patterns is not None and not (isinstance(patterns, list) and patterns and all(isinstance(each, str) for each in patterns)):
            raise ConfigError('tables must be a list of names of tables, such as ["inventory.customers"]. Leave it out to mean all tables.')
        request = _Request(signal["id"], patterns or [".*"], done)
        unknown = [each for each in request.patterns if not self._matching(each)]
        if self._knows_tables and unknown:
            shown = ", ".join(sorted(self._tables)[:_NAMED]) + (", …" if len(self._tables) > _NAMED else "")
            raise ConfigError(
                f"This sink has no table {', '.join(unknown)}; nothing was compacted. "
                f"Tables that it reads or has written since its start: {shown or 'none'}."
            )
        self._requests.append(request)

    def run(self, tables: Tables, aside: Aside) -> TableName | None:
        """Compact at most one table, and have it cleaned up; return the one that has changed. The group has the last batch's offsets.

        A failure is logged and reported, and costs nothing but the turn.

        Raises:
            FatalTaskError: the task must not write the table any more.
            TableSetBack: the table has been set back; what was asked for is done later.
        """
        changed = self._see(tables, aside)
        if self._turn is None and (turn := self._next()) is not None:
            changed = self._begin(turn, tables, aside) or changed
            changed = self._see(tables, aside) or changed
        return changed

    def _next(self) -> _Turn | None:
        """Return the turn that comes next: what is asked for, else the schedule's."""
        if not self._requests:
            may_begin = self._rest.is_over(self._clock())
            table = self._schedule.due(self._figures.lag, datetime.datetime.now(datetime.UTC)) if may_begin else None
            return None if table is None else _Turn(table, str(uuid.uuid4()), asked=False)
        if not self._knows_tables:
            return None
        request = self._requests[0]
        if request.left is None:
            request.left = sorted({table for pattern in request.patterns for table in self._matching(pattern)})
            self._tell(request.id, "STARTED", tables=",".join(map(str, request.left)))
        if request.left:
            return _Turn(request.left[0], request.id, asked=True)
        self._complete()
        return None

    def _begin(self, turn: _Turn, tables: Tables, aside: Aside) -> TableName | None:
        """Begin a turn. Returns its table if that was compacted."""
        table, turn = turn.table, replace(turn, began=self._clock())
        with self._between_batches(turn, tables):
            if tables.load(table) is None:
                self._tell(turn.id, "TABLE_SKIPPED", table=str(table), error="it does not exist yet")
                self._end(turn)
                return None
            begun = replace(turn, before=self._extent(tables, table) if turn.asked else None)
            compaction = tables.compact(table, MaintenancePolicy.of(self._config), thoroughly=turn.asked)
            if compaction is None:
                self._clean(begun, tables, aside)
                return table
            aside.begin(Work(f"compacting table {table}", compaction.write))
            self._turn, self._compaction = begun, compaction
        return None

    def _clean(self, turn: _Turn, tables: Tables, aside: Aside) -> None:
        """Let the clean-up of a table begin, which has been compacted."""
        table, policy, now = turn.table, MaintenancePolicy.of(self._config), self._clock()
        after = self._extent(tables, table) if turn.asked else None
        thoroughly = turn.asked or now - self._cleaned.get(table, self._not_cleaned) >= _THOROUGH_EVERY
        aside.begin(Work(f"cleaning up table {table}", functools.partial(tables.clean, table, policy, thoroughly=thoroughly)))
        if thoroughly:
            self._cleaned[table] = now
        self._turn = replace(turn, after=after, seconds=now - turn.began)

    @contextlib.contextmanager
    def _between_batches(self, turn: _Turn, tables: Tables) -> Iterator[None]:
        """Do a part of a turn for which batches wait; whatever fails in it ends the turn, unless it is the task's."""
        try:
            yield
        except (FatalTaskError, TableSetBack):
            raise
        except Exception as error:  # noqa: BLE001  # whatever it was, the table is as good as before
            tables.forget()
            self._failed(turn, error, "compacting")

    def _see(self, tables: Tables, aside: Aside) -> TableName | None:
        """Go on where something has ended aside. Returns a table that was compacted."""
        changed = None
        while (turn := self._turn) is not None and (ended := aside.ended()) is not None:
            compaction, self._turn, self._compaction = self._compaction, None, None
            if (error := ended[1]) is not None:
                if not isinstance(error, Exception):
                    raise error
                if compaction is None:
                    self._cleaned.pop(turn.table, None)
                self._failed(turn, error, "cleaning up" if compaction is None else "compacting")
            elif compaction is None:
                self._complete_turn(turn)
            else:
                with self._between_batches(turn, tables):
                    compaction.commit()
                    self._clean(turn, tables, aside)
                    changed = turn.table
        return changed

    def _complete_turn(self, turn: _Turn) -> None:
        seconds = self._rest_after(turn)
        self._figures.maintained(str(turn.table), seconds)
        _log.info("Compacted table %s in %.1f s and cleaned it up in %.1f s", turn.table, turn.seconds, seconds - turn.seconds)
        files = _files("before", turn.before) | _files("after", turn.after)
        self._tell(turn.id, "TABLE_COMPLETED", table=str(turn.table), seconds=f"{seconds:.1f}", **files)
        self._end(turn)

    def _rest_after(self, turn: _Turn) -> float:
        """Have the schedule rest after a turn of it, which has ended. Returns what the turn took, in seconds."""
        seconds = self._clock() - turn.began
        if not turn.asked:
            self._rest.took(seconds, self._clock())
        return seconds

    def _failed(self, turn: _Turn, error: Exception, what: str) -> None:
        self._rest_after(turn)
        problem = classify(error, f"{what} table {turn.table}")
        _log.warning("Maintenance of table %s failed and waits for its next turn: %s", turn.table, problem)
        self._tell(turn.id, "TABLE_FAILED", table=str(turn.table), error=str(problem))
        self._end(turn)

    def _end(self, turn: _Turn) -> None:
        """End a turn; the last one of a request ends that."""
        if not turn.asked:
            return
        request = self._requests[0]
        request.left = (request.left or [])[1:]
        if not request.left:
            self._complete()

    def _complete(self) -> None:
        request = self._requests.popleft()
        self._tell(request.id, "COMPLETED")
        request.done()

    def _matching(self, pattern: str) -> list[TableName]:
        """Return the tables that a name or a regex means. Raises ConfigError: it is neither."""
        if pattern in self._tables:
            return [self._tables[pattern]]
        compiled = compile_java_regex(pattern)
        return [table for name, table in self._tables.items() if compiled.fullmatch(name)]

    def _extent(self, tables: Tables, table: TableName) -> Extent | None:
        extent = tables.extent(table, self._config["maintenance.target-file-size-bytes"])
        if extent is not None:
            self._figures.found(str(table), extent)
        return extent

    def _tell(self, id_: str, type_: str, **more: str) -> None:
        data = {"connector_name": self._connector, **more}
        moment = time.time_ns() // 1_000_000
        self._notify({"id": id_, "aggregate_type": AGGREGATE_TYPE, "type": type_, "additional_data": data, "timestamp": moment})


def _files(moment: str, extent: Extent | None) -> dict[str, str]:
    return {} if extent is None else {f"files_{moment}": str(extent.data_files), f"bytes_{moment}": str(extent.size_bytes)}
