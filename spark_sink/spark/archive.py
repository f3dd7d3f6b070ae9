"""An archive of the classes that Spark's JVM loads, which later starts map into memory instead of reading and checking them one by one.

That is more than half of what a start costs, and of the first batch. It is made once, by `make`, for one Java and one class path; a
JVM that it does not suit ignores it. It holds only what the class path names, so the sink's libraries are named there too where it is used;
without an archive they come to the JVM by `spark.jars` alone, as on a cluster.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from connect_py.errors import FatalTaskError
from spark_sink.config.sink_config import parse
from spark_sink.spark import jars, jvm
from spark_sink.spark.settings import context_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Writing it takes some 20 s of CPU.
_WRITING_SECONDS = 900.0

_CLASS_PATH = "spark.driver.extraClassPath"


def path(libraries: str) -> Path:
    """Return the path of the archive for this Java, this pyspark and these libraries (``spark.jars``)."""
    of = "\n".join((os.path.realpath(jars.java()), str(jars.pyspark_home()), libraries))
    return jars.cache_directory() / "archives" / f"spark-{hashlib.sha256(of.encode()).hexdigest()[:12]}.jsa"


def use(settings: Mapping[str, str]) -> dict[str, str]:
    """Add the settings that let a context's JVM use the archive, where there is one and nothing else is configured."""
    libraries = settings.get("spark.jars", "")
    if not settings["spark.master"].startswith("local") or _CLASS_PATH in settings or not libraries:
        return dict(settings)
    archive = path(libraries)
    if not archive.is_file():
        return dict(settings)
    # The JVM must not report an archive that it cannot use: that only costs the time it would save.
    return _with(settings, f"-XX:SharedArchiveFile={archive} -Xshare:auto -Xlog:cds*=off", libraries)


def _with(settings: Mapping[str, str], options: str, libraries: str) -> dict[str, str]:
    more = f"{options} {settings.get('spark.driver.extraJavaOptions', '')}".rstrip()
    return {**settings, "spark.driver.extraJavaOptions": more, _CLASS_PATH: libraries.replace(",", os.pathsep)}


def make(exercise: Callable[[SparkSession, Path], None]) -> Path:
    """Start a JVM, do once what a sink does, and have the JVM write its classes to the archive's path when it ends.

    Args:
        exercise: does it, with a session and a directory that is empty.

    Raises:
        ConfigError: Spark or Java is missing.
        RetriableError: the libraries could not be fetched.
        FatalTaskError: Spark does not start, or the JVM has written nothing.
    """
    settings = context_settings(parse({"topics": "none", "lakehouse.delta.root": "none", "lakehouse.format": "delta"}))
    libraries = settings["spark.jars"]
    target = path(libraries)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".making-", dir=target.parent) as scratch:
        fresh = Path(scratch) / target.name
        options = f"-XX:ArchiveClassesAtExit={fresh} -XX:TieredStopAtLevel=1 -Xlog:cds*=off"
        running = jvm.start(_with(settings, options, libraries), "archive")
        try:
            place = Path(scratch) / "tables"
            place.mkdir()
            exercise(running.session, place)
        finally:
            running.stop(_WRITING_SECONDS)
        if not fresh.is_file():
            raise FatalTaskError(f"The JVM of {jars.java()} has not written an archive of its classes; Spark works without one.")
        fresh.replace(target)
    return target
