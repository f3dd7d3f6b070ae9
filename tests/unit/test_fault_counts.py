"""The counts of faults, and the page that they make."""

from __future__ import annotations

import json
from pathlib import Path

from tests.fault_counts import KEPT, PAGE, Fault, added_up, table, with_table


def test_counts_of_several_processes_are_one_table(tmp_path: Path) -> None:
    for number, (count, changes) in enumerate([(2, {"MySQL": 1000}), (3, {"MySQL": 5, "PostgreSQL": 7})]):
        counted = {"faults": [[str(Fault.KILLED_TASK), "MySQL", count], [str(Fault.KILLED_BROKER), "one worker", 1]], "changes": changes}
        (tmp_path / f"{number}.faults").write_text(json.dumps(counted))
    counted = added_up(sorted(tmp_path.iterdir()), "2026-11-25", "abc")
    lines = table(counted).splitlines()
    assert lines[0] == "Counted by the tests themselves on 2026-11-25 at abc: **7 faults and 1,012 changes, no violation**."
    assert lines[2:] == [
        "| | MySQL | PostgreSQL | one worker |",
        "|---|---:|---:|---:|",
        "| `kill -9` of a task | 5 |  |  |",
        "| `kill -9` of the Kafka broker |  |  | 2 |",
        "| **faults** | 5 |  | 2 |",
        "| changes checked | 1,005 | 7 |  |",
    ]
    first = table(added_up(sorted(tmp_path.iterdir()), "2026-11-26", "def", counted)).splitlines()[0]
    assert first == (
        "Counted by the tests themselves on 2026-11-25 at abc and on 2026-11-26 at def: **14 faults and 2,024 changes, no violation**."
    )


def test_the_page_shows_what_was_counted_last() -> None:
    page = PAGE.read_text()
    assert page == with_table(page, json.loads(KEPT.read_text()))
