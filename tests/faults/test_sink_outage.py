"""A sink task while the broker is away: it stays, goes on when the broker is back, and can be stopped meanwhile."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from connect_py.app.services.worker import Worker
from tests.fault_counts import Fault, note
from tests.fix_kafka import Kafka
from tests.integration.test_file_sink import SHORT_SESSION, await_lines, await_offsets, contents, create_topic, file_sink, produce
from tests.killable_broker import KillableBroker
from tests.waiting import wait_until

pytestmark = pytest.mark.services


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[KillableBroker]:
    found = KillableBroker(tmp_path / "kafka")
    yield found
    found.stop()


def has_failed_commit(worker: Worker) -> bool:
    log = worker.service.log_tail(1000)
    return "Commit of offsets timed out" in log or "could not be committed" in log


@pytest.mark.long
def test_a_sink_task_outlives_its_broker_and_a_stop_meanwhile_does_not_hang(broker: KillableBroker, tmp_path: Path, tag: str) -> None:
    kafka, out = Kafka(broker.bootstrap), tmp_path / "out"
    create_topic(kafka, tag)
    produce(kafka, tag, ["a"])
    # the commit after "b" is five seconds after that of "a": time enough to kill the broker before it
    worker = Worker(tmp_path / "worker", broker.bootstrap, properties={"offset.flush.interval.ms": "5000"})
    try:
        worker.create(tag, file_sink(out, tag, **SHORT_SESSION))
        await_lines(out, ["a"])
        await_offsets(worker, tag, {0: 1})
        produce(kafka, tag, ["b"])
        await_lines(out, ["a", "b"])
        broker.kill()
        note(Fault.KILLED_BROKER, "one worker")
        wait_until(lambda: has_failed_commit(worker), 30, "a commit that falls into the outage")
        assert worker.status(tag)["tasks"][0]["state"] == "RUNNING"
        broker.bring_back()
        await_offsets(worker, tag, {0: 2})
        before = contents(out)
        assert before in (["a", "b"], ["a", "b", "b"]), "what was not committed may come again, and nothing else"
        [task] = worker.children()
        produce(kafka, tag, ["c"])
        await_lines(out, [*before, "c"], 60)
        broker.kill()
        note(Fault.KILLED_BROKER, "one worker")
        with pytest.raises(OSError, match="timed out"):  # the herder waits for Kafka on behalf of this request, now and during the stop
            worker.request("PUT", f"/connectors/{tag}/pause", timeout=1)
        began = time.monotonic()
        worker.service.stop(seconds=40)
        assert time.monotonic() - began < 10, worker.service.log_tail(1000)
        assert "gives up what it waits for" in worker.service.log_tail(1000)
        wait_until(lambda: not Path(f"/proc/{task}").exists(), 60, "the task's end")
        broker.bring_back()
        worker.restart()
        await_lines(out, [*before, "c"], 60)
        await_offsets(worker, tag, {0: 3})
    finally:
        worker.kill()
