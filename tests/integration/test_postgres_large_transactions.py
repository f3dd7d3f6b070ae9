"""Transactions that the server sends while they are open give the records, offsets and restarts that they give when it sends them whole."""

from __future__ import annotations

import os
import random
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from connect_py.app.services.postgres import PostgresAddress
from connect_py.errors import FatalTaskError
from connectors.engine.batches import DEFAULT_TUNING, Tuning
from tests.fix_postgres import postgres_source
from tests.postgres_task import DirectTask

pytestmark = pytest.mark.services

#: The least that a server takes: transactions of some hundred rows are large.
WORK_MEMORY = "64kB"


class Pair:
    """One database, read by two tasks with slots of their own: `whole` gets transactions when they have committed, `parts` in segments."""

    def __init__(self, postgres: PostgresAddress, database: str, memory_bytes: int, tuning: Tuning, **more: str) -> None:
        self.tuning = tuning
        self.postgres, self.database = postgres, database
        self.db = postgres.connect(database)
        version = self.db.info.server_version
        if version < 140000:
            pytest.skip("the server is older than version 14")
        self.db.execute(f"ALTER DATABASE {database} SET logical_decoding_work_mem = '{WORK_MEMORY}'")
        base = postgres_source(
            postgres, database, "large", **{"provide_transaction_metadata": "true", "skipped_operations": "none", **more}
        )
        self.configs = [
            {**base, "slot.name": f"{database}_whole"},
            {
                **base,
                "slot.name": f"{database}_parts",
                "large.transaction.streaming": "true",
                "large.transaction.memory.bytes": str(memory_bytes),
            },
        ]
        self.whole, self.parts = (DirectTask(config, tuning=tuning) for config in self.configs)

    def begin(self) -> None:
        """Take the snapshots, and let both stream until an offset of the stream is stored."""
        for task in (self.whole, self.parts):
            task.poll_until(task.is_streaming)
        self.db.execute("SELECT pg_logical_emit_message(true, 'begin', '')")
        for task in (self.whole, self.parts):
            task.poll_until(lambda task=task: task.of("pg_large.message"), what="the first message")

    def finish(self) -> None:
        """Read until both have what was committed last."""
        self.db.execute("SELECT pg_logical_emit_message(true, 'end', 'of it')")
        for task in (self.whole, self.parts):
            task.poll_until(lambda task=task: is_at_end(task), what="the last message")

    @property
    def open_bytes(self) -> tuple[int, int]:
        """What `parts` keeps of open transactions in memory, and in files."""
        figures = next(group.values for group in self.parts.task.metrics() if group.type == "postgres-slot")
        in_files = figures.get("open-large-transactions-file-bytes", 0)
        return figures.get("open-large-transactions-bytes", 0) - in_files, in_files

    def kill_parts(self) -> None:
        """What kill -9 leaves behind, and a new task on what was stored."""
        old = self.parts
        old.task.disconnect()
        self.parts = DirectTask(self.configs[1], old.offset, tuning=self.tuning)
        self.parts.events, self.parts.batches = old.events, old.batches

    def close(self) -> None:
        self.db.close()
        self.whole.close()
        self.parts.close()


@pytest.fixture
def pair(postgres: PostgresAddress, database: str) -> Iterator[Callable[..., Pair]]:
    with ExitStack() as stack:

        def make(memory_bytes: int = 20_000, tuning: Tuning = DEFAULT_TUNING, **more: str) -> Pair:
            made = Pair(postgres, database, memory_bytes, tuning, **more)
            stack.callback(made.close)
            return made

        yield make


def is_at_end(task: DirectTask) -> bool:
    """The last transaction's end was given."""
    return any(key == {"prefix": "end"} for key, _ in task.of("pg_large.message")[-1:]) and task.events[-1][0] == "pg_large.transaction"


def without_clock(events: list[Any]) -> list[Any]:
    """Events without the time at which they were made, which is the only thing that may differ."""
    return [
        (topic, key, value and {name: shown for name, shown in value.items() if not name.startswith("ts_")}) for topic, key, value in events
    ]


def without_places_of_begins(events: list[Any]) -> list[Any]:
    """Before version 15 a begin says where the transaction's first record of any kind lies, which an open transaction does not tell."""
    return ["BEGIN" if value and value.get("status") == "BEGIN" else (topic, key, value) for topic, key, value in events]


