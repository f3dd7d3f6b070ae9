"""What a list of tables is given for a table, and which tables a configuration captures."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connect_py.api.tables import SourceTable, SourceTables
from connectors.engine.relational.tables import NameFilter, TableFilters, TableId, matches_any, parse_regexes
from connectors.engine.table_lists import Lists, described, entries_of, entry_of
from tests.seeds import examples

NAMES = ["public.a", "public.b", "public.b_1", "sales.a"]


def listed(*names: str, most: int = 5000, forced: str = "", **config: str) -> SourceTables:
    """Return what is said of these tables; dots of properties are written as underscores."""
    written = {name.replace("_", "."): text for name, text in config.items()}
    parsed = TableFilters(
        schemas=NameFilter.parse(written.get("schema.include.list"), written.get("schema.exclude.list")),
        tables=NameFilter.parse(written.get("table.include.list", written.get("table.whitelist")), written.get("table.exclude.list")),
        forced=frozenset(filter(None, [forced])),
    )
    lists = Lists(
        "table.include.list",
        parsed.tables,
        "schema",
        lambda name: parsed.schemas(name.partition(".")[0]),
        lambda name: parsed.is_captured(TableId(*name.split("."))),
        parsed.forced,
    )
    return described(written, lists, names or NAMES, {"public.a": 7}, most=most)


def captured(found: SourceTables) -> list[str]:
    return [table.name for table in found.tables if table.captured]


def test_without_lists_everything_is_captured_and_each_table_has_its_entry() -> None:
    found = listed()
    assert captured(found) == NAMES
    assert found.tables[0] == SourceTable("public.a", True, 7, r"public\.a")
    assert (found.property, found.entries, found.replaces, found.left_out) == ("table.include.list", [], [], 0)


def test_entries_are_as_they_are_written_and_say_what_they_mean() -> None:
    found = listed(table_include_list=r" public\.b.* ,, sales\.x{1\,2},PUBLIC\.A")
    assert found.entries == [r"public\.b.*", r"sales\.x{1\,2}", r"PUBLIC\.A"]
    assert [table.matched_by for table in found.tables] == [(2,), (0,), (0,), ()]
    assert captured(found) == NAMES[:3]


def test_a_list_replaces_what_cannot_be_beside_it_and_its_old_name() -> None:
    found = listed(table_exclude_list="public.*", table_whitelist=r"sales\.a", table_blacklist="x", column_exclude_list="y")
    assert found.entries == [r"sales\.a"]
    assert sorted(found.replaces) == ["table.blacklist", "table.exclude.list", "table.whitelist"]


@pytest.mark.parametrize("given", [{"schema_include_list": "public"}, {"schema_exclude_list": "SALES"}])
def test_a_table_of_a_schema_that_is_left_out_says_by_which_property(given: dict[str, str]) -> None:
    found = listed(**given)
    assert captured(found) == NAMES[:3]
    assert [table.fixed_by for table in found.tables] == ["", "", "", next(iter(given)).replace("_", ".")]


def test_a_signal_table_is_captured_whatever_the_list_says() -> None:
    found = listed(table_include_list=r"sales\.a", forced="public.a")
    assert captured(found) == ["public.a", "sales.a"]
    assert found.tables[0].fixed_by == "signal.data.collection"


def test_of_too_many_tables_those_that_are_captured_stay() -> None:
    found = listed(table_include_list=r"sales\.a", most=2)
    assert [table.name for table in found.tables] == ["public.a", "sales.a"]
    assert found.left_out == 2


def test_names_that_differ_in_case_alone_have_entries_of_one_case() -> None:
    found = listed("public.A", "public.a", "public.b")
    assert [table.entry for table in found.tables] == [r"(?-i:public\.A)", r"(?-i:public\.a)", r"public\.b"]
    chosen = NameFilter.parse(found.tables[0].entry, None)
    assert chosen("public.A") and not chosen("public.a")


def test_names_that_a_list_of_names_cannot_have_are_not_to_be_chosen() -> None:
    everything = NameFilter()
    lists = Lists("collection.include.list", everything, "database", lambda _: True, lambda _: True, literal=True)
    found = described({"collection.include.list": "db.a b, db.c"}, lists, ["db.a b", "db.a,b", "db.a "], {})
    assert found.entries == ["db.a b", "db.c"]
    assert [(table.name, table.entry, table.fixed_by) for table in found.tables] == [
        ("db.a ", "", "filters.match.mode"),
        ("db.a b", "db.a b", ""),
        ("db.a,b", "", "filters.match.mode"),
    ]


@settings(max_examples=examples(300))
@given(st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=4, unique_by=str.lower), st.data())
def test_an_entry_means_its_name_and_no_other_wherever_it_stands(names: list[str], data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.sampled_from(names), unique=True))
    text = ",".join(map(entry_of, chosen))
    patterns = parse_regexes(text)
    assert len(patterns) == len(entries_of(text)) == len(chosen)
    for name in names:
        folded = {found for found in chosen if re.fullmatch(re.escape(found), name, re.IGNORECASE)}  # İ and i are one to a regex
        assert matches_any(patterns, name) is bool(folded)
