"""All ways from a row to bytes give the same bytes: one list of them, of PostgreSQL's and MySQL's rows, over tables of any columns.

What they are compared with is the way column by column, which is not generated, and shares no names between columns. Tables whose values
are known in Connect's form are compared with JsonConverter too.
"""

from __future__ import annotations

import datetime
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from connect_py.api import JsonEncoding, Route
from connect_py.converters.json_converter import JsonConverter
from connect_py.converters.json_write import encode_value
from connect_py.data import Schema, Struct
from connect_py.errors import DataError
from connectors.engine.encode.columnwise import Encoded
from connectors.engine.encode.table import TableEncoder
from connectors.engine.envelope import tail
from connectors.engine.relational.column_rules import ColumnFacts, ColumnRules
from connectors.mysql.binlog.codes import ColumnType
from connectors.mysql.binlog.columns import event_rows
from connectors.mysql.binlog.rows import read_images, row_reader
from connectors.mysql.binlog.table_map import StoredColumn
from connectors.mysql.config.value_options import ValueOptions as MyOptions
from connectors.mysql.ddl.statements import apply
from connectors.mysql.model import MyColumn, Tables
from connectors.mysql.position.source_info import block_schema
from connectors.mysql.server.text_rows import any_rows
from connectors.mysql.snapshot.rows import PacketRows
from connectors.mysql.types.columns import column_plan as my_plan
from connectors.mysql.types.columns import is_text, meaning_of
from connectors.postgres.encode.source_info import SOURCE_SCHEMA, SourceBlock
from connectors.postgres.encode.table import PostgresEncoder
from connectors.postgres.types.base import BaseType
from connectors.postgres.types.base import ValueOptions as PgOptions
from connectors.postgres.types.columns import PgColumn
from connectors.postgres.types.columns import column_plan as pg_plan
from tests.seeds import examples
from tests.stored_rows import (
    copy_line,
    log_image,
    stored_datetime,
    stored_decimal,
    stored_fraction,
    stored_text,
    stored_time,
    text_value,
    tuple_data,
)

TOPIC = "shop.public.t"
NOW_NS = 1_795_263_387_369_704_504
EPOCH = datetime.datetime(1970, 1, 1)
TAIL = tail("c", NOW_NS)
NO_SCHEMAS, PG_OPTIONS, MY_OPTIONS = JsonEncoding(False, False), PgOptions(), MyOptions()

# -- PostgreSQL: columns, and values as pairs of the server's text and the value that the schema holds ---------------------------------

PLAIN = st.text(st.characters(min_codepoint=32, max_codepoint=126, exclude_characters='"\\'), max_size=20)
ANY = st.text(st.characters(min_codepoint=1, exclude_categories=["Cs"]), max_size=300)
TEXTS = st.one_of(
    PLAIN, PLAIN, ANY, st.sampled_from(["", "\\N", "N", "t\0"[:1], "null", "\\", '"', "😀", "\x0b\x1f", "n", "u", "t" * 116])
).map(lambda text: (text, text))


def integers(bits: int):
    return st.integers(-(1 << bits), (1 << bits) - 1).map(lambda n: (str(n), n))


def decimals(digits: int, scale: int):
    return st.integers(-(10**digits) + 1, 10**digits - 1).map(lambda n: (f"{Decimal(n).scaleb(-scale):f}", Decimal(n).scaleb(-scale)))


