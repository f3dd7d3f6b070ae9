"""Read the table's side: rows of Iceberg tables by pyiceberg and of Delta tables by deltalake, at one commit, a batch at a time. No Java.

A sink's catalog and storage settings, which are Spark's and Hadoop's, become those of pyiceberg and deltalake.
"""

from __future__ import annotations

import contextlib
import re
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from connect_py.errors import ConfigError, ConnectError
from connect_py.extras import install_command
from connect_py.log.redact import readable, scrub

if TYPE_CHECKING:
    from spark_sink.config.sink_config import SinkConfig
    from spark_sink.routing import TableName


#: The table of a name; None: there is none.
Load = Callable[[Sequence[str]], Any]

#: Hadoop's S3A settings, as pyiceberg's FileIO and as deltalake's storage call them.
_S3A = {
    "fs.s3a.endpoint": ("s3.endpoint", "AWS_ENDPOINT_URL"),
    "fs.s3a.access.key": ("s3.access-key-id", "AWS_ACCESS_KEY_ID"),
    "fs.s3a.secret.key": ("s3.secret-access-key", "AWS_SECRET_ACCESS_KEY"),
    "fs.s3a.session.token": ("s3.session-token", "AWS_SESSION_TOKEN"),
    "fs.s3a.endpoint.region": ("s3.region", "AWS_REGION"),
}
#: Types of catalogs, as pyiceberg names them.
_KINDS = {"rest": "rest", "jdbc": "sql", "hive": "hive", "glue": "glue"}


def hadoop_settings(config: SinkConfig) -> dict[str, str]:
    """Return the sink's `lakehouse.hadoop.*`."""
    prefix = "spark.hadoop."
    return {name.removeprefix(prefix): value for name, value in config.spark_conf.items() if name.startswith(prefix)}


def iceberg_catalog(config: SinkConfig) -> Load:
    """Return how tables of an Iceberg catalog are loaded.

    Raises:
        ConfigError: pyiceberg knows no such catalog, or lacks a setting or a package for it.
        ConnectError: the catalog cannot be asked.
    """
    from spark_sink.config.sink_config import kind_of

    settings = dict(config.catalog)
    hadoop = hadoop_settings(config)
    storage = {ours: hadoop[name] for name, (ours, _) in _S3A.items() if name in hadoop}
    kind = kind_of(settings)
    for java in ("type", "catalog-impl", "io-impl"):  # of no use outside of a JVM
        settings.pop(java, None)
    if kind in ("rest", "jdbc", "hive") and not settings.get("uri"):
        raise ConfigError(f"lakehouse.catalog.uri is missing: verify needs it to read a catalog of type {kind}.")
    if kind == "rest" and not settings["uri"].startswith(("http://", "https://")):
        raise ConfigError(f"lakehouse.catalog.uri={scrub(settings['uri'])} is no address of a REST catalog: write http:// or https://.")
    if kind == "hadoop":
        return _of_directories(settings["warehouse"], storage | settings)
    if kind not in _KINDS:
        raise ConfigError(f"lakehouse.catalog.type={kind}: verify reads catalogs of type hadoop, {', '.join(_KINDS)}.")
    if kind == "jdbc":
        settings["uri"] = sqlalchemy_url(settings.get("uri", ""), settings)
    return _of_catalog(config["catalog"], kind, {"type": _KINDS[kind], **storage, **settings})


def delta_storage(config: SinkConfig) -> dict[str, str]:
    """deltalake's storage options."""
    hadoop = hadoop_settings(config)
    found = {theirs: hadoop[name] for name, (_, theirs) in _S3A.items() if name in hadoop}
    if found.get("AWS_ENDPOINT_URL", "").startswith("http://"):
        found["AWS_ALLOW_HTTP"] = "true"
    return found


def sqlalchemy_url(jdbc: str, settings: Mapping[str, str]) -> str:
    """Return a JDBC address as SQLAlchemy writes it.

    Args:
        settings: of the catalog; `jdbc.user` and `jdbc.password` are its.

    Raises:
        ConfigError: the database is none that is known here.
    """
    if found := re.fullmatch(r"jdbc:sqlite:(?:file:)?([^?]+)(?:\?.*)?", jdbc):
        return f"sqlite:///{found[1]}"
    if found := re.fullmatch(r"jdbc:(postgresql|mysql|mariadb)://([^/?]+)/([^?]*)(?:\?(.*))?", jdbc):
        parameters = dict(urllib.parse.parse_qsl(found[4] or ""))
        user = settings.get("jdbc.user") or parameters.get("user", "")
        password = settings.get("jdbc.password") or parameters.get("password", "")
        driver = "postgresql+psycopg" if found[1] == "postgresql" else "mysql+pymysql"
        login = ":".join(urllib.parse.quote(part, safe="") for part in (user, password) if part)
        return f"{driver}://{login}{'@' if login else ''}{found[2]}/{found[3]}"
    raise ConfigError("lakehouse.catalog.uri is no JDBC address of SQLite, PostgreSQL, MySQL or MariaDB.")


def _of_directories(warehouse: str, properties: Mapping[str, str]) -> Load:
    """Return a Hadoop catalog: a table's directory says in `version-hint.text` which metadata is the newest."""
    from pyiceberg.io import load_file_io
    from pyiceberg.table import StaticTable

    root = re.sub(r"^s3[an]://", "s3://", warehouse).rstrip("/")

    def load(name: Sequence[str]) -> Any:
        place = "/".join([root, *name])
        if not load_file_io(dict(properties), place).new_input(f"{place}/metadata/version-hint.text").exists():
            return None
        return StaticTable.from_metadata(place, dict(properties))

    return load


