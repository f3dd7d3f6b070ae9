"""A lakehouse task that hangs at some boundary of a batch while another takes over, and wakes up later: it cannot commit what that one has.

For the tables a task that hangs is as good as killed, so what the younger one finds is also what it finds after a kill.
`CONNECT_PY_LAKE_ZOMBIES=1` lets one hang at every boundary, in both formats and with both drivers; `CONNECT_PY_LAKE_SEED` repeats a run.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import threading

import pytest

from connect_py.errors import ConnectError, RetriableError
from spark_sink.task import SparkLakehouseSinkTask
from tests.faults.lake_boundaries import OF_CREATION, OF_THE_BATCH, Trap, of_format
from tests.faults.lake_source import Source
from tests.fix_spark import Lake, iceberg_and_long_delta

pytestmark = [pytest.mark.services, pytest.mark.spark]

LONG = bool(os.environ.get("CONNECT_PY_LAKE_ZOMBIES"))
#: At which passing of which boundary, by format. Each batch has three tables.
SHORT = {"iceberg": [("created", 1), ("publishing", 2)], "delta": [("writing", 2)]}


def hangs(format_: str) -> list[tuple[str, int]]:
    """Every boundary, at the first passing, at the second (another table or batch) and, of a table's, at the fourth (another batch).

    Those of a creation come first: for them the tables are removed, and the whole log is written again.
    """
    found = [name for name in of_format(format_) if "report" not in name]
    found.sort(key=lambda name: name not in OF_CREATION)
    return [(name, time) for name in found for time in ((1, 2) if name in OF_CREATION + OF_THE_BATCH else (1, 2, 4))]


class Zombie(threading.Thread):
    """Steps once and hangs at a boundary until it is woken."""

    def __init__(self, task: SparkLakehouseSinkTask, boundary: str, time: int) -> None:
        super().__init__(daemon=True)
        self._task = task
        self.hangs, self._wake = threading.Event(), threading.Event()
        self.hung = False
        self.error: Exception | None = None
        Trap(boundary, time, self._hang).set_in(task)

    def _hang(self) -> None:
        self.hung = True
        self.hangs.set()
        self._wake.wait()

    def run(self) -> None:
        """See `threading.Thread`."""
        try:
            while self._task.step() is not None:
                pass
        except Exception as error:  # noqa: BLE001  # judged by the test
            self.error = error
        self.hangs.set()

    def wake(self) -> None:
        """Let it go on, and wait for its end."""
        self._wake.set()
        self.join(240)
        assert not self.is_alive()


def take_over(lake: Lake, younger: SparkLakehouseSinkTask) -> None:
    """Write what there is, as a worker has it done: tries again what meets a table that the other has in hand at this moment.

    A task hangs with one of its tables; its others may be on their way to a commit, which the younger one then finds in its way, once. One
    that has woken up under `stream`, and does not know yet that it is replaced, may remove the younger one's checkpoint: that begins anew.
    """
    for _ in range(3):
        with contextlib.suppress(RetriableError):
            lake.drain(younger)
            return
    lake.drain(younger)


@pytest.mark.long
@pytest.mark.timeout(600 + 7200 * LONG)
@pytest.mark.parametrize("driver", ["loop", "stream"] if LONG else ["loop"])
@iceberg_and_long_delta
def test_a_task_that_wakes_up_after_another_has_taken_over_changes_nothing(lake: Lake, driver: str) -> None:
    seed = int(os.environ.get("CONNECT_PY_LAKE_SEED") or random.randrange(10**6))
    print(f"CONNECT_PY_LAKE_SEED={seed}")
    source = Source(lake, random.Random(seed))
    config = source.config(driver, max__offsets__per__trigger="12")
    for boundary, time in hangs(lake.format) if LONG else SHORT[lake.format]:
        if boundary in OF_CREATION:
            shutil.rmtree(lake.warehouse, ignore_errors=True)
        source.change(6)  # 18 events: two batches
        zombie = Zombie(task := lake.start(config), boundary, time)
        zombie.start()
        assert zombie.hangs.wait(240)
        assert zombie.hung, f"boundary {boundary} was not passed {time} times: {zombie.error}"
        source.change(3)
        younger = lake.start(config)
        take_over(lake, younger)
        source.check()
        zombie.wake()
        assert zombie.error is None or isinstance(zombie.error, ConnectError), zombie.error
        print(f"{boundary} ({time}): {zombie.error}", flush=True)
        source.check()
        source.change(3)
        take_over(lake, younger)
        source.check()
        younger.close()
        task.close()
