"""The steps of a table's part of a batch, as far as they need no Spark: what each leaves alone, and what it takes out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from connect_py.api.record import TopicPartition
from connect_py.errors import FatalTaskError
from spark_sink.config.sink_config import parse
from spark_sink.read.formats import Fingerprint
from spark_sink.read.reader import Group
from spark_sink.read.summary import Truncate
from spark_sink.routing import TableName
from spark_sink.sql.record_schema import Form, RecordSchema, read_schemas
from spark_sink.tables.base import TableState
from spark_sink.tables.watermark import Watermark
from spark_sink.types.columns import TypeOptions
from spark_sink.write import apply, reconcile
from spark_sink.write.table_batch import Step, TableBatch, Target

TABLE, TP = TableName(("public", "t")), TopicPartition("t", 0)
NOTHING: Any = None


def target(**more: str) -> Target:
    base = {"topics": "t", "lakehouse.catalog.type": "hadoop", "lakehouse.catalog.warehouse": "/w"}
    given = {"lakehouse." + name.replace("__", "-").replace("_", "."): value for name, value in more.items()}
    return Target(NOTHING, NOTHING, NOTHING, parse(base | given))


def schema() -> RecordSchema:
    key = {"type": "struct", "fields": [{"type": "int32", "field": "id"}]}
    row = {"type": "struct", "optional": True, "fields": [{"type": "int32", "field": "id"}, {"type": "string", "field": "a"}]}
    source = {"type": "struct", "fields": [{"type": "string", "field": "db"}], "field": "source"}
    op = {"type": "string", "field": "op"}
    envelope = {"type": "struct", "fields": [{**row, "field": "before"}, {**row, "field": "after"}, source, op]}
    return read_schemas(key, envelope, tombstone=False, options=TypeOptions())


def rows(**more: Any) -> Group:
    return Group(Fingerprint("t", 1, 2), schema(), (TABLE,), 3, **more)


def tombstones(*, keyed: bool = True) -> Group:
    found = replace(schema(), form=Form.TOMBSTONE)
    return Group(Fingerprint("t", 1, None), found if keyed else replace(found, keys=()), (TABLE,), 1)


def a_batch(*groups: Group, applied: int | None = None) -> TableBatch:
    state = None if applied is None else TableState({"id": "int", "a": "string"}, Watermark({TP: applied}))
    return TableBatch(TABLE, groups, {TP: (5, 9)}, state)


@pytest.mark.parametrize("applied", [None, 5], ids=["new table", "known table"])
@pytest.mark.parametrize(
    "step",
    [
        apply.find_truncate,
        apply.drop_idle_groups,
        apply.drop_repeated_groups,
        apply.adapt_schemas,
        apply.find_placeholders,
        reconcile.follow_snapshots,
        apply.drop_refused_events,
        apply.chain_events,
        apply.keep_last,
        apply.drop_unseen_rows,
        apply.drop_late_events,
    ],
    ids=lambda step: str(step.__name__),
)
def test_a_step_that_has_nothing_to_do_returns_the_very_batch(step: Step, applied: int | None) -> None:
    batch = a_batch(rows(), applied=applied)
    assert step(batch, target()) is batch
    assert step in apply.STEPS


def test_a_changelog_keeps_truncates_and_deletes_as_rows() -> None:
    batch = a_batch(rows(truncate=Truncate(1, 0, 6), truncates=3), applied=5)
    changelog = target(tables_write__mode="append", tables_delete__mode="ignore")
    for step in (apply.find_truncate, apply.drop_idle_groups, apply.drop_refused_events):
        assert step(batch, changelog) is batch


def test_the_last_truncate_counts_unless_the_table_has_it() -> None:
    first, last = rows(truncate=Truncate(1, 0, 6), truncates=2), rows(truncate=Truncate(2, 0, 8), truncates=1)
    found = apply.find_truncate(a_batch(first, last, applied=7), target())
    assert (found.truncate, found.counting.truncates) == (Truncate(2, 0, 8), 3)
    assert apply.find_truncate(a_batch(first, applied=7), target()).truncate is None
    assert apply.find_truncate(a_batch(first), target(tables_truncate__mode="ignore")).truncate is None
    for mode in ({"tables_truncate__mode": "fail"}, {"tables_write__mode": "scd2"}):
        with pytest.raises(FatalTaskError, match=r"truncated in the source \(partition 0, offset 8\)"):
            apply.find_truncate(a_batch(first, last), target(**mode))


def test_groups_that_cannot_change_the_table_are_left_out() -> None:
    only_truncates = rows(truncate=Truncate(1, 0, 6), truncates=3)
    given = (rows(), only_truncates, tombstones(), tombstones(keyed=False))
    kept = apply.drop_idle_groups(a_batch(*given, applied=5), target())
    assert kept.groups == [rows(), tombstones()]
    assert apply.drop_idle_groups(a_batch(*given), target()).groups == [rows(), tombstones()], "they may delete rows of the same batch"
    assert not apply.drop_idle_groups(a_batch(tombstones(), only_truncates), target()).groups, (
        "a table that is not there has nothing to delete"
    )
    changelog = target(tables_write__mode="append")
    assert apply.drop_idle_groups(a_batch(*given, applied=5), changelog).groups == [rows(), only_truncates]


def test_a_table_is_found_as_far_as_it_is_and_the_watermark_moves_to_the_ranges_ends() -> None:
    class Tables:
        def __init__(self, applied: int | None) -> None:
            self._found = a_batch(applied=applied).state

        def load(self, _: TableName) -> TableState | None:
            return self._found

    def loaded(applied: int | None) -> TableBatch:
        return apply.load_table(a_batch(rows()), replace(target(), tables=Tables(applied)))  # type: ignore[arg-type]

    assert (loaded(None).groups, loaded(None).condition) == ((rows(),), None)
    assert (loaded(5).groups, loaded(5).condition) == ((rows(),), None)
    assert loaded(7).condition == "NOT ((`topic` = 't' AND `partition` = 0 AND `offset` < 7))"
    assert loaded(9).groups == ()
    assert {loaded(applied).watermark.offsets[TP] for applied in (None, 5, 7, 9)} == {9}
    assert apply.commit(loaded(9), target()) is False, "a table that has everything is not touched"


def test_the_shape_has_the_groups_keys_and_refuses_groups_that_differ_in_them() -> None:
    shape = apply.find_shape(a_batch(rows()), target()).shape
    assert (shape.keys, shape.types["id"], shape.types["a"], shape.unknown) == (("id",), "int", "string", ())
    assert apply.find_shape(a_batch(rows(placeholder=True)), target()).shape.unknown == ("a",)
    assert apply.find_shape(a_batch(rows()), target(tables_write__mode="append")).shape.keys == ()
    keyless = rows()
    keyless = replace(keyless, schema=replace(keyless.schema, keys=()))
    with pytest.raises(FatalTaskError, match=r"The key of table public\.t changes within t: \(\) and \(id\)"):
        apply.find_shape(a_batch(rows(), keyless), target())
    for mode, why in (({"tables_no__key": "fail"}, "no key, so rows cannot"), ({"tables_write__mode": "scd2"}, "no versions")):
        with pytest.raises(FatalTaskError, match=why):
            apply.find_shape(a_batch(keyless), target(**mode))
