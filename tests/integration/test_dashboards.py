"""Public dashboards on a real worker with two sources and a sink; see `tests/dashboards.py`."""

from __future__ import annotations

import os
import urllib.request
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from connect_py.app.services.postgres import PostgresAddress
from connect_py.app.services.worker import Worker
from connect_py.metrics.exposition import Names
from tests.dashboards import PUBLIC, count, series_of, table
from tests.fix_kafka import Kafka
from tests.fix_mysql import MySqlAddress
from tests.fix_postgres import postgres_source
from tests.integration.test_metrics import Scrape
from tests.waiting import wait_until

pytestmark = [pytest.mark.services, pytest.mark.long]


def mysql_source(mysql: MySqlAddress, kafka: Kafka, tag: str) -> dict[str, str]:
    return {
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
    }


def scrape_of(worker: Worker, names: Names) -> str:
    with urllib.request.urlopen(f"{worker.url}/metrics?names={names.value}", timeout=60) as answer:
        return str(answer.read().decode())


def test_nine_of_ten_panels_of_public_dashboards_have_data(
    make_worker: Callable[..., Worker],
    kafka: Kafka,
    postgres: PostgresAddress,
    mysql: MySqlAddress,
    database: str,
    tag: str,
    tmp_path: Path,
) -> None:
    folder = os.environ.get("CONNECT_DASHBOARDS")
    if not folder:
        pytest.skip("NO DASHBOARD WAS TESTED: CONNECT_DASHBOARDS names no folder (tests/dashboards.py)")
    worker = make_worker()
    scrape = Scrape(worker.url)
    with psycopg.connect(postgres.dsn(database), autocommit=True) as session, mysql.connect() as connection, connection.cursor() as cursor:
        session.execute("CREATE TABLE a (id int PRIMARY KEY)")
        session.execute("INSERT INTO a SELECT n FROM generate_series(1, 100) n")
        cursor.execute(f"CREATE DATABASE {tag}")
        try:
            cursor.execute(f"CREATE TABLE {tag}.b (id int PRIMARY KEY)")
            cursor.execute(f"INSERT INTO {tag}.b VALUES (1), (2)")
            connection.commit()
            worker.create(f"{tag}-pg", postgres_source(postgres, database, tag))
            worker.create(f"{tag}-my", mysql_source(mysql, kafka, tag))
            sink = {"connector.class": "FileStreamSink", "file": str(tmp_path / "out.txt"), "topics": f"pg_{tag}.public.a,my_{tag}.{tag}.b"}
            worker.create(f"{tag}-sink", sink)
            for name in ("pg", "my"):
                scrape.until(1, "debezium_metrics_Connected", connector=f"{tag}-{name}", context="streaming")
            cursor.execute(f"ALTER TABLE {tag}.b ADD COLUMN c int")
            cursor.execute(f"INSERT INTO {tag}.b VALUES (3, 3)")
            connection.commit()
            where = {"connector": f"{tag}-my", "context": "streaming"}
            wait_until(lambda: (scrape("debezium_metrics_TotalNumberOfEventsSeen", **where) or 0) >= 1, 60, "an event of MySQL")
            assert scrape("debezium_metrics_BinlogPosition", **where)
            assert scrape("debezium_metrics_ChangesApplied", connector=f"{tag}-my", context="schema-history")
            group = scrape("kafka_connect_metrics_outgoing_byte_rate")
            assert group is not None and group > 0, "heartbeats of the group are traffic"
            assert scrape("kafka_connect_metrics_connection_count")
            client = f"connector-consumer-{tag}-sink-0"
            wait_until(lambda: bool(scrape.all("kafka_consumer_consumer_metrics_incoming_byte_total", client_id=client)), 60, "a consumer")
            series = {names: series_of(scrape_of(worker, names)) for names in Names}
        finally:
            for name in ("sink", "my", "pg"):
                worker.delete(f"{tag}-{name}")
            cursor.execute(f"DROP DATABASE {tag}")
    counts = {each.file: count(Path(folder) / each.file, series[each.names]) for each in PUBLIC}
    print(f"\n{table(counts)}")
    asked = sum(each.total - each.of_the_jvm for each in counts.values())
    assert sum(each.filled for each in counts.values()) / asked >= 0.9
