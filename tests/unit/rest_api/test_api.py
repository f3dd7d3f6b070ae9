"""The REST API over a herder in memory: statuses, headers and bodies as Kafka Connect 4.3 gives them."""

import asyncio
import json
import logging
import re
import socket
import threading
from http.client import HTTPConnection
from pathlib import Path

import pytest

from connect_py.app.services.memory_herder import CLASS, MemoryHerder
from connect_py.errors import ConfigError, ConflictError, ConnectError
from connect_py.herder.base import Health
from connect_py.log.levels import Loggers
from rest_api import RestConfig, Server, create_app, serve
from rest_api.listeners import parse_listeners
from rest_api.models import ENDING
from rest_api.waiting import Gate
from tests.canary import within
from tests.waiting import let_time_pass

CONFIG = {"connector.class": CLASS, "topic": "lines", "tasks.max": "2"}
JSON = {"Content-Type": "application/json"}


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.raw = response.read()

    @property
    def body(self):
        return json.loads(self.raw)

    @property
    def error(self):
        assert set(self.body) == {"error_code", "message"}
        assert self.body["error_code"] == self.status
        return self.status, self.body["message"]


class Client:
    def __init__(self, port):
        self.port = port

    def __call__(self, method, path, body=None, headers=None):
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        try:
            connection.putrequest(method, path)
            for name, value in {**(JSON if data is not None else {}), **(headers or {})}.items():
                connection.putheader(name, value)
            if data is not None:
                connection.putheader("Content-Length", str(len(data)))
            connection.endheaders(data)
            return Answer(connection.getresponse())
        finally:
            connection.close()


@pytest.fixture(scope="module")
def herder():
    return MemoryHerder()


@pytest.fixture(scope="module")
def client(herder):
    server = serve(create_app(herder, RestConfig(max_body_bytes=100_000)), ["http://127.0.0.1:0"])
    yield Client(int(server.urls[0].rpartition(":")[2]))
    server.stop(5)


@pytest.fixture
def connector(client):
    client("PUT", "/connectors/c/config", CONFIG)
    yield "c"
    client("DELETE", "/connectors/c")


def test_root_shows_version_and_cluster(client):
    answer = client("GET", "/")
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert answer.raw == b'{"version":"4.3.1","commit":"unknown","kafka_cluster_id":"memory"}'


@pytest.mark.parametrize(("state", "status"), [("healthy", 200), ("starting", 503), ("unhealthy", 500)])
def test_health_has_its_own_shape(client, herder, state, status):
    before, herder.condition = herder.condition, Health(state, "m")
    answer = client("GET", "/health")
    herder.condition = before
    assert (answer.status, answer.body) == (status, {"status": state, "message": "m"})


def test_create_answers_201_with_an_absolute_location_and_no_tasks_yet(client):
    answer = client("POST", "/connectors", {"name": " new ", "config": CONFIG})
    assert answer.status == 201
    assert answer.headers["location"] == f"http://127.0.0.1:{client.port}/connectors/new"
    assert list(answer.body) == ["name", "config", "tasks", "type"]
    assert answer.body["config"] == {**CONFIG, "name": "new"}
    assert answer.body["tasks"] == []
    assert client("POST", "/connectors", {"name": "new", "config": CONFIG}).error == (409, "Connector new already exists")
    assert client("DELETE", "/connectors/new").status == 204


def test_put_creates_with_201_and_replaces_with_200(client):
    assert client("PUT", "/connectors/p/config", CONFIG).status == 201
    again = client("PUT", "/connectors/p/config", {**CONFIG, "tasks.max": 1})
    assert again.status == 200
    assert "location" not in again.headers
    assert again.body["config"]["tasks.max"] == "1"
    assert again.body["tasks"] == [{"connector": "p", "task": 0}]
    client("DELETE", "/connectors/p")


def test_numbers_and_booleans_of_a_configuration_become_their_own_texts(client):
    answer = client("PUT", "/connectors/n/config", b'{"connector.class":"FileStreamSource","topic":1.50,"secret":true}')
    assert answer.body["config"] == {"connector.class": "FileStreamSource", "topic": "1.50", "secret": "true", "name": "n"}
    client("DELETE", "/connectors/n")


