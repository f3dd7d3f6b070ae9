"""Filters, keys and their Java regexes."""

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connect_py.errors import ConfigError
from connectors.engine.relational.tables import ENTRY, KeyRules, NameFilter, Table, TableFilters, TableId, parse_regexes
from tests.seeds import examples


class Named:
    def __init__(self, name: str) -> None:
        self.name = name


def table(*columns: str, key: tuple[str, ...] = ()) -> Table[Named]:
    return Table(TableId("public", "t"), tuple(map(Named, columns)), key)


def test_a_name_must_match_as_a_whole_in_any_case() -> None:
    chosen = NameFilter.parse("public\\.cust.*,PUBLIC.orders", None)
    assert chosen("public.customers")
    assert chosen("Public.Orders")
    assert not chosen("public.orders_old")
    assert not chosen("xpublic.orders")


def test_an_include_list_decides_alone() -> None:
    assert not NameFilter.parse(None, "a")("A")
    assert NameFilter.parse(None, "a")("b")
    assert NameFilter.parse(None, None)("anything")


def test_an_escaped_comma_is_part_of_a_regex() -> None:
    assert [p.pattern for p in parse_regexes(r"a{1\,2}, b")] == ["a{1,2}", "b"]


def test_a_broken_regex_gets_javas_text() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_regexes("a[")
    assert str(caught.value) == "Unclosed character class near index 1\na[\n ^"


def test_a_snapshot_reads_in_the_order_of_the_include_list() -> None:
    filters = TableFilters(tables=NameFilter.parse("s.z,s.[ab]", None), forced=frozenset(("s.signal",)))
    found = [TableId("s", name) for name in ("a", "b", "c", "signal", "z")]
    assert [t.table for t in filters.snapshot_order(found)] == ["z", "a", "b"]
    asked = parse_regexes('"s"."b", s.z')
    assert [t.table for t in filters.snapshot_order(found, asked)] == ["z", "b"]


def test_key_rules_replace_the_primary_key_in_their_order() -> None:
    rules = KeyRules.parse("public.t:b,a;other:x")
    assert rules.columns(table("a", "b", "c", key=("c",))) == ("b", "a")
    assert KeyRules.parse("public.u:a").columns(table("a", key=("a",))) == ("a",)
    assert KeyRules.parse(None).columns(table("a")) == ()


@pytest.mark.parametrize("text", ["", "public.t", "public.t:"])
def test_a_malformed_key_rule_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        KeyRules.parse(text)


def test_an_entry_of_many_blanks_is_refused_at_once() -> None:
    began = time.process_time()
    for text in (" " * 200_000, "a" * 200_000, " " * 100_000 + ":", "a:" + " ," * 50_000 + ":", "a:" + " " * 200_000 + ":"):
        with pytest.raises(ConfigError):
            KeyRules.parse_entry(text)
    assert time.process_time() - began < 1


@settings(max_examples=examples(500))
@given(st.text(alphabet=" :,a\n", max_size=9))
def test_entries_are_read_as_debeziums_own_regex_reads_them(text: str) -> None:
    expected = re.match(ENTRY, text)
    try:
        found = [(pattern.pattern, column) for pattern, column in KeyRules.parse_entry(text)]
    except ConfigError:
        found = None
    wanted = None if expected is None else [(f"{expected[1]}.{each.strip()}", each) for each in expected[2].strip().split(",")]
    assert found == wanted
