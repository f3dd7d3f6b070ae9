"""Tables by DDL, held to the history records that the reference wrote for the same statements (parity/golden/mysql_*.json)."""

import json
import re

import pytest

from connect_py.errors import DataError
from connectors.engine.relational.tables import TableId
from connectors.mysql.ddl.lexer import DdlError
from connectors.mysql.ddl.statements import apply
from connectors.mysql.model import Tables
from connectors.mysql.schema.history import HistoryFold, HistoryRecord, apply_changes, parse_id, quoted_id
from tests.paths import ROOT

GOLDEN = ROOT / "tests" / "parity" / "golden"
SCENARIOS = sorted(path.stem for path in GOLDEN.glob("mysql_*.json") if '"history_' in path.read_text())

#: Of tables; columns and indexes are renamed by other words.
RENAMES = re.compile(r"ALTER TABLE (?:`?\w+`?\.)?`?(\w+)`? .*\bRENAME (?!KEY|INDEX|COLUMN)", re.DOTALL)


def history(scenario: str) -> list[list[dict]]:
    topics = json.loads((GOLDEN / f"{scenario}.json").read_text())["topics"]
    # "part" keeps captured tables only, and so not what changes a database's character set
    names = [name for name in topics if name.startswith("history_") and name != "history_part_TAG"]
    return [[row["value"] for row in topics[name] if row["value"]] for name in names if topics[name]]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_records_read_back_as_they_were_written(scenario):
    for records in history(scenario):
        for value in records:
            again = HistoryRecord.from_json(value).to_json()
            assert again == {**value, "databaseName": value.get("databaseName") or ""}


# with comments records differ, and a name without its schema does not say which; parity holds these
@pytest.mark.parametrize(
    "scenario",
    sorted(
        set(SCENARIOS)
        - {"mysql_ddl_comments", "mysql_type_spellings", "mysql_altered_columns", "mysql_other_schemas", "mysql_made_from_others"}
    ),
)
def test_statements_change_tables_as_the_reference_says(scenario):
    for records in history(scenario):
        tables = Tables()
        known = Tables()
        for value in records:
            record = HistoryRecord.from_json(value)
            wanted = value["tableChanges"]
            if value["ddl"].startswith("UNIQUE INDEX"):
                value["ddl"] = f"CREATE {value['ddl']}"  # whose first word the reference leaves out
            found = [change for change in apply(value["ddl"], tables, record.database) if change.kind in ("CREATE", "ALTER", "DROP")]
            ours = HistoryRecord({}, {}, 0, "", "", tuple(found)).to_json()["tableChanges"]
            by_id = {change["id"]: change for change in ours}
            for change in wanted:
                assert by_id[change["id"]] == change, value["ddl"]
            if record.changes:
                apply_changes(record.changes, known)
            else:
                apply(record.ddl, known, record.database)
            # a record of ALTER TABLE … RENAME does not name the table that came before
            assert set(tables.tables) <= set(known.tables)
            for id_, table in tables.tables.items():
                assert known.tables[id_].columns == table.columns, value["ddl"]


# there a renamed table is dropped with its schema
@pytest.mark.parametrize("scenario", sorted(set(SCENARIOS) - {"mysql_other_schemas"}))
@pytest.mark.parametrize("pretty", [False, True], ids=["compact", "as Debezium writes them"])
def test_a_folded_history_is_the_one_that_was_applied_record_by_record(scenario, pretty):
    for records in history(scenario):
        known = Tables()
        for value in records:
            record = HistoryRecord.from_json(value)
            if record.changes:
                apply_changes(record.changes, known)
            else:
                apply(record.ddl, known, record.database)
        fold = HistoryFold(records[0]["source"], None, lambda _: True)
        for value in records:
            assert fold.add(json.dumps(value, indent=2 if pretty else None).encode())
        found = fold.tables()
        renamed = set(known.tables) - set(found.tables)
        gone = set()
        for value in records:
            gone -= {parse_id(change["id"]).table for change in value["tableChanges"]}
            gone |= {match[1] for match in [RENAMES.match(value["ddl"])] if match}
        assert {id_.table for id_ in renamed} == gone
        assert (
            found.tables == {id_: table for id_, table in known.tables.items() if id_ not in renamed}
            and found.charsets == known.charsets
            and fold.count == len(records)
        )


