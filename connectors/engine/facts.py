"""What the readers of a source's facts share (`connect_py.api.facts`): limits, and the figures that every kind of log has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from connect_py.api import SourceOffset, SourcePartition

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
