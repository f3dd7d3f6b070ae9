"""What the process of a source task does not import: it pays for each module at each start."""

from __future__ import annotations

import subprocess
import sys

import pytest

#: The worker's REST API, offsets in a database, the sink.
OTHERS = ["fastapi", "sqlalchemy", "pyspark"]
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
    imports = f"import connect_py.commands.task, connect_py.runtime.source_task, connect_py.runtime.chain, offsets.writer, {task}"
    found = f"import sys\nprint(*[name for name in {spared} if name in sys.modules])"
    out = subprocess.run([sys.executable, "-c", f"{imports}\n{found}"], capture_output=True, text=True, check=True)
    assert out.stdout.split() == []
