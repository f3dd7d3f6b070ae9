"""An Iceberg REST catalog for tests: Iceberg's own servlet (of its tests), over a JDBC catalog in SQLite."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from connect_py.app.services.process import Service, free_port
from spark_sink.spark.jars import cache_directory, java, pyspark_home

_HERE = Path(__file__).parent / "iceberg_rest"


@dataclass(frozen=True)
class RestCatalog:
    """Where it is, and the directory or bucket of its tables."""

    uri: str
    warehouse: str


def class_path() -> list[str]:
    """Jars of the server, resolved by Maven once and kept in the cache: a pom.xml that changes makes a new list."""
    pom = _HERE / "pom.xml"
    found = cache_directory() / f"iceberg-rest-{hashlib.sha256(pom.read_bytes()).hexdigest()[:12]}.txt"
    found.parent.mkdir(parents=True, exist_ok=True)
    with found.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not found.exists() or not all(Path(jar).exists() for jar in found.read_text().split(":")):
            if shutil.which("mvn") is None:
                pytest.skip("no Maven, which fetches Iceberg's REST catalog")
            command = ["mvn", "-q", "-f", str(pom), "dependency:build-classpath", f"-Dmdep.outputFile={found}"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
            assert done.returncode == 0, done.stdout[-2000:]
    return found.read_text().strip().split(":")


def start_rest_catalog(folder: Path, warehouse: str, **storage: str) -> Iterator[RestCatalog]:
    """A running catalog; `storage` are Hadoop settings, with underscores for points."""
    port = free_port()
    jars = ":".join([*class_path(), f"{pyspark_home()}/jars/*"])
    settings = [f"{name.replace('_', '.')}={value}" for name, value in storage.items()]
    command = [java(), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", jars, str(_HERE / "CatalogServer.java")]
    command += [str(port), f"jdbc:sqlite:file:{folder / 'catalog.db'}", warehouse, *settings]
    server = Service("the REST catalog", command, folder / "catalog.log")
    try:
        server.wait_ready(lambda: _answers(port))
        yield RestCatalog(f"http://127.0.0.1:{port}", warehouse)
    finally:
        server.stop()


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/config", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


@pytest.fixture
def rest_catalog(tmp_path: Path) -> Iterator[RestCatalog]:
    """A catalog whose tables are files of this machine."""
    yield from start_rest_catalog(tmp_path, f"file://{tmp_path}/rest")
