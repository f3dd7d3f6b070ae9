"""What the configuration topic's records add up to, in any order that a topic can have them in."""

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_py.api.storage import ClusterConfig, RestartRequest, TargetState
from connect_py.errors import DataError
from offsets.config_store import (
    Change,
    ConfigFold,
    Notice,
    Record,
    commit_record,
    connector_record,
    logger_record,
    removal_records,
    restart_record,
    session_key_record,
    target_state_record,
    task_count_record,
    task_records,
)


def fold(*records: Record) -> tuple[ClusterConfig, list[Notice]]:
    folded, notices = ConfigFold(), []
    for offset, (key, value) in enumerate(records):
        notice = folded.apply(key, value, offset)
        if notice is not None:
            notices.append(notice)
    return folded.snapshot(), notices


CONFIG = {"name": "c", "x": "1"}


def test_an_empty_topic_has_no_offset_and_no_connectors() -> None:
    assert fold() == (ClusterConfig(), [])


def test_tasks_take_effect_with_their_commit_only() -> None:
    found, notices = fold(connector_record("c", CONFIG), *task_records("c", [{"a": "0"}, {"a": "1"}]))
    assert found.tasks("c") == []
    assert [notice.change for notice in notices] == [Change.CONNECTOR]
    found, notices = fold(connector_record("c", CONFIG), *task_records("c", [{"a": "0"}, {"a": "1"}]), commit_record("c", 2))
    assert found.tasks("c") == [0, 1]
    assert found.task_configs == {("c", 0): {"a": "0"}, ("c", 1): {"a": "1"}}
    assert found.applied == {"c": CONFIG}
    assert found.offset == 4
    assert [notice.change for notice in notices] == [Change.CONNECTOR, Change.TASKS]


def test_a_gap_in_the_task_numbers_makes_the_connector_inconsistent_until_a_full_set() -> None:
    tasks = task_records("c", [{"a": "0"}, {"a": "1"}])
    found, _ = fold(connector_record("c", CONFIG), tasks[1], commit_record("c", 2))
    assert (found.inconsistent, found.task_counts, found.tasks("c"), found.applied) == (frozenset({"c"}), {"c": 2}, [], {})
    found, _ = fold(connector_record("c", CONFIG), tasks[1], commit_record("c", 2), *tasks, commit_record("c", 2))
    assert (found.inconsistent, found.tasks("c")) == (frozenset(), [0, 1])


def test_a_failed_commit_uses_up_what_was_waiting() -> None:
    tasks = task_records("c", [{"a": "0"}, {"a": "1"}])
    found, _ = fold(connector_record("c", CONFIG), tasks[0], commit_record("c", 2), tasks[1], commit_record("c", 2))
    assert found.inconsistent == {"c"}


def test_tasks_behind_the_last_commit_leave_their_connector_unfinished_until_the_next() -> None:
    """A leader was killed before it had committed them."""
    whole = [connector_record("c", CONFIG), *task_records("c", [{"a": "0"}]), commit_record("c", 1)]
    assert fold(*whole)[0].unfinished == frozenset()
    torn = [*whole, *task_records("c", [{"a": "1"}])]
    assert (fold(*torn)[0].unfinished, fold(*torn)[0].tasks("c")) == (frozenset({"c"}), [0])
    assert fold(*torn, *task_records("c", [{"a": "1"}]), commit_record("c", 1))[0].unfinished == frozenset()
    assert fold(*torn, *removal_records("c"))[0].unfinished == frozenset()


def test_a_configuration_that_is_written_again_behind_its_tasks_leaves_its_connector_unfinished_until_the_next_commit() -> None:
    """Whoever reads the topic after compaction finds tasks before their connector, as those of one that was deleted and made again."""
    tasks = [*task_records("c", [{"a": "0"}]), commit_record("c", 1)]
    whole = [connector_record("c", CONFIG), *tasks]
    again = [*whole, connector_record("c", CONFIG)]
    assert (fold(*again)[0].unfinished, fold(*again)[0].tasks("c")) == (frozenset({"c"}), [0])
    assert fold(*compacted(again))[0].tasks("c") == []
    stored = [*again, *tasks]
    for records in (stored, compacted(stored)):
        assert (fold(*records)[0].unfinished, fold(*records)[0].tasks("c")) == (frozenset(), [0])
    assert fold(*again, *removal_records("c"))[0].unfinished == frozenset()


