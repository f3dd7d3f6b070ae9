"""Regular expressions as java.util.regex reads them, in Python's `re`.

Most of what people write means the same in both. Translated here: named groups, ``\\Q…\\E``, flags in the middle of a group, escapes that
Python does not know, and character classes with properties, unions or intersections. ``\\d``, ``\\w`` and ``\\s`` are ASCII, as Java's are.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NoReturn

from connect_py.data import java_classes
from connect_py.data.java_classes import PREDEFINED, Ranges, UnknownPropertyError, complement, intersection, property_ranges, union, written
from connect_py.errors import ConfigError

_LINE_BREAK: Final = r"(?:\r\n|[\n-\r\x85\u2028\u2029])"
#: Escapes outside of classes that Python does not have, or has with another meaning.
_ESCAPES: Final[dict[str, str]] = {
    "z": r"\Z",
    "Z": r"(?=\n?\Z)",
    "R": _LINE_BREAK,
    "e": r"\x1b",
    **{letter: written(PREDEFINED[letter]) for letter in "hv"},
    **{letter.upper(): written(complement(PREDEFINED[letter])) for letter in "hv"},
}
_NOT_TRANSLATED: Final = {
    "G": "the end of the last match",
    "X": "grapheme clusters",
    "b{g}": "grapheme clusters",
    "N": "names of characters",
}
_CODES: Final = {"t": 9, "n": 10, "r": 13, "f": 12, "a": 7, "e": 27}
_FLAGS: Final = re.compile(r"\(\?([a-zA-Z]*)(-[a-zA-Z]+)?([:)])")
_NAMED_GROUP: Final = re.compile(r"\(\?<(?=[A-Za-z])")
_NAMED_REFERENCE: Final = re.compile(r"\\k<([A-Za-z][A-Za-z0-9]*)>")
_PROPERTY: Final = re.compile(r"\\[pP](?:\{\^?([^}]*)\}|([A-Za-z]))")
_CODE_POINT: Final = re.compile(r"\\(?:x\{([0-9A-Fa-f]+)\}|x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|0([0-3]?[0-7]{1,2}))")
_CONTROL: Final = re.compile(r"\\c(.)", re.DOTALL)
#: What a class has that Python reads otherwise, or not at all: properties, nested classes, intersections, quotations, `\\w-`.
_UNUSUAL: Final = re.compile(r"\\[pPhHvVQRe0c]|\\[dDwWsS]-|\\x\{|\[|&&", re.DOTALL)


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
    try:
        return re.compile(_Translation(pattern).whole(), flags)
    except re.error as error:
        raise ConfigError(_message(pattern, error)) from None
    except (OverflowError, RecursionError) as error:
        raise ConfigError(f"The pattern is too large: {error}") from None


class _Translation:
    """One pattern on its way from Java to Python. What is malformed stays as it is, for Python to say so."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._out: list[str] = []
        #: Of each group that is open, the outermost first: the flags that were set within it, each a group of its own in Python.
        self._scoped: list[list[str]] = [[]]

    def whole(self) -> str:
        """Return the translation. Raises ConfigError: Python has nothing like it."""
        while self._at < len(self._pattern):
            self._step()
        self._out.append(_ends(self._scoped[0]))
        return "".join(self._out)

    def _step(self) -> None:
        char = self._pattern[self._at]
        if char == "\\":
            self._escape()
        elif char == "[":
            self._class()
        elif char == "(":
            self._group()
        elif char == "|" and self._scoped[-1]:
            self._copy(1, before=_ends(self._scoped[-1]), after="".join(self._scoped[-1]))
        elif char == ")" and len(self._scoped) > 1:
            self._copy(1, before=_ends(self._scoped.pop()))
        else:
            self._copy(1)

    def _copy(self, length: int, *, before: str = "", after: str = "") -> None:
        self._out += (before, self._pattern[self._at : self._at + length], after)
        self._at += length

    def _put(self, text: str, length: int) -> None:
        self._out.append(text)
        self._at += length

    def _group(self) -> None:
        flags = _FLAGS.match(self._pattern, self._at)
        if flags is not None and (flags[1] or flags[2]):
            self._set_flags(flags)
            return
        self._scoped.append([])
        if named := _NAMED_GROUP.match(self._pattern, self._at):
            self._put("(?P<", len(named[0]))
        else:
            self._copy(1)

    def _set_flags(self, found: re.Match[str]) -> None:
        """Java's flags hold to the end of their group. Python's do at the begin of a pattern only, or for a group of their own."""
        if "U" in found[1]:
            self._refuse("The flag U (Unicode classes) is not supported")
        on, off = ("".join(flag for flag in (part or "") if flag in "imsx") for part in found.group(1, 2))
        opened = f"(?{on}{'-' if off else ''}{off}:" if on or off else "(?:"
        self._put(opened, len(found[0]))
        if found[3] == ":":
            self._scoped.append([])
        else:
            self._scoped[-1].append(opened)

    def _escape(self) -> None:
        pattern, at = self._pattern, self._at
        letter = pattern[at + 1 : at + 2]
        if letter == "Q":
            self._out.append(re.escape(self._quotation()))
        elif found := _NAMED_REFERENCE.match(pattern, at):
            self._put(f"(?P={found[1]})", len(found[0]))
        elif letter in ("p", "P"):
            self._put(written(self._property()), 0)
        elif found := _CODE_POINT.match(pattern, at):
            self._put(written(((code := _code_point(found), code),)), len(found[0]))
        elif found := _CONTROL.match(pattern, at):
            self._put(written(((code := ord(found[1]) ^ 64, code),)), len(found[0]))
        elif letter in _NOT_TRANSLATED:
            self._refuse(f"\\{letter} ({_NOT_TRANSLATED[letter]}) is not supported")
        elif letter in _ESCAPES:
            self._put(_ESCAPES[letter], 2)
        else:
            self._copy(2)

    def _quotation(self) -> str:
        """Read ``\\Q…\\E``, or ``\\Q…`` to the pattern's end. Returns what stands in it."""
        quoted, end, _ = self._pattern[self._at + 2 :].partition("\\E")
        self._at += 2 + len(quoted) + len(end)
        return quoted

    def _property(self) -> Ranges:
        """Read ``\\p{…}`` or ``\\pL``."""
        found = _PROPERTY.match(self._pattern, self._at)
        if found is None:
            self._at = len(self._pattern)
            self._refuse("Unclosed character family")
        self._at += len(found[0])
        try:
            ranges = property_ranges(found[1] or found[2])
        except UnknownPropertyError:
            self._at -= 1
            self._refuse(f"Unknown character property name {{{found[1] or found[2]}}}")
        return complement(ranges) if found[0][1] == "P" else ranges

    def _class(self) -> None:
        """Translate a class. One that Python reads as Java does is left alone."""
        end = _end_of_class(self._pattern, self._at)
        if end < 0:
            self._at = len(self._pattern) - 1
            self._refuse("Unclosed character class")
        if not _UNUSUAL.search(self._pattern, self._at + 1, end):
            self._copy(end - self._at)
            return
        self._at += 1
        self._out.append(written(self._set()))

    def _set(self) -> Ranges:
        """Read the rest of a class after its bracket, and its end."""
        pattern = self._pattern
        negated = pattern.startswith("^", self._at)
        self._at += negated
        operands: list[list[tuple[int, int]]] = [[]]
        while not pattern.startswith("]", self._at) or not (any(operands) or len(operands) > 1):
            if self._at >= len(pattern):
                self._refuse("Unclosed character class")
            if pattern.startswith("&&", self._at):
                self._at += 2
                operands.append([])
            elif pattern.startswith("[", self._at):
                self._at += 1
                operands[-1] += self._set()
            else:
                operands[-1] += self._member()
        self._at += 1
        first, *others = [union(operand) for operand in operands if operand] or [()]
        found = first
        for operand in others:
            found = intersection(found, operand)
        return complement(found) if negated else found

    def _member(self) -> Ranges:
        """Read a character, a range, a quotation or a predefined class."""
        pattern, at = self._pattern, self._at
        if pattern.startswith("\\", at):
            letter = pattern[at + 1 : at + 2]
            if letter in ("p", "P"):
                return self._property()
            if letter.lower() in PREDEFINED:
                self._at += 2
                ranges = PREDEFINED[letter.lower()]
                return complement(ranges) if letter.isupper() else ranges
            if letter == "Q":
                return union((ord(char), ord(char)) for char in self._quotation())
        low = high = self._character()
        if pattern.startswith("-", self._at) and pattern[self._at + 1 : self._at + 2] not in ("]", "[", ""):
            self._at += 1
            high = self._character()
            if high < low:
                self._refuse("Illegal character range")
        return ((low, high),)

    def _character(self) -> int:
        pattern, at = self._pattern, self._at
        if not pattern.startswith("\\", at):
            self._at += 1
            return ord(pattern[at])
        if found := _CODE_POINT.match(pattern, at):
            self._at += len(found[0])
            return _code_point(found)
        if found := _CONTROL.match(pattern, at):
            self._at += len(found[0])
            return ord(found[1]) ^ 64
        letter = pattern[at + 1 : at + 2]
        if not letter or (letter.isascii() and letter.isalnum() and letter not in _CODES):
            self._refuse("Illegal/unsupported escape sequence")
        self._at += 2
        return _CODES.get(letter, ord(letter))

    def _refuse(self, what: str) -> NoReturn:
        raise ConfigError(_pointing(self._pattern, what, self._at))


