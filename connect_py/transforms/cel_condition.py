"""Evaluate conditions and expressions in CEL, the Common Expression Language (https://cel.dev), over records.

CEL has no loops, no functions of its own making and no way out of itself, so an expression from a configuration cannot reach the worker.
What could still cost time, macros over lists inside one another, is bounded when an expression is compiled.

The evaluator is the `cel` crate through `common-expression-language`: measured on a change event of 20 columns, a condition took a tenth
of the time that `cel-python` took, and less again where only the fields that an expression names are handed over (`names_of`).
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import cel
from cel.stdlib import STDLIB_FUNCTIONS

from connect_py.api import SinkRecord, SourceRecord
from connect_py.data import Schema, Struct
from connect_py.errors import ConfigError, DataError

#: Longer ones are programs.
MAX_LENGTH = 4096
#: `exists`, `all`, `map`, `filter` in one expression: each may walk a list for every element of another.
MAX_MACROS = 3

_MACRO = re.compile(r"\.\s*(?:all|exists|exists_one|map|filter)\s*\(")
_TEXT = re.compile(r"""r?(?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')""")
_STEP = re.compile(r"\s*\.\s*([A-Za-z_]\w*)(?!\w)(?!\s*\()")
#: Raw and triple-quoted texts and comments, which `_TEXT` does not tell from code.
_UNUSUAL = re.compile(r"""[rRbB]['"]|'''|\"{3}|//""")
_BOUND = re.compile(r"\.\s*(?:all|exists|exists_one|map|filter)\s*\(\s*(\w+)\s*,")
_TYPES = ("bool", "bytes", "double", "duration", "int", "list", "map", "null_type", "string", "timestamp", "type", "uint")
_ROOTS = ("key", "value", "keySchema", "valueSchema", "topic", "header")

#: Names of fields below a name; None stands for the whole of it.
Names = dict[str, "Names | None"]


class Expression:
    """A compiled expression.

    Args:
        text: CEL over `key`, `value`, `keySchema`, `valueSchema`, `topic` and `header`.

    Raises:
        ConfigError: it is not CEL, names other variables, or could take long.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        if len(text) > MAX_LENGTH:
            raise ConfigError(f"the expression has {len(text)} characters; {MAX_LENGTH} are the most")
        if len(_MACRO.findall(text)) > MAX_MACROS:
            raise ConfigError(f"the expression walks lists more than {MAX_MACROS} times (all, exists, exists_one, map, filter)")
        try:
            self._program = cel.compile(text)
        except (ValueError, RuntimeError, RecursionError) as error:
            raise ConfigError(f"the expression is not CEL: {error}") from None
        self._functions = {name: STDLIB_FUNCTIONS[name] for name in self._program.functions() if name in STDLIB_FUNCTIONS}
        named = self._program.variables()
        unknown = set(named).difference(_ROOTS, _TYPES, _BOUND.findall(text))
        if unknown:
            raise ConfigError(f"the expression names {', '.join(sorted(unknown))}; there are {', '.join(_ROOTS)}")
        self._names = {root: names_of(text, root) for root in _ROOTS if root in named}

    def evaluate(self, record: SourceRecord | SinkRecord) -> Any:
        """Return the value for a record: bool, int, float, str, list, dict or None.

        Raises:
            DataError: the record lacks something that the expression needs, or types do not fit.
        """
        given = {root: _BINDINGS[root](record, names) for root, names in self._names.items()}
        try:
            return self._program.execute(cel.Context(given, self._functions) if self._functions else given)
        except KeyError as error:
            raise DataError(
                f"Error while evaluating expression '{self.text}': there is no {error}; has(…) asks first whether a field is there"
            ) from None
        except (TypeError, ValueError, RuntimeError, OverflowError, ArithmeticError) as error:
            raise DataError(f"Error while evaluating expression '{self.text}': {error}") from None


def names_of(text: str, root: str) -> Names | None:
    """Return which fields of a variable an expression names: None for the whole, `{"before": {"id": None}}` for `value.before.id` alone.

    Where a variable is used in any way but with a dot and a name, the whole of it counts as named.
    """
    if _UNUSUAL.search(text):
        return None
    found: Names = {}
    bare = _TEXT.sub(lambda match: " " * len(match[0]), text)
    for start in re.finditer(rf"(?<![\w.]){root}(?!\w)", bare):
        path, at = [], start.end()
        while step := _STEP.match(bare, at):
            path.append(step[1])
            at = step.end()
        if not path:
            return None
        _add(found, path)
    return found


def _add(names: Names, path: list[str]) -> None:
    for step in path[:-1]:
        below = names.setdefault(step, {})
        if below is None:
            return
        names = below
    names[path[-1]] = None


# -- what variables hold -----------------------------------------------------------------------------------------------------------


def _chosen(fields: Mapping[str, Any], names: Names | None) -> dict[str, Names | None]:
    """Return the fields that are wanted and there, each with what is wanted of it."""
    return dict.fromkeys(fields) if names is None else {name: below for name, below in names.items() if name in fields}


def plain(value: Any, names: Names | None) -> Any:
    """Return a value as CEL has it: structs are maps, decimals doubles, dates and timestamps instants in UTC, times durations."""
    match value:
        case Struct():
            if names is None:
                return {field.name: plain(value[field.name], None) for field in value.schema.fields}
            return {name: plain(value[name], below) for name, below in names.items() if value.schema.field(name) is not None}
        case dict():
            return {name: plain(value[name], below) for name, below in _chosen(value, names).items()}
        case list():
            return [plain(item, None) for item in value]
        case Decimal():
            return float(value)
        case datetime.datetime():
            return value if value.tzinfo else value.replace(tzinfo=datetime.UTC)
        case datetime.date():
            return datetime.datetime.combine(value, datetime.time(), datetime.UTC)
        case datetime.time():
            return datetime.datetime.combine(_DAY, value) - datetime.datetime.combine(_DAY, datetime.time())
        case _:
            return value


_DAY = datetime.date(1970, 1, 1)


def schema_map(schema: Schema | None, names: Names | None) -> dict[str, Any] | None:
    """A schema: `name`, `type`, `optional`, `version`, `doc`, `default`, `parameters`, `fields` by name, `keySchema`, `valueSchema`."""
    if schema is None:
        return None
    parts: dict[str, Callable[[Names | None], Any]] = {
        "name": lambda _: schema.name,
        "type": lambda _: schema.type.name,
        "optional": lambda _: schema.optional,
        "version": lambda _: schema.version,
        "doc": lambda _: schema.doc,
        "default": lambda below: plain(schema.default, below),
        "parameters": lambda _: dict(schema.parameters),
        "fields": lambda below: {
            name: schema_map(field.schema, inner)
            for name, inner in _chosen(dict.fromkeys(f.name for f in schema.fields), below).items()
            if (field := schema.field(name)) is not None
        },
        "keySchema": lambda below: schema_map(schema.key_schema, below),
        "valueSchema": lambda below: schema_map(schema.value_schema, below),
    }
    return {name: parts[name](below) for name, below in _chosen(parts, names).items()}


def _headers(record: SourceRecord | SinkRecord, names: Names | None) -> dict[str, Any]:
    """Return headers by name, the last of several, each with its `value` and `schema`."""
    known = {header.name: header for header in record.headers}
    return {
        name: {"value": plain(known[name].value, None), "schema": schema_map(known[name].schema, None)} for name in _chosen(known, names)
    }


_BINDINGS: Mapping[str, Callable[[SourceRecord | SinkRecord, Names | None], Any]] = {
    "key": lambda record, names: plain(record.key, names),
    "value": lambda record, names: plain(record.value, names),
    "keySchema": lambda record, names: schema_map(record.key_schema, names),
    "valueSchema": lambda record, names: schema_map(record.value_schema, names),
    "topic": lambda record, _: record.topic,
    "header": _headers,
}