def test_a_fold_takes_names_as_they_are_and_leaves_other_connectors_out():
    source, position = {"server": "a"}, {"file": "bin.1", "pos": 4}
    sql = 'CREATE TABLE `q"u` (`"tableChanges" : [{"type":"DROP","id":"\\"x\\".\\"y\\""` INT)'
    changes = apply(sql, Tables(), 'd"b')
    record = HistoryRecord(source, position, 1, 'd"b', sql, tuple(changes)).to_json()
    fold = HistoryFold(source, None, lambda _: True)
    assert fold.add(json.dumps(record).encode())
    assert not fold.add(json.dumps({**record, "source": {"server": "b"}}).encode())
    assert list(fold.tables().tables.values()) == [changes[0].table]
    with pytest.raises(DataError):
        fold.add(b"no JSON")
    later = HistoryFold(source, {"file": "bin.1", "pos": 3}, lambda _: True)
    assert not later.add(json.dumps(record).encode())


@pytest.mark.parametrize(("pos", "counts"), [(3, False), (4, True)])
def test_files_decide_of_records_with_gtids_where_the_offset_has_none(pos: int, counts: bool) -> None:
    """The server's gtid_mode is ON_PERMISSIVE since the record was made, and offsets are without GTIDs since."""
    source = {"server": "a"}
    sql = "CREATE TABLE t (id INT)"
    position = {"file": "bin.1", "pos": 4, "gtids": "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5"}
    record = HistoryRecord(source, position, 1, "d", sql, tuple(apply(sql, Tables(), "d"))).to_json()
    fold = HistoryFold(source, {"file": "bin.1", "pos": pos}, lambda _: True)
    assert fold.add(json.dumps(record).encode()) is counts


@pytest.mark.parametrize("name", ["t", 'a"b', '"', '"a', 'a"', '""', '"."', "a.b", 'x"."y'])
def test_names_with_quotes_are_found_again(name: str) -> None:
    assert parse_id(quoted_id(TableId("d", name))) == TableId("d", name)


@pytest.mark.parametrize(
    ("text", "name"),
    [('"d"."a"b"', 'a"b'), ('"d".a"', 'a"'), ('"d"."a', '"a'), ('"d"."a""b"', 'a"b')],
)
def test_names_as_debezium_and_earlier_versions_wrote_them(text: str, name: str) -> None:
    assert parse_id(text) == TableId("d", name)


def test_a_text_without_a_table_is_no_name() -> None:
    with pytest.raises(ValueError, match="no name of a table"):
        parse_id('"d"')


@pytest.mark.parametrize("statement", ["RENAME TABLE t TO o, u", "DROP TABLE t, u,", "RENAME TABLE t TO u, u TO 'o', x"])
def test_a_statement_that_is_refused_changes_nothing(statement):
    tables = Tables()
    for name in ("t", "u"):
        apply(f"CREATE TABLE {name} (id INT)", tables, "d")
    before = dict(tables.tables)
    with pytest.raises(DdlError):
        apply(statement, tables, "d")
    assert tables.tables == before


def test_a_length_that_is_no_number_of_characters_is_the_largest():
    tables = Tables()
    apply("CREATE TABLE t (a CHAR(1e999))", tables, "d")
    assert tables.tables[TableId("d", "t")].columns[0].length == 2**31 - 1


@pytest.mark.parametrize("changes", [[1.5], {"type": "CREATE"}, "t", 5, [None, {}]])
def test_changes_of_a_record_that_are_none_are_a_named_error(changes):
    fold = HistoryFold({"server": "s"}, None, lambda _: True)
    with pytest.raises(DataError, match="schema history"):
        fold.add(json.dumps({"source": {"server": "s"}, "position": {}, "tableChanges": changes}).encode())
