"""Statements as tokens (MySQL reference manual, "Language Structure")."""

from __future__ import annotations

import re
from dataclasses import dataclass

from connect_py.errors import DataError


class DdlError(DataError):
    """A statement that cannot be understood. The message says where."""


@dataclass(frozen=True, slots=True)
class Token:
    """One word, name, literal or mark.

    Attributes:
        kind: word, name (quoted), string, number, bits (`b'1'`, `x'1F'`, `0x1F`) or mark.
        text: of words in capitals; of names and strings without quotes and with escapes resolved; of others as written.
        raw: as written, of strings and bits without their quotes.
        at: the place in the statement.
    """

    kind: str
    text: str
    raw: str
    at: int


_VERSIONED = re.compile(r"/\*M?!\d*")
#: Characters of names that need no quotes, as all of ASCII that is none of them: a class with a million others takes 5 to 15 ms to compile.
NAME_CHARACTER = r"[^\x00-\x23\x25-\x2f:-@\[-^`{-\x7f]"


def _pattern(texts: str) -> re.Pattern[str]:
    return re.compile(
        r"""(?P<space>\s+|\#[^\n]*|--(?=\s|$)[^\n]*|/\*.*?(?:\*/|$))
        |(?P<bits>[bBxX]'[0-9A-Fa-f]*'|0[xX][0-9A-Fa-f]+\b|0b[01]+\b)
        |(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w$]))
        |"""
        + texts
        + r"""
        |(?P<name>`(?:[^`]|``)*`)
        |(?P<word>@{0,2}"""
        + NAME_CHARACTER
        + r"""+)
        |(?P<mark>:=|<=>|<<|>>|&&|\|\||->>|->|[<>!]=|.)""",
        re.VERBOSE | re.DOTALL,
    )


_TOKEN = _pattern(r"""(?P<string>[nN]?'(?:[^'\\]|''|\\.)*')|(?P<double>"(?:[^"\\]|""|\\.)*")""")
#: Under NO_BACKSLASH_ESCAPES.
_PLAIN_TOKEN = _pattern(r"""(?P<string>[nN]?'(?:[^']|'')*')|(?P<double>"(?:[^"]|"")*")""")
_ESCAPES = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}
_ESCAPED = re.compile(r"\\(.)|(['\"])\2", re.DOTALL)


def tokens_of(sql: str, *, ansi_quotes: bool = False, escapes: bool = True) -> list[Token]:
    """A statement's tokens; comments are left out, but what MySQL runs inside of them is not.

    Args:
        ansi_quotes: whether `"` quotes names, as under the mode ANSI_QUOTES.
        escapes: whether a backslash in a string escapes what follows, as it does but under the mode NO_BACKSLASH_ESCAPES.

    Raises:
        DdlError: a quote or comment does not end.
    """
    sql = _run_versioned(sql)
    pattern = _TOKEN if escapes else _PLAIN_TOKEN
    found: list[Token] = []
    at = 0
    while at < len(sql):
        match = pattern.match(sql, at)
        if match is None:  # pragma: no cover  # the last alternative takes any character
            raise DdlError(f"The statement cannot be read from {sql[at : at + 20]!r} on")
        kind, text = match.lastgroup or "mark", match[0]
        token = _token(kind, text, at, ansi_quotes, escapes)
        if token is not None:
            found.append(token)
        at = match.end()
    return found


def without_surroundings(sql: str) -> str:
    """A statement without comments before and behind it, and without its semicolon."""
    bare = _run_versioned(sql)
    begin, end, at = len(sql), 0, 0
    while at < len(bare) and (match := _TOKEN.match(bare, at)):
        at = match.end()
        if match.lastgroup != "space" and match[0] != ";":
            begin, end = min(begin, match.start()), at
    return sql[begin:end]


def _token(kind: str, text: str, at: int, ansi_quotes: bool, escapes: bool) -> Token | None:
    match kind:
        case "space":
            return None
        case "word":
            return Token("word", text.upper(), text, at)
        case "name":
            return Token("name", text[1:-1].replace("``", "`"), text, at)
        case "double" if ansi_quotes:
            return Token("name", text[1:-1].replace('""', '"'), text, at)
        case "double" | "string":
            body = text[text.index(text[-1]) + 1 : -1]
            return Token("string", _unescaped(body) if escapes else body.replace(text[-1] * 2, text[-1]), body, at)
        case "bits":
            # the reference cuts two characters off the front and one off the end of every form
            return Token("bits", text, text[2:-1], at)
        case "mark" if text in "'\"`":
            raise DdlError(f"A quote does not end: {text} at {at}")
    return Token(kind, text, text, at)


def _unescaped(body: str) -> str:
    return _ESCAPED.sub(lambda found: found[2] or _ESCAPES.get(found[1], found[1]), body)


def _run_versioned(sql: str) -> str:
    """`/*!50100 code */` is code. Blanks keep the places of what follows."""
    while (opening := _VERSIONED.search(sql)) is not None:
        closing = sql.find("*/", opening.end())
        if closing < 0:
            closing = len(sql)
        inside = sql[opening.end() : closing]
        sql = f"{sql[: opening.start()]}{' ' * (opening.end() - opening.start())}{inside}  {sql[closing + 2 :]}"
    return sql
