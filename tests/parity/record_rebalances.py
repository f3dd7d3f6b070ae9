"""Record what Kafka's own assignor answers in random histories of a group, for `tests/unit/connect_py/group/test_java_rounds.py`.

    python -m tests.parity.record_rebalances FOLDER_OF_JARS

The folder holds connect-runtime, its dependencies and jackson. Needs a JDK.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from connect_py.group.protocol import Allocation, GroupAssignment, Item, TaskId
from tests.paths import GOLDEN
from tests.rebalances import Fate, Group, Request

HISTORIES, ROUNDS = 200, 14
DELAYS_MS = (0, 1_000, 8_000, 300_000)


def texts(items: Iterable[Item]) -> list[str]:
    return [f"{item.connector}/{item.task}" if isinstance(item, TaskId) else item for item in items]


def parsed(texts: Iterable[str]) -> Allocation:
    parts = [text.split("/") for text in texts]
    return Allocation.of(TaskId(part[0], int(part[1])) if len(part) == 2 else part[0] for part in parts)


class JavaLeaders:
    """Kafka's assignor, and the notes of what it was asked and answered."""

    def __init__(self, java: subprocess.Popen[str], history: int, max_delay_ms: int) -> None:
        self._java, self._history, self._max_delay_ms = java, history, max_delay_ms
        self.notes: list[dict[str, object]] = []

    def __call__(self, request: Request) -> Mapping[str, GroupAssignment]:
        asked = {
            "worker": request.worker,
            "generation": request.generation,
            "completed": request.completed,
            "now": request.now_ms,
            "configured": request.configured,
            "members": {member: texts(state.allocation) for member, state in request.members.items()},
        }
        assert self._java.stdin and self._java.stdout
        print(json.dumps(asked | {"history": self._history, "max_delay": self._max_delay_ms}), file=self._java.stdin, flush=True)
        answer = json.loads(self._java.stdout.readline())
        members = {member: asked["members"][member] for member in answer.pop("order")}  # type: ignore[index]
        self.notes.append(asked | {"members": members, "answer": answer})
        return {
            member: GroupAssignment(
                0, request.leader, "", 0, parsed(answer["assigned"][member]), parsed(answer["revoked"][member]), answer["delay"]
            )
            for member in members
        }


def main(jars: str) -> None:
    """Compile the Java side, run all histories, write the golden."""
    with tempfile.TemporaryDirectory() as classes:
        source = Path(__file__).with_name("RebalanceRecorder.java")
        subprocess.run(["javac", "-cp", f"{jars}/*", "-d", classes, str(source)], check=True)
        command = ["java", "-Xmx200m", "-cp", f"{classes}:{jars}/*", f"org.apache.kafka.connect.runtime.distributed.{source.stem}"]
        histories = []
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as java:
            for seed in range(HISTORIES):
                leaders = JavaLeaders(java, seed, DELAYS_MS[seed % len(DELAYS_MS)])
                fate = Fate(Group(leaders), seed, zombies=seed % 3 == 0)
                for _ in range(ROUNDS):
                    fate.strike()
                histories.append({"max_delay": DELAYS_MS[seed % len(DELAYS_MS)], "rounds": leaders.notes})
    text = json.dumps(histories, separators=(",", ":"))
    (GOLDEN / "rebalances.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main(sys.argv[1])
