"""What clients of the REST API must not get by with: odd framing, foreign pages, guesses, floods of checks."""

from __future__ import annotations

import base64
import json
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from http.client import HTTPConnection

import h11._receivebuffer
import pytest

from connect_py.app.services.memory_herder import MemoryHerder
from connect_py.errors import ConfigError
from connect_py.herder.base import ConfigInfos
from rest_api import RestConfig, Server, create_admin_app, create_app
from rest_api.basic_auth import BURST, BasicAuth, Logins, hashed
from rest_api.waiting import CHECKS
from tests.canary import within

Start = Callable[..., int]

CONFIG = {"connector.class": "FileStreamSource", "topic": "t"}


@pytest.fixture
def start() -> Iterator[Start]:
    servers = []

    def started(herder: MemoryHerder | None = None, **properties: str) -> int:
        config = RestConfig.from_worker({"listeners": "http://127.0.0.1:0"} | {k.replace("_", "."): v for k, v in properties.items()}, {})
        server = Server(config.listeners)
        herder = herder or MemoryHerder()
        server.start(create_app(herder, config), create_admin_app(herder, config))
        servers.append(server)
        return int(server.urls[0].rpartition(":")[2])

    yield started
    for server in servers:
        server.stop(1)


def ask(
    port: int, method: str = "GET", path: str = "/", *, body: str | bytes | None = None, **headers: str
) -> tuple[int, Mapping[str, str], bytes]:
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, body, {"Content-Type": "application/json", **sent})
    try:
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def raw(port: int, data: bytes) -> bytes:
    """Everything that comes until the worker closes, or nothing for two seconds."""
    with socket.create_connection(("127.0.0.1", port), timeout=2) as connection:
        connection.sendall(data)
        found = b""
        try:
            while more := connection.recv(65536):
                found += more
        except TimeoutError:
            pass
        return found


def test_a_request_with_two_framings_is_refused_and_the_connection_closed(start: Start) -> None:
    port = start()
    smuggled = b"GET /connectors HTTP/1.1\r\nHost: localhost\r\n\r\n"
    head = b"POST /connectors HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    head += b"Transfer-Encoding: chunked\r\nContent-Length: %d\r\n\r\n"
    found = raw(port, head % (5 + len(smuggled)) + b"0\r\n\r\n" + smuggled)
    assert found.startswith(b"HTTP/1.1 400 ")
    assert found.count(b"HTTP/1.1") == 1


@pytest.mark.parametrize(
    "head",
    [
        b"GET /health HTTP/1.1\nHost: h\n\n",
        b"GET /health HTTP/1.1\r\nHost: h\nX: y\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: h\r\nX: y\r\n z\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: h\r\nX: y\r\n\tz\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: h\r\n\n",
    ],
)
def test_a_head_of_odd_lines_is_refused(start: Start, head: bytes) -> None:
    port = start()
    assert raw(port, head).startswith(b"HTTP/1.1 400 ")
    in_pieces = socket.create_connection(("127.0.0.1", port), timeout=60)
    with in_pieces:
        for at in range(len(head)):
            in_pieces.sendall(head[at : at + 1])
        assert in_pieces.recv(100).startswith(b"HTTP/1.1 400 ")


def test_h11_has_what_the_strict_reading_of_heads_needs() -> None:
    assert hasattr(h11._receivebuffer.ReceiveBuffer, "maybe_extract_lines")
    buffer = h11._receivebuffer.ReceiveBuffer()
    buffer += b"a\nb\n\n"
    assert buffer.maybe_extract_lines() == [b"a", b"b"]


def test_a_page_of_a_foreign_origin_changes_nothing(start: Start) -> None:
    herder = MemoryHerder()
    port = start(herder)
    for origin in ("http://evil.example", "null", f"http://127.0.0.1:{port + 1}"):
        status, _, body = ask(port, "POST", "/connectors", body=json.dumps({"name": "c", "config": CONFIG}), Origin=origin)
        assert status == 403
        assert "access.control.allow.origin" in json.loads(body)["message"]
    assert not herder.connectors()
    assert ask(port, "GET", "/connectors", Origin="http://evil.example")[0] == 200
    assert ask(port, "POST", "/connectors", body=json.dumps({"name": "c", "config": CONFIG}), Origin=f"http://127.0.0.1:{port}")[0] == 201


