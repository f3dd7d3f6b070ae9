"""Clients that people use for Kafka Connect get from this worker what they get from Kafka Connect: every call, its result or its error.

Each program in `programs/` calls all functions of one client. `expected/*.json` is what the programs printed against Kafka Connect 4.3.1
(`outcome.py` says what is left out). With ``REFERENCE_URL=http://host:port`` the programs run against that worker too and its answers are
what is expected; with ``RECORD_CLIENTS=1`` besides, they are stored.

kcctl is published as a native binary on GitHub alone, and Strimzi's operator and Debezium UI need a cluster: of these, programs here make
the calls that their sources make.
"""

from __future__ import annotations

import json
import os
import subprocess
import uuid
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from connect_py.app.services.worker import Worker
from tests.clients import outcome
from tests.clients.install import UnavailableError, go_program, java_program, python_program

pytestmark = pytest.mark.services

EXPECTED = Path(__file__).parent / "expected"
REFERENCE = os.environ.get("REFERENCE_URL")

#: How long one program may run; the slowest takes 15 s.
_SECONDS = 240

CLIENTS: dict[str, Callable[[], tuple[list[str], dict[str, str]]]] = {
    "kafka-connect-py": lambda: python_program("drive_kc.py", "kafka-connect-py==1.0.0"),
    "kafkaconnect": lambda: python_program("drive_kafkaconnect.py", "kafkaconnect==1.3.1", "requests", "click"),
    "kafka-connect-api": lambda: python_program("drive_kafka_connect_api.py", "kafka-connect-api==0.5.10"),
    "kpops": lambda: python_program("drive_kpops.py", "kpops==12.0.3"),
    "kafka-connect-client": lambda: java_program("DriveConnectClient.java", "org.sourcelab:kafka-connect-client:4.0.5"),
    "cloudhut": lambda: go_program("cloudhut"),
    "ricardo": lambda: go_program("ricardo"),
    "strimzi-and-debezium-ui": lambda: python_program("drive_strimzi_calls.py"),
    "kcctl": lambda: python_program("drive_kcctl_calls.py"),
}
#: The others need environments of their own, which take long to make.
SHORT = ("kafka-connect-py", "strimzi-and-debezium-ui", "kcctl")


def drive(client: str, url: str, folder: Path) -> list[dict[str, Any]]:
    """Run a client's program against a worker. Raises UnavailableError."""
    command, environment = CLIENTS[client]()
    name = f"c{uuid.uuid4().hex[:10]}"
    lines = folder / f"{name}.txt"
    lines.write_text("one\ntwo\n")
    done = subprocess.run(
        [*command, url, name, f"{name}-topic", str(lines)],
        env={**os.environ, "PYTHONPATH": "", **environment},
        capture_output=True,
        text=True,
        timeout=_SECONDS,
    )
    assert done.returncode == 0, f"{client}: {done.stderr[-3000:]}\n{done.stdout[-1000:]}"
    address = url.partition("://")[2]
    return outcome.parse(done.stdout, {f"{name}-topic": "TOPIC", name: "NAME", str(lines): "FILE", url: "URL", address: "WORKER"})


@pytest.fixture(scope="module")
def outcomes(
    worker: Worker, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> dict[str, Future[list[dict[str, Any]]]]:
    """The selected programs against this worker; they wait most of the time, so several run at once."""
    folder = tmp_path_factory.mktemp("clients")
    selected = {item.callspec.params.get("client") for item in request.session.items if hasattr(item, "callspec")}
    with ThreadPoolExecutor(4) as pool:
        return {client: pool.submit(drive, client, worker.url, folder) for client in CLIENTS if client in selected}


def expected_of(client: str, folder: Path) -> list[dict[str, Any]]:
    stored = EXPECTED / f"{client}.json"
    if REFERENCE is None:
        found: list[dict[str, Any]] = json.loads(stored.read_text())
        return found
    found = drive(client, REFERENCE, folder)
    if os.environ.get("RECORD_CLIENTS"):
        stored.write_text("[\n" + ",\n".join(json.dumps(call) for call in found) + "\n]\n")
    return found


@pytest.mark.parametrize("client", [client if client in SHORT else pytest.param(client, marks=pytest.mark.long) for client in CLIENTS])
def test_a_client_gets_what_kafka_connect_gives_it(client: str, outcomes: dict[str, Future[list[dict[str, Any]]]], tmp_path: Path) -> None:
    try:
        found = outcomes[client].result()
    except UnavailableError as error:
        pytest.skip(f"{client} is not to be had: {error}")
    expected = expected_of(client, tmp_path)
    assert [call["call"] for call in found] == [call["call"] for call in expected]
    differences = {mine["call"]: (mine, theirs) for mine, theirs in zip(found, expected, strict=True) if mine != theirs}
    assert not differences
