"""How columns stand in the rows of events, as statements for generated functions that read them (`engine/encode/fused.py`).

The statements read bytes `d`, of which `s` is the text with a character for each, at `p`, up to `end`. The texts are those of MySQL's text
protocol, so that snapshot and binlog share one conversion for each type: bytes are texts of the characters U+0000 to U+00FF, floating point
numbers have all significant digits, and JSON is as Debezium streams it. What the event does not contain (signs, character sets, labels)
comes from the model as `Meaning`s.

Adjacent columns of fixed size are unpacked by one `struct`, together with the length of the text that follows them. Where the writer
accepts another form, no text is made: `integer`, `decimal.<scale>` (the unscaled number), `date` (as packed), `datetime.<digits>` (the
three bytes of the date and the hour's upper bit; the seconds of the rest of the clock; the fraction), `timestamp.<digits>` (seconds since
1970; the fraction).
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from socket import ntohl, ntohs
from types import MappingProxyType

from connect_py.data.java_text import double_text, float_text
from connectors.engine.encode.fused import FusedSource, Single
from connectors.engine.encode.plan import Stored
from connectors.mysql.binlog import values
from connectors.mysql.binlog.charsets import decoder
from connectors.mysql.binlog.codes import ColumnType, MalformedEventError
from connectors.mysql.binlog.cursor import unpacked_value
from connectors.mysql.binlog.json_text import json_text, server_json_text
from connectors.mysql.binlog.table_map import StoredColumn
from connectors.mysql.binlog.values import decimal_reader, stored_groups, stored_size

_BLOBS = (ColumnType.TINY_BLOB, ColumnType.MEDIUM_BLOB, ColumnType.LONG_BLOB, ColumnType.BLOB)
#: Character sets that are read as UTF-8.
_UTF8 = ("utf8mb4", "utf8mb3", "utf8")
_BYTES_ONLY = (ColumnType.GEOMETRY, ColumnType.VECTOR)
_FORMATS = {ColumnType.TINY: "b", ColumnType.SHORT: "h", ColumnType.LONG: "i", ColumnType.LONGLONG: "q", ColumnType.DOUBLE: "d"}
_STRINGS = (ColumnType.VARCHAR, ColumnType.VAR_STRING, ColumnType.STRING)
_LENGTHS = {1: "B", 2: "H", 4: "I"}
_NULL_BITS = {1: "<B", 2: "<H", 4: "<I", 8: "<Q"}


def turned(size: int) -> Callable[[int], int]:
    """Return the function that swaps a number's bytes; `ntohl` does it on usual machines, in 35 ns."""
    return lambda number: int.from_bytes(number.to_bytes(size, "little"), "big")


