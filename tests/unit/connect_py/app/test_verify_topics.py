"""`connect-py verify` of topics without servers: what records leave of each key, which side is wrong, which keys are chosen."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connect_py.app.verify.choice import KeySet, Sample, parse_sample
from connect_py.app.verify.normal import digest
from connect_py.app.verify.report import Patience, TopicOutcome, as_json, as_text
from connect_py.app.verify.source import KeyRange, SourceRow, SourceTables
from connect_py.app.verify.topic.compare import TopicComparison, columns_of
from connect_py.app.verify.topic.form import UNKNOWN, UNSENT, Form, States, filled, is_same, key_values, said_by
from connect_py.data import Struct
from connect_py.data.schema import INT32, OPTIONAL_STRING, decimal_schema, struct
from connect_py.errors import ConfigError, DataError
from connect_py.kafka.consumer import ConsumedRecord
from connect_py.plugins.registry import Plugins
from tests.seeds import examples

JSON = "org.apache.kafka.connect.json.JsonConverter"
PLACEHOLDER = "__debezium_unavailable_value"
KEY, ROW = struct([("id", INT32)]), struct([("id", INT32), ("name", OPTIONAL_STRING.with_default("d")), ("price", decimal_schema(2))])

#: id → name, price in cents.
Rows = dict[int, tuple[str | None, int]]


def row(id_: int, name: str | None, cents: int) -> SourceRow:
    return SourceRow("t", Struct(KEY, [id_]), Struct(ROW, [id_, name, Decimal(cents).scaleb(-2)]))


class Sources:
    """A source of one table that the test changes; ranges of two rows."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows

    def ranges(self, name: str) -> Iterator[tuple[KeyRange, list[SourceRow]]]:
        keys = sorted(self.rows)
        for place in range(0, len(keys), 2):
            part = keys[place : place + 2]
            yield KeyRange(name, (part[0] - 1,), (part[-1],)), [row(key, *self.rows[key]) for key in part]

    def again(self, range_: KeyRange) -> Iterator[SourceRow]:
        (after,), (until,) = cast("Any", range_.after) or (0,), cast("Any", range_.until)
        yield from (row(key, *values) for key, values in self.rows.items() if after < key <= until)


class Topic:
    """A topic of one or more partitions, in the form that `wraps` gives records."""

    def __init__(self, *, schemas: bool = False, envelope: bool = True) -> None:
        self.schemas, self.envelope = schemas, envelope
        self.records: list[ConsumedRecord] = []
        self.taken = 0
        self.clock = 0

    def put(self, id_: int | None, value: Any, partition: int = 0, ts: int | None = None) -> None:
        """Append a record; a value None is a tombstone."""
        self.clock += 1
        offset = sum(record.partition == partition for record in self.records)
        key = None if id_ is None else self._bytes({"id": id_})
        self.records.append(ConsumedRecord("t", partition, offset, ts or self.clock, "CreateTime", key, self._bytes(value), ()))

    def event(self, op: str, id_: int | None, after: Mapping[str, Any] | None, **where: int) -> None:
        if self.envelope:
            self.put(id_, {"op": op, "before": None, "after": after, "source": {"table": "s"}}, **where)
        else:
            self.put(id_, after, **where)

    def _bytes(self, value: Any) -> bytes | None:
        if value is None:
            return None
        return json.dumps({"schema": {"type": "struct"}, "payload": value} if self.schemas else value).encode()

    def read_to_end(self) -> Iterator[list[ConsumedRecord]]:
        while self.taken < len(self.records):
            part = self.records[self.taken : self.taken + 3]
            self.taken += len(part)
            yield part

    def record_at(self, topic: str, partition: int, offset: int) -> ConsumedRecord | None:
        return next((r for r in self.records if (r.partition, r.offset) == (partition, offset)), None)


def _form(*, schemas: bool) -> Form:
    names = {"converter": JSON, "converter.schemas.enable": str(schemas).lower()}
    return Form(Plugins.discover(), {}, {f"{side}.{name}": value for side in ("key", "value") for name, value in names.items()})


FORMS = {schemas: _form(schemas=schemas) for schemas in (True, False)}


def payload(id_: int, name: str | None, cents: int) -> dict[str, Any]:
    """A row as JsonConverter writes it: the default in the place of a null, the decimal in base64."""
    return dict(FORMS[False].row(row(id_, name, cents)))


