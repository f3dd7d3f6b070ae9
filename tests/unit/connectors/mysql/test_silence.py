"""Connections on which nothing comes any more, though nobody closed them: a firewall forgot them, or the server's machine is gone."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from connect_py.api import Password
from connect_py.errors import RetriableError
from connectors.mysql.config.config import ConnectionSettings, Heartbeats, parse_config
from connectors.mysql.server.binlog_client import BinlogClient
from connectors.mysql.server.connection import Connection
from tests.rogue_mysql import RogueServer, falls_silent

BASE = {"database.hostname": "h", "database.user": "u", "database.server.id": "1", "topic.prefix": "p"}
BASE |= {"schema.history.internal.kafka.topic": "h", "schema.history.internal.kafka.bootstrap.servers": "h:1"}


class Clock:
    ahead = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.ahead


@contextmanager
def dump(heartbeats: Heartbeats, clock: Callable[[], float] = time.monotonic) -> Iterator[tuple[BinlogClient, RogueServer]]:
    server = RogueServer(falls_silent)
    client = BinlogClient(ConnectionSettings("127.0.0.1", server.port, "u", Password("p"), 5), 7, heartbeats=heartbeats, clock=clock)
    try:
        client.dump_from("log.1", 4)
        yield client, server
    finally:
        client.close()
        server.close()


def test_a_server_that_falls_silent_is_given_up_after_three_heartbeats() -> None:
    with dump(Heartbeats(0.1, 0.3)) as (client, server):
        assert len(client.read(5)) == 1
        began = time.monotonic()
        with pytest.raises(RetriableError, match=r"not even the heartbeats.*connect\.keep\.alive\.interval\.ms"):
            while time.monotonic() < began + 5:
                client.read(0.05)
        assert 0.25 < time.monotonic() - began < 2
    assert b"\3SET @master_heartbeat_period = 100000000" in server.received


def test_what_came_while_nobody_read_is_no_silence() -> None:
    """A read after a long pause, such as a blocking snapshot, leaves the server the time for a heartbeat."""
    clock = Clock()
    with dump(Heartbeats(0.2, 0.6), clock) as (client, _):
        assert len(client.read(5)) == 1
        clock.ahead = 100
        assert client.read(0.05) == []
        with pytest.raises(RetriableError):
            client.read(1)


def test_a_server_may_be_silent_where_nobody_looks() -> None:
    with dump(Heartbeats(0.1, None)) as (client, _):
        assert len(client.read(5)) == 1
        assert client.read(0.5) == []


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, Heartbeats(10, 60)),
        ({"connect.keep.alive.interval.ms": "3000"}, Heartbeats(1, 3)),
        ({"connect.keep.alive.interval.ms": "600000"}, Heartbeats(10, 600)),
        ({"connect.keep.alive": "false"}, Heartbeats(10, None)),
    ],
)
def test_the_keep_alive_properties_say_how_long_nothing_may_come(given: dict[str, str], expected: Heartbeats) -> None:
    assert parse_config({**BASE, **given}).heartbeats == expected


def test_the_system_is_asked_to_notice_a_silent_peer_of_any_connection() -> None:
    """Of those for statements too: an answer that is awaited has no other end when the server's machine is gone."""
    server = RogueServer(falls_silent)
    connection = Connection(ConnectionSettings("127.0.0.1", server.port, "u", Password("p"), 5))
    try:
        connected = connection.driver._sock
        assert connected.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 60
        assert connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 120_000
    finally:
        connection.close()
        server.close()
