"""A worker and its tasks over a real broker: life cycle, crashes, restarts, what is left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from connect_py.app.services.process import free_port, is_running
from connect_py.app.services.worker import RefusedError, Worker
from tests.cluster import plugin_folder
from tests.fix_kafka import Kafka
from tests.waiting import let_time_pass, wait_until

pytestmark = pytest.mark.services


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    path = tmp_path / "lines.txt"
    path.write_text("one\ntwo\n")
    return path


@pytest.fixture(scope="module")
def undisturbed(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    """A worker for the tests here that leave it running."""
    made = Worker(tmp_path_factory.mktemp("undisturbed"), kafka.bootstrap)
    yield made
    made.stop()


@pytest.fixture
def worker(undisturbed: Worker, tag: str) -> Iterator[Worker]:
    """A worker without any task; the connector `tag` is deleted after the test."""
    assert undisturbed.children() == []
    yield undisturbed
    undisturbed.delete(tag)
    wait_until(lambda: not undisturbed.children(), 60, "no process")


def file_source(path: Path, topic: str, **more: str) -> dict[str, str]:
    return {"connector.class": "FileStreamSource", "file": str(path), "topic": topic, "tasks.max": "1", **more}


def values(kafka: Kafka, topic: str) -> list[str]:
    return [json.loads(message.value())["payload"] for message in kafka.read(topic)]


def await_values(kafka: Kafka, topic: str, expected: list[str], seconds: float = 60) -> None:
    wait_until(lambda: kafka.count(topic) >= len(expected), seconds, f"{len(expected)} records in {topic}")
    assert values(kafka, topic) == expected


def offsets(worker: Worker, name: str) -> list[Any]:
    return worker.request("GET", f"/connectors/{name}/offsets")["offsets"]


def await_position(worker: Worker, name: str, position: int) -> None:
    wait_until(lambda: [entry["offset"]["position"] for entry in offsets(worker, name)] == [position], 60, f"position {position}")


def signal_another_thread(worker: Worker) -> None:
    """Send SIGTERM so that one of the worker's threads gets it that does not wait for it, as the kernel may decide by itself."""
    os.kill(next(thread for thread in map(int, os.listdir(f"/proc/{worker.pid}/task")) if thread != worker.pid), signal.SIGTERM)


def test_a_worker_that_is_killed_leaves_no_process_and_goes_on_where_it_was(
    make_worker: Callable[..., Worker], kafka: Kafka, tag: str, lines: Path
) -> None:
    worker = make_worker()
    worker.create(tag, file_source(lines, tag))
    await_values(kafka, tag, ["one", "two"])
    await_position(worker, tag, 8)
    orphans = worker.children()
    assert orphans
    worker.kill()
    wait_until(lambda: not any(map(is_running, orphans)), 60, "the end of the tasks")
    with lines.open("a") as file:
        file.write("three\n")
    worker.restart()
    worker.wait_for(tag, "RUNNING")
    await_values(kafka, tag, ["one", "two", "three"])


def test_a_task_that_is_killed_is_started_again_and_goes_on(worker: Worker, kafka: Kafka, tag: str, lines: Path) -> None:
    worker.create(tag, file_source(lines, tag))
    await_values(kafka, tag, ["one", "two"])
    await_position(worker, tag, 8)
    (killed,) = worker.children()
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: [pid for pid in worker.children() if pid != killed], 60, "another process")
    worker.wait_for(tag, "RUNNING")
    with lines.open("a") as file:
        file.write("three\n")
    await_values(kafka, tag, ["one", "two", "three"])
    assert "SIGKILL" in worker.log.read_text()


