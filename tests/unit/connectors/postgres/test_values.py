"""PostgreSQL's types as fields: schemas, texts, defaults, fillers. What the reference shows is in test_encode_reference.py."""

import struct
from decimal import Decimal

import pytest

from connect_py.api import JsonEncoding, Route
from connect_py.errors import ConfigError, DataError
from connectors.postgres.encode.source_info import SOURCE_SCHEMA
from connectors.postgres.encode.table import PostgresEncoder
from connectors.postgres.types.columns import BaseType, PgColumn, ValueOptions, column_plan

SOURCE, END = b"{}", b'"op":"c"}'
PLAIN = JsonEncoding(False, False)
DEFAULTS = ValueOptions()


def numeric(precision: int, scale: int = 0) -> int:
    return (precision << 16 | scale & 0x7FF) + 4


def column(type_name: str, typmod: int = -1, **more) -> PgColumn:
    return PgColumn("c", 1, type_name, typmod, **more)


def written(column: PgColumn, text: str, options: ValueOptions = DEFAULTS, encoding: JsonEncoding = PLAIN) -> str:
    """A value's JSON text, by way of COPY and of pgoutput, which must agree."""
    encoder = PostgresEncoder("t", [column_plan(column, options)], [], SOURCE_SCHEMA, encoding)
    line = text.replace("\\", "\\\\").encode() + b"\n"
    _, _, value = encoder.copy_rows([line], Route("t", None, encoder.value_schema), SOURCE, END)[0]
    message = b"I....N" + struct.pack(">hci", 1, b"t", len(text.encode())) + text.encode()
    assert encoder.insert(message, 5, SOURCE, END)[1] == value
    head, end = b'{"before":null,"after":{"c":', b'},"source":{},"op":"c"}'
    assert value.startswith(head) and value.endswith(end)
    return value[len(head) : -len(end)].decode()


@pytest.mark.parametrize(
    ("type_name", "typmod", "text", "shown"),
    [
        ("oid", -1, "4294967295", "4294967295"),
        ("float8", -1, "100", "100.0"),
        ("float8", -1, "0.001", "0.001"),
        ("float8", -1, "0.0001", "1.0E-4"),
        ("float8", -1, "9999999.5", "9999999.5"),
        ("float8", -1, "12345678.5", "1.23456785E7"),
        ("float8", -1, "-Infinity", '"-Infinity"'),
        ("float4", -1, "1e-45", "1.4E-45"),
        ("float4", -1, "0.1", "0.1"),
        ("numeric", numeric(10, 2), "100.97", '"J3E="'),
        ("numeric", numeric(10, 2), "-0.01", '"/w=="'),
        ("numeric", numeric(10, 2), "327.68", '"AIAA"'),
        ("numeric", numeric(10, 2), "83886.07", '"f///"'),
        ("numeric", numeric(10, 2), "83886.08", '"AIAAAA=="'),
        ("numeric", numeric(5, -2), "12300", '"ew=="'),
        ("numeric", numeric(2, 5), "0.00012", '"DA=="'),
        ("numeric", -1, "10.1111", '{"scale":4,"value":"AYr3"}'),
        ("numeric", -1, "10.00", '{"scale":0,"value":"Cg=="}'),
        ("numeric", -1, "1000", '{"scale":0,"value":"A+g="}'),
        ("numeric", -1, "NaN", "null"),
        ("numeric", numeric(10, 2), "NaN", "null"),
        # 2020 BC is the year -2019: 1456952 days before 1970
        ("timestamp", -1, "2020-01-01 00:00:00.12345 BC", str(-1456952 * 86_400_000_000 + 123_450)),
        ("timestamptz", -1, "10000-01-01 00:00:00.12345+00", '"+10000-01-01T00:00:00.123450Z"'),
        ("timestamptz", 1, "2016-11-04 13:51:30.1+02", '"2016-11-04T11:51:30.1Z"'),
        ("timestamptz", -1, "2016-11-04 23:51:30-05:30", '"2016-11-05T05:21:30.000000Z"'),
        ("time", -1, "24:00:00", "86400000000"),
        ("time", 2, "13:51:30.12", "49890120"),
        ("date", -1, "10000-01-01", "2932897"),
        ("bytea", -1, "\\xdeadbeef00", '"3q2+7wA="'),
        ("varchar", -1, "😀 \x01\x1f\x7f/", '"\\uD83D\\uDE00 \\u0001\\u001F\x7f/"'),
    ],
)
def test_texts_become_json(type_name, typmod, text, shown):
    assert written(column(type_name, typmod), text) == shown


