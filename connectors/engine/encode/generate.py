"""Source text of a table's row functions: one writer plan, a reader for each form in which rows come.

For a table and schema version this gives one module of Python text with
  text_rows     a loop over rows of texts, None for NULL, that need no escape
  plain_stream  texts of one row of a stream that need no escape
  mixed_snapshot, mixed_stream  texts of one row, where None is NULL and UNCHANGED an unsent value, escapes made where they are needed
and a connector adds functions for the forms in which its rows come (`connectors.postgres.encode.table`).
All of them use the columns' quick expressions, so a text that is unusual for its type makes them raise ValueError or IndexError; the caller
then takes that row through `ColumnPlan.convert`, column by column. They never write something else than that would
(tests/unit/connectors/engine/test_encode_property.py).

How it is made, with what was measured (2 vCPU, CPython 3.11, the ten columns of the benchmark's table):
  * str, not bytes: an f-string of ten values and its encoding takes 0.18 µs, `bytes %` 0.40 µs, `b"".join` 0.27 µs;
  * the row's text is joined with the schema prefix and the end by one `b"".join`: 0.09 µs for 3.6 kB, two additions 0.13 µs;
  * whether anything needs an escape is asked of orjson for a whole batch: its output is longer than its input by one for each quote,
    backslash, tab and newline and by more for other control characters: 0.07 µs a row; one regular expression a row takes 0.40 µs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from connectors.engine.encode.plan import ColumnPlan, Stored


@dataclass(frozen=True, slots=True)
class RowPlan:
    """What the generator needs to know of a table.

    Attributes:
        columns: the columns of events, in order.
        positions: of each of them in a row of the source.
        width: the number of columns of such a row.
        labels: each column's name as JSON text, with the colon.
        key_labels: the same for keys, in key order.
        key: indexes into `columns`, in key order.
        key_head: text before a key's first value, up to the opening brace; key_end after the last.
        numeric_key: whether decimals of keys are JSON numbers; numeric_row of rows.
        nulls_as_defaults: whether NULL is written as the column's default.
        key_mark: a field, as JSON text, that stands last in every key of the table; empty for none.
    """

    columns: Sequence[ColumnPlan]
    positions: Sequence[int]
    width: int
    labels: Sequence[str]
    key_labels: Sequence[str]
    key: Sequence[int]
    key_head: str
    key_end: str
    numeric_key: bool
    numeric_row: bool
    nulls_as_defaults: bool
    key_mark: str = ""

    @property
    def key_tail(self) -> str:
        """What follows the last of a key's columns."""
        return ("," + self.key_mark if self.key and self.key_mark else self.key_mark) + self.key_end


def source_text(plan: RowPlan) -> str:
    """Return the module's text. `TableEncoder` provides the names that it uses in addition to its own."""
    return "\n".join(
        [
            *_text_rows(plan),
            *_plain_stream(plan),
            *_mixed(plan, "mixed_snapshot", stream=False),
            *_mixed(plan, "mixed_stream", stream=True),
            "",
        ]
    )


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
        plan: RowPlan,
        *,
        tests: Sequence[tuple[str, str]] = (),
        stream: bool = False,
        escape: bool = False,
        stored: Mapping[int, Stored] = MappingProxyType({}),
        apart: bool = False,
    ) -> None:
        self.plan, self.tests, self.stream, self.escape, self._stored, self._apart = plan, tests, stream, escape, stored, apart
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
        column, variable = self.plan.columns[index], f"c{index}"
        if target == "k":
            column = column.of_key
        if self.stream and column.missing_in_stream:
            return f"{target}null{index}", False
        value, quoted = self._plain(column, index, target, numeric)
        shown = f"f'\"{{{variable}}}\"'" if value == variable and quoted else f'QUOTE + f"{{{value}}}" + QUOTE' if quoted else value
        if self._apart:
            self.shown[index].append(f"{target}{index} = {shown}")
            self.nulls[index].append(f"{target}{index} = {target}null{index}")
            return f"{target}{index}", False
        if self.tests:
            other = "".join(f"{target}{result}{index} if {test.replace('$', variable)} else " for test, result in self.tests)
            self.lines.append(f"{target}{index} = {other}{shown}")
            return f"{target}{index}", False
        if shared and value != variable:
            self.lines.append(f"{target}{index} = {value}")
            return f"{target}{index}", quoted
        return value, quoted

    def _plain(self, column: ColumnPlan, index: int, target: str, numeric: bool) -> tuple[str, bool]:
        variable = f"c{index}"
        if index in self._stored:
            return self._stored[index].shown(index), column.quoted
        if column.textual:
            return (f"quote({variable})", False) if self.escape or column.marked_up else (variable, True)
        if numeric and column.numeric is not None:
            return f"{target}numeric{index}({variable})", False
        if not self.stream and column.quick_copy is not None:
            if not column.quick_copy:
                return f"{target}snapshot{index}({variable})", False
            return column.quick_copy.replace("$", variable), column.quoted
        if column.quick:
            return column.quick.replace("$", variable), column.quoted
        if column.convert is None:
            return variable, False
        return f"{target}convert{index}({variable})", False


