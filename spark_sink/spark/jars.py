"""Java libraries from Maven Central, fetched once into a directory by the Ivy that ships inside pyspark.

A directory is complete or absent: libraries are gathered next to it and moved into place at the end, so two processes that start at
once, or a download that breaks off, leave nothing half done. Nothing here starts Spark.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from xml.sax.saxutils import quoteattr

from connect_py.errors import ConfigError, FatalTaskError, RetriableError
from connect_py.extras import install_command

#: Versions that were found to work together (Java 17, Scala 2.13). `spark-token-provider-kafka-0-10_2.13` has no 4.1.3 on Maven Central;
#: 4.0.0 has the same interface. Spark is built with Kafka's client 3.9.1 and works with 4.1, which fetches OAuth tokens only from addresses
#: that are allowed (CVE-2025-27817). Everything else that these need ships with Spark, so nothing is resolved transitively.
SINK_JARS = (
    "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
    "io.delta:delta-spark_4.1_2.13:4.4.0",
    "io.delta:delta-storage:4.4.0",
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.3",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:4.1.1",
    "org.apache.commons:commons-pool2:2.12.1",
)

#: SHA-256 of the sink's libraries, as they were when they were tested. Maven Central's own checksums come from the server that the
#: libraries come from.
SHA256 = {
    "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0": "3123c3798af642dd537230923548e013ef41cc28b6626e5225808cf5670a0f82",
    "io.delta:delta-spark_4.1_2.13:4.4.0": "75a9400986853c061f5109f012547de2545a5759e5e752e5ef633dabe16a4f10",
    "io.delta:delta-storage:4.4.0": "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc",
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.3": "cb31ffd9c8f5527dba061db8af671d295562092e4f3f5ff42fc249fab8a8fde6",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0": "f2be3b76f9e6cbe63379d4e4e0dc14f59dbf056ae2ad16ff15ac108004c86767",
    "org.apache.kafka:kafka-clients:4.1.1": "00247122a572c3d3ae4eb60a50192a5811bc0181f51923d13018600f892e821d",
    "org.apache.commons:commons-pool2:2.12.1": "5273c8bc8c0dca2211175c0d27efbd7228efae99689aac001a8e1ef8e872e9ef",
}

#: `LocalFiles.java`, compiled by `tests/local_files.py`, and its classes by the properties of Hadoop's that choose them.
LOCAL_FILES = Path(__file__).with_name("local-files.jar")
LOCAL_FILES_CLASSES = {
    "fs.file.impl": "io.github.connectpy.spark.LocalFiles",
    "fs.AbstractFileSystem.file.impl": "io.github.connectpy.spark.LocalFiles$OfContext",
}

#: A cold download of the sink's libraries (70 MB) took 20 s; ten minutes are for slow lines.
RESOLVE_TIMEOUT_SECONDS = 600.0

#: Java versions that Spark 4.1 runs on start here.
OLDEST_JAVA = 17


def cache_directory() -> Path:
    """Return the directory of resolved libraries: ``$CONNECT_PY_CACHE``, else ``connect-py`` under the user's cache directory."""
    if named := os.environ.get("CONNECT_PY_CACHE"):
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "connect-py"


def cached(coordinates: Sequence[str], name: str) -> Path:
    """Return a directory of the cache whose name changes with the coordinates."""
    digest = hashlib.sha256("\n".join(sorted(coordinates)).encode()).hexdigest()[:12]
    return cache_directory() / "jars" / f"{name}-{digest}"


def pyspark_home() -> Path:
    """Return where pyspark is installed, found without importing it.

    Raises:
        ConfigError: it is not installed.
    """
    spec = importlib.util.find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise ConfigError(f"The lakehouse sink needs Spark, which is not installed: {install_command('spark')}")
    return Path(next(iter(spec.submodule_search_locations)))


@functools.cache
def java() -> str:
    """Return the java command of ``JAVA_HOME`` or the path.

    Raises:
        ConfigError: there is none, or it is older than Spark needs.
    """
    home = os.environ.get("JAVA_HOME")
    command = shutil.which(str(Path(home) / "bin" / "java")) if home else shutil.which("java")
    if command is None:
        raise ConfigError(f"Java {OLDEST_JAVA} or newer is needed and no java command was found; install a JRE or set JAVA_HOME.")
    shown = subprocess.run([command, "-version"], capture_output=True, text=True, timeout=60).stderr
    version = re.search(r'version "(\d+)(?:\.(\d+))?', shown)
    major = int(version[2] if version and version[1] == "1" else version[1]) if version else 0
    if major < OLDEST_JAVA:
        raise ConfigError(f"Java {OLDEST_JAVA} or newer is needed, but {command} says: {shown.splitlines()[0] if shown else 'nothing'}.")
    return command


