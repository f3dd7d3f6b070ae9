"""`connect-py health` against real REST servers: it follows the worker's own properties. And what systemd is told."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from connect_py.app.cli import main
from connect_py.app.commands.health import find_problem
from connect_py.app.commands.worker import notify_service_manager
from connect_py.app.services.memory_herder import MemoryHerder
from connect_py.app.services.process import free_port
from rest_api import RestConfig, Server, create_app, create_health_app
from rest_api.waiting import Gate
from tests.certificates import Identity

Start = Callable[[dict[str, str]], dict[str, str]]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts the REST servers that properties ask for, as a worker does; returns these properties."""
    servers: list[Server] = []

    def begin(properties: dict[str, str]) -> dict[str, str]:
        config, herder = RestConfig.from_worker(properties, {}), MemoryHerder()
        for listeners, app in (
            (config.listeners, create_app(herder, config)),
            (config.health_listeners, create_health_app(herder, config)),
        ):
            if listeners:
                servers.append(Server(listeners))
                servers[-1].start(app)
        return properties

    yield begin
    for server in servers:
        server.stop(1)


def address(scheme: str = "http", host: str = "127.0.0.1") -> str:
    return f"{scheme}://{host}:{free_port()}"


@pytest.fixture
def stored(tmp_path: Path) -> dict[str, str]:
    authority = Identity("authority")
    identity = Identity("worker", authority)
    (tmp_path / "store.pem").write_text(identity.key_pem() + identity.chain_pem)
    (tmp_path / "trust.pem").write_text(authority.chain_pem)
    (tmp_path / "users").write_text("admin=secret\n")
    return {"ssl.keystore.location": f"{tmp_path}/store.pem", "ssl.truststore.location": f"{tmp_path}/trust.pem"}


@pytest.mark.parametrize("host", ["127.0.0.1", "", "0.0.0.0"])
def test_a_worker_that_answers_is_healthy_at_whatever_address_it_listens(start: Start, host: str) -> None:
    assert find_problem(start({"listeners": address(host=host)})) is None


def test_https_and_client_certificates_are_followed(start: Start, stored: dict[str, str]) -> None:
    seconds = 30.0  # a handshake on a busy machine
    assert find_problem(start({"listeners": address("https"), **stored}), seconds) is None
    assert find_problem(start({"listeners": address("https"), **stored, "ssl.client.auth": "required"}), seconds) is None


def test_with_a_login_the_health_listener_answers_without_one(start: Start, tmp_path: Path, stored: dict[str, str]) -> None:
    guarded = {"listeners": address(), "rest.basic.auth.file": f"{tmp_path}/users"}
    problem = find_problem(start(guarded))
    assert problem is not None
    assert "Set the worker's property health.listeners" in problem
    assert find_problem(start({**guarded, "listeners": address(), "health.listeners": address()})) is None


def test_a_worker_that_starts_is_not_healthy_and_says_why() -> None:
    server = Server(RestConfig.from_worker({"listeners": address()}, {}).listeners)
    server.start(Gate())
    try:
        problem = find_problem({"listeners": server.urls[0]})
    finally:
        server.stop(1)
    assert problem is not None
    assert "answered 503: Worker is still starting up." in problem


def test_a_health_listener_serves_nothing_else(start: Start) -> None:
    properties = start({"listeners": address(), "health.listeners": address()})
    import urllib.error
    import urllib.request

    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"{properties['health.listeners']}/connectors", timeout=60)


def test_the_command_reads_a_file_and_ends_with_one_where_nothing_answers(
    start: Start, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "worker.properties"
    file.write_text(f"listeners={start({'listeners': address()})['listeners']}\n")
    assert main(["health", str(file)]) == 0
    file.write_text(f"listeners={address()}\n")
    assert main(["health", str(file)]) == 1
    assert "No answer from http://127.0.0.1:" in capsys.readouterr().err


@pytest.mark.parametrize("abstract", [False, True])
def test_systemd_is_told_what_happens(tmp_path: Path, abstract: bool) -> None:
    name = f"@connect-py-{tmp_path.name}" if abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind("\0" + name[1:] if abstract else name)
        notify_service_manager("READY=1", {"NOTIFY_SOCKET": name})
        assert manager.recv(100) == b"READY=1"


def test_without_systemd_and_with_one_that_is_gone_nothing_fails(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    notify_service_manager("READY=1", {})
    notify_service_manager("READY=1", {"NOTIFY_SOCKET": f"{tmp_path}/none"})
    assert "was not told READY=1" in caplog.text
