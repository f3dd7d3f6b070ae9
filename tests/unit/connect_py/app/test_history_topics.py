"""What a history has of change events, in the forms that connectors give them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from connect_py.app.verify.history.journal import changes_of, changes_of_documents, digest_of, key_text, line_of_document
from connect_py.app.verify.history.records import Change, Op
from connect_py.app.verify.history.run import position_of_offset
from connect_py.app.verify.history.topics import EventReader
from connect_py.errors import DataError

POSTGRES = {"schema": "public", "table": "item", "db": "shop", "txId": 571, "lsn": 20, "sequence": '["10","20"]', "snapshot": "false"}


def envelope(op: str, row: Any, source: dict[str, Any] = POSTGRES, **more: Any) -> dict[str, Any]:
    side = "before" if op == "d" else "after"
    return {"before": None, "after": None, side: row, "op": op, "source": source, **more}


def test_an_update_says_its_key_its_sequence_its_values_and_its_place() -> None:
    reader = EventReader("version", {"public.item": ["id", "note"]})
    event = reader.event("t", 0, 7, {"id": 1}, envelope("u", {"id": 1, "version": 4, "note": None}))
    assert event is not None
    assert (event.table, event.key, event.op, event.sequence) == ("public.item", "1", Op.UPDATE, 4)
    assert event.digest == digest_of([1, None]) != digest_of([1, "None"])
    assert (event.position, event.transaction, event.incremental) == ((10, 20), "571", False)


def test_a_deletion_that_shows_only_the_key_has_no_sequence_and_its_tombstone_has_its_table() -> None:
    reader = EventReader("version")
    deleted = reader.event("t", 0, 7, {"id": 1}, envelope("d", {"id": 1, "version": 0, "note": ""}))
    tombstone = reader.event("t", 0, 8, {"id": 1}, None)
    assert deleted is not None and tombstone is not None
    assert (deleted.sequence, deleted.digest) == (None, None)
    assert (tombstone.table, tombstone.key, tombstone.op) == ("public.item", "1", Op.TOMBSTONE)


def test_a_row_of_a_snapshot_has_no_place_in_the_log() -> None:
    event = EventReader("version").event("t", 0, 0, {"id": 1}, envelope("r", {"version": 2}, {**POSTGRES, "snapshot": "incremental"}))
    assert event is not None
    assert (event.op, event.incremental, event.position, event.transaction) == (Op.READ, True, None, "")


def test_a_document_is_read_from_its_text() -> None:
    source = {"db": "shop", "collection": "items", "ts_ms": 5, "ord": 2, "snapshot": "false"}
    text = json.dumps({"_id": 1, "version": {"$numberLong": "3"}})
    event = EventReader("version").event("t", 0, 0, {"id": "1"}, envelope("u", text, source))
    assert event is not None
    assert (event.table, event.sequence, event.position) == ("shop.items", 3, (5, 2))


def test_transaction_metadata_names_the_transaction() -> None:
    block = {"id": "571:20", "total_order": 2, "data_collection_order": 1}
    event = EventReader("version").event("t", 0, 0, {"id": 1}, envelope("c", {"version": 1}, transaction=block))
    assert event is not None
    assert (event.transaction, event.total_order, event.collection_order) == ("571:20", 2, 1)


@pytest.mark.parametrize("value", [{"id": 1, "version": 2}, "text", {"op": "c", "source": None}])
def test_a_record_that_is_no_change_event_is_refused(value: Any) -> None:
    with pytest.raises(DataError, match="t-0@3 is no change event"):
        EventReader("version").event("t", 0, 3, {"id": 1}, value)


def test_the_journal_of_documents_comes_back_as_it_was_noted() -> None:
    change = Change(7, "shop.items", key_text([1, "a"]), 2, Op.UPDATE, "tx", None)
    assert changes_of_documents([line_of_document(change)]) == [change]


def test_a_line_that_other_triggers_wrote_is_refused() -> None:
    with pytest.raises(DataError, match="Line 3 of the journal is none"):
        changes_of([("3", "shop.items", "1", "1", "x", "", None)])


@pytest.mark.parametrize(
    ("offset", "position"),
    [({"lsn": 9}, (9,)), ({"file": "b.1", "pos": 4, "row": 2}, ("b.1", 4, 0, 2)), ({"resume_token": "82"}, None)],
)
def test_stored_offsets_with_an_order_have_a_position(offset: dict[str, Any], position: Any) -> None:
    assert position_of_offset(offset) == position
