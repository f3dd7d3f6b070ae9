"""Which records of a schema history lie before an offset, and how records are written (mysql.md §10)."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from connectors.mysql.position.offset import MySqlOffset
from connectors.mysql.schema.history import is_at_or_before
from offsets.schema_history import pretty_json

A = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
B = "00000000-0000-0000-0000-00000000000b"


def at(file: str = "bin.000002", pos: int = 100, **more: Any) -> dict[str, Any]:
    return {"file": file, "pos": pos, **more}


@pytest.mark.parametrize(
    ("recorded", "desired", "before"),
    [
        (at(pos=100), at(pos=100), True),
        (at(pos=101), at(pos=100), False),
        (at("bin.000001", 900), at("bin.000002", 4), True),
        (at("bin.1000000", 4), at("bin.999999", 900), False),
        # another base name says nothing of the order: such a record is applied
        (at("other.000009", 900), at("bin.000002", 4), True),
        (at(event=3), at(event=2), False),
        (at(event=2, row=1), at(event=2, row=1), True),
        (at(event=2, row=2), at(event=2, row=1), False),
        # other servers' files are not compared, but when it was
        (at("bin.000009", 4, server_id=1, ts_sec=10), at("bin.000002", 4, server_id=2, ts_sec=11), True),
        (at("bin.000001", 4, server_id=1, ts_sec=12), at("bin.000002", 4, server_id=2, ts_sec=11), False),
        (at(gtids=f"{A}:1-5"), at("bin.000001", 4, gtids=f"{A}:1-6"), True),
        (at("bin.000001", 4, gtids=f"{A}:1-6"), at(gtids=f"{A}:1-5"), False),
        (at(gtids=f"{A}:1-5,{B}:1"), at(gtids=f"{A}:1-6"), False),
        (at(gtids=f"{A}:1-5", event=2), at(gtids=f"{A}:1-5", event=1), False),
        (at(gtids=f"{A}:1-5"), at(gtids=f"{A}:1-5", snapshot="INITIAL"), False),
        (at(gtids=f"{A}:1-5", snapshot="INITIAL"), at(gtids=f"{A}:1-5", snapshot=True), True),
        (at("bin.000009"), at(gtids=f"{A}:1-5"), True),
        (at("bin.000001", gtids=f"{A}:1-5"), at(), False),
    ],
)
def test_a_record_counts_where_it_lies_at_or_before_the_offset(recorded: dict[str, Any], desired: dict[str, Any], before: bool) -> None:
    assert is_at_or_before(recorded, desired, lambda _: True) is before


def test_transactions_of_sources_that_are_left_out_do_not_count() -> None:
    assert is_at_or_before(at(gtids=f"{A}:1-5,{B}:1-9"), at(gtids=f"{A}:1-5"), lambda source: source != B)


@pytest.mark.parametrize(("stored", "loaded"), [(True, "INITIAL"), ("INITIAL", "INITIAL"), ("BLOCKING", "BLOCKING"), (None, None)])
def test_an_offset_of_an_unfinished_snapshot_is_known_in_old_and_new_forms(stored: object, loaded: str | None) -> None:
    assert MySqlOffset.load(at(**({} if stored is None else {"snapshot": stored}))).snapshot == loaded


def test_records_have_debeziums_lines() -> None:
    record = {
        "source": {"server": "shop"},
        "ddl": "CREATE TABLE `t` (\n  `é` enum('S\"M')\n)",
        "tableChanges": [
            {
                "type": "CREATE",
                "table": {"charset": None, "keys": ["id", "n"], "columns": [{"position": 1}, {"optional": True}], "attributes": []},
            },
            {"type": "DROP", "more": {}},
        ],
    }
    assert pretty_json(record).decode() == (
        "{\n"
        '  "source" : {\n'
        '    "server" : "shop"\n'
        "  },\n"
        '  "ddl" : "CREATE TABLE `t` (\\n  `é` enum(\'S\\"M\')\\n)",\n'
        '  "tableChanges" : [ {\n'
        '    "type" : "CREATE",\n'
        '    "table" : {\n'
        '      "charset" : null,\n'
        '      "keys" : [ "id", "n" ],\n'
        '      "columns" : [ {\n'
        '        "position" : 1\n'
        "      }, {\n"
        '        "optional" : true\n'
        "      } ],\n"
        '      "attributes" : [ ]\n'
        "    }\n"
        "  }, {\n"
        '    "type" : "DROP",\n'
        '    "more" : { }\n'
        "  } ]\n"
        "}"
    )
    assert orjson.loads(pretty_json(record)) == record
