"""Everything that the page of the worker can do, done by keys alone: the focus is always somewhere, and is seen."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connect_py.app.services.worker import Worker
from tests.fix_browser import MISSING, SECONDS, Page
from tests.page_worker import Keys, worker_with_a_weak_one
from tests.waiting import eventually

pytestmark = [pytest.mark.long, pytest.mark.services, pytest.mark.skipif(MISSING is not None, reason=MISSING or "")]


@pytest.fixture(scope="module")
def site(kafka: Any, postgres: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    with worker_with_a_weak_one(kafka, postgres, tmp_path_factory.mktemp("page-keys")) as worker:
        yield worker


@pytest.fixture
def page(browser: Any, site: Worker) -> Iterator[Page]:
    opened = Page(browser, site.url)
    yield opened
    opened.close()


def use(keys: Keys, name: str, key: str = "Enter") -> None:
    """Go to a control and press it."""
    keys.to(name)
    at = keys.focused
    assert at["is_marked"] and at["is_seen"], at
    keys.press(key)


def finds_focus(keys: Keys, *names: str) -> None:
    """The focus comes to something whose name begins with one of these; it is never lost for good."""
    eventually(lambda: keys.focused["name"].startswith(names) and keys.focused["is_marked"], f"focus on {names}", SECONDS)


def finds_new_view(keys: Keys) -> None:
    """The new view as a whole has the focus, which no mark goes around."""
    eventually(lambda: keys.tab.evaluate("document.activeElement.id") == "main", "focus on the view", SECONDS)


def confirm(keys: Keys, verb: str, typed: str = "") -> None:
    """Answer the dialog, after it was left by Escape once, which gives the focus back."""
    dialog = keys.tab.get_by_role("dialog")
    dialog.wait_for()
    keys.press("Escape")
    dialog.wait_for(state="detached")
    finds_focus(keys, verb)
    keys.press("Enter")
    dialog.wait_for()
    if typed:
        for _ in range(20):  # a part of the dialog that scrolls is a stop, too
            if keys.tab.evaluate("document.activeElement.tagName") == "INPUT":
                break
            keys.press("Tab")
        keys.type(typed)
        keys.press("Enter")
    else:
        use(keys, verb)
    dialog.wait_for(state="detached")


@pytest.mark.presses("one-pause", "one-resume", "one-restart", "one-stop", "confirm")
def test_a_connector_is_paused_resumed_restarted_and_stopped(page: Page, site: Worker) -> None:
    keys = Keys(page)
    page.open("")
    keys.tab.wait_for_selector("tr.row")
    use(keys, "Pause lines")
    site.wait_for("lines", "PAUSED")
    finds_focus(keys, "Resume lines")
    keys.press("Space")
    site.wait_for("lines", "RUNNING")
    finds_focus(keys, "Pause lines")
    use(keys, "lines")
    keys.tab.get_by_role("heading", name="lines").wait_for()
    finds_new_view(keys)
    with keys.tab.expect_response(lambda answer: answer.url.endswith("/restart?includeTasks=true")) as answered:
        use(keys, "Restart lines", "Space")
    assert answered.value.status == 202
    finds_focus(keys, "Restart lines")
    use(keys, "Stop lines")
    confirm(keys, "Stop")
    eventually(lambda: site.status("lines")["connector"]["state"] == "STOPPED", "stop", SECONDS)
    finds_focus(keys, "Resume lines")
    keys.press("Enter")
    site.wait_for("lines", "RUNNING")
    finds_focus(keys, "Pause lines")


@pytest.mark.presses("edit-offsets", "save-offsets", "leave-offsets", "reset-offsets", "confirm")
def test_offsets_are_edited_and_reset(page: Page, site: Worker) -> None:
    eventually(lambda: site.request("GET", "/connectors/lines/offsets")["offsets"], "offset stored", SECONDS)
    site.request("PUT", "/connectors/lines/stop")
    eventually(lambda: site.status("lines")["connector"]["state"] == "STOPPED" and not site.status("lines")["tasks"], "stop", SECONDS)
    keys = Keys(page)
    tab = page.open("#/connector/lines/offsets")
    tab.get_by_role("button", name="Edit offsets").wait_for()
    use(keys, "Edit offsets")
    eventually(lambda: tab.evaluate("document.activeElement.tagName") == "TEXTAREA", "focus in the text", SECONDS)
    use(keys, "Cancel")
    finds_focus(keys, "Edit offsets")
    keys.press("Enter")
    eventually(lambda: tab.evaluate("document.activeElement.tagName") == "TEXTAREA", "focus in the text", SECONDS)
    offsets = json.loads(tab.locator("textarea").input_value())
    offsets[0]["offset"]["position"] = 4
    keys.press("Control+a")
    keys.tab.keyboard.insert_text(json.dumps(offsets))
    use(keys, "Save offsets")
    confirm(keys, "Save", "lines")
    eventually(lambda: site.request("GET", "/connectors/lines/offsets")["offsets"][0]["offset"]["position"] == 4, "altered offset", SECONDS)
    finds_focus(keys, "Edit offsets")
    use(keys, "Reset offsets")
    confirm(keys, "Reset", "lines")
    tab.get_by_text("No offset is stored").wait_for()
    finds_focus(keys, "Read again", "Edit offsets")
    site.request("PUT", "/connectors/lines/resume")
    site.wait_for("lines", "RUNNING")


@pytest.mark.presses("edit-configuration", "save", "save-changes", "do-not-save", "leave-form", "test-connection")
def test_a_configuration_is_edited_tested_and_saved(page: Page, site: Worker) -> None:
    keys = Keys(page)
    tab = page.open("#/connector/orders/config")
    use(keys, "Edit configuration")
    tab.locator('[id="p-heartbeat.interval.ms"]').wait_for(state="attached")
    finds_focus(keys, "orders")
    use(keys, "Test connection")
    tab.locator(".diagnosis").wait_for()
    finds_focus(keys, "Test connection")
    use(keys, "Cancel")
    finds_focus(keys, "Edit configuration")
    keys.press("Enter")
    tab.locator('[id="p-heartbeat.interval.ms"]').wait_for(state="attached")
    keys.to("p-tasks.max")
    keys.press("End")
    keys.type("x")
    tab.locator(".foot").get_by_role("button", name="tasks.max").wait_for()
    use(keys, "tasks.max", "Space")
    finds_focus(keys, "p-tasks.max")
    keys.press("End")
    keys.press("Backspace")
    keys.to("Search")
    keys.type("event.processing")
    tab.locator('[id="p-event.processing.failure.handling.mode"]').wait_for()
    keys.to("p-event.processing.failure.handling.mode")
    keys.press("ArrowDown")
    keys.press("ArrowDown")
    chosen = tab.locator('[id="p-event.processing.failure.handling.mode"]').input_value()
    assert chosen
    use(keys, "Save …")
    tab.get_by_role("dialog").wait_for()
    use(keys, "Cancel")
    finds_focus(keys, "Save …")
    keys.press("Enter")
    tab.get_by_role("dialog").wait_for()
    use(keys, "Save")
    finds_focus(keys, "Edit configuration")
    assert site.request("GET", "/connectors/orders/config")["event.processing.failure.handling.mode"] == chosen
    site.wait_for("orders", "RUNNING")


@pytest.mark.presses("blocking", "start-snapshot", "debug", "end-debug")
def test_a_table_is_read_again_and_more_is_logged(page: Page, site: Worker) -> None:
    keys = Keys(page)
    tab = page.open("#/connector/orders/snapshot")
    keys.to("Tables, such as")
    keys.type("public.orders")
    keys.press("Tab")
    keys.press("ArrowDown")
    assert tab.get_by_role("radio", name="blocking").is_checked()
    with tab.expect_response(lambda answer: answer.url.endswith("/signals")) as answered:
        use(keys, "Start snapshot")
    assert answered.value.status == 202
    tab.locator(".timeline li").first.wait_for()
    finds_focus(keys, "Start snapshot")
    tab = page.open("#/connector/orders/log")
    use(keys, "DEBUG for 10 min")
    finds_focus(keys, "End DEBUG")
    keys.press("Space")
    finds_focus(keys, "DEBUG for 10 min")


@pytest.mark.presses("verify-one", "verify-all", "verify-topics", "cancel-verification")
def test_tables_are_verified(page: Page, site: Worker) -> None:
    """The answers are made up: what is compared is seen in `tests/e2e`."""
    detail = site.request("GET", "/ui/api/connectors/copy")
    figures = {"table": "public.a", "operations": {}, "schema_changes": {}}
    state: dict[str, Any] = {}

    def answer_detail(route: Any) -> None:
        route.fulfill(json={**detail, "class": "LakehouseSinkConnector", "tables": [figures], "sink": {}})

    def answer_comparison(route: Any) -> None:
        method = route.request.method
        if method != "GET":
            is_begun = method == "POST"
            state.update(state="running" if is_begun else "cancelled", tables=[], began=1, ended=2, results=[], error=None, progress=None)
            state["topics"] = "topics=true" in route.request.url if is_begun else state["topics"]
        route.fulfill(json=state or None, status=202 if method == "POST" else 200)

    page.tab.route("**/ui/api/connectors/copy", answer_detail)
    page.tab.route("**/ui/api/connectors/copy/verification*", answer_comparison)
    keys = Keys(page)
    tab = page.open("#/connector/copy/tables")
    tab.get_by_role("button", name="Verify public.a").wait_for()
    for name in ("Verify all tables", "Verify public.a"):
        use(keys, name)
        tab.get_by_text("being compared since").wait_for()
        finds_focus(keys, name)
        use(keys, "Cancel")
        tab.locator("section.card", has_text="cancelled").wait_for()
        eventually(lambda: not keys.focused["is_body"], "focus that is not lost", SECONDS)
    tab.get_by_text("The topics in between were not read").wait_for()
    use(keys, "verify the topics", "Space")
    use(keys, "Verify all tables")
    tab.get_by_text("All tables, and the topics in between: being compared").wait_for()


@pytest.mark.presses("choose-connector", "one-delete", "several-delete", "confirm")
def test_connectors_are_deleted(page: Page, site: Worker, tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("one\n")
    for name in ("gone-a", "gone-b", "gone-c"):
        site.create(name, {"connector.class": "FileStreamSource", "file": str(tmp_path / "lines.txt"), "topic": "page-gone"})
    keys = Keys(page)
    page.open("#/connector/gone-a")
    keys.tab.get_by_role("button", name="Delete gone-a").wait_for()
    use(keys, "Delete gone-a")
    confirm(keys, "Delete", "gone-a")
    keys.tab.get_by_role("heading", name="Connectors").wait_for()
    finds_new_view(keys)
    keys.tab.wait_for_selector("tr.row")
    for name in ("gone-b", "gone-c"):
        use(keys, f"Choose {name}", "Space")
    use(keys, "Delete 2 connectors")
    confirm(keys, "Delete", "2 connectors")
    eventually(lambda: not {"gone-b", "gone-c"} & set(site.request("GET", "/connectors")), "deletion", SECONDS)
    eventually(lambda: not keys.focused["is_body"], "focus that is not lost", SECONDS)
