"""librdkafka's own log lines, quietly: while a broker is away each client repeats the same line several times a second.

The first line of its kind is passed on, and then one every `REPEAT_SECONDS` with the number of those left out. What matters to a caller is
raised or given to its callback, so these lines are warnings at most.
"""

from __future__ import annotations

import logging
import threading
import time

#: librdkafka suppresses repeats for 30 s too, but not when a duration in the text differs.
REPEAT_SECONDS = 30.0

log = logging.getLogger("connect_py.kafka.librdkafka")


class ClientLog:
    """Takes the place of a logger in confluent-kafka's `logger` argument; any thread may call it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: dict[str, tuple[float, int]] = {}

    def log(self, level: int, template: str, *values: object) -> None:
        """One line: librdkafka's facility, client name and text come as values."""
        kind = str(values[0]) if values else template
        now = time.monotonic()
        with self._lock:
            last, hidden = self._seen.get(kind, (now - REPEAT_SECONDS, 0))
            if now - last < REPEAT_SECONDS:
                self._seen[kind] = (last, hidden + 1)
                return
            self._seen[kind] = (now, 0)
        more = f" ({hidden} more of the kind since)" if hidden else ""
        log.log(min(level, logging.WARNING), template + "%s", *values, more)
