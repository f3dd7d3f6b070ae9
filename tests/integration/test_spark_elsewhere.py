"""Spark on a standalone cluster and behind Spark Connect: the same task, the same tables. The tasks run in processes of their own.

The other tests of the sink can run over Spark Connect too: `CONNECT_PY_LAKE_REMOTE=sc://…`, with a server as in `tests/spark_servers.py`.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.faults.lake_source import Source
from tests.fix_spark import LAKES, Lake
from tests.spark_servers import Cluster, ConnectServer

pytestmark = [pytest.mark.services, pytest.mark.spark, pytest.mark.timeout(900), pytest.mark.long]


class Elsewhere:
    """A task in a process of its own."""

    def __init__(self, lake: Lake, config: dict[str, str]) -> None:
        command = [sys.executable, "-m", "tests.lake_script"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        order = {"format": lake.format, "bootstrap": lake.bootstrap, "warehouse": str(lake.warehouse), "tag": lake.tag, "config": config}
        self._send(json.dumps(order))

    def _send(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def ask(self, command: str) -> Any:
        """What a command answered."""
        self._send(command)
        assert self._process.stdout is not None
        line = next(line for line in self._process.stdout if line.startswith('{"answer"'))
        return json.loads(line)["answer"]

    def end(self) -> None:
        """With everything that it started."""
        self._process.communicate()


@contextmanager
def elsewhere(lake: Lake, config: dict[str, str]) -> Iterator[Elsewhere]:
    made = Elsewhere(lake, config)
    try:
        yield made
    finally:
        made.end()


def test_a_standalone_clusters_executors_write_the_same_tables(
    kafka: Any, tmp_path: Path, tag: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONNECT_PY_SPARK_SETTINGS", "spark.master")
    cluster = Cluster(tmp_path)
    try:
        lake = LAKES["iceberg"](kafka.bootstrap, tmp_path / "warehouse", tag)
        source = Source(lake, random.Random(1))
        conf = {
            "driver.host": "127.0.0.1",
            "driver.memory": "700m",
            "executor.memory": "700m",
            "executor.cores": "1",
            "ui.enabled": "false",
        }
        config = source.config("stream") | {f"lakehouse.spark.conf.spark.{name}": value for name, value in conf.items()}
        config["lakehouse.spark.master"] = cluster.master
        source.change()
        with elsewhere(lake, config) as task:
            assert task.ask("start") is None
            assert task.ask("drain") == 1
            source.check()
            source.change()
            assert task.ask("drain") == 1
            assert task.ask("close") is None
        source.check()
        logs = list((tmp_path / "work").glob("app-*/*/stderr"))
        assert len(logs) == 2, "the work was not the executors'"
    finally:
        cluster.stop()


@pytest.fixture(scope="module")
def connect_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    server = ConnectServer(tmp_path_factory.mktemp("connect"))
    yield server
    server.stop()


@pytest.mark.parametrize("format_", ["iceberg", "delta"])
def test_over_spark_connect_tables_are_the_same_and_a_session_that_the_server_lost_is_said_so(
    kafka: Any, connect_server: ConnectServer, tmp_path: Path, tag: str, format_: str
) -> None:
    lake = LAKES[format_](kafka.bootstrap, tmp_path / "warehouse", tag)
    source = Source(lake, random.Random(1))
    here = source.config("loop").items()
    config = {name: value for name, value in here if not name.startswith("lakehouse.spark.")} | {
        "lakehouse.spark.remote": connect_server.url
    }
    source.change()
    with elsewhere(lake, config) as task:
        assert task.ask("start") is None
        assert task.ask("drain") == 1
        source.check()
        source.change()
        if format_ == "iceberg":
            assert task.ask("drain") == 1
        else:
            connect_server.restart()
            assert "the Spark Connect server does not know the session any more" in task.ask("drain")
            assert task.ask("start") is None
            assert task.ask("drain") == 1
        source.check()
        assert task.ask("close") is None
