"""A MongoDB server that goes away and comes back."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from connect_py.app.services.mongo import MongoServer
from tests.fault_counts import Fault, note
from tests.mongo_task import MongoTask, config, database

pytestmark = pytest.mark.services


def test_an_outage_does_not_fail_the_task_and_what_was_lost_by_the_server_is_read_anew_when_needed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = MongoServer(tmp_path / "mongo")
    is_real = shutil.which("mongod") is not None
    try:
        with database(server) as db:
            db["items"].insert_one({"_id": 1})
            settings = config(server, db, snapshot_mode="when_needed", retriable_restart_connector_wait_ms="200")
            settings["mongodb.server.selection.timeout.ms"] = "300"
            topic = f"m.{db.name}.items"
            with MongoTask(settings) as task:
                task.stream()
                db["items"].insert_one({"_id": 2})
                task.poll_until(lambda: ("c", "2") in task.operations(topic))
                server.service.kill()
                note(Fault.KILLED_DATABASE, "MongoDB")
                until = time.monotonic() + 2
                task.poll_until(lambda: time.monotonic() > until, what="some attempts")
                server.start()
                db["items"].insert_one({"_id": 3})
                # the stand-in has lost its log with everything else; a real server has not
                task.poll_until(lambda: ("c" if is_real else "r", "3") in task.operations(topic), what="the server's changes")
                db["items"].insert_one({"_id": 4})
                task.poll_until(lambda: ("c", "4") in task.operations(topic), what="the stream")
            assert "nothing is lost" in caplog.text
    finally:
        server.stop()
