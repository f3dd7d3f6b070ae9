"""Whatever a client sends, the answer is well-formed: a status below 500, JSON, and the error shape for every refusal."""

import asyncio
import json
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from connect_py.app.services.memory_herder import CLASS, MemoryHerder
from rest_api import create_app
from tests.seeds import examples

PARTS = st.sampled_from(
    ["connectors", "c", "config", "status", "tasks", "0", "restart", "pause", "stop", "topics", "reset", "offsets", "connector-plugins",
     "FileStreamSource", "validate", "admin", "loggers", "root", "health", "", "%2F", "%zz", "%ff", "a%20b", "..", ";x"]
) | st.text(alphabet="abc%/;é\x00 ", max_size=6)  # fmt: skip
PATHS = st.one_of(
    st.lists(PARTS, max_size=5).map(lambda parts: "/" + "/".join(parts)),
    st.sampled_from(["/connectors", "/connectors/c/config", "/connectors/c/offsets", "/connectors/c/restart", "/admin/loggers/x",
                     "/connector-plugins/FileStreamSource/config/validate"]),
)  # fmt: skip
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
CONFIGS = st.dictionaries(
    st.sampled_from(["name", "connector.class", "topic", "tasks.max", "secret", "x"]),
    st.sampled_from([CLASS, "c", "1", "0", "", None, 5, True, {}]),
)
BODIES = st.one_of(
    st.none(),
    st.binary(max_size=20),
    JSON_VALUES.map(lambda value: json.dumps(value).encode()),
    CONFIGS.map(lambda config: json.dumps(config).encode()),
    st.fixed_dictionaries(
        {},
        optional={"name": JSON_VALUES, "config": CONFIGS, "initial_state": st.sampled_from(["PAUSED", "stopped", "x", 1]), "y": st.none()},
    ).map(lambda body: json.dumps(body).encode()),
    st.fixed_dictionaries({"offsets": JSON_VALUES}).map(lambda body: json.dumps(body).encode()),
)
HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "content-type": st.sampled_from(["application/json", "application/json; charset=utf-8", "text/plain", "", ";", "é"]),
        "accept": st.sampled_from(["*/*", "application/json", "text/html", ",", "a;q=x", ""]),
        "x-request-id": st.text(alphabet="ab\t\x7f", max_size=4),
    },
)
QUERIES = st.sampled_from(
    ["", "expand=info&expand=status", "expand", "includeTasks=true", "onlyFailed=%ff", "connectorsOnly=false", "scope=cluster", "&&=;%"]
)


async def ask(app, method, path, query, headers, body):
    """One request over ASGI; returns (status, headers, body)."""
    encoded = path.encode()
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http", "path": path,
        "raw_path": encoded, "query_string": query.encode(), "root_path": "", "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8083),
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()] + [(b"host", b"127.0.0.1:8083")],
    }  # fmt: skip
    if body is not None:
        scope["headers"].append((b"content-length", str(len(body)).encode()))
    sent = []

    async def receive():
        return {"type": "http.request", "body": body or b"", "more_body": False}

    async def send(message):
        sent.append(message)

    await app(scope, receive, send)
    return sent[0]["status"], dict(sent[0]["headers"]), b"".join(message.get("body", b"") for message in sent[1:])


@pytest.fixture(scope="module")
def app():
    return create_app(MemoryHerder())


@settings(max_examples=examples(200), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(["GET", "PUT", "POST", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE"]), PATHS, QUERIES, HEADERS, BODIES)
def test_every_answer_is_well_formed(app, method, path, query, headers, body):
    status, sent, content = asyncio.run(ask(app, method, path, query, headers, body))
    assert status < 500
    assert b"x-request-id" in sent
    if method == "HEAD":
        assert content == b""
    elif status >= 400:
        error = json.loads(content)
        assert list(error) == ["error_code", "message"]
        assert error["error_code"] == status
        assert isinstance(error["message"], str)
        assert error["message"]
        assert "Traceback" not in error["message"]
    elif status in (202, 204) and not content:
        assert b"content-type" not in sent
    elif method != "OPTIONS" and path != "/docs":
        json.loads(content)
        assert sent[b"content-type"] == b"application/json"
    if status == 201:
        name = json.loads(content)["name"]
        location = sent[b"location"].decode().removeprefix("http://127.0.0.1:8083")
        assert json.loads(asyncio.run(ask(app, "GET", location, "", {}, None))[2])["name"] == name


NAMES = st.sampled_from(["a", "b c", "d/e", "%2F", "é", "..", "f;g", "?#"])
GOOD = {"connector.class": CLASS, "topic": "t"}
STEPS = st.tuples(
    NAMES,
    st.one_of(
        st.tuples(st.just("POST"), st.just(""), st.sampled_from([GOOD, {**GOOD, "tasks.max": 3}, {**GOOD, "tasks.max": "0"}])),
        st.tuples(st.just("PUT"), st.just("/config"), st.sampled_from([GOOD, {**GOOD, "tasks.max": 2}, {"topic": "t"}])),
        st.tuples(st.just("PATCH"), st.just("/config"), st.sampled_from([{"tasks.max": "2"}, {"topic": None}, {"x": 1.50}])),
        st.tuples(st.just("PATCH"), st.just("/offsets"), st.just({"offsets": [{"partition": {"p": 1}, "offset": {"o": 2}}]})),
        st.tuples(
            st.sampled_from(["GET", "DELETE", "PUT", "HEAD"]),
            st.sampled_from(
                [
                    "",
                    "/config",
                    "/status",
                    "/tasks",
                    "/tasks/0/status",
                    "/topics",
                    "/topics/reset",
                    "/offsets",
                    "/pause",
                    "/resume",
                    "/stop",
                ]
            ),
            st.none(),
        ),
        st.tuples(st.just("POST"), st.sampled_from(["/restart", "/restart?includeTasks=true", "/tasks/1/restart"]), st.none()),
    ),
)


@settings(max_examples=examples(40))
@given(st.lists(STEPS, max_size=25))
def test_connectors_are_what_requests_made_of_them(steps):
    app = create_app(MemoryHerder())
    made: set[str] = set()
    for name, (method, path, content) in steps:
        body = None if content is None else json.dumps({"name": name, "config": content} if method == "POST" else content).encode()
        target = "/connectors" if method == "POST" and content is not None else f"/connectors/{quote(name, safe='')}{path}"
        where, _, query = target.partition("?")
        headers = {} if body is None else {"content-type": "application/json"}
        status, _, answer = asyncio.run(ask(app, method, where, query, headers, body))
        assert status < 500
        assert status != 404 or name not in made or "/tasks/" in path
        if status == 201:
            assert name not in made
            made.add(name)
            assert json.loads(answer)["name"] == name
        elif (method, path, status) == ("DELETE", "", 204):
            made.remove(name)
        assert set(json.loads(asyncio.run(ask(app, "GET", "/connectors", "", {}, None))[2])) == made
