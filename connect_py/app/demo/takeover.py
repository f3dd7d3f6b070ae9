"""What the demo needs to kill a worker of a group and to count what came of it: who runs what, rows that are written meanwhile, and which
of them arrived."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from connect_py.app.demo.databases import Session

#: Between two rows, in seconds: some hundred rows in the time that a takeover takes.
PAUSE_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Place:
    """A connector (task None) or one of its tasks, in which state, and on which worker, as host:port."""

    connector: str
    task: int | None
    state: str
    worker: str


def places(answer: Mapping[str, Any]) -> list[Place]:
    """Return who runs what, of the answer to ``GET /connectors?expand=status``."""
    found = []
    for name, shown in sorted(answer.items()):
        status = shown["status"]
        found.append(Place(name, None, status["connector"]["state"], status["connector"]["worker_id"]))
        found += [Place(name, task["id"], task["state"], task["worker_id"]) for task in status["tasks"]]
    return found


@dataclass(frozen=True, slots=True)
class Tally:
    """Which of the rows that were written never arrived, and how many records of them arrived more than once."""

    missing: list[int]
    repeated: int


def tally(written: Iterable[int], arrived: Iterable[int]) -> Tally:
    """Compare the keys of rows that were inserted with those of the records that created them."""
    counts = Counter(arrived)
    keys = list(written)
    return Tally([key for key in keys if key not in counts], sum(max(0, counts[key] - 1) for key in keys))


class Writer:
    """Changes customers, one after the other, on a thread of its own until it is left.

    Attributes:
        keys: of the rows that were inserted, in their order. Append-only, so that others may read while it grows.
        changes: how many were made, insertions included.
    """

    def __init__(self, connect: Callable[[], Session], pause: float = PAUSE_SECONDS, *, mixed: bool = False) -> None:
        """Prepare the thread.

        Args:
            connect: gives the connection that the thread closes.
            pause: between two changes, in seconds.
            mixed: every second change updates a row that was inserted, or deletes one; else all insert.
        """
        self.keys: list[int] = []
        self.changes = 0
        self._connect, self._pause, self._mixed = connect, pause, mixed
        self._ended = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="demo-writer")

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Stop writing; what was written is in `keys`. Raises what ended the thread before."""
        self._ended.set()
        self._thread.join()
        self.check()

    def check(self) -> None:
        """Raise what has ended the thread, if something has."""
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def _run(self) -> None:
        try:
            with closing(self._connect()) as session:
                while not self._ended.wait(self._pause):
                    self._change(session, self.changes + 1)
                    self.changes += 1
        except Exception as error:  # noqa: BLE001  # shown by `check`, on the thread that waits for the rows
            self._failure = error

    def _change(self, session: Session, number: int) -> None:
        """Insert; or, of mixed changes, update the row before where the number is 2, 6, 10 …, and delete it where it is 4, 8, 12 …."""
        if not self._mixed or number % 2:
            self.keys.append(session.insert(number))
        elif number % 4:
            session.update(self.keys[-1], number)
        else:
            session.delete(self.keys[-1])
