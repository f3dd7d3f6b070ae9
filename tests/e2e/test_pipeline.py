"""PostgreSQL -> Kafka -> Iceberg, driven through the REST API alone: what a table holds, its lakehouse table holds."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pyiceberg.table import StaticTable

from connect_py.app.services.postgres import PostgresAddress
from connect_py.app.services.process import command_of
from connect_py.app.services.worker import RefusedError, Worker
from spark_sink.spark.jars import SINK_JARS, cached, resolve
from tests.fix_browser import MISSING, Page
from tests.fix_kafka import Kafka
from tests.fix_postgres import postgres_source
from tests.waiting import eventually, let_time_pass, wait_until

pytestmark = [pytest.mark.services, pytest.mark.spark]

COLUMNS = ("id", "name", "price", "since")

TABLE = "CREATE TABLE product (id integer PRIMARY KEY, name text NOT NULL, price numeric(8,2), since date)"


def source_rows(connection: psycopg.Connection) -> list[dict[str, Any]]:
    rows = connection.execute(f"SELECT {', '.join(COLUMNS)} FROM product ORDER BY id").fetchall()
    return [dict(zip(COLUMNS, row, strict=True)) for row in rows]


def lake(warehouse: Path) -> StaticTable | None:
    try:
        return StaticTable.from_metadata(str(warehouse / "public/product"))
    except FileNotFoundError:
        return None


def lake_rows(warehouse: Path) -> list[dict[str, Any]] | None:
    table = lake(warehouse)
    return table and sorted(table.scan(selected_fields=COLUMNS).to_arrow().to_pylist(), key=lambda row: row["id"])


def await_equal(connection: psycopg.Connection, warehouse: Path, seconds: float = 180) -> None:
    def difference() -> str:
        found, wanted = lake_rows(warehouse) or [], source_rows(connection)
        other = [row for row in wanted if row not in found][:5]
        return f"the lakehouse has {len(found)} rows of {len(wanted)}; without their like: {other}"

    eventually(lambda: lake_rows(warehouse) == source_rows(connection), difference, seconds, pause=1)


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    return tmp_path / "warehouse"


@pytest.fixture
def pipeline(worker: Worker, postgres: PostgresAddress, database: str, tag: str, warehouse: Path) -> Iterator[psycopg.Connection]:
    """A table of a thousand rows with a source and a sink connector, `source-<tag>` and `sink-<tag>`; gives a connection to the table."""
    resolve(SINK_JARS, cached(SINK_JARS, "spark-sink"))  # a download is not the start of the task that is waited for below
    with postgres.connect(database) as connection:
        connection.execute(TABLE)
        connection.execute("INSERT INTO product SELECT g, 'product ' || g, g / 8.0, date '2020-01-01' + g FROM generate_series(1, 1000) g")
        worker.create(f"source-{tag}", postgres_source(postgres, database, tag, table_include_list="public.product"))
        worker.create(
            f"sink-{tag}",
            {
                "connector.class": "SparkLakehouseSink",
                "tasks.max": "1",
                "topics.regex": rf"pg_{tag}\.public\..*",
                "lakehouse.catalog.type": "hadoop",
                "lakehouse.catalog.warehouse": str(warehouse),
                "lakehouse.tables.auto-create-enabled": "true",
                "lakehouse.control.commit.interval-ms": "1000",
                "lakehouse.spark.conf.spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
            },
        )
        yield connection
        worker.delete(f"sink-{tag}")
        worker.delete(f"source-{tag}")


def sink_offset(worker: Worker, tag: str) -> int:
    entries = worker.request("GET", f"/connectors/sink-{tag}/offsets")["offsets"]
    return sum(entry["offset"]["kafka_offset"] for entry in entries)


def test_a_lakehouse_table_follows_its_table_shows_its_offsets_and_is_compacted_and_compared_when_asked(
    pipeline: psycopg.Connection, worker: Worker, kafka: Kafka, tag: str, warehouse: Path
) -> None:
    await_equal(pipeline, warehouse)
    pipeline.execute("INSERT INTO product VALUES (2001, 'new', NULL, NULL)")
    pipeline.execute("UPDATE product SET price = price + 1 WHERE id % 10 = 0")
    pipeline.execute("DELETE FROM product WHERE id % 7 = 0")
    pipeline.execute("UPDATE product SET id = 3001 WHERE id = 1")
    await_equal(pipeline, warehouse)
    end = kafka.count(f"pg_{tag}.public.product")
    wait_until(lambda: sink_offset(worker, tag) == end, 60, "the sink's offsets to reach the topic's end")
    compacts_when_asked(worker, tag)
    compares_when_asked(worker, tag)


def compacts_when_asked(worker: Worker, tag: str) -> None:
    """The command, and what it shows of the table's files."""
    command = [sys.executable, "-m", "connect_py.app.cli", "compact", f"sink-{tag}", "--follow", "--json", "--worker", worker.url]
    told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    notes = [json.loads(line) for line in told.splitlines()]
    assert [note["type"] for note in notes] == ["STARTED", "TABLE_COMPLETED", "COMPLETED"]
    data = notes[1]["additional_data"]
    assert data["table"] == "public.product"
    assert int(data["files_before"]) > int(data["files_after"]) == 1
    with pytest.raises(RefusedError, match=r"This sink has no table nowhere\.t; nothing was compacted.*public\.product"):
        worker.request("POST", f"/connectors/sink-{tag}/signals", {"type": "compact", "data": {"tables": ["nowhere.t"]}})


