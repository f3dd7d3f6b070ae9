"""Rules that change single columns (debezium-common.md §5.3). What the reference shows of them on a real table: pg_column_rules.json."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_py.converters.json_write import quote
from connect_py.data.schema import BYTES, INT32, STRING
from connect_py.errors import ConfigError
from connectors.engine.encode.plan import ColumnPlan
from connectors.engine.relational.column_rules import ColumnFacts, ColumnRules, java_serialised

TEXT = ColumnPlan("c", STRING.as_optional(), quote, textual=True, placeholder='"gone"')


def facts(**more) -> ColumnFacts:
    given = {"id": "s.t.c", "type_id": "s.t.text", "name": "c", "type_name": "text", "length": None, "scale": None, "characters": True}
    return ColumnFacts(**{**given, **more})  # type: ignore[arg-type]


def value(rules: dict[str, str], text: str, plan: ColumnPlan = TEXT, **more) -> str:
    changed = ColumnRules.parse(rules).apply(plan, facts(**more))
    if changed.constant:
        return json.loads(changed.constant)
    assert changed.convert is not None
    return json.loads(changed.convert(text))


@pytest.mark.parametrize(
    ("rule", "shown"),
    [
        ("column.mask.hash.SHA-256.with.salt.salt", "42d7a081efd6e39d260bdb3c417b0d1e353ac43cfd1c47cd97c7ba9b98f295eb"),
        ("column.mask.hash.v2.SHA-256.with.salt.salt", "3681099918be28c95b81e27e7e5c2e4c6a6dea566d2d10e7f49139ebb779eb6f"),
        ("column.mask.with.4.chars", "****"),
        ("column.mask.with.0.chars", ""),
        ("column.truncate.to.2.chars", "ab"),
        ("column.truncate.to.9.chars", "abc"),
    ],
)
def test_what_becomes_of_abc(rule, shown):
    assert value({rule: "s.t.c"}, "abc") == shown


def test_a_hash_is_cut_to_the_length_of_the_column():
    assert value({"column.mask.hash.v2.SHA-256.with.salt.salt": "s.t.c"}, "abc", length=8) == "36810999"


def test_a_name_is_matched_whole_and_in_any_case():
    assert value({"column.mask.with.1.chars": "S\\.T\\.[A-C]"}, "abc") == "*"
    assert value({"column.mask.with.1.chars": "t.c"}, "abc") == "abc"


def test_truncation_comes_before_a_mask_and_a_mask_before_the_type():
    both = {"column.mask.with.1.chars": "s.t.c", "column.truncate.to.2.chars": "s.t.c", "column.propagate.source.type": ".*"}
    assert value(both, "abc") == "ab"
    plan = ColumnRules.parse({**both, "column.truncate.to.2.chars": "x"}).apply(TEXT, facts())
    assert plan.schema.parameters == (("masked", "true"),)


def test_a_column_that_cannot_be_longer_is_not_marked_as_cut():
    rules = ColumnRules.parse({"column.truncate.to.4.chars": ".*"})
    assert rules.apply(TEXT, facts(length=4)).schema is TEXT.schema
    assert rules.apply(TEXT, facts(length=5)).schema.parameters == (("truncateLength", "4"),)


def test_a_rule_that_has_nothing_to_cut_still_decides_alone():
    rules = ColumnRules.parse({"column.truncate.to.4.chars": ".*", "column.propagate.source.type": ".*"})
    assert rules.apply(TEXT, facts(length=4)).schema is TEXT.schema


def test_keys_and_values_of_other_types_are_spared():
    number = ColumnPlan("c", INT32)
    plan = ColumnRules.parse({"column.mask.with.3.chars": ".*"}).apply(number, facts(characters=False))
    assert (plan.convert, plan.constant, plan.of_key) == (None, "", number)
    assert plan.schema.parameters == (("masked", "true"),)


def test_bytes_are_cut_too():
    plan = ColumnPlan("c", BYTES, lambda text: '"3q2+7wA="')
    assert value({"column.truncate.to.4.chars": ".*"}, "x", plan) == "3q2+7w=="


@given(st.text(), st.integers(0, 8))
def test_texts_are_cut_as_java_counts_characters(text, length):
    cut = value({f"column.truncate.to.{length}.chars": ".*"}, text)
    assert cut.encode("utf-16-le", "surrogatepass") == text.encode("utf-16-le", "surrogatepass")[: 2 * length]


def test_a_string_as_java_serialises_it():
    assert java_serialised("abc").hex() == "aced0005740003616263"
    assert java_serialised("\0").hex() == "aced0005740002c080"
    assert java_serialised("😀").hex() == "aced0005740006eda0bdedb880"
    assert java_serialised("x" * 65536)[:13].hex() == "aced00057c0000000000010000"


def test_an_unknown_algorithm_is_named():
    with pytest.raises(ConfigError, match="no hash algorithm SHA-7"):
        ColumnRules.parse({"column.mask.hash.SHA-7.with.salt.s": "a"})
