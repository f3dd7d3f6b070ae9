"""By which keys chunks of MySQL tables are cut, and what an interrupted snapshot's offset says."""

from __future__ import annotations

from typing import Any

import pytest

from connectors.engine.relational.tables import TableId
from connectors.engine.snapshot.initial.progress import FIELD, WHOLE, KeyRange
from connectors.mysql.model import MyColumn, MyTable
from connectors.mysql.position.offset import MySqlOffset
from connectors.mysql.snapshot.chunks import TableCuts
from connectors.mysql.types.keys import cut_key, is_zero_date

T = TableId("d", "t")


def column(type_name: str, name: str = "c") -> MyColumn:
    return MyColumn(name, type_name, 0, nullable=False, charset="latin1" if "CHAR" in type_name else None)


class Server:
    """Answers with rows that are given before."""

    def __init__(self, *answers: list[tuple[str, ...]]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    def texts(self, statement: str) -> list[tuple[str, ...]]:
        self.asked.append(statement)
        return self.answers.pop(0)


def cuts(columns: list[MyColumn], *answers: list[tuple[str, ...]]) -> tuple[TableCuts, Server]:
    server: Any = Server(*answers)
    model = MyTable(T, tuple(columns), tuple(column.name for column in columns))
    return TableCuts(server, lambda _: model, {T: 7}), server


@pytest.mark.parametrize("kind", ["INT", "BIGINT UNSIGNED", "DECIMAL", "VARBINARY", "DATETIME", "TIME", "BIT", "VARCHAR"])
def test_keys_that_compare_as_they_sort_are_cut(kind: str) -> None:
    assert cut_key(column(kind), "latin1") is not None


@pytest.mark.parametrize("kind", ["ENUM", "SET", "YEAR", "FLOAT", "DOUBLE", "JSON", "UUID", "POINT"])
def test_other_keys_are_not(kind: str) -> None:
    assert cut_key(column(kind), "latin1") is None


def test_characters_are_compared_as_bytes_of_their_own_character_set() -> None:
    key = cut_key(column("VARCHAR"), "sjis")
    assert key is not None
    assert (key.shown, key.compared, key.literal("955C")) == ("HEX(`c`)", "`c`", "_sjis x'955c'")


@pytest.mark.parametrize(
    ("text", "is_zero"),
    [("0000-00-00", True), ("2020-00-01", True), ("2020-01-00 10:00:00", True), ("2020-10-10 00:00:00", False), ("0001-01-01", False)],
)
def test_dates_with_zeros_are_no_boundaries(text: str, is_zero: bool) -> None:
    assert is_zero_date(text) is is_zero
    index = [("PRIMARY", "c", "A", "", "datetime", "", "")]
    found, _ = cuts([column("DATETIME")], index, [(text,)])
    assert (found.boundary(T, KeyRange(), 5) is None) is is_zero


def test_a_range_is_bound_to_the_index_of_the_whole_key() -> None:
    index = [("other", "a", "A", "", "int", "", ""), ("other", "b", "A", "", "varchar(9)", "latin1_bin", "latin1")]
    found, server = cuts([column("INT", "a"), column("VARCHAR", "b")], [("PRIMARY", "x", "A", "", "int", "", ""), *index], [("3", "41")])
    assert found.rows(T) == 7
    assert found.key(T) == ("a int", "b varchar(9) latin1_bin")
    assert found.boundary(T, KeyRange(("1", "40"), None), 5) == ("3", "41")
    assert server.asked[1] == (
        "SELECT `a`, HEX(`b`) FROM `d`.`t` FORCE INDEX (`other`) WHERE ((`a` > 1) OR (`a` = 1 AND `b` > _latin1 x'40')) "
        "ORDER BY `a`, `b` LIMIT 1 OFFSET 4"
    )
    part = found.part(T, KeyRange(None, ("3", "41")))
    assert part == " FORCE INDEX (`other`) WHERE NOT ((`a` > 3) OR (`a` = 3 AND `b` > _latin1 x'41'))"
    assert found.part(T, WHOLE) == ""


@pytest.mark.parametrize(
    "index",
    [
        [("PRIMARY", "c", "A", "5", "varchar(9)", "latin1_bin", "latin1")],
        [("PRIMARY", "c", "D", "", "varchar(9)", "latin1_bin", "latin1")],
        [("PRIMARY", "d", "A", "", "varchar(9)", "latin1_bin", "latin1")],
        [],
    ],
    ids=["of beginnings", "descending", "of another column", "none, or not in its order"],
)
def test_an_index_that_does_not_serve_leaves_the_table_whole(index: list[tuple[str, ...]]) -> None:
    found, _ = cuts([column("VARCHAR")], index)
    assert found.key(T) == ()


def test_a_boundary_that_does_not_get_on_ends_the_cutting() -> None:
    found, _ = cuts([column("INT")], [("PRIMARY", "c", "A", "", "int", "", "")], [("5",)], [])
    assert found.boundary(T, KeyRange(("5",), None), 1) is None
    assert found.boundary(T, KeyRange(("5",), None), 1) is None


def test_the_offset_of_an_unfinished_snapshot_tells_what_is_done_and_no_other_does() -> None:
    stored = {"file": "f.000001", "pos": 4, "gtids": "", "snapshot": "INITIAL", FIELD: '{"v":1,"tables":{}}'}
    offset = MySqlOffset.load(stored)
    assert offset.is_snapshot_unfinished and offset.progress == stored[FIELD]
    assert offset.dump() == stored
    assert FIELD not in MySqlOffset("f.000001", 4, progress="x").dump()
    assert FIELD not in MySqlOffset("f.000001", 4, snapshot="BLOCKING", progress="x").dump()
