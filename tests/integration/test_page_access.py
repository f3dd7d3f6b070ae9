"""Who may do what on the page of the worker, in a browser: a page that only shows things, a login, TLS."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from connect_py.app.services.process import free_port
from connect_py.app.services.worker import Worker
from rest_api.basic_auth import hashed
from tests.certificates import Identity
from tests.fix_browser import MISSING, SECONDS, Page
from tests.waiting import eventually

pytestmark = [pytest.mark.long, pytest.mark.services, pytest.mark.skipif(MISSING is not None, reason=MISSING or "")]

#: What may be used where nothing may be changed.
READING = {
    "search-connectors",
    "search-log",
    "log-level",
    "follow-log",
    "time-range",
    "read-offsets",
    "copy",
}


def lines_source(folder: Path, **more: str) -> dict[str, str]:
    (folder / "lines.txt").write_text("one\n")
    return {"connector.class": "FileStreamSource", "file": str(folder / "lines.txt"), "topic": "access-lines", **more}


def test_a_page_that_only_shows_things_has_no_control_that_changes_something_and_is_refused_one(
    browser: Any, make_worker: Callable[..., Worker], tmp_path: Path
) -> None:
    worker = make_worker(properties={"rest.ui": "read-only"})
    worker.create("lines", lines_source(tmp_path))
    sink = {"connector.class": "FileStreamSink", "file": str(tmp_path / "copy.txt"), "topics": "access-lines"}
    worker.create("copy", sink)
    broken = lines_source(tmp_path, transforms="c")
    broken |= {"transforms.c.type": "org.apache.kafka.connect.transforms.Cast$Value", "transforms.c.spec": "int32"}
    worker.request("POST", "/connectors", {"name": "broken", "config": broken})
    worker.wait_for("broken", "FAILED")
    eventually(lambda: worker.request("GET", "/connectors/lines/offsets")["offsets"], "offset stored", SECONDS)
    page = Page(browser, worker.url)
    seen: set[str] = set()
    for state in ("RUNNING", "STOPPED"):
        tab = page.open("")
        tab.wait_for_selector("tr.row")
        assert "read only" in tab.locator("header").inner_text()
        seen |= page.controls()
        for name in ("lines", "copy", "broken"):
            for view in ("overview", "tasks", "snapshot", "tables", "offsets", "config", "log"):
                page.open(f"#/connector/{name}/{view}")
                seen |= page.controls()
        tab = page.open("#/worker")
        tab.locator("details", has_text="loggers").locator("summary").click()
        seen |= page.controls()
        tab = page.open("#/new")
        assert "rest.ui" in tab.locator("main").inner_text()
        seen |= page.controls()
        if state == "RUNNING":
            worker.request("PUT", "/connectors/lines/stop")
            eventually(lambda: worker.status("lines")["connector"]["state"] == "STOPPED", "stop", SECONDS)
    assert seen <= READING, "controls that change something"
    assert {"search-connectors", "log-level", "read-offsets"} <= seen
    page.picture("read-only")
    for method, path in (
        ("PUT", "api/connectors/lines/config"),
        ("PUT", "api/connectors/lines/debug"),
        ("POST", "api/connectors/lines/verification"),
        ("DELETE", "api/connectors/lines/verification"),
    ):
        ask = "([method, path, body]) => fetch(path, {method, body, headers: {'Content-Type': 'application/json'}}).then(a => a.status)"
        assert page.tab.evaluate(ask, [method, path, "{}" if method == "PUT" else None]) == 403
    page.close()


def pauses_and_resumes(page: Page) -> None:
    """Create a connector on the page, pause and resume it: requests of all kinds are answered."""
    tab = page.open("")
    tab.wait_for_selector("tr.row")
    for word, state in (("Pause", "paused"), ("Resume", "running")):
        tab.get_by_role("button", name=f"{word} lines").click()
        tab.locator("tr.row .pill", has_text=state).wait_for()
    page.open("#/connector/lines/log")
    tab = page.open("#/worker")
    tab.get_by_text("group.id").first.wait_for()


def plain_and(make_worker: Callable[..., Worker], scheme: str, properties: Mapping[str, str]) -> tuple[Worker, str]:
    """Return a worker with a listener for the test, and the address of another one."""
    plain, other = free_port(), free_port()
    listeners = f"http://127.0.0.1:{plain},{scheme}://127.0.0.1:{other}"
    worker = make_worker(port=plain, properties={"listeners": listeners, **properties})
    return worker, f"{scheme}://127.0.0.1:{other}"


def test_the_page_works_by_tls(browser: Any, make_worker: Callable[..., Worker], tmp_path: Path) -> None:
    identity, store = Identity("worker"), tmp_path / "store.pem"
    store.write_text(identity.key_pem() + identity.chain_pem)
    worker, url = plain_and(make_worker, "https", {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(store)})
    worker.create("lines", lines_source(tmp_path))
    page = Page(browser, url, ignore_https_errors=True)
    pauses_and_resumes(page)
    assert page.tab.evaluate("location.protocol") == "https:"
    page.close()


def test_the_page_asks_for_a_login_and_works_with_it(browser: Any, make_worker: Callable[..., Worker], tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text(f"ann={hashed('s3cret')}\n")
    login = b64encode(b"ann:s3cret").decode()
    worker = make_worker(properties={"rest.basic.auth.file": str(users)}, headers={"Authorization": f"Basic {login}"})
    worker.create("lines", lines_source(tmp_path))
    stranger = Page(browser, worker.url)
    for path in ("/ui/", "/ui/main.js", "/ui/api/state", "/ui/api/connectors/lines"):
        answer = stranger.context.request.get(worker.url + path)
        assert (answer.status, "lines" in answer.text()) == (401, False)
    stranger.close()
    page = Page(browser, worker.url, http_credentials={"username": "ann", "password": "s3cret"})
    pauses_and_resumes(page)
    assert "s3cret" not in page.tab.content()
    page.close()
