"""What the first and last rows of snapshots say, and how it is kept. No Spark."""

from __future__ import annotations

import datetime
import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_py.api.record import TopicPartition
from connect_py.errors import ConfigError
from spark_sink.config.sink_config import SinkConfig, parse
from spark_sink.routing import TableName
from spark_sink.sql.merge import Shape, merge_sql
from spark_sink.tables.watermark import NO_SNAPSHOT, Applied, Commit, Watermark, metadata_json, newest_commit, newest_stored, parse_metadata
from spark_sink.write.reconcile import Mark, follow, follow_snapshots
from spark_sink.write.table_batch import TableBatch, Target

A0, B0 = TopicPartition("a", 0), TopicPartition("b", 0)
BEGUN = "kafka.connect.snapshots-begun.x"
SHAPE = Shape(("id",), {"id": "int", "n": "int", "__topic": "string", "__offset": "bigint"}, unseen={"it's": 7, "b": 9})


def config(**more: str) -> SinkConfig:
    base = {"topics": "t", "lakehouse.catalog.type": "hadoop", "lakehouse.catalog.warehouse": "/w", "lakehouse.snapshot.reconcile": "true"}
    return parse(base | more)


@pytest.mark.parametrize(
    ("begun", "marks", "after", "ended"),
    [
        (NO_SNAPSHOT, "", NO_SNAPSHOT, None),
        (NO_SNAPSHOT, "3F 9L", NO_SNAPSHOT, 3),
        (NO_SNAPSHOT, "9L", NO_SNAPSHOT, None),
        (3, "9L", NO_SNAPSHOT, 3),
        (3, "5F 9L", NO_SNAPSHOT, 5),
        (3, "5F", 5, None),
        (NO_SNAPSHOT, "3F 9L 12L", NO_SNAPSHOT, 3),
        (NO_SNAPSHOT, "9L 12F", 12, None),
        (3, "9L 12F", 12, 3),
        (3, "9L 12F 15L 17F", 17, 12),
        (0, "1L", NO_SNAPSHOT, 0),
    ],
)
def test_a_snapshot_is_whole_from_its_first_row_to_its_last(begun: int, marks: str, after: int, ended: int | None) -> None:
    assert follow(begun, [Mark(int(mark[:-1]), mark.endswith("L")) for mark in reversed(marks.split())]) == (after, ended)


@given(marks=st.lists(st.booleans(), max_size=12), cuts=st.lists(st.integers(0, 12)))
def test_it_does_not_matter_how_the_log_is_cut_into_batches(marks: list[bool], cuts: list[int]) -> None:
    whole = [Mark(offset, is_last) for offset, is_last in enumerate(marks)]
    state, ends = NO_SNAPSHOT, list[int]()
    edges = sorted({0, len(whole), *(cut for cut in cuts if cut <= len(whole))})
    for start, end in itertools.pairwise(edges):
        state, ended = follow(state, whole[start:end])
        ends += [] if ended is None else [ended]
    after, ended = follow(NO_SNAPSHOT, whole)
    assert (state, ends[-1:]) == (after, [] if ended is None else [ended])


