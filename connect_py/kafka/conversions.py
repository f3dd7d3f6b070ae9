"""How values of the Java clients' properties become librdkafka's. Pure; a conversion raises ValueError for what is no number."""

from __future__ import annotations

from collections.abc import Callable

#: Java's Integer.MAX_VALUE, with which Connect asks for "no delivery timeout"; librdkafka says 0.
INT_MAX = 2**31 - 1

Convert = Callable[[str], object]


def number(value: str) -> int:
    """Return a number as it is."""
    return int(value.strip())


def at_least(low: int) -> Convert:
    """Return a number, or this bound of librdkafka's when it is smaller."""
    return lambda value: max(low, number(value))


def within(low: int, high: int) -> Convert:
    """Return a number within librdkafka's bounds."""
    return lambda value: min(high, max(low, number(value)))


def kilobytes(value: str) -> int:
    """Return bytes as whole kilobytes."""
    return max(1, number(value) // 1024)


def buffer(value: str) -> int:
    """Return a size of which -1 leaves the choice to the system: librdkafka's 0."""
    return max(0, number(value))


def timeout(value: str) -> int:
    """Milliseconds, of which the largest means none."""
    given = number(value)
    return 0 if given >= INT_MAX else max(1, given)


def boolean(value: str) -> bool:
    """true in any case, everything else is false."""
    return value.strip().lower() == "true"


def lower(value: str) -> str:
    """Return a word that librdkafka writes small."""
    return value.strip().lower()


def text(value: str) -> str:
    """Return a text without blanks around it."""
    return value.strip()


_ASSIGNORS = {
    "org.apache.kafka.clients.consumer.RangeAssignor": "range",
    "org.apache.kafka.clients.consumer.RoundRobinAssignor": "roundrobin",
    "org.apache.kafka.clients.consumer.CooperativeStickyAssignor": "cooperative-sticky",
}


def assignors(value: str) -> str:
    """Return Java's classes of partition assignors as librdkafka's names; others are left out."""
    names = [name.strip() for name in value.split(",") if name.strip()]
    found = [_ASSIGNORS[name] for name in names if name in _ASSIGNORS]
    # librdkafka refuses a list that mixes eager and cooperative ones, which Java allows for a rolling change
    if "cooperative-sticky" in found:
        return found[0] if found[0] != "cooperative-sticky" else "cooperative-sticky"
    return ",".join(found) or "range,roundrobin"


def offset_reset(value: str) -> str:
    """`none` is `error` there."""
    return lower(value).replace("none", "error")
