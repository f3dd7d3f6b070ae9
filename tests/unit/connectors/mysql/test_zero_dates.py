"""ZeroDateFallbackConverter: what stands for dates of zeros, in which schema, and with which default."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pytest

from connect_py.api import Conversion, ConvertedColumn, JsonEncoding
from connect_py.data import Type
from connect_py.errors import ConfigError
from connectors.engine.relational.tables import TableId
from connectors.mysql.config.config import parse_config, validate_config
from connectors.mysql.ddl.statements import apply
from connectors.mysql.model import Tables
from connectors.mysql.schema.captured import CapturedTable, TableFactory
from connectors.mysql.types.custom import ZeroDateFallbackConverter

NAME = "io.debezium.connector.binlog.converters.ZeroDateFallbackConverter"
GIVEN = {
    "database.hostname": "h",
    "database.user": "u",
    "database.server.id": "1",
    "topic.prefix": "p",
    "schema.history.internal.kafka.topic": "history",
    "schema.history.internal.kafka.bootstrap.servers": "h:1",
    "converters": "zero",
    "zero.type": NAME,
}
DAY = (date(2001, 2, 3) - date(1970, 1, 1)).days
MILLIS = DAY * 86_400_000
ZEROS = ("0000-00-00", "2020-00-10", "2020-05-00", "0000-05-06")
VALUES = {"fallback.date": "2001-02-03", "fallback.datetime": "2001-02-03 00:00:00", "fallback.timestamp": "2001-02-03T00:00:00Z"}
MOMENT = "2001-02-03T00:00:00Z"


def asked(type_name: str, length: int | None = None, **properties: str) -> Conversion | None:
    converter = ZeroDateFallbackConverter()
    converter.configure({name.replace("_", "."): text for name, text in properties.items()})
    return converter.converter_for(ConvertedColumn("c", "d.t", type_name, length=length, optional=False))


def taken(type_name: str, length: int | None = None, **properties: str) -> Conversion:
    found = asked(type_name, length, **properties)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("type_name", "length", "logical", "text", "value"),
    [
        ("DATE", None, "Date", "2001-02-03", DAY),
        ("DATETIME", None, "Timestamp", "2001-02-03 00:00:01", MILLIS + 1000),
        ("DATETIME", 3, "Timestamp", "2001-02-03 00:00:00.125", MILLIS + 125),
        ("DATETIME", 4, "MicroTimestamp", "2001-02-03 00:00:00.1250", MILLIS * 1000 + 125_000),
        ("DATETIME", 6, "MicroTimestamp", "1969-12-31 23:59:59.999999", -1),
        ("TIMESTAMP", None, "ZonedTimestamp", "2001-02-03 04:05:06", "2001-02-03T04:05:06Z"),
        ("TIMESTAMP", 3, "ZonedTimestamp", "2001-02-03 04:05:06.120", "2001-02-03T04:05:06.12Z"),
        ("timestamp", 6, "ZonedTimestamp", "2001-02-03 04:05:06.000000", "2001-02-03T04:05:06Z"),
    ],
)
def test_values_have_one_form_whatever_the_precision_mode(type_name: str, length: int | None, logical: str, text: str, value: Any) -> None:
    found = taken(type_name, length)
    assert (found.schema.name, found.schema.version) == (f"io.debezium.time.{logical}", 1)
    assert found.convert(text) == value


@pytest.mark.parametrize("fallback", [None, "", "NULL", " Null "])
def test_zeros_are_null_unless_a_value_is_given(fallback: str | None) -> None:
    given = {} if fallback is None else dict.fromkeys(VALUES, fallback)
    for type_name, clock in (("DATE", ""), ("DATETIME", " 00:00:00"), ("TIMESTAMP", " 00:00:00")):
        found = taken(type_name, **given)
        assert found.schema.optional
        assert [found.convert(zero + clock) for zero in ZEROS] == [None] * len(ZEROS)
        assert found.convert(None) is None
        assert found.default is not None
        assert found.default("2030-01-01") is None


def test_zeros_and_null_are_the_value_that_is_given() -> None:
    forms = [("DATE", None, "", DAY), ("DATETIME", 3, " 00:00:00.000", MILLIS), ("DATETIME", 6, " 00:00:00.000000", MILLIS * 1000)]
    for type_name, length, clock, value in [*forms, ("TIMESTAMP", None, " 00:00:00", MOMENT)]:
        found = taken(type_name, length, **VALUES)
        assert not found.schema.optional
        assert [found.convert(zero + clock) for zero in ZEROS] == [value] * len(ZEROS)
        assert found.convert(None) == value
        assert found.default is not None
        assert found.default("2030-01-01") == value


def test_the_first_moment_of_unix_is_no_zero() -> None:
    assert taken("DATE", **VALUES).convert("1970-01-01") == 0
    assert taken("DATETIME", **VALUES).convert("1970-01-01 00:00:00") == 0
    assert taken("TIMESTAMP", **VALUES).convert("1970-01-01 00:00:01") == "1970-01-01T00:00:01Z"


def test_a_day_of_no_calendar_is_not_taken_for_a_zero() -> None:
    with pytest.raises(ValueError, match="2021-02-31 is in no calendar"):
        taken("DATE", **VALUES).convert("2021-02-31")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2001-02-03T04:05Z", "2001-02-03T04:05:00Z"),
        (" 2001-02-03t04:05:06.1200z ", "2001-02-03T04:05:06.12Z"),
        ("2001-02-03T04:05:06.000000001+05:30", "2001-02-02T22:35:06.000000001Z"),
        ("2001-02-03T23:00:00.-02:30", "2001-02-04T01:30:00Z"),
        ("2001-02-03T04:00:00+01:30:15", "2001-02-03T02:29:45Z"),
        ("2001-02-03T04:00:00+01", "2001-02-03T03:00:00Z"),
    ],
)
def test_a_fallback_of_timestamp_is_shown_in_utc(text: str, shown: str) -> None:
    assert taken("TIMESTAMP", fallback_timestamp=text).convert(None) == shown


@pytest.mark.parametrize(
    ("type_name", "text"),
    [
        ("date", "never"),
        ("date", "2001-02-30"),
        ("date", "0000-00-00"),
        ("date", "2001-02-03 00:00:00"),
        ("datetime", "2001-02-03"),
        ("datetime", "2001-02-03 24:00:00"),
        ("datetime", "2001-02-03 00:00:00.5"),
        ("timestamp", "2001-02-03 00:00:00"),
        ("timestamp", "2001-02-03T00:00:00"),
        ("timestamp", "2001-02-30T00:00:00Z"),
        ("timestamp", "2001-02-03T00:00:00+0200"),
        ("timestamp", "2001-02-03T00:00:00+19:00"),
        ("timestamp", "0001-01-01T00:00:00+01:00"),
    ],
)
def test_a_fallback_that_is_no_value_is_refused(type_name: str, text: str) -> None:
    name = f"fallback.{type_name}"
    with pytest.raises(ConfigError, match=rf"^fallback\.{type_name}=.* stands for no value: .* Write NULL, or one such as 2000-01-31"):
        asked("VARCHAR", **{name: text})
    problems = {value.name: value.errors for value in validate_config({**GIVEN, f"zero.{name}": text}, "mysql")}
    assert f"{name}={text} stands for no value" in problems["converters"][0]
    with pytest.raises(ConfigError, match=r"^column\.d\.t\.c\.fallback="):
        asked(type_name, **{"column.d.t.c.fallback": text})


def test_a_column_has_a_fallback_of_its_own() -> None:
    assert taken("DATE", **VALUES, **{"column.d.t.c.fallback": "1999-12-31"}).convert(None) == 10956
    assert taken("DATE", **VALUES, **{"column.d.t.c.fallback": "null"}).schema.optional
    assert taken("DATE", **VALUES, **{"column.d.t.other.fallback": "null"}).convert(None) == DAY


def test_types_and_selectors_decide_which_columns_are_taken() -> None:
    assert asked("TIME") is None
    assert asked("YEAR") is None
    assert asked("VARCHAR") is None
    found = [name for name in ("DATE", "DATETIME", "TIMESTAMP") if asked(name, target_types=" datetime , TIMESTAMP")]
    assert found == ["DATETIME", "TIMESTAMP"]
    assert asked("DATE", target_types="") is None
    assert asked("DATE", selector=r"d\.t\.other, .*\.u\.c") is None
    for selector in (r"D\.t\.c", ".*", " "):
        assert asked("DATE", selector=selector) is not None


# -- in a table ------------------------------------------------------------------------------------------------------------------------


def table(columns: str, **properties: str) -> CapturedTable:
    tables = Tables()
    apply(f"CREATE TABLE t ({columns})", tables, "d")
    config = parse_config({**GIVEN, **{f"zero.{name}": text for name, text in properties.items()}}, "mysql")
    return TableFactory(config, JsonEncoding(key_schemas=False, value_schemas=False), ()).build(tables.tables[TableId("d", "t")])


def fields(found: CapturedTable) -> dict[str, tuple[bool, Any]]:
    return {column.name: (column.schema.optional, column.schema.default) for column in found.encoder.columns}


def row(found: CapturedTable, *texts: str | None) -> Any:
    """Of the stream, which the snapshot's must be the same as."""
    rows = [json.loads(found.encoder.image(texts, snapshot=snapshot)[1]) for snapshot in (False, True)]
    assert rows[0] == rows[1]
    return list(rows[0].values())


