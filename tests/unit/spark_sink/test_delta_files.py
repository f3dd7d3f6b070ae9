"""The files of a Delta table by its log's actions: which can hold a key, and of which tables rows may be replaced by position."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest

from spark_sink.sql.keys import Value, in_order
from spark_sink.tables.delta.files import LiveFiles
from tests.seeds import seeds

SETTINGS = {"delta.enableDeletionVectors": "true"}
FEATURES = ["deletionVectors", "invariants", "appendOnly"]


def metadata(settings: Mapping[str, str] = SETTINGS, schema: str = "{}") -> dict[str, Any]:
    return {"metaData": {"id": "1", "schemaString": schema, "configuration": settings}}


def protocol(features: list[str] | None = FEATURES) -> dict[str, Any]:
    return {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **({} if features is None else {"writerFeatures": features})}}


def add(path: str, low: Any = None, high: Any = None, rows: int | None = 3, **more: Any) -> dict[str, Any]:
    stats = {"numRecords": rows, "minValues": {} if low is None else {"k": low}, "maxValues": {} if high is None else {"k": high}}
    return {"add": {"path": path, "size": 10, "stats": None if rows is None else json.dumps(stats), **more}}


def files(*actions: dict[str, Any]) -> LiveFiles:
    return LiveFiles(["k"], 4, [protocol(), metadata(), *actions])


def test_a_file_can_hold_a_key_unless_its_bounds_exclude_all() -> None:
    live = files(add("a", 1, 5), add("b", 7, 9), add("no-statistics", rows=None), add("nulls-only"))
    always = {"no-statistics", "nulls-only"}
    for keys, expected in (([0, 6], set()), ([5], {"a"}), ([6, 7, 20], {"b"}), ([-3, 30], set()), ([2, 8], {"a", "b"}), ([], set())):
        found = set(live.holding({"k": keys}))
        assert found == (expected | always if keys or expected else always), keys
    assert set(live.holding({})) == {"a", "b"} | always, "without values nothing is known"


def test_a_file_can_hold_a_key_between_two_ends_unless_it_lies_beyond_them() -> None:
    live = files(add("a", 1, 5), add("b", 7, 9), add("no-statistics", rows=None))
    for ends, expected in (([0, 6], {"a"}), ([5], {"a"}), ([-3, 30], {"a", "b"}), ([6, 6], set()), ([], set()), ([2, 7], {"a", "b"})):
        assert set(live.holding({"k": ends}, are_ends=True)) == expected | {"no-statistics"}, ends


@pytest.mark.parametrize(
    ("type_", "texts", "low", "high"),
    [
        ("bigint", ["10", "9"], 9, 10),
        ("decimal(9,2)", ["10.50", "9.00"], Decimal("9.00"), Decimal("10.50")),
        ("date", ["2020-01-10", "2020-01-09"], "2020-01-09", "2020-01-10"),
        ("string", ["é", "z"], "z", "é"),
    ],
)
def test_keys_have_the_order_of_their_statistics(type_: str, texts: list[str], low: Value, high: Value) -> None:
    values = [value for value, _ in in_order(texts, type_) or ()]
    assert values == [low, high]
    text = json.dumps({"numRecords": 2, "minValues": {"k": "LOW"}, "maxValues": {"k": "HIGH"}})
    for name, bound in (("LOW", low), ("HIGH", high)):
        text = text.replace(f'"{name}"', str(bound) if isinstance(bound, int | Decimal) else json.dumps(bound))
    live = files({"add": {"path": "a", "size": 1, "stats": text}})
    assert [set(live.holding({"k": [value]})) for value in values] == [{"a"}, {"a"}]


def test_small_files_of_a_partition_are_compacted_together_and_those_with_many_deleted_rows_alone() -> None:
    def file(path: str, size: int, place: str = "x", rows: int | None = 100, deleted: int = 0) -> dict[str, Any]:
        vector = {"deletionVector": {"cardinality": deleted}} if deleted else {}
        return add(path, 1, 5, rows, **{"size": size, "partitionValues": {"place": place}} | vector)

    def chosen(*actions: dict[str, Any]) -> set[str]:
        return set(files(*actions).to_compact(100))

    assert chosen() == set()
    assert chosen(file("a", 30), file("b", 49), file("c", 50)) == {"a", "b"}
    assert chosen(file("a", 10), file("b", 10, "y"), file("c", 10, "y")) == {"b", "c"}
    assert chosen(file("a", 10)) == set(), "alone it stays as it is"
    assert chosen(file("a", 90, deleted=5), file("b", 90, deleted=6)) == {"b"}
    assert chosen(file("a", 10, deleted=6), file("b", 90)) == {"a"}
    assert chosen(file("a", 90, rows=None, deleted=1)) == {"a"}, "how many it has is not known"


def test_dates_beyond_four_digits_of_a_year_have_no_order() -> None:
    assert in_order(["2020-01-01", "+12020-01-01"], "date") is None


def test_a_file_gets_another_deletion_vector_by_an_add_and_a_remove_in_any_order() -> None:
    old, new = {"cardinality": 1}, {"cardinality": 2}
    for actions in (
        [{"remove": {"path": "a"}}, add("a", 1, 5, deletionVector=new)],
        [add("a", 1, 5, deletionVector=new), {"remove": {"path": "a"}}],
    ):
        live = files(add("a", 1, 5, deletionVector=old))
        live.follow([{"commitInfo": {}}, *actions])
        [file] = live.holding({"k": [3]}).values()
        assert json.loads(file.action)["add"]["deletionVector"] == new
        live.follow([{"remove": {"path": "a"}}])
        assert (len(live.holding({})), live.version) == (0, 6)


def test_transactions_are_the_last_of_each_application() -> None:
    live = files({"txn": {"appId": "lh:a", "version": 3}}, {"txn": {"appId": "lh:b", "version": 8}})
    live.follow([{"txn": {"appId": "lh:a", "version": 4}}])
    assert live.transactions == {"lh:a": 4, "lh:b": 8}


@pytest.mark.parametrize(
    ("actions", "is_simple"),
    [
        ([], True),
        ([metadata({**SETTINGS, "delta.enableChangeDataFeed": "TRUE"})], False),
        ([metadata({**SETTINGS, "delta.enableChangeDataFeed": "false"})], True),
        ([metadata({**SETTINGS, "delta.enableRowTracking": "true"})], False),
        ([metadata({**SETTINGS, "delta.appendOnly": "true"})], False),
        ([metadata({})], False),
        ([metadata(schema='{"metadata":{"__CHAR_VARCHAR_TYPE_STRING":"char(3)"}}')], False),
        ([protocol([*FEATURES, "columnMapping"])], False),
        ([protocol([*FEATURES, "something of 2030"])], False),
        ([protocol(["invariants"])], False),
        ([protocol(None)], False),
    ],
)
def test_only_of_tables_with_nothing_else_to_regard_rows_are_replaced_by_position(actions: list[dict[str, Any]], is_simple: bool) -> None:
    live = files()
    assert live.is_simple
    live.follow(actions)
    assert live.is_simple is is_simple


@pytest.mark.parametrize(
    ("action", "has_plain_writes"),
    [
        (metadata(SETTINGS), True),
        (metadata({**SETTINGS, "delta.constraints.cheap": "price < 5"}), False),
        (metadata({**SETTINGS, "delta.randomizeFilePrefixes": "true"}), False),
        (metadata({**SETTINGS, "delta.randomizeFilePrefixes": "false"}), True),
        (metadata(schema='{"metadata":{"delta.invariants":"x"}}'), False),
        ({"metaData": {**metadata(SETTINGS)["metaData"], "partitionColumns": ["place"]}}, False),
    ],
)
def test_rows_that_delta_checks_or_puts_elsewhere_are_written_by_its_job(action: dict[str, Any], has_plain_writes: bool) -> None:
    live = files()
    live.follow([action])
    assert live.has_plain_writes is has_plain_writes


def test_no_file_that_holds_a_key_is_missed() -> None:
    [seed] = seeds(1)
    chance = random.Random(seed)
    for _ in range(200):
        held = {str(number): sorted(chance.sample(range(50), chance.randint(1, 5))) for number in range(6)}
        live = files(*(add(path, min(keys), max(keys)) for path, keys in held.items()))
        wanted = sorted(chance.sample(range(50), chance.randint(1, 8)))
        having = {path for path, keys in held.items() if set(keys) & set(wanted)}
        found = live.holding({"k": wanted})
        assert having <= set(found), f"seed {seed}"
        assert all(any(min(held[path]) <= key <= max(held[path]) for key in wanted) for path in found), f"seed {seed}"
