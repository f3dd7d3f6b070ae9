"""The keys of rows in small data files, which this process reads by itself: a job of Spark's takes a quarter of a second for the same.

A file never changes, and the files of the last minute are looked at by batch after batch, so their columns are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from spark_sink.sql.keys import Value

if TYPE_CHECKING:
    import pyarrow

#: Bytes of the columns that are kept for a table.
_MOST_KEPT = 1 << 20


class Unreadable(Exception):
    """A file is to be read by Spark: it lacks a column, or has values that Python has no form for."""


class FileKeys:
    """Key columns of the files of one table."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._columns = list(columns)
        self._kept: dict[str, pyarrow.Table] = {}  # the one that was used last is the last

    def rows(self, path: str, read: Callable[[], bytes]) -> Iterator[tuple[Value | None, ...]]:
        """Return the keys of a file's rows, in the order of their positions.

        Args:
            path: a name of the file.
            read: returns what is in it.

        Raises:
            Unreadable: Spark must read it.
        """
        import pyarrow as pa

        try:
            table = self._kept.pop(path, None)
            table = self._read(read()) if table is None else table
            rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
        except (pa.ArrowException, ValueError) as error:
            raise Unreadable(str(error)) from error
        self._kept[path] = table
        while len(self._kept) > 1 and sum(kept.nbytes for kept in self._kept.values()) > _MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        return rows

    def _read(self, data: bytes) -> Any:
        import pyarrow as pa
        from pyarrow import parquet

        file = parquet.ParquetFile(pa.BufferReader(data))
        if set(self._columns) - set(file.schema_arrow.names):
            raise Unreadable
        return file.read(columns=self._columns, use_threads=False).select(self._columns)
