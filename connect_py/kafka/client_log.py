"""Thin out librdkafka's own log lines.

While a broker is unavailable each of a worker's clients repeats the same line several times a second. The first line of its kind is
passed on, and then one after each of `GAPS` with the number of those left out, whichever client of this process they came from: a broker
that is unavailable is one event, not one for each client. When it answers again, one line says so; librdkafka itself says nothing then,
so the clients' statistics are looked at (`BrokerWatch`). What matters to a caller is raised or given to its callback, so these lines are
warnings at most.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import orjson

#: librdkafka suppresses repeats for 30 s too, but not when a duration in the text differs, and each client for itself.
REPEAT_SECONDS = 30.0

#: Seconds between two lines of a kind; the last one stays.
GAPS = (REPEAT_SECONDS, 60.0, 120.0, 300.0, 600.0, 1800.0)

#: More kinds than a process ever has; a text that holds a varying word must not grow the table for ever.
MAX_KINDS = 200

#: `[thrd:main]: GroupCoordinator: host:9092/1: Connect to … failed: Connection refused (after 0ms in state CONNECT)`
_ABOUT_A_BROKER = re.compile(r"(?:\w+: )?(?P<broker>\S+?:\d+)(?:/\w+)?: (?P<what>.*?)(?: \(after .*\))?", re.DOTALL)
#: librdkafka's guess about a broker that takes connections and does not answer; no broker of today is that old.
_GUESS = ": probably due to broker version < 0.10 (see api.version.request configuration)"
_THREAD = re.compile(r"\[thrd:[^]]*\]: ")
_NUMBER = re.compile(r"\d+")

log = logging.getLogger("connect_py.kafka.librdkafka")


class Repeats:
    """When each kind of line was passed on, and how many were left out since; shared by threads. Its length is the number of kinds.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._seen: dict[tuple[str, str], tuple[float, int, int]] = {}
        self._away: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._seen)

    def pass_on(self, kind: tuple[str, str]) -> int | None:
        """Return None when a line of this kind is to be left out, else how many have been since the last one."""
        now = self._clock()
        with self._lock:
            last, hidden, shown = self._seen.get(kind, (now - REPEAT_SECONDS, 0, 0))
            if shown and now - last < GAPS[min(shown, len(GAPS)) - 1]:
                self._seen[kind] = (last, hidden + 1, shown)
                return None
            if len(self._seen) >= MAX_KINDS:
                self._seen.clear()
            self._seen[kind] = (now, 0, shown + 1)
            return hidden

    @property
    def away(self) -> frozenset[str]:
        """Brokers (host:port) that cannot be reached."""
        with self._lock:
            return frozenset(self._away)

    def is_away(self, broker: str) -> None:
        """A line said that a broker (host:port) cannot be reached."""
        with self._lock:
            self._away.setdefault(broker, self._clock())

    def answers(self, broker: str) -> float | None:
        """A broker has been reached: for how many seconds it had been away, None when it had not. What it was said of it is forgotten."""
        if broker not in self._away:
            return None
        with self._lock:
            since = self._away.pop(broker, None)
            for kind in [kind for kind in self._seen if kind[1].startswith(f"Kafka broker {broker}: ")]:
                del self._seen[kind]
        return None if since is None else self._clock() - since


_PROCESS = Repeats()


class ClientLog:
    """Takes the place of a logger in confluent-kafka's `logger` argument; any thread may call it.

    Args:
        repeats: what the lines are counted with; by default with those of all other clients of the process.
    """

    def __init__(self, repeats: Repeats = _PROCESS) -> None:
        self._repeats = repeats

    def log(self, level: int, template: str, *values: object) -> None:
        """One line: librdkafka's facility, client name and text come as values."""
        facility, client, text = [str(value) for value in values] if len(values) == 3 else ("", "", template % values)
        text = _THREAD.sub("", text, count=1)
        level = min(level, logging.DEBUG if _is_ordinary(facility, level, text) else logging.WARNING)
        if not log.isEnabledFor(level):
            return
        about = _ABOUT_A_BROKER.fullmatch(text) if facility in ("FAIL", "REQTMOUT") else None
        if about is not None:
            # numbers of requests differ from client to client
            what = "requests are not answered in time" if facility == "REQTMOUT" else about["what"].removesuffix(_GUESS)
            line = f"Kafka broker {about['broker']}: {what}"
        else:
            line = f"Kafka client: {text} ({facility})"
        if about is not None and level >= logging.WARNING:
            self._repeats.is_away(about["broker"])
        hidden = self._repeats.pass_on((facility, _NUMBER.sub("", line) if about is None else line))
        if hidden is None:
            return
        more = f"; {hidden} more since the last such line" if hidden else ""
        log.log(level, "%s [%s%s]", line, client, more)


class BrokerWatch:
    """Says that a broker answers again, from the statistics of a client, or of several one after the other; any thread may call it.

    Args:
        repeats: where the lines about brokers were counted.
    """

    def __init__(self, repeats: Repeats = _PROCESS) -> None:
        self._repeats = repeats
        self._known: frozenset[str] | None = None

    @property
    def awaits_broker(self) -> bool:
        """Whether a broker cannot be reached of which the client may still report that it answers again.

        That is one of its last report, and any before the first: a broker that has left the cluster for good, or is another cluster's, is
        waited for by nobody.
        """
        away, known = self._repeats.away, self._known
        return bool(away if known is None else away & known)

    def client_closed(self) -> None:
        """Take the end of the client: what the next one knows is in its own reports."""
        self._known = None

    def take(self, report: str | Mapping[str, Any]) -> None:
        """Take a report of librdkafka's statistics."""
        about: Mapping[str, Any] = orjson.loads(report) if isinstance(report, str) else report
        brokers = [(broker["nodename"] or broker["name"].partition("/")[0], broker) for broker in about["brokers"].values()]
        self._known = frozenset(address for address, _ in brokers)
        for address, broker in brokers:
            if broker["state"] == "UP":
                seconds = self._repeats.answers(address)
                if seconds is not None:
                    log.info("Kafka broker %s: answers again after %.0f s [%s]", address, seconds, about["client_id"])


def _is_ordinary(facility: str, level: int, text: str) -> bool:
    """Connections that brokers close, at rest or for a restart, each request without an answer, since a line about all of them follows, and
    a broker that has just started: librdkafka continues by itself, and what does not pass shows as a refused connection or as the caller's
    error."""
    return (facility in ("FAIL", "REQTMOUT") and level <= logging.INFO) or (facility == "GETPID" and text.endswith("retrying"))