def test_patch_removes_what_is_null(client, connector):
    answer = client("PATCH", "/connectors/c/config", {"tasks.max": None, "topic": "other"})
    assert answer.status == 200
    assert answer.body["config"] == {"connector.class": CLASS, "topic": "other", "name": "c"}


@pytest.mark.parametrize(
    "name", ["with space", "é漢", "semi;colon", "a?b#c", "plus+", "team/a", "a%2Fb", "back\\slash", "100%", "/", "a/../b"]
)
def test_any_name_works_percent_encoded(client, name):
    created = client("POST", "/connectors", {"name": name, "config": CONFIG})
    assert created.status == 201
    path = created.headers["location"].partition(str(client.port))[2]
    assert client("GET", path).body["name"] == name
    assert client("GET", path + "/status").body["name"] == name
    assert client("GET", path + "/tasks/1/status").body["id"] == 1
    assert client("DELETE", path).status == 204


@pytest.mark.parametrize(
    "path", ["/connectors/%2e%2e", "/connectors/%2E", "/connectors/c/tasks%2F0", "/connector-plugins/a%2Fb/config", "/admin/loggers/a%25b"]
)
def test_a_path_that_could_mean_another_one_is_refused_as_jetty_does(client, path):
    assert client("GET", path).status == 400


@pytest.mark.parametrize("name", [".", ".."])
def test_a_name_that_no_path_leads_to_is_refused(client, name):
    assert client("POST", "/connectors", {"name": name, "config": CONFIG}).error[0] == 400


def test_status_lists_tasks_by_number_without_traces(client, connector):
    state = {"state": "RUNNING", "worker_id": "127.0.0.1:8083", "version": "4.3.1"}
    body = client("GET", "/connectors/c/status").body
    assert body == {"name": "c", "connector": state, "tasks": [{"id": 0, **state}, {"id": 1, **state}], "type": "source"}
    assert list(body["tasks"][0]) == ["id", "state", "worker_id", "version"]
    assert client("GET", "/connectors/c/tasks/1/status").body == {"id": 1, **state}


def test_expand_gives_a_map_of_what_was_asked(client, connector):
    assert client("GET", "/connectors").body == ["c"]
    assert client("GET", "/connectors?expand=bogus").body == {"c": {}}
    assert client("GET", "/connectors?expand").body == {"c": {}}
    both = client("GET", "/connectors?expand=info&expand=status&expand=info").body["c"]
    assert list(both) == ["info", "status"]
    assert both["info"]["name"] == both["status"]["name"] == "c"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("PUT", "pause", 202), ("PUT", "resume", 202), ("PUT", "stop", 204), ("POST", "restart", 204), ("PUT", "topics/reset", 202)],
)
def test_commands_answer_without_body_and_content_type(client, connector, method, path, status):
    answer = client(method, f"/connectors/c/{path}")
    assert (answer.status, answer.raw) == (status, b"")
    assert "content-type" not in answer.headers


def test_restart_with_parameters_shows_what_will_restart(client, connector):
    answer = client("POST", "/connectors/c/restart?includeTasks=TRUE")
    assert answer.status == 202
    assert [task["state"] for task in answer.body["tasks"]] == ["RESTARTING"] * 2
    assert client("POST", "/connectors/c/restart?onlyFailed=true").body["connector"]["state"] == "RUNNING"
    assert client("POST", "/connectors/c/restart?includeTasks=maybe").status == 204
    assert client("POST", "/connectors/c/restart?includeTasks=true&includeTasks=false").status == 202, "the first one counts"
    assert client("POST", "/connectors/c/tasks/1/restart").status == 204


