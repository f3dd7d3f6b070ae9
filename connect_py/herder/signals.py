"""Signals of clients to the tasks of a source: who can take one, and what the tasks say."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError

from connect_py.api.storage import TargetState
from connect_py.errors import BadRequestError, RestError, RetriableError

#: A task takes a signal between two polls, which take half a second when nothing happens. One that reads a large chunk, or waits for
#: Kafka, takes longer.
ANSWER_SECONDS = 30.0


def require_source(name: str, kind: str, target: TargetState) -> None:
    """Raises BadRequestError, RestError 409."""
    if kind != "source":
        raise BadRequestError(f"Connector {name} is no source; only sources take signals.")
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
