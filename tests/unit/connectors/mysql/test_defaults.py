"""Defaults of columns, as statements write them and a schema shows them; parity holds those that SHOW CREATE TABLE writes."""

from __future__ import annotations

from typing import Any

from connect_py.api import JsonEncoding
from connectors.engine.relational.tables import TableId
from connectors.mysql.config.config import parse_config
from connectors.mysql.ddl.statements import apply
from connectors.mysql.model import Tables
from connectors.mysql.schema.captured import TableFactory
from tests.unit.connectors.mysql.test_properties import GIVEN


def defaults(columns: str, **properties: str) -> dict[str, Any]:
    """Return the defaults of a table's fields by their names."""
    tables = Tables()
    apply(f"CREATE TABLE t ({columns}, id INT)", tables, "d")
    config = parse_config({**GIVEN, **properties}, "mysql")
    found = TableFactory(config, JsonEncoding(key_schemas=False, value_schemas=False), ()).build(tables.tables[TableId("d", "t")])
    return {column.name: column.schema.default for column in found.encoder.columns if column.schema.default is not None}


def test_a_time_is_written_with_any_digits_and_with_a_date_before_it() -> None:
    columns = (
        "a TIME DEFAULT '8:30:00', b TIME NOT NULL DEFAULT '0:0:0', c TIME DEFAULT '2020-01-01 10:20:30',"
        " d TIME(2) DEFAULT '-1:2:3.5', e TIME DEFAULT '10:20'"
    )
    assert defaults(columns) == {"a": 30_600_000_000, "b": 0, "c": 37_230_000_000, "d": -3_723_500_000, "e": 37_200_000_000}


def test_what_is_no_time_is_no_default() -> None:
    assert defaults("a TIME DEFAULT 'soon', b TIME NOT NULL DEFAULT '::'") == {}


def test_a_clock_of_mariadb_is_the_default_of_columns_that_may_not_be_null() -> None:
    columns = (
        "a DATE DEFAULT curdate(), b DATE NOT NULL DEFAULT curdate(), c TIME NOT NULL DEFAULT curtime(), d DATETIME NOT NULL DEFAULT now()"
    )
    assert defaults(columns) == {"b": 0, "d": 0}


def test_other_functions_of_mariadb_are_no_defaults() -> None:
    columns = (
        "a DATE NOT NULL DEFAULT current_date, b DATETIME DEFAULT utc_timestamp(), c TIME DEFAULT current_time(), d DATE DEFAULT utc_date()"
    )
    assert defaults(columns) == {}
