"""The columns of a table share the names of its generated code, and none takes another's: a table of all types, in any order of columns and
with any handling modes, shows each value as a table of that column alone does, and as the careful way does, which uses no names."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from connect_py.api import JsonEncoding, Route
from connectors.engine.encode.plan import ColumnPlan
from connectors.engine.encode.table import TableEncoder
from connectors.engine.envelope import tail
from connectors.engine.relational.column_rules import ColumnFacts, ColumnRules
from connectors.mysql.ddl.statements import apply
from connectors.mysql.model import MyColumn, Tables
from connectors.mysql.position.source_info import block_schema
from connectors.mysql.server.text_rows import any_rows, usual_rows
from connectors.mysql.types.base import ValueOptions as MyOptions
from connectors.mysql.types.columns import column_plan as my_plan
from connectors.mysql.types.columns import is_text
from connectors.postgres.encode.source_info import SOURCE_SCHEMA
from connectors.postgres.encode.table import PostgresEncoder
from connectors.postgres.types.base import BaseType
from connectors.postgres.types.base import ValueOptions as PgOptions
from connectors.postgres.types.columns import PgColumn
from connectors.postgres.types.columns import column_plan as pg_plan
from tests.unit.connectors.engine.test_encode_property import copy_line, tuple_data
from tests.unit.connectors.mysql.test_text_rows import value

TAIL = tail("c", 1)
ENCODINGS = (JsonEncoding(False, False), JsonEncoding(False, False, key_decimals_numeric=True, value_decimals_numeric=True))
Texts = Sequence[str | None]

# -- tables of all types ---------------------------------------------------------------------------------------------------------------


def _with(moment: str, fraction: str) -> str:
    return f"{moment}.{fraction}" if fraction else moment


_FRACTIONS = ["123456"[:digits] for digits in range(7)]
MYSQL: dict[str, list[str]] = {
    "TINYINT": ["-7"],
    "INT": ["123456"],
    "INT UNSIGNED ZEROFILL": ["0000000012"],
    "BIGINT UNSIGNED": ["18446744073709551615", "5"],
    "BOOL": ["1"],
    "FLOAT": ["1.5"],
    "FLOAT(40)": ["1.0E30"],
    "FLOAT(7,3)": ["3.125"],
    "DOUBLE": ["1.0E300", "0.1"],
    "REAL": ["0.25"],
    **{f"DECIMAL(20,{scale})": [_with("-12", "5" * scale), _with("0", "0" * scale)] for scale in (0, 2, 3)},
    "DECIMAL(30,2)": ["123456789012345678901234.99"],
    "BIT(1)": ["\1"],
    "BIT(12)": ["\1\2"],
    "YEAR": ["1999", "0000"],
    "DATE": ["0001-01-01", "0069-12-31", "1999-12-31", "9999-12-31"],
    **{
        f"DATETIME({len(f)})": [_with(moment, f) for moment in ("0001-01-01 00:00:00", "0099-02-03 23:59:58", "2024-02-29 01:02:03")]
        for f in _FRACTIONS
    },
    **{f"TIMESTAMP({len(f)}) NULL": [_with("1999-12-31 23:59:50", f.replace("3", "0"))] for f in _FRACTIONS},
    **{f"TIME({len(f)})": [_with("-838:59:58", f), _with("01:02:03", f)] for f in _FRACTIONS},
    "VARCHAR(90)": ["x", 'q"'],
    "CHAR(9)": ["ž"],
    "MEDIUMTEXT": ["y" * 300],
    "JSON": ['{"a": 1.50}'],
    "ENUM('a','b,c')": ["b,c", "a"],
    "ENUM('d')": ["d"],
    "SET('p','q')": ["p,q"],
    "BINARY(3)": ["a"],
    "VARBINARY(9)": ["\xff\0"],
    "POINT": ["\0\0\0\0" + "\1" + "\1\0\0\0" + "\0" * 16],
    "GEOMETRY": ["\0\0\0\0" + "\1" + "\1\0\0\0" + "\0" * 16],
}
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


def _mysql_columns() -> list[MyColumn]:
    tables = Tables()
    apply("CREATE TABLE t (" + ", ".join(f"c{i} {sql}" for i, sql in enumerate(MYSQL)) + ")", tables, "d")
    (table,) = tables.tables.values()
    return list(table.columns)


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


def _orders(count: int) -> Iterator[list[int]]:
    order = list(range(count))
    yield order
    yield order[::-1]
    for seed in range(2):
        shuffled = order[:]
        random.Random(seed).shuffle(shuffled)
        yield shuffled


def _rows(texts: Sequence[Sequence[str]]) -> Iterator[list[str | None]]:
    """Rows in which every text of every column comes, a row of NULLs, and one with some."""
    for row in range(max(map(len, texts))):
        yield [column[row % len(column)] for column in texts]
    yield [None] * len(texts)
    yield [None if i % 3 == 1 else column[-1] for i, column in enumerate(texts)]


class Alone:
    """What a table of one column shows, and the careful way, which are one."""

    def __init__(self, make: Any, plans: Sequence[ColumnPlan]) -> None:
        self._encoders = [make([plan], []) for plan in plans]
        self._plans = plans

    def fields(self, row: Texts, *, snapshot: bool) -> list[bytes]:
        found = []
        for encoder, text in zip(self._encoders, row, strict=True):
            shown = encoder.image([text], snapshot=snapshot)[1]
            assert shown == encoder._slow.encode([text], snapshot=snapshot)[1]
            found.append(shown[1:-1])
        return found


def _object(fields: Sequence[bytes]) -> bytes:
    return b"{" + b",".join(fields) + b"}"


@pytest.mark.parametrize(("modes", "encoding"), [*((modes, ENCODINGS[0]) for modes in MYSQL_MODES), (MYSQL_MODES[0], ENCODINGS[1])])
def test_no_column_of_mysql_changes_what_another_shows(modes: Mapping[str, Any], encoding: JsonEncoding) -> None:
    columns, texts, options = _mysql_columns(), list(MYSQL.values()), MyOptions(**modes)
    plans = [my_plan(column, options) for column in columns]
    assert all(plans)
    schema = block_schema("mysql")

    def make(chosen: Sequence[ColumnPlan], key: Sequence[str]) -> TableEncoder:
        return TableEncoder("t", chosen, key, schema, encoding)

    alone = Alone(make, plans)  # type: ignore[arg-type]
    snapshots = {tuple(row): alone.fields(row, snapshot=True) for row in _rows(texts)}
    streams = {tuple(row): alone.fields(row, snapshot=False) for row in _rows(texts)}
    for order in _orders(len(columns)):
        encoder = make([plans[i] for i in order], [columns[i].name for i in order[::5]])  # type: ignore[misc]
        route = Route("t", encoder.key_schema, encoder.value_schema)
        characters = [is_text(columns[i]) for i in order]
        forms = encoder.wanted_forms
        sources = [usual_rows(characters, forms), any_rows(characters, forms)]
        fused = [encoder.fused(source, stream=False) for source in sources]
        taken = [0, 0]
        for row in _rows(texts):
            chosen = [row[i] for i in order]
            wanted = _object([snapshots[tuple(row)][i] for i in order])
            (record,) = encoder.text_rows([chosen], route, b"{}", TAIL)
            assert record[2] == encoder.value(None, wanted, b"{}", TAIL)
            assert encoder.image(chosen, snapshot=True)[1] == wanted
            assert encoder.image(chosen)[1] == _object([streams[tuple(row)][i] for i in order])
            data = b"".join(
                value(None if text is None else text.encode("utf-8" if is_characters else "latin-1"))
                for is_characters, text in zip(characters, chosen, strict=True)
            )
            for n, function in enumerate(fused):
                images = function.images(data)
                taken[n] += images is not None
                assert images is None or images == [(encoder.image(chosen, snapshot=True)[0], wanted)]
        assert taken[1] > 0


@pytest.mark.parametrize(("modes", "encoding"), [*((modes, ENCODINGS[0]) for modes in PG_MODES), (PG_MODES[0], ENCODINGS[1])])
def test_no_column_of_postgresql_changes_what_another_shows(modes: Mapping[str, Any], encoding: JsonEncoding) -> None:
    columns, texts = [column for column, _ in PG.values()], [found for _, found in PG.values()]
    plans = [pg_plan(column, PgOptions(**modes)) for column in columns]
    left_out = [column.name for column, plan in zip(columns, plans, strict=True) if plan is None]
    assert not left_out

    def make(chosen: Sequence[ColumnPlan], key: Sequence[str]) -> PostgresEncoder:
        return PostgresEncoder("t", chosen, key, SOURCE_SCHEMA, encoding)

    alone = Alone(make, plans)  # type: ignore[arg-type]
    snapshots = {tuple(row): alone.fields(row, snapshot=True) for row in _rows(texts)}
    streams = {tuple(row): alone.fields(row, snapshot=False) for row in _rows(texts)}
    for order in _orders(len(columns)):
        encoder = make([plans[i] for i in order], [columns[i].name for i in order[::5]])  # type: ignore[misc]
        route = Route("t", encoder.key_schema, encoder.value_schema)
        for row in _rows(texts):
            chosen = [row[i] for i in order]
            pairs = [None if text is None else (text,) for text in chosen]
            wanted = encoder.value(None, _object([snapshots[tuple(row)][i] for i in order]), b"{}", TAIL)
            streamed = encoder.value(None, _object([streams[tuple(row)][i] for i in order]), b"{}", TAIL)
            (record,) = encoder.copy_rows([copy_line(pairs)], route, b"{}", TAIL)
            assert record[2] == wanted
            assert encoder.copy_row(copy_line(pairs), b"{}", TAIL)[1] == wanted
            (record,) = encoder.text_rows([chosen], route, b"{}", TAIL)
            assert record[2] == wanted
            assert encoder.insert(b"I....N" + tuple_data(pairs), 5, b"{}", TAIL)[1] == streamed
            message = b"U....O" + tuple_data(pairs) + b"N" + tuple_data(pairs)
            assert encoder.update(message, 5, b"{}", TAIL)[1].endswith(streamed[streamed.index(b'"after":') :])


def test_rules_of_columns_hold_for_rows_of_snapshots_too() -> None:
    column = next(column for column in _mysql_columns() if column.type_name.startswith("TIMESTAMP") and column.length == 3)
    plan = my_plan(column, MyOptions())
    assert plan is not None
    rules = ColumnRules.parse({"column.truncate.to.2.chars": ".*"})
    changed = rules.apply(plan, ColumnFacts("d.t.c", "d.t.TIMESTAMP", "c", "TIMESTAMP", 3, None, characters=False))
    encoder = TableEncoder("t", [replace(changed, name="c")], [], block_schema("mysql"), ENCODINGS[0])
    text = "1999-12-31 23:59:50.120"
    assert encoder.image([text], snapshot=True)[1] == encoder.image([text])[1] == b'{"c":"19"}'
