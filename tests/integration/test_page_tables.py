"""The tables of a source are ticked on the page of the worker, with the mouse and by the keyboard alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from connect_py.app.services.worker import Worker
from tests.fix_browser import MISSING, SECONDS, Page
from tests.fix_kafka import Kafka
from tests.fix_postgres import postgres_source
from tests.page_worker import Keys
from tests.waiting import eventually

pytestmark = [pytest.mark.long, pytest.mark.services, pytest.mark.skipif(MISSING is not None, reason=MISSING or "")]

TABLES = ("customers", "orders", "orders_2025", "orders_2026", "price,list")


@pytest.fixture
def shop(postgres: Any, database: str) -> str:
    """A database with tables that have three rows each."""
    with postgres.connect(database) as admin:
        for name in TABLES:
            admin.execute(f'CREATE TABLE "{name}" (id int PRIMARY KEY)'.encode())
            admin.execute(f'INSERT INTO "{name}" VALUES (1), (2), (3)'.encode())
    return database


@pytest.fixture
def page(browser: Any, worker: Worker) -> Iterator[Page]:
    opened = Page(browser, worker.url)
    yield opened
    opened.close()


def fill(tab: Any, config: dict[str, str]) -> None:
    """Write a configuration as JSON."""
    tab.locator('[id="p-name"]').wait_for()
    tab.locator(".side textarea").fill(json.dumps(config))


@pytest.mark.presses(
    "choose-plugin", "test-connection", "choose-tables", "capture-table", "search-tables", "untick-tables", "use-tables", "save"
)
def test_a_connector_is_made_with_the_tables_that_were_ticked(
    page: Page, worker: Worker, kafka: Kafka, postgres: Any, shop: str, tag: str, axe: str
) -> None:
    tab = page.open("#/new")
    tab.get_by_role("button", name="PostgreSQL source").click()
    fill(tab, {"name": tag, **postgres_source(postgres, shop, tag)})
    tab.get_by_role("button", name="Test connection").click()
    tab.locator(".diagnosis").wait_for()
    tab.get_by_role("button", name="Choose tables").click()
    dialog = tab.get_by_role("dialog")
    dialog.get_by_text("5 of 5 tables are ticked").wait_for()
    assert dialog.get_by_role("button", name="Use this list").is_disabled()
    assert list(page.violations(axe, "tables")) == []
    dialog.get_by_role("searchbox").fill("orders")
    dialog.get_by_role("button", name="Untick all shown").click()
    dialog.get_by_text("2 of 5 tables are ticked").wait_for()
    dialog.get_by_role("searchbox").fill("")
    page.picture("tables")
    dialog.get_by_role("checkbox", name="public.customers").uncheck()
    assert list(page.violations(axe, "tables, some of them ticked")) == []
    dialog.get_by_role("button", name="Use this list").click()
    dialog.wait_for(state="detached")
    assert json.loads(tab.locator(".side textarea").input_value())["table.include.list"] == r"public\.price\x2Clist"
    tab.get_by_role("button", name="Create …").click()
    tab.get_by_role("dialog").get_by_role("button", name="Create").click()
    tab.get_by_role("heading", name=tag).wait_for()
    try:
        worker.wait_for(tag, "RUNNING")
        topics = eventually(lambda: worker.request("GET", f"/connectors/{tag}/topics")[tag]["topics"], "records", SECONDS)
        assert len(topics) == 1
        eventually(lambda: kafka.count(topics[0]) == 3, "all rows", SECONDS)
    finally:
        worker.delete(tag)


@pytest.mark.presses("edit-configuration", "choose-tables", "capture-table", "tick-tables", "use-tables", "leave-tables", "save-changes")
def choose_tables(keys: Keys, tab: Any) -> None:
    """Open the list of tables of the connector that is shown."""
    keys.to("Edit configuration")
    keys.press("Enter")
    tab.locator('[id="p-tasks.max"]').wait_for()
    keys.to("Choose tables")
    keys.press("Enter")
    tab.get_by_text("2 of 5 tables are ticked").wait_for()


def test_the_tables_of_a_connector_are_changed_by_the_keyboard_alone(
    page: Page, worker: Worker, postgres: Any, shop: str, tag: str
) -> None:
    lists = {"table_exclude_list": r"public\.orders.*"}
    worker.create(tag, postgres_source(postgres, shop, tag, **lists))
    try:
        page.open(f"#/connector/{tag}/config")
        keys, tab = Keys(page), page.tab
        choose_tables(keys, tab)
        keys.press("Escape")
        tab.get_by_role("dialog").wait_for(state="detached")
        eventually(lambda: keys.focused["name"].startswith("Choose tables"), "focus where it was", SECONDS)
        keys.press("Space")
        tab.get_by_text("2 of 5 tables are ticked").wait_for()
        keys.to("public.customers")
        keys.press("Space")
        keys.to("public.orders_2026")
        keys.press("Space")
        tab.get_by_text("2 of 5 tables are ticked").wait_for()
        keys.to("Use this list")
        keys.press("Enter")
        tab.get_by_role("dialog").wait_for(state="detached")
        eventually(lambda: keys.focused["name"].startswith("Choose tables"), "focus where it was", SECONDS)
        keys.to("Save", backwards=True)
        keys.press("Enter")
        tab.get_by_role("dialog").wait_for()
        keys.to("Save")
        keys.press("Enter")
        tab.get_by_role("button", name="Edit configuration").wait_for()
        stored = worker.request("GET", f"/connectors/{tag}/config")
        assert (stored["table.include.list"], stored.get("table.exclude.list")) == (r"public\.orders_2026,public\.price\x2Clist", None)
        worker.wait_for(tag, "RUNNING")
        choose_tables(keys, tab)
        keys.to("Tick all shown")
        keys.press("Space")
        tab.get_by_text("5 of 5 tables are ticked").wait_for()
        keys.to("Cancel")
        keys.press("Space")
        tab.get_by_role("dialog").wait_for(state="detached")
    finally:
        worker.delete(tag)


def table(name: str, *matched: int, captured: bool = True, fixed: str | None = None) -> dict[str, Any]:
    return {"name": name, "captured": captured, "rows": None, "entry": f"E{name}", "matched_by": list(matched), "fixed_by": fixed}


#: entries, tables, ticked → the list that is written
CHOICES: list[tuple[list[str], list[dict[str, Any]], list[str], list[str]]] = [
    ([], [table("a"), table("b")], ["b"], ["Eb"]),
    (["a.*"], [table("a1", 0), table("a2", 0), table("b", captured=False)], ["a1", "a2", "b"], ["a.*", "Eb"]),
    (["a.*"], [table("a1", 0), table("a2", 0)], ["a1"], ["Ea1"]),
    (["a.*", "a1", "gone"], [table("a1", 0, 1), table("a2", 0)], ["a1"], ["a1", "gone"]),
    (["a.*"], [table("a1", 0), table("s", 0, fixed="signal.data.collection")], ["a1", "s"], ["a.*"]),
    ([".*a"], [table("p.a", 0), table("q.a", 0, captured=False, fixed="schema.include.list")], ["p.a"], [".*a"]),
]


def test_entries_that_mean_ticked_tables_alone_stay_as_they_are_written(page: Page) -> None:
    tab = page.open("")
    for entries, tables, ticked, written in CHOICES:
        call = "([found, ticked]) => import('/ui/tables.js').then((made) => made.entriesFor(found, new Set(ticked)))"
        assert tab.evaluate(call, [{"entries": entries, "tables": tables}, ticked]) == written
    same = "[{property: 'l', replaces: ['x'], entries: [], tables: [{name: 'a', captured: true}]}, ['a']]"
    call = "([found, ticked]) => import('/ui/tables.js').then((made) => made.changesFor(found, new Set(ticked)))"
    assert tab.evaluate(f"({call})({same})") == {}
