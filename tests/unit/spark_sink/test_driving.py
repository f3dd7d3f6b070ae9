"""What plans the sink's batches: pace, and what a streaming checkpoint says against what the tables say."""

from __future__ import annotations

import pytest

from connect_py.api.record import TopicPartition
from connect_py.errors import ConfigError
from spark_sink.config.sink_config import SinkConfig, parse
from spark_sink.plan.stream import CheckpointState, UnreadableError, agrees, parse_offsets
from spark_sink.plan.triggers import Horizon, LoopTrigger, Pace, Turns
from spark_sink.read.reader import HELD_RECORDS

A, B = TopicPartition("a", 0), TopicPartition("b", 0)
HADOOP = {"topics": "a", "lakehouse.catalog.type": "hadoop", "lakehouse.catalog.warehouse": "/w"}


def config(**more: str) -> SinkConfig:
    return parse(HADOOP | {"lakehouse." + name.replace("__", "-").replace("_", "."): value for name, value in more.items()})


def test_offsets_are_read_as_spark_41_writes_them() -> None:
    assert parse_offsets('v1\n{"batchWatermarkMs":0,"conf":{}}\n{"a":{"0":5},"b":{"0":7}}') == {A: 5, B: 7}
    assert parse_offsets('\x00v1\n{"a":{"0":5}}\n') == {A: 5}


@pytest.mark.parametrize("text", ["", "v2\n{}\n{}", "v1\n{}\n-", "v1\n{}\nnot json", 'v1\n{}\n{"a":5}', "v1"])
def test_a_checkpoint_of_another_form_is_not_guessed_at(text: str) -> None:
    with pytest.raises(UnreadableError):
        parse_offsets(text)


@pytest.mark.parametrize(
    ("state", "positions", "goes_on"),
    [
        (CheckpointState({A: 5}, None), {A: 5}, True),
        (CheckpointState({A: 5}, {A: 9}), {A: 5}, True),
        (CheckpointState({A: 5}, {A: 9}), {A: 9}, True),
        (CheckpointState({A: 5}, {A: 9}), {A: 7}, True),
        (CheckpointState({A: 5}, {A: 9}), {A: 4}, False),
        (CheckpointState({A: 5}, {A: 9}), {A: 10}, False),
        (CheckpointState({A: 5}, None), {A: 6}, False),
        (CheckpointState({A: 5}, {A: 9, B: 3}), {A: 9, B: 3}, True),
        (CheckpointState({A: 5, B: 3}, None), {A: 5}, False),
        (CheckpointState({A: 5}, {A: 9, B: 3}), {A: 9, B: 4}, False),
        (CheckpointState({A: 5}, None), {A: 5, B: 0}, True),
        (CheckpointState({A: 5}, None), {A: 5, B: 3}, False),
    ],
    ids=[
        "at its end",
        "before its planned batch",
        "the planned batch was applied",
        "some tables have it",
        "a table was set back",
        "offsets were set forward",
        "the tables are ahead",
        "a new partition",
        "a topic is gone",
        "a new partition, of which the tables have more",
        "a partition it does not know",
        "a partition that it does not know, and the tables do",
    ],
)
def test_a_checkpoint_is_gone_on_from_where_it_misses_nothing_and_repeats_its_last_batch_at_most(
    state: CheckpointState, positions: dict[TopicPartition, int], goes_on: bool
) -> None:
    assert agrees(state, positions) is goes_on


def test_a_backlog_of_a_whole_batch_does_not_wait_even_if_it_cannot_be_divided_evenly() -> None:
    driver = LoopTrigger(config(max__offsets__per__trigger="10"))
    log = {TopicPartition("a", number): (0, 11) for number in range(3)}
    positions = dict.fromkeys(log, 0)
    pending = driver.next(positions, log)
    assert pending is not None
    positions |= {tp: end for tp, (_, end) in pending.ranges.items()}
    assert driver.next(positions, log) is not None
    assert driver.next(dict.fromkeys(log, 10), log) is None, "the rest waits for the interval"


