"""A slot that a killed predecessor's session is still creating: streaming will begin later than a snapshot taken now would end."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace

import orjson
import pytest

from connect_py.api import JsonEncoding
from connect_py.testing.services.postgres import PostgresAddress
from connectors.postgres.task import PostgresConnectorTask
from tests.fix_postgres import postgres_source

pytestmark = pytest.mark.services


def test_no_change_falls_between_a_snapshot_and_a_slot_that_is_still_being_created(
    postgres: PostgresAddress, database: str, tag: str
) -> None:
    with (
        postgres.connect(database) as connection,
        postgres.connect(database) as lingering,
        postgres.connect(database) as predecessor,
    ):
        connection.execute("CREATE TABLE item (id integer PRIMARY KEY)")
        connection.execute("INSERT INTO item VALUES (1)")
        lingering.execute("BEGIN")
        lingering.execute("SELECT pg_current_xact_id()")  # creating a slot waits for the transactions that run
        create = f"SELECT pg_create_logical_replication_slot('slot_{tag}', 'pgoutput')"
        creating = threading.Thread(target=predecessor.execute, args=(create,))
        creating.start()
        found = "SELECT 1 FROM pg_replication_slots WHERE slot_name = %s"
        deadline = time.monotonic() + 20
        while connection.execute(found, (f"slot_{tag}",)).fetchone() is None:
            assert time.monotonic() < deadline, "the slot does not show"

        task = PostgresConnectorTask()
        task.start(
            postgres_source(postgres, database, tag, slot_retry_delay_ms="200", slot_max_retries="1000"),
            SimpleNamespace(connector=tag, task=0, encoding=JsonEncoding(False, False), offset=lambda partition: None),
        )
        seen: set[int] = set()

        def poll() -> None:
            batch = task.poll()
            seen.update(orjson.loads(value)["after"]["id"] for _, _, value in batch.rows if value) if batch else None

        try:
            for _ in range(5):
                poll()
            connection.execute("INSERT INTO item VALUES (2)")
            lingering.execute("COMMIT")
            creating.join(20)
            connection.execute("INSERT INTO item VALUES (3)")
            deadline = time.monotonic() + 30
            while 3 not in seen and time.monotonic() < deadline:
                poll()
            assert seen == {1, 2, 3}
        finally:
            task.stop()
            task.close()