def test_a_stopped_connector_has_no_tasks_and_takes_offsets(client, connector):
    refused = client("DELETE", "/connectors/c/offsets").error
    assert refused[0] == 400
    assert "'/connectors/c/stop' endpoint" in refused[1]
    client("PUT", "/connectors/c/stop")
    assert client("GET", "/connectors/c/tasks").body == []
    entry = {"partition": {"filename": "f", "n": 1.5}, "offset": {"position": 2**53 + 1}}
    assert client("PATCH", "/connectors/c/offsets", {"offsets": [entry]}).body == {
        "message": "The offsets for this connector have been altered successfully"
    }
    assert client("GET", "/connectors/c/offsets").body == {"offsets": [entry]}
    client("PATCH", "/connectors/c/offsets", {"offsets": [{**entry, "offset": None}]})
    assert client("GET", "/connectors/c/offsets").body == {"offsets": []}
    assert client("DELETE", "/connectors/c/offsets").status == 200


def test_signals_are_taken_and_notifications_are_numbered(client, connector):
    assert client("POST", "/connectors/c/signals", {"id": "s", "type": "log", "data": {"message": "x"}}).body == {"id": "s"}
    made_up = client("POST", "/connectors/c/signals", {"type": "log"}).body["id"]
    notes = client("GET", "/connectors/c/notifications").body["notifications"]
    assert [note["id"] for note in notes] == ["s", made_up]
    assert client("GET", f"/connectors/c/notifications?since={notes[0]['sequence']}").body["notifications"] == notes[1:]
    assert client("GET", "/connectors/c/notifications?limit=1").body["notifications"] == notes[1:]
    assert client("GET", "/connectors/c/notifications?limit=0").body["notifications"] == []
    assert client("GET", "/connectors/c/notifications?since=0&limit=1").body["notifications"] == notes[:1]
    for query in ("since=x", "since=-1", "limit=", "limit=1.5", "since=9999999999999999999"):
        assert client("GET", f"/connectors/c/notifications?{query}").error[0] == 400
    for body in ({}, {"type": 7}, {"type": " "}, {"type": "log", "id": ""}, {"type": "log", "data": []}, {"type": "log", "colour": 1}):
        assert client("POST", "/connectors/c/signals", body).error[0] == 400
    assert client("POST", "/connectors/ghost/signals", {"type": "log"}).error == (404, "Connector ghost not found")
    client("PUT", "/connectors/c/pause")
    assert client("POST", "/connectors/c/signals", {"type": "log"}).error[0] == 409


def test_topics_of_a_connector_and_of_none(client, connector):
    assert client("GET", "/connectors/c/topics").body == {"c": {"topics": ["lines"]}}
    assert client("GET", "/connectors/ghost/topics").body == {"ghost": {"topics": []}}
    assert client("PUT", "/connectors/ghost/topics/reset").status == 202


def test_initial_state_stopped_creates_without_tasks(client):
    client("POST", "/connectors", {"name": "s", "config": CONFIG, "initial_state": "stopped"})
    assert client("GET", "/connectors/s/status").body["connector"]["state"] == "STOPPED"
    client("DELETE", "/connectors/s")


GHOSTS = [
    ("GET", "", "Connector ghost not found"),
    ("GET", "/config", "Connector ghost not found"),
    ("GET", "/tasks", "Connector ghost not found"),
    ("GET", "/offsets", "Connector ghost not found"),
    ("DELETE", "", "Connector ghost not found"),
    ("DELETE", "/offsets", "Connector ghost not found"),
    ("GET", "/status", "No status found for connector ghost"),
    ("GET", "/tasks/0/status", "No status found for task ghost-0"),
    ("PUT", "/pause", "Unknown connector ghost"),
    ("PUT", "/resume", "Unknown connector ghost"),
    ("PUT", "/stop", "Unknown connector ghost"),
    ("POST", "/restart", "Unknown connector: ghost"),
    ("POST", "/restart?includeTasks=true", "Unknown connector: ghost"),
    ("POST", "/tasks/0/restart", "Unknown connector: ghost"),
    ("GET", "/notifications", "Connector ghost not found"),
]


@pytest.mark.parametrize(("method", "path", "message"), GHOSTS)
def test_an_unknown_connector_is_404_with_the_resources_own_text(client, method, path, message):
    answer = client(method, "/connectors/ghost" + path)
    assert answer.error == (404, message)
    assert answer.headers["content-type"] == "application/json"