def test_a_stopped_worker_commits_what_it_sent_and_reports_unassigned(
    make_worker: Callable[..., Worker], kafka: Kafka, tag: str, lines: Path
) -> None:
    worker = make_worker(properties={"offset.flush.interval.ms": "3600000"})
    worker.create(tag, file_source(lines, tag))
    await_values(kafka, tag, ["one", "two"])
    signal_another_thread(worker)
    wait_until(lambda: not worker.service.is_alive(), 30, "end of the worker")
    reports = [
        json.loads(m.value())["state"]
        for m in kafka.read(worker.topic("status"))
        if m.key() == f"status-task-{tag}-0".encode() and m.value()
    ]
    assert reports[-1] == "UNASSIGNED"
    worker.restart()
    worker.wait_for(tag, "RUNNING")
    await_position(worker, tag, 8)
    assert values(kafka, tag) == ["one", "two"]


def test_the_same_configuration_again_leaves_the_task_alone_and_another_restarts_it(
    worker: Worker, kafka: Kafka, tag: str, lines: Path
) -> None:
    config = file_source(lines, tag)
    worker.create(tag, config)
    before = worker.children()
    worker.request("PUT", f"/connectors/{tag}/config", config)
    worker.request("POST", f"/connectors/{tag}/restart")  # answers when the connector, restarted by the PUT too, runs
    assert worker.children() == before
    worker.request("PUT", f"/connectors/{tag}/config", {**config, "errors.log.enable": "true"})
    wait_until(lambda: worker.children() and worker.children() != before, 60, "another process")
    worker.wait_for(tag, "RUNNING")


def test_pause_stop_resume_and_delete_do_to_the_process_what_they_say(worker: Worker, kafka: Kafka, tag: str, lines: Path) -> None:
    worker.create(tag, file_source(lines, tag))
    await_values(kafka, tag, ["one", "two"])
    worker.request("PUT", f"/connectors/{tag}/pause")
    worker.wait_for(tag, "PAUSED")
    paused = worker.children()
    assert paused
    with lines.open("a") as file:
        file.write("three\n")
    worker.request("PUT", f"/connectors/{tag}/stop")
    wait_until(lambda: not worker.children(), 60, "no process")
    assert values(kafka, tag) == ["one", "two"], "a paused task reads nothing"
    worker.request("PUT", f"/connectors/{tag}/resume")
    await_values(kafka, tag, ["one", "two", "three"])
    worker.delete(tag)
    wait_until(lambda: not worker.children(), 60, "no process")
    with pytest.raises(RefusedError, match="No status found"):
        wait_until(lambda: not worker.status(tag), 60, "no status")


def test_a_connector_made_stopped_runs_nothing_and_takes_offsets(worker: Worker, kafka: Kafka, tag: str, lines: Path) -> None:
    worker.request("POST", "/connectors", {"name": tag, "config": file_source(lines, tag), "initial_state": "STOPPED"})
    entry = {"partition": {"filename": str(lines)}, "offset": {"position": 4}}
    worker.request("PATCH", f"/connectors/{tag}/offsets", {"offsets": [entry]})
    assert offsets(worker, tag) == [entry]
    assert worker.children() == []
    worker.request("PUT", f"/connectors/{tag}/resume")
    await_values(kafka, tag, ["two"])
    with pytest.raises(RefusedError, match="must be in the STOPPED state") as refused:
        worker.request("DELETE", f"/connectors/{tag}/offsets")
    assert refused.value.status == 400


def test_a_failed_task_says_why_and_a_restart_of_the_failed_brings_it_back(worker: Worker, kafka: Kafka, tag: str, lines: Path) -> None:
    worker.create(tag, file_source(lines, tag))
    await_values(kafka, tag, ["one", "two"])
    await_position(worker, tag, 8)
    worker.request("PUT", f"/connectors/{tag}/pause")
    worker.wait_for(tag, "PAUSED")
    lines.write_text("x\n")
    worker.request("PUT", f"/connectors/{tag}/resume")
    worker.request("POST", f"/connectors/{tag}/tasks/0/restart")
    status = worker.wait_for(tag, "FAILED")
    assert status["connector"]["state"] == "RUNNING"
    trace = status["tasks"][0]["trace"]
    assert trace.startswith("org.apache.kafka.connect.errors.ConnectException: The file ")
    assert "was truncated or replaced" in trace.partition("\n")[0]
    lines.write_text("one\ntwo\nthree\n")
    answer = worker.request("POST", f"/connectors/{tag}/restart?includeTasks=true&onlyFailed=true")
    assert (answer["connector"]["state"], answer["tasks"][0]["state"]) == ("RUNNING", "RESTARTING")
    worker.wait_for(tag, "RUNNING")
    await_values(kafka, tag, ["one", "two", "three"])


