"""A lakehouse sink in a real worker: dead letters, maintenance, metrics, and `connect-py verify` while rows change."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import random
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

import psycopg
import pytest
from confluent_kafka import Producer
from pyiceberg.table import StaticTable

from connect_py.app.services.postgres import PostgresAddress
from connect_py.app.services.worker import Worker
from spark_sink.spark.jars import SINK_JARS, cached, resolve
from tests.fix_kafka import Kafka
from tests.fix_postgres import postgres_source
from tests.waiting import wait_until

pytestmark = [pytest.mark.services, pytest.mark.spark, pytest.mark.timeout(900)]

POISON = b'{"schema":{"type":"struct","fields":[],"optional":false},"payload":'


def metric(worker: Worker, name: str, table: str) -> float | None:
    """A figure of one table, as Prometheus reads it."""
    with urllib.request.urlopen(f"{worker.url}/metrics", timeout=60) as answer:
        for line in answer.read().decode().splitlines():
            if line.startswith(f"connect_py_lakehouse_table_{name}{{") and f'table="{table}"' in line:
                return float(line.rsplit(" ", 1)[1])
    return None


def change(connection: psycopg.Connection, stop: threading.Event, rng: random.Random) -> None:
    """Changes of every kind, until it is told to stop."""
    next_id = 1000
    while not stop.is_set():
        next_id += 1
        connection.execute("INSERT INTO product VALUES (%s, %s, %s)", (next_id, f"p{next_id}", rng.randint(0, 9)))
        connection.execute("UPDATE product SET n = n + 1 WHERE id = %s", (rng.randint(1, next_id),))
        connection.execute("DELETE FROM product WHERE id = %s", (rng.randint(1, next_id),))
        stop.wait(0.02)


@pytest.mark.long
def test_a_sink_in_a_worker_sets_bad_records_aside_compacts_its_table_and_verifies_while_rows_change(
    worker: Worker, kafka: Kafka, postgres: PostgresAddress, database: str, tag: str, tmp_path: Path
) -> None:
    resolve(SINK_JARS, cached(SINK_JARS, "spark-sink"))
    topic, letters, seed = f"pg_{tag}.public.product", f"{tag}-letters", random.randrange(10**6)
    print(f"seed {seed}")
    stop = threading.Event()
    with postgres.connect(database) as connection, postgres.connect(database) as changing:
        connection.execute("CREATE TABLE product (id integer PRIMARY KEY, name text, n integer)")
        connection.execute("INSERT INTO product SELECT g, 'p' || g, 0 FROM generate_series(1, 200) g")
        worker.create(f"source-{tag}", postgres_source(postgres, database, tag, table_include_list="public.product"))
        worker.create(
            f"sink-{tag}",
            {
                **lakehouse(topic, tmp_path),
                "lakehouse.maintenance.compact.every-commits": "3",
                "errors.tolerance": "all",
                "errors.deadletterqueue.topic.name": letters,
                "errors.deadletterqueue.topic.replication.factor": "1",
                "errors.deadletterqueue.context.headers.enable": "true",
            },
        )
        writer = threading.Thread(target=change, args=(changing, stop, random.Random(seed)))
        writer.start()
        try:
            wait_until(lambda: metric(worker, "commits_total", "public.product"), 300, "the first commit")
            producer = Producer({"bootstrap.servers": kafka.bootstrap})
            producer.produce(topic, POISON, b"the key", headers=[("mine", b"kept")])
            producer.flush(20)
            wait_until(lambda: kafka.count(letters) == 1, 240, "the dead letter")
            wait_until(lambda: (metric(worker, "maintenance_total", "public.product") or 0) >= 1, 300, "the table's maintenance")
            flowing = verified(worker, tag)  # while rows change
        finally:
            stop.set()
            writer.join()
        assert flowing["equal"], flowing
        connection.execute("INSERT INTO product VALUES (1, 'back', 7) ON CONFLICT (id) DO UPDATE SET name = 'back', n = 7")
        at_rest = verified(worker, tag)
        assert at_rest["equal"] and at_rest["source_rows"] == connection.execute("SELECT count(*) FROM product").fetchone()[0]
        (letter,) = kafka.read(letters)
        assert (letter.key(), letter.value()) == (b"the key", POISON)
        headers = dict(letter.headers())
        assert headers["mine"] == b"kept"
        assert headers["__connect.errors.topic"] == topic.encode()
        assert headers["__connect.errors.connector.name"] == f"sink-{tag}".encode()
        assert int(headers["__connect.errors.offset"]) > 0
        assert worker.status(f"sink-{tag}")["tasks"][0]["state"] == "RUNNING"
        assert (metric(worker, "records_applied_total", "public.product") or 0) >= 200
        assert_the_page_says_why(worker, tag, int(headers["__connect.errors.offset"]), topic)
        worker.delete(f"sink-{tag}")
        worker.delete(f"source-{tag}")


def assert_the_page_says_why(worker: Worker, tag: str, offset: int, topic: str) -> None:
    """The page is told where the bad record is and why it is bad, and of the table's commits."""
    detail = worker.request("GET", f"/ui/api/connectors/sink-{tag}")
    place = f"topic {topic}, partition 0, offset {offset}"
    (rejected,) = detail["rejected"]
    assert (rejected["place"], rejected["table"] in ("", "public.product"), "message" in rejected) == (place, True, False)
    assert rejected["reason"]
    (skipped,) = detail["task_list"][0]["skipped"]
    assert (skipped["place"], skipped["letter"]) == (place, f"{tag}-letters")
    (table,) = detail["tables"]
    assert table["commits"] and all(commit["records"] >= 0 and commit["seconds"] > 0 for commit in table["commits"])


