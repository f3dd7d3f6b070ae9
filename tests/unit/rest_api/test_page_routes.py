"""The page of the worker over HTTP: its files, its policy, who may read and change what (`rest.ui`)."""

import gzip
import json
import re
from http.client import HTTPConnection

import pytest

from connect_py.app.services.memory_herder import CLASS, MemoryHerder
from connect_py.errors import ConfigError
from rest_api import RestConfig, Server, create_app
from tests.paths import ROOT
from tests.vendor import problems

UI = ROOT / "rest_api" / "ui"
CONFIG = {"connector.class": CLASS, "topic": "lines", "secret": "planted"}
BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


@pytest.fixture(scope="module")
def ask():
    """Asks a worker with these properties; answers (status, headers, body)."""
    servers = {}

    def send(method, path, body=None, headers=None, **properties):
        key = tuple(sorted(properties.items()))
        if key not in servers:
            config = RestConfig.from_worker(
                {"listeners": "http://127.0.0.1:0", **{n.replace("_", "."): v for n, v in properties.items()}}, {}
            )
            herder = MemoryHerder()
            herder.put_connector("c", {"name": "c", **CONFIG}, may_replace=True)
            servers[key] = Server(config.listeners)
            servers[key].start(create_app(herder, config))
        connection = HTTPConnection("127.0.0.1", int(servers[key].urls[0].rpartition(":")[2]), timeout=60)
        try:
            content = {"Content-Type": "application/json"} if body is not None else {}
            connection.request(method, path, None if body is None else json.dumps(body), {**content, **(headers or {})})
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    yield send
    for server in servers.values():
        server.stop(2)


def test_browsers_are_led_to_the_page_and_clients_get_json(ask):
    status, headers, _ = ask("GET", "/", headers=BROWSER)
    assert (status, headers["location"]) == (302, "ui/")
    for accept in ({}, {"Accept": "*/*"}, {"Accept": "application/json"}, {"Accept": "application/json, text/html"}):
        assert ask("GET", "/", headers=accept)[0] == 200
    assert ask("GET", "/ui", headers=BROWSER)[1]["location"] == "ui/"


def test_the_page_may_load_and_call_nothing_but_the_worker_and_is_framed_by_nobody(ask):
    status, headers, body = ask("GET", "/ui/", headers=BROWSER)
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    policy = headers["content-security-policy"]
    for rule in ("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"):
        assert rule in policy
    assert "unsafe" not in policy
    page = body.decode()
    assert not re.search(r"<script(?![^>]*\bsrc=)|\sstyle=|\son\w+=", page)
    assert not re.search(r"https?://", page)


def test_files_have_a_gzip_form_and_an_etag_by_which_they_are_not_sent_again(ask):
    status, headers, body = ask("GET", "/ui/vendor/uplot.js", headers={"Accept-Encoding": "gzip"})
    assert (status, headers["content-encoding"], headers["content-type"]) == (200, "gzip", "text/javascript; charset=utf-8")
    assert gzip.decompress(body) == (UI / "vendor" / "uplot.js").read_bytes()
    assert ask("GET", "/ui/vendor/uplot.js", headers={"If-None-Match": headers["etag"]})[0] == 304
    assert ask("GET", "/ui/vendor/uplot.js")[2] == (UI / "vendor" / "uplot.js").read_bytes()
    for path in ("/ui/nothing.js", "/ui/vendor/vendor.toml", "/ui/vendor", "/ui/../config.py", "/ui/%2e%2e/config.py"):
        assert ask("GET", path)[0] in (400, 404)


def test_the_list_is_not_sent_again_while_nothing_changes(ask):
    status, headers, body = ask("GET", "/ui/api/state")
    assert (status, list(json.loads(body)["connectors"])) == (200, ["c"])
    assert ask("GET", "/ui/api/state?since=1", headers={"If-None-Match": headers["etag"]})[0] == 304


def test_secrets_are_hidden_and_a_hidden_one_is_taken_back(ask):
    shown = json.loads(ask("GET", "/ui/api/connectors/c/config")[2])
    assert shown["secret"] == "[hidden]"
    status, _, body = ask("PUT", "/ui/api/connectors/c/config", {**shown, "topic": "other"})
    assert (status, json.loads(body)["secret"]) == (200, "[hidden]")
    assert json.loads(ask("GET", "/connectors/c/config")[2])["secret"] == "planted"
    assert ask("PUT", "/ui/api/connectors/c/config?create=true", shown)[0] == 409


def test_read_only_shows_and_changes_nothing(ask):
    read_only = {"rest_ui": "read-only"}
    assert json.loads(ask("GET", "/ui/api/worker", **read_only)[2])["mode"] == "read-only"
    status, _, body = ask("PUT", "/ui/api/connectors/c/config", CONFIG, **read_only)
    assert status == 403
    assert "rest.ui" in json.loads(body)["message"]
    assert ask("PUT", "/ui/api/validate", {"name": "c", **CONFIG}, **read_only)[0] == 200
    assert ask("POST", "/ui/api/doctor", {"name": "c", **CONFIG}, **read_only)[0] == 200
    assert ask("POST", "/ui/api/tables", {"name": "c", **CONFIG}, **read_only)[0] == 200


