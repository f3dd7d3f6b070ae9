"""How many faults tests inject and how many changes of sources they then check: the table of docs/evidence/faults.md.

A test notes what it does. When its process ends, the counts are written next to its durations, as `NAME.faults`. Made into the table:

    python -m tests.fault_counts FILE.faults …

`tests/lanes.py --record` does that at the end of a run in which no test failed. By hand, name the file by the durations'; `--add` keeps
what was counted before:

    CONNECT_PY_DURATIONS=/tmp/kills.json FAULTS_KILLS=30 python -m pytest tests/faults/test_kill.py
    python -m tests.fault_counts --add /tmp/kills.faults
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

#: What was counted last, with its day and commit.
KEPT = Path(__file__).with_name("faults.json")
PAGE = Path(__file__).parent.parent / "docs/evidence/faults.md"
_BEGIN, _END = "<!-- counted: tests/fault_counts.py writes this -->\n", "<!-- end -->\n"


class Fault(StrEnum):
    """What was done to a system."""

    KILLED_TASK = "`kill -9` of a task"
    KILLED_AT = "`kill -9` of a task at a named point of its way"
    KILLED_READER = "`kill -9` of a process that reads a snapshot"
    KILLED_WORKER = "`kill -9` of a worker"
    KILLED_SPARK = "`kill -9` of Spark's JVM, or of task and JVM together"
    FROZEN_WORKER = "a worker that stands still while others take over, and wakes"
    TERMINATED_WORKER = "SIGTERM of a worker whose tasks others take over"
    KILLED_BROKER = "`kill -9` of the Kafka broker"
    FROZEN_BROKER = "a Kafka broker that stands still, and wakes"
    KILLED_DATABASE = "`kill -9` of the database"
    CUT_CONNECTION = "a connection that the database ends"
    RESET = "connections to the database or to Kafka, reset"
    HALF_OPEN = "connections on which nothing comes any more, and that stay open"
    LATE = "seconds in which everything is late"
    SLOW = "seconds in which some kilobytes a second pass"
    CORRUPTED = "a byte of a TLS connection, changed on its way"
    EATEN = "a request that is carried out, whose answer is lost with its connection"
    DISK_FULL = "a disk that is full, and has room again"
    CLOCK = "a wall clock that leaps by 58 minutes"
    REQUEST = "pause, stop or restart by REST, under load"


_faults: Counter[tuple[str, str]] = Counter()
_changes: Counter[str] = Counter()


def note(fault: Fault, of: str, count: int = 1) -> None:
    """Count a fault.

    Args:
        of: the system under test: `PostgreSQL`, `a group of workers`.
    """
    _faults[str(fault), of] += count


def note_changes(of: str, count: int) -> None:
    """Count changes of a source, or events of a topic, of which each was looked for where it has to be."""
    _changes[of] += count


def write(path: Path) -> None:
    """Write what this process has counted, if anything."""
    if _faults or _changes:
        path.write_text(json.dumps({"faults": [[*key, count] for key, count in _faults.items()], "changes": _changes}))


def system_of(config: Mapping[str, str]) -> str:
    """Return the system that a source's configuration reads."""
    kind = config["connector.class"].lower()
    return next(name for name in ("PostgreSQL", "MySQL", "MariaDB", "MongoDB") if name.lower() in kind)


def added_up(files: Iterable[Path], day: str, commit: str, before: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the counts of several processes as one, added to those of runs before."""
    faults: Counter[tuple[str, str]] = Counter()
    changes: Counter[str] = Counter()
    for found in ([before] if before else []) + [json.loads(file.read_text()) for file in files]:
        faults.update({(fault, of): count for fault, of, count in found["faults"]})
        changes.update(found["changes"])
    run = {"day": day, "commit": commit}
    return {
        "runs": [*(each for each in before["runs"] if each != run), run] if before else [run],
        "faults": sorted([*key, count] for key, count in faults.items()),
        "changes": dict(sorted(changes.items())),
    }


def table(counted: Mapping[str, Any]) -> str:
    """Return the section of the page: a row for each fault, a column for each system."""
    systems = sorted({of for _, of, _ in counted["faults"]} | set(counted["changes"]))
    counts = {(fault, of): count for fault, of, count in counted["faults"]}
    rows = [
        [str(fault), *(counts.get((fault, of), 0) for of in systems)] for fault in Fault if any((fault, of) in counts for of in systems)
    ]
    total = ["**faults**", *(sum(row[number] for row in rows) for number in range(1, len(systems) + 1))]
    checked = ["changes checked", *(counted["changes"].get(of, 0) for of in systems)]
    runs = " and ".join(f"on {run['day']} at {run['commit']}" for run in counted["runs"])
    lines = [
        f"Counted by the tests themselves {runs}: **{sum(total[1:]):,} faults and {sum(checked[1:]):,} changes, no violation**.",
        "",
        f"| | {' | '.join(systems)} |",
        "|---|" + "---:|" * len(systems),
        *(f"| {row[0]} | {' | '.join(f'{count:,}' if count else '' for count in row[1:])} |" for row in (*rows, total, checked)),
    ]
    return "\n".join(lines) + "\n"


def with_table(page: str, counted: Mapping[str, Any]) -> str:
    """Return the page with the section of these counts."""
    return re.sub(f"(?<={re.escape(_BEGIN)}).*?(?={re.escape(_END)})", lambda _: table(counted), page, flags=re.DOTALL)


def main(arguments: list[str]) -> int:
    """Keep the counts of the files, with `--add` in addition to those that are kept, and write the page."""
    before = json.loads(KEPT.read_text()) if "--add" in arguments else None
    files = [argument for argument in arguments if argument != "--add"]
    command = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(command, cwd=PAGE.parent, capture_output=True, text=True, check=True).stdout.strip()
    counted = added_up(map(Path, files), f"{datetime.now(UTC):%Y-%m-%d}", commit, before)
    KEPT.write_text(json.dumps(counted, indent=1, ensure_ascii=False) + "\n")
    PAGE.write_text(with_table(PAGE.read_text(), counted))
    print(table(counted))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
