"""Kill the lakehouse sink in the middle of a snapshot that a table is reconciled with: what was not seen goes, and nothing else."""

from __future__ import annotations

import pytest

from tests.fault_counts import Fault, note
from tests.faults.test_kill_lakehouse import NOBODY, Kill, Process
from tests.fix_spark import Lake, both_formats
from tests.integration.test_spark_reconcile import event, rows, snapshot

pytestmark = [pytest.mark.services, pytest.mark.spark]

#: In the batch that the snapshot begins in, in one between, and in the one that deletes, before and after their commits.
KILLS = [
    Kill("committed", "process", "t", 4),
    Kill("writing", "task", "t", 1),
    Kill("before the report", "process", "t", 2),
    Kill("writing", "process", "t", 1),
    Kill("committed", "process", "t", 1),
]


@pytest.mark.timeout(1200)
@pytest.mark.long
@both_formats
def test_kills_within_a_snapshot_delete_what_it_did_not_show_and_nothing_else(lake: Lake) -> None:
    topic = lake.topic("t")
    lake.produce(topic, [event("c", key, 0) for key in range(1, 9)])
    seen = snapshot({1: 0, 3: 0, 5: 0, 7: 1, 10: 0, 11: 0})
    lake.produce(topic, [*seen[:3], event("c", 20, 0), event("d", 1, 0), *seen[3:], event("c", 2, 9)])
    connector = {
        "bootstrap": lake.bootstrap,
        "config": lake.config(topic, snapshot_reconcile="true", max__offsets__per__trigger="2"),
        "group": str(lake.warehouse.parent / "group.json"),
    }
    process, died = Process(connector), 0
    try:
        for kill in KILLS:
            if process.run(kill, 0.2):
                died += 1
                note(Fault.KILLED_TASK if kill.who == "task" else Fault.KILLED_SPARK, f"{lake.format.capitalize()} sink")
                if kill.who == "process":
                    process.kill()
                    process = Process(connector)
        assert not process.run(NOBODY, 0)
    finally:
        process.kill()
    assert died >= 4
    assert rows(lake) == {2: 9, 3: 0, 5: 0, 7: 1, 10: 0, 11: 0, 20: 0}