#: For the size of a group of digits in bytes, big-endian: its struct format, and what makes the number of what was read.
_GROUP_FORMATS = {1: "B", 2: "H", 3: "3s", 4: "I"}
_SWAPPED = {1: "$", 2: "swapped_2($)", 3: "int_of($, 'big')", 4: "swapped_4($)"}
_NAMES: dict[str, object] = {
    "swapped_2": ntohs if sys.byteorder == "little" else turned(2),
    "swapped_4": ntohl if sys.byteorder == "little" else turned(4),
    "CLOCK_HIGHS": values.CLOCK_HIGHS,
    "CLOCK_LOWS": values.CLOCK_LOWS,
}


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a table's model knows of a column.

    Attributes:
        unsigned: whether an integer has no sign.
        charset: of character data; empty for bytes.
        labels: of an enum or a set, in order.
        server_json: whether dates and times inside of JSON are to have the server's digits.
    """

    unsigned: bool = False
    charset: str = ""
    labels: tuple[str, ...] = ()
    server_json: bool = False


def _shared_names(meanings: Sequence[Meaning]) -> dict[str, object]:
    """Return what the statements of all columns use."""
    return {
        **_NAMES,
        "LOG_CLOCKS": values.CLOCKS,
        "LOG_DATES": values.DATES,
        "LOG_DAYS": values.DAYS_OF_DATETIME,
        "LOG_EPOCH_DAYS": values.EPOCH_DAYS,
        "MalformedEventError": MalformedEventError,
        "LOG_SECONDS": values.SECONDS,
        "LOG_TIMES": values.TIMES,
        "ZERO_MOMENT": values.ZERO_MOMENT,
        "double_text": double_text,
        "float_text": float_text,
        "float_at": struct.Struct("<f").unpack_from,
        "json_text": server_json_text if any(meaning.server_json for meaning in meanings) else json_text,
        "int_of": int.from_bytes,
        "set_text": _set_text,
        "log_moments": values,
    }


def _column_statements(c: str, index: int, column: StoredColumn, meaning: Meaning, names: dict[str, object], document: str) -> list[str]:
    """Return statements that read one value of a type that no `struct` reads, as a text, and move `p` after it.

    Args:
        c: the variable.
        index: of the column, for the names that its statements add.

    Raises:
        MalformedEventError: values of the type have no form in rows.
    """
    type_ = column.type
    if type_ in _BLOBS or type_ in _BYTES_ONLY or type_ is ColumnType.JSON:
        if type_ is ColumnType.JSON:
            return _sized(c, column.size, document or "json_text(d[p:q])")
        return _sized(c, column.size, _decoded(index, meaning.charset, names))
    match type_:
        case ColumnType.VARCHAR_COMPRESSED | ColumnType.BLOB_COMPRESSED:
            length_size = column.size if type_ is ColumnType.BLOB_COMPRESSED else 2 if column.size > 255 else 1
            names["unpacked_value"] = unpacked_value
            names[f"decode_{index}"] = decoder(meaning.charset or "binary")
            return _sized(c, length_size, f"decode_{index}(unpacked_value(d[p:q]))")
        case ColumnType.VARCHAR | ColumnType.VAR_STRING | ColumnType.STRING:
            return _sized(c, 2 if column.size > 255 else 1, _decoded(index, meaning.charset, names))
        case ColumnType.FLOAT:
            return [f"{c} = float_text(float_at(d, p)[0])", "p += 4"]
        case ColumnType.NEWDECIMAL:
            names[f"decimal_{index}"] = decimal_reader(column.size, column.scale)
            return _fixed(c, stored_size(column.size, column.scale), f"decimal_{index}($)")
        case ColumnType.BIT:
            return _fixed(c, (column.size + 7) // 8, "$.decode('latin-1')")
        case ColumnType.YEAR:
            return [f"{c} = str(1900 + d[p]) if d[p] else '0000'", "p += 1"]
        case ColumnType.ENUM:
            names[f"labels_{index}"] = ("", *meaning.labels)
            return _fixed(c, column.size, f"labels_{index}[int_of($, 'little')]")
        case ColumnType.SET:
            names[f"labels_{index}"] = meaning.labels
            return _fixed(c, column.size, f"set_text(int_of($, 'little'), labels_{index})")
    return _time_statements(c, column)


def _time_statements(c: str, column: StoredColumn) -> list[str]:
    """Return statements for dates and times."""
    match column.type:
        case ColumnType.NEWDATE:
            return _fixed(c, 3, "LOG_DATES[int_of($, 'little')]")
        case ColumnType.DATETIME2:
            return [
                f"v = int_of(d[p:p + 5], 'big') - {values.DATETIME_OFFSET}",
                f"{c} = LOG_DAYS[v >> 17] + LOG_CLOCKS[v & 0x1FFFF]{_fraction(column.size, 5)}",
                f"p += {5 + (column.size + 1) // 2}",
            ]
        case ColumnType.TIMESTAMP2:
            fraction = _fraction(column.size, 4)
            return [
                "v = int_of(d[p:p + 4], 'big')",
                f"{c} = (LOG_EPOCH_DAYS[v // 86400] + LOG_SECONDS[v % 86400] if v else ZERO_MOMENT){fraction}",
                f"p += {4 + (column.size + 1) // 2}",
            ]
        case ColumnType.TIME2 if column.size == 0:
            return _fixed(c, 3, "LOG_TIMES[int_of($, 'big')]")
        case ColumnType.TIME2:
            return _fixed(c, 3 + (column.size + 1) // 2, f"log_moments.time2_text($, {column.size})")
        case ColumnType.DATETIME:
            return _fixed(c, 8, "log_moments.datetime_text($)")
        case ColumnType.TIMESTAMP:
            return _fixed(c, 4, "log_moments.timestamp_text($)")
        case ColumnType.TIME:
            return _fixed(c, 3, "log_moments.time_text($)")
    raise MalformedEventError(f"columns of the type {column.type.name} have no form in rows")


def _fraction(digits: int, at: int) -> str:
    """Return statements that read the hundredths, ten-thousandths or millionths after a time, and show some of their digits."""
    if not digits:
        return ""
    size = (digits + 1) // 2
    octets = f"int_of(d[p + {at}:p + {at + size}], 'big')"
    return f" + '.%0{digits}d' % ({octets}{' // 10' if digits % 2 else ''})"


def _fixed(c: str, size: int, expression: str) -> list[str]:
    """Return statements for a value of a fixed size; `$` in the expression stands for its bytes. Fewer bytes raise where the row ends."""
    return [f"{c} = {expression.replace('$', f'd[p:p + {size}]')}", f"p += {size}"]


def _sized(c: str, length_size: int, shown: str) -> list[str]:
    """Return statements for a value that follows its length; the expression is of its bytes `d[p:q]`."""
    length = "d[p]" if length_size == 1 else f"int_of(d[p:p + {length_size}], 'little')"
    return [
        f"q = p + {length_size} + {length}",
        f"p += {length_size}",
        "if q > end: raise MalformedEventError('a value is longer than its event')",
        f"{c} = {shown}",
        "p = q",
    ]


def _decoded(index: int, charset: str, names: dict[str, object]) -> str:
    """Return the expression for the text of `d[p:q]`."""
    if charset == "":
        return "d[p:q].decode('latin-1')"
    if charset in _UTF8:
        return "d[p:q].decode('utf-8', 'replace')"
    names[f"decode_{index}"] = decoder(charset)
    return f"decode_{index}(d[p:q])"


def _set_text(bits: int, labels: Sequence[str]) -> str:
    if bits >> len(labels):
        raise MalformedEventError(f"a set of {len(labels)} members has bits {bits:b}")
    return ",".join(label for position, label in enumerate(labels) if bits >> position & 1)


def event_rows(
    columns: Sequence[StoredColumn], meanings: Sequence[Meaning], indexes: Sequence[int], wanted: Sequence[Mapping[str, Stored]]
) -> FusedSource:
    """Return how the rows of a table map stand in an event's body, all columns present.

    Args:
        indexes: those of the event's columns among the table's.
        wanted: the forms that the writer accepts in addition to texts, of each column of events.
    """
    names = _shared_names(meanings)
    of_event = {number: i for i, number in enumerate(indexes)}
    parts = []
    for number, column in enumerate(columns):
        i = of_event.get(number)
        parts.append(_Part(number, i, column, meanings[number], {} if i is None else wanted[i], names))
    return _source(parts, names)


def image_rows(
    columns: Sequence[StoredColumn], meanings: Sequence[Meaning], held: Sequence[int], documents: Mapping[int, str] = MappingProxyType({})
) -> FusedSource:
    """Return how images that hold some of a table's columns stand in an event's body, all values as texts, without the variable `s`.

    Args:
        held: the indexes of these columns.
        documents: expressions for JSON documents that are others than what is stored, by the columns' indexes.
    """
    names = _shared_names(meanings)
    return _source([_Part(i, i, columns[i], meanings[i], None, names, documents.get(i, "")) for i in held], names)


def _source(parts: Sequence[_Part], names: dict[str, object]) -> FusedSource:
    size = (len(parts) + 7) // 8
    nulls = f"nulls = int_of(d[p:p + {size}], 'little')"
    if size in _NULL_BITS:
        nulls = "nulls, = null_bits(d, p)"
        names["null_bits"] = struct.Struct(_NULL_BITS[size]).unpack_from
    single = [Single(part.index, f"nulls & {1 << bit}", part.alone()) for bit, part in enumerate(parts)]
    stored = {part.index: part.form for part in parts if part.form is not None and part.index is not None}
    together = _together(parts, names)
    return FusedSource(begin=[nulls, f"p += {size}"], together=together, single=single, nulls="nulls", stored=stored, names=names)


def _unscaled(careful: Callable[[bytes], str], sizes: Sequence[int]) -> Callable[..., int]:
    """Return the unscaled number of a decimal's groups, of which the first has been made less by its sign bit."""
    sign = 1 << (8 * sizes[0] - 1)

    def unscaled(first: int, *others: int) -> int:
        data = b"".join(group.to_bytes(size, "big") for group, size in zip((first + sign, *others), sizes, strict=True))
        return int(careful(data).replace(".", ""))

    return unscaled


