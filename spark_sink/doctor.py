"""The doctor of the lakehouse sink: what its machine lacks. The properties are a matter of validation.

Catalogs and object stores are not looked at: only Spark can log in there as the sink will, and it takes seconds to start.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from connect_py.api.doctor import Diagnosis, Finding, Person
from connect_py.errors import ConfigError
from spark_sink.config.sink_config import parse
from spark_sink.spark import jars

#: What a batch of a few million rows spills; a full disk fails the task, and other programs of the machine with it.
LEAST_FREE_BYTES = 2 << 30


@dataclass(frozen=True, slots=True)
class Facts:
    """What the doctor has seen of the machine.

    Attributes:
        missing: what is said of Java or Spark, where one of them is not installed.
        jars: where the sink's libraries have to be, and whether they are there; None where the configuration names its own.
        scratch: where Spark spills, and how many bytes are free there.
        warehouse: a warehouse on this machine, and whether it can be written to; None for another.
    """

    missing: str | None
    jars: tuple[Path, bool] | None
    scratch: tuple[Path, int]
    warehouse: tuple[Path, bool] | None


def diagnose(config: Mapping[str, str]) -> Diagnosis:
    """Look at the machine on which this process runs. Raises ConfigError."""
    facts = read_facts(config)
    return Diagnosis(list(findings(facts)), looked_at=[f"The sink's machine: libraries, {facts.scratch[0]}"])


def read_facts(config: Mapping[str, str]) -> Facts:
    """Read everything that is checked. Raises ConfigError."""
    parsed = parse(config)
    folder = jars.cached(jars.SINK_JARS, "spark-sink")
    scratch = Path(parsed.spark_conf.get("spark.local.dir", "").split(",")[0] or tempfile.gettempdir())
    warehouse = _local(parsed.catalog.get("warehouse", ""))
    try:
        jars.pyspark_home()
        jars.java()
        missing = None
    except ConfigError as error:
        missing = str(error)
    return Facts(
        missing,
        None if parsed["spark.jars"] else (folder, folder.is_dir()),
        (scratch, shutil.disk_usage(_existing(scratch)).free),
        None if warehouse is None else (warehouse, os.access(_existing(warehouse), os.W_OK)),
    )


def _local(address: str) -> Path | None:
    """Return the folder that an address names on this machine."""
    parts = urlsplit(address)
    return Path(parts.path) if parts.path.startswith("/") and parts.scheme in ("", "file") else None


def _existing(path: Path) -> Path:
    """Return the folder itself, or the nearest one above it that exists."""
    return next(each for each in (path, *path.parents) if each.exists())


def findings(facts: Facts) -> Iterator[Finding]:
    """Return all that is wrong with the machine."""
    if facts.missing is not None:
        yield Finding(
            "sink.java", facts.missing, "No task of a lakehouse sink can start.", Person.YOU, advice="Install it, and restart the worker."
        )
    if facts.jars is not None and not facts.jars[1]:
        yield Finding(
            "sink.jars",
            f"The sink's libraries are not on this machine yet ({facts.jars[0]}).",
            "The first start fetches some 100 MB from Maven Central, and fails where that cannot be reached.",
            Person.YOU,
            statements=("connect-py spark-archive",),
            advice="Or set lakehouse.spark.jars to your own.",
            severity="risk",
        )
    folder, free = facts.scratch
    if free < LEAST_FREE_BYTES:
        yield Finding(
            "sink.disk",
            f"{free >> 20} MB are free in {folder}, where Spark spills what does not fit into memory.",
            "A large batch fails the task.",
            Person.YOU,
            advice="Make room, or set lakehouse.spark.conf.spark.local.dir to another folder.",
            severity="risk",
        )
    if facts.warehouse is not None and not facts.warehouse[1]:
        yield Finding(
            "sink.warehouse",
            f"This process may not write to the warehouse {facts.warehouse[0]}.",
            "No table can be created or changed.",
            Person.YOU,
            advice="Give the user that runs the worker the right to write there.",
        )
