"""Thin out warnings that repeat: an outage of a night is twenty lines, not thousands.

An event of a kind is shown, the next ones are counted, and after 30 s, 1, 2, 5, 10 and then every 30 minutes one is shown again with the
number of those left out. When a kind that was being counted has not come for a while, one last line says so: an outage has an end in the
log, too. A kind is a logger and a text, numbers aside. Only WARN is looked at: an ERROR ends
something, or is a record that ``errors.log.enable`` wants to see, each.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

log = logging.getLogger(__name__)

#: Seconds between two shown events of a kind; the last one stays.
GAPS = (30.0, 60.0, 120.0, 300.0, 600.0, 1800.0)

#: A kind that has not come for this long, and for three times its usual interval, is over.
QUIET_SECONDS = 60.0

#: How often ends are looked for, while there are any to look for.
_LOOK_SECONDS = 5.0

#: More kinds than a process ever has; a text with a varying word must not grow the table for ever.
MAX_KINDS = 500

#: These count for themselves.
_EXEMPT = frozenset({"connect_py.kafka.librdkafka"})

#: Counts, durations, ids, and log sequence numbers such as 0/4195A70.
_NUMBER = re.compile(r"\b(?:[0-9A-F]+/[0-9A-F]+|\d+(?:\.\d+)?)\b")

_Key = tuple[str, int, str]


@dataclass(slots=True)
class Kind:
    """What is known of one kind of event; times are monotonic seconds."""

    first: float
    last: float
    shown: float
    times_shown: int = 1
    hidden: int = 0
    total: int = 1
    longest_interval: float = 0.0

    def take(self, now: float) -> int | None:
        """Count one more; return None when it is to be left out, else how many were since the last one that was shown."""
        self.longest_interval = max(self.longest_interval, now - self.last)
        self.last = now
        self.total += 1
        if now - self.shown < GAPS[min(self.times_shown, len(GAPS)) - 1]:
            self.hidden += 1
            return None
        hidden, self.hidden = self.hidden, 0
        self.shown = now
        self.times_shown += 1
        return hidden

    def is_over(self, now: float) -> bool:
        """Return whether it seems to have ended."""
        return now - self.last > max(QUIET_SECONDS, 3 * self.longest_interval)


class RepeatFilter(logging.Filter):
    """A handler's filter. Any thread may log; one lock. Its length is the number of kinds that it knows.

    Args:
        emit: writes the line that says that a kind has ended.
        clock: monotonic seconds.
        look_seconds: time between two looks for kinds that have ended, while there are any to look for; None leaves looking to the caller.
    """

    def __init__(
        self,
        emit: Callable[[logging.LogRecord], object],
        clock: Callable[[], float] = time.monotonic,
        look_seconds: float | None = _LOOK_SECONDS,
    ) -> None:
        super().__init__()
        self._emit = emit
        self._clock = clock
        self._look_seconds = look_seconds
        self._lock = threading.Lock()
        self._kinds: dict[_Key, Kind] = {}
        self._watcher: threading.Thread | None = None

    def __len__(self) -> int:
        return len(self._kinds)

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to show an event; may add to its text how many were left out."""
        if record.levelno != logging.WARNING or record.name in _EXEMPT:
            return True
        text = record.getMessage()
        key = record.name, record.levelno, _NUMBER.sub("#", text)[:300]
        now = self._clock()
        with self._lock:
            kind = self._kinds.get(key)
            if kind is None or kind.is_over(now):
                if len(self._kinds) >= MAX_KINDS:
                    self._kinds.clear()
                self._kinds[key] = Kind(now, now, now)
                return True
            hidden = kind.take(now)
            if self._watcher is None and self._look_seconds is not None:
                self._watcher = threading.Thread(target=self._watch, args=(self._look_seconds,), name="log-repeats", daemon=True)
                self._watcher.start()
        if hidden:
            record.msg, record.args = f"{text} [{hidden} more like this were left out]", ()
        return hidden is not None

    def look_for_ends(self) -> bool:
        """Say what is over; returns whether anything is left to look for."""
        now = self._clock()
        with self._lock:
            ended = [(key, kind) for key, kind in self._kinds.items() if kind.total > 1 and kind.is_over(now)]
            for key, _ in ended:
                del self._kinds[key]
            goes_on = any(kind.total > 1 for kind in self._kinds.values())
            if not goes_on:
                self._watcher = None
        for (name, _, text), kind in ended:
            message = f"No longer, after {kind.total} times in {_duration(kind.last - kind.first)}: {text}"
            record = logging.LogRecord(name, logging.INFO, __file__, 0, message, (), None)
            try:
                self._emit(record)
            except Exception:  # it must not end the thread that looks for ends
                log.exception("An end of repeated warnings could not be shown: %s", message)
        return goes_on

    def _watch(self, look_seconds: float) -> None:
        while True:
            time.sleep(look_seconds)
            if not self.look_for_ends():
                return


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
