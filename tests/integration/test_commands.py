"""The commands of every day against a worker: files become connectors, and what fails, changes and is read again is shown."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from connect_py.app.cli import main
from connect_py.app.services.postgres import PostgresAddress
from connect_py.app.services.worker import Worker
from connect_py.kafka.admin import KafkaAdmin
from tests.fix_kafka import Kafka
from tests.fix_postgres import postgres_source
from tests.reference import REFERENCE, JavaWorker
from tests.waiting import eventually

pytestmark = pytest.mark.services


@dataclass
class Run:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Command = Callable[..., Run]


JAVA = pytest.param(
    "java", marks=[pytest.mark.long, pytest.mark.skipif(not REFERENCE, reason="CONNECT_REFERENCE names no folder with Kafka Connect")]
)


@pytest.fixture(scope="module", params=["ours", JAVA])
def own(request: pytest.FixtureRequest, kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    """A worker of this file alone, since `--prune` deletes everybody's connectors: this project's, and Kafka Connect's."""
    folder = tmp_path_factory.mktemp("commands")
    if request.param == "java":
        # the file connector is a plugin of its own since Kafka 3.1.1
        plugins = {"plugin.path": f"{REFERENCE}/plugins,{REFERENCE}/file-plugin"}
        running: Worker = JavaWorker(folder, kafka.bootstrap, properties=plugins)
    else:
        running = Worker(folder, kafka.bootstrap)
    yield running
    running.stop()


