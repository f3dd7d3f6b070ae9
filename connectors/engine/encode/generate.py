"""The generated functions of a table: one writer, and a reader for each form in which rows come.

For a table and schema version there are
  text_rows     a loop over rows of texts, None for NULL, that need no escape
  plain_stream  texts of one row of a stream that need no escape
  mixed_snapshot, mixed_stream  texts of one row, where None is NULL and UNCHANGED an unsent value, escapes made where they are needed
and a connector adds functions for the forms in which its rows come (`connectors.postgres.encode.table`).
All of them use the columns' quick expressions, so a text that is unusual for its type makes them raise ValueError or IndexError; the caller
then takes that row through `ColumnPlan.convert`, column by column. They never write something else than that would
(tests/unit/connectors/engine/test_ways.py).

How it is made, with what was measured (2 vCPU, CPython 3.11, the ten columns of the benchmark's table):
  * str, not bytes: an f-string of ten values and its encoding takes 0.18 µs, `bytes %` 0.40 µs, `b"".join` 0.27 µs;
  * the row's text is joined with the schema prefix and the end by one `b"".join`: 0.09 µs for 3.6 kB, two additions 0.13 µs;
  * whether anything needs an escape is asked of orjson for a whole batch: its output is longer than its input by one for each quote,
    backslash, tab and newline and by more for other control characters: 0.07 µs a row; one regular expression a row takes 0.40 µs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from connect_py.rowcode import Code
from connectors.engine.encode.columnwise import null_text
from connectors.engine.encode.plan import ColumnPlan, Convert, RowPlan, Stored

#: Conditions for what is no text, and the word that names what stands for it.
NULL = ("$ is None", "null")
NOT_SENT = ("$ is UNCHANGED", "placeholder")


def write_text_ways(code: Code, plan: RowPlan) -> str:
    """Write the functions for rows that come as texts; return the name of `mixed_stream`. `TableEncoder` binds what they use."""
    row = _unpacked(plan)
    write_row_loop(code, plan, "text_rows", row + " = row", tests=[NULL], checks=True, careful="careful_row")
    write_row(code, plan, "mixed_snapshot", "row", [row + " = row"], tests=[NULL], escape=True)
    mixed = write_row(code, plan, "mixed_stream", "row", [row + " = row"], tests=[NULL, NOT_SENT], stream=True, escape=True)
    check = escape_check(plan, f"return {mixed}(row)")
    write_row(code, plan, "plain_stream", "row", [row + " = row", *check], tests=[NULL, NOT_SENT], stream=True)
    return mixed


def _literal(text: str) -> str:
    """Return a part of an f-string as an ordinary literal next to it."""
    return repr(text)


def fstring(parts: Iterable[tuple[str, str]]) -> str:
    """Return one f-string of (text, expression) pairs; an empty expression adds nothing."""
    pieces: list[str] = []
    text = ""
    for literal, expression in parts:
        text += literal
        if expression:
            pieces += [_literal(text)] if text else []
            pieces.append(_formatted(expression))
            text = ""
    if text or not pieces:
        pieces.append(_literal(text))
    return "(" + " ".join(pieces) + ")"


def _formatted(expression: str) -> str:
    """Return an expression as an f-string: one that is an f-string is taken over, which makes no text of its own (0.05 µs less)."""
    inside = expression[2:-1]
    taken = expression == f"f'{inside}'" and not {"'", '"', "\\"} & set(inside)
    return f'f"{inside}"' if taken else f'f"{{{expression}}}"'


def object_parts(head: str, labels: Sequence[str], values: Sequence[tuple[str, bool]], end: str) -> list[tuple[str, str]]:
    """Pairs for `fstring` of an object; values are expressions and whether they stand inside quotes."""
    parts: list[tuple[str, str]] = []
    text = head
    for label, (expression, quoted) in zip(labels, values, strict=True):
        mark = '"' if quoted else ""
        parts.append((text + label + mark, expression))
        text = mark + ","
    parts.append(((text[:-1] if values else text) + end, ""))
    return parts


class Writer:
    """Expressions for the columns' JSON text in one generated function.

    Args:
        code: binds what the expressions use.
        tests: pairs of a condition with `$` for the text, and the word that names what stands for a value of which it holds.
        stream: whether rows are those of a stream.
        escape: whether texts may need escapes.
        stored: of the columns whose variables hold another form than the text, which one.
        apart: whether statements make each column's JSON text by itself (`shown`, and `nulls` for NULL), in place of `lines` for all.

    Attributes:
        row, key: expressions for the encoded row and the encoded key.
        row_parts: labels and values of the row's object.
    """

    def __init__(
        self,
        code: Code,
        plan: RowPlan,
        *,
        tests: Sequence[tuple[str, str]] = (),
        stream: bool = False,
        escape: bool = False,
        stored: Mapping[int, Stored] = MappingProxyType({}),
        apart: bool = False,
    ) -> None:
        self._code, self._plan, self._tests, self._stream, self._escape = code, plan, tests, stream, escape
        self._stored, self._apart = stored, apart
        self.lines: list[str] = []
        self.shown: list[list[str]] = [[] for _ in plan.columns]
        self.nulls: list[list[str]] = [[] for _ in plan.columns]
        in_key = set(plan.key)
        values = [self._value(i, "j", plan.numeric_row, shared=i in in_key) for i in range(len(plan.columns))]
        keys = [
            values[i]
            if plan.columns[i].in_key is None and (plan.numeric_key == plan.numeric_row or plan.columns[i].numeric is None)
            else self._value(i, "k", plan.numeric_key, shared=False)
            for i in plan.key
        ]
        shown = [i for i, column in enumerate(plan.columns) if not column.only_in_key]
        self.row_parts = [plan.labels[i] for i in shown], [values[i] for i in shown]
        self.row = _object("{", *self.row_parts, "}") + ".encode()"
        self.key = _object(plan.key_head, plan.key_labels, keys, plan.key_tail) + ".encode()" if plan.key or plan.key_mark else "None"

    def _value(self, index: int, target: str, numeric: bool, *, shared: bool) -> tuple[str, bool]:
        """Return a column's expression and whether it stands inside quotes."""
        column, variable = self._plan.columns[index], f"c{index}"
        if target == "k":
            column = column.of_key
        text = null_text(column, numeric=numeric, defaults=self._plan.nulls_as_defaults)
        null = self._code.bind(f"null_{target}{index}", text)
        if self._stream and column.missing_in_stream:
            return null, False
        value, quoted = self._plain(column, index, target, numeric)
        shown = value if not quoted else f"f'\"{{{value}}}\"'" if value == variable else f"f'''\"{{{value}}}\"'''"
        if self._apart:
            self.shown[index].append(f"{target}{index} = {shown}")
            self.nulls[index].append(f"{target}{index} = {null}")
            return f"{target}{index}", False
        if self._tests:
            instead = {"null": null, "placeholder": self._code.bind(f"placeholder_{target}{index}", column.placeholder)}
            other = "".join(f"{instead[result]} if {test.replace('$', variable)} else " for test, result in self._tests)
            self.lines.append(f"{target}{index} = {other}{shown}")
            return f"{target}{index}", False
        if shared and value != variable:
            self.lines.append(f"{target}{index} = {value}")
            return f"{target}{index}", quoted
        return value, quoted

    def _plain(self, column: ColumnPlan, index: int, target: str, numeric: bool) -> tuple[str, bool]:
        variable = f"c{index}"

        def call(name: str, function: Convert) -> tuple[str, bool]:
            return f"{self._code.bind(f'{name}_{target}{index}', function)}({variable})", False

        if index in self._stored:
            of_row = self._plan.columns[index]
            return self._code.bind_all(of_row.helpers)(self._stored[index].shown(index)), column.quoted
        if column.textual:
            return (f"quick_quote({variable})", False) if self._escape or column.marked_up else (variable, True)
        if numeric and column.numeric is not None:
            return call("numeric", column.numeric)
        quick = column.quick
        if not self._stream and column.quick_copy is not None:
            if not column.quick_copy and column.snapshot is not None:
                return call("snapshot", column.snapshot)
            quick = column.quick_copy
        if quick:
            return self._code.bind_all(column.helpers)(quick).replace("$", variable), column.quoted
        if column.convert is None:
            return variable, False
        return call("convert", column.convert)


