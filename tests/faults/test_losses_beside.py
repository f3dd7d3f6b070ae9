"""Losses of the reference, shown on it and on this worker by the same steps: R1, R3, R5 and R8 of docs/evidence/faults.md.

The reference runs where CONNECT_REFERENCE names a folder with Kafka Connect's jars in ``kafka-libs`` and Debezium's in
``plugins/debezium``; seen with Kafka Connect 4.3.1 and Debezium 3.6.1. A test that fails there for want of a loss says that the reference
has mended it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from connect_py.app.services.mysql import MySqlServer
from connect_py.app.services.postgres import PostgresAddress
from connect_py.app.services.worker import Worker
from tests.fix_kafka import Kafka
from tests.fix_postgres import postgres_source
from tests.folding import payload
from tests.mysql_replicas import purge, run
from tests.mysql_task import mysql_source
from tests.reference import REFERENCE, JavaWorker
from tests.waiting import eventually, let_time_pass

pytestmark = [pytest.mark.services, pytest.mark.long]

JAVA = pytest.param("java", marks=pytest.mark.skipif(not REFERENCE, reason="CONNECT_REFERENCE names no folder with Kafka Connect"))
#: After the last that could still bring a lost record.
_PATIENCE_SECONDS = 15.0


@pytest.fixture(scope="module", params=["ours", JAVA])
def worker(request: pytest.FixtureRequest, kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    """This project's worker, and Kafka Connect's."""
    kind = JavaWorker if request.param == "java" else Worker
    running: Worker = kind(tmp_path_factory.mktemp("losses"), kafka.bootstrap, properties={})
    yield running
    running.stop()


@pytest.fixture
def loses(worker: Worker) -> bool:
    """Whether the worker is known for it."""
    return isinstance(worker, JavaWorker)


@pytest.fixture
def database(postgres: PostgresAddress) -> Iterator[str]:
    """Of PostgreSQL, empty."""
    name = postgres.create_database("losses")
    yield name
    postgres.drop_database(name)


def events(kafka: Kafka, topic: str) -> list[tuple[str, Any]]:
    """Operation and `id` of each record; of a tombstone an empty operation."""
    found = []
    for message in kafka.read(topic):
        value = None if message.value() is None else payload(message.value() or b"")
        found.append(("" if value is None else value["op"], payload(message.key() or b"")["id"]))
    return found


def stored(worker: Worker, name: str) -> dict[str, Any]:
    """The connector's stored offset; empty before there is one."""
    found = worker.request("GET", f"/connectors/{name}/offsets")["offsets"]
    return found[0]["offset"] or {} if found else {}


def state(worker: Worker, name: str) -> str:
    """The task's state."""
    tasks = worker.status(name)["tasks"]
    return str(tasks[0]["state"]) if tasks else ""


def stop(worker: Worker, name: str) -> None:
    """Stop a connector, and wait for the end of its task."""
    worker.request("PUT", f"/connectors/{name}/stop")
    eventually(lambda: worker.status(name)["tasks"] == [], "end of the task")


def comes(probe: Callable[[], object], seconds: float = _PATIENCE_SECONDS) -> bool:
    """Return whether something becomes true in time."""
    end = time.monotonic() + seconds
    eventually(lambda: probe() or time.monotonic() > end, "end of waiting", seconds + 60, pause=0.2)
    return bool(probe())


def test_r1_rows_of_one_copy(worker: Worker, loses: bool, kafka: Kafka, postgres: PostgresAddress, database: str, tag: str) -> None:
    """Debezium #7531: the rows of a COPY share an LSN, and a restart among them skips the rest."""
    topic = f"pg_{tag}.public.t"
    with postgres.connect(database) as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'small')")
        with failing_when_large(worker, kafka, postgres_source(postgres, database, tag, plugin_name="pgoutput"), tag, topic):
            with connection.cursor() as cursor, cursor.copy("COPY t FROM STDIN") as copy:
                for number in range(10, 20):
                    copy.write_row((number, "x" * 3_000_000 if number == 15 else "small"))
            connection.commit()
        connection.execute("INSERT INTO t VALUES (30, 'after')")
        eventually(lambda: ("c", 30) in events(kafka, topic), "row after it")
    worker.delete(tag)
    found = {number for operation, number in events(kafka, topic) if operation == "c"}
    print(f"R1: {sorted(found)}")
    assert (found < {*range(10, 20), 30}) is loses