@pytest.fixture
def run(own: Worker, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Command]:
    """Runs a command line in this process; all connectors are gone before and after the test."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("CONNECT_PY_WORKER", own.url)

    def command(*arguments: str) -> Run:
        capsys.readouterr()
        code = main(arguments)
        said = capsys.readouterr()
        return Run(code, said.out, said.err)

    yield command
    for name in own.request("GET", "/connectors"):
        own.delete(name)


def write(folder: Path, name: str, config: Mapping[str, str], **more: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"name": name, "config": dict(config), **more}))
    return path


def lines_source(tmp_path: Path, tag: str, **more: str) -> dict[str, str]:
    (tmp_path / "lines.txt").write_text("one\ntwo\n")
    config = {"connector.class": "FileStreamSource", "tasks.max": "1", "file": str(tmp_path / "lines.txt"), "topic": f"{tag}-lines"}
    return config | {"value.converter": "org.apache.kafka.connect.storage.StringConverter"} | more


def test_files_are_applied_once_and_then_nothing_differs(own: Worker, run: Command, tmp_path: Path, tag: str) -> None:
    folder = tmp_path / "connectors"
    write(folder, "a", lines_source(tmp_path, tag))
    (folder / "b.yaml").write_text(
        "apiVersion: kafka.strimzi.io/v1\nkind: KafkaConnector\nmetadata: {name: b}\nspec:\n  class: FileStreamSource\n  tasksMax: 1\n"
        f"  state: paused\n  config: {{file: {tmp_path}/lines.txt, topic: {tag}-b, database.password: secret}}\n"
    )
    assert run("diff", "-f", str(folder)).code == 3
    dry = run("apply", "-f", str(folder), "--dry-run")
    assert (dry.code, own.request("GET", "/connectors")) == (0, [])
    assert "    + database.password: [hidden]" in dry.lines and "secret" not in dry.out
    first = run("apply", "-f", str(folder), "--wait")
    assert (first.code, first.lines[0]) == (0, f"+ a: create ({folder}/a.json)")
    assert own.status("a")["tasks"][0]["state"] == "RUNNING"
    assert own.status("b")["connector"]["state"] == "PAUSED"
    assert run("diff", "-f", str(folder)) == Run(0, "", "")
    assert run("apply", "-f", str(folder)).lines == ["= a: unchanged", "= b: unchanged"]

    write(folder, "a", lines_source(tmp_path, tag, **{"batch.size": "7"}))
    assert run("diff", "-f", str(folder)).lines == [f"~ a: change ({folder}/a.json)", "    + batch.size: 7"]
    assert run("apply", "-f", str(folder), "--wait", "--json").json[0]["changes"] == [{"name": "batch.size", "before": None, "after": "7"}]
    assert own.request("GET", "/connectors/a/config")["batch.size"] == "7"
    own.request("PUT", "/connectors/b/resume")
    assert run("diff", "-f", str(folder)).lines == [f"~ b: change ({folder}/b.yaml)", "    ~ (state): RUNNING → PAUSED"]

    (folder / "a.json").unlink()
    told = run("apply", "-f", str(folder), "--prune")
    assert (told.code, "give --yes" in told.err) == (1, True)
    assert own.request("GET", "/connectors/a")["name"] == "a"
    assert run("apply", "-f", str(folder), "--prune", "--yes").lines[-1] == "- a: delete"
    assert own.request("GET", "/connectors") == ["b"]


def test_the_log_of_a_connector_is_that_of_its_tasks_and_can_be_followed(own: Worker, run: Command, tmp_path: Path, tag: str) -> None:
    run("apply", "-f", str(write(tmp_path / "c", tag, lines_source(tmp_path, tag, file=str(tmp_path)))))
    if isinstance(own, JavaWorker):
        told = run("logs", tag)
        assert (told.code, "is Kafka Connect's in Java" in told.err) == (2, True)
        return
    own.wait_for(tag, "FAILED")
    shown = eventually(lambda: run("logs", tag, "--level", "error").lines, "the failure")
    assert f" ERROR [{tag}|task-0]" in shown[0]
    assert run("logs", tag, "--task", "1").out == ""
    [last] = run("logs", tag, "-n", "1", "--json").lines
    assert json.loads(last)["line"].expandtabs(4) == run("logs", tag).lines[-1]
    output = tmp_path / "output"
    with output.open("w") as file:
        command = [sys.executable, "-P", "-m", "connect_py.app.cli", "logs", tag, "--follow", "--worker", own.url]
        following = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)
    try:
        eventually(lambda: output.read_text().count(" ERROR ") == 1, output.read_text)
        own.request("POST", f"/connectors/{tag}/tasks/0/restart")
        eventually(lambda: output.read_text().count(" ERROR ") == 2, output.read_text)
    finally:
        following.send_signal(signal.SIGINT)
    assert following.wait(60) == 130
    assert run("logs", "nobody").code == 2


def test_a_refused_connector_does_not_keep_the_others_back(own: Worker, run: Command, tmp_path: Path, tag: str) -> None:
    write(tmp_path / "c", "bad", {"connector.class": "FileStreamSource", "tasks.max": "1"})
    write(tmp_path / "c", "good", lines_source(tmp_path, tag))
    told = run("apply", "-f", str(tmp_path / "c"))
    assert told.code == 2
    assert 'Missing required configuration "topic"' in told.out
    assert own.request("GET", "/connectors") == ["good"]


def test_what_fails_is_shown_waited_for_and_restarted(own: Worker, run: Command, tmp_path: Path, tag: str) -> None:
    out = tmp_path / "later/out"
    sink = {"connector.class": "FileStreamSink", "tasks.max": "1", "topics": f"{tag}-lines", "file": str(out)}
    sink["value.converter"] = "org.apache.kafka.connect.storage.StringConverter"
    write(tmp_path / "c", "sink", sink)
    write(tmp_path / "c", "lines", lines_source(tmp_path, tag))
    told = run("apply", "-f", str(tmp_path / "c"), "--wait")
    assert told.code == 3
    assert any(line.startswith("! sink: task 0: org.apache.kafka.connect") for line in told.lines), told.out
    status = run("status")
    assert (status.code, "2 connectors, 1 failed" in status.out) == (3, True)
    assert next(line for line in status.lines if line.startswith("sink ")).split()[:4] == ["sink", "sink", "FAILED", "0/1"]
    assert "task 0     FAILED" in run("status", "sink").out
    assert run("status", "li*").code == 0
    assert run("status", "--json").json[1]["tasks"][0]["state"] == "FAILED"
    described = run("describe", "sink")
    assert f"topics = {tag}-lines" in described.out and "      org.apache.kafka.connect" in described.out
    out.parent.mkdir()
    again = run("restart", "--failed", "*", "--wait")
    assert (again.code, again.lines) == (0, ["sink: restart"])
    assert run("status").code == 0
    assert run("restart", "--failed", "*").lines == ["Nothing has failed."]


def test_connectors_are_paused_stopped_patched_edited_and_deleted(
    own: Worker, run: Command, tmp_path: Path, tag: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("shop-a", "shop-b", "lake"):
        own.create(name, lines_source(tmp_path, tag))
    assert run("pause", "shop-*", "--wait").lines == ["shop-a: pause", "shop-b: pause"]
    assert [own.status(name)["connector"]["state"] for name in ("lake", "shop-a", "shop-b")] == ["RUNNING", "PAUSED", "PAUSED"]
    assert run("resume", "shop-a", "--wait").code == 0
    assert run("stop", "shop-b", "--wait").code == 0
    assert own.status("shop-b")["tasks"] == []
    missing = run("pause", "shop-c")
    assert (missing.code, "Did you mean shop-" in missing.err) == (2, True)

    patched = run("patch", "lake", "batch.size=9", "--unset", "tasks.max", "--wait")
    assert (patched.code, patched.lines) == (0, ["~ lake: change", "    + batch.size: 9", "    - tasks.max: 1"])
    monkeypatch.setenv("EDITOR", "sed -i '/batch.size/s/9/8/'")
    assert run("edit", "lake").lines == ["~ lake: change", "    ~ batch.size: 9 → 8"]
    assert run("edit", "lake").lines == ["= lake: unchanged"]
    assert own.request("GET", "/connectors/lake/config")["batch.size"] == "8"
    monkeypatch.setenv("EDITOR", "false")
    refused = run("edit", "lake")
    assert (refused.code, "ended with exit code 1. Nothing was sent" in refused.err) == (1, True)

    assert run("get", "connectors", "--names").lines == ["lake", "shop-a", "shop-b"]
    assert run("get", "connectors").lines[1].split() == ["lake", "source", "FileStreamSource", "RUNNING", "1/1"]
    eventually(lambda: run("get", "offsets", "lake", "--json").json, "offset")
    assert run("get", "plugins").code == 0 and run("get", "loggers").code == 0
    gone = run("delete", "shop-*", "lake", "--offsets", "--yes")
    assert (gone.code, gone.lines) == (0, ["- lake: delete", "- shop-a: delete", "- shop-b: delete"])
    assert own.request("GET", "/connectors") == []
    own.request("POST", "/connectors", {"name": "lake", "config": lines_source(tmp_path, tag), "initial_state": "STOPPED"})
    assert run("get", "offsets", "lake", "--json").json == []


def test_events_are_shown_as_they_come_and_tables_read_again(
    own: Worker, run: Command, kafka: Kafka, postgres: PostgresAddress, database: str, tag: str, tmp_path: Path
) -> None:
    with postgres.connect(database) as connection:
        connection.execute("CREATE TABLE customers (id integer PRIMARY KEY, email text); ALTER TABLE customers REPLICA IDENTITY FULL")
        connection.execute("INSERT INTO customers VALUES (1001, 'a'), (1002, 'x')")
        config = postgres_source(postgres, database, tag, table_include_list="public.customers", read_only="true", plugin_name="pgoutput")
        assert run("apply", "-f", str(write(tmp_path / "c", tag, config)), "--wait").code == 0
        brokers = ("--bootstrap-servers", kafka.bootstrap)
        eventually(lambda: kafka.count(f"pg_{tag}.public.customers") == 2, "rows of the snapshot")
        read = run("tail", tag, "--from", "earliest", "-n", "2", "--table", "customers", *brokers)
        assert [line.split(" ", 1)[1] for line in read.lines] == [
            "r public.customers id=1001 email=a",
            "r public.customers id=1002 email=x",
        ]

        updates: list[Run] = []
        watching = threading.Thread(target=lambda: updates.append(run("tail", tag, "--op", "u", "-n", "1", *brokers)))
        watching.start()

        def is_seen() -> bool:
            connection.execute("UPDATE customers SET email = email || 'b' WHERE id = 1001")
            watching.join(0.5)
            return not watching.is_alive()

        eventually(is_seen, "update on the screen")
        (update,) = updates
        assert update.code == 0
        before, _, after = update.out.strip().partition(" u public.customers id=1001 email: ")[2].partition(" → ")
        assert (after, set(before)) == (f"{before}b", {"a", *before})

        with_file = ("--worker-properties", str(own.log.with_name("worker.properties")))
        (event,) = run("tail", tag, "--from", "earliest", "-n", "1", "--json", *with_file).out.splitlines()
        assert json.loads(event)["after"] == {"id": 1001, "email": "a"}
        assert run("tail", tag).code == 1, "nobody says where Kafka is"

        assert run("snapshot", tag, "--tables", ",").code == 1
        again = run("snapshot", tag, "--tables", "public.customers", "--where", "id > 1001", "--follow")
        if isinstance(own, JavaWorker):
            assert (again.code, "takes no signals by REST" in again.err) == (2, True)
            return
        assert again.code == 0
        assert again.lines[0].split(" ", 1)[1].startswith("started") and again.lines[-1].split(" ", 1)[1].startswith("completed"), again.out
        told = run("notifications", tag, "-n", "1")
        assert told.lines == again.lines[-1:], "the last of them"
        assert run("notifications", tag, "-n", "-1").code == 1
        arguments = ["notifications", tag, "--follow", "-n", "1", "--json", "--worker", own.url]
        with subprocess.Popen([sys.executable, "-m", "connect_py.app.cli", *arguments], stdout=subprocess.PIPE, text=True) as following:
            assert following.stdout is not None
            assert json.loads(following.stdout.readline())["type"] == "COMPLETED"  # of the snapshot before
            assert run("snapshot", tag, "--tables", "public.customers", "--where", "id > 1001").code == 0
            types = []
            for line in following.stdout:
                types.append(json.loads(line)["type"])
                if types[-1] == "COMPLETED":
                    break
            following.send_signal(signal.SIGINT)
            assert (types[0], following.wait(60)) == ("STARTED", 130)
        last = run("tail", tag, "--from", "1h", "--op", "r", "-n", "4", "--json", *brokers)
        assert [json.loads(line)["key"] for line in last.lines] == [{"id": 1001}, *[{"id": 1002}] * 3]


def test_a_connector_goes_with_all_that_it_has_left_behind(
    own: Worker, run: Command, kafka: Kafka, postgres: PostgresAddress, database: str, tag: str, tmp_path: Path
) -> None:
    topic, brokers = f"pg_{tag}.public.customers", ("--bootstrap-servers", kafka.bootstrap)
    with postgres.connect(database) as connection:
        connection.execute("CREATE TABLE customers (id integer PRIMARY KEY); INSERT INTO customers VALUES (1)")
        config = postgres_source(postgres, database, tag, table_include_list="public.customers", plugin_name="pgoutput")
        slot, publication = config["slot.name"], config["publication.name"]
        asked = f"SELECT slot_name FROM pg_replication_slots WHERE slot_name = '{slot}' UNION ALL SELECT pubname FROM pg_publication"
        assert run("apply", "-f", str(write(tmp_path / "c", tag, config)), "--wait").code == 0
        eventually(lambda: kafka.count(topic) == 1, "row of the snapshot")
        eventually(lambda: run("get", "offsets", tag, "--json").json, "offset")
        eventually(lambda: topic in own.request("GET", f"/connectors/{tag}/topics")[tag]["topics"], "topic in use")
        assert connection.execute(asked).fetchall() == [(slot,), (publication,)]
        everything = ("delete", tag, "--with", "offsets,slot,publication,topics", *brokers)
        refused = run(*everything)
        assert (refused.code, "Nothing was changed" in refused.err, f"topic {topic}" in refused.err) == (1, True, True)
        assert run("delete", tag, "--with", "topics", "--yes").code == 1, "nobody says where Kafka is"
        assert own.status(tag)["connector"]["state"] == "RUNNING"

        gone = run(*everything, "--yes")
        assert (gone.code, gone.lines) == (
            0,
            [
                f"  - {tag}: topic {topic}",
                f"  - {tag}: replication slot {slot}",
                f"  - {tag}: publication {publication}",
                f"- {tag}: delete",
            ],
        ), gone.err
        assert connection.execute(asked).fetchall() == []
        assert own.request("GET", "/connectors") == []
        own.request("POST", "/connectors", {"name": tag, "config": config, "initial_state": "STOPPED"})
        assert run("get", "offsets", tag, "--json").json == []
        with closing(KafkaAdmin({"bootstrap.servers": kafka.bootstrap})) as admin:
            eventually(lambda: topic not in admin.topics(), "end of the topic")
        again = run(*everything, "--yes")
        assert again.code == 0, "what is gone already is no failure"
