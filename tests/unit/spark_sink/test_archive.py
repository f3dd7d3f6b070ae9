"""When the JVM of the lakehouse sink uses an archive of classes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_sink.spark import archive, jars

LOCAL = {"spark.master": "local[2]", "spark.jars": "/x/a.jar,/x/b.jar", "spark.driver.extraJavaOptions": "-Dmine=1"}


def use_java(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the sink find a Java in this directory."""
    command = home / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text("#!/bin/sh\necho 'openjdk version \"21.0.1\"' >&2\n")
    command.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(home))
    jars.java.cache_clear()


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An archive for the settings above."""
    monkeypatch.setenv("CONNECT_PY_CACHE", str(tmp_path))
    use_java(tmp_path / "java17", monkeypatch)
    path = archive.path(LOCAL["spark.jars"])
    path.parent.mkdir(parents=True)
    path.touch()
    yield path
    jars.java.cache_clear()


def test_without_an_archive_the_jvm_starts_as_ever(made: Path) -> None:
    made.unlink()
    assert archive.use(LOCAL) == LOCAL


def test_with_an_archive_the_jvm_maps_it_and_has_the_libraries_in_its_class_path(made: Path) -> None:
    used = archive.use(LOCAL)
    assert used["spark.driver.extraClassPath"] == "/x/a.jar:/x/b.jar"
    options = used["spark.driver.extraJavaOptions"].split()
    assert f"-XX:SharedArchiveFile={made}" in options
    assert options[-1] == "-Dmine=1", "the user's own come last, and win"
    assert {k: v for k, v in used.items() if k in ("spark.master", "spark.jars")} == {k: LOCAL[k] for k in ("spark.master", "spark.jars")}


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize(
    "other",
    [
        {"spark.master": "spark://there:7077"},
        {"spark.jars": "/x/a.jar"},
        {"spark.jars": ""},
        {"spark.driver.extraClassPath": "/mine.jar"},
    ],
)
def test_other_libraries_a_cluster_and_a_class_path_of_the_users_own_do_without(other: dict[str, str]) -> None:
    assert archive.use(LOCAL | other) == LOCAL | other


def test_another_java_has_another_archive(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_java(tmp_path / "java21", monkeypatch)
    assert archive.path(LOCAL["spark.jars"]) != made
