"""What the process of a source task does not import: it pays for each module at each start."""

from __future__ import annotations

import subprocess
import sys

import pytest

#: What exactly-once sources alone need.
TRANSACTIONS = ["connect_py.kafka.transactions", "connect_py.task.exactly_once", "connect_py.task.transaction_boundary"]
#: The worker's REST API, offsets in a database, the sink.
OTHERS = ["fastapi", "sqlalchemy", "pyspark", *TRANSACTIONS]
#: The metadata of packages, which says what they add: 25 ms to import and to read. Drivers of other databases import it themselves.
METADATA = "importlib.metadata"


@pytest.mark.parametrize(
    ("task", "spared"),
    [
        ("connectors.mysql.task", [*OTHERS, METADATA]),
        ("connectors.postgres.task", OTHERS),
        ("connectors.mongodb.task", OTHERS),
    ],
)
def test_a_source_task_is_spared_what_its_configuration_may_not_need(task: str, spared: list[str]) -> None:
    imports = f"import connect_py.app.task_process, connect_py.task.source, connect_py.task.chain, offsets.offset_store, {task}"
    found = f"import sys\nprint(*[name for name in {spared} if name in sys.modules])"
    out = subprocess.run([sys.executable, "-c", f"{imports}\n{found}"], capture_output=True, text=True, check=True)
    assert out.stdout.split() == []


def test_a_task_looks_for_garbage_only_when_it_begins_to_work() -> None:
    """The command leaves it off for the imports; the loops' entries take it up again, each of the three."""
    program = """
import gc, inspect
from connect_py.app import cli
from connect_py.app import task_process
from connect_py.task import main as task_main

def main(_, **more):
    off = gc.isenabled()
    task_main._collect_garbage()
    print(off, gc.isenabled(), gc.get_freeze_count() > 10_000)
    return 0

task_process.task_main = main
cli.main(["task"])
print(*["_collect_garbage()" in inspect.getsource(run) for run in (task_main._run_source, task_main._run_sink, task_main._run_batch_sink)])
"""
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert out.stdout.split() == ["False", "True", "True", "True", "True", "True"]