@contextmanager
def failing_when_large(worker: Worker, kafka: Kafka, config: dict[str, str], tag: str, topic: str) -> Iterator[None]:
    """A connector whose producer refuses a large record that comes inside, until its task has failed; then it is restarted with another
    limit."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.create_topics([NewTopic(topic, 1, config={"max.message.bytes": "20000000"})])[topic].result(30)
    worker.create(tag, {**config, "producer.override.max.request.size": "1000000"})
    eventually(lambda: ("r", 1) in events(kafka, topic), "snapshot")
    yield
    worker.wait_for(tag, "FAILED")
    let_time_pass(3, "what was acknowledged is stored")
    worker.request("PUT", f"/connectors/{tag}/config", {**config, "producer.override.max.request.size": "10000000"})
    worker.request("POST", f"/connectors/{tag}/restart?includeTasks=true&onlyFailed=true")
    worker.wait_for(tag, "RUNNING")


def test_r3_a_changed_key_whose_last_record_fails(
    worker: Worker, loses: bool, kafka: Kafka, postgres: PostgresAddress, database: str, tag: str
) -> None:
    """Debezium #7945: a delete, a tombstone and a create bear one offset, and the first of them stores it."""
    topic = f"pg_{tag}.public.t"
    with postgres.connect(database) as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'small')")
        with failing_when_large(worker, kafka, postgres_source(postgres, database, tag, plugin_name="pgoutput"), tag, topic):
            connection.execute("UPDATE t SET id = 2, v = repeat('x', 3000000)")
        connection.execute("INSERT INTO t VALUES (3, 'after')")
        eventually(lambda: ("c", 3) in events(kafka, topic), "row after it")
    worker.delete(tag)
    print(f"R3: {events(kafka, topic)}")
    assert ("d", 1) in events(kafka, topic)
    assert (("c", 2) not in events(kafka, topic)) is loses


def test_r5_a_table_that_is_locked_when_its_largest_key_is_asked_for(
    worker: Worker, loses: bool, kafka: Kafka, postgres: PostgresAddress, database: str, tag: str
) -> None:
    """Debezium's `AbstractIncrementalSnapshotChangeEventSource`: an SQL error there, and the table is left out."""
    user = f"u_{tag}"
    with postgres.connect(database) as connection:
        connection.execute(
            "CREATE TABLE a (id int PRIMARY KEY); INSERT INTO a VALUES (1), (2); CREATE TABLE b (id int PRIMARY KEY); "
            "INSERT INTO b VALUES (1); CREATE TABLE signal (id text PRIMARY KEY, type text, data text)"
        )
        connection.execute(
            f"CREATE ROLE {user} LOGIN REPLICATION PASSWORD 'secret'; ALTER ROLE {user} SET lock_timeout = '300ms'; "
            f"GRANT ALL ON a, b, signal TO {user}; CREATE PUBLICATION pub_{tag} FOR TABLE a, b, signal"
        )
        config = {
            **postgres_source(postgres, database, tag, plugin_name="pgoutput", snapshot_mode="no_data"),
            "database.user": user,
            "database.password": "secret",
            "publication.autocreate.mode": "disabled",
            "signal.data.collection": "public.signal",
            "table.include.list": "public.a,public.b",
        }
        try:
            worker.create(tag, config)
            eventually(lambda: _has_reader(connection, f"slot_{tag}"), "stream's begin")
            connection.execute("INSERT INTO b VALUES (2)")
            eventually(lambda: ("c", 2) in events(kafka, f"pg_{tag}.public.b"), "stream")
            with postgres.connect(database) as other:
                other.execute("BEGIN")
                other.execute("LOCK TABLE a IN ACCESS EXCLUSIVE MODE")
                data = '{"data-collections": ["public.a", "public.b"]}'
                connection.execute("INSERT INTO signal VALUES ('s', 'execute-snapshot', %s)", (data,))
                let_time_pass(5, "longer than the time limit of a lock")
                other.execute("ROLLBACK")
            arrived = comes(lambda: ("r", 2) in _of(kafka, f"pg_{tag}.public.a"))
        finally:
            worker.delete(tag)
            eventually(lambda: _dropped(connection, f"slot_{tag}"), "end of the slot")
            connection.execute(f"DROP PUBLICATION pub_{tag}; DROP OWNED BY {user}; DROP ROLE {user}")
    print(f"R5: {_of(kafka, f'pg_{tag}.public.a')}")
    assert arrived is not loses