def test_unknown_tasks(client, connector):
    assert client("POST", "/connectors/c/tasks/7/restart").error == (404, "Unknown task: c-7")
    for text in ("x", "99999999999", "1.0"):
        assert client("GET", f"/connectors/c/tasks/{text}/status").error == (404, "HTTP 404 Not Found")
    assert client("GET", "/connectors/c/tasks/+01/status").body["id"] == 1


MISTAKES = [
    (b"", "no body"),
    (b'{"name": ', "not JSON"),
    (b'{"name": "x"} x', "not JSON"),
    (b'{"name": NaN}', "not JSON"),
    (b"\xff", "not JSON in UTF-8"),
    (b'{"name":"\\ud800","config":{}}', "not JSON in UTF-8"),
    (b"[" * 101 + b"]" * 101, "nested more than 100 levels deep"),
    (b"[" * 100_000, "not JSON|nested more than"),
    (b"[]", "must be a JSON object; it is an array"),
    (b"5", "must be a JSON object"),
    (b'{"name":"x","config":{},"color":1}', 'Unrecognized field "color"'),
    (b'{"name":"x"}', 'no "config"'),
    (b'{"name":{},"config":{}}', '"name" must be a text'),
    (b'{"name":"x","config":[]}', '"config" must be a JSON object'),
    (b'{"name":"x","config":{"a":{}}}', 'an object under "a"'),
    (b'{"name":"x","config":{"a":[]}}', 'an array under "a"'),
    (b'{"name":"x","config":{},"initial_state":"ASLEEP"}', "RUNNING, PAUSED, STOPPED"),
    (b'{"name":"x","config":{"name":"y"}}', r"Connector name configuration \(y\) doesn't match connector name in the URL \(x\)"),
    (b'{"name":"x","config":{"tasks.max":1}}', r"Connector config {tasks.max=1, name=x} contains no connector type"),
    (json.dumps({"name": "", "config": CONFIG}).encode(), "String may not be empty"),
    (json.dumps({"name": "x", "config": {**CONFIG, "tasks.max": "0"}}).encode(), "contains the following 1 error"),
]


@pytest.mark.parametrize(("body", "message"), MISTAKES, ids=[m for _, m in MISTAKES])
def test_a_mistake_in_the_body_is_400_with_a_sentence(client, body, message):
    status, text = client("POST", "/connectors", body).error
    assert status == 400
    assert re.search(message, text)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "Partitions / offsets need to be provided"),
        ({"offsets": []}, "Partitions / offsets need to be provided"),
        ({"offsets": None}, "Partitions / offsets need to be provided"),
        ({"offsets": {"a": 1}}, "must be a JSON array"),
        ({"offsets": [5]}, "must be a JSON object"),
        ({"offsets": [{"partition": 5}]}, '"partition" must be a JSON object'),
        ({"offsets": [{"partition": {}, "offset": []}]}, '"offset" must be a JSON object'),
        ({"offsets": [{"partition": {}}], "x": 1}, "Unrecognized field"),
    ],
)
def test_offsets_of_a_wrong_shape_are_refused(client, connector, body, message):
    status, text = client("PATCH", "/connectors/c/offsets", body).error
    assert (status, message in text) == (400, True)


@pytest.mark.parametrize(
    ("method", "path", "headers", "body", "status"),
    [
        ("GET", "/nope", {}, None, 404),
        ("GET", "/Connectors", {}, None, 404),
        ("GET", "/connectors/c/tasks-config", {}, None, 404),
        ("PUT", "/connectors", {}, None, 405),
        ("FOO", "/connectors", {}, None, 405),
        ("HEAD", "/connectors/c/pause", {}, None, 405),
        ("POST", "/connectors", {"Content-Type": "text/plain"}, b"name=x", 415),
        ("POST", "/connectors", {"Content-Type": "application/x-www-form-urlencoded"}, b"{}", 415),
        ("PUT", "/connectors/c/pause", {"Content-Type": "text/plain"}, None, 415),
        ("GET", "/connectors", {"Accept": "text/html"}, None, 406),
    ],
)
def test_what_the_container_refuses_carries_no_content_type(client, method, path, headers, body, status):
    answer = client(method, path, body, headers)
    assert answer.status == status
    assert "content-type" not in answer.headers
    if method != "HEAD":
        phrase = {404: "Not Found", 405: "Method Not Allowed", 406: "Not Acceptable", 415: "Unsupported Media Type"}[status]
        assert answer.error == (status, f"HTTP {status} {phrase}")


