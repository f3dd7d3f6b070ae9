"""What `connect-py top` draws for a state, and what its keys do to it."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from connect_py.app.client import top
from connect_py.app.client.top import TopView, Wish, keys_of

STATEMENT = 'ALTER ROLE "app" WITH REPLICATION;'
TROUBLE = {
    "task": 0,
    "line": "The user 'app' has not the privilege REPLICATION, which a replication slot needs. "
    f"Run as a superuser: {STATEMENT} Then restart.",
    "statement": STATEMENT,
}


def entry(verdict: str = "streaming", **more: Any) -> dict[str, Any]:
    return {
        "class": "io.debezium.connector.postgresql.PostgresConnector",
        "type": "source",
        "worker": "w:8083",
        "tasks": {"RUNNING": 1},
        "verdict": verdict,
        "reason": "events are read as they happen",
        "rate": 68.2,
        "behind": {"seconds": 0.2, "distance": 4780, "unit": "bytes"},
        "snapshot": None,
        "trouble": None,
        "trend": [0.0, 61.4, 70.2],
        **more,
    }


def failed(**more: Any) -> dict[str, Any]:
    return entry("failed", tasks={"FAILED": 1}, rate=None, behind=None, trend=[], trouble=TROUBLE, reason="1 of 1 tasks failed", **more)


def view_of(**entries: dict[str, Any]) -> TopView:
    view = TopView("localhost:8083")
    view.update({"seq": 1, "full": True, "gone": [], "connectors": entries})
    return view


def cells(line: str) -> int:
    return sum(2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in line)


def many(count: int = 197) -> TopView:
    ones = {f"connector-with-a-long-name-{number:03}": entry() for number in range(count)}
    ones["表" * 30] = entry("behind", reason="3 min behind, catching up")
    ones["archive"] = entry("snapshotting", snapshot={"state": "RUNNING", "rows": 90_000, "estimated_rows": 1_000_000, "seconds_left": 327})
    ones["weak"] = failed()
    return view_of(**ones)


@pytest.mark.parametrize(("width", "height"), [(80, 24), (80, 5), (132, 50), (40, 10)])
def test_a_frame_fills_the_screen_and_no_line_is_longer_than_it(width: int, height: int) -> None:
    view = many()
    for key in ("", "enter", "escape", "end", "/"):
        view.press(key)
        lines = view.frame(width, height, clock="10:00:00")
        assert len(lines) == height
        assert max(map(cells, lines)) <= width


def test_what_failed_comes_first_with_its_cause_and_its_statement() -> None:
    lines = many().frame(80, 24, clock="10:00:00")
    assert lines[0].startswith("localhost:8083  200 connectors: 1 failed or stalled, 1 late, 198 fine")
    assert lines[2].split() == [">", "weak", "failed", "0/1"]
    assert "has not the privilege REPLICATION" in lines[3]
    assert STATEMENT in "".join(lines[4:6])
    shown = "\n".join(lines)
    assert shown.index("weak") < shown.index("表") < shown.index("archive") < shown.index("connector-…-name-000")
    archive = next(line for line in lines if "archive" in line)
    assert archive.endswith("9 %, 5 min") and "68.2/s" in archive
    assert "▁▇█" in many().frame(100, 24)[7]
    assert "Then restart" not in shown


def test_the_order_of_verdicts_is_the_one_of_the_page() -> None:
    words = Path("rest_api/ui/words.js").read_text()
    listed = re.search(r"const ORDER = \[(.*?)\];", words, re.DOTALL)
    assert listed is not None
    assert tuple(re.findall(r"'([^']+)'", listed[1])) == top.ORDER
    assert "if (place <= 1) return 'bad'" in words and "if (place <= 5) return 'warn'" in words
    assert [top.tone(verdict) for verdict in ("stalled", "behind", "restarting", "idle")] == ["bad", "late", "fine", "quiet"]


def test_keys_choose_a_connector_and_ask_for_what_changes_it() -> None:
    view = view_of(a=entry(), b=entry(), c=failed())
    assert view.press("R") == Wish("restart", "c")  # the first one is chosen
    assert view.press("down") is None
    assert (view.press("p"), view.press("r")) == (Wish("pause", "a"), Wish("resume", "a"))
    for key, left in (("x", None), ("y", Wish("stop", "b"))):
        view.press("end")
        assert view.press("s") is None
        assert "Stop b?" in view.frame(80, 24)[-2]
        assert view.press(key) == left
    view.press("home")
    view.press("enter")
    assert view.is_open and view.selected == "c"
    assert "Esc back" in view.frame(80, 24)[-1]
    view.press("escape")
    assert not view.is_open
    assert view.press("q") == Wish("quit")


def test_a_search_keeps_what_matches_and_escape_shows_all_again() -> None:
    view = view_of(orders=entry(), lines=entry(), quiet=entry("idle"))
    for key in "/ordXq":
        assert view.press(key) is None  # a q that is searched for leaves nobody
    for key in ("backspace", "backspace", "enter"):
        view.press(key)
    assert view.names() == ["orders"]
    assert view.press("p") == Wish("pause", "orders")
    view.press("escape")
    view.press("/")
    for key in "idle":
        view.press(key)
    assert view.names() == ["quiet"]
    view.press("escape")
    assert len(view.names()) == 3


def test_answers_with_changes_alone_are_put_together_and_the_chosen_one_stays_chosen() -> None:
    view = view_of(a=entry(), b=entry())
    view.press("end")
    view.press("enter")
    assert view.since == 1
    view.update({"seq": 2, "full": False, "gone": [], "connectors": {"a": failed(), "c": entry()}})
    assert (view.names(), view.selected, view.since) == (["a", "b", "c"], "b", 2)
    view.update({"seq": 3, "full": False, "gone": ["b"], "connectors": {}})
    assert not view.is_open and view.message == "b is deleted."
    assert view.press("p") == Wish("pause", "a")
    view.update({"seq": 4, "full": True, "gone": [], "connectors": {}})
    assert view.press("p") is None and "no connector" in view.frame(80, 24)[1]


def test_an_open_connector_shows_its_tasks_with_remedy_and_trace_and_its_snapshot() -> None:
    view = view_of(weak=failed())
    view.press("enter")
    table = {
        "table": "public.orders",
        "state": "RUNNING",
        "rows": 5000,
        "estimated_rows": 20000,
        "rows_per_second": 512.0,
        "seconds_left": 29,
    }
    task = {"task": 0, "state": "FAILED", "worker": "w:8083", "statement": STATEMENT, "latest": {"rss_bytes": 6e7}}
    trace = f"x.ConnectException: {TROUBLE['line']}\n\tat x.y(z.py:1)\n"
    view.detail = {"task_list": [{**task, "trace": trace}], "snapshots": {"0": {"tables": [table]}}, "trace": None}
    lines = view.frame(80, 40)
    assert "Task 0: failed on w:8083  -  60 MB of memory" in lines
    assert f"    {STATEMENT}" in lines
    assert "Then restart." in " ".join(lines) and "    at x.y(z.py:1)" in lines
    assert "  public.orders: running, 5,000 of about 20,000 rows, 512/s, 29 s left" in lines


def test_texts_of_the_worker_cannot_change_the_terminal() -> None:
    evil = "\x1b]0;owned\x07"
    view = view_of(**{f"a{evil}": failed() | {"reason": evil, "trouble": {"task": 0, "line": evil, "statement": evil}}})
    for key in ("", "enter"):
        view.press(key)
        assert not any("\x1b" in line or "\x07" in line for line in view.frame(80, 24))


def test_colours_are_there_when_they_are_wanted_and_count_as_nothing() -> None:
    plain, painted = (many().frame(80, 24, colour=colour) for colour in (False, True))
    assert "\x1b[31mfailed\x1b[0m" in painted[2]
    assert [re.sub(r"\x1b\[\d+m", "", line).rstrip() for line in painted] == [line.rstrip() for line in plain]


@pytest.mark.parametrize(
    ("typed", "keys"),
    [
        (b"\x1b[A\x1bOB\x1b[6~", ["up", "down", "pagedown"]),
        (b"\x1b", ["escape"]),
        (b"q\r\x7f", ["q", "enter", "backspace"]),
        ("ü表".encode(), ["ü", "表"]),
        (b"\x1b[1;5Ca\x1b[200~", ["a"]),
        (b"\xff\xc3", []),
        (b"", []),
    ],
)
def test_keys_are_told_apart(typed: bytes, keys: list[str]) -> None:
    assert keys_of(typed) == keys
