"""Spark on hosts of other kinds than this one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

_PROGRAM = """
import sys
from spark_sink.spark import jvm
running = jvm.start({"spark.master": "local[1]", "spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1"}, "test")
rows = running.session.range(5)
for path in sys.argv[1:]:
    rows.write.parquet(path)
    rows = running.session.read.parquet(path)
print(rows.count())
running.stop()
"""


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("unshare") is None, reason="a host name of its own needs root and unshare")
def test_a_host_that_does_not_know_its_own_name_can_run_spark() -> None:
    """As in the build of an image, and in pods on their node's network."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SPARK_LOCAL_")}
    program = 'hostname no-such-host.invalid && exec "$@"'
    command = ["unshare", "--uts", "sh", "-c", program, "sh", sys.executable, "-c", _PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=240)
    assert done.stdout.split() == ["5"], done.stderr[-3000:]


@pytest.mark.long
def test_a_driver_without_the_sinks_own_class_writes_files_as_hadoop_does(tmp_path: Path) -> None:
    """An operator may let a connector choose all jars."""
    done = subprocess.run([sys.executable, "-c", _PROGRAM, str(tmp_path / "rows")], capture_output=True, text=True, timeout=240)
    assert done.stdout.split() == ["5"], done.stderr[-3000:]
