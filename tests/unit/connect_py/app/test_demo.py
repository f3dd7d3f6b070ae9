"""The demo's parts that need no server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from connect_py.app.cli import main
from connect_py.app.demo.events import Change, parse_change
from connect_py.app.demo.screen import Screen, as_path, as_typed, command, progress
from connect_py.app.demo.stage import GROUP_SETTINGS, LeftRunning, group_names, is_still, state_file
from connect_py.app.demo.takeover import Place, Tally, Writer, places, tally
from connect_py.app.services.guard import started_at
from connect_py.group.membership import GroupTimings
from spark_sink.spark.jars import java
from tests.waiting import eventually


@pytest.fixture(autouse=True)
def state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def test_a_request_is_shown_as_a_command_that_a_shell_understands() -> None:
    body = {"name": "it's", "config": {"a": "b c"}}
    shown = as_typed(command("POST", "http://localhost:8083/connectors", body))
    words = subprocess.run(["sh", "-c", f"printf '%s\\n' {shown}"], capture_output=True, text=True, check=True).stdout
    assert words.startswith("curl\n-s\n-X\nPOST\n-H\nContent-Type: application/json\nhttp://localhost:8083/connectors\n-d\n")
    assert json.loads(words.split("-d\n")[1]) == body


def test_paths_are_shown_from_this_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert as_path(tmp_path / ".venv/bin/connect-py") == ".venv/bin/connect-py"
    assert as_path("/usr/bin/psql") == "/usr/bin/psql"
    assert as_path(f"{tmp_path}-other/psql") == f"{tmp_path}-other/psql"


def test_a_get_is_shown_without_what_it_does_not_need() -> None:
    assert as_typed(command("GET", "http://localhost:8083/connectors")) == "curl -s http://localhost:8083/connectors"


def test_a_change_is_its_key_operation_and_rows() -> None:
    key = b'{"schema":{},"payload":{"id":7}}'
    value = b'{"schema":{},"payload":{"before":null,"after":{"id":7},"op":"c"}}'
    assert parse_change(key, value) == Change(7, "create", None, {"id": 7})
    assert parse_change(key, None) == Change(7, "tombstone", None, None)


def test_texts_of_mongodb_are_read_as_documents_and_ids() -> None:
    key = b'{"schema":{},"payload":{"id":"1001"}}'
    value = json.dumps({"payload": {"before": None, "after": '{"_id": 1001, "email": "a@b"}', "op": "u"}}).encode()
    assert parse_change(key, value) == Change(1001, "update", None, {"_id": 1001, "email": "a@b"})


def test_a_bar_has_the_rate_and_what_is_left() -> None:
    assert progress(500_000, 1_000_000, 10) == "[████████████············] 500,000 of 1,000,000, 50,000/s, 10 s left"
    assert progress(750_000, 1_000_000, 10, 500_000).endswith("750,000 of 1,000,000, 25,000/s, 10 s left")
    assert progress(0, 10, 0) == "[························] 0 of 10, 0/s"


def test_mixed_changes_insert_update_and_delete_in_turn() -> None:
    done: list[tuple[str, int]] = []

    class Recording:
        def insert(self, number: int) -> int:
            done.append(("insert", number))
            return 100 + number

        def update(self, key: int, number: int) -> None:
            done.append(("update", key))

        def delete(self, key: int) -> None:
            done.append(("delete", key))

        def close(self) -> None:
            done.append(("close", 0))

    with Writer(Recording, 0.0001, mixed=True) as writer:
        eventually(lambda: writer.changes >= 8, "eight changes")
    assert done[:8] == [
        ("insert", 1),
        ("update", 101),
        ("insert", 3),
        ("delete", 103),
        ("insert", 5),
        ("update", 105),
        ("insert", 7),
        ("delete", 107),
    ]
    assert done[-1] == ("close", 0)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--kill", "--workers", "2"], "--kill is for one worker"),
        (["--rows", "-1"], "--rows needs a number of rows, not -1."),
    ],
)
def test_options_that_do_not_fit_are_refused(arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", *arguments]) == 1
    assert problem in capsys.readouterr().err


def test_a_table_has_its_columns_under_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    Screen().table(("id", "name"), [(1, "a"), (1000, None)])
    assert capsys.readouterr().out == "     id    name\n     1     a\n     1000\n"


def test_another_process_with_the_same_id_is_not_taken_for_the_one_that_was_left() -> None:
    started = started_at(os.getpid())
    assert is_still(LeftRunning("this one", os.getpid(), started, 15))
    assert not is_still(LeftRunning("another", os.getpid(), started + "0", 15))


def test_a_process_that_is_gone_is_not_running() -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert not is_still(LeftRunning("gone", gone.pid, started_at(gone.pid), 15))


def test_who_runs_what_is_read_of_the_statuses() -> None:
    task = {"id": 0, "state": "UNASSIGNED", "worker_id": "127.0.0.1:8084"}
    status = {"connector": {"state": "RUNNING", "worker_id": "127.0.0.1:8083"}, "tasks": [task]}
    assert places({"b": {"status": {**status, "tasks": []}}, "a": {"status": status}}) == [
        Place("a", None, "RUNNING", "127.0.0.1:8083"),
        Place("a", 0, "UNASSIGNED", "127.0.0.1:8084"),
        Place("b", None, "RUNNING", "127.0.0.1:8083"),
    ]


def test_rows_that_did_not_arrive_and_those_that_came_again_are_counted() -> None:
    assert tally([7, 8, 9], [1, 7, 8, 9]) == Tally([], 0)
    assert tally([7, 8, 9], [7, 8, 7, 8, 7]) == Tally([9], 3)
    assert tally([], [7, 7]) == Tally([], 0)


def test_workers_of_a_group_share_its_name_and_its_topics_alone() -> None:
    topics = {f"{kind}.storage.topic": f"my-{kind}" for kind in ("config", "offset", "status")}
    assert group_names({"group.id": "my", **topics, "rest.advertised.port": "8083", "offset.storage.partitions": "5"}) == {
        "group.id": "my",
        **topics,
    }


def test_the_demos_group_waits_a_short_time_that_a_worker_accepts() -> None:
    timings = GroupTimings.parse(GROUP_SETTINGS)
    assert timings.session + timings.max_delay <= 10_000
    assert timings.lease_seconds < timings.session / 1000


@pytest.mark.parametrize("count", ["0", "9", "-1"])
def test_a_number_of_workers_that_this_machine_cannot_bear_is_refused(count: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--workers", count]) == 1
    assert f"The demo has 1 to 8 workers, not {count}." in capsys.readouterr().err


def test_stopping_when_nothing_was_left_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--stop"]) == 1
    assert "No demo was left running." in capsys.readouterr().err


def test_a_second_demo_beside_one_that_was_left_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    state_file().parent.mkdir(parents=True)
    state_file().write_text('{"processes": [], "folders": []}')
    assert main(["demo"]) == 1
    assert "connect-py demo --stop" in capsys.readouterr().err
    assert main(["demo", "--stop"]) == 0
    assert not state_file().exists()


def test_a_missing_java_gets_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    java.cache_clear()  # another test may have found one
    assert main(["demo"]) == 1
    told = capsys.readouterr().err.strip()
    assert "Java 17 or newer is needed" in told
    assert "\n" not in told
    assert not list(tmp_path.iterdir()), "a folder was left behind"