@pytest.mark.parametrize(
    ("mode", "typmod", "text", "shown"),
    [
        ("string", numeric(10, 2), "1.50", '"1.50"'),
        ("string", -1, "NaN", '"NAN"'),
        ("string", -1, "-Infinity", '"NEGATIVE_INFINITY"'),
        ("double", -1, "1.50", "1.5"),
        ("double", -1, "12345678901234567890.123", "1.2345678901234567E19"),
        ("double", -1, "NaN", '"NaN"'),
    ],
)
def test_decimal_handling_modes(mode, typmod, text, shown):
    assert written(column("numeric", typmod), text, ValueOptions(decimal_mode=mode)) == shown


def test_decimals_are_numbers_where_the_converter_wants_them():
    encoding = JsonEncoding(False, False, False, True)
    assert written(column("numeric", numeric(20, 10)), "0.0000000150", encoding=encoding) == "1.50E-8"
    assert written(column("numeric", numeric(10, 2)), "12.30", encoding=encoding) == "12.30"


@pytest.mark.parametrize(
    ("mode", "type_name", "typmod", "schema", "text", "shown"),
    [
        ("adaptive", "timestamp", 3, "io.debezium.time.Timestamp", "1969-12-31 23:59:59.999", "-1"),
        ("microseconds", "timestamp", 3, "io.debezium.time.MicroTimestamp", "1969-12-31 23:59:59.999", "-1000"),
        ("connect", "timestamp", -1, "org.apache.kafka.connect.data.Timestamp", "1970-01-01 00:00:01.234567", "1234"),
        ("connect", "time", -1, "org.apache.kafka.connect.data.Time", "00:00:01.234567", "1234"),
        ("connect", "date", -1, "org.apache.kafka.connect.data.Date", "1970-01-03", "2"),
        ("adaptive_time_microseconds", "time", 3, "io.debezium.time.MicroTime", "00:00:01.2", "1200000"),
    ],
)
def test_time_precision_modes(mode, type_name, typmod, schema, text, shown):
    options = ValueOptions(time_mode=mode)
    assert column_plan(column(type_name, typmod), options).schema.name == schema
    assert written(column(type_name, typmod), text, options) == shown


def test_a_mode_that_is_not_supported_is_named():
    with pytest.raises(ConfigError, match=r"time\.precision\.mode=sometimes is not supported"):
        ValueOptions.from_config({"time.precision.mode": "sometimes"})
    assert ValueOptions.from_config({"decimal.handling.mode": "String"}).decimal_mode == "string"


@pytest.mark.parametrize("type_name", ["tsquery", "pg_lsn", "_int4", "money2"])
def test_unknown_types_have_no_plan(type_name):
    assert column_plan(column(type_name), ValueOptions()) is None


def test_a_domain_is_read_as_its_root_with_its_own_modifier_and_without_default():
    domain = PgColumn(
        "c", 99, "price", -1, False, "1.5", "d", (), (BaseType(98, "money2", -1, "d"), BaseType(1700, "numeric", numeric(10, 2)))
    )
    plan = column_plan(domain, ValueOptions())
    assert plan.schema.parameter("connect.decimal.precision") == "10"
    assert plan.schema.default is None
    assert written(domain, "1.50") == '"AJY="'


