"""Functions that are generated as text: one emitter for all who write such text (encoders of tables, readers of rows, converters).

The parts of one function are written by many hands: the types of its columns, the reader of rows, the writer of records. Spelling keeps
them from taking each other's names. A *variable* is lower-case letters and digits (`c0`, `end`); what is *bound*, a value from outside or
a function, has a capital or an underscore (`HEAD`, `int_of`), so neither can hide the other. Another value for a bound name gets a name
with a number, and the text that used the name is changed to it.

Generated text must be ours alone: what comes from a user or a table stands in it as literals (`repr`) only.
"""

from __future__ import annotations

import builtins
import itertools
import linecache
import re
import weakref
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from types import BuiltinMethodType, CodeType, MethodType
from typing import Any

_VARIABLE = re.compile(r"_|[a-z][a-z0-9]*")
_BOUND = re.compile(r"(?=.*[A-Z_])[A-Za-z]\w*")
_BUILT_IN = frozenset(vars(builtins)) - {"_"}
#: What is the same value where it is equal. Methods are made each time that they are looked up.
_COMPARED = (str, int, tuple, BuiltinMethodType, MethodType)
_FILE = re.compile(r"<generated \d+> (.*)", re.DOTALL)
_COUNT = itertools.count(1)


class NameRuleError(AssertionError):
    """A generator wrote a name that the rule of spelling does not allow: a bug of the generator."""


class Code:
    """The text of one or several functions, while it is written.

    Args:
        title: what the functions are for, such as `rows of shop.public.orders`; shown in traces.
    """

    def __init__(self, title: str) -> None:
        self._title = title
        self._lines: list[str] = []
        self._depth = 0
        self._values: dict[str, object] = {}
        self._functions: dict[str, str] = {}

    @property
    def text(self) -> str:
        """What has been written so far."""
        return "\n".join([*self._lines, ""])

    def add(self, *lines: str) -> None:
        """Write lines where the text is, indented as the block that is open."""
        margin = "    " * self._depth
        self._lines += [margin + line for line in lines]

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Open a block, which ends with the `with`: `with code.block("if p > end:"): …`. One without statements passes."""
        self.add(head)
        self._depth += 1
        begin = len(self._lines)
        yield
        if len(self._lines) == begin:
            self.add("pass")
        self._depth -= 1

    @contextmanager
    def function(self, name: str, parameters: str) -> Iterator[str]:
        """Open the block of a function; its value is the name that `bind` gave it. Raises NameRuleError as that."""
        found = self._functions[name] = self.bind(name, object())
        with self.block(f"def {found}({parameters}):"):
            yield found

    def bind(self, name: str, value: object) -> str:
        """Give the functions a value from outside.

        Returns:
            The name by which they know it: the given one, unless that is another value's. The same object again has the name it has, and so
            do an equal text, number, tuple or method.

        Raises:
            NameRuleError: the name is spelled as a variable.
        """
        if self._values.get(name, self) is value:
            return name
        if not _BOUND.fullmatch(name):
            raise NameRuleError(f"{name} is spelled as a variable; what is bound has a capital or an underscore")
        found = name
        for number in itertools.count(2):
            held = self._values.setdefault(found, value)
            if held is value or (type(held) is type(value) and isinstance(held, _COMPARED) and held == value):
                return found
            found = f"{name}_{number}"
        raise AssertionError  # itertools.count has no end

    def bind_all(self, names: Mapping[str, object]) -> Callable[[str], str]:
        """Bind the names that one author's texts use.

        Returns:
            The function that returns a text of the author's with the names that they got.

        Raises:
            NameRuleError: as `bind`.
        """
        changed = {name: got for name, value in names.items() if (got := self.bind(name, value)) != name}
        if not changed:
            return str
        word = re.compile(rf"(?<![\w.])(?:{'|'.join(map(re.escape, changed))})(?!\w)")
        return lambda text: word.sub(lambda match: changed[match[0]], text)

    def make(self) -> Mapping[str, Callable[..., Any]]:
        """Compile the text.

        Its lines are shown in traces as long as one of its functions, or a frame of one, lives (`linecache`).

        Returns:
            Its functions by the names that `function` was given.

        Raises:
            NameRuleError: a variable is spelled as a bound name, or hides one of Python's own.
        """
        text, file = self.text, f"<generated {next(_COUNT)}> {self._title}"
        code = compile(text, file, "exec")
        for function in (found for found in code.co_consts if isinstance(found, CodeType)):
            wrong = [name for name in function.co_varnames if name in _BUILT_IN or not _VARIABLE.fullmatch(name)]
            if wrong:
                raise NameRuleError(f"{', '.join(wrong)}: assigned in {function.co_name} of {file}, but not spelled as a variable")
        source = _Source()
        namespace: dict[str, Any] = {**self._values, "__name__": "generated", "__source__": source}
        exec(code, namespace)  # noqa: S102  # our own text; names are literals
        # packed, since a task of a thousand tables has some megabytes of such text, which is read when something went wrong
        linecache.cache[file] = (partial(_unpacked, zlib.compress(text.encode(), 1)),)  # lazy, as `lazycache` does
        weakref.finalize(source, linecache.cache.pop, file, None).atexit = False
        return {name: namespace[found] for name, found in self._functions.items()}


def title_of(file: str) -> str | None:
    """Return the title of generated code by the file name that frames show; None where it is no generated code's."""
    found = _FILE.fullmatch(file)
    return None if found is None else found[1]


class _Source:
    """Lives in the globals of generated functions, and so as long as they do."""

    __slots__ = ("__weakref__",)


def _unpacked(packed: bytes) -> str:
    return zlib.decompress(packed).decode()