@pytest.mark.long
def test_rows_that_were_deleted_while_nobody_captured_go_with_the_next_blocking_snapshot(
    worker: Worker, postgres: PostgresAddress, database: str, tag: str, tmp_path: Path
) -> None:
    resolve(SINK_JARS, cached(SINK_JARS, "spark-sink"))
    topic = f"pg_{tag}.public.product"
    captured = postgres_source(postgres, database, tag, table_include_list="public.product", read_only="true")
    sink = {**lakehouse(topic, tmp_path), "lakehouse.max-offsets-per-trigger": "40", "lakehouse.snapshot.reconcile": "true"}

    def of_table() -> list[tuple[int, str]]:
        try:
            table = StaticTable.from_metadata(str(tmp_path / "warehouse" / "public" / "product"))
        except FileNotFoundError:
            return []
        return sorted((row["id"], row["name"]) for row in table.scan(selected_fields=("id", "name")).to_arrow().to_pylist())

    with postgres.connect(database) as connection:

        def of_source() -> list[tuple[int, str]]:
            return sorted(connection.execute("SELECT id, name FROM product").fetchall())

        connection.execute("CREATE TABLE product (id integer PRIMARY KEY, name text)")
        connection.execute("INSERT INTO product SELECT g, 'p' || g FROM generate_series(1, 100) g")
        worker.create(f"source-{tag}", captured)
        worker.create(f"sink-{tag}", sink)
        wait_until(lambda: of_table() == of_source(), 300, "the first rows")
        worker.delete(f"source-{tag}")
        slot, name = "FROM pg_replication_slots WHERE slot_name = %s AND active = %s", f"slot_{tag}"
        wait_until(lambda: connection.execute(f"SELECT 1 {slot}", (name, False)).fetchone(), 60, "the slot's release")
        connection.execute(f"SELECT pg_drop_replication_slot(slot_name) {slot}", (name, False))
        connection.execute("DELETE FROM product WHERE id % 3 = 0")
        connection.execute("UPDATE product SET name = 'new' WHERE id % 10 = 0")
        worker.create(f"again-{tag}", {**captured, "snapshot.mode": "no_data"})
        wait_until(lambda: connection.execute(f"SELECT 1 {slot}", (name, True)).fetchone(), 60, "the stream")
        connection.execute("INSERT INTO product VALUES (200, 'between')")
        wait_until(lambda: (200, "between") in of_table(), 120, "a row of the stream")
        assert len(of_table()) == 101, "nobody has told of the deletes"
        signal = {"type": "execute-snapshot", "data": {"data-collections": ["public.product"], "type": "blocking"}}
        worker.request("POST", f"/connectors/again-{tag}/signals", signal)
        connection.execute("INSERT INTO product VALUES (201, 'while it is read')")
        wait_until(lambda: of_table() == of_source(), 180, "the table without them")
        connection.execute("INSERT INTO product VALUES (3, 'back')")
        wait_until(lambda: of_table() == of_source(), 120, "a row that came back")
        assert worker.status(f"sink-{tag}")["tasks"][0]["state"] == "RUNNING"
        worker.delete(f"sink-{tag}")
        worker.delete(f"again-{tag}")


