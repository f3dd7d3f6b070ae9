"""The doctor of the lakehouse sink: what its machine lacks, its catalog, and its bucket. The properties are a matter of validation.

Spark takes seconds to start, so that all is asked without it, each within some seconds, and at the same time.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from connect_py.api.doctor import Diagnosis, Finding, Person, merged
from connect_py.errors import ConfigError
from spark_sink.config.sink_config import SinkConfig, kind_of, parse
from spark_sink.doctor import catalog as catalogs
from spark_sink.doctor import s3
from spark_sink.spark import jars

#: What the catalog, and the bucket, may take to answer.
LIMIT_SECONDS = 5.0
#: What a batch of a few million rows spills; a full disk fails the task, and other programs of the machine with it.
LEAST_FREE_BYTES = 2 << 30


@dataclass(frozen=True, slots=True)
class Facts:
    """What the doctor has seen of the machine.

    Attributes:
        missing: what is said of Java or Spark, where one of them is not installed.
        jars: where the sink's libraries have to be, and whether they are there; None where the configuration names its own.
        scratch: where Spark spills, and how many bytes are free there.
        tables: the folder of the tables on this machine, and why nothing can be written there; None where they are elsewhere.
        missing_jars: files that `lakehouse.spark.jars` names and that are not there.
        renames_in_s3: whether a catalog of type hadoop, which commits by renaming a file, is in S3, which has no renaming.
    """

    missing: str | None
    jars: tuple[Path, bool] | None
    scratch: tuple[Path, int]
    tables: tuple[Path, str] | None
    missing_jars: tuple[str, ...] = ()
    renames_in_s3: bool = False


def diagnose(config: Mapping[str, str], seconds: float = LIMIT_SECONDS) -> Diagnosis:
    """Look at the machine on which this process runs, at the catalog and at the bucket.

    Args:
        seconds: what each of the last two may take.

    Raises:
        ConfigError: the configuration cannot be used.
    """
    facts, parsed = read_facts(config), parse(config)
    folders = ", ".join(map(str, (facts.scratch[0], *(facts.tables or ())[:1])))
    own = Diagnosis(list(findings(facts)), looked_at=[f"The sink's machine: libraries, {folders}"])
    with ThreadPoolExecutor(2, "doctor") as pool:
        parts = [pool.submit(of_catalog, parsed, seconds), pool.submit(of_storage, parsed, seconds)]
        return merged([own, *(part.result() for part in parts)])


def of_catalog(config: SinkConfig, seconds: float) -> Diagnosis:
    """Look at the catalog, as far as that can be done without Spark."""
    if config["format"] == "delta":
        return Diagnosis() if config["delta.root"] else _of_metastore(config, seconds)
    catalog, kind = config.catalog, kind_of(config.catalog)
    if kind in ("rest", "jdbc", "nessie") and not catalog.get("uri"):
        return Diagnosis([catalogs.nameless_finding(kind)])
    if catalogs.is_asked(catalog):
        rest = catalogs.read_rest(catalog, [] if config["tables.auto-create-enabled"] else _namespaces(config), seconds)
        found = list(catalogs.rest_findings(rest, config["catalog"]))
        return _reached(found, f"The REST catalog at {rest.uri}", rest.status == 0)
    if kind == "jdbc" and (jdbc := catalogs.read_jdbc(catalog, _local_jars(config), seconds)) is not None:
        return _of_database(jdbc)
    if kind == "hadoop":
        return Diagnosis()  # a folder, which is that of the tables
    name = f"The catalog ({kind or catalog.get('catalog-impl', '')})"
    return _by_spark_alone(name, "" if kind == "jdbc" else catalog.get("uri", ""), "catalog.uri", seconds)


def _of_database(jdbc: catalogs.JdbcFacts) -> Diagnosis:
    at, found = f"The catalog's database at {jdbc.place}", list(catalogs.jdbc_findings(jdbc))
    if jdbc.needs and not jdbc.refusal:
        return Diagnosis(found, unseen=[f"{at}: something listens there, and its login needs the package {jdbc.needs}"])
    return _reached(found, at, bool(jdbc.refusal) and not jdbc.is_login)


def _of_metastore(config: SinkConfig, seconds: float) -> Diagnosis:
    if config.catalog:
        name = f"The catalog '{config['catalog']}' ({config.catalog.get('catalog-impl') or 'of Spark'})"
        return _by_spark_alone(name, config.catalog.get("uri", ""), "catalog.uri", seconds)
    name = "hive.metastore.uris"
    return _by_spark_alone("The Hive metastore", config.spark_conf.get(f"spark.hadoop.{name}", ""), f"hadoop.{name}", seconds)


def _by_spark_alone(name: str, uri: str, setting: str, seconds: float) -> Diagnosis:
    """Look whether something listens at the address of a catalog that cannot be asked here."""
    if not uri:
        return Diagnosis(unseen=[f"{name}: only Spark can ask it"])
    if refusal := catalogs.refusal_of(uri, seconds):
        return _reached([catalogs.silent_finding(uri, refusal, setting)], f"{name} at {uri}", True)
    return Diagnosis(unseen=[f"{name} at {uri}: only Spark can ask it"])


def of_storage(config: SinkConfig, seconds: float) -> Diagnosis:
    """Look at the place of the tables' files, unless it is a folder of this machine (`read_facts`)."""
    bucket = s3.bucket_of(config, os.environ)
    if bucket is not None:
        answer = s3.ask(bucket, seconds)
        found = list(s3.findings(bucket, answer))
        if answer.status in (401, 403) and not found:
            return Diagnosis(unseen=[f"S3: {bucket.shown} is there, and only Spark has the credentials for it"])
        return _reached(found, f"S3: {bucket.shown}", answer.status == 0)
    place = place_of_tables(config)
    if not place or _local_folder(config) is not None:
        return Diagnosis()
    return Diagnosis(unseen=[f"The tables' files at {place}: only Spark can reach them"])