def test_a_page_that_the_operator_allows_may_change_something(start: Start) -> None:
    port = start(access_control_allow_origin="https://ui.example", access_control_allow_methods="GET,POST,PUT,DELETE")
    assert ask(port, "DELETE", "/connectors/none", Origin="https://ui.example")[0] == 404
    assert ask(port, "DELETE", "/connectors/none", Origin="https://ui.example.evil")[0] == 403


def test_only_listed_hosts_are_served(start: Start) -> None:
    port = start(rest_allowed_hosts="connect.example, 127.0.0.1,[::1]")
    assert ask(port)[0] == 200
    assert ask(port, Host="CONNECT.example:8083")[0] == 200
    assert ask(port, Host="[::1]:8083")[0] == 200
    for host in ("evil.example", "connect.example.evil", "", "[::1"):
        status, _, body = ask(port, Host=host)
        assert status == 400
        assert "rest.allowed.hosts" in json.loads(body)["message"]


def test_many_warnings_are_ten_items_of_a_header(start: Start) -> None:
    class Warns(MemoryHerder):
        def validate(self, config: Mapping[str, str | None]) -> ConfigInfos:
            return ConfigInfos(
                "x", 0, [], [], [f"Property {number} is not known. " + "x" * 1000 for number in range(int(config["n"] or 0))]
            )

    port = start(Warns())
    path = "/connector-plugins/FileStreamSource/config/validate"
    warning = ask(port, "PUT", path, body='{"n": "10"}')[1]["warning"]
    assert warning.count("299 - ") == 10
    warning = ask(port, "PUT", path, body='{"n": "3000"}')[1]["warning"]
    assert warning.count("299 - ") == 10
    assert warning.endswith('"2991 more warnings are not shown"')
    assert len(warning) < 4000


def test_health_and_reading_answer_while_checks_wait_for_silent_servers(start: Start) -> None:
    silent = threading.Event()
    most = running = 0
    lock = threading.Lock()

    class Waits(MemoryHerder):
        def validate(self, config: Mapping[str, str | None]) -> ConfigInfos:
            nonlocal most, running
            with lock:
                running += 1
                most = max(most, running)
            silent.wait(60)
            with lock:
                running -= 1
            return ConfigInfos("x", 0, [], [], [])

    port = start(Waits())
    path = "/connector-plugins/FileStreamSource/config/validate"
    asking = [threading.Thread(target=ask, args=(port, "PUT", path), kwargs={"body": "{}"}) for _ in range(230)]
    try:
        for each in asking:
            each.start()
        deadline = time.monotonic() + 40
        while running < CHECKS and time.monotonic() < deadline:
            ask(port, "GET", "/connectors")
        for page in ("/health", "/metrics", "/connectors"):
            began = time.monotonic()
            assert ask(port, "GET", page, Accept="*/*")[0] == 200
            assert time.monotonic() - began < 30, "as long as a check waits"
        assert most == CHECKS
    finally:
        silent.set()
        for each in asking:
            each.join()


def test_an_unsigned_internal_request_is_read_no_further_than_a_mistake_is_long(start: Start) -> None:
    port = start(MemoryHerder())
    task = json.dumps([{"a": "b" * 100}])
    assert json.loads(ask(port, "POST", "/connectors/c/tasks", body=task)[2])["message"] == "Internal request missing required signature"
    for headers in ({}, {"X_Connect_Authorization": "YWJj"}):
        assert ask(port, "POST", "/connectors/c/tasks", body=json.dumps([{"a": "b" * 100_000}]), **headers)[0] == 413


def test_a_signed_internal_request_is_parsed_once_its_signature_was_found_right(start: Start) -> None:
    seen = []

    class Signed(MemoryHerder):
        def put_task_configs(self, name: str, configs: Callable[[], object], signature: object) -> None:
            seen.append(signature)
            raise ConfigError("the signature is wrong")

    port = start(Signed())
    headers = {"X_Connect_Authorization": "YWJj", "X_Connect_Request_Signature_Algorithm": "HmacSHA256"}
    answer = ask(port, "POST", "/connectors/c/tasks", body="[" * 100_000, **headers)
    assert json.loads(answer[2])["message"] == "the signature is wrong"
    assert seen[0] is not None