def _of(kafka: Kafka, topic: str) -> list[tuple[str, Any]]:
    return events(kafka, topic) if kafka.count(topic) else []


def _has_reader(connection: Any, slot: str) -> bool:
    return connection.execute("SELECT 1 FROM pg_replication_slots WHERE slot_name = %s AND active", (slot,)).fetchone() is not None


def _dropped(connection: Any, slot: str) -> bool:
    connection.execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s AND NOT active", (slot,))
    return connection.execute("SELECT 1 FROM pg_replication_slots WHERE slot_name = %s", (slot,)).fetchone() is None


def test_r8_a_restart_where_not_every_transaction_has_a_gtid(worker: Worker, loses: bool, kafka: Kafka, tmp_path: Path, tag: str) -> None:
    """Debezium #7981: the GTIDs of the offset stand still under ON_PERMISSIVE, and a restart goes by them."""
    server = MySqlServer(tmp_path / "mysql")
    try:
        run(server, f"CREATE DATABASE {tag}", f"CREATE TABLE {tag}.t (id INT PRIMARY KEY)", f"INSERT INTO {tag}.t VALUES (1)")

        def meanwhile() -> None:
            stop(worker, tag)
            run(server, "SET GLOBAL gtid_mode = ON_PERMISSIVE", f"INSERT INTO {tag}.t VALUES (50)")
            worker.request("PUT", f"/connectors/{tag}/resume")
            eventually(lambda: ("c", 50) in events(kafka, f"{tag}.{tag}.t"), "stream")
            purge(server)

        assert _resumes(worker, kafka, server, tag, meanwhile) is not loses
    finally:
        worker.delete(tag)
        server.stop()


def _resumes(
    worker: Worker, kafka: Kafka, server: MySqlServer, tag: str, meanwhile: Callable[[], object] = lambda: None, **more: str
) -> bool:
    """Return whether a connector that has streamed a row streams another one after its restart."""
    topic = f"{tag}.{tag}.t"
    worker.create(tag, mysql_source(server, kafka.bootstrap, tag, **more))
    eventually(lambda: stored(worker, tag).get("file"), "start")
    run(server, f"INSERT INTO {tag}.t VALUES (100)")
    eventually(lambda: ("c", 100) in _of(kafka, topic), "stream")
    meanwhile()
    run(server, f"INSERT INTO {tag}.t VALUES (101)")
    eventually(lambda: ("c", 101) in _of(kafka, topic), "stream")
    file = run(server, "SHOW BINARY LOGS")[-1][0]
    eventually(lambda: stored(worker, tag).get("file") == file, "stored offset of the last file")
    let_time_pass(3, "the offset of the last row is stored")
    stop(worker, tag)
    run(server, f"INSERT INTO {tag}.t VALUES (102)")
    worker.request("PUT", f"/connectors/{tag}/resume")
    resumed = comes(lambda: ("c", 102) in _of(kafka, topic) or state(worker, tag) == "FAILED") and ("c", 102) in _of(kafka, topic)
    print(f"{tag}: {'resumed' if resumed else worker.status(tag)['tasks'][0].get('trace', '')[:300]} from {stored(worker, tag)}")
    return resumed
