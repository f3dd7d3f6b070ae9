"""Decide which failed tasks the worker restarts and when, and describe that. Pure.

Connect never restarts a task that reported a failure, and neither does this worker unless it is asked to: by
``task.restart.policy=on-failure``, in the worker's properties for all connectors or in a connector's configuration for that one. A task
then stays FAILED, with its trace, for a delay that doubles from one failure to the next; after ``task.restart.max.attempts`` restarts in a
row it stays so for good. A task that ran for longer than the longest delay starts over.
"""

from __future__ import annotations

import datetime
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from connect_py.api.config import ConfigDef, ConfigKey, ConfigType, Importance, between, one_of

NEVER, ON_FAILURE = "none", "on-failure"

#: How many failures a status shows.
_REMEMBERED = 10

_POLICY, _ATTEMPTS = "task.restart.policy", "task.restart.max.attempts"
_DELAY, _LONGEST = "task.restart.delay.ms", "task.restart.delay.max.ms"

DEFINITION = ConfigDef(
    [
        ConfigKey(
            _POLICY,
            ConfigType.STRING,
            NEVER,
            Importance.LOW,
            "Whether a task that reported a failure is started again by itself.",
            validator=one_of(NEVER, ON_FAILURE),
        ),
        ConfigKey(
            _DELAY, ConfigType.LONG, "1000", Importance.LOW, "The time before the first restart; doubled each time.", validator=between(1)
        ),
        ConfigKey(_LONGEST, ConfigType.LONG, "60000", Importance.LOW, "The longest time before a restart.", validator=between(1)),
        ConfigKey(
            _ATTEMPTS,
            ConfigType.INT,
            "10",
            Importance.LOW,
            "How many restarts in a row are tried; -1 for no end.",
            validator=between(-1),
        ),
    ]
)


@dataclass(frozen=True)
class RestartPolicy:
    """What a connector's tasks may expect.

    Attributes:
        max_restarts: restarts in a row; -1 for no end, 0 for none at all.
    """

    max_restarts: int = 0
    first_seconds: float = 1.0
    longest_seconds: float = 60.0

    @classmethod
    def of(cls, worker: Mapping[str, str], config: Mapping[str, str]) -> RestartPolicy:
        """Return a connector's policy; what it leaves open is the worker's. Raises ConfigError."""
        given = {name: value for name in DEFINITION.keys if (value := config.get(name) or worker.get(name))}
        values = DEFINITION.parse(given)
        if values[_POLICY] == NEVER:
            return cls()
        return cls(values[_ATTEMPTS], values[_DELAY] / 1000, values[_LONGEST] / 1000)

    @property
    def is_on(self) -> bool:
        """Whether any restart is allowed."""
        return self.max_restarts != 0


@dataclass
class Restarts:
    """The failures of one task under its present configuration. The owner of the task's process owns it.

    Attributes:
        attempts: restarts since the task last ran for long enough.
    """

    policy: RestartPolicy
    attempts: int = 0
    _next: datetime.datetime | None = None
    _history: deque[dict[str, str]] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))

    def failed(self, what: str, ran_seconds: float, now: datetime.datetime) -> float | None:
        """Note a failure.

        Args:
            what: the failure in one line.
            ran_seconds: how long the task ran before it.

        Returns:
            Seconds until the restart, None when there must be none.
        """
        if ran_seconds > self.policy.longest_seconds:
            self.attempts = 0
        self._history.append({"at": _text(now), "failure": what})
        self._next = None
        if not self.policy.is_on or 0 <= self.policy.max_restarts <= self.attempts:
            return None
        # two to the thirtieth times any delay is longer than any longest delay, and a float still
        delay = min(self.policy.longest_seconds, self.policy.first_seconds * 2.0 ** min(self.attempts, 30))
        self.attempts += 1
        self._next = now + datetime.timedelta(seconds=delay)
        return delay

    def begun(self) -> None:
        """The restart that was waited for is under way."""
        self._next = None

    def report(self) -> dict[str, Any] | None:
        """Return what a task's status shows of it; None without a policy, so that the status is Connect's own."""
        if not self.policy.is_on:
            return None
        return {
            "policy": ON_FAILURE,
            "attempts": self.attempts,
            "max_attempts": self.policy.max_restarts,
            "next_at": None if self._next is None else _text(self._next),
            "history": list(self._history),
        }


def _text(moment: datetime.datetime) -> str:
    return moment.astimezone(datetime.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
