"""The JDBC sink's values, statements and errors, without a server."""

from __future__ import annotations

import datetime
import decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import create_engine
from sqlalchemy.exc import OperationalError

from connect_py.data import BYTES, INT32, INT64, STRING, Schema, Struct, Type
from connect_py.data.schema import array, struct
from connect_py.errors import DataError, FatalTaskError, RetriableError
from connectors.jdbc import column_types
from connectors.jdbc.config import parse_config
from connectors.jdbc.dialects.mysql import MySqlDialect
from connectors.jdbc.dialects.postgres import PostgresDialect
from connectors.jdbc.errors import MYSQL, POSTGRES, BusyError, StaleTableError, database_error
from connectors.jdbc.naming import TableId
from connectors.jdbc.records import Column, Shape

EPOCH_SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("days", "text"),
    [
        (0, "1970-01-01"),
        (19782, "2024-02-29"),
        (-1, "1969-12-31"),
        (-719163, "0001-12-31 BC"),
        (2932896, "9999-12-31"),
        (2932897, "10000-01-01"),
    ],
)
def test_days_are_dates_of_any_year(days: int, text: str) -> None:
    assert column_types.date_text(days) == text


def test_dates_agree_with_pythons_calendar() -> None:
    for ordinal in range(1, datetime.date.max.toordinal(), 9973):
        found = datetime.date.fromordinal(ordinal)
        assert column_types.date_text(ordinal - datetime.date(1970, 1, 1).toordinal()) == found.isoformat()


@pytest.mark.parametrize(
    ("nanos", "text"),
    [
        (0, "00:00:00"),
        (86_399 * EPOCH_SECOND + 999_999_999, "23:59:59.999999999"),
        (86_400 * EPOCH_SECOND, "24:00:00"),
        (-3_020_399 * EPOCH_SECOND, "-838:59:59"),
        (1_500_000_000, "00:00:01.5"),
    ],
)
def test_times_keep_every_digit_and_mysqls_range(nanos: int, text: str) -> None:
    assert column_types.time_text(nanos) == text


def test_moments_before_1970_and_before_christ() -> None:
    assert column_types.timestamp_text(-1_000) == "1969-12-31 23:59:59.999999"
    assert column_types.timestamp_text(-719163 * column_types.DAY) == "0001-12-31 00:00:00 BC"


def test_zoned_moments_are_shown_by_the_clocks_of_a_zone() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    assert column_types.local_timestamp("2024-02-29T12:00:00.123456789Z", berlin) == "2024-02-29 13:00:00.123456"
    assert column_types.local_time("10:00:00.5+02:00", ZoneInfo("UTC")) == "08:00:00.500000"
    for wrong in ("x", "9999-12-31T23:59:59Z"):
        with pytest.raises(DataError):
            column_types.local_timestamp(wrong, ZoneInfo("Asia/Tokyo"))


@pytest.mark.parametrize(
    ("data", "length", "text"),
    [(b"\x05", 3, "101"), (b"\x01\x01", 9, "100000001"), (b"\x05", None, "101"), (b"", None, ""), (b"\x00", 2, "00")],
)
def test_bits_are_read_from_the_lowest_byte(data: bytes, length: int | None, text: str) -> None:
    assert column_types.bit_text(data, length) == text


def test_texts_that_postgres_reads_escape_quotes_and_backslashes() -> None:
    assert column_types.array_text([1, None, 'a"\\', True, [2]]) == '{"1",NULL,"a\\"\\\\",t,{"2"}}'
    assert column_types.hstore_text({'k"': None, "a": "b\\"}) == '"k\\"" => NULL, "a" => "b\\\\"'
    assert column_types.hstore_of_json('{"a": 1}') == '"a" => "1"'
    assert column_types.interval_text(-1_500_000) == "-1.5 seconds"
    assert column_types.interval_text(37_091_106_789_000) == "37091106.789 seconds"


def test_variable_decimals_keep_all_digits() -> None:
    schema = struct([("scale", INT32), ("value", BYTES)])
    number = Struct(schema, [20, (12345678901234567890123456789012345).to_bytes(16, "big", signed=True)])
    assert column_types.variable_decimal(number) == decimal.Decimal("123456789012345.67890123456789012345")


def test_an_srid_in_wkb_is_taken_out() -> None:
    point = bytes.fromhex("0101000000000000000000f03f0000000000000040")
    extended = bytes.fromhex("0101000020e6100000000000000000f03f0000000000000040")
    assert column_types.plain_wkb(extended) == column_types.plain_wkb(point) == point


# -- statements


def dialect(kind: str, **more: str) -> Any:
    config = parse_config({"connection.url": f"jdbc:{kind}://h/d", "connection.username": "u", **more})
    if kind == "postgresql":
        return PostgresDialect(config, create_engine("postgresql+psycopg://h/d"))
    return MySqlDialect(config, create_engine("mysql+pymysql://h/d"))


EVIL = 'x"; DROP TABLE t; --`%s'


def shape(*columns: tuple[str, Schema, bool]) -> Shape:
    made = [Column(*column) for column in columns]
    return Shape(tuple(c for c in made if c.is_key), tuple(c for c in made if not c.is_key))


