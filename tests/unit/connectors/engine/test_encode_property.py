"""The encoder writes what JsonConverter would write of the same values, whichever way a row takes through it."""

import datetime
import struct
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from connect_py.api import JsonEncoding, Route
from connect_py.converters.json_converter import JsonConverter
from connect_py.converters.json_write import encode_value
from connect_py.data import Schema, Struct
from connectors.engine.envelope import tail
from connectors.postgres.encode.source_info import SOURCE_SCHEMA, SourceBlock
from connectors.postgres.encode.table import PostgresEncoder
from connectors.postgres.types.columns import PgColumn, ValueOptions, column_plan

TOPIC = "shop.public.t"
NOW_NS = 1_795_263_387_369_704_504
EPOCH = datetime.datetime(1970, 1, 1)

# -- types: a column, and values as pairs of PostgreSQL's text and the value that the schema holds ------------------------------------

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


TYPES = {
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


@st.composite
def tables(draw):
    """Columns with nullability, a key, what of it rows leave out, an encoding, and rows of (text, value) pairs or None."""
    names = draw(st.lists(st.sampled_from(sorted(TYPES)), min_size=1, max_size=6, unique=True))
    nullable = [draw(st.booleans()) for _ in names]
    required = [TYPES[n][0].name for n, may in zip(names, nullable, strict=True) if not may]
    key = draw(st.permutations(required))[: draw(st.integers(0, len(required)))]
    columns = [
        PgColumn(c.name, c.type_oid, c.type_name, c.typmod, may, None, c.category, c.enum_labels)
        for c, may in ((TYPES[n][0], may) for n, may in zip(names, nullable, strict=True))
    ]
    row = st.tuples(*[st.none() | TYPES[n][1] if may else TYPES[n][1] for n, may in zip(names, nullable, strict=True)])
    rows = draw(st.lists(row, min_size=1, max_size=4))
    booleans = [draw(st.booleans()) for _ in range(4)]
    excluded = {name for name in key if draw(st.booleans())}
    return columns, key, excluded, JsonEncoding(*booleans), rows


# -- the two ways from a row to bytes ----------------------------------------------------------------------------------------------


def copy_line(row) -> bytes:
    escapes = {"\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
    fields = ["\\N" if pair is None else "".join(escapes.get(c, c) for c in pair[0]) for pair in row]
    return ("\t".join(fields) + "\n").encode()


def tuple_data(row) -> bytes:
    parts = [struct.pack(">h", len(row))]
    for pair in row:
        data = None if pair is None else pair[0].encode()
        parts.append(b"n" if data is None else b"t" + struct.pack(">i", len(data)) + data)
    return b"".join(parts)


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

    def envelope(self, before, after, op: str) -> bytes | None:
        schema = self.encoder.value_schema
        rows = [None if row is None else self.struct_of(schema.fields[0].schema, self.shown(row)) for row in (before, after)]
        value = Struct(schema, [*rows, self.source, None, op, NOW_NS // 1_000_000, NOW_NS // 1000, NOW_NS])
        return self.value_converter.from_connect_data(TOPIC, schema, value)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(tables())
def test_every_way_through_the_encoder_gives_the_converters_bytes(table):
    columns, key, excluded, encoding, rows = table
    plans = [replace(column_plan(column, ValueOptions()), only_in_key=column.name in excluded) for column in columns]
    encoder = PostgresEncoder(TOPIC, plans, key, SOURCE_SCHEMA, encoding)
    expected = Expected(encoder, encoding)
    source = SourceBlock("3.6.1.Final", "shop", "db", "public", "t").transaction(1001, 7, 9)(10)
    assert source == encode_value(SOURCE_SCHEMA, expected.source)
    created = [(expected.key(row), expected.envelope(None, row, "c")) for row in rows]
    end = tail("c", NOW_NS)

    route = Route(TOPIC, encoder.key_schema, encoder.value_schema)
    assert encoder.copy_rows([copy_line(row) for row in rows], route, source, end) == [(route, *pair) for pair in created]
    assert [encoder.copy_row(copy_line(row), source, end) for row in rows] == created
    assert [encoder.insert(b"I....N" + tuple_data(row), 5, source, end) for row in rows] == created

    for old, new in zip(rows, [*rows[1:], rows[0]], strict=True):
        deleted = (expected.key(old), expected.envelope(old, None, "d"))
        assert encoder.delete(b"D....O" + tuple_data(old), 5, source, tail("d", NOW_NS)) == deleted
        message = b"U....O" + tuple_data(old) + b"N" + tuple_data(new)
        result = encoder.update(message, 5, source, tail("u", NOW_NS))
        if expected.key(old) == expected.key(new):
            assert result == (expected.key(new), expected.envelope(old, new, "u"), None)
        else:
            assert result[::2] == (expected.key(new), expected.key(old))
            change = encoder.split(message, 5, source, tail("d", NOW_NS), end)
            assert (change.old_key, change.delete_value) == deleted
            assert (change.new_key, change.create_value) == (expected.key(new), expected.envelope(None, new, "c"))


@pytest.mark.parametrize("size", [0, 1, 115, 116, 127, 128, 255, 256, 29_695, 29_696, 65_535, 65_536, 70_000])
@pytest.mark.parametrize("character", ["t", "é", "n", "日", "😀", '"'])
def test_lengths_are_never_mistaken_for_the_marker_of_a_value(size, character):
    plans = [column_plan(PgColumn(name, 25, "text"), ValueOptions()) for name in "abc"]
    encoder = PostgresEncoder(TOPIC, plans, [], SOURCE_SCHEMA, JsonEncoding(False, False))
    expected = Expected(encoder, JsonEncoding(False, False))
    source = encode_value(SOURCE_SCHEMA, expected.source)
    for row in (
        [("t",) * 2, (character * size,) * 2, ("",) * 2],
        [("",) * 2, ("t" * size,) * 2, None],
        [None, (character * size,) * 2, ("n",) * 2],
    ):
        assert encoder.insert(b"I....N" + tuple_data(row), 5, source, tail("c", NOW_NS))[1] == expected.envelope(None, row, "c")


# -- texts beyond what Python's own dates can hold ----------------------------------------------------------------------------------


@st.composite
def odd_moments(draw):
    """PostgreSQL's text of a timestamp from 4713 BC to the year 294276, with any fraction, or a sentinel."""
    year = draw(st.integers(1, 294_276) | st.integers(9_990, 10_010) | st.integers(99_990, 100_010))
    before_christ = year <= 4713 and draw(st.booleans())
    date = f"{year:04}-{draw(st.integers(1, 12)):02}-{draw(st.integers(1, 28)):02}"
    time = f"{draw(st.integers(0, 23)):02}:{draw(st.integers(0, 59)):02}:{draw(st.integers(0, 59)):02}"
    fraction = draw(st.sampled_from(["", ".1", ".12", ".123", ".1234", ".12345", ".123456", ".000001", ".999999"]))
    zone = draw(st.sampled_from(["+00", "+00", "+02", "-05:30", "+00:00:01"]))
    era = " BC" if before_christ else ""
    return draw(
        st.sampled_from(
            [
                ("date", -1, date + era),
                ("time", -1, time + fraction),
                ("time", 3, time + fraction[:4]),
                ("time", -1, "24:00:00"),
                ("timetz", -1, time + fraction + zone),
                ("timestamp", -1, f"{date} {time}{fraction}{era}"),
                ("timestamp", 3, f"{date} {time}{fraction[:4]}{era}"),
                ("timestamptz", -1, f"{date} {time}{fraction}{zone}{era}"),
                ("timestamptz", 3, f"{date} {time}{fraction[:4]}{zone}{era}"),
                ("timestamptz", 0, f"{date} {time}{zone}{era}"),
                ("date", -1, "infinity"),
                ("timestamp", -1, "-infinity"),
                ("timestamptz", -1, "infinity"),
            ]
        )
    )


@settings(max_examples=1000, deadline=None)
@given(odd_moments(), st.booleans())
def test_generated_code_writes_odd_moments_as_the_careful_conversion_does(moment, nullable):
    type_name, typmod, text = moment
    plan = column_plan(PgColumn("c", 1, type_name, typmod, nullable), ValueOptions())
    encoder = PostgresEncoder(TOPIC, [plan], [] if nullable else ["c"], SOURCE_SCHEMA, JsonEncoding(False, False))
    route = Route(TOPIC, encoder.key_schema, encoder.value_schema)
    for convert, value in (
        (plan.snapshot or plan.convert, encoder.copy_rows([text.encode() + b"\n"], route, b"{}", tail("c", NOW_NS))[0][2]),
        (plan.convert, encoder.insert(b"I....N" + tuple_data([(text, text)]), 5, b"{}", tail("c", NOW_NS))[1]),
    ):
        assert value.startswith(f'{{"before":null,"after":{{"c":{convert(text)}}},"source"'.encode())