def compared(
    rows: Rows,
    topic: Topic,
    meanwhile: Callable[[int], None] = lambda _: None,
    rounds: int = 2,
    sources: Sources | None = None,
    **more: Any,
) -> TopicOutcome:
    """`meanwhile` is called before each further look with its number."""
    outcome = TopicOutcome("t", ["s"])
    looked = 0

    def sleep(_: float) -> None:
        nonlocal looked
        looked += 1
        meanwhile(looked)

    comparison = TopicComparison(
        outcome,
        cast("SourceTables", sources or Sources(rows)),
        topic,
        FORMS[topic.schemas],
        States([field.name for field in ROW.fields], PLACEHOLDER),
        Patience(wait=rounds, pause=0),
        sleep=sleep,
        clock=lambda: looked,
        **more,
    )
    try:
        comparison.run()
    finally:
        comparison.close()
    return outcome


# -- what records say ------------------------------------------------------------------------------------------------------------------


@settings(max_examples=examples(150), deadline=None)
@given(st.data())
def test_whatever_happened_the_topic_is_equal_to_the_rows_and_planted_differences_are_counted(data: st.DataObject) -> None:
    topic = Topic(schemas=data.draw(st.booleans()), envelope=data.draw(st.booleans()))
    rows: Rows = {}
    names, ids = st.sampled_from([None, "a", "ž", ""]), st.integers(1, 6)
    for kind in data.draw(st.lists(st.sampled_from("cudmr"), max_size=30)):
        id_, name, cents = data.draw(ids), data.draw(names), data.draw(st.integers(-999, 999))
        if kind == "d":
            if rows.pop(id_, None) is not None:
                if topic.envelope:
                    topic.event("d", id_, None)
                if not topic.envelope or data.draw(st.booleans()):
                    topic.put(id_, None)
        elif kind == "m" and rows and id_ not in rows:  # a key that moves
            old = data.draw(st.sampled_from(sorted(rows)))
            rows[id_] = rows.pop(old)
            topic.event("d", old, None)
            topic.put(old, None)
            topic.event("c", id_, payload(id_, *rows[id_]))
        elif kind == "r" and topic.records:  # what a killed task sends again
            again = topic.records[-data.draw(st.integers(1, 3)) :]
            topic.records += [ConsumedRecord(*each[:2], len(topic.records) + at, *each[3:]) for at, each in enumerate(again)]
        else:
            rows[id_] = (name, cents)
            topic.event(kind if kind in "cu" else "r", id_, payload(id_, name, cents))
    assert compared(rows, topic).equal
    missing = set(range(10, 10 + data.draw(st.integers(0, 3))))
    extra = set(range(20, 20 + data.draw(st.integers(0, 3))))
    stale = set(data.draw(st.lists(st.sampled_from(sorted(rows)), unique=True))) if rows else set()
    for id_ in extra:
        topic.event("c", id_, payload(id_, "x", 1))
    topic.taken = 0
    planted = {**{id_: (values[0], 5000) if id_ in stale else values for id_, values in rows.items()}, **dict.fromkeys(missing, ("n", 1))}
    outcome = compared(planted, topic, rounds=0)
    assert outcome.counts == {"missing": len(missing), "extra": len(extra), "different": len(stale)}
    kinds = {kind: {each.key["id"] for each in outcome.differences if each.kind == kind} for kind in outcome.counts}
    assert kinds == {"missing": missing, "extra": extra, "different": stale}


@pytest.mark.parametrize(
    ("key", "value", "wanted"),
    [
        ({"id": 1}, None, (None, True, False)),
        ({"id": 1}, {"op": "d", "after": None, "source": {}}, (None, True, False)),
        ({"id": 1}, {"op": "u", "after": {"id": 1}, "source": {}}, ({"id": 1}, True, False)),
        ({"id": 1}, {"op": "u", "after": None, "source": {}}, (None, False, False)),  # MongoDB without whole documents
        (None, {"op": "t", "after": None, "source": {}}, (None, True, True)),
        ({"id": 1}, {"id": 1, "__deleted": "true"}, (None, True, False)),
        ({"id": 1}, {"id": 1, "__deleted": "false"}, ({"id": 1, "__deleted": "false"}, True, False)),
    ],
)
def test_what_a_record_says_is_told_apart_by_its_content(key: Any, value: Any, wanted: tuple[Any, ...]) -> None:
    said = said_by(key, value, is_document=False)
    assert said is not None and (said.row, said.is_known, said.is_truncate) == wanted


def test_a_message_of_the_log_says_nothing_of_rows() -> None:
    assert said_by({"prefix": "p"}, {"op": "m", "after": None, "source": {}}, is_document=False) is None