@pytest.mark.parametrize(
    "path", ["/connectors/a%zz", "/connectors/%ff", "/connectors/a%00b", "/connectors/a%0Ab", "//connectors", "/connectors//status"]
)
def test_a_path_that_cannot_be_read_is_400(client, path):
    assert client("GET", f"/connectors/{path}").error[0] == 400


def test_a_trailing_slash_and_matrix_parameters_change_nothing(client, connector):
    assert client("GET", "/connectors/").body == ["c"]
    assert client("GET", "/connectors/c;x=y/config;z").body["name"] == "c"


def test_options_lists_methods_as_the_reference_does(client):
    for path, methods in {
        "/connectors": "HEAD, POST, GET, OPTIONS",
        "/connectors/x": "HEAD, DELETE, GET, OPTIONS",
        "/connectors/x/config": "HEAD, GET, OPTIONS, PUT, PATCH",
        "/connectors/x/offsets": "HEAD, DELETE, GET, OPTIONS, PATCH",
        "/connectors/x/restart": "POST, OPTIONS",
    }.items():
        answer = client("OPTIONS", path)
        assert (answer.status, answer.headers["content-type"], answer.raw.decode()) == (200, "text/plain", methods)
        assert answer.headers["allow"] == methods.replace(" ", "")


def test_head_is_get_without_the_body(client):
    head, get = client("HEAD", "/"), client("GET", "/")
    assert (head.status, head.raw, head.headers["content-length"]) == (200, b"", get.headers["content-length"])


def test_a_body_beyond_the_limit_is_413(client):
    status, text = client("POST", "/connectors", b'{"name":"' + b"x" * 200_000).error
    assert status == 413
    assert "100000 bytes" in text


def test_plugins_are_connectors_unless_all_are_wanted(client):
    source = {"class": CLASS, "type": "source", "version": "4.3.1"}
    assert client("GET", "/connector-plugins").body == [source]
    everything = client("GET", "/connector-plugins?connectorsOnly=false").body
    assert everything == [source, {"class": "org.apache.kafka.connect.json.JsonConverter", "type": "converter"}]


def test_definitions_show_every_attribute_in_order(client):
    keys = client("GET", "/connector-plugins/FileStreamSource/config").body
    assert keys[2] == {
        "name": "tasks.max", "type": "INT", "required": False, "default_value": "1", "importance": "HIGH", "documentation": "",
        "group": "Common", "order_in_group": 3, "width": "NONE", "display_name": "tasks.max", "dependents": [],
    }  # fmt: skip
    assert list(keys[2])[6:9] == ["group", "order_in_group", "width"]
    assert client("GET", "/connector-plugins/Nothing/config").error == (404, "Unknown plugin Nothing.")


def test_validation_lists_errors_with_200_and_hides_secrets(client):
    config = {**CONFIG, "name": "v", "tasks.max": "abc", "secret": "hunter2"}
    answer = client("PUT", "/connector-plugins/FileStreamSource/config/validate", config)
    assert (answer.status, answer.body["error_count"], answer.body["groups"]) == (200, 2, ["Common"])
    assert list(answer.body) == ["name", "error_count", "groups", "configs"]
    values = {pair["value"]["name"]: pair["value"] for pair in answer.body["configs"]}
    assert values["tasks.max"]["errors"] == [
        "Invalid value abc for configuration tasks.max: Not a number of type INT",
        "Invalid value null for configuration tasks.max: Value must be non-null",
    ]
    assert values["secret"]["value"] == "[hidden]"
    assert b"hunter2" not in answer.raw