def same(pair: Pair) -> int:
    """Both tasks gave the same events, and stand at the same place. Returns how many events there were."""
    whole, parts = without_clock(pair.whole.events), without_clock(pair.parts.events)
    if pair.db.info.server_version < 150000:
        whole, parts = without_places_of_begins(whole), without_places_of_begins(parts)
    for index, (found, wanted) in enumerate(zip(parts, whole, strict=False)):
        assert found == wanted, f"event {index} of {len(parts)} and {len(whole)}"
    assert len(parts) == len(whole)
    assert pair.parts.offset == pair.whole.offset
    return len(parts)


def rows(first: int, count: int, text: str = "x") -> str:
    return f"INSERT INTO a SELECT i, i % 7, repeat('{text}', 40) FROM generate_series({first}, {first + count - 1}) i"


def test_a_large_transaction_gives_the_same_records_and_offsets(pair: Callable[..., Pair]) -> None:
    both = pair()
    both.db.execute("CREATE TABLE a (id int PRIMARY KEY, n int, t text)")
    both.begin()
    seen = []
    with both.db.transaction():
        both.db.execute(rows(1, 3000))
        both.db.execute("UPDATE a SET n = n + 1 WHERE id <= 1000")
        both.db.execute("UPDATE a SET id = -id WHERE id <= 100")
        both.db.execute("DELETE FROM a WHERE id > 2500")
        both.db.execute("SELECT pg_logical_emit_message(true, 'app', 'inside')")
        both.parts.poll_until(lambda: both.open_bytes[1], what="a file of the open transaction")
        seen = list(both.open_bytes)
        both.db.execute("TRUNCATE a")
        both.db.execute(rows(1, 10))
    both.finish()
    assert seen[0] <= 20_000 < seen[1]
    assert both.open_bytes == (0, 0)
    assert same(both) > 5000


def test_what_is_rolled_back_never_shows(pair: Callable[..., Pair]) -> None:
    both = pair()
    both.db.execute("CREATE TABLE a (id int PRIMARY KEY, n int, t text)")
    both.begin()
    both.db.execute(
        "BEGIN; SAVEPOINT one;" + rows(1, 1000, "gone") + "; ROLLBACK TO one;" + rows(1, 1000) + "; SAVEPOINT two; SAVEPOINT three"
    )
    both.db.execute(rows(5000, 1000, "gone") + "; RELEASE three; ROLLBACK TO two;" + rows(2000, 20) + "; COMMIT")
    both.db.execute("BEGIN; " + rows(10_000, 3000, "gone"))
    both.parts.poll_until(lambda: both.open_bytes[1], what="a file of the open transaction")
    both.db.execute("ROLLBACK")
    # nothing of it is left but what was taken back
    both.db.execute("BEGIN; SAVEPOINT one;" + rows(20_000, 1000, "gone") + "; ROLLBACK TO one; COMMIT")
    both.finish()
    assert same(both) > 1000
    assert not any("gone" in str(value) for _, _, value in both.parts.events)
    assert both.open_bytes == (0, 0)


def test_two_large_transactions_and_small_ones_between_them_come_in_the_order_of_their_commits(pair: Callable[..., Pair]) -> None:
    both = pair()
    both.db.execute("CREATE TABLE a (id int PRIMARY KEY, n int, t text)")
    both.begin()
    with both.postgres.connect(both.database) as first, both.postgres.connect(both.database) as second:
        first.execute("BEGIN")
        second.execute("BEGIN")
        for turn in range(6):
            first.execute(rows(10_000 + 500 * turn, 500))
            second.execute(rows(50_000 + 500 * turn, 500))
            both.db.execute(rows(turn, 1))
            both.parts.poll()
        assert both.open_bytes[1] > 0
        second.execute("COMMIT")
        first.execute("COMMIT")
    both.finish()
    keys = [key["id"] for key, _ in both.parts.of("pg_large.public.a")]
    assert keys == [*range(6), *range(50_000, 53_000), *range(10_000, 13_000)]
    same(both)


def test_a_table_that_changes_inside_of_it_changes_at_its_place(pair: Callable[..., Pair]) -> None:
    both = pair()
    both.db.execute("CREATE TABLE a (id int PRIMARY KEY, n int, t text)")
    both.begin()
    with both.db.transaction():
        both.db.execute(rows(1, 1000))
        both.db.execute("ALTER TABLE a ADD COLUMN extra text DEFAULT 'e'")
        both.db.execute("INSERT INTO a SELECT i, 1, 'x', 'mine' FROM generate_series(2001, 3000) i")
        both.db.execute("SAVEPOINT s; ALTER TABLE a DROP COLUMN n; INSERT INTO a SELECT i, 'x', 'gone' FROM generate_series(4001, 5000) i")
        both.db.execute("ROLLBACK TO s")
        both.db.execute("INSERT INTO a SELECT i, 1, 'x', 'late' FROM generate_series(6001, 7000) i")
    both.finish()
    same(both)
    shapes = {tuple(value["after"]) for _, value in both.parts.of("pg_large.public.a")}
    assert shapes == {("id", "n", "t"), ("id", "n", "t", "extra")}


