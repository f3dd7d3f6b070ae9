"""Pass signals of clients to the tasks of a connector, and keep the notifications that tasks have sent.

`Notifications` holds the last notifications of each connector in memory, for clients of this worker. The herder's thread adds, threads of
the REST server read.
"""

from __future__ import annotations

import collections
import itertools
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any

from connect_py.api.storage import TargetState
from connect_py.errors import BadRequestError, RestError, RetriableError

#: A task takes a signal between two polls, which take half a second when nothing happens. One that reads a large chunk, or waits for
#: Kafka, takes longer.
ANSWER_SECONDS = 30.0


def require_started(name: str, target: TargetState) -> None:
    """Raises RestError 409: the connector is paused or stopped."""
    if target is not TargetState.STARTED:
        raise RestError(
            f"Connector {name} is {target.value.lower()} and takes no signals. Nothing was done. "
            f"Resume it (PUT /connectors/{name}/resume), then send the signal again.",
            409,
        )


def await_answers(name: str, answers: Sequence[Future[str | None]], states: Mapping[int, str]) -> None:
    """Wait for what the tasks say.

    Args:
        states: of the connector's tasks, to say what is the matter when none runs.

    Raises:
        BadRequestError: a task refuses.
        RestError: 503, no task has taken it, or not all in time.
    """
    if not answers:
        shown = ", ".join(f"task {number} is {state}" for number, state in sorted(states.items())) or "it has no tasks yet"
        raise RestError(
            f"No task of connector {name} runs on this worker just now ({shown}). The signal was not taken; send it again.", 503
        )
    deadline = time.monotonic() + ANSWER_SECONDS
    for answer in answers:
        try:
            problem = answer.result(max(0.0, deadline - time.monotonic()))
        except FutureTimeoutError:
            raise RestError(
                f"A task of connector {name} did not take the signal within {ANSWER_SECONDS:.0f} s; it is busy, and may still take it. "
                "Look at its notifications before you send it again.",
                503,
            ) from None
        except RetriableError as error:
            raise RestError(f"The signal was not taken; send it again. {error}", 503) from None
        if problem is not None:
            raise BadRequestError(problem)


#: Of each connector. A snapshot in chunks of 1024 rows shows its last million rows by them.
KEPT = 1000


class Notifications:
    """Keeps the last notifications of each connector.

    They are numbered. Numbers grow over a worker's restarts too, since they begin at the time of its start in microseconds, so that a
    client that asks for what follows a number never waits for a number that comes again.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count(time.time_ns() // 1000)
        self._kept: dict[str, collections.deque[dict[str, Any]]] = {}

    def add(self, connector: str, task: int, notification: Mapping[str, Any]) -> None:
        """Keep one, in place of the oldest."""
        with self._lock:
            kept = self._kept.setdefault(connector, collections.deque(maxlen=KEPT))
            kept.append({"sequence": next(self._numbers), "task": task, **notification})

    def of(self, connector: str, since: int | None, limit: int) -> list[dict[str, Any]]:
        """Return those of a connector, oldest first: the first `limit` after a number, or the last ones."""
        with self._lock:
            kept = list(self._kept.get(connector, ()))
        if since is None:
            return kept[-limit:] if limit else []
        return [each for each in kept if each["sequence"] > since][:limit]

    def forget(self, connector: str) -> None:
        """A connector is deleted."""
        with self._lock:
            self._kept.pop(connector, None)