def test_a_doctors_findings_are_answered_with_200_and_the_commands_code(client):
    answer = client("POST", "/connector-plugins/FileStreamSource/doctor", {"name": "d", "topic": "t"})
    assert (answer.status, answer.body) == (200, {"code": 0, "findings": [], "looked_at": [], "unseen": []})
    found = client("POST", "/connector-plugins/FileStreamSource/doctor", {"name": "d"}).body
    assert found["code"] == 1
    assert list(found["findings"][0]) == ["check", "severity", "what", "why", "who", "role", "statements", "advice"]
    assert found["findings"][0]["who"] == "you"
    refused = client("POST", "/connector-plugins/FileStreamSink/doctor", CONFIG).error
    assert refused == (400, f"Included connector type {CLASS} does not match request type FileStreamSink")


def test_the_tables_that_a_source_could_capture_are_answered(client):
    path = "/connector-plugins/FileStreamSource/tables"
    answer = client("POST", path, {"name": "d", "topic": "t"})
    assert (answer.status, answer.body) == (
        200,
        {
            "property": "table.include.list",
            "entries": ["public.*"],
            "replaces": ["table.exclude.list"],
            "tables": [{"name": "public.a", "captured": True, "rows": 7, "entry": r"public\.a", "matched_by": [0], "fixed_by": None}],
            "left_out": 0,
        },
    )
    refused = client("POST", "/connector-plugins/FileStreamSink/tables", CONFIG).error
    assert refused == (400, f"Included connector type {CLASS} does not match request type FileStreamSink")


def test_validation_of_another_plugin_than_the_paths_is_refused(client):
    refused = client("PUT", "/connector-plugins/FileStreamSink/config/validate", CONFIG).error
    assert refused == (400, f"Included connector type {CLASS} does not match request type FileStreamSink")


def test_loggers_are_read_and_set_by_prefix(client):
    assert client("GET", "/admin/loggers/no.such.logger").error == (404, "Logger no.such.logger not found.")
    assert client("PUT", "/admin/loggers/parity.x", {"level": "DEBUG"}).body == ["parity.x"]
    set_level = client("GET", "/admin/loggers/parity.x").body
    assert set_level["level"] == "DEBUG"
    assert isinstance(set_level["last_modified"], int)
    assert client("PUT", "/admin/loggers/parity", {"level": "error"}).body == ["parity", "parity.x"]
    assert client("PUT", "/admin/loggers/parity", {"level": "error"}).body == []
    assert "root" in client("GET", "/admin/loggers").body
    assert client("GET", "/admin/loggers/ROOT").body["last_modified"] is None
    assert client("PUT", "/admin/loggers/a", {"level": "LOUD"}).error == (404, "invalid log level 'LOUD'.")
    assert client("PUT", "/admin/loggers/a", {}).error == (400, "Desired 'level' parameter was not specified in request.")


def test_cluster_scope_is_passed_on(client, herder):
    assert client("PUT", "/admin/loggers/a.b?scope=cluster", {"level": "warn"}).status == 204
    assert herder.logger_levels == [("a.b", "WARN")]


def test_a_java_name_sets_this_projects_packages():
    import logging

    before = logging.getLogger("connectors.postgres").level
    Loggers().set_level("io.debezium.connector.postgresql", "TRACE")
    assert logging.getLogger("connectors.postgres").level == 5
    logging.getLogger("connectors.postgres").setLevel(before)


def test_request_ids_are_kept_or_made(client):
    assert client("GET", "/", headers={"X-Request-Id": "abc-1"}).headers["x-request-id"] == "abc-1"
    made = client("GET", "/", headers={"X-Request-Id": "evil\tvalue {}"}).headers["x-request-id"]
    assert len(made) == 16


def test_a_defect_is_500_without_its_text_and_the_log_has_it(client, herder, caplog):
    def broken():
        raise KeyError("a secret detail")

    herder.connectors = broken
    answer = client("GET", "/connectors")
    assert answer.status == 500
    assert "secret" not in answer.body["message"]
    assert answer.headers["x-request-id"] in answer.body["message"]
    assert "a secret detail" in caplog.text


@pytest.mark.parametrize(
    ("error", "status"),
    [(ConflictError("rebalance"), 409), (ConfigError("bad"), 400), (ConnectError("The value is expected to be a Long"), 500)],
)
def test_errors_of_the_herder_have_their_status_and_text(client, herder, error, status):
    def refuse():
        raise error

    herder.connectors = refuse
    assert client("GET", "/connectors").error == (status, str(error))