def place_of_tables(config: SinkConfig) -> str:
    """Return where the configuration puts the tables' files; empty where the catalog decides that."""
    if config["format"] == "delta":
        return str(config["delta.root"] or config.spark_conf.get("spark.sql.warehouse.dir", ""))
    place = config.catalog.get("warehouse", "")
    names_it = kind_of(config.catalog) == "rest" and "/" not in place  # REST catalogs have warehouses by their names
    return "" if names_it else place


def _reached(found: list[Finding], what: str, is_silent: bool) -> Diagnosis:
    return Diagnosis(found, unseen=[f"{what}: no answer"]) if is_silent else Diagnosis(found, looked_at=[what])


def _namespaces(config: SinkConfig) -> list[str]:
    """Return the namespaces that the configuration names."""
    if config["tables.namespace"]:
        return [config["tables.namespace"]]
    named = [table.rpartition(".")[0] for table in config["tables"] or () if not config["tables.dynamic-enabled"]]
    return list(dict.fromkeys(filter(None, named)))


def _local_jars(config: SinkConfig) -> list[Path] | None:
    """Return the sink's jars; None where some are elsewhere, or are still to be fetched."""
    named = [_local(jar) for jar in config["spark.jars"] or ()]
    if named:
        return None if None in named else [jar for jar in named if jar is not None]
    folder = jars.cached(jars.SINK_JARS, "spark-sink")
    return sorted(folder.glob("*.jar")) if folder.is_dir() else None


def read_facts(config: Mapping[str, str]) -> Facts:
    """Read everything that is checked. Raises ConfigError."""
    parsed = parse(config)
    folder = jars.cached(jars.SINK_JARS, "spark-sink")
    scratch = Path(parsed.spark_conf.get("spark.local.dir", "").split(",")[0] or tempfile.gettempdir())
    tables = _local_folder(parsed)
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
        None if tables is None else (tables, _unwritable(tables)),
        tuple(jar for jar in parsed["spark.jars"] or () if (path := _local(jar)) is not None and "*" not in jar and not path.is_file()),
        kind_of(parsed.catalog) == "hadoop" and urlsplit(parsed.catalog.get("warehouse", "")).scheme in ("s3", "s3a", "s3n"),
    )


def _local(address: str) -> Path | None:
    """Return the folder that an address names on this machine."""
    parts = urlsplit(address)
    return Path(parts.path) if parts.path.startswith("/") and parts.scheme in ("", "file") else None


def _local_folder(config: SinkConfig) -> Path | None:
    """Return the folder of the tables on this machine; None where they are elsewhere."""
    place, default = place_of_tables(config), config.spark_conf.get("spark.hadoop.fs.defaultFS", "file:")
    if config["spark.remote"] is not None or (not urlsplit(place).scheme and not default.startswith("file:")):
        return None
    return _local(place)


def _unwritable(folder: Path) -> str:
    """Return why nothing can be written into a folder that is there or can be made; empty where it can be."""
    there = _existing(folder)
    if not there.is_dir():
        return f"{there} is no folder"
    return "" if os.access(there, os.W_OK | os.X_OK) else f"this process may not write to {there}"


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
    if facts.missing_jars:
        yield Finding(
            "sink.jars.missing",
            f"These jars are not on this machine: {', '.join(facts.missing_jars)}.",
            "Spark does not start.",
            Person.YOU,
            advice="Correct lakehouse.spark.jars.",
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
    if facts.tables is not None and facts.tables[1]:
        yield Finding(
            "sink.warehouse",
            f"The tables cannot be in {facts.tables[0]}: {facts.tables[1]}.",
            "No table can be created or changed.",
            Person.YOU,
            advice="Give the user that runs the worker the right to write there, or name another folder.",
        )
    if facts.renames_in_s3:
        yield Finding(
            "sink.catalog.hadoop",
            "A catalog of type hadoop commits by renaming a file, and S3 cannot rename.",
            "Two commits at the same time lose one of them, without an error.",
            Person.YOU,
            advice="Use a catalog of another type: rest, jdbc or glue.",
            severity="risk",
        )
