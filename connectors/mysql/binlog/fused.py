"""Rows of an event for functions that read and write them in one (`engine/encode/fused.py`).

Neighbours of fixed size are taken out by one `struct`, the length of a text behind them included. Where the writer takes a stored form, no
text is made: `integer`, `decimal.<scale>` (the unscaled number), `date` (as packed), `datetime.<digits>` (as packed, without the offset;
and the fraction), `timestamp.<digits>` (seconds since 1970; and the fraction).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from connectors.engine.encode.fused import FusedSource, Single
from connectors.engine.encode.plan import Stored
from connectors.mysql.binlog import temporal
from connectors.mysql.binlog.codes import ColumnType
from connectors.mysql.binlog.columns import BLOBS, UTF8, Meaning, column_statements, shared_names
from connectors.mysql.binlog.decimals import decimal_reader, stored_groups, stored_size
from connectors.mysql.binlog.table_map import StoredColumn

_LETTERS = {ColumnType.TINY: "b", ColumnType.SHORT: "h", ColumnType.LONG: "i", ColumnType.LONGLONG: "q", ColumnType.DOUBLE: "d"}
_STRINGS = (ColumnType.VARCHAR, ColumnType.VAR_STRING, ColumnType.STRING)
_LENGTHS = {1: "B", 2: "H", 4: "I"}


def event_rows(
    columns: Sequence[StoredColumn], meanings: Sequence[Meaning], places: Sequence[int], wanted: Sequence[Stored | None]
) -> FusedSource:
    """How the rows of a table map stand in an event's body, all columns present.

    Args:
        places: of the columns of events among the table's.
        wanted: the stored form that the writer takes, of each column of events.
    """
    index = {place: i for i, place in enumerate(places)}
    names: dict[str, object] = shared_names(meanings)
    parts = []
    for place, column in enumerate(columns):
        i = index.get(place)
        variable, form = (f"x{place}", None) if i is None else (f"c{i}", wanted[i])
        parts.append(_Part(variable, place, column, meanings[place], form, names))
    size = (len(columns) + 7) // 8
    single = [Single(index.get(part.place), f"nulls & {1 << part.place}", part.alone()) for part in parts]
    begin = [f"nulls = int_of(d[p:p + {size}], 'little')", f"p += {size}"]
    stored = frozenset(index[part.place] for part in parts if part.form is not None and part.place in index)
    return FusedSource(begin, _together(parts, names), single, "nulls", stored, names)


class _Part:
    """One column.

    Attributes:
        form: the stored form in which it is handed over; None for a text.
        letters: of `struct`, for its value or its length; empty where the value is read by itself.
        targets: variables of these letters.
        after: statements behind the unpacking.
    """

    def __init__(
        self, variable: str, place: int, column: StoredColumn, meaning: Meaning, wanted: Stored | None, names: dict[str, object]
    ) -> None:
        self._variable, self.place, self._column, self._meaning, self._names = variable, place, column, meaning, names
        self._fraction = f"fraction{variable[1:]}"
        self.form: str | None = None
        self.letters = ""
        self.targets: list[str] = [variable]
        self.after: list[str] = []
        self.ends_run = False
        form = None if wanted is None else wanted.form
        type_ = column.type
        if type_ in _LETTERS:
            letter = _LETTERS[type_]
            self.letters = letter.upper() if meaning.unsigned and letter != "d" else letter
            if letter == "d":
                self.after = [f"{variable} = double_text({variable})"]
            else:
                self._take(form, "integer", [], [f"{variable} = str({variable})"])
        elif type_ is ColumnType.INT24:
            self.letters = "3s"
            shown = f"int_of({variable}, 'little', signed={not meaning.unsigned})"
            self._take(form, "integer", [f"{variable} = {shown}"], [f"{variable} = str({shown})"])
        elif type_ is ColumnType.NEWDECIMAL:
            self._decimal(form)
        elif type_ is ColumnType.DATE:
            self.letters = "3s"
            packed = f"int_of({variable}, 'little')"
            self._take(form, "date", [f"{variable} = {packed}"], [f"{variable} = LOG_DATES[{packed}]"])
        elif type_ is ColumnType.DATETIME2 and form == f"datetime.{column.size}":
            self._moment(form, "5s", f" - {temporal.DATETIME_OFFSET}")
        elif type_ is ColumnType.TIMESTAMP2 and form == f"timestamp.{column.size}":
            self._moment(form, "4s", "")
        elif (type_ in _STRINGS or type_ in BLOBS) and meaning.charset in UTF8:
            self._text()

    def _take(self, wanted: str | None, form: str, stored: list[str], shown: list[str]) -> None:
        self.form = form if wanted == form else None
        self.after = stored if wanted == form else shown

    def _decimal(self, wanted: str | None) -> None:
        column, v = self._column, self._variable
        size = stored_size(column.size, column.scale)
        if not size:
            return
        self.letters = f"{size}s"
        self._names[f"decimal{self.place}"] = careful = decimal_reader(column.size, column.scale)
        if wanted != f"decimal.{column.scale}":
            self.after = [f"{v} = decimal{self.place}({v})"]
            return
        self.form = wanted
        self._names[f"log_unscaled{self.place}"] = lambda data: int(careful(data).replace(".", ""))
        limits, value = [], ""
        for i, (first, last, digits) in enumerate(stored_groups(column.size, column.scale)):
            shift = 8 * (size - last)
            mask = f" & {(1 << 8 * (last - first)) - 1}" if i else ""
            self.after.append(f"g{i} = v >> {shift}{mask}" if shift else f"g{i} = v{mask}")
            limits.append(f"g{i} < {10**digits}")
            value = f"({value}) * {10**digits} + g{i}" if value else f"g{i}"
        # a negative number has no sign bit, which makes the first group one below zero
        self.after = [
            f"v = int_of({v}, 'big') - {1 << (8 * size - 1)}",
            *self.after,
            f"{v} = {value} if v >= 0 and {' and '.join(limits)} else log_unscaled{self.place}({v})",
        ]

    def _moment(self, form: str, letters: str, offset: str) -> None:
        v, f, digits = self._variable, self._fraction, self._column.size
        self.form, self.letters = form, letters
        self.after = [f"{v} = int_of({v}, 'big'){offset}"]
        if digits:
            self.letters += f"{(digits + 1) // 2}s"
            self.targets = [v, f]
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
        """Statements that read the value by itself."""
        if self.letters:
            return _run([self], self._names)
        return column_statements(self._variable, self.place, self._column, self._meaning, self._names)


def _together(parts: Sequence[_Part], names: dict[str, object]) -> list[str]:
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


def _run(run: Sequence[_Part], names: dict[str, object]) -> list[str]:
    if not run:
        return []
    form = struct.Struct("<" + "".join(part.letters for part in run))
    name = f"run{run[0].place}_{run[-1].place}"
    names[name] = form.unpack_from
    targets = [target for part in run for target in part.targets]
    return [
        f"{', '.join(targets)}{',' if len(targets) == 1 else ''} = {name}(d, p)",
        f"p += {form.size}",
        *(line for part in run for line in part.after),
    ]
