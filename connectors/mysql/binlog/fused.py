"""The rows of an event as source code for functions that read rows and write records in one pass (`engine/encode/fused.py`).

Adjacent columns of fixed size are unpacked by one `struct`, together with the length of the text that follows them. Where the writer
accepts another form, no text is made: `integer`, `decimal.<scale>` (the unscaled number), `date` (as packed), `datetime.<digits>` (the
three bytes of the date and the hour's upper bit; the seconds of the rest of the clock; the fraction), `timestamp.<digits>` (seconds since
1970; the fraction).
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from socket import ntohl, ntohs

from connectors.engine.encode.fused import FusedSource, Single
from connectors.engine.encode.names import Names
from connectors.engine.encode.plan import Stored
from connectors.mysql.binlog import values
from connectors.mysql.binlog.codes import ColumnType
from connectors.mysql.binlog.rows import BLOBS, UTF8, Meaning, column_statements, shared_names
from connectors.mysql.binlog.table_map import StoredColumn
from connectors.mysql.binlog.values import decimal_reader, stored_groups, stored_size

_LETTERS = {ColumnType.TINY: "b", ColumnType.SHORT: "h", ColumnType.LONG: "i", ColumnType.LONGLONG: "q", ColumnType.DOUBLE: "d"}
_STRINGS = (ColumnType.VARCHAR, ColumnType.VAR_STRING, ColumnType.STRING)
_LENGTHS = {1: "B", 2: "H", 4: "I"}
_NULL_BITS = {1: "<B", 2: "<H", 4: "<I", 8: "<Q"}


def _turned(size: int) -> Callable[[int], int]:
    """Return the function that swaps a number's bytes; `ntohl` does it on usual machines, in 35 ns."""
    return lambda number: int.from_bytes(number.to_bytes(size, "little"), "big")


#: For the size of a group of digits in bytes, big-endian: its letter, and what makes the number of what was read.
_GROUP_LETTERS = {1: "B", 2: "H", 3: "3s", 4: "I"}
_SWAPPED = {1: "$", 2: "swapped2($)", 3: "int_of($, 'big')", 4: "swapped4($)"}
_NAMES: dict[str, object] = {
    "swapped2": ntohs if sys.byteorder == "little" else _turned(2),
    "swapped4": ntohl if sys.byteorder == "little" else _turned(4),
    "CLOCK_HIGHS": values.CLOCK_HIGHS,
    "CLOCK_LOWS": values.CLOCK_LOWS,
}


def event_rows(
    columns: Sequence[StoredColumn], meanings: Sequence[Meaning], indexes: Sequence[int], wanted: Sequence[Mapping[str, Stored]]
) -> FusedSource:
    """Return how the rows of a table map stand in an event's body, all columns present.

    Args:
        indexes: those of the event's columns among the table's.
        wanted: the forms that the writer accepts in addition to texts, of each column of events.
    """
    of_event = {number: i for i, number in enumerate(indexes)}
    names = shared_names(meanings)
    names.update(_NAMES)
    parts = []
    for number, column in enumerate(columns):
        i = of_event.get(number)
        variable, forms = (f"x{number}", {}) if i is None else (f"c{i}", wanted[i])
        parts.append(_Part(variable, number, column, meanings[number], forms, names))
    size = (len(columns) + 7) // 8
    single = [Single(of_event.get(part.number), f"nulls & {1 << part.number}", part.alone()) for part in parts]
    nulls = f"nulls = int_of(d[p:p + {size}], 'little')"
    if size in _NULL_BITS:
        nulls = "nulls, = null_bits(d, p)"
        names.add("null_bits", struct.Struct(_NULL_BITS[size]).unpack_from)
    stored = {of_event[part.number]: part.form for part in parts if part.form is not None and part.number in of_event}
    begin = [nulls, f"p += {size}"]
    return FusedSource(begin=begin, together=_together(parts, names), single=single, nulls="nulls", stored=stored, names=names.values)


def _unscaled(careful: Callable[[bytes], str], sizes: Sequence[int]) -> Callable[..., int]:
    """Return the unscaled number of a decimal's groups, of which the first has been made less by its sign bit."""
    sign = 1 << (8 * sizes[0] - 1)

    def unscaled(first: int, *others: int) -> int:
        data = b"".join(group.to_bytes(size, "big") for group, size in zip((first + sign, *others), sizes, strict=True))
        return int(careful(data).replace(".", ""))

    return unscaled


