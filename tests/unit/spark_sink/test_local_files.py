"""The sink's only file in Java: it ships compiled, and must be what its source says."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_sink.config.sink_config import parse
from spark_sink.spark import jars
from spark_sink.spark.settings import context_settings
from tests.local_files import compiled, compiler, shipped

MINIMAL = {"topics": "t", "lakehouse.catalog.type": "hadoop", "lakehouse.catalog.warehouse": "w", "lakehouse.spark.jars": "/a.jar"}


def test_the_jar_is_of_the_source() -> None:
    if (javac := compiler()) is None:
        pytest.skip("no javac of Java 17")
    assert shipped() == compiled(javac), "python -m tests.local_files --write"


def test_the_cache_gets_a_copy_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CONNECT_PY_CACHE", str(tmp_path / "cache"))
    copy = jars.local_files()
    assert copy.is_relative_to(tmp_path)
    assert copy.read_bytes() == jars.LOCAL_FILES.read_bytes()
    made = copy.stat().st_mtime_ns
    assert jars.local_files() == copy
    assert copy.stat().st_mtime_ns == made
    assert [file.name for file in copy.parent.iterdir()] == [copy.name]


def test_without_a_cache_it_is_used_where_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("no folder")
    monkeypatch.setenv("CONNECT_PY_CACHE", str(tmp_path / "cache"))
    assert jars.local_files() == jars.LOCAL_FILES


@pytest.mark.parametrize(("master", "has_it"), [("local[2]", True), ("spark://there:7077", False)])
def test_only_a_driver_that_does_the_work_itself_has_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, master: str, has_it: bool) -> None:
    monkeypatch.setenv("CONNECT_PY_CACHE", str(tmp_path))
    monkeypatch.setenv("CONNECT_PY_SPARK_SETTINGS", "spark.jars,spark.master")
    libraries = context_settings(parse(MINIMAL | {"lakehouse.spark.master": master}))["spark.jars"].split(",")
    assert libraries == ["/a.jar", str(jars.local_files())][: 2 if has_it else 1]
