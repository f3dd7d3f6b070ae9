"""Which watermark of a Delta table counts, and what makes a task give way: rules only."""

from __future__ import annotations

import datetime
import json
from typing import Any

import pytest

from connect_py.api.record import TopicPartition
from connect_py.errors import FatalTaskError
from spark_sink.routing import TableName
from spark_sink.tables.base import Ledger, TableSetBack, Writer
from spark_sink.tables.watermark import (
    MAX_PAST,
    Applied,
    Commit,
    PastCommit,
    Watermark,
    metadata_json,
    newest_commit,
    parse_metadata,
    past_commits,
)

TP = TopicPartition("t", 0)
NAME = TableName(("public", "t"))


def at(minute: int) -> datetime.datetime:
    return datetime.datetime(2026, 1, 1, 0, minute, tzinfo=datetime.UTC)


def mark(offset: int) -> Watermark:
    return Watermark({TP: offset})


def ours(version: int, offset: int, sequence: int, generation: int = 0) -> Commit:
    text = metadata_json("lake", Applied(mark(offset), sequence, generation, 7), {"kafka.connect.commit-id": "x"})
    return Commit(version, at(version), parse_metadata(text))


def replacing(version: int) -> Commit:
    return Commit(version, at(version), {}, replaces=True)


def other(version: int, restored: Any = None, text: str | None = None) -> Commit:
    return Commit(version, at(version), parse_metadata(text), restored)


@pytest.mark.parametrize(
    ("history", "offset", "sequence"),
    [
        ([ours(2, 5, 2), ours(1, 3, 1)], 5, 2),
        ([other(4, text="not JSON"), other(3, text="[1]"), ours(2, 5, 2)], 5, 2),
        ([other(3, restored=1), ours(2, 5, 2), ours(1, 3, 1)], 3, 2),
        ([other(3, restored=at(1)), ours(2, 5, 2), ours(1, 3, 1)], 3, 2),
        ([ours(4, 4, 3), other(3, restored=1), ours(2, 5, 2), ours(1, 3, 1)], 4, 3),
        ([other(5, restored=3), ours(4, 9, 3), other(3, restored=1), ours(2, 5, 2), ours(1, 3, 1)], 3, 3),
        ([other(3, restored=0), ours(2, 5, 2), ours(1, 3, 1), other(0)], None, 2),
        ([replacing(3), ours(2, 5, 2)], None, 2),
        ([ours(4, 1, 3), replacing(3), ours(2, 5, 2)], 1, 3),
        ([other(4, restored=2), replacing(3), ours(2, 5, 2)], 5, 2),
    ],
    ids=[
        "the newest",
        "others between",
        "restored",
        "restored to a moment",
        "written after",
        "restored to a restored",
        "to the empty table",
        "replaced",
        "replaced and written",
        "replaced and restored",
    ],
)
def test_the_newest_commit_that_was_not_rolled_back_counts_and_a_sequence_is_never_used_again(
    history: list[Commit], offset: int | None, sequence: int
) -> None:
    applied, of_commit = newest_commit(history, {}, "lake")
    assert applied.watermark.offsets == ({} if offset is None else {TP: offset})
    assert applied.sequence == sequence
    assert of_commit == (offset is not None or any(commit.replaces for commit in history))


def test_when_the_history_has_lost_the_commit_the_property_counts_and_another_connectors_commits_do_not() -> None:
    properties = {
        "kafka.connect.offsets.lake": mark(7).to_json(),
        "kafka.connect.sequence.lake": "12",
        "kafka.connect.generation.lake": "2",
    }
    stranger = Commit(9, at(9), {"kafka.connect.offsets.other": {"t": {"0": 99}}, "kafka.connect.sequence": 40})
    assert newest_commit([stranger], properties, "lake") == (Applied(mark(7), 12, 2), False)


def test_a_sequence_that_is_no_number_stops_the_task() -> None:
    bad = Commit(1, at(1), {"kafka.connect.offsets.lake": {"t": {"0": 1}}, "kafka.connect.sequence": "x"})
    with pytest.raises(FatalTaskError, match=r"commit 1 has kafka\.connect\.sequence 'x'"):
        newest_commit([bad], {}, "lake")


def test_what_a_commit_carries_is_one_json_object() -> None:
    carried = json.loads(metadata_json("lake", Applied(mark(5), 3, 1, 7), {"kafka.connect.task-id": "lake-0"}))
    assert carried == {
        "kafka.connect.offsets.lake": {"t": {"0": 5}},
        "kafka.connect.sequence": 3,
        "kafka.connect.generation": 1,
        "kafka.connect.task-epoch": 7,
        "kafka.connect.task-id": "lake-0",
    }


def test_a_ledger_gives_way_to_a_younger_writer_and_claims_only_when_told_to() -> None:
    ledger = Ledger(Writer("lake", 0, 100))
    ledger.found(NAME, mark(1), 100)
    with pytest.raises(FatalTaskError, match=r"public\.t is written by a younger task of connector lake"):
        ledger.found(NAME, mark(2), 101)
    ledger.claim(101)
    ledger.found(NAME, mark(2), 101)
    assert ledger.writer.epoch == 102


def test_a_ledger_says_what_a_table_has_lost_once() -> None:
    ledger = Ledger(Writer("lake", 0, 100))
    ledger.missing(NAME)
    ledger.found(NAME, mark(5), 1)
    with pytest.raises(TableSetBack) as raised:
        ledger.found(NAME, mark(3), 1)
    assert raised.value.offsets == {TP: 3}
    ledger.found(NAME, mark(3), 1)
    with pytest.raises(TableSetBack) as raised:
        ledger.missing(NAME)
    assert raised.value.offsets == {TP: 0}
    ledger.missing(NAME)


def stored_at(**offsets: int) -> str:
    return json.dumps({topic: {"0": offset} for topic, offset in offsets.items()})


def test_past_commits_say_what_each_of_them_has_applied() -> None:
    stored = [(9.0, stored_at(a=12, b=3)), (8.0, stored_at(a=12)), (7.0, None), (6.0, stored_at(a=12)), (5.0, stored_at(a=5)), (4.0, None)]
    assert past_commits(stored) == [PastCommit(9.0, 3), PastCommit(6.0, 7), PastCommit(5.0, None)]
    assert past_commits([]) == past_commits([(1.0, None)]) == []
    assert past_commits([(3.0, stored_at(a=2)), (2.0, '"damaged"'), (1.0, stored_at(a=1))]) == [PastCommit(3.0, None)]


def test_of_past_commits_the_newest_are_kept() -> None:
    found = past_commits((float(number), stored_at(a=number)) for number in range(100, 0, -1))
    assert found == [PastCommit(float(number), 1) for number in range(100, 100 - MAX_PAST, -1)]
