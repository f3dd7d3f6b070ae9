"""Spark's JVM: its start, whether it lives, how it ended, and what it keeps on disk.

There is one per process, since py4j has one gateway per process.

While it lives a JVM keeps copies of its libraries (65 MB), shuffles and what the heap has no room for. It removes them when it ends, but
not when it is killed, and a task that is restarted whenever memory is short would fill the disk. So they are put below a directory that is
removed with its `Scratch`, and the directories of killed processes are removed when the next one starts. Whether a directory's process
lives is shown by a lock on a file in it, which also works between containers that share the directory.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from connect_py.errors import FatalTaskError
from spark_sink.spark import compilers, jars, local

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


#: How long a JVM may take to run its shutdown hooks (deleting its temporary files; a second or two).
_JVM_END_SECONDS = 15.0

#: For a driver that does the work itself and lives long. Both compilers: once they are done, after some million events, an event takes
#: 34 µs of CPU instead of 57; for short lives `-XX:TieredStopAtLevel=1` in the user's own options takes the second away, which costs 30 s
#: of CPU instead of 18 until the first rows are in a table. The collector that takes the least CPU: a pause of 100 ms does no harm.
_LOCAL_JVM_OPTIONS = ("-XX:+UseParallelGC", "-XX:ReservedCodeCacheSize=256m")
#: A heap in pages of 2 MB, where Linux has them to give: to look up one of 4 kB costs a virtual machine several times as much, and so does
#: each that is touched for the first time.
_LARGE_PAGES = "-XX:+UseTransparentHugePages"
_LARGE_PAGES_OF_LINUX = Path("/sys/kernel/mm/transparent_hugepage/enabled")
#: What a driver that does the work itself gets unless it is chosen elsewhere, in Spark's settings or in the environment. With a
#: smaller heap than Spark's default of 1 GB the task takes 1.5 GB at most. By default glibc keeps what the compilers have freed in
#: up to eight arenas a core.
_LOCAL_VARIABLES = {"SPARK_DRIVER_MEMORY": "640m", "MALLOC_ARENA_MAX": "2"}

#: A JVM does not start with two collectors: one that was chosen elsewhere stays.
_COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b")
#: Pages that were chosen elsewhere, of any kind, stay.
_PAGES = re.compile(r"-XX:[+-]Use(LargePages|TransparentHugePages)\b")
_ELSEWHERE = ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS")

#: Names that pyspark looks up for every statement.
_KEPT_NAMES = ("PythonUtils", "org.apache.spark.sql.functions")

#: What pyspark gives to `spark-submit`.
_SUBMIT_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
#: Spark's own variable for the driver's address (`Utils.scala`).
_LOCAL_ADDRESS = "SPARK_LOCAL_IP"

#: Of Java's properties; every other character that is not plain goes by its number.
_ESCAPES = {"\\": "\\\\", "=": "\\=", ":": "\\:", "#": "\\#", "!": "\\!"}

_LOGGING = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{ISO8601} %p spark %c{1}: %m%n
# What these say comes back as the statement's error.
logger.executor.name = org.apache.spark.executor.Executor
logger.executor.level = off
logger.tasks.name = org.apache.spark.scheduler.TaskSetManager
logger.tasks.level = off
logger.writes.name = org.apache.spark.sql.execution.datasources.v2
logger.writes.level = off
logger.streams.name = org.apache.spark.sql.execution.streaming
logger.streams.level = off
logger.utils.name = org.apache.spark.util.Utils
logger.utils.level = off
# What counts rows (Observation) is told of statements that failed too, and cannot look at one whose table does not exist.
logger.listeners.name = org.apache.spark.sql.util.ExecutionListenerBus
logger.listeners.level = off
"""


