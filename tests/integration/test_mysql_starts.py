"""What every snapshot mode does at every kind of start, as the reference answered when it was asked (Debezium 3.6.1, MySQL 8.4 and 9).

Ours differs in three places, where the reference fails by an error of its own or gives nothing: `configuration_based` with rows but without
structures (it ends in a NullPointerException), `snapshot.on.data.error` (it reads nothing) and `snapshot.on.schema.error` with a lost
history (it reads no structures and fails at the first row).
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from connect_py.app.services.mysql import MySqlAddress
from connect_py.errors import ConnectError
from connectors.engine.task import State
from tests.fix_kafka import Kafka
from tests.mysql_task import DirectMySqlTask, mysql_source

pytestmark = pytest.mark.services

NO_LOG = "The connector is trying to read change stream starting at .* is no longer available on the server"
NO_HISTORY = "The db history topic is missing"
NO_POSITION = "Could not find existing redo log information"
GONE = {"ts_sec": 1, "file": "mysql-bin.000000", "pos": 4, "gtids": "00000000-0000-0000-0000-000000000001:1-5", "server_id": 1}


@dataclass(frozen=True)
class Outcome:
    """What came of a start.

    Attributes:
        read: ids of rows that a snapshot brought.
        missed: whether the row that was written while the connector was away came as a change.
        streams: whether a row that was written afterwards came.
        failed: what the error says.
    """

    read: tuple[int, ...] = ()
    missed: bool = False
    streams: bool = True
    failed: str = ""


NEW, ALL = Outcome((1, 2, 3, 4)), Outcome((1, 2, 3, 4))
GOES_ON = Outcome(missed=True)
NOTHING = Outcome(streams=False)
LOST, FORGOTTEN = Outcome(failed=NO_LOG), Outcome(failed=NO_HISTORY)
BASED = "configuration_based"
#: By mode: a first start, one with an offset, one whose log is gone, one whose history is gone.
OUTCOMES = {
    "always": (NEW, ALL, LOST, FORGOTTEN),
    "initial": (NEW, GOES_ON, LOST, FORGOTTEN),
    "initial_only": (replace(NEW, streams=False), NOTHING, NOTHING, FORGOTTEN),
    "no_data": (Outcome(), GOES_ON, LOST, FORGOTTEN),
    "schema_only": (Outcome(), GOES_ON, LOST, FORGOTTEN),
    "recovery": (Outcome(failed=NO_POSITION), GOES_ON, LOST, GOES_ON),
    "schema_only_recovery": (Outcome(failed=NO_POSITION), GOES_ON, LOST, GOES_ON),
    "when_needed": (NEW, GOES_ON, ALL, FORGOTTEN),
    BASED: (NOTHING, NOTHING, NOTHING, FORGOTTEN),
    f"{BASED} snapshot.schema start.stream": (Outcome(), Outcome(), LOST, FORGOTTEN),
    f"{BASED} snapshot.data start.stream": (NEW, ALL, LOST, FORGOTTEN),
    f"{BASED} start.stream snapshot.on.data.error": (None, GOES_ON, ALL, FORGOTTEN),
    f"{BASED} start.stream snapshot.on.schema.error": (Outcome(failed=NO_POSITION), GOES_ON, LOST, GOES_ON),
}
STARTS = ("a first start", "an offset", "the log is gone", "the history is gone")
CASES = [(mode, start) for mode, outcomes in OUTCOMES.items() for start, outcome in zip(STARTS, outcomes, strict=True) if outcome]


@dataclass
class Place:
    """A table of the rows 1 to 4, of which a connector has seen the first three."""

    mysql: MySqlAddress
    kafka: Kafka
    database: str
    cursor: Any
    config: dict[str, str]
    offset: Any
    next_id: int = 100

    def task(self, mode: str, start: str) -> DirectMySqlTask:
        name, *properties = mode.split()
        more = {"snapshot.mode": name, **{f"snapshot.mode.configuration.based.{name}": "true" for name in properties}}
        if start in ("a first start", "the history is gone"):
            more["schema.history.internal.kafka.topic"] = f"history_{uuid.uuid4().hex}"
        offset = {"a first start": None, "the log is gone": GONE}.get(start, self.offset)
        return DirectMySqlTask({**self.config, **more}, offset)


@pytest.fixture(scope="module")
def place(mysql: MySqlAddress, kafka: Kafka) -> Iterator[Place]:
    name = f"starts_{uuid.uuid4().hex[:8]}"
    with mysql.connect() as connection, connection.cursor() as cursor:
        for statement in (f"CREATE DATABASE {name}", f"USE {name}", "CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)"):
            cursor.execute(statement)
        config = mysql_source(
            mysql, kafka.bootstrap, name, schema_history_internal_store_only_captured_tables_ddl="true", connect_timeout_ms="5000"
        )
        with DirectMySqlTask(config) as task:
            task.poll_until(task.is_streaming, what="the stream")
            cursor.execute("INSERT INTO t VALUES (3)")
            task.poll_until(lambda: {"id": 3} in [key for key, _ in task.of(f"{name}.{name}.t")], what="the third row")
        cursor.execute("INSERT INTO t VALUES (4)")
        yield Place(mysql, kafka, name, cursor, config, task.offset)
        cursor.execute(f"DROP DATABASE {name}")


def run(place: Place, task: DirectMySqlTask) -> Outcome:
    """Poll until a row of now came, the work is done, or the task fails."""
    topic, mark = f"{place.database}.{place.database}.t", place.next_id
    place.next_id += 1
    begun = time.monotonic()
    written = False
    try:
        while time.monotonic() < begun + 60:
            task.poll()
            if task.is_streaming() and not written:
                written = True
                place.cursor.execute(f"INSERT INTO t VALUES ({mark})")
            if {"id": mark} in [key for key, _ in task.of(topic)] or task.task.state is State.DONE:
                break
        else:
            pytest.fail("nothing came within a minute")
    except ConnectError as error:
        return Outcome(failed=str(error))
    finally:
        place.cursor.execute("DELETE FROM t WHERE id >= 100")
    task.poll()
    events = [(key["id"], value["op"]) for key, value in task.of(topic) if value is not None and key["id"] < 100]
    return Outcome(
        tuple(sorted(id_ for id_, op in events if op == "r")), (4, "c") in events, {"id": mark} in [key for key, _ in task.of(topic)]
    )


@pytest.mark.parametrize(("mode", "start"), CASES)
def test_a_start_does_what_the_reference_does(place: Place, mode: str, start: str) -> None:
    wanted = OUTCOMES[mode][STARTS.index(start)]
    assert wanted is not None
    with place.task(mode, start) as task:
        found = run(place, task)
    assert re.search(wanted.failed, found.failed) if wanted.failed else found == wanted, found
