"""What the readers of a source's facts share (`connect_py.api.facts`, `connect_py.api.doctor`): limits, the figures that every kind of log
has, and the check of the clocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from connect_py.api import SourceOffset, SourcePartition
from connect_py.api.doctor import Finding, Person

#: How long a login and a statement may take. Both answer within milliseconds; a server that needs longer is in trouble, and asking again
#: is better than a session that waits.
LIMIT_SECONDS = 5.0


def stored_offset(offsets: Sequence[tuple[SourcePartition, SourceOffset]], key: str, name: str) -> SourceOffset | None:
    """Return the offset of the partition that has this value under this key; None where there is none."""
    return next((offset for partition, offset in offsets if partition.get(key) == name), None)


def bytes_between(segments: Mapping[int, int], segment: int, position: int) -> int | None:
    """Return a position of a log of several files on one scale; None when the server no longer has the file.

    Args:
        segments: where each file begins on that scale, by its number.
    """
    start = segments.get(segment)
    return None if start is None else start + position


#: Machines that ask a time server differ by milliseconds.
MOST_SKEW_SECONDS = 2.0


def clock_findings(before: float, server: float, after: float) -> Iterator[Finding]:
    """Check that the clocks of the server and of this machine agree.

    Args:
        before, after: this machine's time around the question, `server` the answer; seconds since 1970.
    """
    skew = max(before - server, server - after)
    if skew > MOST_SKEW_SECONDS:
        yield Finding(
            "clock",
            f"The clock of the server is {skew:.0f} s {'behind' if server < before else 'ahead of'} the clock of this machine.",
            "Delays between source.ts_ms and ts_ms are wrong, and so is what metrics and alerts say of them.",
            Person.YOU,
            advice="Let both machines ask a time server (NTP).",
            severity="risk",
        )
