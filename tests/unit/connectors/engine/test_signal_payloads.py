"""Whatever a signal holds, the stream continues: every type of signal, any JSON and any other text as its data, all ways in."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from connect_py.errors import ConfigError, RetriableError
from connectors.engine.signal.actions import BlockingRequest, SignalProcessor, require_snapshot, require_stop, standard_actions
from connectors.engine.signal.channels import FileChannel
from connectors.engine.signal.records import SignalRecord, parse_document
from connectors.engine.snapshot.incremental.machine import MAX_LOSSES
from tests.seeds import examples
from tests.snapshot_run import Run, Table

# Python warns of nested character classes, which Java has
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")

FIELDS = [
    "data-collections",
    "additional-conditions",
    "data-collection",
    "filter",
    "surrogate-key",
    "type",
    "message",
    "database",
    "schema",
]
FIELDS += ["changes", "ddl", "id", "table", "binlog_filename", "binlog_position", "gtid_set"]
TEXTS = st.one_of(
    st.sampled_from(
        ["s.t", "s.other", "s.(", "*", "(?i)s.t", "[[a]", "a{99999999999}", "(?<x", "\\", "\\Q", "INCREMENTAL", "blocking", "{}"]
    ),
    st.sampled_from(["\ud800", "\0", "x" * 5000, "(" * 300, "s." + "(a|" * 50, "1e999", "é\u2028"]),
    st.text(alphabet=st.characters(codec=None), max_size=20),
)
PLAIN = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXTS)


def _more(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.one_of(st.sampled_from(FIELDS), TEXTS), inner, max_size=5))


ANY = st.recursive(PLAIN, _more, max_leaves=20)
#: Data that get as far as the action: the fields that signals have, with any values, and often the right ones.
NAMES = st.one_of(ANY, st.lists(TEXTS, min_size=1, max_size=4), st.just(["s.t"]))
CONDITIONS = st.one_of(ANY, st.lists(st.fixed_dictionaries({"data-collection": TEXTS, "filter": TEXTS}), max_size=2))
LIKELY = st.fixed_dictionaries(
    {},
    optional={
        "data-collections": NAMES,
        "type": st.one_of(ANY, st.sampled_from(["incremental", "BLOCKING"])),
        "additional-conditions": CONDITIONS,
        "surrogate-key": ANY,
        "message": ANY,
        "database": ANY,
        "schema": ANY,
        "ddl": ANY,
        "changes": ANY,
    },
)
NESTED = "[" * 100_000 + "]" * 100_000
DATA = st.one_of(
    LIKELY.map(json.dumps),
    ANY.map(json.dumps),
    TEXTS,
    st.none(),
    st.sampled_from(
        [NESTED, f'{{"data-collections": {NESTED}}}', json.dumps({"data-collections": ["s.u"] * 3 + [f"s.{n}" for n in range(30_000)]})]
    ),
)
TYPES = sorted(standard_actions(None, lambda _: None, dict, lambda *_: None))


class Source:
    """What takes signals next to a stream, over a table that is read incrementally."""

    def __init__(self) -> None:
        self.run = Run(Table(rows={1: 1, 2: 2, 3: 3}), 1)
        self.blocking: list[BlockingRequest] = []
        self.changes: list[object] = []
        self.processor = SignalProcessor(standard_actions(self.run.snapshot, self.blocking.append, self._offset, self._changed))

    def _offset(self) -> Mapping[str, Any]:
        return {"lsn": 1, **self.run.snapshot.offset()}

    def _changed(self, *change: object) -> None:
        self.changes.append(change)

    def take(self, type_: str, data: str | None, id_: str = "x") -> None:
        self.processor.process(SignalRecord(id_, type_, data, "source"))

    def goes_on(self) -> None:
        """The stream does; offsets and notifications can be written; the next snapshot reads all."""
        run = self.run
        for _ in range(5):
            run.batch()
        orjson.dumps(dict(run.snapshot.offset()))
        orjson.dumps([dict(note.additional_data) | {"id": note.id} for note in run.notes])
        orjson.dumps([list(request.collections) for request in self.blocking])
        run.snapshot.stop()
        run.snapshot.resume()
        run.finish()
        run.topic.clear()
        run.snapshot.begin("again", ["s.t"])
        run.finish()
        assert run.topic == run.table.rows


@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.lists(st.tuples(st.sampled_from(TYPES), DATA), min_size=1, max_size=4), st.booleans())
@example([("stop-snapshot", '{"data-collections":["s.("]}')], True)
@example([("execute-snapshot", '{"data-collections":["\\ud800"]}')], True)
@example([("execute-snapshot", NESTED)], True)
@example([("execute-snapshot", '{"data-collections":["a{99999999999}"]}')], False)
def test_no_signal_of_any_content_stops_the_stream(signals: list[tuple[str, str | None]], is_running: bool) -> None:
    source = Source()
    if is_running:
        source.run.snapshot.begin("s", ["s.t", "s.other"])
    for type_, data in signals:
        source.take(type_, data)
        source.run.batch(1)
    source.goes_on()


@pytest.mark.parametrize("type_", TYPES)
@given(data=DATA)
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_every_type_of_signal_takes_any_data_while_a_snapshot_runs(type_: str, data: str | None) -> None:
    source = Source()
    source.run.snapshot.begin("s", ["s.t", "s.other"])
    source.take(type_, data)
    source.goes_on()


def test_a_malformed_stop_is_notified_and_the_snapshot_continues(caplog: pytest.LogCaptureFixture) -> None:
    source = Source()
    source.run.snapshot.begin("s", ["s.t"])
    source.take("stop-snapshot", '{"data-collections":["s.("]}', "wrong")
    source.run.finish()
    assert source.run.topic == source.run.table.rows
    rejected = [note for note in source.run.notes if note.type == "REJECTED"]
    assert [(note.id, note.additional_data["data_collections"]) for note in rejected] == [("wrong", "s.t")]
    assert "'s.(' in data-collections is no regular expression" in rejected[0].additional_data["error"]
    assert any("stop-snapshot failed" in line and "wrong" in line for line in caplog.messages)


def test_a_stop_that_comes_after_a_malformed_one_is_carried_out() -> None:
    source = Source()
    source.run.snapshot.begin("s", ["s.t", "s.other"])
    source.take("stop-snapshot", '{"data-collections":["s.("]}')
    source.take("stop-snapshot", '{"data-collections":["s.t"]}')
    source.run.finish()
    assert [note.additional_data["data_collections"] for note in source.run.notes if note.type == "ABORTED"] == ["s.t"]


def test_more_collections_than_an_offset_can_hold_are_refused(caplog: pytest.LogCaptureFixture) -> None:
    source = Source()
    source.take("execute-snapshot", json.dumps({"data-collections": [f"s.{number}" for number in range(20_000)]}))
    assert not source.run.snapshot.is_running
    assert any("Name fewer collections" in line for line in caplog.messages)


@given(ANY)
def test_rest_refuses_with_an_explanation_or_accepts(data: Any) -> None:
    for check in (lambda: require_snapshot(data, has_incremental=True), lambda: require_stop(data)):
        if isinstance(data, dict):
            try:
                check()
            except ConfigError as error:
                assert str(error)


def test_rest_refuses_a_stop_with_a_malformed_name() -> None:
    with pytest.raises(ConfigError, match="Unclosed group"):
        require_stop({"data-collections": ["public.a("]})


@given(DATA, st.sampled_from([None, ""]))
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_a_document_is_a_signal_that_can_be_written_or_refused(text: str | None, default_id: str | None) -> None:
    try:
        found = parse_document(text or "", "kafka", default_id=default_id)
    except ValueError:
        return
    orjson.dumps([found.id, found.type, found.data])


@given(st.lists(st.one_of(st.binary(max_size=30), DATA.map(lambda text: (text or "").encode("utf-8", "surrogatepass"))), max_size=4))
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture])
def test_a_good_line_of_the_signal_file_is_read_whatever_is_around_it(tmp_path: Path, lines: Sequence[bytes]) -> None:
    file = tmp_path / "signals"
    good = json.dumps({"id": "good", "type": "log", "data": {"message": "é\u2028x"}}, ensure_ascii=False).encode()
    file.write_bytes(b"\n".join([*lines, good, *lines]))
    found = FileChannel(file).read()
    assert [record.data for record in found if record.id == "good"] == [json.dumps({"message": "é\u2028x"})]


def test_a_condition_that_ends_the_connection_each_time_pauses_the_snapshot() -> None:
    source = Source()
    run = source.run
    run.table.failures = [RetriableError("the server closed the connection")] * 100
    data = json.dumps({"data-collections": ["s.t"], "additional-conditions": [{"data-collection": "s.t", "filter": "f()"}]})
    lost = 0
    while not run.snapshot.is_paused:
        try:
            source.take("execute-snapshot", data)
        except RetriableError:
            lost += 1
            assert lost < 10, "each start is given the signal again"
            run.snapshot.restore({})
    source.take("execute-snapshot", data)
    run.batch()
    assert lost == MAX_LOSSES
    assert [note.additional_data["error"] for note in run.notes if note.type == "PAUSED"] == ["the server closed the connection"]
