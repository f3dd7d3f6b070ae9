"""What both formats share to bring a batch into a table without a statement."""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from spark_sink.spark import jars
from spark_sink.spark.evaluation import Evaluations
from spark_sink.spark.local import evaluate, has_java, having_settings, held_rows, hold, is_of_this_process, select
from spark_sink.sql.keys import Value, has_plain_keys
from spark_sink.sql.merge import Shape
from spark_sink.tables.base import state_of
from spark_sink.tables.batch_rows import FewRows, ManyRows, Matches
from spark_sink.tables.file_keys import FileKeys, KeyedFile, Unreadable
from spark_sink.tables.watermark import Watermark
from spark_sink.types.columns import literal, quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType

#: Of a table with more files the driver holds none: it would take a kilobyte for each.
MOST_FILES = 10_000

#: Adaptive execution makes a job of each shuffle.
WITHOUT_ADAPTIVE = {"spark.sql.adaptive.enabled": "false"}

#: Bytes and rows of files in which keys are looked up without a job.
LOOKED_UP, _ROWS_LOOKED_UP = 4 << 20, 100_000


class NotDirect(Exception):
    """A batch or a table is for the statement. Nothing was written."""


def has_known(spark: Any, library: str, version: Callable[[], Any]) -> bool:
    """Return whether the JVM is of this process and has the version of a library whose interface is used here; users may bring another.

    Args:
        library: its name in `spark_sink.spark.jars`, without the version of Spark that may follow.
        version: asks the library for its version.
    """
    if not has_java(spark):
        return False
    from py4j.protocol import Py4JError

    known = next(jar.rsplit(":", 1)[1] for jar in jars.SINK_JARS if f":{library}" in jar)
    try:
        return str(version()) == known
    except (Py4JError, AttributeError, TypeError):  # of another version it may be missing, and py4j takes it for a package then
        return False


def is_direct(shape: Shape) -> bool:
    """Return whether rows of a shape may replace those of their keys without a look at these."""
    needs_old = shape.unknown or shape.order is not None or shape.soft or shape.versions
    return has_plain_keys(shape) and not (needs_old or shape.unseen or shape.expires)


def may_merge(spark: Any, shape: Shape) -> bool:
    """Return whether rows of a shape may be merged without a statement: it `is_direct`, and they may be held. What an executor that dies
    takes along Kafka may have removed since."""
    return is_direct(shape) and (shape.is_local or is_of_this_process(spark))


@contextlib.contextmanager
def rows_of(spark: SparkSession, rows: DataFrame, shape: Shape) -> Iterator[FewRows | ManyRows]:
    """Have the rows of a batch for a merge. Those that the driver does not hold are decoded once: Spark holds them meanwhile.

    Args:
        shape: one that `may_merge`.
    """
    with having_settings(spark, WITHOUT_ADAPTIVE):
        if shape.is_local:
            yield FewRows(rows, shape)
            return
        held = hold(rows, at_once=True)
        try:
            yield ManyRows(held.rows, shape)
        finally:
            held.release()


def look_up(
    files: Mapping[str, KeyedFile],
    rows: FewRows,
    keys: FileKeys,
    content: Callable[[str], bytes],
    deleted: Callable[[str], Collection[int]],
) -> Matches | None:
    """Find the rows of files that have keys of a batch, without a job; None if that is for Spark.

    Args:
        files: those that can hold one, by path.
        rows: the batch's; it has the values of its keys.
        content: returns what is in the file of a path.
        deleted: returns the positions of its deleted rows.
    """
    size, counts = sum(file.size for file in files.values()), [file.rows for file in files.values()]
    if size > LOOKED_UP or None in counts or sum(count or 0 for count in counts) > _ROWS_LOOKED_UP:
        return None
    found: list[tuple[str, Iterable[tuple[Value | None, ...]], Collection[int]]] = []
    try:
        for path in files:
            found.append((path, keys.rows(path, functools.partial(content, path)), deleted(path)))
    except Unreadable:
        return None
    return rows.matches_of(found)


class RowsOfTable:
    """Rows that the driver holds, made into what a table's writer takes: Spark's internal rows with the table's columns."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._evaluations = Evaluations()

    def __call__(self, rows: DataFrame, types: Mapping[str, str], required: Collection[str], *, has_deletes: bool) -> Any:
        """Return rows as a Seq.

        Args:
            types: the table's columns, in order, which all rows have.
            required: those that are NOT NULL.
            has_deletes: whether some rows are deletes (`$op`), which are left out.

        Raises:
            NotDirect: a row cannot be written as it is; the statement says why.
        """
        expressions, made = [_checked(name, type_, is_required=name in required) for name, type_ in types.items()], cast("Any", rows)

        def put() -> DataFrame:
            return select(rows.where("`$op` <> 'd'") if has_deletes else rows, expressions)

        try:
            frame = evaluate(self._evaluations.evaluated((made._jdf.schema().json(), *expressions, has_deletes), rows, self._spark, put))
            found = None if frame is None else held_rows(frame)
        except Exception as error:
            raise NotDirect from error
        if found is None:
            raise NotDirect
        return found


def _checked(name: str, type_: str, *, is_required: bool) -> str:
    """Return SQL of a column's value, which raises where there is none and the table needs one: a writer would put 0."""
    value = f"CAST({quote(name)} AS {type_})"
    return f"{f'coalesce({value}, raise_error({literal(name)}))' if is_required else value} {quote(name)}"


@dataclass(frozen=True)
class Columns:
    """A table's columns.

    Attributes:
        of: what no other schema of the table has.
        types: by name, in order.
        required: those that are NOT NULL.
        is_plain: whether nothing within them is, which nobody checks where rows are written without a statement.
    """

    of: str
    types: Mapping[str, str]
    required: frozenset[str]
    is_plain: bool

    @classmethod
    def of_json(cls, of: str, schema: str) -> Columns:
        """Return the columns of a schema, which is Spark's JSON of a struct."""
        from pyspark.sql.types import StructType

        fields = StructType.fromJson(json.loads(schema)).fields
        state = state_of(fields, Watermark())
        return cls(of, state.columns, state.required, not any(_has_required(field.dataType) for field in fields))


def _has_required(type_: DataType) -> bool:
    from pyspark.sql.types import ArrayType, MapType, StructType

    match type_:
        case StructType():
            return any(not field.nullable or _has_required(field.dataType) for field in type_.fields)
        case ArrayType():
            return not type_.containsNull or _has_required(type_.elementType)
        case MapType():
            return not type_.valueContainsNull or _has_required(type_.valueType) or _has_required(type_.keyType)
        case _:
            return False
