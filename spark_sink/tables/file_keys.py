"""The keys of rows in data files: which files can hold given keys, and what small files hold.

Small files are read by this process itself: a job of Spark's takes a quarter of a second for the same. A file never changes, and the files
of the last minute are looked at by batch after batch, so their columns are kept.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from spark_sink.sql.keys import Value

if TYPE_CHECKING:
    import pyarrow

#: Bytes of the columns that are kept for a table.
_MOST_KEPT = 1 << 20

#: Of a field's metadata in pyarrow.
_FIELD_ID = b"PARQUET:field_id"


@dataclass(frozen=True)
class KeyedFile:
    """A data file.

    Attributes:
        rows: how many it has, deleted ones included; None when its writer has not said so.
        size: in bytes.
        bounds: the least and the greatest value, or what lies beyond them, of columns whose bounds are known.
        partition: what its rows have in common, as a text that no other partition of the table has; empty in tables without partitions;
            None when it is not known, or the table is partitioned in another way by now.
    """

    rows: int | None
    size: int
    bounds: Mapping[str, tuple[Any, Any]]
    partition: str | None = field(default="", kw_only=True)

    def may_hold(self, column: str, values: Sequence[Value], *, are_ends: bool = False) -> bool:
        """Return whether one of the sorted values can be in the column, or one between the first and the last."""
        if column not in self.bounds:
            return True
        low, high = self.bounds[column]
        if are_ends:
            return bool(values) and bool(values[0] <= high and low <= values[-1])
        at = bisect.bisect_left(values, low)
        return at < len(values) and values[at] <= high


F = TypeVar("F", bound=KeyedFile)


def files_holding(files: Mapping[str, F], keys: Mapping[str, Sequence[Value]], *, are_ends: bool = False) -> dict[str, F]:
    """Return the files, by path, that can hold rows with a key.

    Args:
        keys: the sorted values of each key column.
        are_ends: whether these are the least and the greatest, of more.
    """
    return {path: file for path, file in files.items() if all(file.may_hold(*each, are_ends=are_ends) for each in keys.items())}


class Unreadable(Exception):
    """A file is to be read by Spark: it lacks a column, or has values that Python has no form for."""


class FileKeys:
    """Key columns of the files of one table."""

    def __init__(self, columns: Sequence[str], ids: Sequence[int] | None = None) -> None:
        """`ids`: what the columns are known by where names may have been given to others since; each file's column must have its own."""
        self._columns = list(columns)
        self._ids = ids
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
        schema = file.schema_arrow
        if set(self._columns) - set(schema.names):
            raise Unreadable
        if self._ids is not None:
            found = [(schema.field(column).metadata or {}).get(_FIELD_ID) for column in self._columns]
            if found != [str(id_).encode() for id_ in self._ids]:
                raise Unreadable
        return file.read(columns=self._columns, use_threads=False).select(self._columns)