def _object(head: str, labels: Sequence[str], values: Sequence[tuple[str, bool]], end: str) -> str:
    return fstring(object_parts(head, labels, values, end))


def variables(plan: RowPlan) -> str:
    """Return the variables of a row's texts, as a target of an assignment."""
    return ", ".join(f"c{i}" for i in range(len(plan.columns))) or "_"


def _text_rows(plan: RowPlan) -> list[str]:
    writer = Writer(plan, tests=[("$ is None", "null")])
    return [
        "def text_rows(rows, route, end, append):",
        "    for row in rows:",
        "        try:",
        f"            {variables(plan)}{',' if len(plan.columns) == 1 else ''} = row",
        *(f"            {line}" for line in (*_escape_check(plan, "raise ValueError"), *writer.lines)),
        f"            append((route, {writer.key}, join((HEAD, {writer.row}, end))))",
        "        except (ValueError, IndexError):",
        "            key, shown = careful(row)",
        "            append((route, key, join((HEAD, shown, end))))",
    ]


def _plain_stream(plan: RowPlan) -> list[str]:
    """Return the function `plain_stream`, which calls `mixed_stream` where a text needs an escape."""
    writer = Writer(plan, tests=[("$ is None", "null"), ("$ is UNCHANGED", "placeholder")], stream=True)
    return [
        "def plain_stream(row):",
        f"    {variables(plan)}{',' if len(plan.columns) == 1 else ''} = row",
        *(f"    {line}" for line in (*_escape_check(plan, "return mixed_stream(row)"), *writer.lines)),
        f"    return {writer.key}, {writer.row}",
    ]


def checked_variables(plan: RowPlan) -> list[str]:
    """Return the variables of texts that stand in rows or keys as they are, and so must need no escape."""
    return [f"c{i}" for i, column in enumerate(plan.columns) if column.is_checked or (i in plan.key and column.of_key.is_checked)]


def _escape_check(plan: RowPlan, otherwise: str) -> list[str]:
    """Return whether a row needs an escape, asked for all of its texts at once. What stands for NULL and unsent values needs none."""
    checked = checked_variables(plan)
    if not checked:
        return []
    texts = 'f"' + "".join(f"{{{name}}}" for name in checked) + '"'
    return [f"texts = {texts}", f"if len(dumps(texts)) != (len(texts) if texts.isascii() else plain_size(texts)) + 2: {otherwise}"]


def _mixed(plan: RowPlan, name: str, *, stream: bool) -> list[str]:
    tests = [("$ is None", "null"), ("$ is UNCHANGED", "placeholder")] if stream else [("$ is None", "null")]
    writer = Writer(plan, tests=tests, stream=stream, escape=True)
    return [
        f"def {name}(texts):",
        f"    {variables(plan)}{',' if len(plan.columns) == 1 else ''} = texts",
        *(f"    {line}" for line in writer.lines),
        f"    return {writer.key}, {writer.row}",
    ]
