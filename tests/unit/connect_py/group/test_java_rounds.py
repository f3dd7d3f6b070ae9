"""Rounds of our leader next to those that Kafka's own assignor (4.3.1) computed in the same histories.

Recorded by `tests/parity/record_rebalances.py`: joins, leaves, workers that come back with what they ran, lost assignments, changes of the
configuration, new leaders, delays.
"""

import gzip
import json
from typing import Any

from connect_py.group.assignor import Assignor
from connect_py.group.protocol import Allocation, GroupProtocol, TaskId, WorkerState
from tests.paths import GOLDEN
from tests.rebalances import work

HISTORIES = json.loads(gzip.decompress((GOLDEN / "rebalances.json.gz").read_bytes()))


def allocation(texts: list[str]) -> Allocation:
    parts = [text.split("/") for text in texts]
    return Allocation.of(TaskId(part[0], int(part[1])) if len(part) == 2 else part[0] for part in parts)


def compare(history: dict[str, Any]) -> bool:
    """Compare all rounds, or those up to the one in which ours stops what is not configured and Java's does not; return whether all."""
    leaders: dict[str, Assignor] = {}
    for number, recorded in enumerate(history["rounds"]):
        leader = leaders.setdefault(recorded["worker"], Assignor(history["max_delay"]))
        running = {member: allocation(items) for member, items in recorded["members"].items()}
        sent = leader.assign(
            {member: WorkerState(member, 0, items) for member, items in running.items()},
            work(recorded["configured"]),
            leader=next(iter(running)),
            config_offset=0,
            generation=recorded["generation"],
            completed_generation=recorded["completed"],
            protocol=GroupProtocol.COMPATIBLE,
            now_ms=recorded["now"],
        )
        answer = recorded["answer"]
        deleted = {item for items in running.values() for item in items} - set(work(recorded["configured"]))
        if any(deleted & (set(running[member]) - set(allocation(items))) for member, items in answer["revoked"].items()):
            assert all(deleted.isdisjoint(set(running[member]) - set(sent[member].revoked)) for member in sent)
            return False
        for member, assignment in sent.items():
            where = f"round {number}, {member}"
            assert assignment.assigned == allocation(answer["assigned"][member]), where
            assert set(assignment.revoked) == set(allocation(answer["revoked"][member])), where
            # Java computes the back-off in floating point, which can lack a millisecond.
            assert abs(assignment.delay_ms - answer["delay"]) <= 1, where
    return True


def test_rounds_equal_those_of_java() -> None:
    complete = 0
    for number, history in enumerate(HISTORIES):
        try:
            complete += compare(history)
        except AssertionError as error:
            error.add_note(f"history {number}")
            raise
    assert complete > 160


def test_the_histories_have_everything_in_them() -> None:
    rounds = [recorded for history in HISTORIES for recorded in history["rounds"]]
    assert len(rounds) == 2800
    assert sum(bool(recorded["answer"]["delay"]) for recorded in rounds) > 250
    assert sum(any(recorded["answer"]["revoked"].values()) for recorded in rounds) > 250
    assert sum(any(recorded["answer"]["assigned"].values()) for recorded in rounds) > 250
    assert any(0 < recorded["answer"]["delay"] <= 40 for recorded in rounds)
    items = [[item for items in recorded["members"].values() for item in items] for recorded in rounds]
    assert sum(len(set(running)) < len(running) for running in items) > 8