def compares_when_asked(worker: Worker, tag: str) -> None:
    """The request of the page, from the sink's side and with a table's name from the source's."""
    for name, query, topics in ((f"sink-{tag}", "", 0), (f"source-{tag}", "?table=public.product&topics=true", 1)):
        path = f"/ui/api/connectors/{name}/verification"
        worker.request("POST", path + query)
        eventually(lambda path=path: worker.request("GET", path)["state"] != "running", "end of the comparison", 120)
        shown = worker.request("GET", path)
        assert (shown["state"], shown["error"]) == ("done", None)
        result, *of_topics = shown["results"]
        assert (result["table"], result["verdict"]) == ("public.product", "equal")
        assert [(each["topic"], each["verdict"]) for each in of_topics] == [(f"pg_{tag}.public.product", "equal")] * topics
        assert all(each["source_rows"] == each["topic_rows"] > 800 for each in of_topics)
        assert result["source_rows"] == result["table_rows"] > 800
        assert "differences" not in result, "rest.ui.records is false"


@pytest.mark.long
@pytest.mark.presses("compact-one", "compact-all", "verify-one", "verify-all", "verify-topics", "cancel-verification")
@pytest.mark.skipif(MISSING is not None, reason=str(MISSING))
def test_the_page_compacts_and_compares_a_table_and_names_what_differs(
    pipeline: psycopg.Connection, worker: Worker, browser: Any, axe: str, tag: str, warehouse: Path
) -> None:
    await_equal(pipeline, warehouse)
    opened = Page(browser, worker.url)
    tab = opened.open(f"#/connector/sink-{tag}/tables")
    tab.get_by_role("button", name="Compact public.product").click()
    done = tab.locator(".timeline li", has_text="TABLE_COMPLETED")
    done.first.wait_for()
    tab.get_by_role("button", name="Compact all tables").click()
    eventually(lambda: done.count() == 2, "the second compaction", 120)
    tab.get_by_text("Last commits").click()
    commits = tab.get_by_role("region", name="Last commits").locator("tbody tr")
    eventually(
        lambda: sum(int(row.split("\t")[2].replace(",", "")) for row in commits.all_inner_texts()) == 1000, "all rows in commits", 60
    )
    tab.get_by_role("button", name="Verify all tables").click()
    tab.locator(".pill.good", has_text="equal").wait_for()
    opened.picture("tables-equal")
    tab.get_by_role("checkbox", name="verify the topics").check()
    tab.get_by_role("button", name="Verify all tables").click()
    eventually(lambda: tab.locator(".pill.good", has_text="equal").count() == 2, "the table and its topic", 120)
    tab.get_by_role("row", name=f"topic pg_{tag}.public.product").wait_for()
    opened.picture("tables-topics-equal")
    for width, scheme in ((1280, "light"), (1280, "dark"), (360, "light"), (360, "dark")):
        other = Page(browser, worker.url, width, scheme)
        other.open(f"#/connector/sink-{tag}/tables").get_by_text("Last commits").click()
        other.tab.locator(".pill.good", has_text="equal").first.wait_for()
        other.picture(f"tables-{width}-{scheme}")
        assert list(other.violations(axe, f"tables, {width}, {scheme}")) == []
        other.close()
    worker.request("PUT", f"/connectors/sink-{tag}/pause")
    worker.wait_for(f"sink-{tag}", "PAUSED")
    pipeline.execute("UPDATE product SET name = 'other' WHERE id = 2")
    pipeline.execute("DELETE FROM product WHERE id = 3")
    tab.get_by_role("checkbox", name="verify the topics").uncheck()
    tab.get_by_role("button", name="Verify public.product").click()
    tab.locator("progress").first.wait_for()
    tab.locator(".pill.bad", has_text="different").wait_for()
    assert "columns that differ: name" in tab.locator("section.card").inner_text()
    opened.picture("tables-different")
    tab.get_by_role("button", name="Verify all tables").click()
    tab.get_by_role("button", name="Cancel").click()
    tab.locator("section.card", has_text="cancelled").wait_for()
    opened.close()