class Jvm:
    """A JVM with a Spark context in it.

    Args:
        scratch: what it keeps on disk, which goes with it.
    """

    def __init__(self, session: SparkSession, scratch: Scratch) -> None:
        from pyspark import SparkContext

        self.session = session
        self._scratch = scratch
        self._gateway = SparkContext._gateway
        self._process: subprocess.Popen[bytes] | None = getattr(self._gateway, "proc", None)

    @property
    def pid(self) -> int | None:
        """Its process, if it is one of this process's."""
        return None if self._process is None else self._process.pid

    def ended(self, wait_seconds: float = 0.0) -> str | None:
        """Return how its process ended, in words; None while it lives. A call may fail some milliseconds before the process ends."""
        if self._process is None:
            return None
        try:
            code = self._process.wait(wait_seconds)
        except subprocess.TimeoutExpired:
            return None
        if code >= 0:
            return f"exit code {code}"
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        return f"killed by {name}" + (", which is what the kernel does when memory is short" if -code == signal.SIGKILL else "")

    def is_stopped(self) -> bool:
        """Return whether the context has stopped, or the JVM does not answer."""
        try:
            return bool(self.session.sparkContext._jsc.sc().isStopped())
        except Exception:  # noqa: BLE001  # py4j raises many kinds when the JVM is gone
            return True

    def stop(self, seconds: float = _JVM_END_SECONDS) -> None:
        """Stop the context and end the process, so that the next start gets a new one; kill it when that takes longer than `seconds`."""
        from pyspark import SparkContext

        with contextlib.suppress(Exception):  # of a dead JVM
            self.session.stop()
        SparkContext._active_spark_context = None
        if self._gateway is not None:
            with contextlib.suppress(Exception):
                self._gateway.shutdown()
            if self._process is not None:
                _end(self._process, seconds)
            SparkContext._gateway = None
            SparkContext._jvm = None
        self._scratch.remove()


def start(settings: Mapping[str, str], name: str) -> Jvm:
    """Start a new JVM with a context of the given settings.

    Spark would put each setting into the JVM's command line, which every user of the machine can read. They go by a file that only this
    user can read and that is gone when the context has started; only options of the JVM itself are in its command line.

    Raises:
        ConfigError: Spark or Java is missing.
        FatalTaskError: Spark does not start.
    """
    jars.java()
    jars.pyspark_home()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else executors run whatever `python3` is
    from pyspark.sql import SparkSession

    remove_left_behind()
    scratch = Scratch()
    logging = scratch.path / "log4j2.properties"
    logging.write_text(_LOGGING)
    options = [f"-Dlog4j2.configurationFile={logging}", f"-Djava.io.tmpdir={scratch.path}"]
    more = settings.get("spark.driver.extraJavaOptions", "")
    is_local = settings["spark.master"].startswith("local")
    options += local_options(more, os.environ, _LARGE_PAGES_OF_LINUX) if is_local else []
    options += [more]
    # The catalog that no table is in would put a directory into whatever the process's working directory is.
    all_settings = {"spark.sql.warehouse.dir": str(scratch.path / "warehouse")} | dict(settings)
    all_settings |= {"spark.app.name": name, "spark.driver.extraJavaOptions": " ".join(options).rstrip()}
    file = scratch.path / "spark.properties"
    given = f"--properties-file {shlex.quote(str(file))} --load-spark-defaults"
    variables = {_SUBMIT_ARGUMENTS: f"{given} {os.environ.get(_SUBMIT_ARGUMENTS) or 'pyspark-shell'}"}
    if is_local:
        # Spark looks up its host's name even where `spark.driver.host` is an address, and some hosts do not know their own name.
        variables[_LOCAL_ADDRESS] = os.environ.get(_LOCAL_ADDRESS) or "127.0.0.1"
        variables |= local_variables(os.environ)
    try:
        write_properties(file, all_settings)
        with _environment(variables):
            session = SparkSession.builder.getOrCreate()
        for name in _KEPT_NAMES:
            local.java_class(session, name)
        if str(jars.local_files()) in settings.get("spark.jars", "").split(","):
            _use_local_files(session)
        _forget_sources(session)
        _make_room_for_classes(session)
        made = Jvm(session, scratch)
        if is_local:
            compilers.spare_second_compiler(session, scratch.path)
            if made.pid is not None:
                compilers.let_compiler_give_way(made.pid)
        return made
    except Exception as error:
        scratch.remove()
        raise FatalTaskError(f"Spark did not start ({settings['spark.master']}): {error}") from error
    finally:
        file.unlink(missing_ok=True)


