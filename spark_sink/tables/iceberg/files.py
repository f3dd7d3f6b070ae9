"""The files of an Iceberg table's branch: which data files can hold given keys, and which of their rows are deleted.

Pure. Iceberg's specification: "Position Delete Files" and "Appendix D: Single-value serialization", which is the form of bounds.
"""

from __future__ import annotations

import bisect
import datetime
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from spark_sink.sql.keys import Value
from spark_sink.tables.compaction import to_rewrite
from spark_sink.tables.file_keys import KeyedFile, files_holding

#: Rows by their positions in files: positions by the path of the data file.
Deleted = Mapping[str, Collection[int]]

_DECIMAL = re.compile(r"decimal\(\d+,(\d+)\)")

#: The kind of files of positions.
_POSITIONS = 1

#: Files of positions that are merged into one (`SizeBasedFileRewritePlanner.MIN_INPUT_FILES_DEFAULT`).
_MANY_DELETES = 5

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


@dataclass(frozen=True)
class Rewrite:
    """Data files of a partition whose rows are written again, as one file, in this order and without the deleted ones.

    Attributes:
        partition: as of `KeyedFile`.
        files: by path.
        deleted: sorted positions of their rows that are deleted when the writing begins, by path.
    """

    partition: str
    files: Mapping[str, KeyedFile]
    deleted: Mapping[str, Sequence[int]]

    @property
    def rows(self) -> int:
        """How many rows are left."""
        return sum((file.rows or 0) - len(self.deleted[path]) for path, file in self.files.items())

    def moved(self, of_files: Mapping[str, Collection[int]]) -> list[int]:
        """Return the positions in the new file of rows that were not deleted then, sorted.

        Args:
            of_files: their positions in the old files, by path.
        """
        found, begin = list[int](), 0
        for path, file in self.files.items():
            gone = self.deleted[path]
            found += [begin + position - bisect.bisect_left(gone, position) for position in sorted(of_files.get(path, ()))]
            begin += (file.rows or 0) - len(gone)
        return found


@dataclass(frozen=True)
class Replaced:
    """Files of positions that a compaction replaces, by path, and the sorted positions in them that still matter, by data file."""

    deletes: Collection[str]
    kept: Mapping[str, Sequence[int]]


class LiveFiles:
    """The files of the newest snapshot that is known.

    Attributes:
        columns: whose bounds are kept.
        head: that snapshot; None of a table that has none yet.
        files: data files by path.
        deletes: positions of deleted rows, by the path of the file of positions.
        unread: files of positions that are not in `deletes` yet.
    """

    def __init__(self, columns: Iterable[str]) -> None:
        """Begin with a table that has no snapshot."""
        self.columns = tuple(columns)
        self.head: int | None = None
        self.unread: dict[str, DeleteFile] = {}
        self.files: dict[str, KeyedFile] = {}
        self.deletes: dict[str, Deleted] = {}

    def follow(self, head: int, changes: Changes) -> None:
        """Take in the next snapshot."""
        for path in changes.removed:
            self.files.pop(path, None)
        self.files |= changes.added
        for path in changes.deletes_removed:
            self.unread.pop(path, None)
            self.deletes.pop(path, None)
        self.unread |= {file.path: file for file in changes.deletes if file.path not in self.deletes}
        self.head = head

    def read(self, path: str, deleted: Deleted) -> None:
        """Take in what a file of positions has, which may be added later."""
        self.unread.pop(path, None)
        self.deletes[path] = deleted

    def holding(self, keys: Mapping[str, Sequence[Value]], *, are_ends: bool = False) -> dict[str, KeyedFile]:
        """Return the files, by path, that can hold rows with a key, as `files_holding`."""
        return files_holding(self.files, keys, are_ends=are_ends)

    def to_rewrite(self, target: int) -> list[Rewrite]:
        """Return the data files that are worth writing again, once no file is `unread`; `target` as of `to_rewrite`."""
        counts = Counter[str]()
        for deleted in self.deletes.values():
            counts.update({path: len(positions) for path, positions in deleted.items()})
        return [
            Rewrite(place, {path: self.files[path] for path in paths}, {path: sorted(self.deleted_rows(path)) for path in paths})
            for place, paths in to_rewrite(self.files, counts, target).items()
        ]

    def replaced(self, rewrites: Sequence[Rewrite], new: Mapping[str, str]) -> Replaced:
        """Return the files of positions that go with data files, and with those that are gone; if many would be left, all of them.

        Args:
            rewrites: what has been written since, while further rows may have been deleted.
            new: the paths of the new data files by partition; of one of which no row was left there is none.
        """
        gone = {path for rewrite in rewrites for path in rewrite.files} | {
            path for deleted in self.deletes.values() for path in deleted if path not in self.files
        }
        of_gone = [path for path, deleted in self.deletes.items() if not gone.isdisjoint(deleted)]
        deletes = list(self.deletes) if len(self.deletes) - len(of_gone) >= _MANY_DELETES else of_gone
        kept: dict[str, set[int]] = {}
        for path, positions in ((path, self.deletes[of][path]) for of in deletes for path in self.deletes[of]):
            if path not in gone:
                kept.setdefault(path, set()).update(positions)
        for rewrite in rewrites:
            since = {path: self.deleted_rows(path) - set(rewrite.deleted[path]) for path in rewrite.files}
            if rewrite.partition in new and (moved := rewrite.moved(since)):
                kept[new[rewrite.partition]] = set(moved)
        return Replaced(deletes, {path: sorted(positions) for path, positions in kept.items()})

    @property
    def deleted_count(self) -> int:
        """How many positions are held."""
        return sum(len(positions) for deleted in self.deletes.values() for positions in deleted.values())

    def deleted_rows(self, path: str) -> set[int]:
        """Return the positions of a file's rows that are deleted, as far as they have been read."""
        return {position for deleted in self.deletes.values() for position in deleted.get(path, ())}


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
