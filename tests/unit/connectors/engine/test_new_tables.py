"""Which tables a start finds new, by what the offset and the publication say."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from connectors.engine.snapshot.new_tables import FIELD, NewTables


def started(
    stored: object, captured: list[str], *, from_start: bool = False, before: list[str] | None = None, is_on: bool = True
) -> NewTables:
    tables = NewTables(is_on=is_on, ignored=["s.signal"])
    tables.restore({} if stored is None else {FIELD: stored})
    tables.captures(captured, from_start=from_start, before=before)
    return tables


def known(tables: NewTables) -> list[str]:
    found: list[str] = json.loads(tables.fields()[FIELD])
    return found


def test_a_first_start_finds_nothing_new() -> None:
    tables = started(None, ["s.a", "s.b"], from_start=True)
    assert list(tables.due) == []
    assert known(tables) == ["s.a", "s.b"]


def test_what_the_offset_does_not_name_is_new_until_it_is_queued() -> None:
    tables = started('["s.a","s.gone"]', ["s.b", "s.a", "s.signal"])
    assert list(tables.due) == ["s.b"]
    assert known(tables) == ["s.a", "s.signal"], "a table that is no longer captured is forgotten"
    tables.queued()
    assert list(tables.due) == []
    assert known(tables) == ["s.a", "s.b", "s.signal"]


def test_an_offset_of_before_goes_by_what_was_published() -> None:
    assert list(started(None, ["s.a", "s.b"], before=["s.a", "s.z"]).due) == ["s.b"]
    assert list(started(None, ["s.a", "s.b"]).due) == [], "nobody knows"
    assert list(started('["s.b"]', ["s.a", "s.b"], before=["s.a"]).due) == ["s.a"], "the offset knows better"


def test_a_field_that_cannot_be_read_counts_as_none() -> None:
    for text in ("", "{", "7"):
        assert list(started(text, ["s.a", "s.b"], before=["s.a"]).due) == ["s.b"], text


def test_a_table_that_is_made_while_the_stream_is_read_is_not_new_to_the_next_start() -> None:
    tables = started('["s.a"]', ["s.a", "s.b"])
    tables.seen("s.b")
    assert known(tables) == ["s.a"], "it was there at the start, and is still to be read"
    tables.seen("s.c")
    assert known(tables) == ["s.a", "s.c"]


def test_nothing_is_noted_where_nobody_asks_for_it() -> None:
    tables = started('["s.a"]', ["s.a", "s.b"], is_on=False)
    tables.seen("s.c")
    assert list(tables.due) == []
    assert tables.fields() == {}


NAMES = st.lists(st.sampled_from(["s.a", "s.b", "s.c", "s.ü", 's."'])).map(lambda names: list(dict.fromkeys(names)))


@given(st.lists(st.tuples(NAMES, st.booleans())))
def test_over_starts_each_table_is_queued_once_for_every_time_that_it_begins_to_be_captured(starts: list[tuple[list[str], bool]]) -> None:
    """A start may end before its queue is in an offset; then the next one finds the same tables new."""
    fields = started(None, ["s.a"], from_start=True).fields()
    read = {"s.a"}
    for captured, ends_early in starts:
        tables = NewTables(is_on=True)
        tables.restore(fields)
        tables.captures(captured, from_start=False)
        assert set(tables.due) == set(captured) - read
        if ends_early:
            continue
        tables.queued()
        fields = tables.fields()
        read = set(captured)
