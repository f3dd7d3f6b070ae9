"""Connections to PostgreSQL whose peer is silent, busy with something else, or not the server that it seems to be."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from connect_py.api import Password
from connect_py.app.services.postgres import PostgresAddress
from connectors.postgres.config import ConnectionSettings
from connectors.postgres.errors import ServerError
from connectors.postgres.server.connection import Connection
from connectors.postgres.server.validation import connection_problem
from tests.fix_postgres import postgres_source
from tests.postgres_task import DirectTask
from tests.silent_peers import Proxy, silent_listener


def settings(port: int, password: str | None = None, host: str = "127.0.0.1", database: str = "postgres") -> ConnectionSettings:
    return ConnectionSettings(host, port, "postgres", None if password is None else Password(password), database)


@contextlib.contextmanager
def ticking() -> Iterator[list[float]]:
    """Seconds between the looks at the clock that another thread takes each 10 ms."""
    gaps: list[float] = []
    ended = threading.Event()

    def tick() -> None:
        before = time.monotonic()
        while not ended.wait(0.01):
            now = time.monotonic()
            gaps.append(now - before)
            before = now

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        yield gaps
    finally:
        ended.set()
        thread.join()


def test_other_threads_run_while_a_connection_waits_for_a_silent_peer() -> None:
    with silent_listener() as port, ticking() as gaps, pytest.raises(ServerError, match="timeout expired"):
        Connection(settings(port), "test", connect_seconds=2)
    assert max(gaps) < 1, "a thread stood still while libpq connected"


def test_a_validation_of_a_silent_peer_holds_nobody_up() -> None:
    with silent_listener() as port, ticking() as gaps:
        config = {"database.hostname": "127.0.0.1", "database.port": str(port), "database.user": "u", "database.password": "p"}
        config |= {"database.dbname": "d", "topic.prefix": "t", "connection.validation.timeout.ms": "2000"}
        assert connection_problem(config) == "Connection validation timed out after 2000 ms"
    assert max(gaps) < 1


def test_a_stop_ends_the_wait_for_a_silent_peer() -> None:
    from connectors.postgres.server.connection import Stopped

    began = time.monotonic()
    with silent_listener() as port, pytest.raises(Stopped):
        Connection(settings(port), "test", should_stop=lambda: time.monotonic() - began > 0.3)
    assert time.monotonic() - began < 5


def test_a_host_that_is_unknown_is_named() -> None:
    with pytest.raises(ServerError, match=r'could not translate host name "no-such-host\.invalid"') as caught:
        Connection(settings(1, host="no-such-host.invalid"), "test")
    assert caught.value.sqlstate == "08001"


# -- passwords ---------------------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def rogue_server() -> Iterator[tuple[int, list[bytes]]]:
    """Ask for the password in clear, and keep what comes."""
    received: list[bytes] = []

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = server.accept()
                client.settimeout(5)
                with client, contextlib.suppress(OSError):
                    while True:
                        size = int.from_bytes(client.recv(4), "big")
                        startup = client.recv(size - 4)
                        if startup[:4] == b"\x00\x03\x00\x00":
                            break
                        client.sendall(b"N")  # neither TLS nor GSS
                    received.append(b"connected")
                    client.sendall(b"R\x00\x00\x00\x08\x00\x00\x00\x03")
                    answer = client.recv(1000)
                    if answer[:1] == b"p":
                        received.append(answer[5:-1])

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1], received
        server.shutdown(socket.SHUT_RDWR)
    thread.join(5)


def _environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, source: str) -> None:
    if source == "PGPASSWORD":
        monkeypatch.setenv("PGPASSWORD", "of-the-worker")
    elif source == "PGPASSFILE":
        (tmp_path / "passwords").write_text("*:*:*:*:of-the-worker\n")
        (tmp_path / "passwords").chmod(0o600)
        monkeypatch.setenv("PGPASSFILE", str(tmp_path / "passwords"))
    elif source == "~/.pgpass":
        (tmp_path / ".pgpass").write_text("*:*:*:*:of-the-worker\n")
        (tmp_path / ".pgpass").chmod(0o600)
        monkeypatch.setenv("HOME", str(tmp_path))
    else:
        (tmp_path / "services").write_text("[worker]\npassword=of-the-worker\n")
        monkeypatch.setenv("PGSERVICE", "worker")
        monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services"))


SOURCES = ["PGPASSWORD", "PGPASSFILE", "~/.pgpass", "PGSERVICE"]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("password", [None, ""])
def test_a_rogue_server_gets_no_password_of_the_workers_user(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, source: str, password: str | None
) -> None:
    _environment(monkeypatch, tmp_path, source)
    with rogue_server() as (port, received):
        with pytest.raises(ServerError, match="no password supplied"):
            Connection(settings(port, password), "test", connect_seconds=5)
        config = {"database.hostname": "127.0.0.1", "database.port": str(port), "database.user": "u", "database.dbname": "d"}
        assert "password" in str(connection_problem({**config, "topic.prefix": "t"}))
    assert received == [b"connected"] * 2


def test_a_password_that_is_given_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", "of-the-worker")
    with rogue_server() as (port, received), pytest.raises(ServerError):
        Connection(settings(port, "of-the-connector"), "test", connect_seconds=5)
    assert received == [b"connected", b"of-the-connector"]


def test_the_environment_of_the_worker_leads_no_connection_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGHOSTADDR", "192.0.2.1")
    monkeypatch.setenv("PGSSLMODE", "verify-full")
    with rogue_server() as (port, received), pytest.raises(ServerError):
        Connection(settings(port, "p"), "test", connect_seconds=5)
    assert received == [b"connected", b"p"]


# -- silence -----------------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def proxy(postgres: PostgresAddress) -> Iterator[Proxy]:
    with Proxy(postgres.host, postgres.port) as found:
        yield found


def through(proxy: Proxy, postgres: PostgresAddress, database: str, tag: str, **more: str) -> dict[str, str]:
    quick = {"retriable_restart_connector_wait_ms": "200", "status_update_interval_ms": "200", **more}
    return {**postgres_source(postgres, database, tag, **quick), "database.hostname": "127.0.0.1", "database.port": str(proxy.port)}


@pytest.mark.services
def test_a_stream_notices_that_its_server_is_silent_and_goes_on_when_it_is_back(
    postgres: PostgresAddress, database: str, tag: str, proxy: Proxy, caplog: pytest.LogCaptureFixture
) -> None:
    config = through(proxy, postgres, database, tag, snapshot_mode="no_data", connection_silence_timeout_ms="3000")
    with postgres.connect(database) as connection:
        connection.execute("CREATE TABLE t (id integer PRIMARY KEY)")
        with DirectTask(config) as task:
            task.poll_until(task.is_streaming, what="the stream")
            connection.execute("INSERT INTO t VALUES (1)")
            task.poll_until(lambda: task.of(f"pg_{tag}.public.t"), what="the first row")
            proxy.silence()
            connection.execute("INSERT INTO t VALUES (2)")
            began = time.monotonic()
            task.poll_until(lambda: not task.is_streaming(), 20, "the loss to be noticed")
            assert time.monotonic() - began < 10
            assert any("the server has said nothing for" in line for line in caplog.messages)
            proxy.resume()
            # the server still holds the slot for the connection that it believes to be there
            connection.execute("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active")
            task.poll_until(lambda: len(task.of(f"pg_{tag}.public.t")) == 2, 60, "the row of the outage")


@pytest.mark.services
def test_a_snapshot_whose_server_falls_silent_is_taken_again_when_it_is_back(
    postgres: PostgresAddress, database: str, tag: str, proxy: Proxy, caplog: pytest.LogCaptureFixture
) -> None:
    config = through(proxy, postgres, database, tag, snapshot_mode="initial", database_query_timeout_ms="1500")
    with postgres.connect(database) as connection:
        connection.execute("CREATE TABLE t (id integer PRIMARY KEY, v text)")
        connection.execute("INSERT INTO t SELECT g, repeat('x', 500) FROM generate_series(1, 40000) g")
        with DirectTask(config) as task:
            topic = f"pg_{tag}.public.t"
            task.poll_until(lambda: task.of(topic), what="the first rows")
            proxy.silence()
            task.poll_until(lambda: any("no row has come for" in line for line in caplog.messages), 20, "the loss to be noticed")
            assert len({key["id"] for key, _ in task.of(topic)}) < 40_000
            proxy.resume()
            connection.execute("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active")
            task.poll_until(lambda: len({key["id"] for key, _ in task.of(topic)}) == 40_000, 90, "all rows")


@pytest.mark.services
def test_a_server_with_nothing_to_say_is_not_taken_for_a_lost_one(postgres: PostgresAddress, database: str, tag: str, proxy: Proxy) -> None:
    config = through(proxy, postgres, database, tag, snapshot_mode="no_data", connection_silence_timeout_ms="900")
    with DirectTask(config) as task:
        task.poll_until(task.is_streaming, what="the stream")
        before = proxy.accepted
        until = time.monotonic() + 4
        while time.monotonic() < until:
            task.poll()
        assert task.is_streaming()
        assert proxy.accepted == before


@pytest.mark.services
def test_a_statement_that_the_server_never_answers_ends_with_its_time(postgres: PostgresAddress, proxy: Proxy) -> None:
    connection = Connection(settings(proxy.port, postgres.password), "test", query_seconds=0.5, cancel_seconds=0.5)
    assert connection.query("SELECT 1") == [("1",)]
    proxy.silence()
    began = time.monotonic()
    with ticking() as gaps, pytest.raises(ServerError, match="does not answer") as caught:
        connection.query("SELECT 1")
    connection.close()
    assert caught.value.sqlstate == "08006"
    assert time.monotonic() - began < 10
    assert max(gaps) < 1, "a thread stood still while the server was asked to cancel"


@pytest.mark.services
def test_a_statement_whose_time_is_up_is_given_up_by_the_server(postgres: PostgresAddress) -> None:
    connection = Connection(settings(postgres.port, postgres.password), "test", query_seconds=0.3)
    with pytest.raises(ServerError) as caught:
        connection.query("SELECT pg_sleep(30)")
    assert caught.value.sqlstate == "57014"
    assert connection.query("SELECT 1") == [("1",)]
    connection.close()


@pytest.mark.services
def test_every_connection_ends_when_the_peer_acknowledges_nothing(postgres: PostgresAddress) -> None:
    connection = Connection(settings(postgres.port, postgres.password), "test")
    with socket.socket(fileno=socket.dup(connection.socket)) as copy:
        assert copy.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 60_000
        assert copy.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert copy.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 20
    connection.close()


# -- a busy server -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.services
@pytest.mark.parametrize("in_segments", ["false", "true"])
def test_a_read_ends_in_time_although_the_server_sends_changes_of_excluded_tables_without_end(
    postgres: PostgresAddress, database: str, tag: str, in_segments: str
) -> None:
    with postgres.connect(database) as connection:
        connection.execute("CREATE TABLE t (id integer PRIMARY KEY); CREATE TABLE busy (id integer PRIMARY KEY, v text)")
        config = postgres_source(postgres, database, tag, snapshot_mode="no_data", table_include_list="public.t")
        with DirectTask(config | {"large.transaction.streaming": in_segments}) as task:
            task.poll_until(task.is_streaming, what="the stream")
            connection.execute("INSERT INTO busy SELECT g, repeat('x', 40) FROM generate_series(1, 700000) g; INSERT INTO t VALUES (1)")
            longest = 0.0
            deadline = time.monotonic() + 90
            while not task.of(f"pg_{tag}.public.t"):
                assert time.monotonic() < deadline
                began = time.monotonic()
                task.poll()
                longest = max(longest, time.monotonic() - began)
        assert longest < 1.5, "a read of 0.3 s"
