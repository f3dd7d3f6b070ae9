"""The life of Spark's JVM. In a process of its own, because the other tests share one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from connect_py.errors import ConfigError
from tests.fix_spark import INT, Lake, event

pytestmark = [pytest.mark.services, pytest.mark.spark]

SCRIPT = """
import os, signal, sys, tempfile
from pathlib import Path
from connect_py.errors import FatalTaskError
from tests.fix_spark import Lake

def jvms():
    children = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(stat.read_text().rpartition(")")[2].split()[1]) == os.getpid():
                children.append(int(stat.parent.name))
        except FileNotFoundError:
            pass
    return children

bootstrap, warehouse, topic = sys.argv[1:]
lake = Lake(bootstrap, Path(warehouse), "x")
secret = {"lakehouse.hadoop.fs.s3a.secret.key": " S3SECRET = ü\\n: "}
first = lake.start(lake.config(topic) | secret)
commands = [Path(f"/proc/{pid}/cmdline").read_bytes().split(bytes(1)) for pid in jvms()]
print([b"SECRET" in argument for command in commands for argument in command].count(True), "arguments hold the secret")
hadoop = first._spark.sparkContext._jsc.hadoopConfiguration()
print([hadoop.get("fs.s3a.secret.key")])
print([path.name for path in Path(tempfile.gettempdir()).rglob("*.properties")])
os.kill(jvms()[0], signal.SIGKILL)
try:
    first.step()
except FatalTaskError as error:
    print(error)
print(sum(path.stat().st_size for path in Path(tempfile.gettempdir()).rglob("*") if path.is_file()))
second = lake.start(lake.config(topic) | secret)
first.close()
print(lake.drain(second), "batch,", len(lake.rows("t")), "rows")
second.close()
print(len(jvms()), "left")
"""

CLASSES = """
import subprocess, sys, threading
from pathlib import Path
from spark_sink.config.sink_config import parse
from spark_sink.spark.compilers import FIRST_COMPILER_ONLY
from spark_sink.spark.jars import java
from spark_sink.spark.local import scala_object
from spark_sink.spark.session import open_session
from tests.fix_spark import Lake

config = Lake(sys.argv[1], Path(sys.argv[2]), "x").config("none") | {"lakehouse.spark.master": "local[3]"}
session = open_session(parse(config), "tests")
spark = session.spark
print(spark.conf.get("spark.sql.shuffle.partitions"), "parts")
# A thread of the JVM without a session is the first to ask.
first = threading.Thread(target=scala_object, args=(spark, "org.apache.spark.sql.catalyst.expressions.codegen.CodeGenerator"))
first.start()
first.join()
compiled = spark._jvm.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME()

def generate(number):
    assert spark.range(1).selectExpr(f"id * 1000 + {number} n").collect()[0]["n"] == number

for number in range(150):
    generate(number)
before = compiled.getCount()
generate(0)
print(before >= 150, compiled.getCount() - before)
jcmd = Path(java()).resolve().with_name("jcmd")
said = subprocess.run([jcmd, str(spark.sparkContext._gateway.proc.pid), "Compiler.directives_print"], capture_output=True, text=True).stdout
planning, default = said.split("Directive:")[1:]
print([begin for begin in FIRST_COMPILER_ONLY if f"{begin}*.*" not in planning], "Exclude:true" in planning.partition("c2 directives")[2])
session.close()
"""


def test_a_session_has_its_own_cores_parts_keeps_classes_whichever_thread_is_first_and_spares_a_compiler(
    lake: Lake, tmp_path: Path
) -> None:
    root = Path(__file__).parents[2]
    arguments = [sys.executable, "-c", CLASSES, lake.bootstrap, str(tmp_path / "other")]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=300, cwd=root, env=os.environ | {"PYTHONPATH": str(root)})
    assert (done.returncode, done.stdout) == (0, "3 parts\nTrue 0\n[] True\n"), done.stderr[-3000:]


@pytest.mark.long
def test_a_task_that_starts_after_the_jvm_died_gets_a_new_one_and_the_last_leaves_none(lake: Lake, tmp_path: Path) -> None:
    topic = lake.topic("t")
    lake.produce(topic, [event("c", 1, {"n": 1}, {"n": INT})])
    arguments = [sys.executable, "-c", SCRIPT, lake.bootstrap, str(tmp_path / "other"), topic]
    root, scratch = Path(__file__).parents[2], tmp_path / "scratch"
    scratch.mkdir()
    env = os.environ | {"PYTHONPATH": str(root), "TMPDIR": str(scratch)}
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=300, cwd=root, env=env)
    assert done.returncode == 0, done.stderr[-3000:]
    commands, kept, files, *said = done.stdout.splitlines()
    assert commands == "0 arguments hold the secret"
    assert kept == repr(["S3SECRET = ü\n:"])
    assert files == repr(["log4j2.properties"]), "the file that held it is gone"
    assert re.match(r"Spark ended while .*: killed by SIGKILL, which is what the kernel does when memory is short", said[0])
    assert said[2:] == ["1 batch, 1 rows", "0 left"]
    assert int(said[1]) > 50_000_000, "what the killed one had on disk"
    assert [path.name for path in scratch.rglob("*") if path.is_file()] == [], "neither of them has left anything there"


def test_other_settings_of_the_shared_context_are_refused_by_name(lake: Lake) -> None:
    with pytest.raises(ConfigError, match=r"other settings of spark\.driver\.memory\. Give both"):
        lake.start(lake.config(lake.topic("t")) | {"lakehouse.spark.conf.spark.driver.memory": "3g"})
