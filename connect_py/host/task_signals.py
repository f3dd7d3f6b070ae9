"""Signals on their way to task processes: what was asked, what was answered, and what a task that is started again must be given again."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from typing import Any

from connect_py.errors import RetriableError

log = logging.getLogger(__name__)

TaskId = tuple[str, int]

#: What a task's process is sent: ``{"type": "signal", "id": …, "signal": …}``.
Message = Mapping[str, Any]


class TaskSignals:
    """Owned by the herder's thread, as `TaskHost` is."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._open: dict[TaskId, dict[int, Mapping[str, Any]]] = {}
        self._asked: dict[TaskId, dict[int, Future[str | None]]] = {}

    def ask(self, task_id: TaskId, signal: Mapping[str, Any]) -> tuple[Message, Future[str | None]]:
        """A signal for a task that runs.

        Returns:
            The message, and what the task will say of it: None when it has taken it, or why it has not. It raises RetriableError when the
            process ends before.
        """
        number = next(self._numbers)
        answer = self._asked.setdefault(task_id, {})[number] = Future()
        self._open.setdefault(task_id, {})[number] = signal
        return _message(number, signal), answer

    def again(self, task_id: TaskId) -> Iterable[Message]:
        """What a process that was just started is given: signals that are not done."""
        return [_message(number, signal) for number, signal in self._open.get(task_id, {}).items()]

    def answered(self, task_id: TaskId, number: int, problem: str | None) -> None:
        """A task says whether it has taken a signal."""
        answer = self._asked.get(task_id, {}).pop(number, None)
        if answer is not None:
            answer.set_result(problem)
        if problem is not None:
            self.done(task_id, number)
            if answer is None:
                log.warning("Task %s-%d was started again and refuses a signal that it had taken: %s", *task_id, problem)

    def done(self, task_id: TaskId, number: int) -> None:
        """A signal needs not be given again."""
        self._open.get(task_id, {}).pop(number, None)

    def ended(self, task_id: TaskId) -> None:
        """A task's process has ended: what it had not taken is the asker's to ask again."""
        for number, answer in self._asked.pop(task_id, {}).items():
            self.done(task_id, number)
            answer.set_exception(RetriableError(f"Task {task_id[0]}-{task_id[1]} ended before it had taken it."))

    def gone(self, task_id: TaskId) -> None:
        """A task will not be started again."""
        if self._open.pop(task_id, None):
            log.warning("Task %s-%d is gone, and with it signals that were not carried out", *task_id)


def _message(number: int, signal: Mapping[str, Any]) -> Message:
    return {"type": "signal", "id": number, "signal": signal}
