"""What one task knows of the tables that it writes, and what makes it give way or go back. Pure; the same for every format.

A task must not go on with a table that somebody younger of its connector has written (another task, or a change of its offsets by REST),
nor with one that has lost rows which the task takes for written: a table rolled back, dropped or replaced under a running task.
"""

from __future__ import annotations

from connect_py.errors import ConnectError, FatalTaskError
from spark_sink.routing import TableName
from spark_sink.tables.base import Behind, Conflict, Writer
from spark_sink.tables.watermark import Watermark


class Ledger:
    """One task's: who it is, and the watermark up to which it has seen each table."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self._reached: dict[TableName, Watermark] = {}

    def claim(self, epoch: int) -> None:
        """At a task's start: become younger than whoever wrote a table, also where the clock of this machine is behind."""
        if epoch >= self.writer.epoch:
            self.writer = Writer(self.writer.connector, self.writer.task, epoch + 1)

    def found(self, name: TableName, watermark: Watermark, epoch: int) -> None:
        """A table was read; `epoch` is of the task that wrote its watermark.

        Raises:
            FatalTaskError: that task is younger than this one.
            Behind: the table has lost what this task knew to be in it.
        """
        if epoch > self.writer.epoch:
            raise replaced(str(name), self.writer)
        known = self._reached.get(name)
        if known is not None:
            lost = {tp: watermark.offsets.get(tp, 0) for tp, offset in known.offsets.items() if watermark.offsets.get(tp, 0) < offset}
            if lost:
                del self._reached[name]
                raise Behind(name, lost)
        self._reached[name] = watermark

    def missing(self, name: TableName) -> None:
        """A table is not there. Raises Behind if it was."""
        self.found(name, Watermark(), 0)
        del self._reached[name]

    def reached(self, name: TableName, watermark: Watermark) -> None:
        """This task has committed."""
        self._reached[name] = watermark

    def changed_by(self, name: TableName, epoch: int) -> ConnectError:
        """The error for a table that changed between the reading of its watermark and the commit; `epoch` is of its newest writer."""
        if epoch > self.writer.epoch:
            return replaced(str(name), self.writer)
        return Conflict(f"Table {name} was changed by others while a batch was being written; nothing of it was written.")


def replaced(table: str, writer: Writer) -> FatalTaskError:
    """The error of a task that is no longer its connector's."""
    return FatalTaskError(
        f"Table {table} is written by a younger task of connector {writer.connector}, or its offsets were altered. This one has been "
        "replaced and ends; nothing of its batch was written."
    )