def test_the_api_describes_itself_without_outside_resources(client):
    described = client("GET", "/openapi.json").body
    assert "/connectors/{connector}/status" in described["paths"]
    page = client("GET", "/docs", headers={"Accept": "text/html"})
    assert page.headers["content-type"].startswith("text/html")
    assert b"//" not in page.raw.replace(b"</", b"")
    assert "connect-src 'self'" in page.headers["content-security-policy"]


def _with_what_it_names(described, schema):
    text = json.dumps(schema)
    named = re.findall(r'"#/components/schemas/(\w+)"', text)
    return text + "".join(_with_what_it_names(described, described["components"]["schemas"][name]) for name in named)


def test_answers_are_described_when_the_document_is_asked_for(herder):
    """To do it at a worker's start takes as long as all the rest of the application."""
    app = create_app(herder)
    assert not [route for route in app.routes if getattr(route, "response_field", None) or getattr(route, "response_fields", None)]
    assert app.openapi()["paths"]["/"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    assert app.openapi() is app.openapi()


def test_every_operation_is_described_with_its_answers_and_refusals(client):
    described = client("GET", "/openapi.json").body
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            statuses = set(operation["responses"])
            assert {"400", "401", "406", "500"} <= statuses, (method, path)
            assert statuses & {"200", "201", "202", "204"}, (method, path)
            if "requestBody" in operation:
                assert {"413", "415"} <= statuses
                assert "examples" in _with_what_it_names(described, operation["requestBody"]["content"]["application/json"]["schema"])
    assert "securitySchemes" not in described["components"]


def test_slow_requests_do_not_keep_others_waiting(client, herder):
    gate, waiting = threading.Event(), threading.Semaphore(0)

    def slow():
        waiting.release()
        assert gate.wait(60)
        return []

    herder.connectors = slow
    threads = [threading.Thread(target=client, args=("GET", "/connectors")) for _ in range(60)]
    for thread in threads:
        thread.start()
    for _ in threads:
        assert waiting.acquire(timeout=60)
    assert client("GET", "/").status == 200
    gate.set()
    for thread in threads:
        thread.join(60)


def test_admin_endpoints_can_be_switched_off(herder):
    server = serve(create_app(herder, RestConfig.from_worker({"admin.listeners": ""})), ["http://127.0.0.1:0"])
    try:
        assert Client(int(server.urls[0].rpartition(":")[2]))("GET", "/admin/loggers").status == 404
    finally:
        server.stop(5)


def test_several_listeners_are_served_and_freed(herder):
    server = Server(parse_listeners(["http://127.0.0.1:0", "HTTP://localhost:0"]))
    ports = [int(url.rpartition(":")[2]) for url in server.bind()]
    server.start(create_app(herder))
    assert [Client(port)("GET", "/").status for port in ports] == [200, 200]
    server.stop(5)
    server.stop(5)
    with socket.create_server(("127.0.0.1", ports[0])):
        pass


def test_a_server_without_requests_wakes_up_once_a_second_and_ends_at_once(herder):
    others = set(threading.enumerate())
    server = serve(create_app(herder, RestConfig()), ["http://127.0.0.1:0"])
    (thread,) = (thread for thread in threading.enumerate() if thread.name == "rest-server" and thread not in others)

    def waits() -> int:
        lines = Path(f"/proc/self/task/{thread.native_id}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches"))

    before = waits()
    let_time_pass(2, "what is measured is a rate")
    woken = waits() - before
    with within(0.6, "a second between two looks is not waited for"):
        server.stop(5)
    assert woken <= 6, "twenty of uvicorn's"


@pytest.mark.parametrize("listener", ["8083", "http://host", "http://h:99999", "ftp://:1", "https://:8443"])
def test_a_listener_that_cannot_be_served_is_refused_at_once(listener):
    with pytest.raises(ConfigError):
        parse_listeners([listener])


def test_a_port_in_use_is_named():
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(ConfigError, match=f"127.0.0.1:{port} cannot be opened"):
            Server(parse_listeners([f"http://127.0.0.1:{port}"])).bind()