COLUMNS = (
    "id INT PRIMARY KEY, n DATE, nn DATE NOT NULL, d DATETIME DEFAULT '2030-12-31', dn DATETIME NOT NULL DEFAULT '2030-12-31 23:59:59',"
    " z DATE DEFAULT '0000-00-00', zn DATE NOT NULL DEFAULT '0000-00-00', t TIMESTAMP NULL DEFAULT CURRENT_TIMESTAMP,"
    " tn TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, e DATE DEFAULT (CURRENT_DATE), free VARCHAR(9) NOT NULL DEFAULT 'x'"
)
ZERO_ROW = ("1", None, "0000-00-00", "0000-00-00 00:00:00", "2020-00-00 00:00:00", None, *ZEROS[:1], None, "0000-00-00 00:00:00", None, "y")


def test_null_makes_fields_optional_and_takes_their_defaults() -> None:
    found = table(COLUMNS)
    taken_away = dict.fromkeys(("n", "nn", "d", "dn", "z", "zn", "t", "tn", "e"), (True, None))
    assert fields(found) == {"id": (False, None), **taken_away, "free": (False, "x")}
    assert row(found, *ZERO_ROW) == [1, *[None] * 9, "y"]
    assert row(found, "1", "2001-02-03", "2001-02-03", "2001-02-03 00:00:00", "2001-02-03 00:00:00", *ZERO_ROW[5:]) == [
        *(1, DAY, DAY, MILLIS, MILLIS),
        *[None] * 5,
        "y",
    ]


