"""The servers that tests and the demo start: they answer, they are separate, and they do not outlive whoever started them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from connect_py.app.services.kafka import KafkaBroker
from connect_py.app.services.process import Service, ServiceError, free_port, is_listening, wait_until
from tests.fix_kafka import Kafka
from tests.waiting import let_time_pass

pytestmark = pytest.mark.services


def test_the_broker_answers_a_client(kafka: Kafka) -> None:
    assert len(AdminClient({"bootstrap.servers": kafka.bootstrap}).list_topics(timeout=60).brokers) == 1


@pytest.mark.long
def test_the_broker_keeps_records_of_past_years(tmp_path: Path) -> None:
    """By default it deletes them 30 s after its start: in the middle of some test."""
    broker = KafkaBroker(tmp_path, print)
    try:
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        producer.produce("old", b"kept", timestamp=1_700_000_000_000)
        assert producer.flush(20) == 0
        let_time_pass(45, "the broker's default delay before its first check, and the check")
        assert [message.value() for message in Kafka(broker.bootstrap).read("old")] == [b"kept"]
    finally:
        broker.stop()


def test_the_database_server_decodes_logically_and_asks_for_a_password(postgres) -> None:
    with postgres.connect() as connection:
        assert connection.execute("SELECT current_setting('wal_level')").fetchone() == ("logical",)
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(host=postgres.host, port=postgres.port, user=postgres.user, password="wrong", dbname="postgres")


def test_a_database_can_be_dropped_while_a_slot_is_in_it(postgres) -> None:
    name = postgres.create_database()
    with postgres.connect(name) as connection:
        connection.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", (f"slot_{name}",))
    postgres.drop_database(name)
    with postgres.connect() as connection:
        assert connection.execute("SELECT count(*) FROM pg_database WHERE datname = %s", (name,)).fetchone() == (0,)


def test_a_server_ends_when_the_process_that_started_it_is_killed(tmp_path: Path) -> None:
    script = """
import os, pathlib, signal, sys
from connect_py.app.services.postgres import PostgresServer
server = PostgresServer(pathlib.Path(sys.argv[1]))
print(server.port, server.data, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", script, tmp_path], capture_output=True, text=True, cwd=root, env={**os.environ})
    port, data = done.stdout.split()
    wait_until(lambda: not is_listening(int(port)), 60, "the end of the orphaned server")
    shutil.rmtree(data)


def test_a_server_whose_start_is_interrupted_is_ended_at_once(tmp_path: Path) -> None:
    service = Service("a server", ["sleep", "600"], tmp_path / "log")

    def interrupted() -> bool:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        service.wait_ready(interrupted)
    assert not service.is_alive()


def test_waiting_for_a_server_that_never_answers_ends_with_a_sentence() -> None:
    port = free_port()
    with pytest.raises(ServiceError, match="the thing was not ready after 0 s"):
        wait_until(lambda: is_listening(port), 0.1, "the thing")
