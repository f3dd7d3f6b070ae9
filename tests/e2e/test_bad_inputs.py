"""What a person who gets something wrong is told: a 400, or a FAILED task, whose text says what is wrong and what to do, and no secret."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Callable, Iterator

import pytest
from psycopg import sql

from connect_py.app.services.postgres import PostgresAddress
from connect_py.app.services.process import free_port
from connect_py.app.services.worker import RefusedError, Worker
from tests.fix_kafka import Kafka
from tests.fix_postgres import postgres_source

pytestmark = pytest.mark.services

Told = Callable[[dict[str, str]], str]


@pytest.fixture
def told(worker: Worker, tag: str) -> Iterator[Told]:
    """Creates a connector that cannot work; gives the answer's message or the failed task's trace."""

    def create(config: dict[str, str]) -> str:
        try:
            worker.request("POST", "/connectors", {"name": tag, "config": config})
        except RefusedError as error:
            assert error.status == 400
            return error.message
        trace: str = worker.wait_for(tag, "FAILED")["tasks"][0]["trace"]
        return trace

    yield create
    worker.delete(tag)


def raw_post(worker: Worker, content: bytes) -> tuple[int, str]:
    request = urllib.request.Request(worker.url + "/connectors", data=content, method="POST", headers={"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=100) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_an_unreachable_host_is_refused_and_the_log_says_why(
    worker: Worker, told: Told, postgres: PostgresAddress, database: str, tag: str
) -> None:
    message = told(postgres_source(postgres, database, tag, database_hostname="no-such-host.invalid"))
    assert "The connection attempt failed." in message  # Debezium's text, to the letter
    assert 'could not translate host name "no-such-host.invalid"' in worker.log.read_text()


def test_a_port_where_nothing_listens_is_named(told: Told, postgres: PostgresAddress, database: str, tag: str) -> None:
    port = str(free_port())
    message = told(postgres_source(postgres, database, tag, database_port=port))
    assert port in message
    assert "refused" in message


def test_a_wrong_password_is_told_without_showing_it(told: Told, postgres: PostgresAddress, database: str, tag: str) -> None:
    message = told(postgres_source(postgres, database, tag, database_password="swordfish-77"))
    assert 'password authentication failed for user "postgres"' in message
    assert "swordfish-77" not in message


def test_a_database_that_does_not_exist_is_named(told: Told, postgres: PostgresAddress, tag: str) -> None:
    assert "nowhere" in told(postgres_source(postgres, "nowhere", tag))


@pytest.fixture
def plain_user(postgres: PostgresAddress, tag: str) -> Iterator[PostgresAddress]:
    """The server, logged in to as a user who may only connect."""
    name = f"reader_{tag}"
    with postgres.connect() as admin:
        admin.execute(sql.SQL("CREATE USER {} PASSWORD 'swordfish-78'").format(sql.Identifier(name)))
        yield PostgresAddress(postgres.host, postgres.port, name, "swordfish-78")
        admin.execute(sql.SQL("DROP USER {}").format(sql.Identifier(name)))


def test_a_user_who_may_not_replicate_is_told_which_right_is_missing(
    told: Told, plain_user: PostgresAddress, postgres: PostgresAddress, database: str, tag: str
) -> None:
    with postgres.connect(database) as connection:
        connection.execute("CREATE TABLE item (id integer PRIMARY KEY)")
        connection.execute(f"GRANT SELECT ON item TO {plain_user.user}")
        connection.execute("CREATE PUBLICATION ready FOR TABLE item")
        message = told(postgres_source(plain_user, database, tag, publication_name="ready", publication_autocreate_mode="disabled"))
        connection.execute(f"REVOKE ALL ON item FROM {plain_user.user}")
    assert "REPLICATION" in message
    assert f"ALTER ROLE {plain_user.user}" in message.replace('"', "")


def test_a_user_who_may_not_read_a_table_is_told_which_one(
    told: Told, plain_user: PostgresAddress, postgres: PostgresAddress, database: str, tag: str
) -> None:
    with postgres.connect(database) as connection:
        connection.execute("CREATE TABLE item (id integer PRIMARY KEY)")
        connection.execute("INSERT INTO item VALUES (1)")
        connection.execute("CREATE PUBLICATION ready FOR TABLE item")
        connection.execute(f"ALTER ROLE {plain_user.user} REPLICATION")
        message = told(postgres_source(plain_user, database, tag, publication_name="ready", publication_autocreate_mode="disabled"))
    assert "item" in message
    assert "GRANT" in message


def test_a_server_that_does_not_decode_is_told_which_setting_to_change(
    told: Told, postgres_without_logical: PostgresAddress, tag: str
) -> None:
    name = postgres_without_logical.create_database()
    message = told(postgres_source(postgres_without_logical, name, tag))
    postgres_without_logical.drop_database(name)
    assert "wal_level" in message
    assert "logical" in message
    assert "restart" in message


def test_a_table_without_a_key_gets_records_without_a_key_and_a_warning(
    worker: Worker, kafka: Kafka, postgres: PostgresAddress, database: str, tag: str
) -> None:
    with postgres.connect(database) as connection:
        connection.execute("CREATE TABLE keyless (note text)")
        connection.execute("INSERT INTO keyless VALUES ('one'), ('two')")
    worker.create(tag, postgres_source(postgres, database, tag, table_include_list="public.keyless"))
    records = []
    while len(records) < 2:
        worker.wait_for(tag, "RUNNING")
        records = kafka.read(f"pg_{tag}.public.keyless")
    worker.delete(tag)
    assert [record.key() for record in records] == [None, None]
    warnings = [line for line in worker.log.read_text().splitlines() if "WARN" in line and "public.keyless" in line]
    assert warnings, "nobody was told that the records have no key"


def test_malformed_json_is_answered_with_400_and_a_sentence(worker: Worker) -> None:
    status, text = raw_post(worker, b'{"name": "x", "config": {')
    assert status == 400
    assert '"error_code":400' in text.replace(" ", "")
    assert "JSON" in text


def test_an_unknown_class_is_answered_with_400_and_the_known_ones(told: Told) -> None:
    message = told({"connector.class": "com.example.Nothing"})
    assert "com.example.Nothing" in message
    assert "io.debezium.connector.postgresql.PostgresConnector" in message


def test_a_missing_property_is_named(told: Told) -> None:
    message = told({"connector.class": "FileStreamSource", "tasks.max": "1"})
    assert '"topic"' in message


def test_the_decoder_that_is_not_there_gets_a_sentence_that_says_what_to_set(
    told: Told, postgres: PostgresAddress, database: str, tag: str
) -> None:
    message = told(postgres_source(postgres, database, tag, plugin_name="decoderbufs"))
    assert "pgoutput" in message


def test_a_slot_in_use_is_told_with_its_name(worker: Worker, told: Told, postgres: PostgresAddress, database: str, tag: str) -> None:
    with postgres.connect(database) as connection:
        connection.execute("CREATE TABLE item (id integer PRIMARY KEY)")
    other = f"{tag}-first"
    worker.create(other, postgres_source(postgres, database, tag))
    try:
        message = told(postgres_source(postgres, database, tag, slot_max_retries="1", slot_retry_delay_ms="100", errors_max_retries="1"))
    finally:
        worker.delete(other)
    assert f"slot_{tag}" in message
    assert "active" in message or "in use" in message
