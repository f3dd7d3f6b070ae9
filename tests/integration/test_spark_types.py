"""Expressions of `spark_sink.types.columns` on a real Spark: every value comes out as it went in, or the statement fails."""

from __future__ import annotations

import base64
import datetime
import json
import random
from collections.abc import Sequence
from decimal import Context, Decimal
from typing import Any

import pytest

from connect_py.converters.json_schema import schema_to_json
from connect_py.data.schema import decimal_to_bytes
from connectors.postgres.types.extensions import SPARSE_VECTOR
from spark_sink.config.sink_config import parse
from spark_sink.read.schemaless import of_known_type
from spark_sink.sql.decode import decode_sql, problems_sql
from spark_sink.sql.record_schema import MAX_DEPTH, read_schemas
from spark_sink.types.columns import ColumnType, TypeOptions, column_type, literal

pytestmark = [pytest.mark.services, pytest.mark.spark]

EXACT = Context(prec=100)


def converted(spark: Any, schema: dict[str, Any], texts: Sequence[str], options: TypeOptions | None = None) -> list[Any]:
    """JSON values of a schema through `from_json` and the column's expression."""
    return of_type(spark, column_type(schema, options or TypeOptions()), texts)


def of_type(spark: Any, column: ColumnType, texts: Sequence[str]) -> list[Any]:
    """The same by the column's type."""
    wrapped = [literal('{"x":' + text + "}") for text in texts]
    rows = ", ".join(f"({number}, {text})" for number, text in enumerate(wrapped))
    read = spark.sql(f"SELECT n, from_json(j, {literal(f'struct<x:{column.read}>')}) v FROM VALUES {rows} AS t(n, j)")
    result = read.selectExpr("n", f"{column.convert('v.`x`')} x").orderBy("n")
    assert result.schema["x"].dataType.simpleString() == column.spark.replace("`", "")
    if column.spark == "timestamp":  # PySpark hands instants over in the process's own zone
        result = result.selectExpr("n", "CAST(x AS TIMESTAMP_NTZ) x")
    return [row["x"] for row in result.collect()]


