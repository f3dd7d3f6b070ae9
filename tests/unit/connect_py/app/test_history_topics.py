"""What a history has of change events, in the forms that connectors give them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from connect_py.app.verify.history.journal import (
    Journalled,
    changes_of,
    changes_of_documents,
    digest_of,
    key_text,
    line_of_document,
    mysql_query,
    mysql_script,
    mysql_statements,
    postgres_query,
    postgres_script,
    postgres_statements,
)
from connect_py.app.verify.history.records import Change, Event, Finding, History, Invariant, Op
from connect_py.app.verify.history.run import Report, as_json, as_text, promise_of
from connect_py.app.verify.history.topics import EventReader, position_of, position_of_offset
from connect_py.errors import ConfigError, DataError

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


def test_the_sequence_of_a_deletion_is_a_default_where_the_log_has_keys_only() -> None:
    reader = EventReader("version", keys_only={"public.item"})
    deleted = reader.event("t", 0, 7, {"id": 1}, envelope("d", {"id": 1, "version": 1, "note": None}))
    changed = reader.event("t", 0, 8, {"id": 1}, envelope("c", {"id": 1, "version": 3, "note": None}))
    assert deleted is not None and changed is not None
    assert (deleted.sequence, changed.sequence) == (None, 3)


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


@pytest.mark.parametrize(
    "value",
    [
        {"id": 1, "version": 2},
        "text",
        {"op": "c", "source": None},
        {"op": "x", "source": POSTGRES},
        {"op": "c", "source": {"db": "shop"}},
    ],
)
def test_a_record_that_is_no_change_event_is_refused(value: Any) -> None:
    with pytest.raises(DataError, match="t-0@3 is no change event"):
        EventReader("version").event("t", 0, 3, {"id": 1}, value)


def test_a_message_of_the_log_is_no_event() -> None:
    assert EventReader("version").event("t", 0, 3, {"prefix": "p"}, {"op": "m", "source": POSTGRES}) is None


def test_a_value_that_was_not_sent_is_not_compared() -> None:
    reader = EventReader("version", {"public.item": ["id", "note"]}, unavailable="unsent")
    event = reader.event("t", 0, 7, {"id": 1}, envelope("u", {"id": 1, "version": 4, "note": "unsent"}))
    assert event is not None and (event.sequence, event.digest) == (4, None)


def test_the_journal_of_documents_comes_back_as_it_was_noted() -> None:
    change = Change(7, "shop.items", key_text([1, "a"]), 2, Op.UPDATE, "tx", None)
    assert changes_of_documents([line_of_document(change)]) == [change]


def test_a_line_that_other_triggers_wrote_is_refused() -> None:
    with pytest.raises(DataError, match="Line 3 of the journal cannot be used"):
        changes_of([("3", "shop.items", "1", "1", "x", "", None)])


@pytest.mark.parametrize(
    ("source", "position"),
    [
        ({"file": "binlog.000010", "pos": 4, "row": 2}, (10, 4, 2)),
        ({"lsn": 20, "sequence": '[null,"20"]'}, (0, 20)),
        ({"ts_ms": 5000, "ord": 3}, (5000, 3)),
        ({"ts_ms": 5000}, None),
    ],
)
def test_a_source_block_says_its_place_in_the_log(source: dict[str, Any], position: Any) -> None:
    assert position_of(source) == position


@pytest.mark.parametrize(
    ("offset", "position"),
    [
        ({"lsn": 9, "snapshot": "INITIAL"}, None),
        ({"lsn": 9, "lsn_proc": 9}, (0, 9, 1)),
        ({"lsn": 9, "lsn_proc": 9, "lsn_commit": 7, "lsn_events_processed": 3}, (7, 9, 3)),
        ({"lsn": 9, "lsn_proc": 9, "lsn_commit": 9}, (9, 0, 0)),
        ({"file": "b.000001", "pos": 4, "row": 2}, (1, 4, 0, 2)),
        ({"sec": 5, "ord": 2, "resume_token": "82"}, (5, 2)),
        ({"sec": -1, "ord": -1, "resume_token": "82"}, None),
        ({"resume_token": "82"}, None),
    ],
)
def test_stored_offsets_with_an_order_have_a_position(offset: dict[str, Any], position: Any) -> None:
    assert position_of_offset(offset) == position


def test_a_transaction_that_began_before_the_last_one_has_the_later_positions() -> None:
    # one transaction ends at 30; the next one, which began before it, has changes at 12 and 31, and ends at 40
    stored = [(29, None, "UPDATE"), (30, 30, "COMMIT"), (12, 30, "UPDATE"), (31, 30, "UPDATE"), (40, 40, "COMMIT")]
    offsets = [{"lsn": lsn, "lsn_proc": lsn, "lsn_commit": commit, "messageType": kind} for lsn, commit, kind in stored]
    positions = [position_of_offset(offset) for offset in offsets]
    assert None not in positions and positions == sorted(positions, key=lambda position: position or ()) and len({*positions}) == 5


def test_the_seven_digits_of_a_log_file_are_after_six() -> None:
    before, after = ({"file": f"binlog.{number}", "pos": 4} for number in ("999999", "1000000"))
    assert (position_of_offset(before) or ()) < (position_of_offset(after) or ())


# -- the journal's statements --------------------------------------------------------------------------------------------------------


ODD = Journalled('sh`o"p', "it'e\\m", ["i`d", 'pa"rt'], 'ver"s`ion', ["no`te"])


def test_names_with_quotes_and_backslashes_are_quoted_for_mysql() -> None:
    statements = mysql_statements(ODD, "lo`gs.jour'nal")
    assert all("`lo``gs`.`jour'nal`" in statement for statement in statements)
    assert all("`sh``o\"p`.`it'e\\m`" in statement for statement in statements[1:])
    # as hexadecimal digits a name is the same in every sql_mode
    name = f"CONVERT(X'{ODD.name.encode().hex()}' USING utf8mb4)"
    assert all(name in statement for statement in statements[1:])
    assert 'NEW.`ver"s``ion` = @connect_py_next' in statements[2] and "CONVERT(NEW.`i``d` USING utf8mb4)" in statements[4]
    assert mysql_query("lo`gs.jour'nal").endswith("FROM `lo``gs`.`jour'nal` ORDER BY line")


def test_names_with_quotes_and_backslashes_are_quoted_for_postgresql() -> None:
    statements = postgres_statements(ODD, 'lo"gs.journal')
    written = [statement for statement in statements if not statement.startswith("CREATE TRIGGER")]
    assert all('"lo""gs".' in statement for statement in statements)
    assert all('"lo""gs"."journal"' in statement for statement in written)
    assert all("E'sh`o\"p.it''e\\\\m'" in statement for statement in written[1:])
    assert 'NEW."ver""s`ion" :=' in statements[1] and 'NEW."pa""rt"::text' in statements[1]


def test_a_plain_name_stays_readable() -> None:
    item = Journalled("shop", "o'item", ["id"], "version")
    assert "table_name = 'shop.o''item'" in mysql_statements(item)[2]
    assert "table_name = 'shop.o''item'" in postgres_statements(item)[1]


def test_a_journal_is_in_the_database_of_its_table_or_in_public_unless_its_name_says_it() -> None:
    item = Journalled("shop", "item", ["id"], "version")
    assert "`shop`.`connect_py_journal`" in mysql_statements(item)[0] and "`logs`.`j`" in mysql_statements(item, "logs.j")[0]
    assert '"public"."connect_py_journal"' in postgres_statements(item)[0] and '"logs"."j"' in postgres_statements(item, "logs.j")[0]
    assert postgres_query() == (
        'SELECT "line", "table_name", "row_key", "sequence", "op", "transaction", "digest" FROM "public"."connect_py_journal" ORDER BY line'
    )
    with pytest.raises(ConfigError, match="names no database"):
        mysql_query("journal")


def test_scripts_keep_others_out_and_say_how_to_undo_them() -> None:
    item = Journalled("shop", "item", ["id"], "version")
    lines = postgres_script(item).splitlines()
    assert lines[:2] == ["BEGIN;", 'LOCK TABLE "shop"."item" IN SHARE ROW EXCLUSIVE MODE;'] and "COMMIT;" in lines
    undo = [line for line in lines if line.startswith("-- ")]
    assert undo[-1] == '-- to undo it: DROP TABLE "public"."connect_py_journal";' and "CASCADE" in undo[0]
    mysql = mysql_script(item).splitlines()
    assert (mysql[0], mysql[-1]) == ("DELIMITER //", "-- to undo it: DROP TABLE `shop`.`connect_py_journal`;")
    assert (
        len([line for line in mysql if "DROP TRIGGER" in line]) == len([line for line in mysql if line.startswith("CREATE TRIGGER")]) == 5
    )


# -- what is printed -----------------------------------------------------------------------------------------------------------------


def report() -> Report:
    changes = [Change(1, "shop.item", key_text([1, "a"]), 1, Op.CREATE), Change(2, "shop.item", None, 0, Op.TRUNCATE)]
    history = History(changes=changes, events=[Event("t", 0, 0, "shop.item", "7", Op.CREATE, 1)], rows={"shop.item": {}})
    findings = [
        Finding(Invariant.PHANTOM, "shop.item", key_text([1, "a"]), "nobody has committed it"),
        Finding(Invariant.OFFSETS, None, None, "one goes back"),
    ]
    return Report(history, findings, ["the topic t is compacted"])


def test_a_report_is_json_with_all_findings_and_notes() -> None:
    assert json.loads(json.dumps(as_json(report()))) == {
        "tables": ["shop.item"],
        "changes": 2,
        "keys": 1,
        "records": 1,
        "as_promised": False,
        "findings": [
            {"finding": "phantom", "table": "shop.item", "key": "1, a", "evidence": "nobody has committed it"},
            {"finding": "offsets", "table": None, "key": None, "evidence": "one goes back"},
        ],
        "notes": ["the topic t is compacted"],
    }


def test_a_report_is_text_with_some_findings_and_all_notes() -> None:
    assert as_text(report(), 1).splitlines() == [
        "2 changes of 1 keys in the journal, 1 records in the topics: 2 WRONG",
        "  phantom: shop.item [1, a]: nobody has committed it",
        "  … and 1 more",
        "  note: the topic t is compacted",
    ]
    assert as_text(Report(report().history, [])).endswith(": all as promised")


# -- what a configuration promises -------------------------------------------------------------------------------------------------------


SOURCE = {
    "connector.class": "io.debezium.connector.mysql.MySqlConnector",
    "database.hostname": "h",
    "database.user": "u",
    "database.server.id": "1",
    "topic.prefix": "p",
    "schema.history.internal.kafka.bootstrap.servers": "k:9092",
    "schema.history.internal.kafka.topic": "h",
}


@pytest.mark.parametrize(
    ("mode", "reads"), [("initial", True), ("no_data", False), ("schema_only", False), ("when_needed", True), ("recovery", False)]
)
def test_a_connector_promises_what_its_snapshot_mode_reads(mode: str, reads: bool) -> None:
    promise = promise_of({**SOURCE, "snapshot.mode": mode}, start=3, restarts=None, exactly_once=True)
    assert (promise.snapshot, promise.start, promise.exactly_once, promise.tombstones) == (reads, 3, True, True)


def test_a_connector_without_tombstones_promises_none() -> None:
    promise = promise_of({**SOURCE, "tombstones.on.delete": "False"}, start=None, restarts=0, exactly_once=False)
    assert (promise.tombstones, promise.initial_rows_lag) == (False, False)