def variable(pair: tuple[int, int]):
    number = Decimal(pair[0]).scaleb(-pair[1])
    shortest = number.normalize() if number else Decimal(0)
    scale = max(0, -shortest.as_tuple().exponent)
    unscaled = int(shortest.scaleb(scale))
    return f"{number:f}", (scale, unscaled.to_bytes((unscaled + (unscaled < 0)).bit_length() // 8 + 1, "big", signed=True))


def doubles(value: float):
    text = "NaN" if value != value else repr(value).replace("inf", "Infinity")
    return text.removesuffix(".0"), value


DATETIMES = st.datetimes(datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31, 23, 59, 59, 999999))


def pg_text(moment: datetime.datetime | datetime.time) -> str:
    text = moment.isoformat().replace("T", " ")
    return text.rstrip("0") if "." in text else text


def cut(moment: datetime.datetime, precision: int) -> datetime.datetime:
    return moment.replace(microsecond=moment.microsecond // 10 ** (6 - precision) * 10 ** (6 - precision))


def micros(moment: datetime.datetime) -> int:
    return (moment - EPOCH) // datetime.timedelta(microseconds=1)


def zoned(precision: int):
    def value(moment: datetime.datetime):
        moment = cut(moment, precision)
        fraction = f".{moment.microsecond:06}"[: precision + 1] if precision else ""
        return pg_text(moment) + "+00", moment.replace(microsecond=0).isoformat() + fraction + "Z"

    return DATETIMES.map(value)


def of_day(moment: datetime.time) -> int:
    return ((moment.hour * 60 + moment.minute) * 60 + moment.second) * 1_000_000 + moment.microsecond


TYPES: dict[str, tuple[PgColumn, st.SearchStrategy[Any]]] = {
    "int2": (PgColumn("int2", 21, "int2"), integers(15)),
    "int4": (PgColumn("int4", 23, "int4"), integers(31)),
    "int8": (PgColumn("int8", 20, "int8"), integers(63)),
    "bool": (PgColumn("bool", 16, "bool"), st.sampled_from([("t", True), ("f", False)])),
    "float8": (PgColumn("float8", 701, "float8"), st.floats().map(doubles)),
    "text": (PgColumn("text", 25, "text"), TEXTS),
    "varchar": (PgColumn('odd "näme" {', 1043, "varchar", 64), TEXTS),
    "jsonb": (PgColumn("jsonb", 3802, "jsonb"), TEXTS),
    "mood": (
        PgColumn("mood", 99999, "mood", category="e", enum_labels=("sad", 'h"appy')),
        st.sampled_from([("sad",) * 2, ('h"appy',) * 2]),
    ),
    "numeric(12,2)": (PgColumn("n122", 1700, "numeric", (12 << 16 | 2) + 4), decimals(12, 2)),
    "numeric(5,2)": (PgColumn("n52", 1700, "numeric", (5 << 16 | 2) + 4), decimals(5, 2)),
    "numeric(9)": (PgColumn("n9", 1700, "numeric", (9 << 16) + 4), decimals(9, 0)),
    "numeric(40,20)": (PgColumn("n4020", 1700, "numeric", (40 << 16 | 20) + 4), decimals(40, 20)),
    "numeric": (PgColumn("n", 1700, "numeric"), st.tuples(st.integers(-(10**30), 10**30), st.integers(0, 12)).map(variable)),
    "bytea": (PgColumn("bytea", 17, "bytea"), st.binary(max_size=20).map(lambda data: ("\\x" + data.hex(), data))),
    "uuid": (PgColumn("uuid", 2950, "uuid"), st.uuids().map(lambda u: (str(u), str(u)))),
    "date": (PgColumn("date", 1082, "date"), st.dates().map(lambda d: (d.isoformat(), d.toordinal() - 719_163))),
    "time": (PgColumn("time", 1083, "time"), st.times().map(lambda t: (pg_text(t), of_day(t)))),
    "time(3)": (
        PgColumn("time3", 1083, "time", 3),
        st.times().map(lambda t: (pg_text(t.replace(microsecond=t.microsecond // 1000 * 1000)), of_day(t) // 1000)),
    ),
    "timestamp": (PgColumn("ts", 1114, "timestamp"), DATETIMES.map(lambda m: (pg_text(m), micros(m)))),
    "timestamp(0)": (PgColumn("ts0", 1114, "timestamp", 0), DATETIMES.map(lambda m: (pg_text(cut(m, 0)), micros(cut(m, 0)) // 1000))),
    "timestamp(3)": (PgColumn("ts3", 1114, "timestamp", 3), DATETIMES.map(lambda m: (pg_text(cut(m, 3)), micros(cut(m, 3)) // 1000))),
    "timestamptz": (PgColumn("tz", 1184, "timestamptz"), zoned(6)),
    "timestamptz(0)": (PgColumn("tz0", 1184, "timestamptz", 0), zoned(0)),
    "timestamptz(2)": (PgColumn("tz2", 1184, "timestamptz", 2), zoned(2)),
}


# -- PostgreSQL: columns with texts alone, the usual and the odd ones --------------------------------------------------------------------


def _with(moment: str, fraction: str) -> str:
    return f"{moment}.{fraction}" if fraction else moment


PG: dict[str, tuple[PgColumn, list[str]]] = {
    column.name: (column, texts)
    for column, texts in (
        (PgColumn("int2", 21, "int2"), ["-7"]),
        (PgColumn("int8", 20, "int8"), ["9223372036854775807"]),
        (PgColumn("oid", 26, "oid"), ["4294967295"]),
        (PgColumn("bool", 16, "bool"), ["t", "f"]),
        (PgColumn("bool2", 16, "bool"), ["f"]),
        (PgColumn("float4", 700, "float4"), ["1.5", "1e-45", "NaN"]),
        (PgColumn("float8", 701, "float8"), ["0.1", "1e+300"]),
        *(
            (PgColumn(f"n{scale}", 1700, "numeric", (20 << 16 | scale) + 4), [_with("-12", "5" * scale), _with("0", "0" * scale)])
            for scale in range(4)
        ),
        (PgColumn("n2b", 1700, "numeric", (30 << 16 | 2) + 4), ["123456789012345678901234.99", "1e2"]),
        (PgColumn("numeric", 1700, "numeric"), ["1.50", "12345678901234567890.123"]),
        (PgColumn("money", 790, "money"), ["$1,234.56"]),
        (PgColumn("text", 25, "text"), ["x", 'q"', "ž", "y" * 300]),
        (PgColumn("name", 19, "name"), ["n"]),
        (PgColumn("json", 114, "json"), ['{"a": 1.50}']),
        (PgColumn("uuid", 2950, "uuid"), ["00000000-0000-0000-0000-000000000001"]),
        (PgColumn("inet", 869, "inet"), ["127.0.0.1"]),
        (PgColumn("mood", 9, "mood", category="e", enum_labels=("sad", 'h"appy')), ["sad", 'h"appy']),
        (PgColumn("tone", 8, "tone", category="e", enum_labels=("low",)), ["low"]),
        (PgColumn("bytea", 17, "bytea"), ["\\x00ff"]),
        (PgColumn("bytea2", 17, "bytea"), ["\\x0102"]),
        (PgColumn("bit", 1560, "bit", 1), ["1"]),
        (PgColumn("varbit", 1562, "varbit", 12), ["101010101010"]),
        (PgColumn("date", 1082, "date"), ["0001-01-01", "infinity", "2024-02-29", "0044-03-15 BC"]),
        *((PgColumn(f"time{p}", 1083, "time", p), ["24:00:00", _with("01:02:03", "123456"[:p])]) for p in (0, 3, 6)),
        (PgColumn("timetz", 1266, "timetz"), ["01:02:03.5+02"]),
        *(
            (PgColumn(f"ts{p}", 1114, "timestamp", p), ["infinity", "0001-01-01 00:00:00", _with("2024-02-29 01:02:03", "123456"[:p])])
            for p in (-1, 0, 3, 6)
        ),
        *(
            (PgColumn(f"tz{p}", 1184, "timestamptz", p), ["-infinity", _with("2024-02-29 01:02:03", "123456"[:p]) + "+00"])
            for p in (-1, 0, 2, 3, 6)
        ),
        (PgColumn("interval", 1186, "interval"), ["1 year 2 mons 3 days 04:05:06.7"]),
        (PgColumn("hstore", 7, "hstore"), ['"a"=>"1", "b"=>NULL']),
        (PgColumn("point", 600, "point"), ["(1,2.5)"]),
        (PgColumn("vector", 6, "vector"), ["[1,2.5]"]),
        (PgColumn("int4s", 1007, "_int4", element=BaseType(23, "int4", -1)), ["{1,NULL,3}"]),
        (PgColumn("stamps", 1115, "_timestamp", element=BaseType(1114, "timestamp", -1)), ['{"2024-02-29 01:02:03.123456"}']),
        (PgColumn("blobs", 1001, "_bytea", element=BaseType(17, "bytea", -1)), ['{"\\\\x00ff"}']),
    )
}


@st.composite
def odd_moments(draw: st.DrawFn, kind: str, digits: int) -> tuple[str]:
    """Draw PostgreSQL's text of a date or time that Python's own cannot hold: from 4713 BC to the year 294276, or a sentinel."""
    year = draw(st.integers(1, 294_276) | st.integers(9_990, 10_010) | st.integers(99_990, 100_010))
    era = " BC" if year <= 4713 and draw(st.booleans()) else ""
    date = f"{year:04}-{draw(st.integers(1, 12)):02}-{draw(st.integers(1, 28)):02}"
    time = f"{draw(st.integers(0, 23)):02}:{draw(st.integers(0, 59)):02}:{draw(st.integers(0, 59)):02}"
    fraction = draw(st.sampled_from(["", ".1", ".12", ".123", ".1234", ".12345", ".123456", ".000001", ".999999"]))
    time += fraction[: digits + 1] if digits else ""
    zone = draw(st.sampled_from(["+00", "+00", "+02", "-05:30", "+00:00:01"]))
    match kind:
        case "time":
            return (draw(st.sampled_from([time, "24:00:00"])),)
        case "timetz":
            return (time + zone,)
    text = {"date": date, "timestamp": f"{date} {time}", "timestamptz": f"{date} {time}{zone}"}[kind] + era
    return (draw(st.sampled_from([text, text, text, "infinity", "-infinity"])),)


ODD_MOMENTS = [
    (PgColumn("c", 1, kind, -1 if digits == 6 else digits), odd_moments(kind, digits))
    for kind, digits in product(("date", "time", "timetz", "timestamp", "timestamptz"), (0, 3, 6))
]
PG_MODES: list[Mapping[str, Any]] = [
    dict(zip(("decimal_mode", "time_mode", "binary_mode", "interval_mode", "hstore_mode"), chosen, strict=True))
    for chosen in (
        ("precise", "adaptive", "bytes", "numeric", "json"),
        ("string", "adaptive_time_microseconds", "hex", "string", "map"),
        ("double", "connect", "base64", "numeric", "json"),
        ("precise", "nanoseconds", "base64-url-safe", "numeric", "json"),
        ("precise", "isostring", "bytes", "string", "json"),
        ("precise", "microseconds", "bytes", "numeric", "json"),
    )
]


# -- MySQL: columns, and values as pairs of the server's text and what the log stores ----------------------------------------------------


def my_integers(size: int, *, unsigned: bool = False) -> st.SearchStrategy[tuple[str, bytes]]:
    half = 1 << 8 * size - 1
    numbers = st.integers(0, 2 * half - 1) if unsigned else st.integers(-half, half - 1)
    return numbers.map(lambda number: (str(number), number.to_bytes(size, "little", signed=not unsigned)))


def my_decimals(precision: int, scale: int) -> st.SearchStrategy[tuple[str, bytes]]:
    def pair(unscaled: int) -> tuple[str, bytes]:
        digits = str(abs(unscaled)).zfill(scale + 1)
        text = f"{digits[: len(digits) - scale]}.{digits[len(digits) - scale :]}" if scale else digits
        return ("-" if unscaled < 0 else "") + text, stored_decimal(unscaled, precision, scale)

    return st.integers(1 - 10**precision, 10**precision - 1).map(pair)


def my_texts(length_size: int, longest: int, charset: str = "utf-8") -> st.SearchStrategy[tuple[str, bytes]]:
    texts = TEXTS.map(lambda pair: pair[0][:longest]) if charset == "utf-8" else st.text('aé"\\ü', max_size=longest)
    return texts.map(lambda text: (text, len(text.encode(charset)).to_bytes(length_size, "little") + text.encode(charset)))


def fraction_of(micros: int, digits: int) -> str:
    return f".{micros:06}"[: digits + 1] if digits else ""


def my_datetimes(digits: int) -> st.SearchStrategy[tuple[str, bytes]]:
    def pair(moment: datetime.datetime) -> tuple[str, bytes]:
        moment = cut(moment, digits)
        parts = (moment.year, moment.month, moment.day, moment.hour, moment.minute, moment.second)
        text = f"{moment.year:04}-{moment.month:02}-{moment.day:02} {moment.time().replace(microsecond=0)}"
        return text + fraction_of(moment.microsecond, digits), stored_datetime(parts, moment.microsecond, digits)

    zero = "0000-00-00 00:00:00" + fraction_of(0, digits), stored_datetime((0, 0, 0, 0, 0, 0), 0, digits)
    return DATETIMES.map(pair) | DATETIMES.map(pair) | st.just(zero)


def my_timestamps(digits: int) -> st.SearchStrategy[tuple[str, bytes]]:
    def pair(number: tuple[int, int]) -> tuple[str, bytes]:
        second, micros = number[0], number[1] // 10 ** (6 - digits) * 10 ** (6 - digits)
        text = str(EPOCH + datetime.timedelta(seconds=second)) if second else "0000-00-00 00:00:00"
        micros = micros if second else 0
        return text + fraction_of(micros, digits), second.to_bytes(4, "big") + stored_fraction(micros, digits)

    return st.tuples(st.integers(0, (1 << 31) - 1), st.integers(0, 999_999)).map(pair)


def my_times(digits: int) -> st.SearchStrategy[tuple[str, bytes]]:
    def pair(drawn: tuple[int, int, bool]) -> tuple[str, bytes]:
        seconds, micros, negative = drawn
        micros = micros // 10 ** (6 - digits) * 10 ** (6 - digits)
        negative = negative and bool(seconds or micros)
        text = f"{'-' if negative else ''}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{fraction_of(micros, digits)}"
        return text, stored_time(seconds, micros, digits, negative=negative)

    return st.tuples(st.integers(0, 838 * 3600 + 3599), st.integers(0, 999_999), st.booleans()).map(pair)


def my_date(day: datetime.date) -> tuple[str, bytes]:
    return day.isoformat(), (day.year << 9 | day.month << 5 | day.day).to_bytes(3, "little")


def my_quarters(form: str) -> st.SearchStrategy[tuple[str, bytes]]:
    """Numbers of which the server and Java print the same."""
    numbers = st.integers(-4000, 4000).map(lambda number: number + 0.25)
    return numbers.map(lambda number: (str(number), struct.pack(form, number)))


MySqlKind = tuple[str, StoredColumn, st.SearchStrategy[tuple[str, bytes]]]
MYSQL: list[MySqlKind] = [
    ("TINYINT", StoredColumn(ColumnType.TINY), my_integers(1)),
    ("SMALLINT UNSIGNED", StoredColumn(ColumnType.SHORT), my_integers(2, unsigned=True)),
    ("MEDIUMINT", StoredColumn(ColumnType.INT24), my_integers(3)),
    ("INT", StoredColumn(ColumnType.LONG), my_integers(4)),
    ("BIGINT", StoredColumn(ColumnType.LONGLONG), my_integers(8)),
    ("BIGINT UNSIGNED", StoredColumn(ColumnType.LONGLONG), my_integers(8, unsigned=True)),
    ("FLOAT", StoredColumn(ColumnType.FLOAT), my_quarters("<f")),
    ("DOUBLE", StoredColumn(ColumnType.DOUBLE), my_quarters("<d")),
    *((f"DECIMAL({p},{s})", StoredColumn(ColumnType.NEWDECIMAL, p, s), my_decimals(p, s)) for p, s in ((12, 2), (9, 0), (5, 5), (40, 20))),
    ("BIT(12)", StoredColumn(ColumnType.BIT, 12), st.integers(0, 4095).map(lambda n: (n.to_bytes(2).decode("latin-1"), n.to_bytes(2)))),
    ("YEAR", StoredColumn(ColumnType.YEAR), st.sampled_from([("1999", b"\x63"), ("0000", b"\0")])),
    ("DATE", StoredColumn(ColumnType.DATE), st.dates().map(my_date) | st.just(("0000-00-00", b"\0\0\0"))),
    *((f"DATETIME({n})", StoredColumn(ColumnType.DATETIME2, n), my_datetimes(n)) for n in range(7)),
    *((f"TIMESTAMP({n})", StoredColumn(ColumnType.TIMESTAMP2, n), my_timestamps(n)) for n in range(7)),
    *((f"TIME({n})", StoredColumn(ColumnType.TIME2, n), my_times(n)) for n in range(7)),
    ("VARCHAR(20)", StoredColumn(ColumnType.VARCHAR, 80), my_texts(1, 20)),
    ("VARCHAR(90)", StoredColumn(ColumnType.VARCHAR, 360), my_texts(2, 90)),
    ("VARCHAR(20) CHARACTER SET latin1", StoredColumn(ColumnType.VARCHAR, 20), my_texts(1, 20, "latin-1")),
    ("CHAR(9)", StoredColumn(ColumnType.STRING, 36), my_texts(1, 9)),
    ("TEXT", StoredColumn(ColumnType.BLOB, 2), my_texts(2, 300)),
    ("MEDIUMTEXT", StoredColumn(ColumnType.BLOB, 3), my_texts(3, 300)),
    (
        "BLOB",
        StoredColumn(ColumnType.BLOB, 2),
        st.binary(max_size=300).map(lambda d: (d.decode("latin-1"), len(d).to_bytes(2, "little") + d)),
    ),
    ("JSON", StoredColumn(ColumnType.JSON, 4), st.sampled_from([("true", b"\2\0\0\0\4\1"), ("null", b"\2\0\0\0\4\0")])),
    ("ENUM('a','b,c','q\"')", StoredColumn(ColumnType.ENUM, 1), st.sampled_from([("a", b"\1"), ("b,c", b"\2"), ('q"', b"\3")])),
    ("SET('p','q')", StoredColumn(ColumnType.SET, 1), st.sampled_from([("", b"\0"), ("q", b"\2"), ("p,q", b"\3")])),
]
MYSQL_MODES: list[Mapping[str, Any]] = [
    dict(zip(("decimal_mode", "time_mode", "binary_mode", "bigint_mode", "adjusts_years", "unified"), chosen, strict=True))
    for chosen in (
        *product(["precise"], ["adaptive_time_microseconds"], ["bytes"], ["long"], [True, False], [True, False]),
        ("string", "connect", "hex", "precise", True, False),
        ("double", "microseconds", "base64", "precise", True, False),
        ("precise", "nanoseconds", "base64-url-safe", "precise", True, False),
        ("precise", "isostring", "bytes", "precise", True, True),
        ("precise", "connect", "bytes", "precise", False, False),
    )
]


# -- tables ------------------------------------------------------------------------------------------------------------------------------

Row = Sequence[str | None]


@dataclass(frozen=True)
class PostgresTable:
    """A table and rows.

    Attributes:
        values: of the rows, in Connect's form; None where they are not known.
    """

    encoder: PostgresEncoder
    encoding: JsonEncoding
    rows: Sequence[Row]
    values: Sequence[Sequence[Any]] | None
    source: bytes


@dataclass(frozen=True)
class MySqlTable:
    """A table and rows, also as the log stores them."""

    encoder: TableEncoder
    columns: Sequence[MyColumn]
    options: MyOptions
    stored_columns: Sequence[StoredColumn]
    rows: Sequence[Row]
    stored: Sequence[Sequence[bytes | None]]
    source: bytes = b'{"row":0}'

    @property
    def packets(self) -> list[bytes]:
        codecs = ["utf-8" if is_text(column) else "latin-1" for column in self.columns]
        return [
            b"".join(text_value(None if text is None else text.encode(codec)) for text, codec in zip(row, codecs, strict=True))
            for row in self.rows
        ]

    @property
    def log(self) -> bytes:
        return b"".join(map(log_image, self.stored))


def of(pair: Any, at: int) -> Any:
    return None if pair is None else pair[at]


def postgres_table(
    columns: Sequence[PgColumn],
    pairs: Sequence[Sequence[Any]],
    key: Sequence[str] = (),
    excluded: Sequence[str] = (),
    encoding: JsonEncoding = NO_SCHEMAS,
    options: PgOptions = PG_OPTIONS,
    *,
    has_values: bool = True,
) -> PostgresTable:
    plans = [replace(pg_plan(column, options), only_in_key=column.name in excluded) for column in columns]  # type: ignore[type-var]
    encoder = PostgresEncoder(TOPIC, plans, key, SOURCE_SCHEMA, encoding)
    source = SourceBlock("3.6.1.Final", "shop", "db", "public", "t").transaction(1001, 7, 9)(10)
    return PostgresTable(encoder, encoding, [[of(pair, 0) for pair in row] for row in pairs], pairs if has_values else None, source)


def mysql_table(
    kinds: Sequence[MySqlKind],
    nullable: Sequence[bool],
    pairs: Sequence[Sequence[Any]],
    key: Sequence[str] = (),
    encoding: JsonEncoding = NO_SCHEMAS,
    options: MyOptions = MY_OPTIONS,
) -> MySqlTable:
    tables = Tables()
    definitions = (f"c{i} {sql} {'NULL' if may else 'NOT NULL'}" for i, ((sql, _, _), may) in enumerate(zip(kinds, nullable, strict=True)))
    apply(f"CREATE TABLE t ({', '.join(definitions)}) CHARACTER SET utf8mb4", tables, "d")
    columns = next(iter(tables.tables.values())).columns
    encoder = TableEncoder(TOPIC, [my_plan(column, options) for column in columns], key, block_schema("mysql"), encoding)
    rows, stored = ([[of(pair, at) for pair in row] for row in pairs] for at in (0, 1))
    return MySqlTable(encoder, columns, options, [column for _, column, _ in kinds], rows, stored)


@st.composite
def layouts(draw: st.DrawFn, kinds: st.SearchStrategy[list[Any]], values: Callable[[Any], st.SearchStrategy[Any]]) -> tuple[Any, ...]:
    """Draw kinds of columns, which of them may be NULL, the indexes of a key, rows of pairs or None, and an encoding."""
    chosen = draw(kinds)
    nullable = [draw(st.booleans()) for _ in chosen]
    required = [i for i, may in enumerate(nullable) if not may]
    key = draw(st.permutations(required))[: draw(st.integers(0, len(required)))]
    row = st.tuples(*(st.none() | values(kind) if may else values(kind) for kind, may in zip(chosen, nullable, strict=True)))
    return chosen, nullable, key, draw(st.lists(row, min_size=1, max_size=4)), JsonEncoding(*(draw(st.booleans()) for _ in range(4)))


@st.composite
def postgres_tables(draw: st.DrawFn) -> PostgresTable:
    has_values = draw(st.booleans())
    kinds = list(TYPES.values())
    if not has_values:
        kinds += [*((column, st.sampled_from(texts).map(lambda text: (text,))) for column, texts in PG.values()), *ODD_MOMENTS]
    chosen, nullable, key, rows, encoding = draw(layouts(st.lists(st.sampled_from(kinds), min_size=1, max_size=8), lambda kind: kind[1]))
    odd = draw(st.booleans())
    columns = [
        replace(column, name=f'odd "näme" {{{i}' if odd else f"c{i}", nullable=may)
        for i, ((column, _), may) in enumerate(zip(chosen, nullable, strict=True))
    ]
    names = [columns[i].name for i in key]
    options = PgOptions() if has_values else PgOptions(**draw(st.sampled_from(PG_MODES)))
    excluded = [name for name in names if draw(st.booleans())]
    return postgres_table(columns, rows, names, excluded, encoding, options, has_values=has_values)


@st.composite
def mysql_tables(draw: st.DrawFn) -> MySqlTable:
    chosen, nullable, key, rows, encoding = draw(layouts(st.lists(st.sampled_from(MYSQL), min_size=1, max_size=8), lambda kind: kind[2]))
    options = MyOptions(**draw(st.sampled_from(MYSQL_MODES)))
    return mysql_table(chosen, nullable, rows, [f"c{i}" for i in key], encoding, options)


class Expected:
    """What JsonConverter makes of the same values."""

    def __init__(self, encoder: PostgresEncoder, encoding: JsonEncoding) -> None:
        self.encoder = encoder
        self.key_converter, self.value_converter = JsonConverter(), JsonConverter()
        form = {False: "BASE64", True: "NUMERIC"}
        self.key_converter.configure(
            {"schemas.enable": str(encoding.key_schemas).lower(), "decimal.format": form[encoding.key_decimals_numeric]}, is_key=True
        )
        self.value_converter.configure(
            {"schemas.enable": str(encoding.value_schemas).lower(), "decimal.format": form[encoding.value_decimals_numeric]}, is_key=False
        )
        self.source = Struct(
            SOURCE_SCHEMA,
            ["3.6.1.Final", "postgresql", "shop", 1, None, "db", '["9","10"]', 1001, 1001000, "public", "t", 7, 10],
        )

    def struct_of(self, schema: Schema, row) -> Struct:
        return Struct(schema, [self.value(f.schema, pair) for f, pair in zip(schema.fields, row, strict=True)])

    @staticmethod
    def value(schema: Schema, pair):
        if pair is None:
            return None
        return Struct(schema, pair[1]) if schema.name == "io.debezium.data.VariableScaleDecimal" else pair[1]

    def shown(self, row) -> list:
        return [pair for plan, pair in zip(self.encoder.columns, row, strict=True) if not plan.only_in_key]

    def key(self, row) -> bytes | None:
        schema = self.encoder.key_schema
        if schema is None:
            return None
        names = [column.name for column in self.encoder.columns]
        return self.key_converter.from_connect_data(
            TOPIC, schema, self.struct_of(schema, [row[names.index(f.name)] for f in schema.fields])
        )

    def envelope(self, before, after) -> bytes | None:
        schema = self.encoder.value_schema
        rows = [None if row is None else self.struct_of(schema.fields[0].schema, self.shown(row)) for row in (before, after)]
        value = Struct(schema, [*rows, self.source, None, "c", NOW_NS // 1_000_000, NOW_NS // 1000, NOW_NS])
        return self.value_converter.from_connect_data(TOPIC, schema, value)


# -- the ways ----------------------------------------------------------------------------------------------------------------------------

Table = Any  # PostgresTable or MySqlTable


@dataclass(frozen=True)
class Way:
    """A way from rows to bytes.

    Attributes:
        tables: whose rows it takes; None for both.
        stream: whether it is one of streamed rows.
        run: what it gives; None where it leaves the rows to another way. Raises DataError.
        wanted: what that should be, by the keys and objects of the rows.
    """

    name: str
    tables: type | None
    stream: bool
    run: Callable[[Table], Any]
    wanted: Callable[[Table, Sequence[Encoded]], Any] = lambda _, images: list(images)


def values(table: Table, images: Sequence[Encoded]) -> list[Encoded]:
    return [(key, table.encoder.value(None, row, table.source, TAIL)) for key, row in images]


def deletes(table: Table, images: Sequence[Encoded]) -> list[Encoded]:
    return [(key, table.encoder.value(row, None, table.source, TAIL)) for key, row in images]


def pairs_of(rows: Sequence[Any]) -> list[tuple[Any, Any]]:
    return list(zip(rows, [*rows[1:], rows[0]], strict=True))


def updates(table: Table, images: Sequence[Encoded]) -> list[Any]:
    """Updates of each row to the next one; of another key a delete and a create."""
    found: list[Any] = []
    for (old_key, old), (key, new) in pairs_of(images):
        value = table.encoder.value
        if old_key == key:
            found.append((key, value(old, new, table.source, TAIL)))
        else:
            found.append((old_key, key, value(old, None, table.source, TAIL), value(None, new, table.source, TAIL)))
    return found


def pgoutput_updates(table: PostgresTable) -> list[Any]:
    found: list[Any] = []
    for old, new in pairs_of(table.rows):
        message = b"U....O" + tuple_data(old) + b"N" + tuple_data(new)
        key, value, old_key = table.encoder.update(message, 5, table.source, TAIL)
        found.append((key, value) if value else tuple(table.encoder.split(message, 5, table.source, TAIL, TAIL)[:4]))
        assert value or old_key != key
    return found


def converted(table: PostgresTable) -> Any:
    """What JsonConverter makes of the same values: creates, deletes, updates."""
    if table.values is None:
        return None
    expected = Expected(table.encoder, table.encoding)
    assert table.source == encode_value(SOURCE_SCHEMA, expected.source)
    keys = [expected.key(row) for row in table.values]
    rows = list(zip(keys, table.values, strict=True))
    return (
        [(key, expected.envelope(None, row)) for key, row in rows],
        [(key, expected.envelope(row, None)) for key, row in rows],
        [
            (key, expected.envelope(old, new))
            if old_key == key
            else (old_key, key, expected.envelope(old, None), expected.envelope(None, new))
            for (old_key, old), (key, new) in pairs_of(rows)
        ],
    )


def route(table: Table) -> Route:
    return Route(TOPIC, table.encoder.key_schema, table.encoder.value_schema)


def stripped(records: Any) -> Any:
    return None if records is None else [record[1:] for record in records]


def packet_rows(table: MySqlTable, passed_over: Sequence[bool] = ()) -> PacketRows:
    model = SimpleNamespace(columns=table.columns)
    captured = SimpleNamespace(model=model, indexes=range(len(table.columns)), encoder=table.encoder, route=route(table), id="d.t")
    return PacketRows(captured, passed_over)  # type: ignore[arg-type]


def chunk_images(table: MySqlTable, key: Sequence[bytes | None]) -> Any:
    """Rows that their key's values follow, as chunks of incremental snapshots have them."""
    rows = packet_rows(table, [True] * len(key))
    packets = [packet + b"".join(map(text_value, key)) for packet in table.packets]
    texts = [None if value is None else value.decode() for value in key]
    assert all(list(row[len(table.columns) :]) == texts for row in rows.texts(packets))
    return rows.images(packets)


def fused_packets(table: MySqlTable) -> Any:
    return table.encoder.fused(any_rows([is_text(column) for column in table.columns], table.encoder.wanted_forms), stream=False)


def meanings(table: MySqlTable) -> list[Any]:
    return [meaning_of(column, table.options) for column in table.columns]


def fused_log(table: MySqlTable) -> Any:
    source = event_rows(table.stored_columns, meanings(table), range(len(table.columns)), table.encoder.wanted_forms)
    return table.encoder.fused(source, stream=True)


def log_texts(table: MySqlTable) -> list[list[Any]]:
    """Rows of the log as texts; those of columns one by one are the same."""
    every = (1 << len(table.columns)) - 1
    whole = read_images(row_reader(table.stored_columns, meanings(table), every.to_bytes(8, "little")), table.log)
    for i in range(len(table.columns)):
        read = row_reader(table.stored_columns, meanings(table), (1 << i).to_bytes(8, "little"))
        alone = read_images(read, b"".join(log_image([row[i]]) for row in table.stored))
        assert [row[i] for row in alone] == [row[i] for row in whole]
    return whole


WAYS = [
    Way("texts of a snapshot", None, False, lambda t: stripped(t.encoder.text_rows(t.rows, route(t), t.source, TAIL)), values),
    Way("one row of a snapshot", None, False, lambda t: [t.encoder.image(row, snapshot=True) for row in t.rows]),
    Way("one row of a stream", None, True, lambda t: [t.encoder.image(row) for row in t.rows]),
    Way(
        "COPY",
        PostgresTable,
        False,
        lambda t: stripped(t.encoder.copy_rows(list(map(copy_line, t.rows)), route(t), t.source, TAIL)),
        values,
    ),
    Way("a line of COPY", PostgresTable, False, lambda t: [t.encoder.copy_row(copy_line(row), t.source, TAIL) for row in t.rows], values),
    Way(
        "pgoutput's inserts",
        PostgresTable,
        True,
        lambda t: [t.encoder.insert(b"I....N" + tuple_data(row), 5, t.source, TAIL) for row in t.rows],
        values,
    ),
    Way(
        "pgoutput's deletes",
        PostgresTable,
        True,
        lambda t: [t.encoder.delete(b"D....O" + tuple_data(row), 5, t.source, TAIL) for row in t.rows],
        deletes,
    ),
    Way("pgoutput's updates", PostgresTable, True, pgoutput_updates, updates),
    Way("JsonConverter", PostgresTable, True, converted, lambda t, images: (values(t, images), deletes(t, images), updates(t, images))),
    Way("packets", MySqlTable, False, lambda t: stripped(packet_rows(t).records(t.packets, t.source, TAIL)), values),
    Way(
        "packets one by one",
        MySqlTable,
        False,
        lambda t: [stripped(packet_rows(t).records([packet], t.source, TAIL))[0] for packet in t.packets],
        values,
    ),
    Way(
        "packets as texts",
        MySqlTable,
        False,
        lambda t: [t.encoder.image(row, snapshot=True) for row in packet_rows(t).texts(t.packets)],
    ),
    Way(
        "packets read and written at once",
        MySqlTable,
        False,
        lambda t: stripped(fused_packets(t).records(b"".join(t.packets), route(t), "", t.encoder.end(t.source, TAIL))),
        values,
    ),
    Way("rows of a chunk", MySqlTable, False, lambda t: chunk_images(t, [b"1", b"key"])),
    Way("rows of a chunk, with unusual keys", MySqlTable, False, lambda t: chunk_images(t, [None, "ü".encode() * 300, b""])),
    Way("images of packets", MySqlTable, False, lambda t: fused_packets(t).images(b"".join(t.packets))),
    Way(
        "the log read and written at once",
        MySqlTable,
        True,
        lambda t: stripped(fused_log(t).records(t.log, route(t), ',"source":{"row":', t.encoder.closed(b"}," + TAIL))),
        lambda t, images: [(key, t.encoder.value(None, row, b'{"row":%d}' % n, TAIL)) for n, (key, row) in enumerate(images)],
    ),
    Way("images of the log", MySqlTable, True, lambda t: fused_log(t).images(t.log)),
    Way("the log as texts", MySqlTable, True, lambda t: [t.encoder.image(row) for row in log_texts(t)]),
]


INSERTS = next(way for way in WAYS if way.name == "pgoutput's inserts")


def taken(way: Way, table: Table) -> bool:
    """Whether the way takes the rows; it gives the same bytes then as the way column by column, or its error."""
    try:
        images = [table.encoder.columnwise.encode(row, snapshot=not way.stream) for row in table.rows]
    except DataError:
        try:
            found = way.run(table)
        except DataError:
            return True
        assert found is None, way.name
        return False
    found = way.run(table)
    assert found is None or found == way.wanted(table, images), way.name
    return found is not None


@settings(max_examples=examples(500), suppress_health_check=list(HealthCheck))
@given(postgres_tables() | mysql_tables())
def test_all_ways_give_the_same_bytes(table: Table) -> None:
    for way in WAYS:
        if way.tables in (None, type(table)):
            taken(way, table)


PLAIN_POSTGRES = postgres_table(
    [PgColumn("a", 23, "int4", nullable=False), PgColumn("b", 25, "text")], [[("1", 1), ("x", "x")], [("2", 2), ("y", "y")]], ["a"]
)
PLAIN_MYSQL = mysql_table(
    [kind for kind in MYSQL if kind[0] in ("INT", "VARCHAR(20)")],
    [False, True],
    [[("1", b"\1\0\0\0"), ("x", stored_text("x", 1))], [("2", b"\2\0\0\0"), None]],
    ["c0"],
)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_every_way_takes_usual_rows(way: Way) -> None:
    assert all(taken(way, table) for table in (PLAIN_POSTGRES, PLAIN_MYSQL) if way.tables in (None, type(table)))


@pytest.mark.parametrize("size", [0, 1, 115, 116, 127, 128, 255, 256, 29_695, 29_696, 65_535, 65_536, 70_000])
@pytest.mark.parametrize("character", ["t", "é", "n", "日", "😀", '"'])
def test_lengths_are_never_mistaken_for_the_marker_of_a_value(size: int, character: str) -> None:
    columns = [PgColumn(name, 25, "text") for name in "abc"]
    for row in (
        [("t",) * 2, (character * size,) * 2, ("",) * 2],
        [("",) * 2, ("t" * size,) * 2, None],
        [None, (character * size,) * 2, ("n",) * 2],
    ):
        assert taken(INSERTS, postgres_table(columns, [row]))


def test_rules_of_columns_hold_for_rows_of_snapshots_too() -> None:
    plan = my_plan(MyColumn("c", "TIMESTAMP", 2014, length=3), MY_OPTIONS)
    assert plan is not None
    rules = ColumnRules.parse({"column.truncate.to.2.chars": ".*"})
    changed = rules.apply(plan, ColumnFacts("d.t.c", "d.t.TIMESTAMP", "c", "TIMESTAMP", 3, None, characters=False))
    encoder = TableEncoder("t", [changed], [], block_schema("mysql"), NO_SCHEMAS)
    text = "1999-12-31 23:59:50.120"
    assert encoder.image([text], snapshot=True)[1] == encoder.image([text])[1] == b'{"c":"19"}'
