"""Maintains tables between two batches, one at a time: when a table's turn has come (`MaintenanceSchedule`), or when a client asks for it.

A client asks by the signal ``compact``. Its ``tables`` are names or Java regexes of whole names of tables that this sink has; without them
it means all. What is asked for comes first, whatever the schedule, its window and the lag say, and also where
`lakehouse.maintenance.enabled` is false. Notifications say what came of it: ``STARTED``, for each table ``TABLE_COMPLETED``,
``TABLE_SKIPPED`` or ``TABLE_FAILED``, and ``COMPLETED``; turns of the schedule have those of tables alone.
"""

from __future__ import annotations

import collections
import datetime
import logging
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from connect_py.data.java_regex import compile_java_regex
from connect_py.errors import ConfigError, FatalTaskError
from spark_sink.config.sink_config import SinkConfig
from spark_sink.errors import classify
from spark_sink.figures import SinkFigures
from spark_sink.routing import TableName
from spark_sink.tables.base import Extent, Tables, TableSetBack
from spark_sink.tables.upkeep import MaintenancePolicy, MaintenanceSchedule

_log = logging.getLogger("io.github.connectpy.spark.SparkLakehouseSinkTask")

COMPACT = "compact"
AGGREGATE_TYPE = "Table Maintenance"

#: Tables that a refusal names; a sink may have thousands.
_NAMED = 20


@dataclass(slots=True)
class _Request:
    """What a client has asked for. `left` is None until it begins: a task that is just starting does not know its tables yet."""

    id: str
    patterns: Sequence[str]
    done: Callable[[], None]
    left: list[TableName] | None = None


class Maintenance:
    """The maintenance of one task's tables; its thread uses it.

    Args:
        notify: shows a notification to clients.
    """

    def __init__(self, config: SinkConfig, connector: str, notify: Callable[[Mapping[str, Any]], None], figures: SinkFigures) -> None:
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

    def run(self, tables: Tables) -> TableName | None:
        """Maintain at most one table; returns the one that has changed. Offsets of the last batch are in the group by now.

        A failure is logged and reported, and costs nothing but the turn.

        Raises:
            FatalTaskError: the task must not write the table any more.
            TableSetBack: the table has been set back; what was asked for is done later.
        """
        if not self._requests:
            table = self._schedule.due(self._figures.lag, datetime.datetime.now(datetime.UTC))
            return table if table is not None and self._maintain(tables, table, None) else None
        if not self._knows_tables:
            return None
        request = self._requests[0]
        if request.left is None:
            request.left = sorted({table for pattern in request.patterns for table in self._matching(pattern)})
            self._tell(request.id, "STARTED", tables=",".join(map(str, request.left)))
        changed = None
        if request.left:
            changed = request.left[0] if self._maintain(tables, request.left[0], request.id) else None
            del request.left[0]
        if not request.left:
            self._requests.popleft()
            self._tell(request.id, "COMPLETED")
            request.done()
        return changed

    def _matching(self, pattern: str) -> list[TableName]:
        """Return the tables that a name or a regex means. Raises ConfigError: it is neither."""
        if pattern in self._tables:
            return [self._tables[pattern]]
        compiled = compile_java_regex(pattern)
        return [table for name, table in self._tables.items() if compiled.fullmatch(name)]

    def _maintain(self, tables: Tables, table: TableName, asked: str | None) -> bool:
        """Maintain a table and report it. Returns whether it was done.

        Args:
            asked: the signal's id. Who asks receives how many files there were and are, which takes two more queries.
        """
        began, id_ = time.monotonic(), asked or str(uuid.uuid4())
        try:
            if tables.load(table) is None:
                self._tell(id_, "TABLE_SKIPPED", table=str(table), error="it does not exist yet")
                return False
            before = self._extent(tables, table) if asked else None
            tables.maintain(table, MaintenancePolicy.of(self._config))
            after = self._extent(tables, table) if asked else None
        except (FatalTaskError, TableSetBack):
            raise
        except Exception as error:  # noqa: BLE001  # whatever it was, the table is as good as before
            tables.forget()
            problem = classify(error, "compacting")
            _log.warning("Maintenance of table %s failed and waits for its next turn: %s", table, problem)
            self._tell(id_, "TABLE_FAILED", table=str(table), error=str(problem))
            return False
        seconds = time.monotonic() - began
        self._figures.maintained(str(table), seconds)
        _log.info("Compacted and cleaned up table %s in %.1f s", table, seconds)
        self._tell(id_, "TABLE_COMPLETED", table=str(table), seconds=f"{seconds:.1f}", **_files("before", before), **_files("after", after))
        return True

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
