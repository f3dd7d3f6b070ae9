"""Workers of a group of three that are killed, frozen and ended at random, again and again, under load.

What holds is read from the topics: no number is missing, no start of a task writes after a later one has begun, no stored offset goes back;
and of a PostgreSQL table, every row has arrived. With exactly once, a reader of committed records finds nothing twice. Times are printed,
and asserted but for what the machine withheld (`tests.canary`); a pause of a task that no fault concerns must also be longer than twice
those of another group's tasks, with which nothing is done. A seed is printed; give it as FAULTS_SEED to repeat a run's choices.
CLUSTER_FAULTS is the number of faults of each kind; by default the long form has 12 kills, 6 freezes and 6 ends, and half of each with
exactly once.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from connect_py.app.services.postgres import PostgresAddress
from connect_py.app.services.worker import Worker
from tests import fault_counts
from tests.canary import Canary, now_ms
from tests.cluster import (
    DELAY_MS,
    HEARTBEAT_MS,
    SESSION_MS,
    Cluster,
    Fault,
    Figures,
    Inserting,
    assert_nothing_lost_and_one_owner,
    places,
    tasks_on,
)
from tests.fix_kafka import Kafka
from tests.fix_postgres import postgres_source
from tests.kills import new_dice
from tests.waiting import eventually, let_time_pass

pytestmark = [pytest.mark.services, pytest.mark.timeout(3600)]

#: Connectors that count, their tasks, and one that reads a table.
COUNTING, TASKS_EACH = 3, 3
TASKS = COUNTING * TASKS_EACH + 1
TABLE = "table"

#: How soon others have a worker's work.
KILLED_MS, TERMINATED_MS = SESSION_MS + DELAY_MS + 3_000, 5_000


@pytest.fixture
def apart(kafka: Kafka, tmp_path: Path, tag: str) -> Iterator[Cluster]:
    """Another group on the same broker."""
    made = Cluster(tmp_path / "apart", kafka.bootstrap, f"{tag}-apart")
    yield made
    made.close()


@pytest.fixture
def dice() -> random.Random:
    return new_dice()


_COUNTED = {
    "kill": fault_counts.Fault.KILLED_WORKER,
    "freeze": fault_counts.Fault.FROZEN_WORKER,
    "terminate": fault_counts.Fault.TERMINATED_WORKER,
}
_GROUP = "a group of three"


class Series:
    """Faults of a cluster, one after the other."""

    def __init__(self, cluster: Cluster, dice: random.Random) -> None:
        self.cluster, self.dice = cluster, dice
        self.faults: list[Fault] = []

    def strike(self, kind: str) -> None:
        """Let something happen to any worker; returns when all runs again on all workers."""
        cluster, dice = self.cluster, self.dice
        let_time_pass(dice.uniform(0, 1.5), "a random moment, in and between two flushes of the offsets")
        victim = dice.choice(cluster.workers)
        tasks = tasks_on(places(cluster.others(victim)[0]), victim)
        starts = {task: cluster.starts(*task) for task in tasks if task[0] != TABLE}
        fault = Fault(kind, victim.url, tasks, now_ms(), KILLED_MS)
        getattr(self, kind)(victim, fault)
        # the next fault is of a leader that these starts do not need any longer
        eventually(lambda: all(cluster.starts(*task) > before for task, before in starts.items()), f"starts of {tasks}", 60)
        self._share_again()
        fault.until = now_ms()
        self.faults.append(fault)
        fault_counts.note(_COUNTED[kind], _GROUP)

    def kill(self, victim: Worker, fault: Fault) -> None:
        """SIGKILL; the worker comes back when others have its work, or at once."""
        victim.kill()
        if self.dice.random() < 0.7:
            self._await_the_others(victim)
        victim.restart()

    def freeze(self, victim: Worker, fault: Fault) -> None:
        """SIGSTOP for longer than the session, with the tasks or of the worker alone."""
        self.cluster.freeze(victim, with_tasks=self.dice.random() < 0.5)
        try:
            self._await_the_others(victim)
            let_time_pass(self.dice.uniform(0, 1), "the others write")
        finally:
            self.cluster.thaw()

    def terminate(self, victim: Worker, fault: Fault) -> None:
        """SIGTERM."""
        fault.limit_ms = TERMINATED_MS
        self.cluster.terminate(victim)
        self._await_the_others(victim)
        victim.service.stop(seconds=40)
        victim.restart()

    def _await_the_others(self, victim: Worker) -> None:
        self.cluster.await_all_running(TASKS, [worker for worker in self.cluster.workers if worker is not victim], shared=False)

    def _share_again(self) -> None:
        self.cluster.await_all_running(TASKS, seconds=90)


@dataclass(frozen=True)
class Setting:
    """Where faults happen.

    Attributes:
        apart: another group, whose tasks show what the machine does to those that no fault concerns.
    """

    cluster: Cluster
    apart: Cluster
    kafka: Kafka
    postgres: PostgresAddress
    database: str
    dice: random.Random


@pytest.fixture
def setting(cluster: Cluster, apart: Cluster, kafka: Kafka, postgres: PostgresAddress, database: str, dice: random.Random) -> Setting:
    return Setting(cluster, apart, kafka, postgres, database, dice)


def run_series(at: Setting, kinds: list[str], *, exact: bool = False) -> Figures:
    """Returns times of the faults.

    Args:
        exact: with ``exactly.once.source.support=enabled``.
    """
    cluster, apart, kafka = at.cluster, at.apart, at.kafka
    support = "enabled" if exact else "disabled"
    cluster.add(3, exactly_once_source_support=support)
    apart.add(exactly_once_source_support=support)
    apart.create("apart", apart.counting("apart", TASKS_EACH))
    for number in range(COUNTING):
        cluster.create(f"c{number}", cluster.counting(f"c{number}", TASKS_EACH))
    series = Series(cluster, at.dice)
    with Canary() as canary, Inserting(at.postgres, at.database) as inserting:
        cluster.create(TABLE, postgres_source(at.postgres, at.database, cluster.tag, table_include_list="public.item"))
        shown, untouched = cluster.await_all_running(TASKS), apart.await_all_running(TASKS_EACH)
        for kind in kinds:
            series.strike(kind)
    rows, records = inserting.await_all(kafka, f"pg_{cluster.tag}.public.item")
    histories = {task: history for task, history in cluster.histories(kafka, shown).items() if task[0] != TABLE}
    assert len(histories) == COUNTING * TASKS_EACH
    repeated = sum(history.repeated for history in histories.values())
    numbers = sum(len(history.records) for history in histories.values())
    mode = "exactly once" if exact else "at least once"
    print(f"{len(kinds)} faults, {mode}: {numbers} numbers, {repeated} of them repeated; {rows} rows of PostgreSQL in {records} records")
    figures = Figures.of(series.faults, histories, canary, apart.histories(kafka, untouched).values())
    print(figures)
    assert_nothing_lost_and_one_owner(cluster, histories, kafka)
    assert not exact or (repeated, records) == (0, rows), "a reader of committed records finds some twice"
    fault_counts.note_changes(_GROUP, rows + numbers)
    cluster.workers[0].delete(TABLE)
    eventually(lambda: TABLE not in cluster.workers[0].request("GET", "/connectors"), "end of the source", 30)
    return figures


def rounds(default: int) -> int:
    return int(os.environ.get("CLUSTER_FAULTS") or default)


def test_whatever_happens_to_a_worker_nothing_is_lost_and_each_task_has_one_owner(setting: Setting) -> None:
    kinds = setting.dice.sample(["kill", "freeze", "terminate"], 3)
    figures = run_series(setting, kinds)
    assert figures.late == []
    assert figures.stopped == []


@pytest.mark.long
@pytest.mark.parametrize("exact", [False, True], ids=["at-least-once", "exactly-once"])
@pytest.mark.parametrize(("kind", "count"), [("kill", 12), ("freeze", 6), ("terminate", 6)])
def test_so_it_is_again_and_again(setting: Setting, kind: str, count: int, exact: bool) -> None:
    assert HEARTBEAT_MS < SESSION_MS
    figures = run_series(setting, [kind] * rounds(count // 2 if exact else count), exact=exact)
    assert figures.late == []
    assert figures.stopped == []