def test_topics_that_have_little_take_turns_each_with_what_has_come_by_then() -> None:
    driver = LoopTrigger(config(control_commit_threads="1", control_commit_interval__ms="3600000"))
    topics = [TopicPartition(name, number) for name in "abcdefg" for number in (0, 1)]
    positions, log = dict.fromkeys(topics, 0), dict.fromkeys(topics, (0, 1))

    def batch() -> dict[TopicPartition, tuple[int, int]] | None:
        if (pending := driver.next(positions, log)) is None:
            return None
        positions.update({tp: end for tp, (_, end) in pending.ranges.items()})
        return dict(pending.ranges)

    def of(names: str, end: int) -> dict[TopicPartition, tuple[int, int]]:
        return {tp: (0, end) for tp in topics if tp.topic in names}

    assert batch() == of("abc", 1)
    log |= dict.fromkeys(topics, (0, 2))
    assert batch() == of("def", 2)
    assert batch() == of("g", 2)
    assert batch() is None, "the others have had their turn, and an hour has not passed"


def test_a_round_begins_with_the_topics_that_had_their_turn_first_in_the_last_one() -> None:
    turns = Turns(config(control_commit_threads="1"))

    def take(names: str) -> str:
        return "".join(tp.topic for tp in turns.take({TopicPartition(name, 0): (0, 1) for name in names}))

    assert [take("bcd"), take("abcd")] == ["bc", "d"], "what had nothing when the round began waits for the next one"
    assert [take("abcd"), take("abcd")] == ["ab", "cd"]
    assert take("ad") == "ad"
    assert take("c") == "c"
    assert [take("abcd"), take("abd")] == ["ab", "d"], "a topic whose records are gone is passed over"


def test_more_than_a_few_records_are_taken_together() -> None:
    driver = LoopTrigger(config(control_commit_threads="1"))
    log = {TopicPartition(name, 0): (0, 3) for name in "abcd"}
    positions = dict.fromkeys(log, 0)
    pending = driver.next(positions, log)
    assert pending is not None
    assert [tp.topic for tp in pending.ranges] == ["a", "b"]
    log |= {TopicPartition("a", 0): (0, HELD_RECORDS)}
    pending = driver.next(positions, log)
    assert pending is not None
    assert pending.ranges == log


def test_few_records_wait_for_more_but_not_for_ever() -> None:
    now = 1000.0
    more = {"min__offsets__per__trigger": "5", "max__trigger__delay__ms": "60000", "control_commit_interval__ms": "10000"}
    pace = Pace(config(**more), clock=lambda: now)
    assert pace.due(1), "nothing has been waited for yet"
    pace.begin()
    now += 11
    assert not pace.due(4)
    assert pace.due(5)
    now += 50
    assert pace.due(1)
    assert not pace.due(0)


def test_a_bounded_run_goes_as_far_as_the_log_did_at_its_start() -> None:
    horizon = Horizon(config(trigger="available-now"))
    assert horizon.of({A: (0, 7)}, {A: 0}) == {A: (0, 7)}
    assert horizon.of({A: (2, 9), B: (0, 4)}, {A: 5, B: 0}) == {A: (2, 7), B: (0, 0)}
    assert horizon.of({A: (2, 12)}, {A: 9}) == {A: (2, 9)}, "a streaming query took more"
    assert Horizon(config()).of({A: (0, 7)}, {A: 0}) == {A: (0, 7)}


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"source_mode": "stream"}, r"lakehouse\.checkpoint\.location is missing"),
        ({"spark_remote": "sc://h", "source_mode": "stream", "checkpoint_location": "/c"}, "Use loop"),
        ({"spark_remote": "sc://h", "spark_master": "local[2]"}, "exclude each other"),
        ({"spark_remote": "spark://h"}, "must begin with sc://"),
    ],
)
def test_choices_of_where_spark_runs_that_do_not_go_together_are_refused(more: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        config(**more)


def test_the_address_of_a_connect_server_may_hold_a_token_and_has_no_text_form() -> None:
    assert "secret" not in str(config(spark_remote="sc://h:1/;token=secret").values)