def _object(head: str, labels: Sequence[str], values: Sequence[tuple[str, bool]], end: str) -> str:
    return fstring(object_parts(head, labels, values, end))


def variables(plan: RowPlan) -> str:
    """Return the variables of a row's texts, as a target of an assignment."""
    return ", ".join(f"c{i}" for i in range(len(plan.columns))) or "_"


def _unpacked(plan: RowPlan) -> str:
    return f"{variables(plan)}{',' if len(plan.columns) == 1 else ''}"


def write_row_loop(
    code: Code, plan: RowPlan, name: str, unpack: str, *, careful: str, tests: Sequence[tuple[str, str]] = (), checks: bool = False
) -> None:
    """Write `name(rows, route, end, append)`, which appends the records of a snapshot's rows.

    Args:
        unpack: statement that sets the variables of `row`.
        careful: what makes a key and an object of a row whose texts are unusual.
        tests: as of `Writer`.
        checks: whether rows whose texts need escapes are among the unusual ones; else there are none.
    """
    with code.function(name, "rows, route, end, append"), code.block("for row in rows:"):
        writer = Writer(code, plan, tests=tests)
        with code.block("try:"):
            code.add(unpack, *(escape_check(plan, "raise ValueError") if checks else ()), *writer.lines)
            code.add(f"append((route, {writer.key}, join_bytes((HEAD, {writer.row}, end))))")
        with code.block("except (ValueError, IndexError, TypeError):"):
            code.add(f"key, shown = {careful}(row)", "append((route, key, join_bytes((HEAD, shown, end))))")


