"""The doctor of PostgreSQL connectors on a real server: plant a fault, see its finding, run the printed statements, see it gone."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest

from connect_py.api import Diagnosis, Finding, Person
from connect_py.app.cli import main
from connect_py.app.services.postgres import PostgresAddress
from connect_py.plugins.registry import Plugins
from connectors.postgres.checks.facts import Facts, SlotFacts, Wanted
from connectors.postgres.checks.server import capacity_findings, server_findings, slot_findings, slot_use_findings
from connectors.postgres.connector import PostgresConnector
from connectors.postgres.doctor import diagnose
from connectors.postgres.server.catalog import ServerState, Slot
from tests.fix_postgres import postgres_source
from tests.silent_peers import refusing_proxy, silent_listener

PASSWORD = "correct-horse"


@dataclass
class Place:
    """A database that has all that a connector needs: two tables, a user with its grants, a publication."""

    server: PostgresAddress
    database: str
    tag: str
    admin: psycopg.Connection[tuple[object, ...]]
    more: dict[str, str] = field(default_factory=dict)

    @property
    def role(self) -> str:
        return f"app_{self.tag}"

    def run(self, *statements: str) -> None:
        for statement in statements:
            self.admin.execute(statement.format(role=self.role, tag=self.tag, database=self.database).encode())

    def config(self, **more: str) -> dict[str, str]:
        own = {"database_user": self.role, "database_password": PASSWORD, "publication_autocreate_mode": "disabled"}
        return {"name": self.tag, **postgres_source(self.server, self.database, self.tag, **(own | self.more | more))}

    def look(self, *, is_running: bool = False, long_seconds: float = 60, **more: str) -> Diagnosis:
        return diagnose(self.config(**more), is_running=is_running, long_seconds=long_seconds)

    def repair(self, findings: Sequence[Finding]) -> None:
        """Run what was printed, as it stands."""
        for finding in findings:
            for statement in finding.statements:
                self.admin.execute(statement.encode())


@pytest.fixture
def place(postgres: PostgresAddress, database: str, tag: str) -> Iterator[Place]:
    with postgres.connect(database) as admin:
        found = Place(postgres, database, tag, admin)
        found.run(
            "CREATE TABLE a (id int PRIMARY KEY, note text)",
            "CREATE SCHEMA other",
            "CREATE TABLE other.b (id int PRIMARY KEY)",
            f"CREATE ROLE {{role}} LOGIN REPLICATION PASSWORD '{PASSWORD}'",
            "GRANT USAGE ON SCHEMA other TO {role}",
            "GRANT SELECT ON a, other.b TO {role}",
            "CREATE PUBLICATION pub_{tag} FOR TABLE a, other.b",
        )
        yield found
        found.run("DROP OWNED BY {role}", "DROP ROLE {role}")


def checks(diagnosis: Diagnosis) -> list[str]:
    return [finding.check for finding in diagnosis.findings]


def test_a_database_that_has_everything_gives_no_finding(place: Place) -> None:
    found = place.look()
    assert (found.findings, found.unseen, found.code) == ([], (), 0)
    assert sorted(found.topics) == [f"pg_{place.tag}.other.b", f"pg_{place.tag}.public.a"]


def test_a_superuser_with_an_empty_configuration_gives_no_finding(place: Place) -> None:
    more = {"database_user": place.server.user, "database_password": place.server.password, "publication_name": f"new_{place.tag}"}
    for mode in ("all_tables", "filtered", "no_tables"):
        assert place.look(publication_autocreate_mode=mode, **more).findings == []


ALL, FILTERED, EMPTY = ({"publication_autocreate_mode": mode} for mode in ("all_tables", "filtered", "no_tables"))
FAULTS: dict[str, tuple[list[str], str, Mapping[str, str]]] = {
    "replication": (["ALTER ROLE {role} NOREPLICATION"], "postgres.replication", {}),
    "select": (["REVOKE SELECT ON a FROM {role}", "REVOKE USAGE ON SCHEMA other FROM {role}"], "postgres.tables.select", {}),
    "row security": (["ALTER TABLE a ENABLE ROW LEVEL SECURITY"], "postgres.tables.row_security", {}),
    "unlogged": (["ALTER PUBLICATION pub_{tag} DROP TABLE a", "ALTER TABLE a SET UNLOGGED"], "postgres.tables.unlogged", {}),
    "no key": (["ALTER TABLE a DROP CONSTRAINT a_pkey"], "postgres.tables.replica_identity", {}),
    "identity nothing": (["ALTER TABLE a REPLICA IDENTITY NOTHING"], "postgres.tables.replica_identity", {}),
    "large values": (
        ["ALTER TABLE a ALTER note SET STORAGE EXTERNAL", "INSERT INTO a VALUES (1, repeat('x', 100000))"],
        "postgres.tables.large_values",
        {},
    ),
    "partitions": (
        [
            "CREATE TABLE p (id int PRIMARY KEY) PARTITION BY RANGE (id)",
            "CREATE TABLE p_1 PARTITION OF p FOR VALUES FROM (0) TO (9)",
            "GRANT SELECT ON p TO {role}",
            "ALTER PUBLICATION pub_{tag} ADD TABLE p",
        ],
        "postgres.tables.partitions",
        {"table_include_list": "public[.](a|p),other.b"},
    ),
    "no publication": (["DROP PUBLICATION pub_{tag}"], "postgres.publication.missing", {}),
    "no publication for all": (
        ["DROP PUBLICATION pub_{tag}"],
        "postgres.publication.denied",
        {"publication_autocreate_mode": "all_tables"},
    ),
    "no filtered publication": (["DROP PUBLICATION pub_{tag}"], "postgres.publication.denied", FILTERED),
    "no empty publication": (["DROP PUBLICATION pub_{tag}"], "postgres.publication.denied", EMPTY),
    "filtered lacks a table": (
        ["ALTER PUBLICATION pub_{tag} DROP TABLE a"],
        "postgres.publication.denied",
        {"publication_autocreate_mode": "filtered"},
    ),
    "publication lacks a table": (["ALTER PUBLICATION pub_{tag} DROP TABLE a"], "postgres.publication.tables", {}),
    "publication lacks deletes": (
        ["ALTER PUBLICATION pub_{tag} SET (publish = 'insert, update')"],
        "postgres.publication.operations",
        {},
    ),
    "no signal table": ([], "postgres.signal.missing", {"signal_data_collection": "other.signal"}),
    "login": (["ALTER ROLE {role} NOLOGIN"], "postgres.connection", {}),
    "connection limit": (["ALTER ROLE {role} CONNECTION LIMIT 0"], "postgres.connection", {}),
    "connect": (["REVOKE CONNECT ON DATABASE {database} FROM PUBLIC"], "postgres.connection", {}),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_printed_statement_mends_a_planted_fault(place: Place, fault: str) -> None:
    plant, check, more = FAULTS[fault]
    place.run(*plant)
    found = place.look(**more)
    assert checks(found) == [check]
    assert found.code == (3 if check == "postgres.connection" else 1)
    (finding,) = found.findings
    assert finding.statements and finding.what and finding.why and finding.role and finding.who is Person.DBA
    place.repair(found.findings)
    again = place.look(**more)
    assert (again.findings, again.code) == ([], 0)


@pytest.mark.parametrize(
    ("plant", "check"),
    [
        (["CREATE TABLE signal (id int)", "ALTER PUBLICATION pub_{tag} ADD TABLE signal"], "postgres.signal.columns"),
        (
            [
                "CREATE TABLE signal (id varchar(42) PRIMARY KEY, type varchar(32), data varchar(2048))",
                "ALTER PUBLICATION pub_{tag} ADD TABLE signal",
            ],
            "postgres.signal.rights",
        ),
    ],
)
def test_a_table_of_signals_that_cannot_be_used_is_found(place: Place, plant: Sequence[str], check: str) -> None:
    place.run(*plant)
    signals = {"signal_data_collection": "public.signal", "incremental_snapshot_watermarking_strategy": "insert_delete"}
    found = place.look(**signals)
    assert check in checks(found)
    place.repair([finding for finding in found.findings if finding.check == check])
    assert place.look(**signals).findings == []


@pytest.mark.parametrize(
    ("setting", "value", "says"), [("max_slot_wal_keep_size", "100MB", "100 MB"), ("wal_sender_timeout", "0", "wal_sender_timeout=0")]
)
def test_settings_that_lose_or_block_a_slot_are_found(place: Place, setting: str, value: str, says: str) -> None:
    try:
        place.run(f"ALTER SYSTEM SET {setting} = '{value}'", "SELECT pg_reload_conf()")
        deadline = time.monotonic() + 20
        while checks(found := place.look()) != [f"postgres.{setting}"]:  # the server reads its settings in its own time
            assert time.monotonic() < deadline, found
        assert says in found.findings[0].what
        place.repair(found.findings)
        while place.look().findings:
            assert time.monotonic() < deadline
    finally:
        place.run(f"ALTER SYSTEM RESET {setting}", "SELECT pg_reload_conf()")


def test_no_free_slot_is_found_with_those_that_nobody_reads(place: Place) -> None:
    named = "FROM pg_replication_slots WHERE slot_name LIKE 'full_{tag}_%'"
    free = "generate_series(1, (SELECT 100 - count(*) FROM pg_replication_slots))"
    make = f"SELECT pg_create_physical_replication_slot('full_{{tag}}_' || n) FROM {free} n"
    try:
        place.run(make)
        found = place.look()
        assert checks(found) == ["postgres.max_replication_slots"]
        (finding,) = found.findings
        place.repair(found.findings)  # it needs a restart of the server; the other way does not
        drop = finding.advice[finding.advice.index("SELECT pg_drop") :].partition(";")[0]
        place.run(drop)
        assert checks(place.look()) == []
    finally:
        place.run("ALTER SYSTEM RESET max_replication_slots", f"SELECT pg_drop_replication_slot(slot_name) {named}")


def test_a_slot_of_another_program_is_found(place: Place) -> None:
    place.run("SELECT pg_create_physical_replication_slot('slot_{tag}')")
    found = place.look()
    assert checks(found) == ["postgres.slot.other"]
    assert found.findings[0].who is Person.YOU
    place.run("SELECT pg_drop_replication_slot('slot_{tag}')")
    assert checks(place.look()) == []


def test_a_slot_that_another_session_reads_is_found_unless_the_connector_runs_here(place: Place) -> None:
    place.run("SELECT pg_create_logical_replication_slot('slot_{tag}', 'pgoutput')")
    options = psycopg.conninfo.make_conninfo(place.server.dsn(place.database), replication="database")
    reader = psycopg.pq.PGconn.connect(options.encode())
    try:
        slot = f"START_REPLICATION SLOT slot_{place.tag} LOGICAL 0/0 (proto_version '1', publication_names 'pub_{place.tag}')"
        assert reader.exec_(slot.encode()).status == psycopg.pq.ExecStatus.COPY_BOTH
        assert checks(place.look()) == ["postgres.slot.active"]
        assert checks(place.look(is_running=True)) == []
    finally:
        reader.finish()


def test_a_transaction_that_a_new_slot_would_wait_for_is_found(place: Place) -> None:
    place.run("GRANT pg_read_all_stats TO {role}")  # others do not see for how long it has been open
    with contextlib.closing(place.server.connect(place.database)) as other:
        other.execute("BEGIN; INSERT INTO a VALUES (7)")
        found = place.look(long_seconds=0)
        assert checks(found) == ["postgres.long_transactions"]
        end = found.findings[0].what
        place.run(end[end.index("SELECT pg_terminate_backend") :])
        deadline = time.monotonic() + 20
        while checks(place.look(long_seconds=0)):
            assert time.monotonic() < deadline


def test_filters_that_choose_nothing_are_found(place: Place) -> None:
    assert checks(place.look(table_include_list="nothing")) == ["postgres.tables.none"]


def test_a_publication_for_all_tables_cannot_be_a_filtered_one(place: Place) -> None:
    place.run("DROP PUBLICATION pub_{tag}", "CREATE PUBLICATION pub_{tag} FOR ALL TABLES")
    found = place.look(publication_autocreate_mode="filtered")
    assert checks(found) == ["postgres.publication.all_tables"]
    assert place.look(publication_autocreate_mode="all_tables").findings == []


def test_partitions_under_a_name_that_is_not_captured_are_found(place: Place) -> None:
    place.run(
        *FAULTS["partitions"][0], "ALTER PUBLICATION pub_{tag} SET (publish_via_partition_root = true)", "GRANT SELECT ON p_1 TO {role}"
    )
    found = place.look(table_include_list="public[.](a|p_1),other.b")
    assert checks(found) == ["postgres.tables.partition_root"]
    assert place.look(table_include_list="public[.](a|p|p_1),other.b").findings == []


@pytest.mark.parametrize(
    ("more", "advice"),
    [
        ({"database_password": "wrong-horse"}, "database.password"),
        ({"database_dbname": "nowhere"}, "database.dbname"),
        ({"database_hostname": "127.0.0.1", "database_port": "1"}, "database.port"),
        ({"database_hostname": "no-such-host.invalid"}, "database.hostname"),
    ],
)
def test_a_server_that_cannot_be_used_is_a_finding_and_unseen(place: Place, more: dict[str, str], advice: str) -> None:
    found = place.look(**more)
    assert checks(found) == ["postgres.connection"]
    assert advice in found.findings[0].advice
    assert found.unseen and found.code == 3
    assert "horse" not in str(found)


def test_a_server_that_says_nothing_ends_within_its_limit(place: Place) -> None:
    with silent_listener() as port:
        began = time.monotonic()
        found = place.look(database_hostname="127.0.0.1", database_port=str(port))
    assert found.code == 3
    assert time.monotonic() - began < 9


def test_a_proxy_in_front_of_the_server_is_named(place: Place) -> None:
    with refusing_proxy("unsupported startup parameter: options") as port:
        found = place.look(database_hostname="127.0.0.1", database_port=str(port))
    assert (checks(found), found.code) == (["postgres.connection.proxy"], 3)
    assert "PgBouncer" in found.findings[0].what


def test_a_server_without_logical_decoding_is_found(postgres_without_logical: PostgresAddress) -> None:
    database = postgres_without_logical.create_database()
    config = postgres_source(postgres_without_logical, database, "none")
    found = diagnose(config, is_running=False)
    assert "postgres.wal_level" in checks(found)
    with postgres_without_logical.connect(database) as admin:
        admin.execute(found.findings[0].statements[0].encode())
        setting = "SELECT setting FROM pg_file_settings WHERE name = 'wal_level' ORDER BY seqno DESC LIMIT 1"
        assert admin.execute(setting).fetchone() == ("logical",)
        admin.execute("ALTER SYSTEM RESET wal_level")
    postgres_without_logical.drop_database(database)


def test_thirty_tables_and_many_faults_are_found_in_one_run(place: Place) -> None:
    for number in range(30):
        place.run(f"CREATE TABLE s{number % 3}_t{number} (id int{'' if number % 2 else ' PRIMARY KEY'})")
    for fault in ("replication", "select", "row security", "large values", "partitions", "identity nothing"):
        place.run(*(statement for statement in FAULTS[fault][0] if not statement.startswith("ALTER PUBLICATION")))
    place.run(
        "ALTER TABLE other.b DROP CONSTRAINT b_pkey",
        "CREATE UNLOGGED TABLE u (id int PRIMARY KEY)",
        "ALTER PUBLICATION pub_{tag} SET (publish = 'insert')",
        "GRANT SELECT ON a TO {role}",
        "SELECT pg_create_physical_replication_slot('slot_{tag}')",
    )
    seconds = []
    for _ in range(3):  # the least of them, since the machine of a test may be busy
        began = time.monotonic()
        found = place.look(signal_data_collection="other.signal", table_exclude_list="public.p_1")
        seconds.append(time.monotonic() - began)
    assert set(checks(found)) == {
        "postgres.replication",
        "postgres.slot.other",
        "postgres.tables.select",
        "postgres.tables.row_security",
        "postgres.tables.unlogged",
        "postgres.tables.replica_identity",
        "postgres.tables.large_values",
        "postgres.tables.partitions",
        "postgres.signal.missing",
        "postgres.publication.tables",
        "postgres.publication.operations",
    }
    assert min(seconds) <= 5
    place.run("SELECT pg_drop_replication_slot('slot_{tag}')")
    place.repair(found.findings)
    assert place.look(signal_data_collection="other.signal", table_exclude_list="public.p_1").findings == []


# -- the same by the command, and by way of the configuration --------------------------------------------------------------------------


def test_the_command_prints_what_was_found_and_ends_with_its_code(place: Place, tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "connector.json"
    path.write_text(json.dumps(place.config()))
    assert main(["doctor", str(path)]) == 0
    assert "Nothing is wrong." in capsys.readouterr().out
    place.run(*FAULTS["replication"][0], *FAULTS["select"][0])
    path.write_text(json.dumps(place.config() | {"tabel.include.list": "a"}))
    assert main(["doctor", str(path)]) == 1
    out = capsys.readouterr().out
    assert f'    ALTER ROLE "{place.role}" WITH REPLICATION;' in out.splitlines()
    assert "For the database administrator (2)" in out and "For you (1)" in out and "Did you mean 'table.include.list'?" in out
    assert main(["doctor", str(path), "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert [finding["check"] for finding in answer["findings"]] == [
        "configuration.unknown",
        "postgres.replication",
        "postgres.tables.select",
    ]
    assert main(["doctor", str(path), "--sql"]) == 1
    script = capsys.readouterr().out
    place.admin.execute(script.encode())  # all of it, comments included
    path.write_text(json.dumps(place.config()))
    assert main(["doctor", str(path)]) == 0


def test_the_command_says_what_it_could_not_look_at(place: Place, tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "connector.json"
    path.write_text(json.dumps(place.config(database_port="1")))
    assert main(["doctor", str(path)]) == 3
    out = capsys.readouterr().out
    assert "not looked at: " in out and PASSWORD not in out
    path.write_text(json.dumps(place.config(snapshot_mode="sometimes")))
    assert main(["doctor", str(path)]) == 3
    assert "Correct the property snapshot.mode." in capsys.readouterr().out
    assert main(["doctor", str(tmp_path / "missing.json")]) == 1
    assert main(["doctor"]) == 1


def test_check_config_finds_what_validation_finds_without_a_server(place: Place) -> None:
    plugin = Plugins.discover().connector("io.debezium.connector.postgresql.PostgresConnector")
    assert plugin is PostgresConnector
    config = place.config(database_port="1", slot_name="Not A Slot")
    errors = {value.name for value in PostgresConnector().check_config(config) if value.errors}
    assert errors == {"slot.name"}


# -- what cannot be planted on a server that other tests use ---------------------------------------------------------------------------

STATE = ServerState(170000, "logical", True, False, 60000, None, None)
WANTED = Wanted("app", "shop", "slot", "pub")


@pytest.mark.parametrize(
    ("provider", "statements", "words"),
    [
        ("rds", ('GRANT rds_replication TO "app";',), "rds.logical_replication"),
        ("azure", ('ALTER ROLE "app" WITH REPLICATION;',), "wal_level to logical"),
        ("cloudsql", ('ALTER ROLE "app" WITH REPLICATION;',), "cloudsql.logical_decoding"),
        ("neon", ('ALTER ROLE "app" WITH REPLICATION;',), "settings of the project"),
    ],
)
def test_a_hosted_server_gets_its_own_remedy(provider: str, statements: tuple[str, ...], words: str) -> None:
    state = ServerState(170000, "replica", False, False, 60000, None, None, provider)
    level, right = server_findings(state, "app")
    assert not level.statements and words in level.advice
    assert right.statements == statements


def test_the_provider_is_known_by_its_roles(place: Place) -> None:
    place.run("ALTER ROLE {role} NOREPLICATION", "CREATE ROLE cloudsqlsuperuser")
    try:
        assert place.look().findings[0].role == "the administrator"
    finally:
        place.run("DROP ROLE cloudsqlsuperuser")


def test_a_member_of_rds_replication_may_replicate(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    place.run("ALTER ROLE {role} NOREPLICATION", "CREATE ROLE rds_superuser", "CREATE ROLE rds_replication")
    try:
        found = place.look()
        assert found.findings[0].statements == (f'GRANT rds_replication TO "{place.role}";',)
        place.repair(found.findings)
        assert "postgres.replication" not in checks(place.look())
        assert [value.errors for value in PostgresConnector().validate(place.config()) if value.errors] == []
        assert "are not assigned" not in caplog.text
    finally:
        place.run("DROP ROLE rds_superuser", "DROP ROLE rds_replication")


def test_a_clock_that_is_wrong_is_found(place: Place) -> None:
    found = diagnose(place.config(), is_running=False, clock=lambda: time.time() + 90)
    assert checks(found) == ["clock"] and "90 s behind" in found.findings[0].what


def test_standbys_and_lost_slots_are_found() -> None:
    old = ServerState(150000, "logical", True, True, 60000, None, None)
    assert [finding.check for finding in server_findings(old, "app")] == ["postgres.standby"]
    new = ServerState(160000, "logical", True, True, 60000, None, None)
    facts = Facts(new, hot_standby_feedback=False, senders=(10, 10), idle_slot_seconds=60)
    assert [finding.check for finding in capacity_findings(facts, WANTED, is_running=False)] == [
        "postgres.max_wal_senders",
        "postgres.idle_replication_slot_timeout",
        "postgres.hot_standby_feedback",
    ]
    lost = ServerState(170000, "logical", True, False, 60000, Slot("shop", "pgoutput", None, 5, lost=True), None)
    assert [finding.check for finding in slot_findings(lost, "slot", "shop")] == ["postgres.slot.lost"]
    near = ServerState(170000, "logical", True, False, 60000, Slot("shop", "pgoutput", 4, 5, lost=False), None)
    found = list(slot_use_findings(Facts(near, slot=SlotFacts(None, "unreserved", 5 << 30)), WANTED, is_running=False))
    assert [finding.check for finding in found] == ["postgres.slot.wal_status"] and "5 GB" in found[0].what
    assert list(server_findings(STATE, "app")) == []