def test_tables_are_listed_for_this_page_alone(ask):
    status, _, body = ask("POST", "/ui/api/tables", {"name": "c", **CONFIG})
    assert (status, json.loads(body)["tables"][0]["name"]) == (200, "public.a")
    for path in ("/ui/api/tables", "/connector-plugins/FileStreamSource/tables"):
        assert ask("POST", path, CONFIG, {"Sec-Fetch-Site": "cross-site"})[0] == 403
    assert ask("POST", "/ui/api/tables", CONFIG, rest_ui="off")[0] == 404
    assert ask("POST", "/connector-plugins/FileStreamSource/tables", {"name": "c", **CONFIG}, rest_ui="off")[0] == 200


def test_a_comparison_of_tables_is_begun_shown_and_cancelled(ask):
    path = "/ui/api/connectors/c/verification"
    assert (ask("GET", path)[0], ask("GET", path)[2]) == (200, b"null")
    status, _, body = ask("POST", f"{path}?table=public.a&table=public.b")
    assert (status, json.loads(body)["state"], json.loads(body)["tables"]) == (202, "running", ["public.a", "public.b"])
    assert json.loads(body)["topics"] is False
    assert json.loads(ask("POST", f"{path}?topics=true")[2])["topics"] is True
    assert json.loads(ask("GET", path)[2])["state"] == "running"
    assert json.loads(ask("DELETE", path)[2])["state"] == "cancelled"
    assert {ask(method, "/ui/api/connectors/none/verification")[0] for method in ("GET", "POST", "DELETE")} == {404}
    for method in ("POST", "DELETE"):
        status, _, body = ask(method, path, rest_ui="read-only")
        assert (status, "rest.ui" in json.loads(body)["message"]) == (403, True)
        assert ask(method, path, headers={"Sec-Fetch-Site": "cross-site"})[0] == 403


def test_more_is_logged_for_a_while_and_read_only_refuses_that(ask):
    path = "/ui/api/connectors/c/debug"
    assert ask("PUT", f"{path}?seconds=600")[0] == 204
    assert ask("PUT", f"{path}?seconds=0")[0] == 204
    assert ask("PUT", f"{path}?seconds=86400")[0] == 400
    assert ask("PUT", "/ui/api/connectors/none/debug")[0] == 404
    assert ask("PUT", path, rest_ui="read-only")[0] == 403
    assert ask("PUT", path, headers={"Sec-Fetch-Site": "cross-site"})[0] == 403


def test_off_leaves_the_api_as_it_is(ask):
    assert ask("GET", "/", headers=BROWSER, rest_ui="off")[0] == 200
    assert ask("GET", "/ui/", headers=BROWSER, rest_ui="off")[0] == 404
    assert ask("GET", "/ui/api/state", rest_ui="off")[0] == 404
    with pytest.raises(ConfigError, match="full, read-only or off"):
        RestConfig.from_worker({"rest.ui": "sometimes"}, {})


@pytest.mark.parametrize("headers", [{"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}])
def test_pages_of_other_sites_read_nothing_and_change_nothing(ask, headers):
    for method, path, body in (
        ("POST", "/connectors/c/restart", None),
        ("PUT", "/ui/api/connectors/c/config", CONFIG),
        ("DELETE", "/connectors/c", None),
    ):
        assert ask(method, path, body, headers)[0] == 403
    status, answer, _ = ask("GET", "/ui/api/state", headers=headers)
    assert status == 200
    assert "access-control-allow-origin" not in answer
    allowed = {"access_control_allow_origin": "https://evil.example"}
    assert (
        ask("POST", "/connectors/c/restart", headers={"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}, **allowed)[0]
        == 204
    )


@pytest.mark.parametrize("origin", ["same-origin", "same-site", "none"])
def test_a_page_of_this_site_and_a_typed_address_may_change_things(ask, origin):
    assert ask("POST", "/connectors/c/restart", headers={"Sec-Fetch-Site": origin})[0] == 204


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8083", "127.evil.example.", "192.0.2.7"])
def test_a_loopback_listener_does_not_answer_to_foreign_names(ask, host):
    status, _, body = ask("GET", "/connectors/c/config", headers={"Host": host})
    assert status == 421
    assert "rest.allowed.hosts" in json.loads(body)["message"]


@pytest.mark.parametrize("host", ["localhost", "localhost:1", "LOCALHOST:8083", "127.0.0.1:8083", "127.9.9.9", "[::1]:8083"])
def test_a_loopback_listener_answers_to_its_own_names(ask, host):
    assert ask("GET", "/connectors", headers={"Host": host})[0] == 200
    assert ask("GET", "/connectors", headers={"Host": "box.example"}, rest_advertised_host_name="box.example")[0] == 200
    assert ask("GET", "/connectors", headers={"Host": "box.example"}, rest_allowed_hosts="box.example")[0] == 200


def test_a_listener_on_all_interfaces_answers_to_any_name(ask):
    assert ask("GET", "/connectors", headers={"Host": "any.example"}, listeners="http://:0")[0] == 200


def test_the_files_of_others_are_as_they_were_published():
    assert list(problems()) == []


def test_modules_of_the_page_can_be_read_in_one_sitting():
    sizes = {path.name: len(path.read_text().splitlines()) for path in UI.glob("*.js")}
    assert sizes
    assert {name: size for name, size in sizes.items() if size > 250} == {}
