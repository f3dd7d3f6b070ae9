"""Keys and values of the internal topics have the bytes that Connect 4.3.1 was seen to write."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_py.api.storage import RestartRequest, Status, TargetState
from connect_py.errors import DataError
from offsets import config_store, status_store
from offsets.keys import decode_json, encode_json, offset_key, offset_value, parse_offset_key


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"note": 'é \x01 " / \u2028 \x7f'}, '{"note":"é \\u0001 \\" / \u2028 \x7f"}'),
        ("\b\f\n\r\t\\\x1f", '"\\b\\f\\n\\r\\t\\\\\\u001F"'),
        ("😀", '"\\uD83D\\uDE00"'),
        ([None, True, False, 2**63 - 1, -1], "[null,true,false,9223372036854775807,-1]"),
        ([1.0, 1e10, 0.001, 1e-5], "[1.0,1.0E10,0.001,1.0E-5]"),
        (float("inf"), '"Infinity"'),
        (b"ab", '"YWI="'),
    ],
)
def test_json_is_written_as_jackson_does(value: Any, text: str) -> None:
    assert encode_json(value) == text.encode()


def test_an_offset_key_keeps_the_order_of_its_map() -> None:
    assert offset_key("C", {"b": 1, "a": "x"}) == b'["C",{"b":1,"a":"x"}]'
    assert offset_key("C", {"a": "x", "b": 1}) == b'["C",{"a":"x","b":1}]'
    assert (offset_value({"position": 30}), offset_value(None)) == (b'{"position":30}', None)


@pytest.mark.parametrize("value", [{1: "x"}, {"a": {1, 2}}, "\ud800"])
def test_what_a_topic_cannot_hold_is_refused(value: Any) -> None:
    with pytest.raises(DataError):
        encode_json(value)


@pytest.mark.parametrize("key", [b"", b"x", b"{}", b"[]", b'["a"]', b"[1,{}]", b'["a",1]', b'["a",{},1]', None])
def test_keys_that_are_no_pair_of_connector_and_partition_are_refused(key: bytes | None) -> None:
    with pytest.raises(DataError):
        parse_offset_key(key)


def test_a_key_without_partition_is_passed_over() -> None:
    assert parse_offset_key(b'["a",null]') is None


primitives = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False) | st.text()


@given(st.text(), st.dictionaries(st.text(), primitives))
def test_an_offset_key_that_was_read_is_written_again_with_the_same_bytes(connector: str, partition: dict[str, Any]) -> None:
    key = offset_key(connector, partition)
    place = parse_offset_key(key)
    assert place is not None
    assert (place[0], dict(place[1])) == (connector, partition)
    assert offset_key(*place) == key


@given(st.recursive(primitives, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_json_reads_back_as_it_was_written(value: Any) -> None:
    assert decode_json(encode_json(value)) == value


def test_configuration_records_have_the_references_bytes() -> None:
    assert config_store.connector_record("a", {"x": "1", "name": "a"}) == (b"connector-a", b'{"properties":{"x":"1","name":"a"}}')
    assert config_store.task_records("a", [{"x": "1"}, {}]) == [
        (b"task-a-0", b'{"properties":{"x":"1"}}'),
        (b"task-a-1", b'{"properties":{}}'),
    ]
    assert config_store.commit_record("a", 2) == (b"commit-a", b'{"tasks":2}')
    assert config_store.restart_record(RestartRequest("a", include_tasks=True)) == (
        b"restart-connector-a",
        b'{"include-tasks":true,"only-failed":false}',
    )
    assert config_store.logger_record("x.y", "info") == (b"logger-cluster-x.y", b'{"level":"info"}')
    assert config_store.task_count_record("a", 2) == (b"tasks-fencing-a", b'{"task-count":2}')
    assert config_store.session_key_record("ZfmfYB==", "HmacSHA256", 1795261564633) == (
        b"session-key",
        b'{"key":"ZfmfYB==","algorithm":"HmacSHA256","creation-timestamp":1795261564633}',
    )
    assert config_store.removal_records("a") == [(b"connector-a", None), (b"target-state-a", None)]


@pytest.mark.parametrize(
    ("state", "value"),
    [
        (TargetState.STARTED, b'{"state":"STARTED","state.v2":"STARTED"}'),
        (TargetState.PAUSED, b'{"state":"PAUSED","state.v2":"PAUSED"}'),
        (TargetState.STOPPED, b'{"state":"PAUSED","state.v2":"STOPPED"}'),
    ],
)
def test_stopped_is_shown_as_paused_to_older_workers(state: TargetState, value: bytes) -> None:
    assert config_store.target_state_record("a", state) == (b"target-state-a", value)


def test_a_status_holds_trace_and_version_even_when_there_is_none() -> None:
    assert status_store.encode_status(Status("RUNNING", "h:8083", 3, version="4.3.1")) == (
        b'{"state":"RUNNING","trace":null,"worker_id":"h:8083","generation":3,"version":"4.3.1"}'
    )
    assert status_store.encode_status(Status("UNASSIGNED", "h:8083", 6)) == (
        b'{"state":"UNASSIGNED","trace":null,"worker_id":"h:8083","generation":6,"version":null}'
    )
    assert status_store.encode_status(Status("DESTROYED", "h:8083")) is None


def test_a_status_of_an_older_worker_has_no_version() -> None:
    found = status_store.decode_status(b'{"state":"FAILED","trace":"t","worker_id":"h:1","generation":2}')
    assert found == Status("FAILED", "h:1", 2, "t", None)


@pytest.mark.parametrize("value", [b"x", b"[]", b'{"state":"ODD","worker_id":"h","generation":1}', b'{"state":"RUNNING","generation":1}'])
def test_a_status_that_cannot_be_read_is_refused(value: bytes) -> None:
    with pytest.raises(DataError):
        status_store.decode_status(value)


def test_topic_records_name_topic_and_connector_in_the_key() -> None:
    key = status_store.TopicKey("a-b:connector-c", "t.1")
    assert key.encode() == b"status-topic-t.1:connector-a-b:connector-c"
    assert status_store.parse_key(key.encode()) == key
    assert status_store.encode_topic("c", 0, "t", 1795262801770) == (
        b'{"topic":{"name":"t","connector":"c","task":0,"discoverTimestamp":1795262801770}}'
    )


@given(st.text(min_size=1), st.integers(0, 10**6))
def test_status_keys_read_back_whatever_the_connector_is_called(connector: str, task: int) -> None:
    for key in (status_store.ConnectorKey(connector), status_store.TaskKey(connector, task)):
        assert status_store.parse_key(key.encode()) == key


@pytest.mark.parametrize(
    "key", [None, b"", b"status-task-a", b"status-task-a-x", b"status-topic-t", b"status-topic-:connector-a", b"other"]
)
def test_keys_that_are_no_status_are_refused(key: bytes | None) -> None:
    with pytest.raises(DataError):
        status_store.parse_key(key)


@pytest.mark.parametrize(
    ("known", "allowed"),
    [
        (None, True),
        (Status("RUNNING", "me", 9), True),
        (Status("RUNNING", "other", 4), True),
        (Status("RUNNING", "other", 5), True),
        (Status("RUNNING", "other", 6), False),
    ],
)
def test_a_safe_report_gives_way_to_a_newer_one_of_another_worker(known: Status | None, allowed: bool) -> None:
    assert status_store.may_write_safely(known, Status("FAILED", "me", 5)) is allowed


def test_unassigned_of_an_older_or_equal_generation_never_replaces_running() -> None:
    running = Status("RUNNING", "new", 5)
    assert status_store.is_stale(running, Status("UNASSIGNED", "old", 5))
    assert not status_store.is_stale(running, Status("UNASSIGNED", "old", 6))
    assert not status_store.is_stale(Status("PAUSED", "new", 5), Status("UNASSIGNED", "old", 4))


def test_restarts_are_told_only_where_there_are_any_and_survive_the_topic() -> None:
    status = Status("FAILED", "h:1", 2, "t", None, {"attempts": 1})
    value = status_store.encode_status(status)
    assert value == b'{"state":"FAILED","trace":"t","worker_id":"h:1","generation":2,"version":null,"restarts":{"attempts":1}}'
    assert status_store.decode_status(value) == status
