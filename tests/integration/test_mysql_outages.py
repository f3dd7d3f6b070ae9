"""A stream of MySQL's log whose server restarts, whose dump is ended by the server, or whose log is rotated, and the documentation's change
of a structure."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connect_py.app.services.mysql import MariaDbServer, MySqlServer, OwnServer, mariadbd, mysqld
from connect_py.app.services.process import ServiceError
from connect_py.errors import FatalTaskError
from tests.binlog_task import DirectTask, task_config
from tests.fault_counts import Fault, note, note_changes, system_of
from tests.fix_kafka import Kafka
from tests.mysql_replicas import purge, run
from tests.seeds import size

pytestmark = pytest.mark.services

KILLS = size("OUTAGE_KILLS", 2, 6)


@pytest.fixture(scope="module", params=["mysql", "mariadb"])
def own(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnServer]:
    """A server that nobody else uses."""
    kind: str = request.param
    folder: Path = tmp_path_factory.mktemp(f"own_{kind}")
    try:
        (mysqld if kind == "mysql" else mariadbd)()
    except ServiceError as error:
        pytest.skip(str(error))
    server = MySqlServer(folder) if kind == "mysql" else MariaDbServer(folder)
    yield server
    server.stop()


@pytest.fixture
def table(own: OwnServer) -> Iterator[str]:
    """A database with the table `t`, which has one row."""
    name = f"outage_{uuid.uuid4().hex[:8]}"
    run(own, f"CREATE DATABASE {name}", f"CREATE TABLE {name}.t (id INT PRIMARY KEY, v INT)", f"INSERT INTO {name}.t VALUES (0, 0)")
    yield name
    run(own, f"DROP DATABASE {name}")


def config(own: OwnServer, kafka: Kafka, name: str, **more: str) -> dict[str, str]:
    settings = {"retriable.restart.connector.wait.ms": "200", **more}
    return task_config(own, kafka, name, mariadb=isinstance(own, MariaDbServer), **settings)


@pytest.mark.parametrize("ends", [pytest.param("stop", marks=pytest.mark.long), "kill"])
def test_a_server_that_restarts_loses_and_doubles_no_change(own: OwnServer, kafka: Kafka, table: str, ends: str) -> None:
    with DirectTask(config(own, kafka, table)) as task:
        task.poll_until(lambda: task.rows("t"))
        for number in (1, 2):
            run(own, f"INSERT INTO {table}.t (id, v) VALUES ({number}, 1)", f"ALTER TABLE {table}.t ADD c{number} INT")
            task.poll_until(lambda wanted=2 * number: len(task.rows("t")) >= wanted)
            if ends == "stop":
                own.service.stop()
            else:
                own.service.kill()
                note(Fault.KILLED_DATABASE, system_of(task_config(own, kafka, table, mariadb=isinstance(own, MariaDbServer))))
            task.poll_until(lambda: not task.is_connected)
            own.start()
            run(own, f"INSERT INTO {table}.t (id, v) VALUES ({10 + number}, 2)")
            task.poll_until(lambda wanted=2 * number + 1: len(task.rows("t")) >= wanted)
    seen = [(op, row["id"]) for op, row in task.rows("t")]
    assert seen == [("r", 0), ("c", 1), ("c", 11), ("c", 2), ("c", 12)]
    assert task.rows("t")[-1][1] == {"id": 12, "v": 2, "c1": None, "c2": None}


def test_a_dump_that_is_killed_again_and_again_loses_and_doubles_no_change(own: OwnServer, kafka: Kafka, table: str) -> None:
    """A backlog of transactions of several events, in the middle of which the dump ends: for each kill there is more than lies in the
    sockets' buffers. OUTAGE_KILLS=50 is the long form."""
    seed = random.randrange(1 << 30)
    chance = random.Random(seed)
    wanted: list[tuple[str, int]] = []
    run(own, f"ALTER TABLE {table}.t ADD pad VARCHAR(2000)")
    settings = config(own, kafka, table)
    with DirectTask(settings) as task, own.connect() as connection, connection.cursor() as cursor:
        task.poll_until(lambda: task.rows("t"))
        for number in range(1, 20 * (KILLS + 1)):
            cursor.execute("BEGIN")
            ids: list[int] = []
            for part in range(4):
                new = [number * 1000 + part * 100 + row for row in range(chance.randint(1, 60))]
                rows = ", ".join(f"({id_}, 0, REPEAT('x', 2000))" for id_ in new)
                cursor.execute(f"INSERT INTO {table}.t VALUES {rows}")
                ids += new
            cursor.execute(f"UPDATE {table}.t SET v = v + 1 WHERE id BETWEEN {number * 1000} AND {number * 1000 + 999}")
            cursor.execute("COMMIT")
            wanted += [("c", id_) for id_ in ids] + [("u", id_) for id_ in ids]
        kills, told = 0, len(task.records)
        while len(task.records) < told + len(wanted):
            before = len(task.offsets)
            task.poll_until(lambda before=before: len(task.offsets) > before)
            cursor.execute("SELECT id FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'")
            for (dump,) in cursor.fetchall():
                if kills < KILLS:
                    cursor.execute(f"KILL {dump}")
                    kills += 1
                    note(Fault.CUT_CONNECTION, system_of(settings))
    assert kills >= KILLS, f"{kills} dumps were there to be killed; seed {seed}"
    assert any(offset.get("event") for offset in task.offsets), "no batch ended inside of a transaction"
    assert [(op, row["id"]) for op, row in task.rows("t")[1:]] == wanted, f"seed {seed}"
    note_changes(system_of(settings), len(wanted))