def decimals(precision: int, scale: int) -> list[Decimal]:
    rng = random.Random(precision * 100 + scale)
    top = 10**precision - 1
    whole = [0, 1, -1, top, -top, top // 2, -top // 3, *(rng.randint(-top, top) for _ in range(6))]
    whole += [edge + step for bits in (8, 63, 64, 127) for edge in (2**bits, -(2**bits)) for step in (-1, 0, 1) if abs(edge + step) <= top]
    return [Decimal(value).scaleb(-scale, EXACT) for value in whole]


@pytest.mark.parametrize(
    ("precision", "scale"), [(1, 0), (5, 5), (12, 2), (18, 0), (18, 18), (19, 0), (19, 18), (38, 0), (38, 10), (38, 38)]
)
def test_decimals_of_every_size_are_exact(held_spark: Any, precision: int, scale: int) -> None:
    schema = {
        "type": "bytes",
        "name": "org.apache.kafka.connect.data.Decimal",
        "parameters": {"scale": str(scale), "connect.decimal.precision": str(precision)},
    }
    values = decimals(precision, scale)
    texts = [f'"{base64.b64encode(decimal_to_bytes(value, scale)).decode()}"' for value in values]
    assert converted(held_spark, schema, [*texts, "null"]) == [*values, None]


def test_decimals_of_variable_scale_are_plain_text(held_spark: Any) -> None:
    values = [
        "0",
        "1",
        "-1",
        "0.10",
        "-0.001",
        "12345678901234567890.5",
        "99999999999999999999999999999999999999",
        "-0.0000000000000000001",
    ]
    texts = []
    for value in values:
        scale = max(0, -Decimal(value).as_tuple().exponent)
        unscaled = base64.b64encode(decimal_to_bytes(Decimal(value), scale)).decode()
        texts.append(f'{{"scale":{scale},"value":"{unscaled}"}}')
    texts.append('{"scale":-3,"value":"BQ=="}')
    got = converted(held_spark, {"type": "struct", "name": "io.debezium.data.VariableScaleDecimal"}, [*texts, "null"])
    assert got == [*values, "5000", None]


def test_sparse_vectors_are_maps_by_index(held_spark: Any) -> None:
    schema = json.loads(schema_to_json(SPARSE_VECTOR))
    texts = ['{"dimensions":5,"vector":[[1,1.5],[3,-2.0E-7]]}', '{"dimensions":9,"vector":[]}', "null"]
    wanted = [{"dimensions": 5, "vector": {1: 1.5, 3: -2e-7}}, {"dimensions": 9, "vector": {}}, None]
    for options in (TypeOptions(), TypeOptions(nested_as_variant=True)):
        assert [row and row.asDict() for row in converted(held_spark, schema, texts, options)] == wanted
    several = converted(held_spark, {"type": "array", "items": schema}, [f"[{','.join(texts)}]"])
    assert [row and row.asDict() for row in several[0]] == wanted


@pytest.mark.parametrize("scale", [0, 3, 30, -2])
def test_decimals_of_any_length_are_plain_text(held_spark: Any, scale: int) -> None:
    rng = random.Random(scale)
    whole = [
        0,
        1,
        -1,
        255,
        -256,
        10**38,
        -(10**38),
        10**65 - 1,
        1 - 10**65,
        10**130 + 7,
        2**120,
        -(2**120),
        2**127,
        -(2**127),
        -(2**128),
        2**200,
    ]
    whole += [rng.randint(-(2**bits), 2**bits) for bits in range(100, 400, 13)]
    values = [Decimal(number).scaleb(-scale, Context(prec=200)) for number in whole]
    schema = {
        "type": "bytes",
        "name": "org.apache.kafka.connect.data.Decimal",
        "parameters": {"scale": str(scale), "connect.decimal.precision": "140"},
    }
    texts = [f'"{base64.b64encode(number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)).decode()}"' for number in whole]
    assert converted(held_spark, schema, [*texts, "null"]) == [*(f"{value:f}" for value in values), None]


def test_a_decimal_beyond_its_column_fails(held_spark: Any) -> None:
    schema = {
        "type": "bytes",
        "name": "org.apache.kafka.connect.data.Decimal",
        "parameters": {"scale": "0", "connect.decimal.precision": "2"},
    }
    for number in (100, 2**70, 2**140):
        text = f'"{base64.b64encode(decimal_to_bytes(Decimal(number), 0)).decode()}"'
        with pytest.raises(Exception, match=r"NUMERIC_VALUE_OUT_OF_RANGE|does not fit"):
            converted(held_spark, schema, [text])


UTC = datetime.UTC
ODD = datetime.datetime(1969, 12, 31, 23, 59, 59, 999999)  # a microsecond before 1970
LATE = datetime.datetime(9999, 12, 31, 23, 59, 59, 999999)
FIRST = datetime.datetime(1, 1, 1)


def micros(moment: datetime.datetime) -> int:
    return (moment - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("name", "type_", "pairs"),
    [
        ("io.debezium.time.Date", "int32", {
            0: datetime.date(1970, 1, 1), -719162: datetime.date(1, 1, 1), -2147472692: None, -622191234: None}),
        ("io.debezium.time.Timestamp", "int64", {-1: datetime.datetime(1969, 12, 31, 23, 59, 59, 999000), 9223372036825200000: None}),
        ("io.debezium.time.MicroTimestamp", "int64", {micros(m): m for m in (ODD, LATE, FIRST)} | {-9223372036832400000: None}),
        ("io.debezium.time.NanoTimestamp", "int64", {-1: ODD, 1: datetime.datetime(1970, 1, 1), -1001: ODD - datetime.timedelta(0, 0, 1),
            2**63 - 1000: datetime.datetime(2262, 4, 11, 23, 47, 16, 854774)}),
        ("io.debezium.time.ZonedTimestamp", "string", {
            '"2024-02-29T11:05:01.123456789Z"': datetime.datetime(2024, 2, 29, 11, 5, 1, 123456),
            '"2024-02-29T11:05:01+02:00"': datetime.datetime(2024, 2, 29, 9, 5, 1),
            '"infinity"': None, '"-infinity"': None, '"+292278994-08-16T23:00:00Z"': None}),
        ("io.debezium.time.IsoDate", "string", {'"2024-02-29Z"': datetime.date(2024, 2, 29), '"1969-01-01"': datetime.date(1969, 1, 1)}),
        ("io.debezium.time.IsoTimestamp", "string", {'"2024-02-29T11:05:01.5Z"': datetime.datetime(2024, 2, 29, 11, 5, 1, 500000)}),
        ("io.debezium.time.Time", "int32", {0: "00:00:00", 47101123: "13:05:01.123000", 86400000: "24:00:00"}),
        ("io.debezium.time.MicroTime", "int64", {
            1: "00:00:00.000001", -1: "-00:00:00.000001", -3020399000000: "-838:59:59", 3020399000000: "838:59:59"}),
        ("io.debezium.time.NanoTime", "int64", {1999: "00:00:00.000001", 86399999999999: "23:59:59.999999"}),
        ("io.debezium.time.NanoDuration", "int64", {-1001: -1, 5000: 5}),
        ("org.apache.kafka.connect.data.Date", "int32", {-1: datetime.date(1969, 12, 31)}),
        ("org.apache.kafka.connect.data.Timestamp", "int64", {-1: datetime.datetime(1969, 12, 31, 23, 59, 59, 999000)}),
    ],
)  # fmt: skip
def test_dates_and_times_are_exact(held_spark: Any, name: str, type_: str, pairs: dict[Any, Any]) -> None:
    got = converted(held_spark, {"type": type_, "name": name}, [*map(str, pairs), "null"])
    assert got == [*pairs.values(), None]


#: What Debezium sends for PostgreSQL's infinity and -infinity, by the schema's name: the type, and pairs of them.
INFINITE: dict[str, tuple[str, list[tuple[str, str]]]] = {
    "io.debezium.time.Date": ("int32", [("-2147472692", "-2147472691"), ("-622191234", "-625821272")]),
    "org.apache.kafka.connect.data.Date": ("int32", [("-2147472692", "-2147472691"), ("-622191234", "-625821272")]),
    "io.debezium.time.IsoDate": (
        "string",
        [('"-5877611-06-21Z"', '"-5877611-06-22Z"'), ('"+292278994-08-16Z"', '"+292269055-12-02Z"')],
    ),
    "io.debezium.time.Timestamp": ("int64", [("9223372036825200", "-9223372036832400")]),
    "org.apache.kafka.connect.data.Timestamp": ("int64", [("9223372036825200", "-9223372036832400")]),
    "io.debezium.time.MicroTimestamp": ("int64", [("9223372036825200000", "-9223372036832400000")]),
    "io.debezium.time.NanoTimestamp": ("int64", [("9223372036854775807", "-9223372036854775808")]),
    "io.debezium.time.IsoTimestamp": ("string", [('"+294247-01-10T04:00:25.2Z"', '"-290308-12-21T19:59:27.6Z"')]),
    "io.debezium.time.ZonedTimestamp": ("string", [('"infinity"', '"-infinity"')]),
}


@pytest.mark.parametrize("name", INFINITE)
def test_infinity_in_each_encoding_is_what_the_setting_says(held_spark: Any, name: str) -> None:
    type_, pairs = INFINITE[name]
    schema = {"type": type_, "name": name}
    texts = [text for pair in pairs for text in pair]
    ends: list[datetime.date] = [LATE, FIRST]
    if name.endswith("Date"):
        ends = [LATE.date(), FIRST.date()]
    assert converted(held_spark, schema, [*texts, "null"]) == [None] * (len(texts) + 1)
    assert converted(held_spark, schema, [*texts, "null"], TypeOptions(infinity="clamp")) == [*ends * len(pairs), None]
    for text in texts:
        with pytest.raises(Exception, match="infinity fits no column"):
            converted(held_spark, schema, [text], TypeOptions(infinity="fail"))


@pytest.mark.parametrize(
    ("wanted", "kind", "texts"),
    [
        ("date", "INT", ("-2147472692", "-2147472691")),
        ("date", "STRING", ('"-5877611-06-21Z"', '"-5877611-06-22Z"')),
        ("timestamp", "BIGINT", ("9223372036825200", "-9223372036832400")),
        ("timestamp", "STRING", ('"infinity"', '"-infinity"')),
        ("timestamp_ntz", "BIGINT", ("9223372036825200", "-9223372036832400")),
        ("timestamp_ntz", "STRING", ('"+294247-01-10T04:00:25.2Z"', '"-290308-12-21T19:59:27.6Z"')),
    ],
)
def test_infinity_without_a_schema_is_what_the_setting_says(held_spark: Any, wanted: str, kind: str, texts: tuple[str, str]) -> None:
    assert of_type(held_spark, of_known_type(wanted, kind, TypeOptions()), [*texts, "null"]) == [None] * 3
    ends = [LATE.date(), FIRST.date()] if wanted == "date" else [LATE, FIRST]
    assert of_type(held_spark, of_known_type(wanted, kind, TypeOptions(infinity="clamp")), texts) == ends


def test_years_of_five_digits_are_kept(held_spark: Any) -> None:
    beyond = {
        ("io.debezium.time.ZonedTimestamp", "string", "timestamp"): '"+10000-01-02T03:04:05.678901Z"',
        ("io.debezium.time.IsoTimestamp", "string", "timestamp_ntz"): '"+10000-01-02T03:04:05.678901Z"',
        ("io.debezium.time.MicroTimestamp", "int64", "timestamp_ntz"): str(micros(LATE) + 1 + 97_445_678_901),
    }
    for (name, type_, spark), text in beyond.items():
        column = column_type({"type": type_, "name": name}, TypeOptions(infinity="fail"))
        assert column.spark == spark
        wrapped = literal('{"x":' + text + "}")
        read = held_spark.sql(f"SELECT from_json({wrapped}, {literal(f'struct<x:{column.read}>')}) v")
        assert read.selectExpr(f"CAST({column.convert('v.`x`')} AS STRING) x").collect()[0]["x"] == "+10000-01-02 03:04:05.678901", name
    zoned = {"type": "string", "name": "io.debezium.time.ZonedTimestamp"}
    with pytest.raises(Exception, match="CAST_INVALID_INPUT"):  # PostgreSQL's last instants are beyond 64 bits of microseconds
        converted(held_spark, zoned, ['"+294276-12-31T23:59:59Z"'])


def test_options_choose_what_odd_values_become(held_spark: Any) -> None:
    variable = {"type": "struct", "name": "io.debezium.data.VariableScaleDecimal"}
    texts = ['{"scale":3,"value":"BQ=="}', '{"scale":-3,"value":"BQ=="}', "null"]
    assert converted(held_spark, variable, texts, TypeOptions(variable_decimal="decimal(10,3)")) == [Decimal("0.005"), Decimal(5000), None]
    assert converted(held_spark, variable, texts, TypeOptions(variable_decimal="double")) == [0.005, 5000.0, None]
    wide = {
        "type": "bytes",
        "name": "org.apache.kafka.connect.data.Decimal",
        "parameters": {"connect.decimal.precision": "50", "scale": "0"},
    }
    number = base64.b64encode((10**45).to_bytes(20, "big", signed=True)).decode()
    assert converted(held_spark, wide, [f'"{number}"'], TypeOptions(overflow="double")) == [1e45]
    bits = {"type": "bytes", "name": "io.debezium.data.Bits", "parameters": {"length": "17"}}
    assert converted(held_spark, bits, ['"//8B"', '"AQAA"', "null"], TypeOptions(bits="bigint")) == [131071, 1, None]
    json_schema = {"type": "string", "name": "io.debezium.data.Json"}
    assert str(converted(held_spark, json_schema, ['"[1,2]"'], TypeOptions(json="variant"))[0]) == "[1,2]"
    with pytest.raises(Exception, match="MALFORMED_RECORD_IN_PARSING"):
        converted(held_spark, json_schema, ['"[1,"'], TypeOptions(json="variant"))


def test_values_as_deep_as_schemas_may_be_are_read(held_spark: Any) -> None:
    schema: dict[str, Any] = {"type": "int32", "name": "io.debezium.time.Date"}
    for number in range(MAX_DEPTH - 1):
        array = {"type": "array", "items": schema}
        schema = array if number % 2 else {"type": "struct", "fields": [{**schema, "field": "f"}]}
    text = "1"
    for number in range(MAX_DEPTH - 1):
        text = f"[{text}]" if number % 2 else f'{{"f":{text}}}'
    found = converted(held_spark, schema, [text])[0]
    for number in reversed(range(MAX_DEPTH - 1)):
        found = found[0] if number % 2 else found["f"]
    assert found == datetime.date(1970, 1, 2)


def test_a_scale_that_would_fill_the_memory_is_a_bad_value(held_spark: Any) -> None:
    with pytest.raises(Exception, match="no decimal has a scale of -2000000000"):
        converted(held_spark, {"type": "struct", "name": "io.debezium.data.VariableScaleDecimal"}, ['{"scale":-2000000000,"value":"AQ=="}'])


def test_a_zoned_timestamp_that_is_none_fails(held_spark: Any) -> None:
    with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
        converted(held_spark, {"type": "string", "name": "io.debezium.time.ZonedTimestamp"}, ['"yesterday"'])


def test_compound_values_convert_their_parts(held_spark: Any) -> None:
    day = {"type": "int32", "name": "io.debezium.time.Date"}
    inner = {"type": "struct", "fields": [{**day, "field": "d"}, {"type": "string", "field": "it's"}]}
    schema = {"type": "array", "items": {"type": "map", "keys": {"type": "string"}, "values": inner}}
    got = converted(held_spark, schema, ['[{"k":{"d":1,"it\'s":"x"},"l":null},null]', "null", "[]"])
    assert got[0][0]["k"].asDict() == {"d": datetime.date(1970, 1, 2), "it's": "x"}
    assert (got[0][0]["l"], got[0][1], got[1], got[2]) == (None, None, None, [])


#: Payloads of a key with one field, of which some are no key of whole numbers.
KEYS = (
    *(f'{{"n":{number}}}' for number in (0, 7, -7, 127, -128, 128, 32767, 32768, 2**31 - 1, -(2**31), 2**31, 2**63 - 1, -(2**63), 2**63)),
    *(f'{{"n":{text}}}' for text in ("-0", "05", "+5", " 5", "5 ", "5L", "1_0", "1.0", "1e2", "0x5", '"5"', "null", "true", "", "\uff15")),
    *('{"n": 5}', ' {"n":5}', '{"n":5} ', '{"n":5}}', '{"n":5,"x":1}', '{"n":1,"n":2}', '{"N":5}', "{}", "5", "null", ""),
    *('{"n":5', '"n":5}'),
)


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_a_key_of_one_whole_number_is_what_a_parser_makes_of_it(held_spark: Any, bits: int) -> None:
    """Keys with two fields are always parsed: those with an absent second one say what is expected."""
    config = parse({"topics": "t", "lakehouse.catalog.type": "hadoop", "lakehouse.catalog.warehouse": "file:/nowhere"})

    def keys(*names: str) -> list[tuple[Any, ...]]:
        fields = [{"field": name, "type": f"int{bits}", "optional": True} for name in names]
        schema = read_schemas({"type": "struct", "fields": fields}, None, tombstone=True, options=TypeOptions())
        rows = ", ".join(f"({number}, {literal(text)})" for number, text in enumerate(KEYS))
        records = held_spark.sql(
            f"SELECT 't' topic, 0 `partition`, n `offset`, current_timestamp() `timestamp`, key FROM VALUES {rows} AS t(n, key)"
        )
        bad = records
        for step in problems_sql(schema, {}, config):
            bad = bad.selectExpr(*step)
        problems = {row["offset"]: row["problem"] for row in bad.where("problem IS NOT NULL").collect()}
        records = records.where(f"`offset` NOT IN ({', '.join(map(str, problems))})")
        for step in decode_sql(schema, {}, config):
            records = records.selectExpr(*step)
        good = records.selectExpr("`$offset`", "n").collect()
        assert len(good) + len(problems) == len(KEYS)
        return sorted([*problems.items(), *(tuple(row) for row in good)])

    found = keys("n")
    assert found == keys("n", "absent")
    assert [value for _, value in found[:4]] == [0, 7, -7, 127]
    assert found[KEYS.index('{"n":05}')][1] == "the key is not what its schema says"
