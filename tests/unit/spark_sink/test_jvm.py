"""The options that Spark's JVM starts with, and the directory that goes with it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from spark_sink.spark.compilers import let_compiler_give_way
from spark_sink.spark.jvm import Scratch, local_options, local_variables, remove_left_behind, write_properties
from tests.paths import ROOT

CODE_CACHE = "-XX:ReservedCodeCacheSize=256m"


@pytest.mark.parametrize(
    ("more", "environment", "options"),
    [
        ("", {}, ["-XX:+UseParallelGC", CODE_CACHE]),
        ("-Dx=y", {"JDK_JAVA_OPTIONS": "-Xshare:auto"}, ["-XX:+UseParallelGC", CODE_CACHE]),
        ("-XX:+UseG1GC", {}, [CODE_CACHE]),
        ("", {"JDK_JAVA_OPTIONS": "-Xshare:auto -XX:+UseSerialGC"}, [CODE_CACHE]),
        ("", {"JAVA_TOOL_OPTIONS": "-XX:+UseZGC"}, [CODE_CACHE]),
    ],
)
def test_a_collector_that_was_chosen_elsewhere_is_the_only_one(
    tmp_path: Path, more: str, environment: dict[str, str], options: list[str]
) -> None:
    assert local_options(more, environment, tmp_path / "none") == options


@pytest.mark.parametrize(
    ("linux", "more", "environment", "wanted"),
    [
        ("always [madvise] never\n", "", {}, True),
        ("[always] madvise never\n", "-XX:+UseG1GC", {}, True),
        ("always madvise [never]\n", "", {}, False),
        ("always [madvise] never\n", "-XX:-UseTransparentHugePages", {}, False),
        ("always [madvise] never\n", "", {"JAVA_TOOL_OPTIONS": "-Xmx1g -XX:+UseLargePages"}, False),
    ],
)
def test_large_pages_are_asked_for_where_linux_gives_them_and_nobody_has_chosen(
    tmp_path: Path, linux: str, more: str, environment: dict[str, str], wanted: bool
) -> None:
    (tmp_path / "enabled").write_text(linux)
    assert ("-XX:+UseTransparentHugePages" in local_options(more, environment, tmp_path / "enabled")) == wanted


def test_what_the_environment_says_of_memory_wins() -> None:
    assert local_variables({}) == {"SPARK_DRIVER_MEMORY": "640m", "MALLOC_ARENA_MAX": "2"}
    assert local_variables({"SPARK_MEM": "3g", "MALLOC_ARENA_MAX": "8"}) == {"SPARK_DRIVER_MEMORY": "3g", "MALLOC_ARENA_MAX": "8"}
    assert local_variables({"SPARK_DRIVER_MEMORY": "4g", "SPARK_MEM": "3g"})["SPARK_DRIVER_MEMORY"] == "4g"


def test_settings_for_the_jvm_are_in_a_file_that_nobody_else_can_read(tmp_path: Path) -> None:
    file = tmp_path / "spark.properties"
    write_properties(file, {"spark.hadoop.fs.s3a.secret.key": "a=b:c#d\\e ü\n😀"})
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.read_text() == "spark.hadoop.fs.s3a.secret.key=a\\=b\\:c\\#d\\\\e\\u0020\\u00fc\\u000a\\ud83d\\ude00\n"


def test_what_a_killed_process_leaves_on_disk_goes_with_the_next_start_and_what_is_in_use_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "connect-py-spark-foreign").mkdir()
    (tmp_path / "connect-py-spark-link").symlink_to(tmp_path / "connect-py-spark-foreign")
    program = "from spark_sink.spark.jvm import Scratch; print(Scratch().path, flush=True); input()"
    more = {"env": {"TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT)}, "text": True}
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, **more) as other:
        assert other.stdout is not None
        theirs = Path(other.stdout.readline().strip())
        (theirs / "blocks").mkdir()
        (theirs / "blocks" / "0").write_bytes(b"x" * 1000)
        own = Scratch()
        assert remove_left_behind() == []
        other.kill()
    assert remove_left_behind() == [theirs]
    assert not theirs.exists()
    assert own.path.is_dir()
    own.remove()
    own.remove()
    assert not own.path.exists()
    assert (tmp_path / "connect-py-spark-foreign").is_dir()


#: A process with a thread that has the name of a JVM's compiler; it ends with its input.
COMPILING = """
import sys, threading
from pathlib import Path

def compile(named):
    Path("/proc/thread-self/comm").write_text("C2 CompilerThread0")
    named.set()
    threading.Event().wait()

named = threading.Event()
threading.Thread(target=compile, args=(named,), daemon=True).start()
named.wait()
print("named", flush=True)
sys.stdin.read()
"""


def test_the_second_compiler_gives_way_to_the_work() -> None:
    with subprocess.Popen([sys.executable, "-c", COMPILING], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"named\n"
        let_compiler_give_way(process.pid)
        threads = Path(f"/proc/{process.pid}/task")
        found = {(each / "comm").read_text()[:2]: os.getpriority(os.PRIO_PROCESS, int(each.name)) for each in threads.iterdir()}
        own = os.getpriority(os.PRIO_PROCESS, process.pid)
        assert process.stdin is not None
        process.stdin.close()
    assert found == {"C2": 10, Path(sys.executable).name[:2]: own}
    let_compiler_give_way(process.pid)  # which has ended
