"""Lay out what commands print: tables, colours, ages, lines that fit a terminal. Pure, but for `has_colour`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TextIO

from connect_py.log.redact import readable

BOLD, DIM, RED, GREEN, YELLOW, CYAN = "1", "2", "31", "32", "33", "36"

#: State of a connector or task → its colour.
STATE_COLOURS = {"RUNNING": GREEN, "FAILED": RED, "PAUSED": YELLOW, "STOPPED": YELLOW, "UNASSIGNED": YELLOW, "RESTARTING": YELLOW}


def has_colour(stream: TextIO) -> bool:
    """Return whether a stream is a terminal that shows colours, and nobody asked for none (``NO_COLOR``)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def coloured(text: str, code: str, wanted: bool) -> str:
    """Return the text in a colour, or as it is."""
    return f"\033[{code}m{text}\033[0m" if wanted and text and code else text


def table_lines(columns: Sequence[str], rows: Iterable[Sequence[object]], *, colour: bool = False) -> list[str]:
    """Return rows below their columns' names; None is an empty cell. A cell that is a state has its colour."""
    cells = [[*columns], *([readable("" if value is None else str(value)).replace("\n", " ") for value in row] for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(columns))]
    lines = []
    for number, line in enumerate(cells):
        padded = [value.ljust(width) for value, width in zip(line, widths, strict=True)]
        padded[-1] = padded[-1].rstrip()
        if colour:
            padded = [coloured(each, STATE_COLOURS.get(each.strip(), "") if number else DIM, True) for each in padded]
        lines.append("  ".join(padded).rstrip())
    return lines


def shortened(text: str, width: int) -> str:
    """Return a text in one line of at most `width` characters; 0 for any length."""
    line = readable(" ".join(text.split()))
    return line if not width or len(line) <= width else line[: max(0, width - 1)] + "…"


def first_line(trace: str) -> str:
    """Return a trace's first line: in Connect's form the class and message of the error."""
    return trace.strip().partition("\n")[0].strip()