def _of_catalog(name: str, kind: str, properties: Mapping[str, str]) -> Load:
    from pyiceberg.catalog import load_catalog
    from pyiceberg.exceptions import NoSuchTableError, NotInstalledError

    try:
        catalog = load_catalog(name, **properties)
    except ImportError:
        raise
    except NotInstalledError as error:
        raise ConfigError(f"Reading a catalog of type {kind} needs more packages. {error}") from error
    except Exception as error:
        at = f" at {scrub(properties['uri'])}" if "uri" in properties else ""
        raise ConnectError(
            f"The sink's catalog ({kind}{at}) cannot be asked: {_reason(error)}. Its tables were not compared, and nothing was changed. "
            "Make sure that the catalog runs, that this machine can reach it, and that lakehouse.catalog.* has its address and login."
        ) from error

    def load(table: Sequence[str]) -> Any:
        try:
            return catalog.load_table(tuple(table))
        except NoSuchTableError:
            return None

    return load


class LakeTable(Protocol):
    """A table. Every method raises ConnectError."""

    def refresh(self) -> bool:
        """Go to the newest commit. Returns whether the table is there."""
        ...

    def columns(self) -> pa.Schema:
        """Return names and types."""
        ...

    def row_estimate(self) -> int | None:
        """Return about how many rows the commit has, by metadata alone; None when these do not say it."""
        ...

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Return all rows of the commit, in no order."""
        ...


def open_lake_table(name: TableName, config: SinkConfig) -> LakeTable:
    """Return the table of a sink.

    Raises:
        ConfigError: this catalog cannot be read without Spark, or with these settings.
        ConnectError: the catalog cannot be asked.
    """
    if config["format"] == "delta":
        return _DeltaLakeTable(name, config)
    return _IcebergTable(name, config)


class _IcebergTable:
    def __init__(self, name: TableName, config: SinkConfig) -> None:
        try:
            import pyiceberg  # noqa: F401
        except ImportError as error:
            raise ConfigError(f"Reading Iceberg tables needs pyiceberg: {install_command('verify')}") from error
        self._name = name
        self._load = iceberg_catalog(config)
        self._branch: str | None = config.values.get("tables.default-commit-branch") or None
        self._table: Any = None

    def refresh(self) -> bool:
        with _translated(f"Table {self._name} cannot be loaded"):
            self._table = self._load(self._name.parts)
        return self._table is not None

    def columns(self) -> pa.Schema:
        return self._table.schema().as_arrow()

    def row_estimate(self) -> int | None:
        with _translated(f"Table {self._name} cannot be read"):
            snapshot = self._table.snapshot_by_name(self._branch) if self._branch else self._table.current_snapshot()
        text = snapshot.summary["total-records"] if snapshot is not None and snapshot.summary is not None else None
        return int(text) if text and text.isdigit() else None

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with _translated(f"Table {self._name} cannot be read"):
            scan = self._table.scan(selected_fields=tuple(columns))
            if self._branch:
                scan = scan.use_ref(self._branch)
            yield from scan.to_arrow_batch_reader()


class _DeltaLakeTable:
    def __init__(self, name: TableName, config: SinkConfig) -> None:
        try:
            import deltalake  # noqa: F401
        except ImportError as error:
            raise ConfigError(f"Reading Delta tables needs deltalake: {install_command('verify')}") from error
        root = config["delta.root"]
        if root is None:
            raise ConfigError(
                "Tables of a metastore cannot be found without Spark: verify reads Delta tables below lakehouse.delta.root. Put the root "
                "of their directories there, in a copy of the sink's configuration, if they are laid out as <root>/<namespace>/<table>."
            )
        self._name = name
        self._place = "/".join([str(root).rstrip("/"), *name.parts])
        self._options = delta_storage(config)
        self._table: Any = None

    def refresh(self) -> bool:
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        with _translated(f"Table {self._name} cannot be loaded"):
            try:
                self._table = DeltaTable(self._place, storage_options=self._options or None)
            except TableNotFoundError:
                self._table = None
        return self._table is not None

    def columns(self) -> pa.Schema:
        return pa.schema(self._table.schema().to_arrow())

    def row_estimate(self) -> int | None:
        with _translated(f"Table {self._name} cannot be read"):
            return int(self._table.count())

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        from deltalake import QueryBuilder

        listed = ", ".join('"' + name.replace('"', '""') + '"' for name in columns)
        with _translated(f"Table {self._name} cannot be read"):
            found = QueryBuilder().register("t", self._table).execute(f"SELECT {listed} FROM t")  # noqa: S608  # quoted names
            yield from pa.RecordBatchReader.from_stream(found)


@contextlib.contextmanager
def _translated(what: str) -> Iterator[None]:
    """Errors of libraries that raise a great many kinds."""
    try:
        yield
    except (ConnectError, GeneratorExit):
        raise
    except Exception as error:
        raise ConnectError(f"{what}: {readable(scrub(str(error)))}") from error


def _reason(error: Exception) -> str:
    """Return the first line of what a library says: others are of the library, not of the catalog."""
    lines = readable(scrub(str(error))).splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__
