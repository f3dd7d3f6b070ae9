"""Log sequence numbers: plain ints in arithmetic and offsets, `X/Y` in SQL and messages (postgres.md §10)."""

from __future__ import annotations


def format_lsn(lsn: int) -> str:
    """The server's text, two hexadecimal halves without padding."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def parse_lsn(text: str) -> int:
    """The number of `X/Y`. Raises ValueError."""
    high, low = text.split("/")
    return int(high, 16) << 32 | int(low, 16)
