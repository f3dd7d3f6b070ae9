"""Tables by DDL, held to the history records that the reference wrote for the same statements (parity/golden/mysql_*.json)."""

import json
from pathlib import Path

import pytest

from connectors.mysql.ddl.changes import Tables
from connectors.mysql.ddl.statements import apply
from connectors.mysql.history_records import HistoryRecord, apply_changes

GOLDEN = Path(__file__).parents[1] / "parity" / "golden"
SCENARIOS = sorted(path.stem for path in GOLDEN.glob("mysql_*.json") if '"history_' in path.read_text())


def history(scenario: str) -> list[list[dict]]:
    topics = json.loads((GOLDEN / f"{scenario}.json").read_text())["topics"]
    return [[row["value"] for row in rows if row["value"]] for name, rows in topics.items() if name.startswith("history_")]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_records_read_back_as_they_were_written(scenario):
    for records in history(scenario):
        for value in records:
            again = HistoryRecord.from_json(value).to_json()
            assert again == {**value, "databaseName": value.get("databaseName") or ""}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_statements_change_tables_as_the_reference_says(scenario):
    for records in history(scenario):
        tables = Tables()
        known = Tables()
        for value in records:
            record = HistoryRecord.from_json(value)
            wanted = value["tableChanges"]
            found = [change for change in apply(value["ddl"], tables, record.database) if change.kind in ("CREATE", "ALTER", "DROP")]
            ours = HistoryRecord({}, {}, 0, "", "", tuple(found)).to_json()["tableChanges"]
            by_id = {change["id"]: change for change in ours}
            for change in wanted:
                assert by_id[change["id"]] == change, value["ddl"]
            if record.changes:
                apply_changes(record.changes, known)
            else:
                apply(record.ddl, known, record.database)
            for id_, table in known.tables.items():
                assert tables.tables[id_].columns == table.columns, value["ddl"]
