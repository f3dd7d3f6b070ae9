"""The page of the worker in a browser, against a real worker with files and PostgreSQL.

Needs Debian's chromium (`apt-get install chromium`) and npm, which fetches axe-core. `UI_PICTURES` names a folder for pictures.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connect_py.app.services.worker import RefusedError, Worker
from tests.fix_browser import MISSING, SECONDS, Page, row
from tests.fix_postgres import postgres_source
from tests.page_worker import SECRET, worker_with_a_weak_one
from tests.waiting import eventually

pytestmark = [pytest.mark.long, pytest.mark.services, pytest.mark.skipif(MISSING is not None, reason=MISSING or "")]


@pytest.fixture(scope="module")
def site(kafka: Any, postgres: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    with worker_with_a_weak_one(kafka, postgres, tmp_path_factory.mktemp("page")) as worker:
        yield worker


@pytest.fixture
def page(browser: Any, site: Worker) -> Iterator[Page]:
    opened = Page(browser, site.url)
    yield opened
    opened.close()


def test_the_failed_connector_comes_first_with_its_cause_and_its_statement(page: Page) -> None:
    tab = page.open("")
    tab.wait_for_selector("tr.trouble")
    assert tab.locator("tr.row").first.locator("th a").inner_text() == "weak"
    said = tab.locator("tr.trouble").inner_text()
    assert "has not the privilege REPLICATION" in said
    assert 'ALTER ROLE "page_weak" WITH REPLICATION;' in said
    box = tab.locator("tr.trouble").bounding_box()
    assert box is not None
    assert box["y"] + box["height"] < 800
    page.picture("list")


@pytest.mark.presses(
    "one-pause", "one-resume", "one-stop", "confirm", "choose-connector", "several-pause", "several-resume", "search-connectors"
)
def test_the_buttons_of_the_list_do_what_they_say(page: Page, site: Worker) -> None:
    tab = page.open("")
    tab.get_by_role("button", name="Pause lines").click()
    site.wait_for("lines", "PAUSED")
    tab.get_by_role("button", name="Resume lines").click()
    site.wait_for("lines", "RUNNING")
    tab.get_by_role("button", name="Stop lines").click()
    tab.get_by_role("dialog").get_by_role("button", name="Stop").click()
    row(tab, "lines").get_by_text("stopped", exact=True).wait_for()
    assert site.status("lines")["connector"]["state"] == "STOPPED"
    tab.get_by_role("button", name="Resume lines").click()
    site.wait_for("lines", "RUNNING")
    for name in ("lines", "copy"):
        tab.get_by_role("checkbox", name=f"Choose {name}").check()
    tab.get_by_role("button", name="Pause 2 connectors").click()
    for name in ("lines", "copy"):
        site.wait_for(name, "PAUSED")
    tab.get_by_role("button", name="Resume 2 connectors").click()
    for name in ("lines", "copy"):
        site.wait_for(name, "RUNNING")
    tab.get_by_role("searchbox").fill("weak")
    eventually(lambda: tab.locator("tr.row").count() == 1, "row alone", SECONDS)
    eventually(lambda: "q=weak" in tab.url, "address of the search", SECONDS)
    for _ in range(2):  # two answers later the search is still there
        with tab.expect_response(lambda answer: "/api/state" in answer.url):
            pass
    assert tab.get_by_role("searchbox").input_value() == "weak"


@pytest.mark.presses("restart-task")
def test_a_failed_task_is_restarted_by_its_button(page: Page, site: Worker) -> None:
    tab = page.open("#/connector/weak/tasks")
    tab.get_by_text("Whole trace").click()
    assert "check_server" in tab.locator("pre").first.inner_text()
    with tab.expect_response(lambda answer: answer.url.endswith("/tasks/0/restart")) as answered:
        tab.get_by_role("button", name="Restart task 0").click()
    assert answered.value.status == 204
    site.wait_for("weak", "FAILED")


@pytest.mark.presses("edit-offsets", "save-offsets", "reset-offsets", "confirm")
def test_offsets_of_a_stopped_connector_are_edited_with_a_diff_and_reset_by_its_name(page: Page, site: Worker) -> None:
    eventually(lambda: site.request("GET", "/connectors/lines/offsets")["offsets"], "offset stored", SECONDS)
    site.request("PUT", "/connectors/lines/stop")
    eventually(lambda: site.status("lines")["connector"]["state"] == "STOPPED" and not site.status("lines")["tasks"], "stop", SECONDS)
    tab = page.open("#/connector/lines/offsets")
    tab.get_by_role("button", name="Edit offsets").click()
    field = tab.locator("textarea")
    offsets = json.loads(field.input_value())
    offsets[0]["offset"]["position"] = 4
    field.fill(json.dumps(offsets, indent=2))
    assert '"position": 4' in tab.locator(".diff .new").first.inner_text()
    tab.get_by_role("button", name="Save offsets").click()
    dialog = tab.get_by_role("dialog")
    assert dialog.get_by_role("button", name="Save").is_disabled()
    dialog.locator("input").fill("lines")
    dialog.get_by_role("button", name="Save").click()
    tab.get_by_text("byte of the file").wait_for()
    eventually(lambda: site.request("GET", "/connectors/lines/offsets")["offsets"][0]["offset"]["position"] == 4, "altered offset", SECONDS)
    tab.get_by_role("button", name="Reset offsets").click()
    tab.get_by_role("dialog").locator("input").fill("lines")
    tab.get_by_role("dialog").get_by_role("button", name="Reset").click()
    tab.get_by_text("No offset is stored").wait_for()
    site.request("PUT", "/connectors/lines/resume")
    site.wait_for("lines", "RUNNING")


@pytest.mark.presses("edit-configuration", "save", "save-changes")
def test_form_and_json_are_one_state_and_unknown_properties_and_secrets_are_kept(page: Page, site: Worker) -> None:
    before = site.request("GET", "/connectors/weak/config")
    tab = page.open("#/connector/weak/config")
    assert SECRET not in tab.content()
    tab.get_by_role("button", name="Edit configuration").click()
    side = tab.locator(".side textarea")
    shown = json.loads(side.input_value())
    side.fill(json.dumps({**shown, "own.unknown": "kept"}))
    tab.locator('[id="p-own.unknown"]').wait_for()
    tab.locator('[id="p-tasks.max"]').fill("x")
    assert json.loads(side.input_value())["tasks.max"] == "x"
    tab.locator('[id="p-tasks.max-error"]').wait_for()
    tab.locator('[id="p-tasks.max"]').fill("1")
    tab.locator('[id="p-slot.name"]').fill("slot_page_other")
    page.picture("form")
    tab.get_by_role("button", name="Save").click()
    assert "slot.name=slot_page_other" in tab.get_by_role("dialog").inner_text()
    tab.get_by_role("dialog").get_by_role("button", name="Save").click()
    tab.get_by_role("button", name="Edit configuration").wait_for()
    assert site.request("GET", "/connectors/weak/config") == {**before, "slot.name": "slot_page_other", "own.unknown": "kept"}
    site.wait_for("weak", "FAILED")


@pytest.mark.presses("edit-configuration", "test-connection")
def test_the_connection_is_tested_by_the_doctor_with_the_stored_secret(page: Page) -> None:
    tab = page.open("#/connector/weak/config")
    tab.get_by_role("button", name="Edit configuration").click()
    tab.get_by_role("button", name="Test connection").click()
    finding = tab.locator(".findings li", has_text="has not the privilege REPLICATION")
    finding.wait_for()
    assert 'ALTER ROLE "page_weak" WITH REPLICATION;' in finding.locator("code").inner_text()
    assert "The database administrator, as a superuser" in finding.inner_text()
    assert "captured tables" in tab.locator(".diagnosis").inner_text()
    page.picture("doctor")


@pytest.mark.presses("choose-plugin", "save", "save-changes", "one-delete", "confirm")
def test_a_connector_is_made_and_deleted_by_the_keyboard_alone(page: Page, site: Worker, tmp_path: Path) -> None:
    tab = page.open("")
    keys = tab.keyboard

    def tab_to(what: str) -> None:
        for _ in range(200):
            keys.press("Tab")
            name = tab.evaluate("(e => (e.getAttribute('aria-label') || e.id || e.innerText || '').trim())(document.activeElement)")
            if name.startswith(what):
                assert tab.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none" or "dialog" in what
                return
        raise AssertionError(f"the tab key does not lead to {what}")

    tab_to("New connector")
    keys.press("Enter")
    tab.get_by_role("heading", name="New connector").wait_for()
    tab.locator(".plugins button").first.wait_for()
    tab_to("File source")
    keys.press("Enter")
    tab.locator('[id="p-name"]').wait_for()
    tab_to("p-name")
    keys.type("by-keys")
    for name, value in (("file", str(tmp_path / "keys.txt")), ("topic", "page-keys")):
        tab.locator(f'[id="p-{name}"]').wait_for()
        tab_to(f"p-{name}")
        keys.type(value)
    tab_to("Create")
    keys.press("Enter")
    tab.get_by_role("dialog").wait_for()
    tab_to("Create")
    keys.press("Enter")
    tab.get_by_role("heading", name="by-keys").wait_for()
    site.wait_for("by-keys", "RUNNING")
    tab.get_by_role("button", name="Delete by-keys").wait_for()
    tab_to("Delete by-keys")
    keys.press("Enter")
    tab.get_by_role("dialog").wait_for()
    keys.press("Escape")
    tab.get_by_role("dialog").wait_for(state="detached")
    eventually(lambda: tab.evaluate("document.activeElement.ariaLabel") == "Delete by-keys", "focus where it was", SECONDS)
    keys.press("Enter")
    tab.get_by_role("dialog").wait_for()
    if tab.evaluate("document.activeElement.tagName") != "INPUT":
        keys.press("Tab")
    keys.type("by-keys")
    keys.press("Enter")
    tab.get_by_role("heading", name="Connectors").wait_for()
    with pytest.raises(RefusedError, match="not found"):
        site.request("GET", "/connectors/by-keys")


@pytest.mark.presses("blocking", "start-snapshot")
def test_a_signal_starts_a_snapshot_from_the_page(page: Page, site: Worker) -> None:
    tab = page.open("#/connector/orders/snapshot")
    tab.locator("form input[type=text]").first.fill("public.orders")
    tab.get_by_role("radio", name="blocking").check()
    with tab.expect_response(lambda answer: answer.url.endswith("/signals")) as answered:
        tab.get_by_role("button", name="Start snapshot").click()
    assert answered.value.status == 202
    tab.locator(".timeline li").first.wait_for()


def test_a_snapshot_of_a_million_rows_moves_its_bar_and_knows_the_time_left(
    page: Page, site: Worker, kafka: Any, postgres: Any, database: str
) -> None:
    with postgres.connect(database) as admin:
        # never analyzed: the rows are estimated from a sample of its pages
        admin.execute("CREATE TABLE archive (id int PRIMARY KEY, amount int, note text) WITH (autovacuum_enabled = off)")
        admin.execute("INSERT INTO archive SELECT g, g, 'note ' || g FROM generate_series(1, 1000000) g")
    site.request("POST", "/connectors", {"name": "archive", "config": postgres_source(postgres, database, "page_archive")})
    try:
        tab = page.open("#/connector/archive/snapshot")
        bar = tab.get_by_role("progressbar", name="The whole snapshot")
        bar.wait_for()
        samples: list[tuple[float, float, float]] = []

        def progress() -> Any:
            return site.request("GET", "/ui/api/state")["connectors"]["archive"]["snapshot"]

        eventually(progress, "a snapshot that is shown", SECONDS)
        while (found := progress()) and found["state"] == "RUNNING":
            values = bar.evaluate_all("bars => bars.map(bar => bar.getAttribute('value'))")  # waits for none: it leaves with the snapshot
            if "seconds_left" in found and values and values[0]:
                samples.append((time.monotonic(), found["seconds_left"], float(values[0])))
                if len(samples) == 5:
                    page.picture("snapshot")
        ended = time.monotonic()
        # one of less than 30 s is shown no more when it has ended (`connectors.engine.metrics`)
        assert found is None or (found["state"] == "COMPLETED" and found["rows"] == 1_000_000)
        eventually(lambda: kafka.count("pg_page_archive.public.archive") == 1_000_000, "all rows on the topic", SECONDS)
        shares = [share for _, _, share in samples]
        assert shares == sorted(shares) and len(set(shares)) >= 3, shares
        middle = (samples[0][0] + ended) / 2
        at, left, _ = min(samples, key=lambda sample: abs(sample[0] - middle))
        print(f"in the middle: {left:.0f} s left, {ended - at:.1f} s taken; shares {shares[0]:.2f} to {shares[-1]:.2f}")
        assert left == pytest.approx(ended - at, rel=0.5, abs=2)
    finally:
        site.delete("archive")


def test_log_plots_and_worker_show_what_the_worker_knows(page: Page, site: Worker) -> None:
    tab = page.open("#/connector/orders/log")
    tab.locator(".log div").first.wait_for()
    assert "[orders|task-0]" in tab.locator(".log").inner_text()
    page.open("#/connector/orders/overview")
    eventually(lambda: tab.locator(".plot canvas").count() >= 3, "three plots", SECONDS)
    assert "confirmed position" in tab.locator(".facts").inner_text().lower()
    page.picture("overview")
    page.open("#/worker")
    tab.get_by_text("group.id").wait_for()
    assert site.group in tab.locator("main").inner_text()


def test_no_answer_that_the_page_reads_holds_a_secret(page: Page, site: Worker) -> None:
    answers: list[bytes] = []

    def note(answer: Any) -> None:
        if "/ui/" in answer.url and answer.status == 200:
            answers.append(answer.body())

    page.tab.on("response", note)
    for view in ("#/", "#/connector/weak/tasks", "#/connector/weak/config", "#/connector/weak/log", "#/worker"):
        page.open(view)
    assert len(answers) > 5
    assert not any(SECRET.encode() in body for body in answers)
