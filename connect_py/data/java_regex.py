"""Regular expressions as java.util.regex reads them, in Python's `re`.

Most of what people write means the same in both. Translated here: named groups, POSIX classes, ``\\h`` and ``\\Q…\\E``; ``\\d``, ``\\w``
and ``\\s`` are ASCII, as Java's are.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from connect_py.errors import ConfigError

_CLASSES = {
    r"\p{Alpha}": "[A-Za-z]",
    r"\p{Digit}": "[0-9]",
    r"\p{Alnum}": "[A-Za-z0-9]",
    r"\p{Upper}": "[A-Z]",
    r"\p{Lower}": "[a-z]",
    r"\h": r"[ \t]",
    r"\Z": r"(?=\n?\Z)",
    r"\z": r"\Z",
}
_NAMED_GROUP = re.compile(r"\(\?<(?=[A-Za-z])")
_NAMED_REFERENCE = re.compile(r"\\k<([A-Za-z][A-Za-z0-9]*)>")
_INTERSECTION = re.compile(r"(?<!\\)\[[^\]]*&&")
_QUOTED = re.compile(r"\\Q(.*?)(?:\\E|\Z)", re.DOTALL)


#: In characters. Compiling takes time that grows with the length: 0.3 s for this one, 17 s for a megabyte.
MAX_LENGTH = 32_768


def compile_java_regex(pattern: str, flags: int = re.ASCII) -> re.Pattern[str]:
    """Return a Java regex as a Python one.

    Raises:
        ConfigError: it is malformed; the text is PatternSyntaxException's where the two engines find the same fault. Or it is longer than
            `MAX_LENGTH`, or nested too deeply for Python.
    """
    if len(pattern) > MAX_LENGTH:
        raise ConfigError(f"The pattern has {len(pattern)} characters, more than the {MAX_LENGTH} that are read, near index {MAX_LENGTH}")
    translated = _QUOTED.sub(lambda found: re.escape(found[1]), pattern)
    translated = _NAMED_REFERENCE.sub(r"(?P=\1)", _NAMED_GROUP.sub("(?P<", translated))
    for java, python in _CLASSES.items():
        translated = translated.replace(java, python)
    if "&&" in translated and _INTERSECTION.search(translated):
        raise ConfigError(f"Intersections of character classes (&&) are not supported near index {pattern.index('&&')}\n{pattern}")
    try:
        return re.compile(translated, flags)
    except re.error as error:
        raise ConfigError(_message(pattern, error)) from None
    except (OverflowError, RecursionError) as error:
        raise ConfigError(f"The pattern is too large: {error}") from None


def _message(pattern: str, error: re.error) -> str:
    """Return what java.util.regex.PatternSyntaxException.getMessage() shows: description, index, pattern, caret."""
    description, index = {
        "unterminated character set": ("Unclosed character class", len(pattern) - 1),
        "missing ), unterminated subpattern": ("Unclosed group", len(pattern)),
        "unbalanced parenthesis": ("Unmatched closing ')'", max((error.pos or 0) - 1, 0)),
        "nothing to repeat": (f"Dangling meta character '{pattern[error.pos or 0 : (error.pos or 0) + 1]}'", error.pos or 0),
    }.get(error.msg, (error.msg[:1].upper() + error.msg[1:], error.pos or 0))
    caret = "\n" + " " * index + "^" if index < len(pattern) else ""
    return f"{description} near index {index}\n{pattern}{caret}"


def java_replacement(pattern: re.Pattern[str], replacement: str) -> Callable[[re.Match[str]], str]:
    """A replacement text of `Matcher.replaceFirst` as a function for `re.sub`: ``$1``, ``${name}``, and ``\\`` before a literal character.

    Raises:
        ConfigError: the text names a group that the pattern does not have, or ends in the middle of something.
    """
    parts: list[str | int] = []
    at = 0
    while at < len(replacement):
        char = replacement[at]
        if char == "\\":
            if at + 1 == len(replacement):
                raise ConfigError("character to be escaped is missing")
            parts.append(replacement[at + 1])
            at += 2
        elif char == "$":
            group, at = _group(pattern, replacement, at + 1)
            parts.append(group)
        else:
            parts.append(char)
            at += 1
    return lambda match: "".join(part if isinstance(part, str) else match[part] or "" for part in parts)


def _group(pattern: re.Pattern[str], replacement: str, at: int) -> tuple[int, int]:
    """Return the group that a reference names, and the position after it. Of the digits only those count that still name a group."""
    if replacement.startswith("{", at):
        end = replacement.find("}", at)
        name = replacement[at + 1 : end]
        if end < 0 or not name:
            raise ConfigError("named capturing group is missing trailing '}'")
        if name not in pattern.groupindex:
            raise ConfigError(f"No group with name {{{name}}}")
        return pattern.groupindex[name], end + 1
    if not replacement[at : at + 1].isdecimal():
        raise ConfigError("Illegal group reference")
    group = int(replacement[at])
    if group > pattern.groups:
        raise ConfigError(f"No group {group}")
    at += 1
    while replacement[at : at + 1].isdecimal() and group * 10 + int(replacement[at]) <= pattern.groups:
        group = group * 10 + int(replacement[at])
        at += 1
    return group, at