@pytest.mark.parametrize("seed", [2, pytest.param(random.SystemRandom().randrange(1 << 30), marks=pytest.mark.long)])
def test_any_mixture_of_sessions_gives_the_same(pair: Callable[..., Pair], seed: int) -> None:
    print(f"seed {seed}")
    dice = random.Random(seed)
    both = pair(memory_bytes=dice.choice((1, 5_000, 100_000, 10_000_000)))
    both.db.execute("CREATE TABLE a (id bigserial PRIMARY KEY, n int, t text); CREATE TABLE b (id int PRIMARY KEY, t text)")
    both.db.execute("ALTER TABLE b REPLICA IDENTITY FULL")
    both.begin()
    with ExitStack() as stack:
        sessions = [stack.enter_context(both.postgres.connect(both.database)) for _ in range(3)]
        depth = [0, 0, 0]
        for _ in range(100):
            which = dice.randrange(3)
            db, savepoints = sessions[which], depth[which]
            if db.info.transaction_status == psycopg.pq.TransactionStatus.IDLE:
                db.execute("BEGIN")
                depth[which] = 0
                continue
            step = dice.random()
            if step < 0.5:
                # keys of a session are its own, so that no session waits for another
                low = 1_000_000 * (which + 1) + dice.randrange(900_000)
                db.execute(
                    f"INSERT INTO a SELECT i, {which}, repeat(md5(i::text), {dice.choice((1, 3, 400))}) "
                    f"FROM generate_series({low}, {low + dice.randrange(400)}) i ON CONFLICT DO NOTHING"
                )
            elif step < 0.6:
                db.execute(f"UPDATE a SET n = n + 1 WHERE id / 1000000 = {which + 1}")
            elif step < 0.65:
                db.execute(f"DELETE FROM a WHERE id / 1000000 = {which + 1} AND id % 3 = 0")
            elif step < 0.7:
                db.execute(f"INSERT INTO b VALUES ({which}, 'x') ON CONFLICT (id) DO UPDATE SET t = b.t || 'y'")
            elif step < 0.75:
                # behind a row: of a message alone the server does not say which savepoint it is of
                db.execute(f"INSERT INTO b VALUES ({dice.randrange(1 << 30)}, 'x') ON CONFLICT DO NOTHING")
                db.execute("SELECT pg_logical_emit_message(true, 'app', repeat('m', 3000))")
            elif step < 0.85:
                depth[which] += 1
                db.execute(f"SAVEPOINT s{depth[which]}")
            elif step < 0.92 and savepoints:
                depth[which] = dice.randrange(savepoints)
                db.execute(f"ROLLBACK TO s{depth[which] + 1}")
                depth[which] += 1
            elif step < 0.95:
                db.execute("ROLLBACK")
            else:
                db.execute("COMMIT")
            if dice.random() < 0.2:
                both.parts.poll()
            if dice.random() < 0.03:
                both.kill_parts()
        for db in sessions:
            db.execute("COMMIT")
    both.finish()
    same(both)


def test_a_replicated_transaction_names_its_origin(pair: Callable[..., Pair]) -> None:
    both = pair()
    both.db.execute("CREATE TABLE a (id int PRIMARY KEY, n int, t text)")
    origin = f"from_{both.database}"
    both.db.execute("SELECT pg_replication_origin_create(%s)", (origin,))
    try:
        both.begin()
        both.db.execute("SELECT pg_replication_origin_session_setup(%s)", (origin,))
        with both.db.transaction():
            both.db.execute("SELECT pg_replication_origin_xact_setup('0/ABC', now())")
            both.db.execute(rows(1, 2000))
        both.db.execute("SELECT pg_replication_origin_session_reset()")
        both.finish()
        shown = [
            [(v["source"]["origin"], v["source"]["origin_lsn"]) for _, v in task.of("pg_large.public.a")]
            for task in (both.whole, both.parts)
        ]
        assert shown == [[(origin, 0xABC)] * 2000, [(origin, 0)] * 2000]
    finally:
        both.db.execute("SELECT pg_replication_origin_drop(%s)", (origin,))