def test_left_over_tasks_of_a_larger_set_are_tolerated() -> None:
    tasks = task_records("c", [{"a": "0"}, {"a": "1"}, {"a": "2"}])
    found, _ = fold(connector_record("c", CONFIG), tasks[2], tasks[0], commit_record("c", 1))
    assert (found.tasks("c"), found.task_configs) == ([0], {("c", 0): {"a": "0"}})


def test_no_tasks_at_all_are_a_full_set() -> None:
    found, _ = fold(connector_record("c", CONFIG), *task_records("c", [{}]), commit_record("c", 1), commit_record("c", 0))
    assert (found.tasks("c"), found.task_configs, found.inconsistent) == ([], {}, frozenset())


def test_a_deleted_connector_takes_its_tasks_along_and_a_new_one_of_its_name_starts_without() -> None:
    history = [connector_record("c", CONFIG), *task_records("c", [{}]), commit_record("c", 1), *removal_records("c")]
    found, notices = fold(*history)
    assert (found.connectors, found.tasks("c"), found.task_configs) == ({}, [], {})
    assert notices[-1] == Notice(Change.REMOVED, "c")
    found, _ = fold(*history, connector_record("c", CONFIG))
    assert found.tasks("c") == []


def test_a_commit_of_an_unknown_connector_is_dropped() -> None:
    found, notices = fold(*task_records("c", [{}]), commit_record("c", 1), connector_record("c", CONFIG))
    assert (found.task_counts, [notice.change for notice in notices]) == ({}, [Change.CONNECTOR])


def test_a_target_state_is_news_only_for_a_known_connector_and_when_it_changes() -> None:
    paused = target_state_record("c", TargetState.PAUSED)
    found, notices = fold(paused, connector_record("c", CONFIG), paused, target_state_record("c", TargetState.STOPPED))
    assert [notice.change for notice in notices] == [Change.CONNECTOR, Change.TARGET_STATE]
    assert found.target_state("c") is TargetState.STOPPED
    _, notices = fold(connector_record("c", CONFIG), target_state_record("c", TargetState.STARTED))
    assert [notice.change for notice in notices] == [Change.CONNECTOR], "a connector without a record is started"


@pytest.mark.parametrize(
    ("value", "state"),
    [
        (b'{"state":"PAUSED"}', TargetState.PAUSED),
        (b'{"state":"PAUSED","state.v2":null}', TargetState.PAUSED),
        (b'{"state":"PAUSED","state.v2":7}', TargetState.PAUSED),
        (b'{"state":"PAUSED","state.v2":"STOPPED"}', TargetState.STOPPED),
        (None, TargetState.STARTED),
    ],
)
def test_target_states_of_older_workers_are_understood(value: bytes | None, state: TargetState) -> None:
    found, _ = fold(target_state_record("c", TargetState.STOPPED), (b"target-state-c", value))
    assert found.target_state("c") is state


def test_connector_names_may_hold_dashes_and_look_like_keys() -> None:
    name = "task-1-connector-"
    found, _ = fold(connector_record(name, CONFIG), *task_records(name, [{"a": "0"}]), commit_record(name, 1))
    assert (list(found.connectors), found.tasks(name)) == ([name], [0])


def test_restarts_loggers_fencing_and_session_keys_are_told_or_kept() -> None:
    request = RestartRequest("c", include_tasks=True)
    found, notices = fold(
        restart_record(request), logger_record("x", "debug"), task_count_record("c", 3), session_key_record("a2V5", "HmacSHA256", 17)
    )
    assert notices == [Notice(Change.RESTART, "c", restart=request), Notice(Change.LOGGER, "x", level="debug")]
    assert found.task_count_records == {"c": 3}
    assert found.session_key == {"key": "a2V5", "algorithm": "HmacSHA256", "creation-timestamp": 17}


def test_missing_flags_of_a_restart_count_as_false() -> None:
    _, notices = fold((b"restart-connector-c", b'{"only-failed":1}'))
    assert notices[0].restart == RestartRequest("c")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"{}"),
        (b"\xff", b"{}"),
        (b"odd", b"{}"),
        (b"connector-c", b"x"),
        (b"connector-c", b"[]"),
        (b"connector-c", b'{"properties":3}'),
        (b"task-c-0", None),
        (b"task-c", b'{"properties":{}}'),
        (b"task-c-x", b'{"properties":{}}'),
        (b"target-state-c", b'{"state":"ODD"}'),
        (b"target-state-c", b"{}"),
        (b"session-key", b'{"key":1}'),
        (b"logger-cluster-x", b"{}"),
        (b"tasks-fencing-c", b'{"task-count":true}'),
        (b"restart-connector-c", None),
    ],
)
def test_a_record_that_means_nothing_changes_nothing(key: bytes | None, value: bytes | None) -> None:
    folded = ConfigFold()
    for offset, record in enumerate([connector_record("c", CONFIG), *task_records("c", [{}]), commit_record("c", 1)]):
        folded.apply(*record, offset)
    before = folded.snapshot()
    with pytest.raises(DataError):
        folded.apply(key, value, 3)
    after = folded.snapshot()
    assert {**vars(after), "offset": 0} == {**vars(before), "offset": 0}


