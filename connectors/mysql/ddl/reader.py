"""A place in a statement's tokens, from which the parser reads."""

from __future__ import annotations

from collections.abc import Sequence

from connectors.mysql.ddl.lexer import DdlError, Token

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
        """A token that is still to come; one of the kind `end` behind the last."""
        place = self.at + ahead
        return self._tokens[place] if place < len(self._tokens) else _END

    def next(self) -> Token:
        """The next token. Raises DdlError: there is none."""
        token = self.peek()
        if token.kind == "end":
            raise self.error("The statement ends too early")
        self.at += 1
        return token

    @property
    def ended(self) -> bool:
        """Whether nothing is left."""
        return self.peek().kind == "end"

    def takes(self, *words: str) -> bool:
        """Read these words or marks, if they come next."""
        for ahead, word in enumerate(words):
            token = self.peek(ahead)
            if token.kind not in ("word", "mark") or token.text != word:
                return False
        self.at += len(words)
        return True

    def takes_any(self, *words: str) -> str:
        """Read one of these words, if one comes next; empty if none does."""
        token = self.peek()
        if token.kind in ("word", "mark") and token.text in words:
            self.at += 1
            return token.text
        return ""

    def takes_charset(self) -> bool:
        """Read the words ahead of a character set's name, if they come next."""
        return self.takes("CHARACTER", "SET") or self.takes("CHAR", "SET") or self.takes("CHARSET")

    def sees(self, *words: str) -> bool:
        """Whether one of these words or marks comes next."""
        token = self.peek()
        return token.kind in ("word", "mark") and token.text in words

    def holds(self, *words: str) -> bool:
        """Whether these words come one after the other somewhere in what is left; reads nothing."""
        start = self.at
        while not self.ended:
            if self.takes(*words):
                self.at = start
                return True
            self.at += 1
        self.at = start
        return False

    def expects(self, word: str) -> None:
        """Read a word or mark. Raises DdlError: another comes."""
        if not self.takes(word):
            raise self.error(f"{word} was expected")

    def name(self) -> str:
        """An identifier; quotes of strings are tolerated. Raises DdlError."""
        token = self.next()
        if token.kind == "name" or token.kind == "string":
            return token.text
        if token.kind == "word":
            return token.raw
        if token.kind == "number" and token.raw.isdigit():
            return token.raw
        raise self.error("A name was expected")

    def qualified_name(self) -> tuple[str, str]:
        """A name with the database before it, empty without one. `db.1x` and `.t` are names too."""
        if self.takes("."):
            return "", self.name()
        first = self.name()
        if self.takes("."):
            return first, self.name()
        following = self.peek()
        if following.kind == "number" and following.raw.startswith("."):
            self.at += 1
            return first, following.raw[1:]
        return "", first

    def written(self, begin: int, end: int) -> str:
        """The statement's text from one token up to another."""
        stop = self._tokens[end].at if end < len(self._tokens) else len(self._sql)
        return self._sql[self._tokens[begin].at : stop]

    def string(self) -> str:
        """A string literal's value. Raises DdlError."""
        token = self.next()
        if token.kind != "string":
            raise self.error("A string was expected")
        return token.text

    def comment(self) -> str | None:
        """A comment, as it is written: the reference resolves none of its escapes. None where none are read. Raises DdlError."""
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
        """An error that shows the place."""
        token = self.peek() if not self.ended else (self._tokens[-1] if self._tokens else _END)
        place = self._sql[token.at : token.at + 40] if token.at >= 0 else ""
        return DdlError(f"{what} near {place!r} in the statement {self._sql[:300]!r}")
