"""The variables in values of properties, ``${provider:[path:]key}`` (`ConfigTransformer.java`). Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

#: ConfigTransformer.DEFAULT_PATTERN: provider, then a path that may be missing, then a key, which alone may hold colons. It finds what that
#: finds, but has one way to do so: Java's takes minutes for a short value of many colons.
_VARIABLE = re.compile(r"\$\{([^}:]*):(?:([^}:]*):)?([^}]*)\}")


#: Properties of connectors in which no variable is replaced: their values are classes, or become parts of other properties' names, and
#: both are shown in answers. Kafka Connect replaces them there too.
_SHOWN = re.compile(r"(?:.*\.)?(?:class|type)|transforms|predicates|converters|post\.processors|topic\.creation\.groups")


def takes_variables(name: str) -> bool:
    """Whether variables are replaced in a connector's property."""
    return _SHOWN.fullmatch(name) is None


class Variable(NamedTuple):
    """One variable; the path is "" when it has none."""

    provider: str
    path: str
    key: str
    text: str


def variables_in(value: str | None) -> list[Variable]:
    """The variables of a value, in order."""
    return [_variable(found) for found in _VARIABLE.finditer(value)] if value else []


def replace_variables(value: str, look_up: Callable[[Variable], str | None]) -> str:
    """A value with its variables replaced. One that is not found (None) stays as it is written; what is found is not read again."""

    def text_of(found: re.Match[str]) -> str:
        replacement = look_up(_variable(found))
        return found[0] if replacement is None else replacement

    return _VARIABLE.sub(text_of, value)


def with_variables_kept(made: Mapping[str, str], written: Mapping[str, str]) -> dict[str, str]:
    """A task's configuration as it may be stored: where the connector's own one has a variable, so has this (`reverseTransform`).

    Args:
        made: what the connector made of its resolved configuration.
        written: the connector's configuration as its owner wrote it.
    """
    return {key: written[key] if variables_in(written.get(key)) else value for key, value in made.items()}


def _variable(found: re.Match[str]) -> Variable:
    return Variable(found[1], found[2] or "", found[3], found[0])