@pytest.mark.parametrize(
    ("key", "value", "offset"),
    [
        (b"connector-c", b"no JSON", 1),
        (b"nobody-knows-it", b"no JSON", 1),
        (b"nobody-knows-it", b"{}", 8),
        (b"connector-c", b"[]", 8),
        (b"connector-c", b'{"properties":7}', 8),
        (b"connector-c", None, 8),
    ],
)
def test_of_records_that_mean_nothing_those_that_are_json_move_the_offset(key: bytes, value: bytes | None, offset: int) -> None:
    """As in a Java worker: two that count otherwise never agree on a configuration, and have rebalances for ever."""
    folded = ConfigFold()
    folded.apply(*connector_record("c", CONFIG), 0)
    with contextlib.suppress(DataError):
        folded.apply(key, value, 7)
    assert folded.snapshot().offset == offset


names = st.sampled_from(["a", "b", "a-1", "task-0", "connector-"])
configs = st.dictionaries(st.sampled_from(["x", "y"]), st.text(max_size=3), max_size=2)
steps = st.one_of(
    st.builds(lambda name, config: [connector_record(name, config)], names, configs),
    st.builds(removal_records, names),
    st.builds(lambda name, tasks: [*task_records(name, tasks), commit_record(name, len(tasks))], names, st.lists(configs, max_size=3)),
    st.builds(lambda name, tasks: task_records(name, tasks), names, st.lists(configs, max_size=3)),
    st.builds(lambda name, state: [target_state_record(name, state)], names, st.sampled_from(TargetState)),
    st.builds(lambda name, count: [task_count_record(name, count)], names, st.integers(0, 3)),
)


def compacted(records: list[Record]) -> list[Record]:
    """What compaction leaves at the least: the last record of each key."""
    last = {key: at for at, (key, _) in enumerate(records)}
    return [record for at, record in enumerate(records) if last[record[0]] == at]


@given(st.lists(steps, max_size=12))
def test_compaction_changes_nothing_but_may_cost_a_task_set(history: list[list[Record]]) -> None:
    records = [record for step in history for record in step]
    whole, _ = fold(*records)
    rest, _ = fold(*compacted(records))
    assert (rest.connectors, rest.target_states, rest.task_count_records) == (
        whole.connectors,
        whole.target_states,
        whole.task_count_records,
    )
    for connector in whole.connectors:
        # a set whose records were overwritten without a commit is lost; then the connector has no tasks, and never other ones
        assert rest.tasks(connector) in ([], whole.tasks(connector))
        # as in Kafka Connect, a commit without a connector before it is that of one which was deleted (KAFKA-16838)
        assert rest.tasks(connector) == whole.tasks(connector) or connector in whole.unfinished


@given(st.lists(steps, max_size=12))
def test_every_task_that_is_shown_has_a_configuration(history: list[list[Record]]) -> None:
    found, _ = fold(*[record for step in history for record in step])
    for connector in found.connectors:
        for task in found.tasks(connector):
            assert (connector, task) in found.task_configs
        if found.tasks(connector):
            assert connector in found.applied
    assert {connector for connector, _ in found.task_configs} <= set(found.connectors)


@given(st.lists(steps, max_size=8), st.lists(steps, max_size=4))
def test_a_snapshot_does_not_change_with_later_records(history: list[list[Record]], later: list[list[Record]]) -> None:
    folded, offset = ConfigFold(), 0
    for key, value in (record for step in history for record in step):
        folded.apply(key, value, offset)
        offset += 1
    snapshot = folded.snapshot()
    copy: dict[str, Any] = {name: dict(value) if isinstance(value, dict) else value for name, value in vars(snapshot).items()}
    for key, value in (record for step in later for record in step):
        folded.apply(key, value, offset)
        offset += 1
    assert vars(snapshot) == copy
