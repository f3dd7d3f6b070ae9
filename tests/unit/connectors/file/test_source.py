"""The file source over real files: what a poll gives, and what waits."""

import os
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from connect_py.api import JsonEncoding, SourceOffset, SourcePartition
from connectors.file.source import FileStreamSourceTask
from tests.waiting import let_time_pass


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


def at_rest(path: Path) -> FileStreamSourceTask:
    """A task that has read all there is, and waits as long as it can."""
    task = started(path)
    while task.poll():
        pass
    task.patience = 60.0
    return task


def while_polling(task: FileStreamSourceTask, action: Callable[[], object]) -> float:
    """How long a poll that brings nothing takes after something was done in the middle of it."""
    ended: list[float] = []
    polling = threading.Thread(target=lambda: (task.poll(), ended.append(time.monotonic())))
    polling.start()
    let_time_pass(0.1, "the poll waits")
    began = time.monotonic()
    action()
    polling.join(60)
    return ended[0] - began


def test_a_line_that_is_appended_to_a_file_at_rest_is_read_within_a_second(tmp_path: Path) -> None:
    path = tmp_path / "in"
    path.write_text("one\n")
    task = at_rest(path)
    with path.open("a") as out:
        assert while_polling(task, lambda: (out.write("two\n"), out.flush())) < 1.5
    assert values(task) == ["two"]


@pytest.mark.parametrize("asks", [FileStreamSourceTask.interrupt, FileStreamSourceTask.stop])
def test_a_wait_for_a_file_at_rest_ends_when_the_task_is_asked_for_something(
    tmp_path: Path, asks: Callable[[FileStreamSourceTask], None]
) -> None:
    path = tmp_path / "in"
    path.write_text("one\n")
    task = at_rest(path)
    assert while_polling(task, lambda: asks(task)) < 0.5


def test_a_file_at_rest_that_does_not_grow_is_waited_for_as_long_as_it_may(tmp_path: Path) -> None:
    path = tmp_path / "in"
    path.write_text("one\n")
    task = at_rest(path)
    task.patience = 1.5
    began = time.monotonic()
    os.utime(path)
    assert task.poll() is None
    assert time.monotonic() - began >= 1.5