def test_documents_are_known_by_the_id_that_tables_have() -> None:
    said = said_by({"id": '{"$oid": "5f0000000000000000000001"}'}, {"op": "c", "after": "{}", "source": {}}, is_document=True)
    assert said is not None and (said.key, said.row) == ({"_id": "5f0000000000000000000001"}, {"document": "{}"})


def test_keys_of_numbers_and_texts_have_the_digest_that_a_lakehouse_tables_keys_have() -> None:
    assert digest(key_values({"part": "a", "id": 7})) == digest((7, "a"))


# -- values that were not sent -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        PLACEHOLDER,
        "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==",
        [PLACEHOLDER],
        list(PLACEHOLDER.encode()),
        {PLACEHOLDER: PLACEHOLDER},
        PLACEHOLDER.encode(),
        f'{{"{PLACEHOLDER}":"{PLACEHOLDER}"}}',
    ],
)
def test_the_placeholder_is_known_in_every_form(value: Any) -> None:
    assert States(["a", "b"], PLACEHOLDER).of({"a": value, "b": 1})[:8] == UNSENT
    assert States(["a"], None).of({"a": value}) != UNSENT


def test_an_unsent_value_is_that_of_the_record_before_and_else_is_not_compared() -> None:
    states = States(["a", "b"], PLACEHOLDER)
    before, now = states.of({"a": "large", "b": 1}), states.of({"a": PLACEHOLDER, "b": 2})
    assert filled(now, before) == states.of({"a": "large", "b": 2})
    assert filled(now, None)[:8] == UNKNOWN
    assert is_same(filled(now, None), states.of({"a": "anything", "b": 2}))
    assert not is_same(filled(now, None), states.of({"a": "anything", "b": 3}))
    assert not is_same(filled(now, None), None)


def test_a_topic_with_unsent_values_is_equal_and_those_without_a_value_are_counted() -> None:
    topic = Topic()
    topic.event("c", 1, payload(1, "large", 5))
    topic.event("u", 1, {**payload(1, None, 7), "name": PLACEHOLDER})
    topic.event("c", 2, {**payload(2, None, 7), "name": PLACEHOLDER})  # a key that has moved
    outcome = compared({1: ("large", 7), 2: ("who knows", 7)}, topic)
    assert outcome.equal and outcome.unknown == 1
    assert "1 rows have values that no record of the topic has" in as_text(outcome)
    topic.taken = 0
    assert compared({1: ("other", 7), 2: ("who knows", 7)}, topic, rounds=0).counts["different"] == 1


# -- order -------------------------------------------------------------------------------------------------------------------------------


def test_of_a_key_in_several_partitions_the_later_record_counts() -> None:
    topic = Topic()
    topic.event("c", 1, payload(1, "new", 1), partition=1, ts=200)
    topic.event("c", 1, payload(1, "old", 1), partition=0, ts=100)
    assert compared({1: ("new", 1)}, topic, partitions=2).equal


def test_a_truncate_removes_what_was_before_it() -> None:
    topic = Topic()
    topic.event("c", 1, payload(1, "a", 1))
    topic.event("t", None, None)
    topic.event("c", 2, payload(2, "b", 1))
    assert compared({2: ("b", 1)}, topic).equal


def test_a_truncate_among_several_partitions_cannot_be_judged() -> None:
    topic = Topic()
    topic.event("t", None, None)
    with pytest.raises(Exception, match="several partitions and a truncate"):
        compared({}, topic, partitions=2)


# -- time --------------------------------------------------------------------------------------------------------------------------------


def test_rows_whose_records_come_later_settle() -> None:
    topic = Topic()
    topic.event("c", 1, payload(1, "a", 1))
    topic.event("c", 3, payload(3, "gone", 1))

    def meanwhile(look: int) -> None:
        if look == 1:
            topic.event("u", 1, payload(1, "b", 1))
            topic.event("c", 2, payload(2, "c", 1))
            topic.event("d", 3, None)

    outcome = compared({1: ("b", 1), 2: ("c", 1)}, topic, meanwhile)
    assert outcome.equal and outcome.settled == 3


def test_a_row_that_changes_more_often_than_it_is_looked_at_settles() -> None:
    topic, sources = Topic(), Sources({1: ("v0", 1)})

    def meanwhile(look: int) -> None:
        for step in range(3):
            topic.event("u", 1, payload(1, f"v{3 * (look - 1) + step}", 1))
        sources.rows[1] = (f"v{3 * look + 1}", 1)  # the topic is always some changes behind

    assert compared({}, topic, meanwhile, rounds=5, sources=sources).equal


