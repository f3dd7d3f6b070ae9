"""The example package of docs/plugins.md: installed as its readers would install it, driven over REST, with Kafka in between."""

from __future__ import annotations

import json
import os
import site
import sqlite3
import subprocess
import sys
import venv
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from connect_py.app.services.worker import RefusedError, Worker
from tests.fix_kafka import Kafka
from tests.waiting import wait_until

pytestmark = pytest.mark.services

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "docs" / "example-plugin"
ACME = "com.acme.connect."
KINDS = {
    "HttpFeedSourceConnector": "source",
    "SqliteSinkConnector": "sink",
    "LogfmtConverter": "converter",
    "Fingerprint": "transformation",
    "FieldEquals": "predicate",
}
PATIENCE_SECONDS = 90.0


def run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=ROOT)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example, built once."""
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "pip", "wheel", "-q", "--disable-pip-version-check", "--no-deps", "-w", str(folder), str(EXAMPLE))
    return next(folder.glob("*.whl"))


def in_a_folder(wheel: Path, folder: Path) -> dict[str, Any]:
    """Arguments of a worker whose plugin.path has the example."""
    target = folder / "plugins" / "acme"
    run(sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps", "--target", str(target), str(wheel))
    return {"properties": {"plugin.path": str(target.parent)}}


def in_an_environment(wheel: Path, folder: Path) -> dict[str, Any]:
    """Arguments of a worker in a virtual environment that has the example, and by a path file what this one has."""
    venv.create(folder / "venv")
    python = folder / "venv" / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--disable-pip-version-check", "--no-deps", str(wheel))
    packages = next((folder / "venv" / "lib").glob("python*/site-packages"))
    (packages / "worker.pth").write_text("\n".join([*site.getsitepackages(), str(ROOT)]) + "\n")
    return {"python": str(python), "properties": {}}


class Feed:
    """What the source reads; wants the token s3cret."""

    def __init__(self) -> None:
        self.objects: list[dict[str, Any]] = []
        self.asked_after: list[int] = []
        feed = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                after = int(self.path.partition("after=")[2])
                feed.asked_after.append(after)
                self.send_response(200 if self.headers.get("Authorization") == "Bearer s3cret" else 403)
                self.end_headers()
                self.wfile.write(json.dumps([each for each in feed.objects if each["id"] > after]).encode())

            def log_message(self, *arguments: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/orders"
        Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.mark.long
@pytest.mark.parametrize("install", [in_a_folder, in_an_environment])
def test_the_example_reads_a_feed_into_kafka_and_writes_it_into_sqlite(
    install: Callable[[Path, Path], dict[str, Any]],
    wheel: Path,
    make_worker: Callable[..., Worker],
    kafka: Kafka,
    tmp_path: Path,
    tag: str,
) -> None:
    (tmp_path / "secrets.json").write_text(json.dumps({"token": "s3cret"}))
    arguments = install(wheel, tmp_path)
    arguments["properties"] |= {
        "config.providers": "json",
        "config.providers.json.class": f"{ACME}JsonFileConfigProvider",
        "config.providers.json.param.root": str(tmp_path),
    }
    worker = make_worker(**arguments)

    listed = {each["class"]: each for each in worker.request("GET", "/connector-plugins?connectorsOnly=false")}
    assert {name: listed[ACME + name]["type"] for name in KINDS} == KINDS
    assert {listed[ACME + name]["version"] for name in KINDS} == {"1.2.0"}
    keys = [key["name"] for key in worker.request("GET", "/connector-plugins/HttpFeedSource/config?version=[1.0,2.0)")]
    assert keys[:2] == ["feed.url", "topic"]
    with pytest.raises(RefusedError, match=r"matches the version range \[2,2\], available versions: \[1\.2\.0\]"):
        worker.request("GET", "/connector-plugins/Fingerprint/config?version=2")

    feed, topic, database = Feed(), f"orders-{tag}", tmp_path / "orders.db"
    feed.objects += [{"id": 1, "city": "Ulm"}, {"id": 2, "city": "Linz"}]
    keys_as_json = {"key.converter": "org.apache.kafka.connect.json.JsonConverter", "key.converter.schemas.enable": "false"}
    source = {
        "connector.class": "HttpFeedSource",
        "connector.plugin.version": "[1.0,2.0)",
        "feed.url": feed.url,
        "feed.token": f"${{json:{tmp_path}/secrets.json:token}}",
        "topic": topic,
        **keys_as_json,
        "value.converter": "Logfmt",
        "value.converter.sort.keys": "true",
        "transforms": "mark",
        "transforms.mark.type": "Fingerprint",
        "transforms.mark.length": "8",
        "transforms.mark.predicate": "linz",
        "predicates": "linz",
        "predicates.linz.type": f"{ACME}FieldEquals",
        "predicates.linz.field": "city",
        "predicates.linz.equals": "Linz",
    }
    refused = worker.request(
        "PUT", "/connector-plugins/HttpFeedSource/config/validate", {**source, "name": tag, "transforms.mark.length": "1"}
    )
    assert refused["error_count"] == 1
    worker.create(f"source-{tag}", source)
    assert "s3cret" not in json.dumps(worker.request("GET", f"/connectors/source-{tag}"))
    sink = {"connector.class": "SqliteSink", "topics": topic, "sqlite.file": str(database), "value.converter": f"{ACME}LogfmtConverter"}
    worker.create(f"sink-{tag}", {**sink, **keys_as_json, "consumer.override.auto.offset.reset": "earliest"})

    def kept() -> list[tuple[Any, ...]]:
        with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as reader:
            return reader.execute("SELECT key, value FROM records ORDER BY offset").fetchall()

    wait_until(lambda: len(kept()) == 2, PATIENCE_SECONDS, "two rows", worker.service.is_alive)
    worker.request("PUT", f"/connectors/source-{tag}/stop")
    wait_until(lambda: worker.status(f"source-{tag}")["connector"]["state"] == "STOPPED", PATIENCE_SECONDS, "stopped")
    assert worker.request("GET", f"/connectors/source-{tag}/offsets")["offsets"] == [{"partition": {"url": feed.url}, "offset": {"id": 2}}]
    feed.objects.append({"id": 3, "city": "Graz"})
    feed.asked_after.clear()
    worker.request("PUT", f"/connectors/source-{tag}/resume")
    wait_until(lambda: len(kept()) == 3, PATIENCE_SECONDS, "three rows", worker.service.is_alive)
    assert feed.asked_after[0] == 2
    assert kept() == [(str(n), json.dumps({"city": city, "id": str(n)})) for n, city in ((1, "Ulm"), (2, "Linz"), (3, "Graz"))]
    written = kafka.read(topic)
    assert [message.value() for message in written] == [b"city=Ulm id=1", b"city=Linz id=2", b"city=Graz id=3"]
    assert [[name for name, _ in message.headers() or ()] for message in written] == [[], ["fingerprint"], []]
    feed.server.shutdown()


@pytest.mark.long
def test_the_tests_of_the_example_pass_beside_its_wheel(wheel: Path, tmp_path: Path) -> None:
    in_a_folder(wheel, tmp_path)
    paths = os.pathsep.join([str(tmp_path / "plugins" / "acme"), str(ROOT)])
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-c",
            os.devnull,
            "--rootdir",
            str(EXAMPLE),
            str(EXAMPLE / "tests"),
        ],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout[-3000:]