def write_row(
    code: Code,
    plan: RowPlan,
    name: str,
    parameter: str,
    unpack: Sequence[str],
    *,
    tests: Sequence[tuple[str, str]] = (),
    stream: bool = False,
    escape: bool = False,
) -> str:
    """Write a function that returns the key and the object of one row.

    Args:
        unpack: statements that set the variables.
        tests, stream, escape: as of `Writer`.

    Returns:
        The function's name in the module.
    """
    with code.function(name, parameter) as found:
        writer = Writer(code, plan, tests=tests, stream=stream, escape=escape)
        code.add(*unpack, *writer.lines, f"return {writer.key}, {writer.row}")
    return found


def checked_columns(plan: RowPlan) -> list[int]:
    """Return the columns whose texts stand in rows or keys as they are, and so must need no escape."""
    return [i for i, column in enumerate(plan.columns) if column.is_checked or (i in plan.key and column.of_key.is_checked)]


def escape_check(plan: RowPlan, otherwise: str, *, ascii_only: bool = False) -> list[str]:
    """Return statements that test whether a row needs an escape, for all of its texts at once.

    What stands for NULL and unsent values needs none.

    Args:
        otherwise: the statement for such a row.
        ascii_only: whether all texts are known to be ASCII.
    """
    checked = checked_columns(plan)
    if not checked:
        return []
    texts = f"c{checked[0]}" if ascii_only and len(checked) == 1 else fstring([("", f"c{i}") for i in checked])
    size = "len(texts)" if ascii_only else "(len(texts) if texts.isascii() else plain_size(texts))"
    return [f"texts = {texts}", f"if len(dumps_json(texts)) != {size} + 2: {otherwise}"]
