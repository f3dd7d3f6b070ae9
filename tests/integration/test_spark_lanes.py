"""Several tables of a batch written at once: each gets its own rows, offsets and errors, and exactly one of each event."""

from __future__ import annotations

import pytest

from connect_py.errors import FatalTaskError, RetriableError
from tests.fix_spark import INT, TEXT, Lake, event, iceberg_and_long_delta

pytestmark = [pytest.mark.services, pytest.mark.spark]

TABLES = ("a", "b", "c", "d")


def notes(table: str, *numbers: int) -> list[tuple[bytes | None, bytes]]:
    """Events without a key: each becomes a row, so that a repeated or a foreign one shows."""
    return [event("c", None, {"n": number, "of": table}, {"n": INT, "of": TEXT}, table) for number in numbers]


@iceberg_and_long_delta
def test_of_tables_written_at_once_each_has_its_own_rows_and_offsets_and_an_error_is_one_tables(lake: Lake) -> None:
    topics = {table: lake.topic(table) for table in TABLES}
    config = lake.config(*topics.values(), control_commit_threads="3") | {"lakehouse.table.public.c.evolve-schema-enabled": "false"}
    task = lake.start(config)
    for round_ in range(2):
        for table, topic in topics.items():
            lake.produce(topic, notes(table, *(10 * round_ + number for number in range(5))))
        lake.drain(task)
    for table, topic in topics.items():
        assert sorted(row["n"] for row in lake.rows(table)) == [*range(5), *range(10, 15)]
        assert {row["of"] for row in lake.rows(table)} == {table}
        assert lake.watermark(table) == {topic: {"0": 10}}, "of another table it must know nothing"

    for table, topic in topics.items():  # batches of one table, between others
        lake.produce(topic, notes(table, 15))
        lake.drain(task)
    for table, topic in topics.items():
        lake.produce(topic, notes(table, 20))
    lake.produce(topics["c"], [event("c", None, {"n": 21, "of": "c", "new": 1}, {"n": INT, "of": TEXT, "new": INT}, "c")])
    with pytest.raises(FatalTaskError, match=r"public\.c"):
        task.step()
    assert len(lake.rows("c")) == 11
    lake.drain(lake.start(config | {"lakehouse.table.public.c.evolve-schema-enabled": "true"}))
    for table in TABLES:
        more = [20, 21] if table == "c" else [20]
        assert sorted(row["n"] for row in lake.rows(table)) == [*range(5), *range(10, 16), *more]


@pytest.mark.long
def test_what_takes_longer_than_the_bound_is_cancelled_named_and_written_once_when_it_may_take_longer(lake: Lake) -> None:
    topics = {table: lake.topic(table) for table in TABLES[:2]}
    config = lake.config(*topics.values(), control_commit_threads="2")
    for table, topic in topics.items():
        lake.produce(topic, notes(table, *range(10)))
    # However quick the machine, a job is met: the driver holds nothing.
    hurried = lake.start(config | {"lakehouse.control.commit.timeout-ms": "1"}, again_seconds=0.01, held_records=0)
    with pytest.raises(RetriableError, match=r"Writing table public\.[ab] from .*\[0, 10\) timed out: .*commit\.timeout-ms=1\."):
        hurried.step()
    hurried.close()
    task = lake.start(config)
    lake.drain(task)
    for table in topics:
        assert sorted(row["n"] for row in lake.rows(table)) == list(range(10))
