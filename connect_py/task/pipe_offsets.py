"""Source offsets that go through the worker: for the standalone worker, whose tasks share one file that only the worker may write."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from connect_py.api import SourceOffset, SourcePartition
from connect_py.errors import ConnectError
from connect_py.task.control import Report


class PipeOffsetWriter:
    """`OffsetWriter` that reports offsets to the worker and waits for its answer.

    `answer` is called by the thread that reads the worker's messages; the rest belongs to the task's thread.
    """

    def __init__(self, report: Report) -> None:
        self._report = report
        self._answers: list[tuple[int, str | None]] = []
        self._arrived = threading.Condition()
        self._waiting: dict[int, Callable[[Exception | None], None]] = {}
        self._next = 0

    def write(self, offsets: Sequence[tuple[SourcePartition, SourceOffset]], done: Callable[[Exception | None], None]) -> None:
        """Send offsets to the worker."""
        self._next += 1
        self._waiting[self._next] = done
        self._report({"type": "offsets", "id": self._next, "offsets": [[dict(p), dict(o)] for p, o in offsets]})

    def answer(self, number: int, error: str | None) -> None:
        """The worker stored the offsets of a message, or could not."""
        with self._arrived:
            self._answers.append((number, error))
            self._arrived.notify_all()

    def serve(self, timeout: float = 0.0) -> None:
        """Call back for what was answered."""
        with self._arrived:
            if timeout:
                self._arrived.wait_for(lambda: bool(self._answers), timeout)
            answers, self._answers = self._answers, []
        for number, error in answers:
            self._waiting.pop(number)(ConnectError(error) if error else None)

    def close(self, timeout: float) -> None:
        """Wait for open answers."""
        deadline = time.monotonic() + timeout
        while self._waiting and time.monotonic() < deadline:
            self.serve(min(0.1, timeout))