def test_an_old_row_that_comes_after_the_right_one_is_stale_however_often_it_is_looked_at() -> None:
    topic = Topic()

    def meanwhile(look: int) -> None:
        if look == 1:
            topic.event("u", 1, payload(1, "right", 1))
            topic.event("u", 1, payload(1, "old", 1))

    outcome = compared({1: ("right", 1)}, topic, meanwhile, rounds=4)
    assert outcome.counts["different"] == 1
    (difference,) = outcome.differences
    assert difference.columns == {"name": ("right", "old")} and difference.place == "t-0@1"
    assert "stale in the topic id=1: name is 'right' in the source, 'old' in the topic (t-0@1)" in as_text(outcome)
    told = as_json(outcome)
    assert (told["side"], told["topic"], told["differences"][0]["topic"]["name"]) == ("topic", "t", "old")


# -- topics that are not whole -----------------------------------------------------------------------------------------------------------


def test_of_a_topic_that_is_not_whole_only_its_own_keys_are_compared() -> None:
    topic = Topic()
    topic.event("c", 1, payload(1, "a", 1))
    topic.event("d", 2, None)
    outcome = compared({1: ("b", 1), 2: ("is there", 1), 3: ("old", 1)}, topic, rounds=0, missing_count=False)
    assert outcome.counts == {"missing": 1, "extra": 0, "different": 1}


def test_of_a_topic_without_deletes_extra_rows_do_not_count() -> None:
    topic = Topic()
    topic.event("c", 1, payload(1, "a", 1))
    assert compared({}, topic, rounds=0, extras_count=False).equal


def test_a_record_that_no_converter_has_written_is_named() -> None:
    topic = Topic()
    topic.records.append(ConsumedRecord("t", 0, 7, 1, None, b'{"id":1}', b"{", ()))
    with pytest.raises(DataError, match="t-0@7 is not what the connector's converters write"):
        compared({}, topic)


def test_rows_of_documents_have_no_fixed_columns() -> None:
    tables = cast("SourceTables", SimpleNamespace(columns_vary=True, added_fields=frozenset({"__op"})))
    assert columns_of(row(1, "a", 1), tables) is None
    tables = cast("SourceTables", SimpleNamespace(columns_vary=False, added_fields=frozenset({"name"})))
    assert columns_of(row(1, "a", 1), tables) == ["id", "price"]
    one, other = States(None, None).of({"a": 1, "b": None}), States(None, None).of({"a": 1})
    assert one == other != States(None, None).of({"a": 1, "b": 2})


# -- which keys --------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "sample"), [("1%", Sample(share=0.01)), ("0.5 %", Sample(share=0.005)), ("1000", Sample(keys=1000))])
def test_a_sample_is_a_share_or_a_number(text: str, sample: Sample) -> None:
    assert parse_sample(text) == sample


@pytest.mark.parametrize("text", ["", "0", "0%", "101%", "1.5", "-1%", "some", "1%%"])
def test_what_is_no_sample_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="--sample"):
        parse_sample(text)


def test_a_sample_has_about_the_keys_that_were_asked_for_and_a_larger_one_has_all_of_a_smaller_one() -> None:
    keys = [digest((number,)) for number in range(20_000)]
    small, large, all_ = (Sample(share=share).chosen(None) for share in (0.01, 0.1, 1.0))
    assert small is not None and large is not None and all_ is not None
    assert 140 < sum(map(small, keys)) < 260 and 1800 < sum(map(large, keys)) < 2200 and all(map(all_, keys))
    assert all(large(key) for key in keys if small(key))
    counted = Sample(keys=100).chosen(20_000)
    assert counted is not None and 60 < sum(map(counted, keys)) < 140
    assert Sample(keys=100).chosen(None) is None


def test_a_sample_of_a_topic_is_compared_with_the_same_keys_of_the_source() -> None:
    topic, rows = Topic(), {}
    for id_ in range(1, 201):
        rows[id_] = ("a", id_)
        topic.event("c", id_, payload(id_, "stale" if id_ % 2 else "a", id_))
    whole = compared(rows, topic, rounds=0, sample=Sample(share=1.0))
    topic.taken = 0
    part = compared(rows, topic, rounds=0, sample=Sample(share=0.2))
    topic.taken = 0
    counted = compared(rows, topic, rounds=0, sample=Sample(keys=40))
    assert whole.counts["different"] == 100
    for each in (part, counted):
        assert 15 < each.compared < 70 and each.counts["missing"] == each.counts["extra"] == 0
        assert 0 < each.counts["different"] < each.compared


def test_a_set_of_keys_knows_its_keys() -> None:
    keys = KeySet([b"a", b"b", b"a"])
    try:
        assert (len(keys), b"a" in keys, b"c" in keys) == (2, True, False)
    finally:
        keys.close()
