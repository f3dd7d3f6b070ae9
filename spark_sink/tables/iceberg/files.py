"""The files of an Iceberg table's branch: which data files can hold given keys, and which of their rows are deleted.

Pure. Iceberg's specification: "Position Delete Files" and "Appendix D: Single-value serialization", which is the form of bounds.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from spark_sink.sql.keys import Value
from spark_sink.tables.file_keys import KeyedFile, files_holding

#: Rows by their positions in files: positions by the path of the data file.
Deleted = Mapping[str, Collection[int]]

_DECIMAL = re.compile(r"decimal\(\d+,(\d+)\)")

#: The kind of files of positions.
_POSITIONS = 1

#: Days before 1970-01-01 in Python's count.
_EPOCH = datetime.date(1970, 1, 1).toordinal()


@dataclass(frozen=True)
class DeleteFile:
    """A file of positions.

    Attributes:
        path: where it is.
        rows: how many positions it has.
        size: in bytes.
        is_readable: whether it is such a file, and in a format that this process reads.
    """

    path: str
    rows: int
    size: int
    is_readable: bool


@dataclass(frozen=True)
class Changes:
    """What a snapshot has changed. Data files are by path."""

    added: Mapping[str, KeyedFile]
    removed: Collection[str]
    deletes: Sequence[DeleteFile]
    deletes_removed: Collection[str]


class LiveFiles:
    """The files of the newest snapshot that is known.

    Attributes:
        columns: whose bounds are kept.
        head: that snapshot; None of a table that has none yet.
        unread: files of positions that are not known by row.
    """

    def __init__(self, columns: Iterable[str]) -> None:
        """Begin with a table that has no snapshot."""
        self.columns = tuple(columns)
        self.head: int | None = None
        self.unread: dict[str, DeleteFile] = {}
        self._files: dict[str, KeyedFile] = {}
        self._deleted: dict[str, Deleted] = {}  # by the file of positions

    def follow(self, head: int, changes: Changes) -> None:
        """Take in the next snapshot."""
        for path in changes.removed:
            self._files.pop(path, None)
        self._files |= changes.added
        for path in changes.deletes_removed:
            self.unread.pop(path, None)
            self._deleted.pop(path, None)
        self.unread |= {file.path: file for file in changes.deletes if file.path not in self._deleted}
        self.head = head

    def read(self, path: str, deleted: Deleted) -> None:
        """Take in what a file of positions has, which may be added later."""
        self.unread.pop(path, None)
        self._deleted[path] = deleted

    def holding(self, keys: Mapping[str, Sequence[Value]]) -> dict[str, KeyedFile]:
        """Return the files, by path, that can hold rows with a key, as `files_holding`."""
        return files_holding(self._files, keys)

    @property
    def deleted_count(self) -> int:
        """How many positions are held."""
        return sum(len(positions) for deleted in self._deleted.values() for positions in deleted.values())

    def deleted_rows(self, path: str) -> Collection[int]:
        """Return the positions of a file's rows that are deleted, as far as they have been read."""
        return {position for deleted in self._deleted.values() for position in deleted.get(path, ())}


def delete_file(path: str, rows: int, size: int, content: int, format_: str) -> DeleteFile:
    """Return a file of deletes; `content` is its kind's number (specification, "Manifests")."""
    return DeleteFile(path, rows, size, content == _POSITIONS and format_.upper() == "PARQUET")


def bounds_of(ends: Mapping[str, tuple[bytes | None, bytes | None]], types: Mapping[str, str]) -> dict[str, tuple[Value, Value]]:
    """Return the bounds of columns whose least and greatest value are both known, as `bound_of`."""
    found: dict[str, tuple[Value, Value]] = {}
    for column, of_column in ends.items():
        low, high = (None if end is None else bound_of(end, types[column]) for end in of_column)
        if low is not None and high is not None:
            found[column] = (low, high)
    return found


def bound_of(content: bytes, type_: str) -> Value | None:
    """Return a bound of a column as keys of its type are compared; None if it cannot be.

    Args:
        type_: one of those of `bounded_keys`.
    """
    try:
        if type_ == "string":
            return content.decode()
        number = int.from_bytes(content, "big" if type_.startswith("decimal") else "little", signed=True)
        if type_ == "date":
            return datetime.date.fromordinal(_EPOCH + number).isoformat()
        if decimal := _DECIMAL.fullmatch(type_):
            return Decimal(number).scaleb(-int(decimal[1]))
    except (ValueError, OverflowError):
        return None
    return number
