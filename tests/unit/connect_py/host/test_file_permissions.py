"""What the worker's operator allows: the paths of the file connectors, and the path on which a worker's child processes find modules."""

from __future__ import annotations

import queue
import sys
from pathlib import Path

import pytest

from connect_py.api.permissions import FILE_PATHS, permit
from connect_py.app.commands.worker import TASK_COMMAND
from connect_py.errors import ConfigError, ConnectError
from connect_py.host.process import Event, Exited, TaskProcess, spawn
from connectors.engine.snapshot.parallel.pool import ReaderProcess
from connectors.file.sink import FileStreamSinkConnector, FileStreamSinkTask
from connectors.file.source import FileStreamSourceConnector
from spark_sink import offsets as sink_offsets
from tests.unit.connectors.file.test_source import started

#: Modules that every child process imports; the standard library's and a dependency.
PLANTED = ("json", "uuid", "orjson", "subprocess")


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that exists once a module of the working directory has been run."""
    mark, folder = tmp_path / "ran", tmp_path / "cwd"
    folder.mkdir()
    for name in PLANTED:
        (folder / f"{name}.py").write_text(f"open({str(mark)!r}, 'a').write(__name__ + '\\n')\nraise SystemExit(3)\n")
    monkeypatch.chdir(folder)
    return mark


def test_a_task_process_does_not_import_from_the_working_directory(ran: Path) -> None:
    events: queue.Queue[Event] = queue.Queue()
    TaskProcess(lambda: spawn([*TASK_COMMAND, "x-0"]), {"type": "start"}, events.put, forward=lambda line: None)
    while not isinstance(events.get(timeout=60), Exited):
        pass
    assert not ran.exists(), ran.read_text()


def test_what_a_task_starts_does_not_import_from_the_working_directory(ran: Path) -> None:
    """As Spark's JVM starts its Python workers: without any switch of its own."""
    events: queue.Queue[Event] = queue.Queue()
    script = "import subprocess, sys; subprocess.run([sys.executable, '-m', 'json.tool', '--help'], stdout=2)"
    TaskProcess(lambda: spawn([sys.executable, "-P", "-c", script]), {"type": "start"}, events.put, forward=lambda line: None)
    while not isinstance(events.get(timeout=60), Exited):
        pass
    assert not ran.exists(), ran.read_text()


def test_a_snapshot_reader_does_not_import_from_the_working_directory(ran: Path) -> None:
    reader = ReaderProcess.start("connectors.mysql.snapshot.worker", {})
    reader.close()
    assert not ran.exists(), ran.read_text()


def test_altering_a_lakehouse_sinks_offsets_does_not_import_from_the_working_directory(ran: Path) -> None:
    with pytest.raises(ConnectError):
        sink_offsets.alter({"name": "x"}, {("t", 0): 1})
    assert not ran.exists(), ran.read_text()


def errors(connector: type[FileStreamSourceConnector | FileStreamSinkConnector], path: Path | str) -> list[str]:
    config = {"file": str(path), "topic": "t", "topics": "t"}
    return [error for value in connector().validate(config) for error in value.errors]


@pytest.mark.parametrize("connector", [FileStreamSourceConnector, FileStreamSinkConnector])
def test_file_connectors_stay_below_the_folders_that_the_operator_allows(
    connector: type[FileStreamSourceConnector | FileStreamSinkConnector], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside, outside = tmp_path / "in", tmp_path / "in-too"
    for folder in (inside, outside):
        folder.mkdir()
    (inside / "link").symlink_to(outside)
    (tmp_path / "alias").symlink_to(inside)
    permit({FILE_PATHS: f" {tmp_path / 'alias'} , /nowhere"})
    assert errors(connector, inside / "new.txt") == []
    assert errors(connector, tmp_path / "alias" / "deeper" / "new.txt") == []
    monkeypatch.chdir(inside)
    assert errors(connector, "relative.txt") == []
    for refused in (
        outside / "x",
        inside / ".." / "x",
        inside / "link" / "x",
        "../x",
        "/etc/passwd",
        "/proc/self/cwd/../x",
        "/nowhere-too/x",
    ):
        (error,) = errors(connector, refused)
        assert error.startswith(f"Invalid value {refused} for configuration file: "), error
        assert FILE_PATHS in error
    assert errors(connector, "a\0b")


def test_without_the_operators_word_no_file_is_allowed(tmp_path: Path) -> None:
    permit({})
    (error,) = errors(FileStreamSinkConnector, tmp_path / "x")
    assert "It allows none, because the property is not set." in error
    assert FileStreamSinkConnector().validate({"topics": "t"})[0].errors == []  # standard output


def test_a_task_looks_at_the_path_again_when_it_opens_the_file(tmp_path: Path) -> None:
    """Another worker may have validated the configuration, and a link may have been made since."""
    inside, outside = tmp_path / "in", tmp_path / "out"
    for folder in (inside, outside):
        folder.mkdir()
    permit({FILE_PATHS: str(inside)})
    (outside / "lines").write_text("secret\n")
    source = started(inside / "lines")
    assert not source.poll()
    (inside / "lines").symlink_to(outside / "lines")
    with pytest.raises(ConfigError, match=FILE_PATHS):
        source.poll()
    with pytest.raises(ConfigError, match=FILE_PATHS):
        FileStreamSinkTask().start({"file": str(outside / "new"), "topics": "t"}, None)  # type: ignore[arg-type]
    assert not (outside / "new").exists()


def test_a_relative_folder_is_a_mistake_of_the_operator() -> None:
    with pytest.raises(ConfigError, match="no absolute path"):
        permit({FILE_PATHS: "data"})