class _Part:
    """One column.

    Args:
        index: among the columns of events; None for one that they do not have.
        forms: the forms that the writer accepts; None where the text `s` is not there either.
        document: an expression for a JSON document that is another than what is stored.

    Attributes:
        form: in which it is handed over; None for a text.
        struct_format: for its value or its length; empty where the value is read by itself.
        targets: variables of what is unpacked.
        after: statements after the unpacking.
    """

    def __init__(
        self,
        number: int,
        index: int | None,
        column: StoredColumn,
        meaning: Meaning,
        forms: Mapping[str, Stored] | None,
        names: dict[str, object],
        document: str = "",
    ) -> None:
        variable = f"x{number}" if index is None else f"c{index}"
        self.number, self.index, self._variable, self._column, self._meaning, self._names = number, index, variable, column, meaning, names
        self._forms, self._document = forms or {}, document
        self.form: Stored | None = None
        self.struct_format = ""
        self.targets: list[str] = [variable]
        self.after: list[str] = []
        self.ends_run = False
        type_ = column.type
        if type_ in _FORMATS:
            code = _FORMATS[type_]
            self.struct_format = code.upper() if meaning.unsigned and code != "d" else code
            if code == "d":
                self.after = [f"{variable} = double_text({variable})"]
            else:
                self._use_form("integer", [], [f"{variable} = str({variable})"])
        elif type_ is ColumnType.INT24:
            self.struct_format = "3s"
            shown = f"int_of({variable}, 'little', signed={not meaning.unsigned})"
            self._use_form("integer", [f"{variable} = {shown}"], [f"{variable} = str({shown})"])
        elif type_ is ColumnType.NEWDECIMAL:
            self._decimal()
        elif type_ is ColumnType.DATE:
            self.struct_format = "3s"
            packed = f"int_of({variable}, 'little')"
            self._use_form("date", [f"{variable} = {packed}"], [f"{variable} = LOG_DATES[{packed}]"])
        elif type_ is ColumnType.DATETIME2 and f"datetime.{column.size}" in self._forms:
            self._datetime()
        elif type_ is ColumnType.TIMESTAMP2 and f"timestamp.{column.size}" in self._forms:
            self._timestamp()
        elif forms is not None and (type_ in _STRINGS or type_ in _BLOBS) and meaning.charset in _UTF8:
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
        self._names[f"decimal_{self.number}"] = careful
        self.form = self._forms.get(f"decimal.{column.scale}")
        if self.form is None:
            self.struct_format = f"{size}s"
            self.after = [f"{v} = decimal_{self.number}({v})"]
            return
        groups = stored_groups(column.size, column.scale)
        sizes = [last - first for first, last, _ in groups]
        self._names[f"log_unscaled_{self.number}"] = _unscaled(careful, sizes)
        self.struct_format = "".join(_GROUP_FORMATS[size] for size in sizes)
        self.targets = [f"{v}g{i}" for i in range(len(groups))]
        # a negative number has no sign bit, which makes the first group one below zero
        swapped = [_SWAPPED[size].replace("$", target) for size, target in zip(sizes, self.targets, strict=True)]
        swapped[0] += f" - {1 << (8 * sizes[0] - 1)}"
        self.after = [f"{target} = {way}" for target, way in zip(self.targets, swapped, strict=True) if target != way]
        value = ""
        for target, (_, _, digits) in zip(self.targets, groups, strict=True):
            value = f"({value}) * {10**digits} + {target}" if value else target
        limits = [f"{target} < {10**digits}" for target, (_, _, digits) in zip(self.targets, groups, strict=True)]
        limits[0] = f"0 <= {limits[0]}"
        self.after.append(f"{v} = {value} if {' and '.join(limits)} else log_unscaled_{self.number}({', '.join(self.targets)})")

    def _datetime(self) -> None:
        number, digits = self._variable[1:], self._column.size
        clock, low = f"clock{number}", f"low{number}"
        self.form = self._forms[f"datetime.{digits}"]
        self.struct_format = "3sBB"
        self.targets = [self._variable, clock, low]
        self.after = [f"{clock} = CLOCK_HIGHS[{clock}] + CLOCK_LOWS[{low}]"]
        self._fraction()

    def _timestamp(self) -> None:
        v = self._variable
        self.form = self._forms[f"timestamp.{self._column.size}"]
        self.struct_format = "I"
        self.after = [f"{v} = swapped_4({v})"]
        self._fraction()

    def _fraction(self) -> None:
        digits, f = self._column.size, f"fraction{self._variable[1:]}"
        if digits:
            self.struct_format += f"{(digits + 1) // 2}s"
            self.targets.append(f)
            self.after.append(f"{f} = int_of({f}, 'big'){' // 10' if digits % 2 else ''}")

    def _text(self) -> None:
        v, column = self._variable, self._column
        size = (2 if column.size > 255 else 1) if column.type in _STRINGS else column.size
        if size not in _LENGTHS:
            return
        self.struct_format, self.ends_run = _LENGTHS[size], True
        self.after = [
            f"q = p + {v}",
            f"{v} = s[p:q]",
            f"if not {v}.isascii(): {v} = d[p:q].decode('utf-8', 'replace')",
            "p = q",
        ]

    def alone(self) -> list[str]:
        """Return statements that read the value by itself."""
        if self.struct_format:
            return _run([self], self._names)
        return _column_statements(self._variable, self.number, self._column, self._meaning, self._names, self._document)


@cache
def _form(text: str) -> struct.Struct:
    return struct.Struct(text)


def _together(parts: Sequence[_Part], names: dict[str, object]) -> list[str]:
    lines: list[str] = []
    run: list[_Part] = []
    for part in parts:
        if not part.struct_format:
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
    form = _form("<" + "".join(part.struct_format for part in run))
    name = f"run{run[0].number}_{run[-1].number}"
    names[name] = form.unpack_from
    targets = [target for part in run for target in part.targets]
    return [
        f"{', '.join(targets)}{',' if len(targets) == 1 else ''} = {name}(d, p)",
        f"p += {form.size}",
        *(line for part in run for line in part.after),
    ]
