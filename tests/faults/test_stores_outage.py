"""The stores while the broker is gone: nothing is lost that was taken, what is refused says so, and all goes on when it is back."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from connect_py.api.storage import Status
from connect_py.app.services.worker import Worker
from connect_py.errors import ConnectError
from connect_py.kafka.admin import KafkaAdmin
from connect_py.kafka.client import internal_properties
from offsets.config_store import KafkaConfigStore
from offsets.offset_store import KafkaOffsetStore, TaskOffsetWriter
from offsets.status_store import KafkaStatusStore
from tests.canary import within
from tests.contract.test_config_store import Listener
from tests.fault_counts import Fault, note
from tests.killable_broker import KillableBroker
from tests.waiting import wait_until

pytestmark = pytest.mark.services

#: How long stores try to write: some of it is before the broker is killed, on a busy machine.
SECONDS = 8.0


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[KillableBroker]:
    found = KillableBroker(tmp_path / "kafka")
    yield found
    found.stop()


def test_what_was_put_while_the_broker_was_away_arrives_when_it_is_back(broker: KillableBroker) -> None:
    worker = {
        "bootstrap.servers": broker.bootstrap,
        "group.id": "outage",
        **{f"{kind}.storage.topic": kind for kind in ("config", "offset", "status")},
        **{f"{kind}.storage.replication.factor": "1" for kind in ("config", "offset", "status")},
    }
    admin = KafkaAdmin(internal_properties(worker, "shared-admin"))
    listener = Listener()
    config = KafkaConfigStore(worker, admin, write_seconds=SECONDS)
    offsets, status = (
        KafkaOffsetStore(worker, admin, write_seconds=SECONDS),
        KafkaStatusStore(worker, admin, write_seconds=SECONDS),
    )
    config.start(listener)
    offsets.start()
    status.start()
    writer = TaskOffsetWriter(worker, "c", 0)
    config.put_connector("c", {"name": "c"})

    broker.kill()
    note(Fault.KILLED_BROKER, "one worker")
    with within(2 * SECONDS + 14, "a client of the REST API gets its answer in time"):
        with pytest.raises(ConnectError, match="Error writing connector configuration to Kafka: "):
            config.put_connector("d", {"name": "d"})
        with pytest.raises(ConnectError, match="Error writing root configuration to Kafka: "):
            config.put_task_configs("c", [{}])
        with pytest.raises(ConnectError):
            offsets.read("c", {}, 3)
    assert list(config.snapshot().connectors) == ["c"], "what was read stays readable"
    finished: list[Exception | None] = []
    status.put_connector("c", Status("RUNNING", "w:1", 1))
    status.put_connector("c", Status("FAILED", "w:1", 1))
    writer.write([({"server": "s"}, {"lsn": 1})], finished.append)
    writer.write([({"server": "s"}, {"lsn": 2})], finished.append)
    writer.serve(0.2)
    assert finished == []

    broker.bring_back()
    wait_until(lambda: writer.serve(0.1) or len(finished) == 2, 180, "the acknowledgements")
    wait_until(lambda: status.connector("c") == Status("FAILED", "w:1", 1), 180, "the last report")
    assert (finished, offsets.read("c", {}, 60)) == ([None, None], [({"server": "s"}, {"lsn": 2})])
    config.put_connector("e", {"name": "e"})
    listener.wait("config", "e")
    writer.close(5)
    for store in (config, offsets, status):
        store.stop()


#: What the page asks for must not wait for a broker; a loaded machine is given time.
PAGE_SECONDS = 5.0


@pytest.mark.long
def test_the_page_answers_while_the_broker_is_gone(broker: KillableBroker, tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("one\n")
    worker = Worker(tmp_path / "worker", broker.bootstrap)
    try:
        worker.create("lines", {"connector.class": "FileStreamSource", "file": str(tmp_path / "lines.txt"), "topic": "lines"})
        broker.kill()
        note(Fault.KILLED_BROKER, "one worker")
        for _ in range(3):
            for path in ("/ui/", "/ui/api/state", "/ui/api/worker", "/ui/api/connectors/lines", "/ui/api/connectors/lines/history"):
                with urllib.request.urlopen(worker.url + path, timeout=PAGE_SECONDS) as answer:
                    text = answer.read().decode()
                assert answer.status == 200
                if path.endswith(("state", "lines")):
                    assert "lines" in text
        broker.bring_back()
    finally:
        worker.stop()