def _forget_sources(session: SparkSession) -> None:
    """Have Hadoop's settings go into jobs without the names of the files that they are from: each of a thousand is compressed by itself,
    and read again by each task (`Configuration.write`)."""
    from py4j.protocol import Py4JError

    configuration = session.sparkContext._jsc.hadoopConfiguration()
    configuration.size()  # it has read the files then
    with contextlib.suppress(Py4JError):  # a Hadoop that has no such field
        local.private_field(configuration.getClass(), "updatingResource", configuration).clear()


def _make_room_for_classes(session: SparkSession) -> None:
    """Have Spark keep as many generated classes as `spark.sql.codegen.cache.maxEntries` says. It looks at the setting when it generates the
    first one, and does not see it in a thread without an active session: a hundred are kept then."""
    local.activate(session)
    local.scala_object(session, "org.apache.spark.sql.catalyst.expressions.codegen.CodeGenerator")


def _use_local_files(session: SparkSession) -> None:
    """Have local files written without a process for each, unless another way of writing them is configured."""
    configuration = session.sparkContext._jsc.hadoopConfiguration()
    if configuration.get("fs.file.impl") is None:
        for key, name in jars.LOCAL_FILES_CLASSES.items():
            configuration.set(key, name)
        # the one that Spark has used so far would be found again
        getattr(session.sparkContext._jvm, "org.apache.hadoop.fs.FileSystem").getLocal(configuration).close()


@contextlib.contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables of this process for as long as a JVM starts, which gets a copy of them."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def write_properties(file: Path, settings: Mapping[str, str]) -> None:
    """Write a file of Java's properties that no other user can read."""
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as out:
        out.writelines(f"{escape_property(key)}={escape_property(value)}\n" for key, value in settings.items())


def escape_property(text: str) -> str:
    """Escape a key or a value for `java.util.Properties`; Spark strips blanks from the ends of values."""
    escaped = "".join(_ESCAPES.get(character) or character for character in text)
    return "".join(character if " " < character < "\x7f" else _unicode(character) for character in escaped)


def _unicode(character: str) -> str:
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def _end(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Close the input of the gateway's server, which ends it; kill it if it does not end, because it holds ports and memory."""
    with contextlib.suppress(OSError):
        if process.stdin is not None:
            process.stdin.close()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def local_options(more: str, environment: Mapping[str, str], pages: Path) -> list[str]:
    """Return options for a driver that does the work itself, in addition to the user's own and those of the environment.

    Args:
        pages: where Linux says whether a process may ask for large pages: ``always [madvise] never``. A JVM warns where it may not.
    """
    chosen = " ".join([more, *(environment.get(name, "") for name in _ELSEWHERE)])
    options = [option for option in _LOCAL_JVM_OPTIONS if not (_COLLECTOR.search(option) and _COLLECTOR.search(chosen))]
    try:
        are_given = "[never]" not in pages.read_text()
    except OSError:
        are_given = False
    return [*options, _LARGE_PAGES] if are_given and not _PAGES.search(chosen) else options


def local_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what to set in the environment of a driver that does the work itself: what is not there."""
    older = {"SPARK_DRIVER_MEMORY": environment.get("SPARK_MEM")}
    return {name: environment.get(name) or older.get(name) or value for name, value in _LOCAL_VARIABLES.items()}


_PREFIX = "connect-py-spark-"
_LOCK = "lock"


class Scratch:
    """This process's directory; `remove` deletes it."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        # The file has its name only when it is locked, so no process removes the directory of another that is about to lock it.
        self._lock = os.open(self.path / f".{_LOCK}", os.O_RDWR | os.O_CREAT, 0o600)
        with contextlib.suppress(OSError):  # a file system without locks: no other process will remove it
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            (self.path / f".{_LOCK}").rename(self.path / _LOCK)

    def remove(self) -> None:
        """Remove the directory with all that is in it. Idempotent."""
        if self._lock >= 0:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._lock)
            self._lock = -1


def remove_left_behind() -> list[Path]:
    """Remove the directories of processes that are dead, and say which. Those of other users stay."""
    return [path for path in Path(tempfile.gettempdir()).glob(_PREFIX + "*") if _removed(path)]


def _removed(path: Path) -> bool:
    try:
        if path.is_symlink() or path.stat().st_uid != os.geteuid():
            return False
        lock = os.open(path / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path, ignore_errors=True)
        return True
    except OSError:
        return False  # it is in use
    finally:
        os.close(lock)
