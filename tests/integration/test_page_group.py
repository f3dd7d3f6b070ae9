"""The page of a worker of a group, in a browser: it shows the tasks of the other worker as its own, until that one does not answer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connect_py.app.services.worker import Worker
from tests.cluster import Cluster, address
from tests.fix_browser import MISSING, SECONDS, Page
from tests.fix_kafka import Kafka
from tests.fix_postgres import postgres_source
from tests.waiting import eventually

pytestmark = [pytest.mark.long, pytest.mark.services, pytest.mark.skipif(MISSING is not None, reason=MISSING or "")]


@pytest.fixture
def group(kafka: Kafka, postgres: Any, tag: str, tmp_path: Path) -> Iterator[Cluster]:
    """Two workers with a PostgreSQL source `orders`, of which rows have been changed."""
    database = postgres.create_database()
    made = Cluster(tmp_path, kafka.bootstrap, tag, {"session.timeout.ms": "10000"})
    try:
        made.add(2)
        with postgres.connect(database) as admin:
            admin.execute("CREATE TABLE orders (id int PRIMARY KEY, amount int)")
            admin.execute("INSERT INTO orders SELECT n, n FROM generate_series(1, 1000) n")
            made.create("orders", postgres_source(postgres, database, tag))
            made.await_all_running(1)
            admin.execute("UPDATE orders SET amount = amount + 1")
        yield made
    finally:
        made.close()
        postgres.drop_database(database)


def test_any_worker_shows_what_a_task_does_wherever_it_runs(browser: Any, group: Cluster) -> None:
    place = group.workers[0].status("orders")["tasks"][0]["worker_id"]
    runs, other = sorted(group.workers, key=lambda worker: address(worker) != place)
    for worker in (other, runs):
        page = Page(browser, worker.url)
        tab = page.open("#/connector/orders/overview")
        tab.wait_for_selector(".plots canvas")
        assert not tab.get_by_text("No answer from").count()
        page.picture(f"group-{'runs' if worker is runs else 'other'}")
        tab = page.open("#/connector/orders/log")
        tab.wait_for_selector(".log div")
        assert tab.get_by_text("Snapshot finished").count()
        tab = page.open("#/connector/orders/tasks")
        eventually(lambda tab=tab: tab.get_by_text("Records that failed").count() == 1, "figures of the task", SECONDS)
        assert tab.get_by_text(place).count()
        page.open("")
        # idle a minute after the last row
        eventually(lambda tab=tab: re.search("streaming|idle", tab.locator("tr.row").inner_text(), re.IGNORECASE), "the verdict", SECONDS)
        page.close()
    assert_silence_is_said(browser, group, runs, other)


def assert_silence_is_said(browser: Any, group: Cluster, runs: Worker, other: Worker) -> None:
    page = Page(browser, other.url)
    tab = page.open("#/connector/orders/overview")
    tab.wait_for_selector(".plots canvas")
    group.freeze(runs)
    try:
        note = tab.locator("p.note", has_text="No answer from")
        note.wait_for()
        assert address(runs) in note.inner_text()
        page.picture("group-silent")
    finally:
        group.thaw()
    page.close()
