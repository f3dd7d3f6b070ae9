"""Statements as tokens (MySQL reference manual, "Language Structure"), and the reader from which the parser takes them."""

from __future__ import annotations

import re
from collections.abc import Sequence
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
        at: the position in the statement.
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
    """Return a statement's tokens; comments are left out, but what MySQL runs inside of them is not.

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
    """Return a statement without the comments around it, and without its semicolon."""
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
            # Debezium cuts two characters off the front and one off the end of every form
            return Token("bits", text, text[2:-1], at)
        case "mark" if text in "'\"`":
            raise DdlError(f"A quote does not end: {text} at {at}")
    return Token(kind, text, text, at)


def _unescaped(body: str) -> str:
    return _ESCAPED.sub(lambda found: found[2] or _ESCAPES.get(found[1], found[1]), body)


def _run_versioned(sql: str) -> str:
    """Replace the marks of `/*!50100 code */`, which is code, by blanks, which keep the positions of what follows."""
    while (opening := _VERSIONED.search(sql)) is not None:
        closing = sql.find("*/", opening.end())
        if closing < 0:
            closing = len(sql)
        inside = sql[opening.end() : closing]
        sql = f"{sql[: opening.start()]}{' ' * (opening.end() - opening.start())}{inside}  {sql[closing + 2 :]}"
    return sql


_END = Token("end", "", "", -1)


class Reader:
    """Reads tokens one after the other.

    Args:
        sql: for messages.
        keeps_comments: whether comments of tables and columns are read.
    """

    def __init__(self, tokens: Sequence[Token], sql: str, *, keeps_comments: bool = True) -> None:
        self._tokens, self._sql, self.at = tokens, sql, 0
        self._keeps_comments = keeps_comments

    def peek(self, ahead: int = 0) -> Token:
        """Return a token ahead; one of the kind `end` after the last."""
        at = self.at + ahead
        return self._tokens[at] if at < len(self._tokens) else _END

    def next(self) -> Token:
        """Return the next token. Raises DdlError: there is none."""
        token = self.peek()
        if token.kind == "end":
            raise self.error("The statement ends too early")
        self.at += 1
        return token

    @property
    def ended(self) -> bool:
        """Whether nothing is left."""
        return self.peek().kind == "end"

    def accept(self, *words: str) -> bool:
        """Read these words or marks, if they come next."""
        for ahead, word in enumerate(words):
            token = self.peek(ahead)
            if token.kind not in ("word", "mark") or token.text != word:
                return False
        self.at += len(words)
        return True

    def accept_any(self, *words: str) -> str:
        """Read one of these words, if one comes next; empty if none does."""
        token = self.peek()
        if token.kind in ("word", "mark") and token.text in words:
            self.at += 1
            return token.text
        return ""

    def accept_charset(self) -> bool:
        """Read the words ahead of a character set's name, if they come next."""
        return self.accept("CHARACTER", "SET") or self.accept("CHAR", "SET") or self.accept("CHARSET")

    def sees(self, *words: str) -> bool:
        """Return whether one of these words or marks comes next."""
        token = self.peek()
        return token.kind in ("word", "mark") and token.text in words

    def holds(self, *words: str) -> bool:
        """Return whether these words come one after the other somewhere in the rest; reads nothing."""
        start = self.at
        while not self.ended:
            if self.accept(*words):
                self.at = start
                return True
            self.at += 1
        self.at = start
        return False

    def expects(self, word: str) -> None:
        """Read a word or mark. Raises DdlError: another comes."""
        if not self.accept(word):
            raise self.error(f"{word} was expected")

    def name(self) -> str:
        """Return an identifier; quotes of strings are tolerated. Raises DdlError."""
        token = self.next()
        if token.kind == "name" or token.kind == "string":
            return token.text
        if token.kind == "word":
            return token.raw
        if token.kind == "number" and token.raw.isdigit():
            return token.raw
        raise self.error("A name was expected")

    def qualified_name(self) -> tuple[str, str]:
        """Return a name with the database before it, empty without one. `db.1x` and `.t` are names too."""
        if self.accept("."):
            return "", self.name()
        first = self.name()
        if self.accept("."):
            return first, self.name()
        following = self.peek()
        if following.kind == "number" and following.raw.startswith("."):
            self.at += 1
            return first, following.raw[1:]
        return "", first

    def written(self, begin: int, end: int) -> str:
        """Return the statement's text from one token up to another."""
        stop = self._tokens[end].at if end < len(self._tokens) else len(self._sql)
        return self._sql[self._tokens[begin].at : stop]

    def string(self) -> str:
        """Return a string literal's value. Raises DdlError."""
        token = self.next()
        if token.kind != "string":
            raise self.error("A string was expected")
        return token.text

    def comment(self) -> str | None:
        """Return a comment as it is written: Debezium resolves none of its escapes. None where none are read. Raises DdlError."""
        token = self.next()
        if token.kind != "string":
            raise self.error("A string was expected")
        return token.raw if self._keeps_comments else None

    def skip_parentheses(self) -> None:
        """Read over `( … )`, whatever is inside. Raises DdlError."""
        self.expects("(")
        depth = 1
        while depth:
            token = self.next()
            if token.kind == "mark":
                depth += {"(": 1, ")": -1}.get(token.text, 0)

    def skip_to(self, *marks: str) -> None:
        """Read over all before one of these marks or the end; parentheses are read over whole."""
        while not self.ended and not self.sees(*marks):
            if self.sees("("):
                self.skip_parentheses()
            else:
                self.at += 1

    def error(self, what: str) -> DdlError:
        """Return an error that shows the position."""
        token = self.peek() if not self.ended else (self._tokens[-1] if self._tokens else _END)
        near = self._sql[token.at : token.at + 40] if token.at >= 0 else ""
        return DdlError(f"{what} near {near!r} in the statement {self._sql[:300]!r}")
