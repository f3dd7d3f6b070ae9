"""What can be done on the page of the worker, in a browser, against a real worker: each control that `test_page.py` does not use."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connect_py.app.services.worker import Worker
from tests.fix_browser import MISSING, SECONDS, Page, row
from tests.fix_postgres import postgres_source
from tests.page_worker import worker_with_a_weak_one
from tests.waiting import eventually

pytestmark = [pytest.mark.long, pytest.mark.services, pytest.mark.skipif(MISSING is not None, reason=MISSING or "")]

#: Rows of the table that is read again chunk by chunk: long enough to be paused.
ROWS = 20_000


@pytest.fixture(scope="module")
def site(kafka: Any, postgres: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    with worker_with_a_weak_one(kafka, postgres, tmp_path_factory.mktemp("page-actions")) as worker:
        yield worker


@pytest.fixture
def page(browser: Any, site: Worker) -> Iterator[Page]:
    opened = Page(browser, site.url, permissions=["clipboard-read", "clipboard-write"])
    yield opened
    opened.close()


def lines_source(folder: Path, **more: str) -> dict[str, str]:
    return {"connector.class": "FileStreamSource", "file": str(folder / "lines.txt"), "topic": "page-numbers", **more}


def stop(site: Worker, name: str) -> None:
    site.request("PUT", f"/connectors/{name}/stop")
    eventually(lambda: site.status(name)["connector"]["state"] == "STOPPED" and not site.status(name)["tasks"], "stop", SECONDS)


@pytest.mark.presses("one-restart", "one-restart_failed")
def test_a_connector_is_restarted_as_a_whole_and_what_failed_of_one_alone(page: Page, site: Worker) -> None:
    tab = page.open("#/connector/lines/tasks")
    with tab.expect_response(lambda answer: answer.url.endswith("/restart?includeTasks=true")) as answered:
        tab.get_by_role("button", name="Restart lines", exact=True).click()
    assert answered.value.status == 202
    tab.get_by_text("Last states").click()
    tab.locator(".timeline li", has_text="on request").first.wait_for()
    site.wait_for("lines", "RUNNING")
    tab = page.open("#/connector/weak/tasks")
    with tab.expect_response(lambda answer: answer.url.endswith("onlyFailed=true")) as answered:
        tab.get_by_role("button", name="Restart failed weak").click()
    assert answered.value.status == 202
    site.wait_for("weak", "FAILED")
    tab.get_by_text("Last states").click()
    tab.locator(".timeline li", has_text="has not the privilege REPLICATION").first.wait_for()
    page.picture("states")


@pytest.mark.presses(
    "choose-connector", "several-restart", "several-restart_failed", "several-stop", "several-delete", "confirm", "do-not-confirm"
)
def test_several_connectors_are_restarted_stopped_and_deleted_at_once(page: Page, site: Worker, tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("one\n")
    names = ("several-a", "several-b")
    for name in names:
        site.create(name, lines_source(tmp_path))
    tab = page.open("#/?q=several")
    for name in names:
        tab.get_by_role("checkbox", name=f"Choose {name}").check()
    for word, query in (("Restart", "restart?includeTasks=true"), ("Restart failed", "onlyFailed=true")):
        with tab.expect_response(lambda answer, query=query: "several-b" in answer.url and answer.url.endswith(query)) as answered:
            tab.get_by_role("button", name=f"{word} 2 connectors", exact=True).click()
        assert answered.value.status == 202
    for name in names:
        site.wait_for(name, "RUNNING")
    tab.get_by_role("button", name="Stop 2 connectors").click()
    tab.get_by_role("dialog").get_by_role("button", name="Stop").click()
    for name in names:
        row(tab, name).get_by_text("stopped", exact=True).wait_for()
    tab.get_by_role("button", name="Delete 2 connectors").click()
    assert "several-a, several-b" in tab.get_by_role("dialog").inner_text()
    page.picture("dialog-delete-several")
    tab.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    tab.get_by_role("button", name="Delete 2 connectors").click()
    delete = tab.get_by_role("dialog").get_by_role("button", name="Delete")
    assert delete.is_disabled()
    tab.get_by_role("dialog").locator("input").fill("2 connectors")
    delete.click()
    eventually(lambda: not set(names) & set(site.request("GET", "/connectors")), "deletion", SECONDS)
    eventually(lambda: tab.locator("tr.row").count() == 0, "empty list", SECONDS)


@pytest.mark.presses("choose-table", "incremental", "blocking", "start-snapshot", "pause-snapshot", "resume-snapshot", "stop-snapshot")
def test_a_snapshot_is_paused_with_its_reason_resumed_and_stopped(
    page: Page, site: Worker, kafka: Any, postgres: Any, database: str
) -> None:
    with postgres.connect(database) as admin:
        admin.execute("CREATE TABLE many (id int PRIMARY KEY, v text)")
        admin.execute("INSERT INTO many SELECT g, 'x' FROM generate_series(1, %s) g", (ROWS,))
    more = {"snapshot_mode": "no_data", "read_only": "true", "incremental_snapshot_chunk_size": "10"}
    site.create("many", postgres_source(postgres, database, "page_many", **more))
    try:
        tab = page.open("#/connector/many/snapshot")
        for kind in ("blocking", "incremental"):
            tab.get_by_role("radio", name=kind).check()
        tab.locator("form input[type=text]").first.fill("public.many")
        tab.get_by_role("button", name="Start snapshot").click()
        tab.locator(".timeline li", has_text="IN_PROGRESS").first.wait_for()
        tab.get_by_role("button", name="Pause snapshot").click()
        said = tab.locator("p.remedy")
        said.wait_for()
        assert "the signal pause-snapshot asked for it" in said.inner_text()
        page.picture("snapshot-paused")
        tab.get_by_role("checkbox", name="public.many").check()
        site_list = page.open("")
        eventually(lambda: "paused" in row(site_list, "many").locator('[data-label="Snapshot"]').inner_text(), "pause in the list", SECONDS)
        tab = page.open("#/connector/many/snapshot")
        tab.get_by_role("button", name="Resume snapshot").click()
        tab.locator(".timeline li", has_text="RESUMED").first.wait_for()
        tab.get_by_role("button", name="Stop snapshot").click()
        tab.locator(".timeline li", has_text="ABORTED").first.wait_for()
        assert kafka.count("pg_page_many.public.many") < ROWS
    finally:
        site.delete("many")


@pytest.mark.presses("search-log", "log-level", "follow-log", "debug", "end-debug")
def test_the_log_is_searched_filtered_followed_and_says_more_for_a_while(page: Page, site: Worker, postgres: Any) -> None:
    ids = iter(range(10_000, 20_000))
    database = site.request("GET", "/connectors/orders/config")["database.dbname"]

    def change() -> None:
        with postgres.connect(database) as admin:
            admin.execute("INSERT INTO orders VALUES (%s, 1)", (next(ids),))

    tab = page.open("#/connector/orders/log")
    lines = tab.locator(".log div")
    lines.first.wait_for()
    assert tab.locator(".log .DEBUG").count() == 0
    tab.get_by_role("button", name="DEBUG for 10 min").click()
    tab.get_by_text("DEBUG until").wait_for()
    change()
    tab.locator(".log .DEBUG").first.wait_for()
    page.picture("log-debug")
    level = tab.get_by_label("Level")
    level.select_option("INFO")
    eventually(lambda: tab.locator(".log .DEBUG").count() == 0 and lines.count() > 0, "lines of INFO and worse alone", SECONDS)
    level.select_option("ERROR")
    eventually(lambda: lines.count() == 0, "no error", SECONDS)
    level.select_option("DEBUG")
    tab.get_by_role("searchbox").fill("Read 1 records")
    eventually(lambda: lines.count() >= 1 and all("Read 1 records" in text for text in lines.all_inner_texts()), "found lines", SECONDS)
    tab.get_by_role("searchbox").fill("")
    tab.set_viewport_size({"width": 1280, "height": 260})
    log = tab.locator(".log")
    tab.get_by_label("follow").uncheck()
    log.evaluate("log => { log.scrollTop = 0; }")
    before = lines.count()
    change()
    eventually(lambda: lines.count() > before, "a new line", SECONDS)
    assert log.evaluate("log => log.scrollTop") == 0
    tab.get_by_label("follow").check()
    eventually(lambda: log.evaluate("log => log.scrollTop > 0 && log.scrollTop + log.clientHeight >= log.scrollHeight - 2"), "end", SECONDS)
    tab.set_viewport_size({"width": 1280, "height": 800})
    others = site.request("GET", "/ui/api/connectors/lines/log")["lines"]
    assert not any(" DEBUG " in line for _, _, line in others), "a connector's DEBUG is its own"
    tab.get_by_role("button", name="End DEBUG").click()
    tab.get_by_role("button", name="DEBUG for 10 min").wait_for()
    assert site.request("GET", "/ui/api/connectors/orders")["debug_until"] is None


@pytest.mark.presses("time-range")
def test_the_plots_show_ten_minutes_six_hours_and_a_day(page: Page) -> None:
    tab = page.open("#/connector/orders/overview")
    for word, seconds in (("6 h", 21600), ("24 h", 86400), ("10 min", 600)):
        with tab.expect_response(lambda answer, seconds=seconds: answer.url.endswith(f"history?seconds={seconds}")) as answered:
            tab.get_by_role("radio", name=word).check()
        assert answered.value.status == 200
        tab.wait_for_selector(".plot canvas")


@pytest.mark.presses("copy")
def test_a_statement_is_copied(page: Page) -> None:
    tab = page.open("#/connector/weak/tasks")
    statement = tab.locator(".statement code").first.inner_text()
    tab.get_by_role("button", name="Copy").first.click()
    tab.get_by_text("Copied.").wait_for()
    assert tab.evaluate("navigator.clipboard.readText()") == statement == 'ALTER ROLE "page_weak" WITH REPLICATION;'


@pytest.mark.presses("show-all")
def test_more_than_two_hundred_connectors_are_shown_when_asked_for(page: Page, site: Worker) -> None:
    entry = site.request("GET", "/ui/api/state")["connectors"]["lines"]
    body = {"seq": 1, "full": True, "worker": "w:8083", "gone": [], "connectors": {f"c-{number:03}": entry for number in range(230)}}
    page.tab.route("**/ui/api/state*", lambda route: route.fulfill(body=json.dumps(body), content_type="application/json"))
    tab = page.open("")
    eventually(lambda: tab.locator("tr.row").count() == 200, "200 rows", SECONDS)
    tab.get_by_role("button", name="Show all 230").click()
    eventually(lambda: tab.locator("tr.row").count() == 230, "all rows", SECONDS)


@pytest.mark.presses("logger-level", "set-logger")
def test_loggers_are_set_and_the_worker_says_where_its_properties_are_from(page: Page, site: Worker) -> None:
    tab = page.open("#/worker")
    tab.locator("details", has_text="loggers").locator("summary").click()
    tab.get_by_label("Level of root").select_option("WARN")
    eventually(lambda: site.request("GET", "/admin/loggers/root")["level"] == "WARN", "level of root", SECONDS)
    tab.get_by_label("Level of root").select_option("INFO")
    eventually(lambda: site.request("GET", "/admin/loggers/root")["level"] == "INFO", "level as before", SECONDS)
    tab.get_by_label("Another logger").fill("connect_py.herder")
    tab.get_by_role("button", name="Set to DEBUG").click()
    eventually(lambda: site.request("GET", "/admin/loggers/connect_py.herder")["level"] == "DEBUG", "level of the logger", SECONDS)
    site.request("PUT", "/admin/loggers/root", {"level": "INFO"})
    main = tab.locator("main").inner_text()
    assert "connect-py 0." in main
    assert "Kafka Connect 4." in main
    given = tab.get_by_role("region", name="Properties", exact=True).get_by_role("row", name="group.id")
    assert "worker.properties" in given.inner_text()
    tab.get_by_text("properties have their default").click()
    default = tab.get_by_role("region", name="Properties with their default").get_by_role("row", name="rest.ui full")
    assert "default" in default.inner_text()


@pytest.mark.presses(
    "edit-configuration", "search-properties", "choose-value", "remove-property", "go-to-problem", "save", "do-not-save", "leave-form"
)
def test_the_form_finds_properties_leads_to_problems_and_can_be_left(page: Page, site: Worker) -> None:
    before = site.request("GET", "/connectors/orders/config")
    tab = page.open("#/connector/orders/config")
    tab.get_by_role("button", name="Edit configuration").click()
    tab.get_by_placeholder("more properties").fill("tombstones.on.delete")
    tab.locator('[id="p-tombstones.on.delete"]').select_option("false")
    side = tab.locator(".side textarea")
    assert json.loads(side.input_value())["tombstones.on.delete"] == "false"
    tab.get_by_role("button", name="Remove tombstones.on.delete").click()
    assert "tombstones.on.delete" not in json.loads(side.input_value())
    tab.locator('[id="p-tasks.max"]').fill("none")
    tab.locator(".foot").get_by_role("button", name="tasks.max").click()
    assert tab.evaluate("document.activeElement.id") == "p-tasks.max"
    tab.get_by_role("button", name="Save …").click()
    assert "tasks.max=none" in tab.get_by_role("dialog").inner_text()
    tab.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    tab.locator(".foot").get_by_role("button", name="Cancel").click()
    tab.get_by_role("button", name="Edit configuration").wait_for()
    assert site.request("GET", "/connectors/orders/config") == before


@pytest.mark.presses("read-offsets", "edit-offsets", "leave-offsets")
def test_edited_offsets_say_what_they_skip_and_repeat(page: Page, site: Worker, kafka: Any) -> None:
    for name in ("orders", "copy"):
        eventually(lambda name=name: site.request("GET", f"/connectors/{name}/offsets")["offsets"], "offset stored", SECONDS)
        stop(site, name)
    try:
        tab = page.open("#/connector/orders/offsets")
        tab.get_by_role("button", name="Read again").click()
        tab.get_by_text("log position (LSN)").wait_for()
        eventually(lambda: site.request("GET", "/ui/api/connectors/orders")["source"]["facts"], "facts of the slot", SECONDS)
        tab.get_by_role("button", name="Edit offsets").click()
        stored = json.loads(tab.locator("textarea").input_value())

        def said_of(change: int) -> str:
            edited = json.loads(json.dumps(stored))
            offset = edited[0]["offset"]
            for field in ("lsn", "lsn_proc", "lsn_commit"):
                if offset.get(field) is not None:
                    offset[field] = (offset.get("lsn_commit") or offset.get("lsn_proc") or offset["lsn"]) + change
            tab.locator("textarea").fill(json.dumps(edited))
            tab.locator(".card .note li").wait_for()
            return str(tab.locator(".card .note li").inner_text())

        assert "repeats 2 MB of the log. But the slot begins at" in said_of(-2_000_000)
        assert "skips 500 MB of the log, for good. But the log ends at" in said_of(500_000_000)
        page.picture("offsets-moves")
        tab.locator(".card").get_by_role("button", name="Cancel").click()
        tab.locator("textarea").wait_for(state="detached")
        tab = page.open("#/connector/copy/offsets")
        tab.get_by_role("button", name="Edit offsets").click()
        offsets = json.loads(tab.locator("textarea").input_value())
        offsets[0]["offset"]["kafka_offset"] -= 1
        tab.locator("textarea").fill(json.dumps(offsets))
        assert tab.locator(".card .note li").inner_text() == "page-lines, partition 0: repeats 1 record."
        offsets[0]["offset"] = None
        tab.locator("textarea").fill(json.dumps(offsets))
        assert "auto.offset.reset" in tab.locator(".card .note li").inner_text()
    finally:
        for name in ("orders", "copy"):
            site.request("PUT", f"/connectors/{name}/resume")
            site.wait_for(name, "RUNNING")


#: was, now, facts of the source → what is said; in the browser, since that is where the function lives.
MOVES: list[tuple[dict[str, Any], dict[str, Any] | None, dict[str, Any], str]] = [
    ({"file": "b.000002", "pos": 100}, {"file": "b.000002", "pos": 5100}, {}, "skips 5 kB of the binlog, for good."),
    ({"file": "b.000002", "pos": 100}, {"file": "b.000001", "pos": 4}, {"segments": {"1": 0, "2": 1000}}, "repeats 1.1 kB of the binlog."),
    ({"file": "b.000002", "pos": 4}, {"file": "b.000009", "pos": 4}, {}, "skips a part of the binlog whose size is not known."),
    (
        {"file": "b.000002", "pos": 4},
        {"file": "b.000001", "pos": 4},
        {"segments": {"2": 0}},
        "repeats a part of the binlog whose size is not known. The server does not have the file b.000001.",
    ),
    ({"gtids": "aa:1-100"}, {"gtids": "AA:1-40:51-100"}, {}, "repeats 10 transactions."),
    ({"gtids": "aa:1-100"}, {"gtids": "aa:1-40:51-100,bb:7"}, {}, "repeats 10 transactions, and skips 1 transaction, for good."),
    ({"gtids": "aa:tag:1-5"}, {"gtids": "aa:1-5"}, {}, "repeats 5 transactions, and skips 5 transactions, for good."),
    ({"gtids": "0-1-100"}, {"gtids": "0-2-90"}, {}, "repeats 10 transactions."),
    ({"sec": 7200}, {"sec": 3600}, {}, "repeats 1 h of changes."),
    (
        {"resume_token": "8200000E1000000001"},
        {"resume_token": "820000003C00000001"},
        {"facts": {"mongodb-oplog": {"first-timestamp-seconds": 120}}},
        "repeats 59 min of changes. But the oplog begins 1 min later: the server no longer has what is before it.",
    ),
    ({"lsn": 500, "lsn_proc": 500}, {"lsn": 400, "lsn_proc": 500}, {}, "stays at the same position."),
    ({"position": 10}, {"position": 4}, {}, "repeats 6 B of the file."),
    ({"position": 10}, None, {}, "the connector starts as if it were new here; whether it takes a snapshot, its snapshot.mode says."),
    ({"anything": "a"}, {"anything": "b"}, {}, "how much this skips or repeats cannot be told from these offsets."),
]


def test_each_kind_of_offset_has_its_words(page: Page) -> None:
    tab = page.open("")
    for was, now, source, said in MOVES:
        partition = {"server": "s"}
        entries = [[{"partition": partition, "offset": was}], [{"partition": partition, "offset": now}], source]
        found = tab.evaluate("([was, now, source]) => import('/ui/moves.js').then(({ moves }) => moves(was, now, source))", entries)
        assert found == [f"s: {said}"]
    same = "[{partition: {a: 1, b: 2}, offset: {x: 1}}], [{partition: {b: 2, a: 1}, offset: {x: 1}}]"
    assert tab.evaluate(f"import('/ui/moves.js').then(({{ moves }}) => moves({same}, null))") == []


def test_records_that_are_left_out_are_shown_with_their_places(page: Page, site: Worker, tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("1\nno-number\n2\n")
    cast = {"transforms": "c", "transforms.c.type": "org.apache.kafka.connect.transforms.Cast$Value", "transforms.c.spec": "int32"}
    letters = {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": "page-letters"}
    letters["errors.deadletterqueue.topic.replication.factor"] = "1"
    site.create("casts", lines_source(tmp_path, **cast, **letters))
    try:
        tab = page.open("#/connector/casts/tasks")
        left_out = tab.get_by_role("region", name="Records left out")
        left_out.wait_for()
        said = left_out.inner_text()
        assert "position" in said
        assert "transformation" in said
        assert "dead letter in page-letters" in said
        assert "no-number" not in tab.locator("main").inner_text()
        assert "rest.ui.records=true" in tab.locator("main").inner_text()
        page.picture("tasks-skipped")
    finally:
        site.delete("casts")
