"""The table's side: rows of Iceberg tables by pyiceberg and of Delta tables by deltalake, at one commit, a batch at a time. No Java."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from connect_py.app.verify.places import delta_storage, iceberg_catalog
from connect_py.errors import ConfigError, ConnectError

if TYPE_CHECKING:
    from spark_sink.config.sink_config import SinkConfig
    from spark_sink.routing import TableName


class LakeTable(Protocol):
    """A table. Every method raises ConnectError."""

    def refresh(self) -> bool:
        """Go to the newest commit. Returns whether the table is there."""
        ...

    def columns(self) -> pa.Schema:
        """Names and types."""
        ...

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """All rows of the commit, in no order."""
        ...


def open_lake_table(name: TableName, config: SinkConfig) -> LakeTable:
    """The table of a sink. Raises ConfigError: this catalog cannot be read without Spark."""
    if config["format"] == "delta":
        return _DeltaLakeTable(name, config)
    return _IcebergTable(name, config)


class _IcebergTable:
    def __init__(self, name: TableName, config: SinkConfig) -> None:
        try:
            import pyiceberg  # noqa: F401
        except ImportError as error:
            raise ConfigError("Reading Iceberg tables needs pyiceberg: pip install 'connect-py-worker[verify]'") from error
        self._name = name
        self._load = iceberg_catalog(config)
        self._branch: str | None = config.values.get("tables.default-commit-branch") or None
        self._table: Any = None

    def refresh(self) -> bool:
        """See `LakeTable`."""
        with _translated(f"Table {self._name} cannot be loaded"):
            self._table = self._load(self._name.parts)
        return self._table is not None

    def columns(self) -> pa.Schema:
        """See `LakeTable`."""
        return self._table.schema().as_arrow()

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """See `LakeTable`."""
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
            raise ConfigError("Reading Delta tables needs deltalake: pip install 'connect-py-worker[verify]'") from error
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
        """See `LakeTable`."""
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        with _translated(f"Table {self._name} cannot be loaded"):
            try:
                self._table = DeltaTable(self._place, storage_options=self._options or None)
            except TableNotFoundError:
                self._table = None
        return self._table is not None

    def columns(self) -> pa.Schema:
        """See `LakeTable`."""
        return pa.schema(self._table.schema().to_arrow())

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """See `LakeTable`."""
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
        raise ConnectError(f"{what}: {error}") from error
