"""What the demo needs to kill a worker of a group and to count what came of it: who runs what, rows that are written meanwhile, and which
of them arrived."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from connect_py.app.services.postgres import PostgresServer

#: Between two rows, in seconds: some hundred rows in the time that a takeover takes.
PAUSE_SECONDS = 0.05

_INSERT = "INSERT INTO inventory.customers (first_name, last_name, email) VALUES ('Guest', %s, %s) RETURNING id"


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
    """Inserts customers, one after the other, on a thread of its own until it is left.

    Attributes:
        keys: of the rows that are committed, in their order. Append-only, so that others may read while it grows.
    """

    def __init__(self, postgres: PostgresServer, database: str) -> None:
        self.keys: list[int] = []
        self._postgres, self._database = postgres, database
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
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def _run(self) -> None:
        try:
            with self._postgres.connect(self._database) as connection:
                while not self._ended.wait(PAUSE_SECONDS):
                    number = len(self.keys) + 1
                    for (key,) in connection.execute(_INSERT, (f"No. {number}", f"guest-{number}@example.com")):
                        self.keys += [key] if isinstance(key, int) else []
        except Exception as error:  # noqa: BLE001  # shown by `end`, on the thread that waits for the rows
            self._failure = error