@pytest.mark.long
def test_a_name_alone_is_verified_with_all_connectors_that_belong_to_it(
    worker: Worker, postgres: PostgresAddress, database: str, tag: str, tmp_path: Path
) -> None:
    resolve(SINK_JARS, cached(SINK_JARS, "spark-sink"))
    shop, stock, lake, page = f"shop-{tag}", f"stock-{tag}", f"lake-{tag}", tmp_path / "result.html"
    topics = {shop: f"pg_{tag}.public.product", stock: f"pg_{tag}b.public.part"}
    with postgres.connect(database) as connection:
        for table in ("product", "part"):
            connection.execute(f"CREATE TABLE {table} (id integer PRIMARY KEY, name text)")
            connection.execute(f"INSERT INTO {table} SELECT g, 'p' || g FROM generate_series(1, 50) g")
        worker.create(shop, postgres_source(postgres, database, tag, table_include_list="public.product"))
        worker.create(stock, postgres_source(postgres, database, f"{tag}b", table_include_list="public.part"))
        worker.create(lake, lakehouse(",".join(topics.values()), tmp_path))
        arguments = ["--worker", worker.url, "--wait", "300", "--html", str(page)]
        assert on_a_terminal("verify", lake, *arguments)[0] == 0  # rows that are late settle
        code, said, shown = on_a_terminal("verify", lake, *arguments)
        assert (code, said) == (0, verdicts(lake, {shop: "product", stock: "part"})), said
        assert "public.product: source, 50 of about 50 rows (100 %)" in shown
        assert "2 of 2 tables are equal to their source" in page.read_text()
        code, said, _ = on_a_terminal("verify", stock, *arguments)
        assert (code, said) == (0, ["public.part (public.part): equal; 50 rows in the source, 50 in the table"])
        worker.request("PUT", f"/connectors/{lake}/stop")
        wait_until(lambda: not worker.status(lake)["tasks"], 60, "the sink's end")
        connection.execute("UPDATE part SET name = '<b>' WHERE id = 7")
        code, said, shown = on_a_terminal("verify", lake, "--worker", worker.url, "--wait", "6", "--html", str(page))
        assert code == 3 and said[-1] == "  different id=7: name is '<b>' in the source, 'p7' in the table"
        assert "public.part: differing, 1 keys, which have" in shown
        text = page.read_text()
        assert "1 of 2 tables are equal to their source; 1 differs" in text and "&lt;b&gt;" in text and "<b>" not in text
        for name in (lake, shop, stock):
            worker.delete(name)


def verdicts(sink: str, tables: dict[str, str]) -> list[str]:
    """What is printed of pairs whose tables are equal, of 50 rows each."""
    return [
        f"{source} → {sink}: public.{table} (public.{table}): equal; 50 rows in the source, 50 in the table"
        for source, table in tables.items()
    ]


def on_a_terminal(*arguments: str) -> tuple[int, list[str], str]:
    """Run `connect-py` with a terminal for its asides; returns exit code, lines of the output, and what the terminal was sent."""
    terminal, side = pty.openpty()
    shown: list[bytes] = []

    def read() -> None:
        with contextlib.suppress(OSError):  # how Linux says that nobody writes any more
            while data := os.read(terminal, 4096):
                shown.append(data)

    reader = threading.Thread(target=read)
    reader.start()
    command = [sys.executable, "-m", "connect_py.app.cli", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=side, stdin=subprocess.DEVNULL, text=True, timeout=500, check=False)
    os.close(side)
    reader.join()
    os.close(terminal)
    return done.returncode, [line for line in done.stdout.splitlines() if "were late" not in line], b"".join(shown).decode()


def lakehouse(topic: str, place: Path) -> dict[str, str]:
    """A sink's configuration, for tables below a folder."""
    return {
        "connector.class": "SparkLakehouseSink",
        "topics": topic,
        "lakehouse.catalog.type": "hadoop",
        "lakehouse.catalog.warehouse": str(place / "warehouse"),
        "lakehouse.tables.auto-create-enabled": "true",
        "lakehouse.control.commit.interval-ms": "500",
        "lakehouse.spark.conf.spark.driver.memory": "1g",
        "lakehouse.spark.conf.spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    }


def verified(worker: Worker, tag: str) -> dict[str, object]:
    """What `connect-py verify` says of the one table, asked as a person asks."""
    command = [sys.executable, "-m", "connect_py.app.cli", "verify", f"source-{tag}", f"sink-{tag}", "--worker", worker.url, "--json"]
    done = subprocess.run([*command, "--wait", "120"], capture_output=True, text=True, timeout=400, check=False)
    assert done.stdout, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    assert (done.returncode == 0) == found["equal"]
    return found