def test_topics_are_known_while_records_flow_and_forgotten_on_request(worker: Worker, kafka: Kafka, tag: str, lines: Path) -> None:
    worker.create(tag, file_source(lines, tag))

    def topics() -> list[str]:
        return worker.request("GET", f"/connectors/{tag}/topics")[tag]["topics"]

    wait_until(lambda: topics() == [tag], 60, "the topic")
    worker.request("PUT", f"/connectors/{tag}/topics/reset")
    wait_until(lambda: topics() == [], 60, "no topic")
    with lines.open("a") as file:
        file.write("three\n")
    wait_until(lambda: topics() == [tag], 60, "the topic again")


def test_connectors_outlive_the_worker_in_the_state_they_were_put(
    make_worker: Callable[..., Worker], kafka: Kafka, tag: str, lines: Path
) -> None:
    worker = make_worker()
    for name in ("run", "rest", "halt"):
        worker.create(f"{name}-{tag}", file_source(lines, f"{tag}-{name}"))
    worker.request("PUT", f"/connectors/rest-{tag}/pause")
    worker.request("PUT", f"/connectors/halt-{tag}/stop")
    worker.wait_for(f"rest-{tag}", "PAUSED")
    worker.restart()
    worker.wait_for(f"run-{tag}", "RUNNING")
    worker.wait_for(f"rest-{tag}", "PAUSED")
    assert worker.status(f"halt-{tag}")["connector"]["state"] == "STOPPED"
    assert worker.status(f"halt-{tag}")["tasks"] == []


def start(arguments: list[str], env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "connect_py.app.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, **(env or {})}, check=False)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"group.id": None}, 'Missing required configuration "group.id"'),
        ({"listeners": "nonsense"}, "Listener doesn't have the right format"),
    ],
)
def test_a_bad_property_ends_the_worker_with_one_sentence(
    kafka: Kafka, tmp_path: Path, change: dict[str, str | None], expected: str
) -> None:
    properties = {
        "bootstrap.servers": kafka.bootstrap,
        "group.id": "g",
        "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "config.storage.topic": "c",
        "offset.storage.topic": "o",
        "status.storage.topic": "s",
        **change,
    }
    path = tmp_path / "w.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in properties.items() if value is not None))
    ended = start(["distributed", str(path)])
    assert ended.returncode == 2
    assert len(ended.stderr.splitlines()) == 1
    assert expected in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(("arguments", "code"), [(["--help"], 0), (["--version"], 0), ([], 1), (["frobnicate"], 1), (["standalone"], 1)])
def test_the_command_line_explains_itself(arguments: list[str], code: int) -> None:
    ended = start(arguments)
    assert ended.returncode == code
    assert "connect-py" in ended.stdout + ended.stderr