def test_a_log_that_is_rotated_is_read_on_and_one_that_is_purged_while_the_task_is_down_is_a_named_error(
    own: OwnServer, kafka: Kafka, table: str
) -> None:
    settings = config(own, kafka, table)
    with DirectTask(settings) as task:
        task.poll_until(lambda: task.rows("t"))
        for number in range(1, 6):
            run(own, f"INSERT INTO {table}.t VALUES ({number}, 0)", "FLUSH BINARY LOGS")
        task.poll_until(lambda: len(task.rows("t")) == 6)
        # what was read may go, with the task at work
        purge(own)
        run(own, f"INSERT INTO {table}.t VALUES (6, 0)")
        task.poll_until(lambda: len(task.rows("t")) == 7)
    assert [row["id"] for _, row in task.rows("t")] == list(range(7))
    run(own, f"INSERT INTO {table}.t VALUES (7, 0)")
    purge(own)
    with DirectTask(settings, task.offsets[-1]) as late, pytest.raises(FatalTaskError, match="no longer available on the server"):
        late.poll_until(lambda: late.rows("t"))


@pytest.mark.parametrize("own", ["mysql"], indirect=True)
def test_file_and_position_decide_where_not_every_transaction_has_a_gtid(own: OwnServer, kafka: Kafka, table: str) -> None:
    """The loss R8 of the reference (dbz#2519): under ON_PERMISSIVE the GTIDs of an offset stand still, and a restart went by them."""
    settings = config(own, kafka, table)
    with DirectTask(settings) as task:
        task.poll_until(lambda: task.rows("t"))
        early = task.offsets[-1]["gtids"]
        run(own, f"INSERT INTO {table}.t VALUES (1, 0)")
        task.poll_until(lambda: len(task.rows("t")) == 2)
        purge(own)
        run(own, f"INSERT INTO {table}.t VALUES (2, 0)")
        task.poll_until(lambda: len(task.rows("t")) == 3)
    stored = {**task.offsets[-1], "gtids": early}
    with DirectTask(settings, stored) as refused, pytest.raises(FatalTaskError, match="no longer available on the server"):
        refused.poll_until(lambda: refused.rows("t"))
    run(own, "SET GLOBAL gtid_mode = ON_PERMISSIVE", f"INSERT INTO {table}.t VALUES (3, 0)")
    try:
        with DirectTask(settings, stored) as late:
            late.poll_until(lambda: late.rows("t"))
            assert [(op, row["id"]) for op, row in late.rows("t")] == [("c", 3)]
            assert late.offsets[-1].get("gtids") is None
        run(own, f"INSERT INTO {table}.t VALUES (4, 0)")
        with DirectTask(settings, late.offsets[-1]) as again:  # the history's records have GTIDs
            again.poll_until(lambda: again.rows("t"))
            assert [(op, row["id"]) for op, row in again.rows("t")] == [("c", 4)]
    finally:
        run(own, "SET GLOBAL gtid_mode = ON")


