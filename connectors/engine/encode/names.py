"""The names that a generated module uses, each with one value.

The parts of a table's module are written by many hands: the types of its columns, the reader of rows, the writer of records. All of their
names stand in one namespace, where the part that came last would quietly take another's name away: that showed dates of the year 1 wrong in
tables which also had a TIME column. So a name is given a value once. Another value for it, a function of that name, or a variable of a
function that would hide it, is refused when the module is made.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from types import BuiltinMethodType, CodeType, MethodType

_BUILT_IN = frozenset(vars(builtins))
_COMPARED = (str, int, tuple, BuiltinMethodType, MethodType)


class NameTakenError(AssertionError):
    """Two parts of a generated module mean different things by one name: a bug of the part that came last."""


class Names:
    """The namespace of one module.

    Args:
        given: the first names.
    """

    def __init__(self, given: Mapping[str, object]) -> None:
        self._values: dict[str, object] = {}
        self.update(given)

    @property
    def values(self) -> Mapping[str, object]:
        """All of them."""
        return self._values

    def add(self, name: str, value: object) -> None:
        """Give a name its value. The same object again is no other value, nor is an equal text, number, tuple or method.

        Raises:
            NameTakenError: the name has another value, or is one of Python's own.
        """
        if name in _BUILT_IN:
            raise NameTakenError(f"{name} is Python's own and cannot be {value!r} in generated code")
        held = self._values.setdefault(name, value)
        if held is not value and not (type(held) is type(value) and isinstance(held, _COMPARED) and held == value):
            raise NameTakenError(f"{name} is {held!r} and cannot also be {value!r} in the generated code of one table")

    def update(self, given: Mapping[str, object]) -> None:
        """Give all of these their values. Raises NameTakenError."""
        for name, value in given.items():
            self.add(name, value)

    def run(self, text: str, title: str) -> Mapping[str, object]:
        """Compile a module's text and run it: its functions, by name.

        Args:
            text: our own; what is of a table stands in it as literals only.
            title: shown in tracebacks.

        Raises:
            NameTakenError: a function has a name that is taken, or a variable of one hides a name.
        """
        code = compile(text, title, "exec")
        for function in [code, *_functions(code)]:
            hidden = (self._values.keys() | _BUILT_IN) & {*function.co_varnames, *(function.co_names if function is code else ())}
            if hidden:
                raise NameTakenError(f"{', '.join(sorted(hidden))}: assigned in {function.co_name} of {title}, and already taken")
        namespace = dict(self._values)
        exec(code, namespace)  # noqa: S102  # our own text; names are literals
        return {function.co_name: namespace[function.co_name] for function in _functions(code)}


def _functions(code: CodeType) -> list[CodeType]:
    return [found for found in code.co_consts if isinstance(found, CodeType)]