def test_a_standalone_worker_keeps_offsets_in_its_file_and_ends_when_a_connector_file_is_wrong(
    kafka: Kafka, tmp_path: Path, tag: str, lines: Path
) -> None:
    worker = tmp_path / "w.properties"
    converter = "org.apache.kafka.connect.json.JsonConverter"
    worker.write_text(
        f"bootstrap.servers={kafka.bootstrap}\nkey.converter={converter}\nvalue.converter={converter}\noffset.flush.interval.ms=3600000\n"
        f"offset.storage.file.filename={tmp_path / 'offsets'}\nlisteners=http://127.0.0.1:{free_port()}\n"
        f"group.id=g\nexactly.once.source.support=enabled\n"
    )
    connector = tmp_path / "c.properties"
    connector.write_text(f"name={tag}\nconnector.class=FileStreamSource\nfile={lines}\ntopic={tag}\noffsets.storage.topic=own-{tag}\n")
    for expected in (["one", "two"], ["one", "two", "three"]):
        process = subprocess.Popen([sys.executable, "-m", "connect_py.app.cli", "standalone", str(worker), str(connector)], cwd=tmp_path)
        try:
            await_values(kafka, tag, expected)
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
        finally:
            process.kill()
        lines.write_text("one\ntwo\nthree\n")
    assert kafka.count(f"own-{tag}") == 0, "it kept offsets where only a group does"
    assert '{"position":14}' in (tmp_path / "offsets").read_text()
    connector.write_text(f"name={tag}\n")
    assert start(["standalone", str(worker), str(connector)]).returncode == 3
    # which only the start finds out
    worker.write_text(f"{worker.read_text()}plugin.path={plugin_folder(tmp_path)}\n")
    connector.write_text(f"name={tag}\nconnector.class=tests.BlockingSource\nblock=Connector::start\n")
    ended = start(["standalone", str(worker), str(connector)])
    assert ended.returncode == 3 and f"Failed to transition connector {tag} to state STARTED" in ended.stderr


@pytest.mark.long
def test_an_unreachable_broker_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "w.properties"
    began = time.monotonic()
    path.write_text(
        "bootstrap.servers=127.0.0.1:1\ngroup.id=g\nconfig.storage.topic=c\noffset.storage.topic=o\nstatus.storage.topic=s\n"
        f"key.converter=JsonConverter\nvalue.converter=JsonConverter\nlisteners=http://127.0.0.1:{free_port()}\n"
    )
    ended = start(["distributed", str(path)])
    assert ended.returncode == 2
    waits, ends = ended.stderr.strip().splitlines()
    assert "No Kafka broker has answered at 127.0.0.1:1 yet" in waits
    assert "No Kafka broker answered at 127.0.0.1:1." in ends
    assert time.monotonic() - began < 50


def test_a_worker_whose_own_converter_is_not_installed_does_not_start(tmp_path: Path) -> None:
    path = tmp_path / "w.properties"
    path.write_text(
        "bootstrap.servers=127.0.0.1:1\ngroup.id=g\nconfig.storage.topic=c\noffset.storage.topic=o\nstatus.storage.topic=s\n"
        f"key.converter=JsonConverter\nvalue.converter=org.acme.Nope\nlisteners=http://127.0.0.1:{free_port()}\n"
    )
    ended = start(["distributed", str(path)])
    assert ended.returncode == 2
    assert "Invalid value org.acme.Nope for configuration value.converter: Class org.acme.Nope could not be found." in ended.stderr


def test_a_worker_that_cannot_create_its_topics_says_which_property_is_wrong_and_can_be_stopped(
    kafka: Kafka, tag: str, tmp_path: Path
) -> None:
    properties = tmp_path / "worker.properties"
    properties.write_text(
        f"bootstrap.servers={kafka.bootstrap}\ngroup.id={tag}\nlisteners=http://127.0.0.1:{free_port()}\n"
        "key.converter=org.apache.kafka.connect.json.JsonConverter\nvalue.converter=org.apache.kafka.connect.json.JsonConverter\n"
        + "".join(f"{kind}.storage.topic={tag}-{kind}\n" for kind in ("config", "offset", "status"))
    )
    log = tmp_path / "log"
    with log.open("wb") as output:
        worker = subprocess.Popen([sys.executable, "-m", "connect_py.app.cli", "distributed", str(properties)], stderr=output)
    try:
        wait_until(lambda: "Trying again" in log.read_text(), 30, "a line about the topic")
        let_time_pass(1.2, "two more attempts, which are not worth a line each")
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(60) == 0
    finally:
        worker.kill()
    (said,) = [line for line in log.read_text().splitlines() if "Trying again" in line]
    assert "offset.storage.replication.factor is 3 by default" in said
