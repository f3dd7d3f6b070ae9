"""Source text of a table's row functions: one writer plan, a reader for each form in which rows come (performance.md §6.1).

For a table and schema version this gives one module of Python text with
  quick_copy_rows   a loop over lines of COPY text that hold no NULL and nothing that JSON must escape
  nulls_copy_rows   the same with `\\N` in places
  quick_tuple       a pgoutput tuple whose values are all sent, short, ASCII and need no escape
  careful           texts (None is NULL, UNCHANGED an unsent value) → key and row; every text that `ColumnPlan.convert` takes
A quick function that meets an odd value raises ValueError or IndexError and the caller takes the careful way with that row; it never
writes something else than `careful` would (tests/unit/test_encode_property.py).

How it is made, with what was measured (2 vCPU, CPython 3.11, the ten columns of the benchmark's table):
  * str, not bytes: an f-string of ten values and its encoding takes 0.18 µs, `bytes %` 0.40 µs, `b"".join` 0.27 µs;
  * the row's text is joined with the schema prefix and the end by one `b"".join`: 0.09 µs for 3.6 kB, two additions 0.13 µs;
  * whether anything needs an escape is asked of orjson for a whole batch: its output is longer than its input by one for each quote,
    backslash, tab and newline and by five for other control characters: 0.07 µs a row; one regular expression a row takes 0.40 µs;
  * pgoutput values are split off by the marker of a length below 256, `t\\0\\0\\0`, which no text can hold: 0.3 µs; unpacking lengths
    one by one 0.8 to 1.6 µs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from connectors.engine.encode.plan import ColumnPlan


@dataclass(frozen=True, slots=True)
class RowPlan:
    """What the generator needs to know of a table.

    Attributes:
        columns: the columns of events, in order.
        positions: of each of them in a pgoutput tuple.
        width: the number of columns of a pgoutput tuple.
        labels: each column's name as JSON text, with the colon.
        key_labels: the same for keys, in key order.
        key: indexes into `columns`, in key order.
        key_head: text before a key's first value, up to the opening brace; key_end after the last.
        numeric_key: whether decimals of keys are JSON numbers; numeric_row of rows.
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


def source_text(plan: RowPlan) -> str:
    """The module's text. The names it uses besides its own are given by `connectors.engine.encode.table`."""
    return "\n".join(
        [
            *_copy_rows(plan, "quick_copy_rows", nulls=False),
            *_copy_rows(plan, "nulls_copy_rows", nulls=True),
            *_quick_tuple(plan),
            *_careful(plan, "careful", snapshot=False),
            *_careful(plan, "careful_copy", snapshot=True),
            "",
        ]
    )


def _literal(text: str) -> str:
    """A part of an f-string, written as an ordinary literal beside it."""
    return repr(text)


def _fstring(parts: Iterable[tuple[str, str]]) -> str:
    """One f-string of (text, expression) pairs; an empty expression adds nothing."""
    pieces: list[str] = []
    text = ""
    for literal, expression in parts:
        text += literal
        if expression:
            pieces += [_literal(text)] if text else []
            pieces.append(f'f"{{{expression}}}"')
            text = ""
    if text or not pieces:
        pieces.append(_literal(text))
    return "(" + " ".join(pieces) + ")"


class _Writer:
    """Expressions for the columns' JSON text in one generated function.

    Args:
        nulls: whether a text may be `\\N`.
        stream: whether rows come from pgoutput.
    """

    def __init__(self, plan: RowPlan, *, nulls: bool, stream: bool = False) -> None:
        self.plan, self.nulls, self.stream = plan, nulls, stream
        self.lines: list[str] = []
        in_key = set(plan.key)
        self._row = [self._expression(i, "n", plan.numeric_row, shared=i in in_key) for i in range(len(plan.columns))]
        self._key = [
            self._row[i]
            if plan.numeric_key == plan.numeric_row or plan.columns[i].numeric is None
            else self._expression(i, "m", plan.numeric_key, shared=False)
            for i in plan.key
        ]

    def _expression(self, index: int, null: str, numeric: bool, *, shared: bool) -> tuple[str, bool]:
        """A column's expression and whether it stands inside quotes."""
        column, variable = self.plan.columns[index], f"c{index}"
        if self.stream and column.missing_in_stream:
            return f"null{index}", False
        if column.textual:
            value, quoted = variable, True
        elif numeric and column.numeric is not None:
            value, quoted = f"numeric{index}({variable})", False
        elif column.quick:
            value, quoted = column.quick.replace("$", variable), column.quoted
        elif column.convert is None:
            value, quoted = variable, False
        else:
            value, quoted = f"convert{index}({variable})", False
        if self.nulls:
            shown = f"f'\"{{{value}}}\"'" if quoted and value == variable else _quoted(value) if quoted else value
            self.lines.append(f"{null}j{index} = {null}ull{index} if {variable} == NULL else {shown}")
            return f"{null}j{index}", False
        if shared and value != variable:
            self.lines.append(f"j{index} = {value}")
            return f"j{index}", quoted
        return value, quoted

    def row(self) -> str:
        """The row's object."""
        return _fstring(self._object("{", self.plan.labels, self._row, "}"))

    def key(self) -> str:
        """The key, schema included; None for a table without."""
        if not self.plan.key:
            return "None"
        return _fstring(self._object(self.plan.key_head, self.plan.key_labels, self._key, self.plan.key_end)) + ".encode()"

    @staticmethod
    def _object(head: str, labels: Sequence[str], values: Sequence[tuple[str, bool]], end: str) -> Iterable[tuple[str, str]]:
        text = head
        for label, (expression, quoted) in zip(labels, values, strict=True):
            mark = '"' if quoted else ""
            yield text + label + mark, expression
            text = mark + ","
        yield (text[:-1] if values else text) + end, ""


