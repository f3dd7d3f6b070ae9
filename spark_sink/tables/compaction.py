"""Which data files are worth writing again, as fewer ones. Pure.

A compaction that takes all small files takes the last one's result each time, so the same rows are written again and again until that file
is no longer small. Here a file is written again together with smaller ones of at least half its size: what a table has gathered since is
merged first, and its results with each other when there are enough of them. So each row is written a number of times that grows with the
logarithm of the table's size, and so does the number of small files that stay.
"""

from __future__ import annotations

from collections.abc import Mapping

from spark_sink.tables.file_keys import KeyedFile

#: A part of a file's rows (`spark.databricks.delta.optimize.maxDeletedRowsRatio`).
_MANY_DELETED = 0.05

#: A file is this many times as large as the smaller ones together with which it is written again, at most.
_LARGER = 2


def to_rewrite(
    files: Mapping[str, KeyedFile], deleted: Mapping[str, int], target: int, *, thoroughly: bool = False
) -> dict[str, list[str]]:
    """Return the paths of files to write again, as one of each partition: small ones, and those with many deleted rows.

    Args:
        files: by path. Those whose partition is not known stay as they are.
        deleted: how many rows of a file are, by path; none where it is not there.
        target: the size of a compacted file, in bytes. Those of less than half of it are small.
        thoroughly: take all small files, whatever their sizes are.
    """
    places: dict[str, dict[str, KeyedFile]] = {}
    for path, file in files.items():
        if file.partition is not None:
            places.setdefault(file.partition, {})[path] = file
    found = {place: _of_partition(each, deleted, target, thoroughly=thoroughly) for place, each in places.items()}
    return {place: paths for place, paths in found.items() if paths}


def is_small(file: KeyedFile, target: int) -> bool:
    """Return whether a file is written again because of its size; `target` as of `to_rewrite`."""
    return 2 * file.size < target


def _of_partition(files: Mapping[str, KeyedFile], deleted: Mapping[str, int], target: int, *, thoroughly: bool) -> list[str]:
    found = [path for path, file in files.items() if deleted.get(path, 0) > _MANY_DELETED * (file.rows or 0)]
    others = {path: file.size for path, file in files.items() if is_small(file, target) and path not in found}
    size, taken, small = sum(files[path].size for path in found), 0, sorted(others, key=others.__getitem__)
    for count, path in enumerate(small, 1):
        if thoroughly or others[path] <= _LARGER * size:
            taken = count
        size += others[path]
    chosen = found + small[:taken]
    return chosen if found or len(chosen) > 1 else []