@pytest.mark.parametrize(
    ("type_name", "typmod", "expression", "default"),
    [
        ("int4", -1, "nextval('t_id_seq'::regclass)", 0),
        ("int8", -1, "'8'::bigint", 8),
        ("int8", -1, "(1)::bigint", None),
        ("int4", -1, "(1 + 2)", None),
        ("int2", -1, "99999", None),
        ("numeric", numeric(12, 2), "4.5", Decimal("4.50")),
        ("numeric", numeric(12, 2), "round(1.5)", Decimal("0.00")),
        ("numeric", -1, "3.10", None),
        ("bool", -1, "(1 = 1)", False),
        ("bool", -1, "true", True),
        ("varchar", -1, "'a''b'::character varying", "a"),
        ("text", -1, "CURRENT_USER", "CURRENT_USER"),
        ("text", -1, "lower('ABC'::text)", ""),
        ("text", -1, "CURRENT_TIMESTAMP", ""),
        ("varchar", -1, "localtime", ""),
        ("json", -1, "CURRENT_DATE", "{}"),
        ("text", -1, "NULL::text", None),
        ("citext", -1, "'Ci'::citext", None),
        ("jsonb", -1, "jsonb_build_object()", "{}"),
        ("date", -1, "'2020-01-02'::date", 18263),
        ("date", -1, "CURRENT_DATE", 0),
        ("timestamp", -1, "(now() AT TIME ZONE 'utc'::text)", 0),
        ("timestamptz", -1, "'2020-01-02 01:04:05.678+00'::timestamp with time zone", "2020-01-02T01:04:05.678000Z"),
        ("timestamptz", 0, "now()", "1970-01-01T00:00:00Z"),
        ("timestamptz", -1, "'-infinity'::timestamp with time zone", None),
        ("uuid", -1, "gen_random_uuid()", "00000000-0000-0000-0000-000000000000"),
        ("bytea", -1, "'\\x0102'::bytea", None),
    ],
)
def test_defaults_are_taken_from_literals(type_name, typmod, expression, default):
    plan = column_plan(column(type_name, typmod, default=expression), ValueOptions())
    assert plan.schema.default == default
    assert type(plan.schema.default) is type(default)


def test_a_required_value_without_json_form_stops_the_row_and_names_the_column():
    with pytest.raises(DataError, match=r"required column c .*NaN"):
        written(column("numeric", numeric(10, 2), nullable=False), "NaN")


def test_a_null_shows_the_default():
    encoder = PostgresEncoder("t", [column_plan(column("int4", default="7"), ValueOptions())], [], SOURCE_SCHEMA, PLAIN)
    assert b'"after":{"c":7}' in encoder.copy_row(b"\\N\n", SOURCE, END)[1]


def test_a_null_stays_null_where_the_converter_does_not_want_defaults():
    plans = [column_plan(column("int4", default="7"), ValueOptions())]
    encoder = PostgresEncoder("t", plans, [], SOURCE_SCHEMA, JsonEncoding(False, False, nulls_as_defaults=False))
    assert b'"after":{"c":null}' in encoder.copy_row(b"\\N\n", SOURCE, END)[1]
    assert b'"after":{"c":null}' in encoder.insert(b"I....N" + struct.pack(">hc", 1, b"n"), 5, SOURCE, END)[1]


def test_unchanged_values_that_were_not_sent_show_the_placeholder():
    plans = [
        column_plan(PgColumn(name, 1, type_name), ValueOptions(placeholder="ö"))
        for name, type_name in (("a", "text"), ("b", "bytea"), ("n", "numeric"))
    ]
    encoder = PostgresEncoder("t", plans, [], SOURCE_SCHEMA, PLAIN)
    _, value, _ = encoder.update(b"U....N" + struct.pack(">hccc", 3, b"u", b"u", b"u"), 5, SOURCE, END)
    assert '"after":{"a":"ö","b":"w7Y=","n":null}' in value.decode()


def test_unchanged_values_come_from_a_whole_old_row():
    encoder = PostgresEncoder("t", [column_plan(column("text"), ValueOptions())], [], SOURCE_SCHEMA, PLAIN)
    message = b"U....O" + struct.pack(">hci", 1, b"t", 3) + b"old" + b"N" + struct.pack(">hc", 1, b"u")
    assert b'"before":{"c":"old"},"after":{"c":"old"}' in encoder.update(message, 5, SOURCE, END)[1]