class _Part:
    """One column.

    Attributes:
        form: in which it is handed over; None for a text.
        letters: of `struct`, for its value or its length; empty where the value is read by itself.
        targets: variables of these letters.
        after: statements after the unpacking.
    """

    def __init__(
        self,
        variable: str,
        number: int,
        column: StoredColumn,
        meaning: Meaning,
        forms: Mapping[str, Stored],
        names: Names,
    ) -> None:
        self._variable, self.number, self._column, self._meaning, self._names = variable, number, column, meaning, names
        self._forms = forms
        self.form: Stored | None = None
        self.letters = ""
        self.targets: list[str] = [variable]
        self.after: list[str] = []
        self.ends_run = False
        type_ = column.type
        if type_ in _LETTERS:
            letter = _LETTERS[type_]
            self.letters = letter.upper() if meaning.unsigned and letter != "d" else letter
            if letter == "d":
                self.after = [f"{variable} = double_text({variable})"]
            else:
                self._use_form("integer", [], [f"{variable} = str({variable})"])
        elif type_ is ColumnType.INT24:
            self.letters = "3s"
            shown = f"int_of({variable}, 'little', signed={not meaning.unsigned})"
            self._use_form("integer", [f"{variable} = {shown}"], [f"{variable} = str({shown})"])
        elif type_ is ColumnType.NEWDECIMAL:
            self._decimal()
        elif type_ is ColumnType.DATE:
            self.letters = "3s"
            packed = f"int_of({variable}, 'little')"
            self._use_form("date", [f"{variable} = {packed}"], [f"{variable} = LOG_DATES[{packed}]"])
        elif type_ is ColumnType.DATETIME2 and f"datetime.{column.size}" in forms:
            self._datetime()
        elif type_ is ColumnType.TIMESTAMP2 and f"timestamp.{column.size}" in forms:
            self._timestamp()
        elif (type_ in _STRINGS or type_ in BLOBS) and meaning.charset in UTF8:
            self._text()

    def _use_form(self, form: str, stored: list[str], shown: list[str]) -> None:
        self.form = self._forms.get(form)
        self.after = shown if self.form is None else stored

    def _decimal(self) -> None:
        column, v = self._column, self._variable
        size = stored_size(column.size, column.scale)
        if not size:
            return
        careful = decimal_reader(column.size, column.scale)
        self._names.add(f"decimal{self.number}", careful)
        self.form = self._forms.get(f"decimal.{column.scale}")
        if self.form is None:
            self.letters = f"{size}s"
            self.after = [f"{v} = decimal{self.number}({v})"]
            return
        groups = stored_groups(column.size, column.scale)
        sizes = [last - first for first, last, _ in groups]
        self._names.add(f"log_unscaled{self.number}", _unscaled(careful, sizes))
        self.letters = "".join(_GROUP_LETTERS[size] for size in sizes)
        self.targets = [f"{v}_{i}" for i in range(len(groups))]
        # a negative number has no sign bit, which makes the first group one below zero
        swapped = [_SWAPPED[size].replace("$", target) for size, target in zip(sizes, self.targets, strict=True)]
        swapped[0] += f" - {1 << (8 * sizes[0] - 1)}"
        self.after = [f"{target} = {way}" for target, way in zip(self.targets, swapped, strict=True) if target != way]
        value = ""
        for target, (_, _, digits) in zip(self.targets, groups, strict=True):
            value = f"({value}) * {10**digits} + {target}" if value else target
        limits = [f"{target} < {10**digits}" for target, (_, _, digits) in zip(self.targets, groups, strict=True)]
        limits[0] = f"0 <= {limits[0]}"
        self.after.append(f"{v} = {value} if {' and '.join(limits)} else log_unscaled{self.number}({', '.join(self.targets)})")

    def _datetime(self) -> None:
        number, digits = self._variable[1:], self._column.size
        clock, low = f"clock{number}", f"low{number}"
        self.form = self._forms[f"datetime.{digits}"]
        self.letters = "3sBB"
        self.targets = [self._variable, clock, low]
        self.after = [f"{clock} = CLOCK_HIGHS[{clock}] + CLOCK_LOWS[{low}]"]
        self._fraction()

    def _timestamp(self) -> None:
        v = self._variable
        self.form = self._forms[f"timestamp.{self._column.size}"]
        self.letters = "I"
        self.after = [f"{v} = swapped4({v})"]
        self._fraction()

    def _fraction(self) -> None:
        digits, f = self._column.size, f"fraction{self._variable[1:]}"
        if digits:
            self.letters += f"{(digits + 1) // 2}s"
            self.targets.append(f)
            self.after.append(f"{f} = int_of({f}, 'big'){' // 10' if digits % 2 else ''}")

    def _text(self) -> None:
        v, column = self._variable, self._column
        size = (2 if column.size > 255 else 1) if column.type in _STRINGS else column.size
        if size not in _LENGTHS:
            return
        self.letters, self.ends_run = _LENGTHS[size], True
        self.after = [
            f"q = p + {v}",
            f"{v} = s[p:q]",
            f"if not {v}.isascii(): {v} = d[p:q].decode('utf-8', 'replace')",
            "p = q",
        ]

    def alone(self) -> list[str]:
        """Return statements that read the value by itself."""
        if self.letters:
            return _run([self], self._names)
        return column_statements(self._variable, self.number, self._column, self._meaning, self._names)


@cache
def _form(letters: str) -> struct.Struct:
    return struct.Struct(letters)


def _together(parts: Sequence[_Part], names: Names) -> list[str]:
    lines: list[str] = []
    run: list[_Part] = []
    for part in parts:
        if not part.letters:
            lines += [*_run(run, names), *part.alone()]
            run = []
            continue
        run.append(part)
        if part.ends_run:
            lines += _run(run, names)
            run = []
    return [*lines, *_run(run, names)]


def _run(run: Sequence[_Part], names: Names) -> list[str]:
    if not run:
        return []
    form = _form("<" + "".join(part.letters for part in run))
    name = f"run{run[0].number}_{run[-1].number}"
    names.add(name, form.unpack_from)
    targets = [target for part in run for target in part.targets]
    return [
        f"{', '.join(targets)}{',' if len(targets) == 1 else ''} = {name}(d, p)",
        f"p += {form.size}",
        *(line for part in run for line in part.after),
    ]