def _ends(opened: list[str]) -> str:
    """Return what closes groups of flags, the last one first. A line's end before it ends a comment too."""
    return "".join("\n)" if "x" in begin.partition("-")[0] else ")" for begin in reversed(opened))


def _end_of_class(pattern: str, at: int) -> int:
    """Return where the class that begins at a bracket ends, classes within it included; -1 for nowhere."""
    depth = 0
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            if pattern.startswith("\\Q", at):
                end = pattern.find("\\E", at)
                at = end if end >= 0 else len(pattern)
            at += 1
        elif char == "[":
            depth += 1
            # a bracket that comes first is a member
            at += pattern.startswith("^", at + 1)
            at += pattern.startswith("]", at + 1)
        elif char == "]":
            depth -= 1
            if not depth:
                return at + 1
        at += 1
    return -1


def _code_point(found: re.Match[str]) -> int:
    code = int(found[4], 8) if found[4] else int(found[1] or found[2] or found[3], 16)
    if code > java_classes.LAST:
        raise ConfigError(f"Hexadecimal codepoint is too big near index {found.start()}")
    return code


def _message(pattern: str, error: re.error) -> str:
    """Return what java.util.regex.PatternSyntaxException.getMessage() shows: description, index, pattern, caret."""
    position = error.pos or 0
    description, index = {
        "unterminated character set": ("Unclosed character class", len(pattern) - 1),
        "missing ), unterminated subpattern": ("Unclosed group", len(pattern)),
        "unbalanced parenthesis": ("Unmatched closing ')'", position - 1),
        "nothing to repeat": (f"Dangling meta character '{pattern[position : position + 1]}'", position),
    }.get(error.msg, (error.msg[:1].upper() + error.msg[1:], position))
    if error.msg.startswith("bad escape"):
        description, index = "Illegal/unsupported escape sequence", position + 1
    elif error.msg.startswith("bad character range "):
        description, index = "Illegal character range", position + len(error.msg) - len("bad character range ") - 1
    return _pointing(pattern, description, index)


def _pointing(pattern: str, description: str, index: int) -> str:
    where = f" near index {index}" if index >= 0 else ""
    caret = "\n" + " " * index + "^" if 0 <= index < len(pattern) else ""
    return f"{description}{where}\n{pattern}{caret}"


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