def test_columns_left_out_of_events_are_passed_over_in_tuples():
    plan = column_plan(PgColumn("b", 1, "int4"), ValueOptions())
    encoder = PostgresEncoder("t", [None, plan, None], ["b"], SOURCE_SCHEMA, PLAIN)
    for first in (b"x", b"\xc3\xa9", b"x" * 300):
        tuple_data = (
            struct.pack(">hci", 3, b"t", len(first)) + first + struct.pack(">ci", b"t", 1) + b"5" + struct.pack(">ci", b"t", 1) + b"z"
        )
        key, value = encoder.insert(b"I....N" + tuple_data, 5, SOURCE, END)
        assert (key, b'"after":{"b":5}' in value) == (b'{"b":5}', True)


def test_a_tuple_of_another_width_is_refused():
    encoder = PostgresEncoder("t", [column_plan(column("text"), ValueOptions())], [], SOURCE_SCHEMA, PLAIN)
    with pytest.raises(DataError, match="2 columns came for a table of 1"):
        encoder.insert(b"I....N" + struct.pack(">hcc", 2, b"n", b"n"), 5, SOURCE, END)
    with pytest.raises(DataError, match="unknown kind 'b'"):
        encoder.insert(b"I....N" + struct.pack(">hci", 1, b"b", 0), 5, SOURCE, END)


def test_a_key_of_a_partial_old_row_is_filled():
    plans = [column_plan(PgColumn(name, 1, "text", nullable=False), ValueOptions()) for name in ("a", "b")]
    encoder = PostgresEncoder("t", plans, ["a"], SOURCE_SCHEMA, PLAIN)
    key, value = encoder.delete(b"D....K" + struct.pack(">hcci", 2, b"n", b"t", 1) + b"x", 5, SOURCE, END)
    assert key == b'{"a":""}'
    assert value.startswith(b'{"before":{"a":"","b":"x"},"after":null,')


def test_names_that_are_syntax_elsewhere_are_only_names():
    for name in ("a'b", 'a"b', "{0}", "\\", "é\n", "😀", "import os"):
        encoder = PostgresEncoder(
            "t", [column_plan(PgColumn(name, 1, "int4", nullable=False), ValueOptions())], [name], SOURCE_SCHEMA, JsonEncoding()
        )
        key, _ = encoder.copy_row(b"1\n", SOURCE, END)
        assert encoder.copy_rows([b"1\n"], Route("t", None, encoder.value_schema), SOURCE, END)[0][1] == key
        assert key.endswith(b":1}}")


@pytest.mark.parametrize(
    ("type_name", "text"), [("numeric", "1,5"), ("numeric", ""), ("float8", "abc"), ("float8", ""), ("float8", "-"), ("float4", "nix")]
)
def test_what_is_no_number_is_no_value(type_name, text):
    """A text that is none was Infinity, or an error without a name."""
    assert written(column(type_name), text) == "null"
    with pytest.raises(DataError):
        written(column(type_name, nullable=False), text)


def test_a_time_with_a_zone_where_none_belongs_is_no_value():
    assert written(column("time"), "23:59:59.5+00") == "null"


def test_rows_of_copy_that_are_no_text_are_a_named_error():
    encoder = PostgresEncoder("t", [column_plan(column("text"), DEFAULTS)], [], SOURCE_SCHEMA, PLAIN)
    with pytest.raises(DataError, match="not UTF-8"):
        encoder.copy_rows([b"\xff\n"], Route("t", None, encoder.value_schema), SOURCE, END)
    with pytest.raises(DataError, match="not UTF-8"):
        encoder.copy_row(b"\xff", SOURCE, END)


@pytest.mark.parametrize("message", [b"I....", b"U....", b"U....O\0\1t\0\0\0\1a", b"D....K", b"U....O\0\1nX\0\1n"])
def test_changes_that_are_cut_short_are_a_named_error(message):
    encoder = PostgresEncoder("t", [column_plan(column("text"), DEFAULTS)], [], SOURCE_SCHEMA, PLAIN)
    change = {b"I": encoder.insert, b"U": encoder.update, b"D": encoder.delete}[message[:1]]
    with pytest.raises(DataError):
        change(message, 5, SOURCE, END)