# -- logins


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


@pytest.fixture(scope="module")
def wonderland() -> str:
    return hashed("wonder:land é")


def test_a_hashed_password_of_the_file_lets_its_user_in(start: Start, tmp_path, wonderland: str) -> None:
    users = tmp_path / "users"
    users.write_text(f"alice={wonderland}\nbob=plain\n")
    port = start(rest_basic_auth_file=str(users))
    assert ask(port, Authorization=basic("alice", "wonder:land é"))[0] == 200
    with within(4, "a password that was right is not hashed again"):
        for _ in range(20):
            assert ask(port, Authorization=basic("alice", "wonder:land é"))[0] == 200
    assert ask(port, Authorization=basic("bob", "plain"))[0] == 200
    assert ask(port, Authorization=basic("alice", wonderland))[0] == 401
    assert ask(port, Authorization=basic("alice", "x"))[0] == 401


def test_the_command_makes_a_line_of_the_file(tmp_path) -> None:
    command = [sys.executable, "-P", "-m", "connect_py.app.cli", "password", "al ice"]
    made = subprocess.run(command, input="wonderland\n", capture_output=True, text=True, check=True).stdout
    (tmp_path / "users").write_text(made)
    config = RestConfig.from_worker({"rest.basic.auth.file": str(tmp_path / "users")}, {})
    assert config.auth is not None
    assert list(config.auth.users) == ["al ice"]
    Logins(config.auth)
    assert subprocess.run(command, input="\n", capture_output=True, text=True, check=False).returncode == 1


def test_a_hash_that_is_none_stops_the_start_without_being_shown() -> None:
    for text in ("{pbkdf2-sha256}x$y$z", "{pbkdf2-sha256}600000$YWJj", "{pbkdf2-sha256}99999999999$YWJj$" + "YWJj" * 11):
        with pytest.raises(ConfigError, match="connect-py password makes") as refused:
            Logins(BasicAuth({"alice": text}))
        assert "YWJj" not in str(refused.value)


def test_guesses_are_slowed_down_and_logged_and_those_who_have_logged_in_are_not(
    start: Start, tmp_path, caplog: pytest.LogCaptureFixture
) -> None:
    users = tmp_path / "users"
    users.write_text("alice=wonderland\nbob=builder\n")
    port = start(rest_basic_auth_file=str(users))
    assert ask(port, Authorization=basic("alice", "wonderland"))[0] == 200
    answers = [ask(port, Authorization=basic("alice\n", f"guess-{number}"))[0] for number in range(BURST + 20)]
    assert answers[:BURST] == [401] * BURST
    assert answers.count(429) >= 15
    assert ask(port, Authorization=basic("bob", "builder"))[:2][0] == 429
    assert ask(port, Authorization=basic("alice", "wonderland"))[0] == 200
    assert ask(port)[0] == 401
    assert "A login to the REST API failed: user 'alice\\n' from 127.0.0.1, GET /" in caplog.text
    assert "guess-" not in caplog.text


def test_an_address_may_try_again_after_a_while() -> None:
    now = 100.0
    logins = Logins(BasicAuth({"alice": "wonderland"}), clock=lambda: now)

    def check(password: str) -> int:
        import anyio

        return anyio.run(logins.check, basic("alice", password), "10.0.0.1", "GET /")

    assert [check(f"x{number}") for number in range(BURST + 1)] == [401] * BURST + [429]
    assert check("wonderland") == 429
    now += 2.1
    assert check("wonderland") == 200


def test_the_description_of_the_api_refers_to_nothing_that_is_missing(start: Start) -> None:
    described = json.loads(ask(start(), path="/openapi.json")[2])
    for pointer in set(re.findall(r'"\$ref": "#/([^"]+)"', json.dumps(described))):
        found = described
        for step in pointer.split("/"):
            assert step in found, pointer
            found = found[step]