@pytest.mark.parametrize("own", ["mysql"], indirect=True)
def test_offsets_get_gtids_once_the_server_gives_each_transaction_one(own: OwnServer, kafka: Kafka, table: str) -> None:
    modes = ("ON_PERMISSIVE", "OFF_PERMISSIVE")
    settings = config(own, kafka, table)
    run(own, *(f"SET GLOBAL gtid_mode = {mode}" for mode in modes))
    try:
        with DirectTask(settings) as task:
            task.poll_until(lambda: task.rows("t"))
            run(own, f"INSERT INTO {table}.t VALUES (1, 0)")
            task.poll_until(lambda: len(task.rows("t")) == 2)
        assert "gtids" not in task.offsets[-1]
    finally:
        run(own, *(f"SET GLOBAL gtid_mode = {mode}" for mode in (*reversed(modes), "ON")))
    run(own, f"INSERT INTO {table}.t VALUES (2, 0)")
    with DirectTask(settings, task.offsets[-1]) as again:
        again.poll_until(lambda: again.rows("t"))
        executed = run(own, "SELECT @@global.gtid_executed")[0][0]
        run(own, f"INSERT INTO {table}.t VALUES (3, 0)")
        again.poll_until(lambda: len(again.rows("t")) == 2)
    # the transaction of a row is complete with the next one
    assert again.offsets[-1]["gtids"] == executed.replace("\n", "")
    run(own, f"INSERT INTO {table}.t VALUES (4, 0)")
    with DirectTask(settings, again.offsets[-1]) as last:
        last.poll_until(lambda: last.rows("t"))
    assert [row["id"] for _, row in (*task.rows("t"), *again.rows("t"), *last.rows("t"))] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("own", ["mysql", pytest.param("mariadb", marks=pytest.mark.long)], indirect=True)
def test_a_stream_that_began_on_a_server_whose_log_was_purged_resumes(own: OwnServer, kafka: Kafka, table: str) -> None:
    """The loss R7 of the reference (dbz#2227): the first restart of a start without a snapshot missed the transactions that were purged."""
    run(own, f"INSERT INTO {table}.t VALUES (1, 0)")
    purge(own)
    settings = config(own, kafka, table, **{"snapshot.mode": "no_data"})
    with DirectTask(settings) as task:
        task.poll_until(lambda: task.is_connected)
        run(own, f"INSERT INTO {table}.t VALUES (2, 0)")
        task.poll_until(lambda: task.rows("t"))
    run(own, f"INSERT INTO {table}.t VALUES (3, 0)")
    with DirectTask(settings, task.offsets[-1]) as again:
        again.poll_until(lambda: again.rows("t"))
    assert [(op, row["id"]) for op, row in (*task.rows("t"), *again.rows("t"))] == [("c", 2), ("c", 3)]


def test_the_change_of_a_structure_that_the_documentation_shows(own: OwnServer, kafka: Kafka, table: str) -> None:
    run(
        own,
        f"CREATE TABLE {table}.customers (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, first_name VARCHAR(255) NOT NULL, "
        "last_name VARCHAR(255) NOT NULL, email VARCHAR(255) NOT NULL UNIQUE KEY)",
    )
    with DirectTask(config(own, kafka, table)) as task:
        task.poll_until(lambda: task.rows("t"))
        statement = f"ALTER TABLE {table}.customers ADD middle_name varchar(255) AFTER first_name"
        run(own, statement, f"INSERT INTO {table}.customers VALUES (1, 'Anne', 'Marie', 'Kretchmar', 'annek@noanswer.org')")
        task.poll_until(lambda: task.rows("customers"))
    (told,) = [value for topic, value in task.records if topic == table and "middle_name" in value["ddl"]]
    (change,) = told["tableChanges"]
    source = told["source"]
    assert (told["ddl"], told["databaseName"], source["db"], source["table"], source["snapshot"]) == (
        statement, table, table, "customers", "false",
    )  # fmt: skip
    assert (change["type"], change["id"], change["table"]["primaryKeyColumnNames"]) == ("ALTER", f'"{table}"."customers"', ["id"])
    columns: list[dict[str, Any]] = change["table"]["columns"]
    assert [(column["name"], column["position"], column["optional"]) for column in columns] == [
        ("id", 1, False),
        ("first_name", 2, False),
        ("middle_name", 3, True),
        ("last_name", 4, False),
        ("email", 5, False),
    ]
    shown = {name: columns[2][name] for name in ("jdbcType", "nativeType", "typeName", "typeExpression", "length", "scale")}
    assert shown == {"jdbcType": 12, "nativeType": None, "typeName": "VARCHAR", "typeExpression": "VARCHAR", "length": 255, "scale": None}
    assert columns[0]["autoIncremented"] and columns[0]["generated"] and not columns[2]["autoIncremented"]
    named = {"id": 1, "first_name": "Anne", "middle_name": "Marie", "last_name": "Kretchmar", "email": "annek@noanswer.org"}
    assert task.rows("customers") == [("c", named)]