@pytest.mark.long
def test_offsets_of_a_stopped_sink_are_altered_by_rest_and_read_from_again(
    pipeline: psycopg.Connection, worker: Worker, kafka: Kafka, tag: str, warehouse: Path
) -> None:
    await_equal(pipeline, warehouse)
    end = kafka.count(f"pg_{tag}.public.product")
    wait_until(lambda: sink_offset(worker, tag) == end, 60, "the sink's offsets to reach the topic's end")
    sink = f"/connectors/sink-{tag}"
    partition = {"kafka_topic": f"pg_{tag}.public.product", "kafka_partition": 0}

    def stored() -> tuple[str | None, int]:
        properties = lake(warehouse).properties
        return properties.get(f"kafka.connect.offsets.sink-{tag}"), int(properties.get(f"kafka.connect.generation.sink-{tag}", 0))

    def alter(method: str, body: object = None) -> None:
        """Each starts a JVM, for which a request may not wait long enough when others use the machine; it can be repeated."""

        def is_altered() -> bool:
            try:
                worker.request(method, f"{sink}/offsets", body)
            except RefusedError as error:
                if "repeat the request" not in str(error):
                    raise
                return False
            return True

        eventually(is_altered, "answer that the offsets are altered", 300)

    worker.request("PUT", f"{sink}/stop")
    wait_until(lambda: worker.request("GET", f"{sink}/status")["connector"]["state"] == "STOPPED", 60, "the sink to stop")
    wait_until(lambda: not task_processes(worker, f"sink-{tag}"), 60, "the sink's process to end")
    alter("PATCH", {"offsets": [{"partition": partition, "offset": {"kafka_offset": 500}}]})
    assert worker.request("GET", f"{sink}/offsets")["offsets"] == [{"partition": partition, "offset": {"kafka_offset": 500}}]
    patched, generation = stored()
    assert patched == f'{{"{partition["kafka_topic"]}":{{"0":500}}}}'
    assert generation >= 1
    alter("DELETE")
    assert worker.request("GET", f"{sink}/offsets")["offsets"] == []
    deleted, last_generation = stored()
    assert deleted == "{}"
    assert last_generation > generation
    pipeline.execute("INSERT INTO product VALUES (4001, 'after', 2, NULL)")
    worker.request("PUT", f"{sink}/resume")
    await_equal(pipeline, warehouse)
    wait_until(lambda: sink_offset(worker, tag) == end + 1, 60, "the sink's offsets to reach the topic's new end")


@pytest.mark.long
def test_a_sink_that_is_killed_while_rows_change_applies_each_change_once(
    pipeline: psycopg.Connection, worker: Worker, tag: str, warehouse: Path
) -> None:
    await_equal(pipeline, warehouse)
    for round_number in range(2):
        commits = len(lake(warehouse).snapshots())
        for step in range(20):
            pipeline.execute("UPDATE product SET price = %s WHERE id %% 20 = %s", (round_number * 100 + step, step))
            pipeline.execute("INSERT INTO product VALUES (%s, 'added', 1, NULL)", (5000 + round_number * 100 + step,))
            let_time_pass(0.1, "the changes must take longer than one batch")
        wait_until(lambda before=commits: len(lake(warehouse).snapshots()) > before, 120, "a commit among the changes")
        tasks = task_processes(worker, f"sink-{tag}")
        assert tasks, "the sink has no process of its own"
        for pid in tasks:
            os.kill(pid, signal.SIGKILL)
        pipeline.execute("DELETE FROM product WHERE id %% 13 = %s", (round_number,))
    await_equal(pipeline, warehouse)
    applied = [snapshot.summary.additional_properties for snapshot in lake(warehouse).snapshots() if snapshot.summary]
    offsets = [text for properties in applied for name, text in properties.items() if name.startswith("kafka.connect.offsets")]
    assert len(offsets) > 2, "the commits carry no offsets"
    assert len(offsets) == len(set(offsets)), "a batch was committed twice"


def task_processes(worker: Worker, connector: str) -> list[int]:
    """The process of one connector's task: its command line ends with the task's name."""
    return [pid for pid in worker.children() if f"{connector}-0" in command_of(pid)]
