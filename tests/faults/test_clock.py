"""A wall clock that leaps ahead and back, as when a machine's clock is set, or a guest is moved to another machine.

`tests/wall_clock.c`, which the test compiles, shows two workers and their tasks another time while they run; the clocks of intervals go on,
and waits until a time of the wall clock are early or late, as with a clock that is set. (Under libfaketime Python's sleeps fail.) The
broker and the database keep the right time. FAULTS_LEAPS is the number of leaps, FAULTS_SEED repeats a run's choices.

Leaps are a little shorter than an hour: by default a broker takes no record whose time is more than an hour ahead of its own
(`log.message.timestamp.after.max.ms`).
"""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from connect_py.app.services.postgres import PostgresAddress
from connect_py.app.services.worker import TOPICS, Worker
from tests.fault_counts import Fault, note
from tests.faults.test_kill import DIGEST, TABLE, PostgresChanges, keep_journal
from tests.fix_kafka import Kafka
from tests.fix_postgres import postgres_source
from tests.folding import payload
from tests.kills import await_history, changing, has_records, new_dice
from tests.seeds import size
from tests.waiting import let_time_pass, wait_until

LEAPS = size("FAULTS_LEAPS", 2, 6)
LEAP_SECONDS = 3500
SHOWN = Path(__file__).parent.parent / "wall_clock.c"
#: The lease of a task is a little shorter.
SESSION_SECONDS = 6
ROWS = 500

pytestmark = [pytest.mark.services, pytest.mark.long, pytest.mark.timeout(300 + 60 * LEAPS)]


class WallClock:
    """The wall clock of processes that are started with its variables.

    Attributes:
        env: the variables.
        ahead: seconds by which it is ahead of the right time.
    """

    def __init__(self, folder: Path) -> None:
        compiler = shutil.which("cc")
        if compiler is None:
            pytest.skip("there is no C compiler for tests/wall_clock.c")
        library, self._file, self.ahead = folder / "wall_clock.so", folder / "ahead", 0
        subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-o", library, SHOWN, "-ldl", "-lpthread"], check=True)
        self._file.write_bytes(struct.pack("l", 0))
        self.env = {"LD_PRELOAD": str(library), "WALL_CLOCK_FILE": str(self._file)}

    def leap(self, ahead: int) -> None:
        """Show another time from now on."""
        with self._file.open("r+b") as file:  # which is mapped: another one in its place would not be seen
            file.write(struct.pack("l", ahead))
        self.ahead = ahead


def states(kafka: Kafka, topic: str, connector: str) -> list[tuple[str, int]]:
    """Return the states and generations that were reported of a connector's task, in order, from when it ran first."""
    key = f"status-task-{connector}-0".encode()
    found = [json.loads(message.value()) for message in kafka.read(topic) if message.key() == key and message.value()]
    reported = [(value["state"], value["generation"]) for value in found]
    return reported[[state for state, _ in reported].index("RUNNING") :]


def test_a_wall_clock_that_leaps_ends_nothing_and_loses_nothing(
    make_worker: Callable[..., Worker], kafka: Kafka, postgres: PostgresAddress, database: str, tag: str, tmp_path: Path
) -> None:
    dice, clock, topic = new_dice(), WallClock(tmp_path), f"pg_{tag}.public.item"
    quick = {"session.timeout.ms": str(SESSION_SECONDS * 1000), "heartbeat.interval.ms": "1500", "offset.flush.interval.ms": "500"}
    workers = [make_worker(properties=quick, env=clock.env)]
    same = {name: workers[0].properties[name] for name in ("group.id", *(f"{kind}.storage.topic" for kind in TOPICS))}
    workers.append(make_worker(properties=quick | same, env=clock.env))
    with postgres.connect(database) as connection, postgres.connect(database) as writer:
        connection.execute(TABLE)
        connection.execute("INSERT INTO item SELECT g, 1, 'old' FROM generate_series(1, %s) g", (ROWS,))
        keep_journal(connection)
        config = postgres_source(postgres, database, tag, table_include_list="public.item")
        with changing(PostgresChanges(writer, dice, keys=ROWS)):
            workers[0].create(tag, config)
            wait_until(partial(has_records, kafka, topic, ROWS + 100), 60, "the stream")
            wait_until(lambda: joined(workers) == joined(workers, 1.0), 60, "the end of the rounds")
            before, rounds = [worker.children() for worker in workers], joined(workers)
            for number in range(LEAPS):
                clock.leap(0 if number % 2 else dice.choice([-1, 1]) * LEAP_SECONDS)
                note(Fault.CLOCK, "PostgreSQL")
                wait_until(partial(shows, kafka, topic, clock.ahead), 60, f"events of {clock.ahead} s ahead")
                let_time_pass(2 * SESSION_SECONDS, "longer than a lease lasts")
                wait_until(partial(has_records, kafka, topic, kafka.count(topic) + 100), 60, "further changes")
        await_history(kafka, {**config, "name": tag}, DIGEST, offsets_topic=workers[0].topic("offset"), restarts=0)
        assert [worker.children() for worker in workers] == before
        assert joined(workers) == rounds
        reported = states(kafka, workers[0].topic("status"), tag)
        assert [state for state, _ in reported if state != "RUNNING"] == []
        assert [generation for _, generation in reported] == sorted(generation for _, generation in reported)
        for worker in workers:
            assert "lease" not in worker.log.read_text()


def joined(workers: list[Worker], after: float = 0.0) -> int:
    """Return how many rounds of the group workers have taken part in, all together, after a while."""
    if after:
        let_time_pass(after, "a round that is under way")
    return sum(worker.log.read_text().count("Joined group at") for worker in workers)


def shows(kafka: Kafka, topic: str, ahead: int) -> bool:
    """Whether the newest event was made by a clock that is so many seconds ahead."""
    made = [(message.offset(), payload(message.value())["ts_ms"] / 1000) for message in kafka.read(topic) if message.value()]
    return abs(max(made)[1] - ahead - time.time()) < 60
