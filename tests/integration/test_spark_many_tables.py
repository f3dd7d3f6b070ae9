"""Many tables of one connector: one stream of bounded batches, schemas that change in some of them meanwhile, and what idle ones cost.

`MANY_TABLES=200` is the whole form (600 commits, each of about a second of CPU); the suite runs a small one. Printed are wall time and
the CPU time of Spark's JVM and this process; what an idle table costs is judged by the latter, because the former also measures whoever
else uses the machine.
"""

from __future__ import annotations

import os
import statistics
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from connect_py.kafka.admin import KafkaAdmin
from tests.fix_kafka import Kafka
from tests.fix_spark import INT, TEXT, Lake, event
from tests.seeds import size

pytestmark = [pytest.mark.services, pytest.mark.spark, pytest.mark.timeout(3600)]

TABLES = size("MANY_TABLES", 5, 20)
#: A tenth of the tables change their schemas while data flows.
CHANGING = max(2, TABLES // 10)
BOUND = 10 * TABLES
IDLE_ROUNDS = int(os.environ.get("MANY_ROUNDS", "4"))


class ManyTables(Lake):
    """Topics are asked for as the worker asks: all partitions in one request."""

    def __init__(self, bootstrap: str, warehouse: Path, tag: str) -> None:
        super().__init__(bootstrap, warehouse, tag)
        self._admin = KafkaAdmin({"bootstrap.servers": bootstrap})
        self.context.log_offsets = self._admin.log_offsets  # type: ignore[method-assign]

    def topics(self, count: int) -> list[str]:
        names = [f"{self.tag}.public.t{number}" for number in range(count)]
        made = AdminClient({"bootstrap.servers": self.bootstrap})
        for future in made.create_topics([NewTopic(name, 1, 1) for name in names]).values():
            future.result(60)
        return names

    def drain_once(self, task: Any) -> None:
        """One batch, and no look for another one."""
        reached = task.step()
        assert reached is not None
        self.context.group.update(reached)


@pytest.fixture
def many(kafka: Kafka, held_spark: Any, tmp_path: Path, tag: str) -> Any:
    made = ManyTables(kafka.bootstrap, tmp_path / "warehouse", tag)
    yield made
    made.close()


@pytest.mark.long
def test_many_tables_follow_one_stream_while_schemas_change_and_idle_ones_cost_next_to_nothing(many: ManyTables) -> None:
    topics = many.topics(TABLES)
    config = many.config(topics_regex="unused") | {
        "topics.regex": rf"{many.tag}\.public\..*",
        "lakehouse.max-offsets-per-trigger": str(BOUND),
    }
    del config["topics"], config["lakehouse.topics.regex"]
    for number, topic in enumerate(topics):
        many.produce(topic, [event("c", key, {"n": key}, {"n": INT}, f"t{number}") for key in range(20)])
    task = many.start(config)
    began = Moment()
    batches = many.drain(task)
    assert batches == 2  # 20 events a table, 10 a table and batch
    print(f"{TABLES} tables, {20 * TABLES} events in {batches} batches: {began.since():.1f}")

    changed = set(range(0, TABLES, max(1, TABLES // CHANGING)))
    for number, topic in enumerate(topics):
        old = [event("u", key, {"n": -key}, {"n": INT}, f"t{number}") for key in range(5)]
        new = [event("u", key, {"n": -key, "more": f"m{key}"}, {"n": INT, "more": TEXT}, f"t{number}") for key in range(5, 10)]
        many.produce(topic, [*old, *new] if number in changed else old)
    began = Moment()
    many.drain(task)
    print(f"updates in all of them, a new column in {len(changed)}: {began.since():.1f}")
    for number in range(TABLES):
        rows = {row["id"]: row for row in many.rows(f"t{number}")}
        assert len(rows) == 20
        assert [rows[key]["n"] for key in (1, 5, 19)] == [-1, -5 if number in changed else 5, 19]
        assert rows[7].get("more") == ("m7" if number in changed else None)
        assert ("more" in rows[7]) == (number in changed)
    commits = {number: many.snapshots(f"t{number}") for number in range(TABLES)}

    among = _rounds(many, task, topics[0])
    alone = _alone(many, topics[0])  # takes the table over, so it comes last
    idle = Taken(*((one - other) / (TABLES - 1) * 1000 for one, other in zip(among, alone, strict=True)))
    print(
        f"a batch for one table takes {alone:.3f} alone, {among:.3f} among {TABLES}; an idle one {idle.wall:.2f} ms, {idle.cpu:.2f} of CPU"
    )
    assert {number for number in commits if many.snapshots(f"t{number}") != commits[number]} == {0}
    if TABLES >= 100:  # among few, noise is larger than what is looked for
        assert idle.cpu <= 1.0


class Taken(NamedTuple):
    """Seconds."""

    wall: float
    cpu: float

    def __format__(self, form: str) -> str:
        return f"{self.wall:{form}} s ({self.cpu:{form}} s of CPU)"


class Moment:
    """Now, on the wall's clock and on those of Spark's JVM and of this process."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.monotonic(), self._used()

    def since(self) -> Taken:
        return Taken(time.monotonic() - self._wall, self._used() - self._cpu)

    @staticmethod
    def _used() -> float:
        from pyspark import SparkContext

        stat = Path(f"/proc/{SparkContext._gateway.proc.pid}/stat").read_text().rpartition(")")[2].split()
        with_children = sum(int(ticks) for ticks in stat[11:15]) / os.sysconf("SC_CLK_TCK")  # Hadoop starts a chmod for each file
        return with_children + sum(os.times()[:2])


def _rounds(many: ManyTables, task: Any, topic: str) -> Taken:
    """A batch with one event for the first table: the median."""
    taken = []
    for number in range(IDLE_ROUNDS):
        many.produce(topic, [event("u", 1, {"n": number}, {"n": INT}, "t0")])
        began = Moment()
        many.drain_once(task)
        taken.append(began.since())
    return Taken(*(statistics.median(figures) for figures in zip(*taken[1:], strict=True)))


def _alone(many: ManyTables, topic: str) -> Taken:
    """The same by a connector that has this table only."""
    task = many.start(many.config(topic))
    many.drain(task)
    return _rounds(many, task, topic)
