"""A real Prometheus that reads a real worker, with the rules of docs/monitoring."""

from __future__ import annotations

import json
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml

from connect_py.app.services.postgres import PostgresAddress
from connect_py.app.services.process import free_port
from connect_py.app.services.worker import Worker
from tests.fix_postgres import postgres_source
from tests.integration.test_metrics import Scrape
from tests.paths import ROOT
from tests.waiting import wait_until

pytestmark = [pytest.mark.services, pytest.mark.long]

#: A slot that keeps 1 GB for a quarter of an hour is more than a test can wait for.
LOWERED_BYTES = "4e6"


@contextmanager
def prometheus(folder: Path, worker: Worker, rules: dict[str, Any]) -> Iterator[Callable[[str], Any]]:
    """Run one, and give what asks its API for a path."""
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("NO PROMETHEUS WAS RUN: it is missing (apt-get install prometheus)")
    folder.mkdir()
    (folder / "rules.yml").write_text(yaml.safe_dump(rules))
    config = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": ["rules.yml"],
        "scrape_configs": [
            {"job_name": "connect", "scrape_timeout": "1s", "static_configs": [{"targets": [worker.url.removeprefix("http://")]}]}
        ],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    port = free_port()
    command = [
        program,
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]

    def ask(path: str) -> Any:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/{path}", timeout=60) as answer:
                return json.load(answer)["data"]
        except urllib.error.URLError:
            return None

    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            wait_until(lambda: ask("rules") is not None, 60, "Prometheus to answer")
            yield ask
        finally:
            process.terminate()
            process.wait(60)


def test_the_alert_for_a_growing_slot_fires_while_its_connector_is_stopped(
    make_worker: Callable[..., Worker], postgres: PostgresAddress, database: str, tag: str, tmp_path: Path
) -> None:
    text = (ROOT / "docs" / "monitoring" / "alerts.yml").read_text()
    rules = yaml.safe_load(text.replace("_retained_bytes > 1e9", f"_retained_bytes > {LOWERED_BYTES}"))
    for rule in rules["groups"][0]["rules"]:
        rule["for"] = "1s"
    worker = make_worker(properties={"source.facts.interval.ms": "1000"})
    scrape = Scrape(worker.url)

    with prometheus(tmp_path / "prometheus", worker, rules) as ask:

        def firing() -> set[str]:
            found = ask("alerts")
            alerts = [each for each in found["alerts"] if each["state"] == "firing"] if found else []
            return {each["labels"]["alertname"] for each in alerts if each["labels"].get("connector") == tag}

        with psycopg.connect(postgres.dsn(database), autocommit=True) as session:
            session.execute("CREATE TABLE a (id int PRIMARY KEY, t text)")
            worker.create(tag, postgres_source(postgres, database, tag))
            try:
                scrape.until(1, "debezium_metrics_Connected", connector=tag, context="streaming")
                worker.request("PUT", f"/connectors/{tag}/stop")
                scrape.until(1, "connect_py_source_verdict", connector=tag, verdict="stopped")
                scrape.until(None, "debezium_metrics_Connected", connector=tag, context="streaming")
                session.execute("INSERT INTO a SELECT n, repeat('x', 1000) FROM generate_series(1, 10000) n")
                wait_until(lambda: "ConnectSlotGrows" in firing(), 90, "the alert")
                query = ask("query?query=connect_py_postgres_slot_retained_bytes")
                assert [each["metric"]["job"] for each in query["result"] if each["metric"]["connector"] == tag] == ["connect"]
                assert [each["health"] for each in ask("targets")["activeTargets"]] == ["up"]
            finally:
                worker.delete(tag)