def test_a_value_is_the_default_of_columns_that_show_one() -> None:
    found = table(COLUMNS, **VALUES)
    assert fields(found) == {
        "id": (False, None),
        "n": (True, None),
        "nn": (False, None),
        "d": (True, MILLIS),
        "dn": (False, MILLIS),
        "z": (True, None),
        "zn": (False, DAY),
        "t": (True, None),
        "tn": (False, MOMENT),
        "e": (True, None),
        "free": (False, "x"),
    }
    assert row(found, *ZERO_ROW) == [1, DAY, DAY, MILLIS, MILLIS, DAY, DAY, MOMENT, MOMENT, DAY, "y"]


def test_a_key_of_zeros_is_null_or_the_value() -> None:
    columns = "day DATE, at TIMESTAMP(3), PRIMARY KEY (day, at)"
    texts = ("0000-00-00", "0000-00-00 00:00:00.000")
    found = table(columns, **{"column.d.t.at.fallback": MOMENT})
    key, after = found.encoder.image(texts)
    assert key == after == b'{"day":null,"at":"2001-02-03T00:00:00Z"}'
    schema = found.encoder.key_schema
    assert schema is not None
    assert [(field.schema.type, field.schema.optional) for field in schema.fields] == [(Type.INT32, True), (Type.STRING, False)]


def test_a_fallback_of_a_column_that_is_no_value_fails_its_table() -> None:
    with pytest.raises(ConfigError, match=r"column\.d\.t\.n\.fallback=soon stands for no value"):
        table(COLUMNS, **{"column.d.t.n.fallback": "soon"})
