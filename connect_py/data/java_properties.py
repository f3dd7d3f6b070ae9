"""Java's properties format (`java.util.Properties.load`), which worker and connector files are written in. Pure."""

from __future__ import annotations

import re

from connect_py.errors import ConfigError

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_SPACE = " \t\f"


def parse_properties(text: str) -> dict[str, str]:
    """Return properties in the order of their first appearance; of a key given twice the last value counts.

    Comments start with ``#`` or ``!``; a line that ends in an odd number of backslashes continues in the next one; the key ends at the
    first unescaped ``=``, ``:`` or blank; ``\\uXXXX`` is one UTF-16 unit.

    Raises:
        ConfigError: a ``\\u`` escape is malformed; the text names the line, never its value.
    """
    found: dict[str, str] = {}
    for number, line in _logical_lines(text):
        raw_key, raw_value = _split(line)
        found[_unescape(raw_key, number)] = _unescape(raw_value, number)
    return found


def _logical_lines(text: str) -> list[tuple[int, str]]:
    """(number of its first line, logical line) of everything that is neither blank nor a comment."""
    lines: list[tuple[int, str]] = []
    pending: str | None = None
    start = 0
    for number, natural in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        line = natural.lstrip(_SPACE)
        if pending is None:
            if not line or line[0] in "#!":
                continue
            pending, start = "", number
        trailing = len(line) - len(line.rstrip("\\"))
        if trailing % 2:
            pending += line[:-1]
            continue
        lines.append((start, pending + line))
        pending = None
    if pending is not None:
        lines.append((start, pending))
    return lines


def _split(line: str) -> tuple[str, str]:
    position = 0
    while position < len(line) and line[position] not in "=: \t\f":
        position += 2 if line[position] == "\\" else 1
    key, rest = line[:position], line[position:].lstrip(_SPACE)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_SPACE)
    return key, rest


def _unescape(text: str, line: int) -> str:
    if "\\" not in text:
        return text

    def replace(match: re.Match[str]) -> str:
        code = match[1]
        if code[0] != "u":
            return _ESCAPES.get(code, code)
        if len(code) != 5:
            raise ConfigError(f"Line {line}: \\u must be followed by four hexadecimal digits.")
        return chr(int(code[1:], 16))

    units = re.sub(r"\\(u[0-9a-fA-F]{4}|[\s\S]|$)", lambda m: replace(m) if m[1] else "", text)
    return units.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