def test_pages_of_allowed_origins_may_call_and_every_answer_has_the_owners_headers(herder):
    properties = {
        "access.control.allow.origin": "https://ui.example",
        "access.control.allow.methods": "GET,PUT",
        "response.http.headers.config": 'set X-Frame-Options:DENY, "add Cache-Control:no-cache, no-store", setDate Expires:0',
    }
    server = serve(create_app(herder, RestConfig.from_worker(properties)), ["http://127.0.0.1:0"])
    try:
        ask = Client(int(server.urls[0].rpartition(":")[2]))
        answer = ask("GET", "/", headers={"Origin": "https://ui.example"})
        assert answer.headers["access-control-allow-origin"] == "https://ui.example"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["cache-control"] == "no-cache, no-store"
        assert answer.headers["expires"].endswith(" GMT")
        assert "access-control-allow-origin" not in ask("GET", "/", headers={"Origin": "https://evil.example"}).headers
        assert ask("GET", "/nope").headers["x-frame-options"] == "DENY"
        asked = {"Origin": "https://ui.example", "Access-Control-Request-Method": "PUT"}
        assert ask("OPTIONS", "/connectors/c/pause", headers=asked).headers["access-control-allow-methods"] == "GET,PUT"
    finally:
        server.stop(5)


@pytest.mark.parametrize("rules", ["X:1", "put X:1", "set X", "set bad name:1", "setDate Expires:soon"])
def test_a_malformed_rule_of_headers_stops_the_start(rules):
    with pytest.raises(ConfigError, match=r"response\.http\.headers\.config"):
        RestConfig.from_worker({"response.http.headers.config": rules})


def test_a_server_that_ends_by_itself_says_so_and_one_that_is_stopped_does_not():
    for by_itself in (True, False):
        ended = threading.Event()
        server = Server(parse_listeners(["http://127.0.0.1:0"]))
        app = create_app(MemoryHerder(), RestConfig())

        async def ends_its_loop_when_asked(scope, receive, send, app=app):
            if scope["type"] == "http":
                asyncio.get_running_loop().stop()
            await app(scope, receive, send)

        (url,) = server.start(ends_its_loop_when_asked, on_end=ended.set)
        if by_itself:
            with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), 10) as raw:
                raw.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert ended.wait(60)
        server.stop()
        assert ended.is_set() is by_itself


@pytest.mark.parametrize("is_starting", [False, True])
def test_a_request_that_waits_while_the_worker_ends_is_503_and_leaves_no_trace_in_the_log(is_starting, caplog):
    waiting, release = threading.Event(), threading.Event()

    class Busy(MemoryHerder):
        def connector_info(self, name):
            waiting.set()
            release.wait(30)
            return super().connector_info(name)

    class Watched(Gate):
        async def _answer(self):
            waiting.set()
            return await super()._answer()

    gate = Watched()
    if not is_starting:
        gate.open(create_app(Busy(), RestConfig()))
    server = serve(gate, ["http://127.0.0.1:0"])
    answers = []
    client = Client(int(server.urls[0].rpartition(":")[2]))
    request = threading.Thread(target=lambda: answers.append(client("GET", "/connectors/c")))
    request.start()
    assert waiting.wait(60)
    server.stop(0.5)
    request.join(60)
    release.set()
    (answer,) = answers
    assert answer.error == (503, ENDING)
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []


def test_javas_names_of_packages_are_loggers_from_the_start(client):
    known = client("GET", "/admin/loggers").body
    assert {"io.debezium", "org.apache.kafka.connect", "io.debezium.connector.postgresql"} <= known.keys()
    name = "io.debezium.connector.postgresql.PostgresConnector"
    assert client("GET", f"/admin/loggers/{name}").body["last_modified"] is None
    level = logging.getLogger("connectors.postgres").level
    try:
        logging.getLogger("connectors.postgres").setLevel(logging.ERROR)
        assert client("GET", f"/admin/loggers/{name}").body["level"] == "ERROR"
        assert client("GET", "/admin/loggers").body["io.debezium.connector.postgresql"]["level"] == "ERROR"
    finally:
        logging.getLogger("connectors.postgres").setLevel(level)
