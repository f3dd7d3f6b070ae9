"""`connect-py demo`, as a person runs it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from connect_py.app.cli import main
from connect_py.app.demo.screen import Screen
from connect_py.app.demo.stage import Stage
from connect_py.app.demo.story import SINK, SOURCE, Story
from connect_py.app.services.process import is_listening
from tests.waiting import wait_until

pytestmark = [pytest.mark.services, pytest.mark.spark]

COMMAND = [sys.executable, "-m", "connect_py.app.cli", "demo"]


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "XDG_STATE_HOME": str(tmp_path), "PYTHONUNBUFFERED": "1"}


@pytest.mark.long
def test_the_demo_shows_rows_in_the_topic_and_in_the_lakehouse_and_leaves_nothing(env: dict[str, str]) -> None:
    done = subprocess.run(COMMAND, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout
    assert "$ curl -s -X POST -H 'Content-Type: application/json' http://localhost:" in done.stdout
    assert re.search(r"1004 +tombstone", done.stdout)
    last_table = done.stdout.partition("in the lakehouse table after")[2]
    assert re.search(r"1005 +Elif +Moreau", last_table)
    assert "1004" not in last_table
    assert "Every step showed the expected rows" in done.stdout
    folder = re.search(r'"lakehouse.catalog.warehouse": "(.*)/warehouse"', done.stdout)
    assert folder
    assert not Path(folder[1]).exists()
    ports = [int(port) for port in re.findall(r"localhost:(\d+)", done.stdout)]
    assert ports
    assert not any(is_listening(port) for port in ports)


@pytest.mark.long
def test_the_demo_of_two_workers_kills_one_and_shows_the_other_go_on(env: dict[str, str]) -> None:
    done = subprocess.run([*COMMAND, "--workers", "2"], env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout
    rows = re.search(r"(\d+) rows were inserted before, during and after: the topic has all of them", done.stdout)
    assert rows
    # four of the tutorial's, and those of the writer
    assert f"the lakehouse table equals the database's: {int(rows[1]) + 4} rows, each of them once" in done.stdout
    assert "Every step showed the expected rows" in done.stdout


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("source", ["postgresql", "mysql", "mongodb"])
def test_the_demo_kills_task_spark_and_worker_and_finds_topics_and_tables_equal(env: dict[str, str], source: str) -> None:
    command = [*COMMAND, "--kill", "--source", source]
    done = subprocess.run(command, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout
    killed = re.findall(r"\$ kill -9 (\d+) +# (.*); ([\d,]+) rows have changed", done.stdout)
    assert [what for _, what, _ in killed] == ["the task that reads the database", "Spark", "the worker, and all that it runs"]
    assert len({pid for pid, _, _ in killed}) == 3
    changes = [int(number.replace(",", "")) for *_, number in killed]
    assert changes == sorted(changes)
    found = re.search(r"([\d,]+) rows changed; the topic has all ([\d,]+) that were inserted", done.stdout)
    assert found
    changed, inserted = (int(number.replace(",", "")) for number in found.groups())
    assert changed >= 10_000
    assert inserted == changed - changed // 2
    # every fourth change deletes a row; the tutorial leaves four
    left = 4 + inserted - changed // 4
    assert f"inventory.customers (inventory.customers): equal; {left} rows in the source, {left} in the table" in done.stdout
    assert f".inventory.customers (inventory.customers): equal; {left} rows in the source, {left} in the topic" in done.stdout
    assert "inventory.orders (inventory.orders): equal" in done.stdout


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("source", ["postgresql", "mysql", "mongodb"])
def test_the_demo_of_each_database_shows_the_same_customers_and_counts_the_rows_of_a_larger_table(env: dict[str, str], source: str) -> None:
    done = subprocess.run(
        [*COMMAND, "--source", source, "--rows", "60000"], env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert done.returncode == 0, done.stdout
    assert "the topic dbserver1.inventory.measurements has 60,000 records" in done.stdout
    assert "the Iceberg table inventory.measurements has 60,000 rows" in done.stdout
    assert re.search(r"1004 +tombstone", done.stdout)
    last_table = done.stdout.partition("in the lakehouse table after")[2]
    assert re.search(r"1001 +Ada +Lindgren +ada\.lindgren@example\.com", last_table)
    assert re.search(r"1005 +Elif +Moreau", last_table)
    assert "1004" not in last_table


@pytest.mark.long
def test_the_doctor_finds_nothing_wrong_with_the_demo_and_its_sink(capsys: pytest.CaptureFixture[str]) -> None:
    stage = Stage()
    try:
        Story(stage, Screen(), 1).tell()
        (worker,) = stage.workers
        for name in (SOURCE, SINK):
            capsys.readouterr()
            code = main(["doctor", name, "--worker", worker.url, "--json"])
            said = json.loads(capsys.readouterr().out)
            assert (code, said["findings"], said["unseen"]) == (0, [], []), said
            assert said["looked_at"]
    finally:
        stage.stop()


def test_without_the_lakehouse_the_second_worker_takes_over_and_no_row_is_lost(capsys: pytest.CaptureFixture[str]) -> None:
    stage = Stage()
    try:
        Story(stage, Screen(), 2, lakehouse=False).tell()
        alive = [worker for worker in stage.workers if worker.service.is_alive()]
    finally:
        stage.stop()
    shown = capsys.readouterr().out
    assert len(alive) == 1
    before, _, after = shown.partition("$ kill -9 ")
    killed = next(worker for worker in stage.workers if worker not in alive)
    tasks = r"inventory-connector +task 0 +RUNNING +127\.0\.0\.1:"
    assert re.search(tasks + killed.url.rpartition(":")[2], before)
    assert re.search(tasks + alive[0].url.rpartition(":")[2], after)
    assert killed.url.rpartition(":")[2] not in after.partition("the other worker after")[2]
    assert re.search(r"\d+ rows were inserted before, during and after: the topic has all of them", after)
    assert not stage.folder.exists()


def test_an_interrupted_demo_stops_its_servers(env: dict[str, str], tmp_path: Path) -> None:
    output = tmp_path / "output"
    with output.open("w") as file:
        demo = subprocess.Popen(COMMAND, env=env, text=True, stdout=file, stderr=file)

    try:
        wait_until(lambda: "Kafka at localhost:" in output.read_text(), 120, "the broker", lambda: demo.poll() is None)
        demo.send_signal(signal.SIGINT)
        assert demo.wait(60) == 130
        said = output.read_text()
        assert "Interrupted; everything was stopped." in said
        ports = [int(port) for port in re.findall(r"localhost:(\d+)", said)]
        assert ports
        assert not any(is_listening(port) for port in ports)
    finally:
        demo.kill()
        print(output.read_text())  # says why, if it fails
