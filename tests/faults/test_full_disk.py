"""A disk that is full, and has room again: under the file sink's file, and under the offsets of a standalone worker. It is a small file
system in memory, which only root may mount."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from connect_py.app.services.worker import Worker
from connect_py.errors import ConnectError
from offsets.local_stores import FILENAME, FileOffsetStore
from tests.fault_counts import Fault, note
from tests.fix_kafka import Kafka
from tests.waiting import wait_until

pytestmark = pytest.mark.services

KIB = 1024
PLAIN = "org.apache.kafka.connect.storage.StringConverter"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("no file system can be mounted: this process is not root, or a container without the right")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(disk: Path) -> Path:
    """Take all room that is left; returns the file that has it."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * KIB)
        except OSError:
            return filler


@pytest.mark.long
def test_the_file_sink_fails_with_a_name_and_resumes_when_there_is_room(
    make_worker: Callable[..., Worker], kafka: Kafka, disk: Path, tag: str
) -> None:
    worker, producer, target = make_worker(), Producer({"bootstrap.servers": kafka.bootstrap}), disk / "lines.txt"
    wanted = [f"line {number:05} of a file" for number in range(4000)]

    def send(lines: list[str]) -> None:
        for line in lines:
            producer.produce(tag, line.encode())
        assert producer.flush(30) == 0

    send(wanted[:10])
    config = {"connector.class": "FileStreamSink", "file": str(target), "topics": tag, "value.converter": PLAIN, "key.converter": PLAIN}
    worker.create(tag, config)
    wait_until(lambda: target.read_text().splitlines() == wanted[:10], 60, "the first lines")
    filler = fill(disk)
    note(Fault.DISK_FULL, "one worker")
    send(wanted[10:1000])
    failed = worker.wait_for(tag, "FAILED")
    assert "lines.txt cannot be written: No space left on device. Offsets stand at the last commit" in failed["tasks"][0]["trace"]
    filler.unlink()
    worker.request("POST", f"/connectors/{tag}/tasks/0/restart")
    wait_until(lambda: set(target.read_text().splitlines()) >= set(wanted[:1000]), 60, "the lines that found no room")
    parts = set(target.read_text().splitlines()) - set(wanted)
    assert all(any(line.startswith(part) for line in wanted) for part in parts), f"a line was appended to a part of one: {parts}"
    worker.delete(tag)


def test_offsets_in_a_file_are_those_before_until_there_is_room(disk: Path) -> None:
    worker = {FILENAME: str(disk / "offsets")}
    store = FileOffsetStore(worker)
    store.start()
    partition = {"file": "x"}
    store.put("one", [(partition, {"position": 1})])
    filler = fill(disk)
    note(Fault.DISK_FULL, "one worker")
    for _ in range(3):
        with pytest.raises(ConnectError, match=r"could not be written to .*No space left on device. It holds those of the last write"):
            store.put("one", [(partition, {"position": 2, "text": "x" * 8 * KIB})])
    assert store.read("one", {}, 1) == [(partition, {"position": 1})]
    again = FileOffsetStore(worker)
    again.start()
    assert again.read("one", {}, 1) == [(partition, {"position": 1})]
    filler.unlink()
    store.put("one", [(partition, {"position": 3})])
    again.start()
    assert again.read("one", {}, 1) == [(partition, {"position": 3})]
