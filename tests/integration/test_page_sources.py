"""MySQL and MongoDB sources on the page of the worker, in a browser: snapshot, facts, and offsets in words."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from connect_py.app.services.worker import Worker
from tests.fix_browser import MISSING, SECONDS, Page
from tests.fix_kafka import Kafka
from tests.fix_mysql import MySqlAddress
from tests.waiting import eventually

pytestmark = [pytest.mark.long, pytest.mark.services, pytest.mark.skipif(MISSING is not None, reason=MISSING or "")]

#: A snapshot is shown when it takes longer than five seconds: a transform slows it.
ROWS = 100_000
SLOW = {"transforms": "slow", "transforms.slow.type": "org.apache.kafka.connect.transforms.Flatten$Value"}


def see_snapshot(page: Page, name: str, table: str) -> None:
    tab = page.open(f"#/connector/{name}/snapshot")
    bar = tab.get_by_role("progressbar", name=f"Snapshot of {table}")
    bar.wait_for()
    tab.locator(".head .pill", has_text="snapshotting").wait_for()
    page.picture(f"snapshot-{name}")
    values = bar.evaluate_all("bars => bars.map(bar => Number(bar.getAttribute('value')))")  # waits for none: it leaves with the snapshot
    assert all(0 <= value <= 1 for value in values)
    tab.locator(".timeline li", has_text=re.compile("Initial Snapshot")).first.wait_for()


def see_facts(page: Page, name: str, *words: str) -> None:
    tab = page.open(f"#/connector/{name}/overview")
    tab.locator(".head .pill", has_text=re.compile("streaming|idle")).wait_for()
    for word in words:
        tab.locator(".facts dt", has_text=word).first.wait_for()
    tab.wait_for_selector(".plot canvas")
    page.picture(f"overview-{name}")


def said_of(page: Page, change: Any) -> str:
    """Edit the first offset in the form, and return what the page says of it."""
    tab = page.tab
    tab.get_by_role("button", name="Edit offsets").click()
    offsets = json.loads(tab.locator("textarea").input_value())
    change(offsets[0]["offset"])
    tab.locator("textarea").fill(json.dumps(offsets))
    return str(tab.locator(".card .note li").inner_text())


def detail(worker: Worker, name: str) -> dict[str, Any]:
    found: dict[str, Any] = worker.request("GET", f"/ui/api/connectors/{name}")
    return found


def open_stopped(page: Page, worker: Worker, name: str) -> Any:
    eventually(lambda: worker.request("GET", f"/connectors/{name}/offsets")["offsets"], "offset stored", SECONDS)
    worker.request("PUT", f"/connectors/{name}/stop")
    eventually(lambda: worker.status(name)["connector"]["state"] == "STOPPED", "stop", SECONDS)
    return page.open(f"#/connector/{name}/offsets")


def test_a_mysql_source_shows_its_snapshot_its_binlog_and_its_position(
    browser: Any, worker: Worker, kafka: Kafka, mysql: MySqlAddress, tag: str
) -> None:
    with mysql.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE `{tag}`")
        cursor.execute(f"CREATE TABLE `{tag}`.goods (id int PRIMARY KEY AUTO_INCREMENT, name varchar(20))")
        cursor.execute(f"INSERT INTO `{tag}`.goods (name) VALUES ('a'), ('b'), ('c'), ('d')")
        while cursor.execute(f"INSERT INTO `{tag}`.goods (name) SELECT name FROM `{tag}`.goods") < ROWS / 2:
            pass
    name = f"my-{tag}"
    config = {
        "connector.class": "io.debezium.connector.mysql.MySqlConnector",
        "database.hostname": mysql.host,
        "database.port": str(mysql.port),
        "database.user": mysql.user,
        "database.password": mysql.password,
        "database.server.id": str(10_000 + sum(tag.encode())),
        "database.include.list": tag,
        "topic.prefix": f"my_{tag}",
        "schema.history.internal.kafka.bootstrap.servers": kafka.bootstrap,
        "schema.history.internal.kafka.topic": f"history_{tag}",
        **SLOW,
    }
    worker.request("POST", "/connectors", {"name": name, "config": config})
    page = Page(browser, worker.url)
    try:
        see_snapshot(page, name, f"{tag}.goods")
        see_facts(page, name, "Log that the server has", "Left until the position is gone")
        tab = open_stopped(page, worker, name)
        tab.get_by_text("binlog position").wait_for()
        assert re.search(r"\.\d{6}, byte [\d,]+", tab.locator(".facts").first.inner_text())
        assert tab.evaluate("document.documentElement.scrollWidth") <= 1280
        assert re.search("repeats .*(of the binlog|transactions?)", said_of(page, earlier_in_the_binlog))
        page.picture(f"offsets-{name}")
    finally:
        page.close()
        worker.delete(name)


def earlier_in_the_binlog(offset: dict[str, Any]) -> None:
    """Move an offset back to the first event of its file; with GTIDs, to before the first transaction of all."""
    offset["pos"] = 4
    if "gtids" in offset:
        offset["gtids"] = re.sub(r":1-(\d+)", lambda found: f":1-{int(found[1]) - 1}", offset["gtids"])


def test_a_mongodb_source_shows_its_snapshot_its_oplog_and_its_position(browser: Any, worker: Worker, mongo: Any, tag: str) -> None:
    client = mongo.connect()
    goods = client[tag]["goods"]
    for first in range(0, ROWS, 10_000):
        goods.insert_many([{"_id": number, "name": f"thing {number}"} for number in range(first, first + 10_000)])
    name = f"mo-{tag}"
    config = {
        "connector.class": "io.debezium.connector.mongodb.MongoDbConnector",
        "mongodb.connection.string": mongo.uri,
        "topic.prefix": f"mo_{tag}",
        "database.include.list": tag,
        **SLOW,
    }
    worker.request("POST", "/connectors", {"name": name, "config": config})
    page = Page(browser, worker.url)
    try:
        see_snapshot(page, name, f"{tag}.goods")
        eventually(lambda: detail(worker, name)["verdict"] in ("streaming", "idle"), "end of the snapshot", 400)
        goods.update_one({"_id": 1}, {"$set": {"name": "other"}})
        see_facts(page, name, "Last entry of the server's log", *(["Log that the server has"] if mongo.is_real else []))
        tab = open_stopped(page, worker, name)
        tab.get_by_text("time of the last event").wait_for()

        def an_hour_earlier(offset: dict[str, Any]) -> None:
            offset["sec"] -= 3600
            offset.pop("resume_token", None)

        assert re.search(r"repeats .* of changes", said_of(page, an_hour_earlier))
        page.picture(f"offsets-{name}")
    finally:
        page.close()
        worker.delete(name)
        client.drop_database(tag)
        client.close()