def resolve(
    coordinates: Iterable[str],
    target: Path,
    excludes: Iterable[str] = (),
    *,
    transitive: bool = False,
    download: Callable[[list[str], list[str], bool, Path], None] | None = None,
) -> list[Path]:
    """Return the jars of Maven coordinates, in a directory that is made on the first call and reused afterwards.

    Args:
        coordinates: ``group:artifact:version`` each.
        target: the directory; name it after what it holds (see `cached`), because its content is not compared with `coordinates`.
        excludes: ``group:artifact`` each, ``*`` for any; left out of what is found transitively.
        transitive: whether to follow the libraries' own runtime dependencies.
        download: fetches coordinates without some into the directory `jars` of a path; None for Maven Central.

    Returns:
        Paths of all jars, sorted.

    Raises:
        ConfigError: pyspark or Java is missing, or a coordinate is malformed.
        RetriableError: the download failed; nothing was left behind.
        FatalTaskError: a library is not the one that was tested (`SHA256`); nothing was left behind.
    """
    if not target.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        with _one_at_a_time(), tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as scratch:
            if target.is_dir():
                return sorted(target.glob("*.jar"))
            coordinates = list(coordinates)
            (download or _download)(coordinates, list(excludes), transitive, Path(scratch))
            verify(coordinates, Path(scratch) / "jars")
            try:
                os.rename(Path(scratch) / "jars", target)
            except OSError:
                if not target.is_dir():  # else another process was faster, and its directory is as good
                    raise
    return sorted(target.glob("*.jar"))


def local_files() -> Path:
    """Return the path of a copy of `LOCAL_FILES` in the cache: an archive of classes (`spark_sink.spark.archive`) is of one path.

    It is `LOCAL_FILES` itself where the cache cannot be written.
    """
    content = LOCAL_FILES.read_bytes()
    target = cached([hashlib.sha256(content).hexdigest()], "local-files") / LOCAL_FILES.name
    if not target.is_file():
        fresh = target.with_name(f".{os.getpid()}.jar")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            fresh.write_bytes(content)
            fresh.replace(target)
        except OSError:
            return LOCAL_FILES
    return target


def verify(coordinates: Iterable[str], directory: Path) -> None:
    """Compare the libraries that have a known checksum with it.

    Raises:
        FatalTaskError: a checksum differs.
    """
    for coordinate in coordinates:
        group, artifact, version = _parts(coordinate, 3)
        if (wanted := SHA256.get(coordinate)) is None:
            continue
        file = directory / f"{group}_{artifact}-{version}.jar"
        with file.open("rb") as content:
            found = hashlib.file_digest(content, "sha256").hexdigest()
        if found != wanted:
            raise FatalTaskError(
                f"{coordinate} from Maven Central has the SHA-256 {found} and not {wanted}: it is not the library that this version was "
                f"tested with. Nothing was kept. Look at what is between this machine and Maven Central, and at {cache_directory()}/ivy."
            )


@contextlib.contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Hold a lock: several tasks may start at once on a new machine, and Ivy's cache allows one process at a time."""
    cache_directory().mkdir(parents=True, exist_ok=True)
    with (cache_directory() / "jars.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _download(coordinates: list[str], excludes: list[str], transitive: bool, scratch: Path) -> None:
    home = pyspark_home() / "jars"
    ivy = next(iter(sorted(home.glob("ivy-*.jar"))), None)
    if ivy is None:
        raise ConfigError(f"No ivy-*.jar in {home}: this pyspark is not a full installation.")
    (scratch / "settings.xml").write_text(
        '<ivysettings><settings defaultResolver="central"/>'
        f"<caches defaultCacheDir={quoteattr(str(cache_directory() / 'ivy'))}/>"
        '<resolvers><ibiblio name="central" m2compatible="true"/></resolvers></ivysettings>'
    )
    (scratch / "ivy.xml").write_text(_module(coordinates, excludes, transitive))
    # Two artifacts may share a name (guava's listenablefuture and others): the organisation keeps them apart.
    pattern = f"{scratch}/jars/[organisation]_[artifact]-[revision](-[classifier]).[ext]"
    command = [java(), "-jar", str(ivy), "-settings", str(scratch / "settings.xml"), "-ivy", str(scratch / "ivy.xml")]
    command += ["-confs", "default", "-types", "jar", "bundle", "-retrieve", pattern, "-warn"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=RESOLVE_TIMEOUT_SECONDS, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        raise RetriableError(f"Maven Central gave no complete answer within {RESOLVE_TIMEOUT_SECONDS:.0f} s.") from None
    found = list((scratch / "jars").glob("*.jar"))
    if done.returncode or len(found) < len(coordinates):
        output = "\n".join(line for line in (done.stdout + done.stderr).splitlines() if line.strip())[-2000:]
        raise RetriableError(f"Not all of {', '.join(coordinates)} could be had from Maven Central; nothing was kept. Ivy said:\n{output}")


def _module(coordinates: list[str], excludes: list[str], transitive: bool) -> str:
    lines = ['<ivy-module version="2.0"><info organisation="io.github.connectpy" module="jars"/>']
    lines.append('<configurations><conf name="default"/></configurations><dependencies>')
    for coordinate in coordinates:
        group, artifact, version = _parts(coordinate, 3)
        conf = "default-&gt;master(*),compile(*),runtime(*)" if transitive else "default-&gt;master(*)"
        lines.append(
            f"<dependency org={quoteattr(group)} name={quoteattr(artifact)} rev={quoteattr(version)} "
            f'conf="{conf}" transitive="{str(transitive).lower()}" force="true"/>'
        )
    for exclude in excludes:
        group, artifact = _parts(exclude, 2)
        lines.append(f"<exclude org={quoteattr(group)} module={quoteattr(artifact)}/>")
    return "".join([*lines, "</dependencies></ivy-module>"])


def _parts(coordinate: str, count: int) -> list[str]:
    parts = coordinate.strip().split(":")
    if len(parts) != count or not all(parts):
        form = "group:artifact:version" if count == 3 else "group:artifact"
        raise ConfigError(f"Invalid Maven coordinate {coordinate}: expected {form}.")
    return parts
