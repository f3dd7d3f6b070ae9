"""The client against servers that no real worker is: those that redirect, ask for a password, rebalance, or are no workers."""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from connect_py.app.client.rest import CONFLICT_SECONDS, ConnectClient, Target, password_from_file
from connect_py.errors import ConfigError, ConnectError, NotFoundError, RestError

Answer = Callable[[str, str, str | None], tuple[int, str, dict[str, str]]]
Serve = Callable[[Answer], str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Serves what a function of method, path and Authorization answers; gives the URL."""
    servers: list[HTTPServer] = []

    def start(answer: Answer) -> str:
        class Handler(BaseHTTPRequestHandler):
            def handle_any(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                status, body, headers = answer(self.command, self.path, self.headers.get("Authorization"))
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body.encode())), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body.encode())

            do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = handle_any

            def log_message(self, format: str, *args: object) -> None:
                pass

        server = HTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_a_request_is_repeated_while_the_group_rebalances(serve: Serve) -> None:
    asked: list[str] = []
    rebalances = '{"error_code":409,"message":"Cannot complete request momentarily due to stale configuration"}'

    def answer(method: str, path: str, _authorization: str | None) -> tuple[int, str, dict[str, str]]:
        asked.append(f"{method} {path}")
        return (409, rebalances, {}) if len(asked) < 3 else (200, "{}", {})

    pauses: list[float] = []
    ConnectClient(Target(serve(answer)), pause=pauses.append).put_config("a/b", {"x": "1"})
    assert asked == ["PUT /connectors/a%2Fb/config"] * 3
    assert len(pauses) == 2


def test_a_rebalance_without_end_and_other_conflicts_are_refusals(serve: Serve) -> None:
    asked: list[str] = []

    def answer(_method: str, path: str, _authorization: str | None) -> tuple[int, str, dict[str, str]]:
        asked.append(path)
        text = "Connector a already exists" if path == "/connectors" else "Cannot complete request because of a conflicting operation"
        return 409, f'{{"error_code":409,"message":"{text}"}}', {}

    now = iter([0.0, 1.0, CONFLICT_SECONDS + 1])
    client = ConnectClient(Target(serve(answer)), clock=lambda: next(now), pause=lambda _seconds: None)
    with pytest.raises(RestError, match="conflicting operation"):
        client.delete("a")
    assert len(asked) == 2
    now = iter([0.0])
    with pytest.raises(RestError, match="already exists"):
        client.create("a", {})
    assert len(asked) == 3


def test_a_redirect_is_not_followed_since_the_password_would_go_with_it(serve: Serve) -> None:
    seen: list[str | None] = []

    def elsewhere(_method: str, _path: str, authorization: str | None) -> tuple[int, str, dict[str, str]]:
        seen.append(authorization)
        return 200, "[]", {}

    other = serve(elsewhere)
    client = ConnectClient(Target(serve(lambda *_: (307, "", {"Location": other})), "u", "secret"))
    with pytest.raises(RestError, match="redirect, which is not followed"):
        client.names()
    assert seen == []


def test_the_password_is_sent_and_asked_for_when_it_is_missing(serve: Serve) -> None:
    wanted = f"Basic {base64.b64encode('ü:p:w'.encode()).decode()}"

    def answer(_method: str, _path: str, authorization: str | None) -> tuple[int, str, dict[str, str]]:
        return (200, '["b", "a"]', {}) if authorization == wanted else (401, "User cannot access the resource.", {})

    url = serve(answer)
    assert ConnectClient(Target(url + "/", "ü", "p:w")).names() == ["a", "b"]
    with pytest.raises(RestError, match="give --user and --password-file"):
        ConnectClient(Target(url)).names()
    assert "p:w" not in repr(Target(url, "u", "p:w"))


def test_what_is_no_worker_is_said_to_be_none(serve: Serve) -> None:
    url = serve(lambda _method, path, _authorization: (404, "<h1>nope</h1>", {}) if "status" in path else (200, "<h1>hello</h1>", {}))
    with pytest.raises(ConnectError, match="so it is no Connect worker: <h1>hello</h1>"):
        ConnectClient(Target(url)).names()
    with pytest.raises(NotFoundError, match="nope"):
        ConnectClient(Target(url)).status("a")


def test_a_worker_without_patch_gets_the_whole_configuration(serve: Serve) -> None:
    asked: list[str] = []

    def answer(method: str, path: str, _authorization: str | None) -> tuple[int, str, dict[str, str]]:
        asked.append(method)
        return (405, "{}", {}) if method == "PATCH" else (200, '{"x": "1", "y": "2"}', {})

    ConnectClient(Target(serve(answer))).patch_config("a", {"x": "3", "y": None})
    assert asked == ["PATCH", "GET", "PUT"]


def test_signals_say_that_a_java_worker_has_none(serve: Serve) -> None:
    url = serve(lambda _m, path, _a: (200, '["a"]', {}) if path == "/connectors" else (404, '{"message": "HTTP 404 Not Found"}', {}))
    with pytest.raises(ConnectError, match=r"takes no signals by REST, as Kafka Connect's in Java does not\. Nothing was sent"):
        ConnectClient(Target(url)).send_signal("a", "log", {})
    with pytest.raises(NotFoundError, match="There is no connector b"):
        ConnectClient(Target(url)).send_signal("b", "log", {})


def test_a_password_file_needs_a_first_line(tmp_path: object) -> None:
    from pathlib import Path

    path = Path(str(tmp_path)) / "p"
    path.write_text("secret\nsecond\n")
    assert password_from_file(str(path)) == "secret"
    path.write_text("\nsecret")
    with pytest.raises(ConfigError, match="no password in its first line"):
        password_from_file(str(path))