def test_names_of_records_are_quoted_and_their_percent_signs_doubled() -> None:
    rows = shape((EVIL, INT32, True))
    assert dialect("postgresql", **{"quote.identifiers": "true"}).create_table(TableId("", EVIL), rows) == (
        'CREATE TABLE "x""; DROP TABLE t; --`%%s" ("x""; DROP TABLE t; --`%%s" integer NOT NULL, PRIMARY KEY ("x""; DROP TABLE t; --`%%s"))'
    )
    assert '`x"; DROP TABLE t; --``%%s`' in dialect("mysql", **{"quote.identifiers": "true"}).create_table(TableId("", EVIL), rows)


@pytest.mark.parametrize(
    ("text", "literal"),
    [("it's", "'it''s'"), ("it''s", "'it''s'"), ("'''", "''''''''"), ("'", "''''"), ("a\\", "'a\\'"), ("100%", "'100%'")],
)
def test_defaults_cannot_end_their_literal(text: str, literal: str) -> None:
    assert dialect("postgresql").literal(text) == literal


def test_a_default_of_mysql_has_its_backslashes_doubled_and_of_all_drivers_its_percent_signs() -> None:
    sized = (("__debezium.source.column.type", "VARCHAR"), ("__debezium.source.column.length", "20"))
    column = shape(("a", Schema(Type.STRING, parameters=sized, default="\\' %s"), False))
    assert "varchar(20) DEFAULT '\\\\'' %%s' NOT NULL" in dialect("mysql").create_table(TableId("", "t"), column)
    assert "DEFAULT '\\'' %%s' NOT NULL" in dialect("postgresql").create_table(TableId("", "t"), column)


def test_values_of_an_enumeration_cannot_end_their_literal() -> None:
    mood = Schema(Type.STRING, name="io.debezium.data.Enum", parameters=(("allowed", "a\\,b,c'd,e\\"),))
    assert "enum('a,b','c''d','e\\\\')" in dialect("mysql").create_table(TableId("", "t"), shape(("m", mood, False)))


def test_statements_of_each_mode() -> None:
    rows = shape(("id", INT64, True), ("A", STRING, False))
    made = dialect("postgresql")
    assert "".join(made.insert(TableId("s", "T"), rows)) == 'INSERT INTO "s"."t" ("id", "a") VALUES (%s, %s)'
    assert "".join(made.upsert(TableId("", "t"), rows)).endswith(' ON CONFLICT ("id") DO UPDATE SET "a" = EXCLUDED."a"')
    assert "".join(made.upsert(TableId("", "t"), shape(("id", INT64, True)))).endswith(' ON CONFLICT ("id") DO NOTHING')
    assert made.update(TableId("", "t"), rows) == 'UPDATE "t" SET "a" = %s WHERE "id" = %s'
    assert made.delete(TableId("", "t"), rows) == 'DELETE FROM "t" WHERE "id" = %s'
    assert made.truncate(TableId("", "t")) == 'TRUNCATE TABLE "t"'
    assert "".join(dialect("mysql").upsert(TableId("d", "t"), rows)).endswith(" ON DUPLICATE KEY UPDATE `a` = VALUES(`a`)")


def test_a_type_that_the_database_has_not_is_an_error_of_the_record() -> None:
    with pytest.raises(DataError, match=r"Failed to resolve column type for schema: ARRAY \(None\)"):
        dialect("mysql").create_table(TableId("", "t"), shape(("a", array(INT32), False)))
    with pytest.raises(DataError, match="STRUCT"):
        dialect("postgresql").create_table(TableId("", "t"), shape(("a", struct([]), False)))


# -- errors


def wrapped(error: Exception) -> OperationalError:
    return OperationalError("SELECT secret", {"p": "secret"}, error)


def test_every_sqlstate_of_the_table_becomes_its_class() -> None:
    import psycopg

    for state, sort in POSTGRES:
        error = psycopg.OperationalError("text")
        error.sqlstate = (state + "00000")[:5] if state else "42601"
        found = database_error(wrapped(error), "w")
        assert type(found) is sort, state
        assert "secret" not in str(found)


def test_every_number_of_mysqls_table_becomes_its_class() -> None:
    import pymysql

    for number, sort in MYSQL.items():
        assert type(database_error(wrapped(pymysql.err.OperationalError(number, "text")), "w")) is sort
    assert type(database_error(wrapped(pymysql.err.ProgrammingError(1064, "syntax")), "w")) is FatalTaskError
    denied = database_error(wrapped(pymysql.err.OperationalError(1045, "denied")), "w")
    assert isinstance(denied, FatalTaskError)
    assert "connection.password" in str(denied)


def test_errors_of_sqlite_and_of_python() -> None:
    import sqlite3

    assert isinstance(database_error(wrapped(sqlite3.OperationalError("database is locked")), "w"), BusyError)
    assert isinstance(database_error(wrapped(sqlite3.OperationalError("no such table: t")), "w"), StaleTableError)
    assert isinstance(database_error(wrapped(sqlite3.IntegrityError("UNIQUE")), "w"), DataError)
    assert isinstance(database_error(OverflowError("too large"), "w"), DataError)
    assert isinstance(database_error(ConnectionResetError("reset"), "w"), RetriableError)