def test_rows_that_were_not_seen_go_in_the_statement_that_merges() -> None:
    unseen = "((t.`__topic` = 'b' AND t.`__offset` < 9) OR (t.`__topic` = 'it\\'s' AND t.`__offset` < 7))"
    assert merge_sql("x", "s", SHAPE).endswith(f" WHEN NOT MATCHED BY SOURCE AND {unseen} THEN DELETE")
    assert merge_sql("x", "s", SHAPE, "apply").count("NOT MATCHED BY SOURCE") == 1, "nothing that was there stays in any case"
    soft = Shape(SHAPE.keys, SHAPE.types | {"__deleted": "boolean"}, soft=True, unseen=SHAPE.unseen)
    marks = f"NOT MATCHED BY SOURCE AND {unseen} AND NOT coalesce(t.`__deleted`, false) THEN UPDATE SET t.`__deleted` = true"
    assert marks in merge_sql("x", "s", soft)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"lakehouse.tables.write-mode": "append"}, r"needs lakehouse\.tables\.write-mode=upsert"),
        ({"lakehouse.tables.write-mode": "scd2"}, r"needs lakehouse\.tables\.write-mode=upsert"),
        ({"lakehouse.tables.ordering": "source"}, r"needs lakehouse\.tables\.ordering=log"),
        ({"lakehouse.tables.delete-mode": "ignore"}, "delete-mode=ignore keeps them"),
        ({"lakehouse.fail-on-data-loss": "false"}, r"needs lakehouse\.fail-on-data-loss=true"),
        ({"lakehouse.tables": "a.b"}, r"cannot be had with lakehouse\.tables"),
        (
            {"lakehouse.tables.dynamic-enabled": "true", "lakehouse.tables.route-field": "x"},
            r"needs lakehouse\.tables\.dynamic-enabled=false",
        ),
        ({"errors.tolerance": "all"}, r"cannot be had with errors\.tolerance=all"),
        ({"lakehouse.table.a.b.write-mode": "append"}, r"needs lakehouse\.tables\.write-mode=upsert"),
    ],
)
def test_what_a_snapshot_cannot_tell_is_refused(more: dict[str, str], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        config(**more)


def test_a_table_can_be_left_out_or_be_the_only_one() -> None:
    left_out = config(**{"lakehouse.table.a.b.write-mode": "append", "lakehouse.table.a.b.snapshot.reconcile": "false"})
    assert left_out.reconciles
    assert not left_out.of_table("a.b")["snapshot.reconcile"]
    assert config(**{"lakehouse.snapshot.reconcile": "false", "lakehouse.table.a.b.snapshot.reconcile": "true"}).reconciles
    assert not config(**{"lakehouse.snapshot.reconcile": "false"}).reconciles


def test_a_snapshot_that_begins_before_the_property_is_unset_does_not_end_after_it_is_set_again() -> None:
    nothing: Any = None
    batch = TableBatch(TableName(("t",)), (), {}, watermark=Watermark({A0: 9}, {A0: 4}))
    unset = config(**{"lakehouse.snapshot.reconcile": "false"})
    assert follow_snapshots(batch, Target(nothing, nothing, nothing, config())) == batch
    assert follow_snapshots(batch, Target(nothing, nothing, nothing, unset)).watermark == Watermark({A0: 9}, {A0: NO_SNAPSHOT})


# -- what is kept ---------------------------------------------------------------------------------------------------------------------


def test_of_a_snapshot_and_a_property_whoever_knows_more_of_a_partition_says_whether_a_snapshot_is_under_way() -> None:
    def found(summary: Watermark, properties: Watermark) -> Watermark:
        said = {"kafka.connect.offsets.x": summary.to_json(), BEGUN: summary.snapshots_json()}
        kept = {"kafka.connect.offsets.x": properties.to_json(), BEGUN: properties.snapshots_json(), "kafka.connect.snapshot.x": "1"}
        return newest_stored(1, {1: (None, said)}, kept, "x").watermark

    assert found(Watermark({A0: 9}, {A0: 4}), Watermark({A0: 3}, {A0: -1})) == Watermark({A0: 9}, {A0: 4}), "killed in between"
    assert found(Watermark({A0: 9}, {A0: 4}), Watermark({A0: 12}, {A0: 4})) == Watermark({A0: 12}, {A0: 4})
    assert found(Watermark({A0: 9, B0: 1}, {A0: 4}), Watermark({A0: 2, B0: 5}, {A0: 1, B0: 2})) == Watermark({A0: 9, B0: 5}, {A0: 4, B0: 2})
    assert Watermark.parse(None, None) == Watermark()
    assert Watermark({A0: 1}, {A0: 0}).advanced({A0: 5}).snapshots == {A0: 0}


def test_a_delta_commit_carries_it_and_one_without_is_as_ever() -> None:
    now = datetime.datetime.now(datetime.UTC)
    applied = Applied(Watermark({A0: 9}, {A0: 4}), 3)
    commit = Commit(5, now, parse_metadata(metadata_json("x", applied, {})))
    assert newest_commit([commit], {}, "x")[0].watermark == applied.watermark
    assert BEGUN not in json.loads(metadata_json("x", Applied(Watermark({A0: 9})), {}))
    kept = {"kafka.connect.offsets.x": '{"a":{"0":9}}', BEGUN: '{"a":{"0":4}}'}
    assert newest_commit([], kept, "x")[0].watermark == applied.watermark
