"""The rows of a batch that is written without a statement, and which rows of the table have their keys (`spark_sink.tables.direct`)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spark_sink.spark.local import select
from spark_sink.sql.keys import Value, in_order, key_texts
from spark_sink.sql.merge import Shape
from spark_sink.tables.bounds import bounds_of_ends, ends_of_texts, texts_of_ends
from spark_sink.types.columns import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Rows whose keys each task has; Spark does not know how many the rows are that it holds.
_MOST_BROADCAST = 200_000

#: Positions of rows in a file: Python's numbers, or a Seq of Scala's.
Positions = Any


@dataclass(frozen=True)
class Matches:
    """The table's rows that have keys of the batch.

    Attributes:
        positions: by the path of their file.
        updated: how many get another row in their place.
        deleted: how many do not.
        keys_updated: how many keys of the former the batch has.
    """

    positions: Sequence[tuple[str, Positions]]
    updated: int
    deleted: int
    keys_updated: int


class FewRows:
    """Rows that the driver holds, whose keys it compares itself.

    Attributes:
        has_values: whether a key's values in files are those of its texts.
        put_count, delete_count: how many rows are to be in the table, and how many keys' are not.
    """

    are_ends = False

    def __init__(self, rows: DataFrame, shape: Shape) -> None:
        self._rows, self._shape, self._texts = rows, shape, key_texts(shape)
        self.has_values = _has_values(shape)
        self._is_put = _puts(rows, self._texts) if shape.puts is None else shape.puts
        self.put_count = sum(self._is_put.values())
        self.delete_count = len(self._is_put) - self.put_count
        self._known = [in_order((texts[at] for texts in self._is_put), shape.types[key]) for at, key in enumerate(shape.keys)]

    def values(self) -> Mapping[str, Sequence[Value]]:
        """Return the values of the keys, sorted, as far as they have an order."""
        known = zip(self._shape.keys, self._known, strict=True)
        return {key: [value for value, _ in each] for key, each in known if each is not None}

    def bounds(self) -> Sequence[str]:
        """Return conditions of a table `t` that hold for its rows with these keys."""
        return self._shape.bounds

    def puts(self) -> DataFrame:
        """Return the rows that are to be in the table."""
        return self._rows.where("`$op` <> 'd'") if self.delete_count else self._rows

    def matches(self, frame: DataFrame) -> Matches:
        """Return which rows of a frame have the keys.

        Args:
            frame: of the table: the keys, `$path`, `$at`. Of a narrow batch's keys it has no others.
        """
        if not (self._shape.is_narrow and len(self._shape.keys) == 1):
            from pyspark.sql import functions as f

            frame = frame.join(f.broadcast(self._rows.select(*self._shape.keys)), list(self._shape.keys), "left_semi")
        return self._counted((path, at, tuple(key)) for path, at, *key in select(frame, ["`$path`", "`$at`", *self._texts]).collect())

    def matches_of(self, files: Iterable[tuple[str, Iterable[tuple[Value | None, ...]], Collection[int]]]) -> Matches:
        """Return which rows of files (path, keys, positions of deleted rows) have the keys; `has_values` is true."""
        values = [{text: value for value, text in known or ()} for known in self._known]
        texts_of: dict[tuple[Value | None, ...], tuple[str, ...]] = {
            tuple(of[text] for of, text in zip(values, texts, strict=True)): texts for texts in self._is_put
        }
        found = (
            (path, at, texts_of[key]) for path, rows, gone in files for at, key in enumerate(rows) if key in texts_of and at not in gone
        )
        return self._counted(found)

    def _counted(self, found: Iterable[tuple[str, int, tuple[str, ...]]]) -> Matches:
        positions: dict[str, list[int]] = {}
        keys: list[tuple[str, ...]] = []
        for path, at, key in found:
            positions.setdefault(path, []).append(at)
            keys.append(key)
        updated = sum(self._is_put[key] for key in keys)
        return Matches([*positions.items()], updated, len(keys) - updated, sum(self._is_put[key] for key in set(keys)))


def _has_values(shape: Shape) -> bool:
    """Return whether the keys' values in files are those of their texts. A file of an old Spark may have dates of another calendar."""
    return "date" not in (shape.types[key] for key in shape.keys)


def _puts(rows: DataFrame, texts: Sequence[str]) -> Mapping[tuple[str, ...], bool]:
    """Return whether each row is to be in the table, by the texts of its key."""
    return {tuple(key): not is_delete for *key, is_delete in select(rows, [*texts, "`$op` = 'd'"]).collect()}


class ManyRows:
    """Rows that Spark holds. Attributes as of `FewRows`."""

    are_ends = True

    def __init__(self, rows: DataFrame, shape: Shape) -> None:
        self._rows, self._shape = rows, shape
        self.has_values = _has_values(shape)
        counts = ("count_if(`$op` <> 'd')", "count_if(`$op` = 'd')")
        [[self.put_count, self.delete_count, *ends]] = rows.selectExpr(*counts, *texts_of_ends(shape.keys)).collect()
        self._ends = ends_of_texts(shape.keys, ends)

    def values(self) -> Mapping[str, Sequence[Value]]:
        """Return the least and the greatest value of each key."""
        known = {key: in_order((end for end in ends if end is not None), self._shape.types[key]) for key, ends in self._ends.items()}
        return {key: [value for value, _ in each] for key, each in known.items() if each is not None}

    def bounds(self) -> Sequence[str]:
        """Return conditions of a table `t` that hold for its rows with these keys."""
        return bounds_of_ends(self._ends, self._shape)

    def puts(self) -> DataFrame:
        """Return the rows that are to be in the table."""
        return self._rows.where("`$op` <> 'd'")

    def matches(self, frame: DataFrame) -> Matches:
        """Return which rows of a frame of the table (the keys, `$path`, `$at`) have the keys."""
        from pyspark.sql import functions as f

        keys = self._rows.selectExpr(*map(quote, self._shape.keys), "`$op` <> 'd' `$put`")
        if self.put_count + self.delete_count <= _MOST_BROADCAST:
            keys = f.broadcast(keys)
        joined = frame.join(keys, list(self._shape.keys))
        counts = (f.expr("count_if(`$put`)"), f.expr("count_if(NOT `$put`)"))
        grouped: Any = joined.groupBy("`$path`").agg(f.expr("collect_list(`$at`)"), *counts)
        found = grouped._jdf.collectAsList()
        files = [found.get(at) for at in range(found.size())]  # py4j's iterators take 5 ms to end
        updated, deleted = (sum(row.getLong(at) for row in files) for at in (2, 3))
        # A key that a stranger has given to several rows counts as many times here.
        return Matches([(row.getString(0), row.getSeq(1)) for row in files], updated, deleted, min(updated, self.put_count))
