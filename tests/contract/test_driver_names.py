"""What the connectors use of their drivers without having been promised it: private names, by file, and that the installed driver has them.

A new release of a driver that renames one makes a test here fail with the name, and not a connector at a rare moment. The upper bounds of
pyproject.toml keep such a release away until these tests have seen it.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import re
import socket
import time
import tomllib
from pathlib import Path
from typing import Any

import pymysql
import pytest
from kafka.coordinator.base import BaseCoordinator
from kafka.coordinator.heartbeat import Heartbeat
from kafka.metrics import Metrics
from kafka.net.compat import KafkaNetClient
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.net.transport import KafkaTCPTransport
from pymongo.command_cursor import CommandCursor
from pymysql.connections import MySQLResult
from pymysql.protocol import MysqlPacket
from pyspark import SparkContext
from pyspark.sql import SparkSession

from connect_py.kafka.group_client import GroupCoordinator, data_first
from connectors.mysql.server.connection import GuardedConnection

ROOT = Path(__file__).parents[2]
#: Folder, and the variables and attributes by which its code calls the driver's objects.
PYMYSQL = ("connectors/mysql", {"driver", "_driver"})
PYMONGO = ("connectors/mongodb", {"_cursor", "cursor", "_client", "client"})
PYSPARK = ("spark_sink", {"SparkContext", "sparkContext", "spark"})


def private_names(folder: str, receivers: set[str]) -> dict[str, set[str]]:
    """Private attributes that are asked of these variables or attributes, and the files that ask."""
    found: dict[str, set[str]] = {}
    for file in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Attribute) and node.attr.startswith("_") and _name(node.value) in receivers:
                found.setdefault(node.attr, set()).add(file.name)
    return found


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def missing(names: dict[str, set[str]], owner: object) -> dict[str, set[str]]:
    return {name: files for name, files in names.items() if not hasattr(owner, name)}


def test_pymysql_has_the_private_names_that_are_used() -> None:
    used = private_names(*PYMYSQL)
    assert {"_read_packet", "_execute_command", "_force_close", "_sock", "_rfile", "_result", "_read_timeout", "_secure"} <= used.keys()
    connection = GuardedConnection(allows_public_key=False, defer_connect=True)
    # the stream is there from the login on
    connection._rfile = None
    assert missing(used, connection) == {}, f"PyMySQL {pymysql.__version__} lacks these"
    assert missing({"unbuffered_active": set(), "connection": set()}, MySQLResult(connection)) == {}
    assert missing({"is_ok_packet": set(), "check_error": set()}, MysqlPacket) == {}


def test_pymysql_looks_for_the_servers_key_where_the_guard_stands() -> None:
    """Its plugins read and set `server_public_key`, a parameter of the connection, and refuse nothing themselves."""
    connection: Any = GuardedConnection(allows_public_key=False, defer_connect=True, password="x")
    with pytest.raises(pymysql.OperationalError, match="Public Key Retrieval"):
        connection.server_public_key  # noqa: B018
    with pytest.raises(pymysql.OperationalError, match="Public Key Retrieval"):
        connection.server_public_key = b"key"
    source = Path(pymysql.__file__).with_name("_auth.py").read_text()
    assert source.count("conn.server_public_key") >= 5
    assert connection._auth_plugin_map.keys() == {"mysql_clear_password", "mysql_old_password", "dialog"}


def test_pymongo_has_the_private_names_that_are_used() -> None:
    used = private_names(*PYMONGO)
    assert {"_has_next", "_next_batch", "_post_batch_resume_token"} <= used.keys()
    assert missing(used, CommandCursor) == {}, "this release of pymongo lacks these"


def test_pyspark_has_the_private_names_that_are_used() -> None:
    """Read from its source, since making a session starts a JVM; its version is pinned."""
    used = private_names(*PYSPARK)
    assert {"_jvm", "_gateway", "_active_spark_context", "_jsparkSession", "_jsc"} <= used.keys()
    there = set(re.findall(r"\bself\.(_\w+)", inspect.getsource(SparkContext) + inspect.getsource(SparkSession)))
    assert {name: files for name, files in used.items() if name not in there and not hasattr(SparkContext, name)} == {}


@pytest.mark.parametrize("driver", ["pymysql", "pymongo", "kafka-python"])
def test_a_driver_whose_private_names_are_used_has_an_upper_bound(driver: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    listed = [*project["dependencies"], *itertools.chain(*project["optional-dependencies"].values())]
    bounds = [line for line in listed if re.match(rf"{driver}\b", line)]
    assert bounds
    assert all(re.search(r",<\d", line) for line in bounds)


def test_kafka_python_reads_the_last_words_of_a_broker_with_the_end_of_the_connection() -> None:
    ours, broker = socket.socketpair()
    with ours, broker:
        ours.setblocking(False)
        transport = KafkaTCPTransport(NetworkSelector(), ours)
        broker.sendall(b"refused")
        broker.close()
        data, end = vars(KafkaTCPTransport)["_sock_recv"](transport)
        assert data == b"refused" and end is not None, "it gives one after the other now: data_first is not needed any more"
        received = data_first(lambda: (data, end))
        assert [received(), received(), received()] == [(b"refused", None), (b"", end), (b"", end)]
    answers = iter([(b"a", None), (b"", None), (b"", end)])
    received = data_first(lambda: next(answers))
    assert [received(), received(), received()] == [(b"a", None), (b"", None), (b"", end)]


def test_kafka_python_has_the_private_names_that_are_used() -> None:
    client = private_names("connect_py/kafka", {"client", "_client"})
    coordinator = private_names("connect_py/kafka", {"_coordinator", "coordinator"})
    assert {"_net", "_manager"} <= client.keys() and {"_second", "_close_heartbeat"} <= coordinator.keys()
    manager = KafkaConnectionManager(NetworkSelector(), bootstrap_servers=["127.0.0.1:1"])
    names = ("_auth_failures", "_build_transport", "bootstrap", "bootstrap_async", "wait_for", "get_connection")
    assert missing({name: set() for name in names}, manager) == {}, "this release of kafka-python lacks these"
    made = KafkaNetClient(bootstrap_servers=["127.0.0.1:1"])
    try:
        assert missing(client, made) == {}
        member = GroupCoordinator(made, None, time.monotonic, None, Metrics(), group_id="g")
        assert missing({**coordinator, "_generation": set(), "_do_heartbeat": set(), "_join_task": set()}, member) == {}
        for name in (
            "_perform_assignment",
            "_on_join_complete_async",
            "join_group_async",
            "reset_generation",
            "group_protocols",
            "protocol_type",
        ):
            assert name in vars(BaseCoordinator), f"kafka-python calls no {name} any more"
        assert {"sent_heartbeat", "received_heartbeat"} <= vars(Heartbeat).keys()
    finally:
        made.close()
