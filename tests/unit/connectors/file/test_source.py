"""The file source over real files: what a poll gives, and what waits."""

from collections.abc import Mapping
from pathlib import Path

from connect_py.api import JsonEncoding, SourceOffset, SourcePartition
from connectors.file.source import FileStreamSourceTask


class Context:
    connector, task, encoding = "lines", 0, JsonEncoding()

    def offset(self, partition: SourcePartition) -> SourceOffset | None:
        return None

    def notify(self, notification: Mapping[str, object]) -> None:
        pass


def started(path: Path, **more: str) -> FileStreamSourceTask:
    config: Mapping[str, str] = {"file": str(path), "topic": "t", **more}
    task = FileStreamSourceTask()
    task.start(config, Context())
    return task


def values(task: FileStreamSourceTask) -> list[str]:
    return [record.value for record in task.poll() or ()]


def test_lines_beyond_a_batch_wait_until_the_file_grows_as_in_java(tmp_path: Path) -> None:
    path = tmp_path / "in"
    path.write_text("0\n1\n2\n3\n4\n")
    task = started(path, **{"batch.size": "2"})
    assert [values(task), values(task)] == [["0", "1"], []]
    with path.open("a") as out:
        out.write("5\n")
    assert [values(task), values(task)] == [["2", "3"], []]


def test_batches_follow_each_other_while_there_is_more_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "in"
    lines = [f"{n:99}" for n in range(100)]
    path.write_text("\n".join([*lines, ""]))
    task = started(path, **{"batch.size": "7"})
    given = [line for _ in range(20) for line in values(task)]
    assert given == lines[: len(given)]
    assert len(given) >= 90, "only what is in the last 1 KiB may wait"


def test_a_line_may_be_longer_than_the_buffer(tmp_path: Path) -> None:
    path = tmp_path / "in"
    path.write_text("a" * 5000 + "\nb\n")
    task = started(path)
    [long, short] = task.poll() or ()
    assert (long.value, short.value) == ("a" * 5000, "b")
    assert [long.source_offset, short.source_offset] == [{"position": 5001}, {"position": 5003}]