def _quoted(value: str) -> str:
    """An expression that puts quotes around another expression, which may hold apostrophes but no quotes."""
    return f'QUOTE + f"{{{value}}}" + QUOTE'


def _copy_rows(plan: RowPlan, name: str, *, nulls: bool) -> list[str]:
    writer = _Writer(plan, nulls=nulls)
    names = ", ".join(f"c{i}" for i in range(len(plan.columns)))
    split = f"{names} = line.split(TAB)" if len(plan.columns) > 1 else f"{names or '_'} = line"
    return [
        f"def {name}(lines, route, end, append):",
        "    for line in lines:",
        "        try:",
        f"            {split}",
        *(f"            {line}" for line in writer.lines),
        f"            append((route, {writer.key()}, join((HEAD, {writer.row()}.encode(), end))))",
        "        except (ValueError, IndexError):",
        "            key, row = careful_line(line)",
        "            append((route, key, join((HEAD, row, end))))",
    ]


def _quick_tuple(plan: RowPlan) -> list[str]:
    writer = _Writer(plan, nulls=False, stream=True)
    targets = ["_"] * plan.width
    for index, position in enumerate(plan.positions):
        targets[position] = f"c{index}"
    checked = [f"c{i}" for i, column in enumerate(plan.columns) if column.textual]
    check = []
    if checked:
        texts = checked[0] if len(checked) == 1 else 'f"' + "".join(f"{{{name}}}" for name in checked) + '"'
        check = [f"    texts = {texts}", "    if len(dumps(texts)) != len(texts) + 2:", "        raise ValueError"]
    return [
        "def quick_tuple(pieces):",
        f"    _, {', '.join(targets)} = pieces",
        *(f"    c{i} = c{i}[1:]" for i in range(len(plan.columns))),
        *check,
        *(f"    {line}" for line in writer.lines),
        f"    return {writer.key()}, {writer.row()}.encode()",
    ]


def _careful(plan: RowPlan, name: str, *, snapshot: bool) -> list[str]:
    lines = [f"def {name}({', '.join(f'c{i}' for i in range(len(plan.columns)))}):"]

    def value(index: int, numeric: bool) -> str:
        column, variable = plan.columns[index], f"c{index}"
        if column.textual:
            return f"quote({variable})"
        if numeric and column.numeric is not None:
            return f"numeric{index}({variable})"
        if snapshot and column.snapshot is not None:
            return f"snapshot{index}({variable})"
        return variable if column.convert is None else f"convert{index}({variable})"

    row = []
    for index, column in enumerate(plan.columns):
        text = f"null{index}" if column.missing_in_stream and not snapshot else value(index, plan.numeric_row)
        lines.append(f"    j{index} = null{index} if c{index} is None else placeholder{index} if c{index} is UNCHANGED else {text}")
        row.append((f"j{index}", False))
    key = []
    for index in plan.key:
        if plan.columns[index].numeric is not None and plan.numeric_key != plan.numeric_row:
            lines.append(f"    mj{index} = mull{index} if c{index} is None or c{index} is UNCHANGED else {value(index, plan.numeric_key)}")
            key.append((f"mj{index}", False))
        else:
            key.append((f"j{index}", False))
    shown = _fstring(_Writer._object("{", plan.labels, row, "}"))
    key_text = _fstring(_Writer._object(plan.key_head, plan.key_labels, key, plan.key_end)) + ".encode()" if plan.key else "None"
    return [*lines, f"    return {key_text}, {shown}.encode()"]
