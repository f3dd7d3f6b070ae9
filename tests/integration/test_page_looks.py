"""How the page of the worker looks and is used: for axe-core, narrow and wide, light and dark, and by the keyboard alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from connect_py.app.services.worker import Worker
from tests.fix_browser import MISSING, SECONDS, Page
from tests.page_worker import Keys, worker_with_a_weak_one
from tests.waiting import eventually

pytestmark = [pytest.mark.long, pytest.mark.services, pytest.mark.skipif(MISSING is not None, reason=MISSING or "")]

VIEWS = [
    "#/",
    "#/connector/orders/overview",
    "#/connector/weak/tasks",
    "#/connector/orders/tasks",
    "#/connector/orders/snapshot",
    "#/connector/orders/offsets",
    "#/connector/orders/config",
    "#/connector/orders/log",
    "#/connector/copy/overview",
    "#/worker",
    "#/new",
]


@pytest.fixture(scope="module")
def site(kafka: Any, postgres: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    with worker_with_a_weak_one(kafka, postgres, tmp_path_factory.mktemp("page-looks")) as worker:
        worker.request("POST", "/connectors", {"name": "halted", "config": lines_source(worker), "initial_state": "STOPPED"})
        eventually(lambda: worker.request("GET", "/connectors/lines/offsets")["offsets"], "offset stored", SECONDS)
        yield worker


def lines_source(worker: Worker) -> dict[str, str]:
    found = worker.request("GET", "/connectors/lines/config")
    return {name: value for name, value in found.items() if name != "name"}


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (360, "light"), (360, "dark")])
def test_every_view_dialog_and_form_is_accessible_and_fits(browser: Any, site: Worker, axe: str, width: int, scheme: str) -> None:
    opened = Page(browser, site.url, width, scheme)
    found: list[str] = []

    def look(what: str) -> None:
        found.extend(opened.violations(axe, what))
        opened.picture(f"{what.strip('#/').replace('/', '-') or 'list'}-{width}-{scheme}")

    for view in VIEWS:
        tab = opened.open(view)
        if view.endswith("overview"):
            tab.wait_for_selector(".plot canvas")
        tab.eval_on_selector_all("main details", "found => found.forEach(each => { each.open = true; })")
        look(view)
    look_at_dialogs_and_forms(opened, look)
    opened.close()
    assert found == []


def look_at_dialogs_and_forms(opened: Page, look: Any) -> None:
    tab = opened.open("#/connector/lines/tasks")
    for word in ("Stop", "Delete"):
        tab.get_by_role("button", name=f"{word} lines").click()
        tab.get_by_role("dialog").wait_for()
        look(f"dialog-{word.lower()}")
        tab.keyboard.press("Escape")
    tab = opened.open("#/connector/weak/config")
    tab.get_by_role("button", name="Edit configuration").click()
    tab.locator('[id="p-tasks.max"]').fill("x")
    tab.locator('[id="p-tasks.max-error"]').wait_for()
    look("form-open")
    tab.get_by_role("button", name="Save …").click()
    tab.get_by_role("dialog").wait_for()
    look("dialog-save")
    tab.keyboard.press("Escape")
    tab.locator('[id="p-tasks.max"]').fill("1")
    tab.get_by_role("button", name="Test connection").click()
    tab.locator(".findings li").first.wait_for()
    look("form-doctor")
    tab.get_by_role("button", name="Choose tables").click()
    tab.get_by_role("dialog").wait_for()
    look("dialog-tables")
    tab.keyboard.press("Escape")
    tab = opened.open("#/connector/halted/offsets")
    tab.get_by_role("button", name="Edit offsets").click()
    tab.locator("textarea").fill('[{"partition": {"filename": "a"}, "offset": {"position": 4}}]')
    tab.locator(".card .note li").wait_for()
    look("offsets-edit")
    tab.get_by_role("button", name="Save offsets").click()
    tab.get_by_role("dialog").wait_for()
    look("dialog-offsets")
    tab.keyboard.press("Escape")
    tab = opened.open("#/new")
    tab.get_by_role("button", name="PostgreSQL source").click()
    tab.locator('[id="p-name"]').wait_for()
    look("form-new")


#: A group of choices is one stop of the tab key, and arrows lead to the others.
GROUPS = {"incremental": "blocking", "blocking": "incremental"}


def test_every_view_is_reached_and_each_of_its_controls_can_be_used_by_the_keyboard(browser: Any, site: Worker) -> None:
    opened = Page(browser, site.url)
    keys = Keys(opened)
    opened.open("")
    keys.tab.wait_for_selector("tr.row")
    check_controls(opened, keys)
    keys.to("Worker")
    keys.press("Enter")
    keys.tab.get_by_role("heading", name="Workers of the group").wait_for()
    keys.to("loggers")
    keys.press("Enter")
    check_controls(opened, keys)
    keys.to("Connectors")
    keys.press("Enter")
    keys.to("orders")
    keys.press("Enter")
    for title in ("Overview", "Tasks and errors", "Snapshot", "Offsets", "Configuration", "Log"):
        keys.to(title)
        keys.press("Enter")
        keys.tab.locator(f'section[aria-label="{title}"]').wait_for()
        check_controls(opened, keys)
    opened.close()


def check_controls(opened: Page, keys: Keys) -> None:
    """Every control that is shown and can be used is a stop of the tab key."""
    opened.tab.wait_for_selector(".loading", state="detached")
    expected = eventually(opened.controls, "controls", SECONDS)
    reached = keys.reached()
    missing = {name for name in expected - reached if GROUPS.get(name) not in reached}
    assert missing == set(), f"at {opened.tab.url}"


def test_boxes_choices_and_menus_are_used_by_the_keyboard(browser: Any, site: Worker) -> None:
    opened = Page(browser, site.url)
    keys = Keys(opened)
    opened.open("#/?q=lines")
    keys.to("Choose lines")
    keys.press("Space")
    opened.tab.get_by_text("1 chosen").wait_for()
    keys.to("Pause lines")
    keys.press("Space")
    site.wait_for("lines", "PAUSED")
    opened.tab.get_by_role("button", name="Resume lines").first.wait_for()
    keys.to("Resume lines")
    keys.press("Enter")
    site.wait_for("lines", "RUNNING")
    opened.open("#/connector/orders/overview")
    opened.tab.wait_for_selector(".plot canvas")
    with opened.tab.expect_response(lambda answer: answer.url.endswith("history?seconds=21600")):
        opened.tab.get_by_role("radio", name="10 min").focus()
        keys.press("ArrowRight")
    opened.open("#/connector/orders/log")
    opened.tab.get_by_label("Level").focus()
    keys.press("ArrowDown")
    eventually(lambda: opened.tab.get_by_label("Level").input_value() == "DEBUG", "another level", SECONDS)
    keys.to("DEBUG for 10 min")
    keys.press("Enter")
    opened.tab.get_by_text("DEBUG until").wait_for()
    keys.to("End DEBUG")
    keys.press("Enter")
    opened.tab.get_by_role("button", name="DEBUG for 10 min").wait_for()
    opened.close()