def test_a_kill_at_any_place_of_it_repeats_and_loses_nothing(pair: Callable[..., Pair]) -> None:
    both = pair(tuning=Tuning(batch_rows=60))
    both.db.execute("CREATE TABLE a (id int PRIMARY KEY, n int, t text)")
    both.begin()
    with both.postgres.connect(both.database) as other:
        other.execute("BEGIN")
        other.execute(rows(10_000, 900))
        both.db.execute(rows(1, 2))
        both.parts.poll_until(lambda: both.open_bytes[1], what="a file of the open transaction")
        both.kill_parts()
        both.parts.poll_until(both.parts.is_streaming)
        # the server looks at its memory only when something is added
        other.execute(rows(20_000, 900))
        both.parts.poll_until(lambda: both.open_bytes[1], what="the open transaction again")
        both.db.execute(rows(3, 900))
        other.execute("COMMIT")
    both.db.execute(rows(5_000, 3))
    both.db.execute("SELECT pg_logical_emit_message(true, 'end', 'of it')")
    deadline = time.monotonic() + 60
    while not is_at_end(both.parts):
        assert time.monotonic() < deadline
        before = len(both.parts.batches)
        both.parts.poll_until(lambda before=before: len(both.parts.batches) > before, what="the next batch")
        both.kill_parts()
    both.whole.poll_until(lambda: is_at_end(both.whole))
    assert without_clock(both.parts.events) == without_clock(both.whole.events)


def test_either_way_goes_on_from_the_offset_of_the_other(pair: Callable[..., Pair]) -> None:
    both = pair(tuning=Tuning(batch_rows=100))
    both.db.execute("CREATE TABLE a (id int PRIMARY KEY, n int, t text)")
    both.begin()
    both.db.execute(rows(1, 1000))
    both.parts.poll_until(lambda: len(both.parts.events) > 350)
    offset, seen = both.parts.offset, list(both.parts.events)
    both.parts.task.disconnect()
    with DirectTask({**both.configs[1], "large.transaction.streaming": "false"}, offset, tuning=both.tuning) as whole:
        whole.poll_until(lambda: len(seen) + len(whole.events) > 700)
        offset, seen = whole.offset, [*seen, *whole.events]
    both.parts = DirectTask(both.configs[1], offset, tuning=both.tuning)
    both.parts.events = seen
    both.finish()
    assert without_clock(both.parts.events) == without_clock([*both.whole.events])


def test_files_are_without_names_so_that_nothing_is_left_after_a_crash(pair: Callable[..., Pair], tmp_path: Path) -> None:
    both = pair(large_transaction_directory=str(tmp_path))
    both.db.execute("CREATE TABLE a (id int PRIMARY KEY, n int, t text)")
    both.begin()
    with both.db.transaction():
        both.db.execute(rows(1, 3000))
        both.parts.poll_until(lambda: both.open_bytes[1], what="a file of the open transaction")
        held = [os.readlink(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{name}")]
        assert list(tmp_path.iterdir()) == []
        assert any(path.startswith(str(tmp_path)) for path in held) or os.uname().sysname != "Linux"
    both.finish()
    same(both)


@contextmanager
def files_up_to(size: int) -> Iterator[None]:
    """No file of this process grows beyond the given number of bytes, as on a disk without room."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_file_that_cannot_grow_fails_the_task_and_says_what_to_do(pair: Callable[..., Pair], tmp_path: Path) -> None:
    both = pair(large_transaction_directory=str(tmp_path))
    both.db.execute("CREATE TABLE a (id int PRIMARY KEY, n int, t text)")
    both.begin()
    with files_up_to(50_000):
        both.db.execute("BEGIN; " + rows(1, 3000))
        with pytest.raises(FatalTaskError, match=r"transaction \d+ cannot be kept in .*: File too large.*large\.transaction\.directory"):
            both.parts.poll_until(lambda: False)
    both.kill_parts()
    both.db.execute("COMMIT")
    both.finish()
    same(both)


def test_memory_stays_within_its_bound(pair: Callable[..., Pair]) -> None:
    both = pair(memory_bytes=200_000)
    both.db.execute("CREATE TABLE a (id int PRIMARY KEY, n int, t text)")
    both.begin()
    held = []
    with both.db.transaction():
        for turn in range(10):
            both.db.execute(rows(1000 * turn, 1000))
            both.parts.poll()
            held.append(both.open_bytes)
    both.finish()
    assert 0 < max(memory for memory, _ in held) <= 200_000 < held[-1][1]
    same(both)
