"""Small batches go into a Delta table by Delta's own interface, in the JVM of this process, without a MERGE statement.

For a few rows a MERGE is ten jobs of Spark's: it reads the state of the log, joins twice, and joins the log once more for statistics. Here
the driver follows the log (`spark_sink.tables.delta_files`) and knows which files can hold a key of the batch. One job finds the positions
of the rows with these keys, another writes the new rows, and one commit marks the old ones as deleted. That takes a quarter of the time.

What is written is what a MERGE writes. `OptimisticTransaction` checks and commits it, with the conflicts of a statement that has read the
whole table (`ConflictChecker`). Batches whose rows depend on those of the table, and tables of which more is to be regarded, are left to
the statement.
"""

from __future__ import annotations

import json
import time
import urllib.parse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spark_sink.spark import jars
from spark_sink.spark.local import has_java, java_class
from spark_sink.sql.keys import has_plain_keys, in_order, key_texts
from spark_sink.sql.merge import Shape
from spark_sink.tables.base import having_settings, state_of
from spark_sink.tables.delta_files import DataFile, LiveFiles
from spark_sink.tables.watermark import Watermark
from spark_sink.types.columns import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_DELTA = "org.apache.spark.sql.delta"
_SESSIONS = "org.apache.spark.sql.classic.SparkSession"
_METRICS = "org.apache.spark.sql.execution.metric.SQLMetrics"

#: Of Delta.
_VERSION = next(jar.rsplit(":", 1)[1] for jar in jars.SINK_JARS if ":delta-spark" in jar)

#: A table of more files is left to the statement: the driver would hold a kilobyte for each.
MOST_FILES = 10_000

#: Files that a key may be in. Delta is handed them one by one.
_MOST_CANDIDATES = 1_000

#: Commits of others that are read one by one; of more, the whole state is read.
_MOST_COMMITS = 100

#: Bytes of files that one task reads.
_FOR_ONE_TASK = 16 << 20


class NotDirect(Exception):
    """A batch or a table is for the statement. Nothing was written."""


@dataclass(frozen=True)
class Transaction:
    """What makes a commit conditional: an application's identifier, and the version that the commit has of it."""

    application: str
    version: int


def has_known_delta(spark: Any) -> bool:
    """Return whether the JVM is of this process and has the version of Delta whose interface is used here; users may bring another."""
    if not has_java(spark):
        return False
    from py4j.protocol import Py4JError

    try:
        return str(getattr(java_class(spark, "io.delta.package$"), "MODULE$").VERSION()) == _VERSION
    except (Py4JError, AttributeError, TypeError):  # of another version it may be missing, and py4j takes it for a package then
        return False


def is_direct(shape: Shape) -> bool:
    """Return whether rows of a shape may replace those of their keys without a look at these."""
    needs_old = shape.unknown or shape.order is not None or shape.soft or shape.versions
    return shape.is_local and has_plain_keys(shape) and not (needs_old or shape.unseen or shape.expires)


class DirectMerge:
    """One table, at a path. It is used by one thread at a time."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._spark: Any = spark
        self._delta = _Delta(spark, path)
        self._files: LiveFiles | None = None
        self._not_before = 0  # a version
        self._columns: tuple[str, Mapping[str, str]] = ("", {})

    def version(self) -> int:
        """Return the table's newest version, for which its log is listed; -1 if there is no table."""
        return self._delta.version()

    def merge(self, view: str, shape: Shape, transaction: Transaction) -> int | None:
        """Replace the rows with keys of a view's by the view's, or by nothing where these are deletes, in one commit.

        Args:
            view: with the columns of `shape` and `$op`, one row of each key.
            shape: one that `is_direct`.

        Returns:
            The version of the commit; None if another one has the transaction's version already, so that nothing was written.

        Raises:
            NotDirect: the statement must do it.
        """
        under_way = self._delta.begin(transaction.application)
        files = self._follow(under_way.snapshot(), shape.keys)
        if not files.is_simple or self._types(files.schema) != dict(shape.types):
            raise NotDirect
        if files.transactions.get(transaction.application, -1) >= transaction.version:
            return None
        rows = self._spark.table(view)
        texts = key_texts(shape)
        is_put = {tuple(key): not is_delete for *key, is_delete in rows.selectExpr(*texts, "`$op` = 'd'").collect()}
        with having_settings(self._spark, {"spark.sql.adaptive.enabled": "false"}):
            held = self._positions(under_way.snapshot(), files, rows, shape, list(is_put))
            put = rows.where("`$op` <> 'd'").selectExpr(*map(quote, self._types(files.schema))).coalesce(1)
            added = self._delta.write(under_way, put) if any(is_put.values()) else []
        replaced = self._delta.delete([(file, [at for _, at in rows]) for file, rows in held])
        keys = [key for _, rows in held for key, _ in rows]
        updated = sum(is_put[key] for key in keys)
        metrics = {
            "operationNumSourceRows": len(is_put),
            "numTargetRowsInserted": sum(is_put.values()) - sum(is_put[key] for key in set(keys)),
            "numTargetRowsUpdated": updated,
            "numTargetRowsMatchedUpdated": updated,
            "numTargetRowsDeleted": len(keys) - updated,
            "numTargetRowsMatchedDeleted": len(keys) - updated,
            "numTargetRowsCopied": 0,
            "numTargetFilesAdded": len(added),
            "numTargetFilesRemoved": replaced.whole_files,
        }
        return self._delta.commit(under_way, [*added, *replaced.actions], transaction, metrics)

    def _follow(self, snapshot: Any, keys: Sequence[str]) -> LiveFiles:
        version, files = int(snapshot.version()), self._files
        if version < self._not_before:
            raise NotDirect
        self._files = None  # until all of them are read
        if (
            files is None
            or files.columns != tuple(keys)
            or not (self._catch_up(files, version) and files.table == snapshot.metadata().id())
        ):
            if (actions := self._delta.state(snapshot, MOST_FILES)) is None:
                self._not_before = version + _MOST_COMMITS
                raise NotDirect
            files = LiveFiles(keys, version, actions)
        self._files = files
        return files

    def _catch_up(self, files: LiveFiles, version: int) -> bool:
        """Read the commits up to a version. Return False if that cannot be done, or takes longer than to read the whole state."""
        if not 0 <= version - files.version <= _MOST_COMMITS:
            return False
        for number in range(files.version + 1, version + 1):
            if (actions := self._delta.actions(number)) is None:
                return False
            files.follow(actions)
        return True

    def _types(self, schema: str) -> Mapping[str, str]:
        if self._columns[0] != schema:
            from pyspark.sql.types import StructType

            self._columns = (schema, state_of(StructType.fromJson(json.loads(schema)).fields, Watermark()).columns)
        return self._columns[1]

    def _positions(
        self, snapshot: Any, files: LiveFiles, rows: DataFrame, shape: Shape, keys: Sequence[tuple[str, ...]]
    ) -> list[tuple[DataFile, list[tuple[tuple[str, ...], int]]]]:
        """Return the files that hold rows with the keys, and of each row its key and its position."""
        known = {key: in_order((texts[at] for texts in keys), shape.types[key]) for at, key in enumerate(shape.keys)}
        candidates = files.holding({key: [value for value, _ in each] for key, each in known.items() if each is not None})
        if not candidates:
            return []
        by_name = {_name(path): file for path, file in candidates.items()}
        if len(by_name) < len(candidates) or len(candidates) > _MOST_CANDIDATES:
            raise NotDirect
        frame = self._delta.read(snapshot, candidates.values()).alias("t")
        for condition in shape.bounds:
            frame = frame.where(condition)
        frame = frame.selectExpr(*map(quote, shape.keys), "_metadata.file_path `$path`", "_metadata.row_index `$at`")
        if not (shape.is_narrow and len(shape.keys) == 1):  # else the condition lists the keys
            from pyspark.sql import functions as f

            frame = frame.join(f.broadcast(rows.select(*shape.keys)), list(shape.keys), "left_semi")
        frame = frame.selectExpr("`$path`", "`$at`", *key_texts(shape))
        if sum(file.size for file in candidates.values()) <= _FOR_ONE_TASK:
            frame = frame.coalesce(1)
        found: dict[str, list[tuple[tuple[str, ...], int]]] = {}
        for path, at, *key in frame.collect():
            found.setdefault(_name(path), []).append((tuple(key), at))
        if any(by_name[name].rows is None for name in found):  # what a file with deleted rows must say
            raise NotDirect
        return [(by_name[name], each) for name, each in found.items()]


def _name(path: str) -> str:
    return urllib.parse.unquote(path.rsplit("/", 1)[-1])


@dataclass(frozen=True)
class _Replaced:
    """Actions that mark rows as deleted, and how many files have lost all of theirs."""

    actions: Sequence[Any]
    whole_files: int


class _Delta:
    """Delta's own interface: Scala, called by py4j. Names are those of the library that `spark_sink.spark.jars` names."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._spark: Any = spark
        self._path = path
        self._modules: dict[str, Any] = {}
        self._none = self._class("scala.Option").empty()
        self._conf: Any = None
        self._vectors: Any = None

    def _class(self, name: str) -> Any:
        return java_class(self._spark, name)

    def _module(self, name: str) -> Any:
        """Return an object of Scala's."""
        if name not in self._modules:
            self._modules[name] = getattr(self._class(name + "$"), "MODULE$")
        return self._modules[name]

    def _some(self, value: Any) -> Any:
        return self._class("scala.Option").apply(value)

    def _seq(self, items: Iterable[Any]) -> Any:
        gathered = self._class("java.util.ArrayList")()
        for item in items:
            gathered.add(item)
        return self._class("scala.jdk.javaapi.CollectionConverters").asScala(gathered).toSeq()

    def _list(self, items: Any) -> list[Any]:
        return list(self._class("scala.jdk.javaapi.CollectionConverters").asJava(items))

    def _log(self) -> Any:
        self._class(_SESSIONS).setActiveSession(self._spark._jsparkSession)  # a thread's first statement does it else
        log = self._module(f"{_DELTA}.DeltaLog").forTable(self._spark._jsparkSession, self._path)
        if self._conf is None:
            self._conf = log.newDeltaHadoopConf()
            self._vectors = self._class(f"{_DELTA}.storage.dv.HadoopFileSystemDVStore")(self._conf)
        return log

    def version(self) -> int:
        return int(self._log().update(False, self._none, self._none).version())

    def begin(self, application: str) -> Any:
        """Return a transaction of the newest version. It conflicts with all that others write meanwhile.

        Delta's own look at an application's version reads the whole state of the log; that it depends on it is all that is noted here.
        """
        begun = self._log().startTransaction(self._none, self._none)
        begun.readTxn().addOne(application)
        begun.readWholeTable()
        return begun

    def state(self, snapshot: Any, most_files: int) -> list[Mapping[str, Any]] | None:
        """Return the actions of which a version consists; None if it has more files than `most_files`."""
        from pyspark.sql import DataFrame

        files = DataFrame(snapshot.allFiles().toDF(), self._spark).selectExpr("to_json(struct(*)) action").limit(most_files + 1).collect()
        if len(files) > most_files:
            return None
        others = [snapshot.protocol(), snapshot.metadata(), *self._list(snapshot.setTransactions())]
        return [*(json.loads(other.json()) for other in others), *({"add": json.loads(row["action"])} for row in files)]

    def actions(self, version: int) -> list[Mapping[str, Any]] | None:
        """Return the actions of a commit; None if its file has been removed."""
        from py4j.protocol import Py4JJavaError

        log = self._log()
        path = self._module(f"{_DELTA}.util.FileNames").unsafeDeltaFile(log.logPath(), version)
        try:
            lines = log.store().read(path, self._conf)
        except Py4JJavaError:
            return None
        return [json.loads(line) for line in lines.mkString("\n").split("\n")]

    def _action(self, file: DataFile) -> Any:
        return self._module(f"{_DELTA}.actions.Action").fromJson(file.action)

    def read(self, snapshot: Any, files: Iterable[DataFile]) -> DataFrame:
        """Return the rows of some files."""
        from pyspark.sql import DataFrame

        return DataFrame(self._log().createDataFrame(snapshot, self._seq(map(self._action, files)), False, self._none), self._spark)

    def write(self, under_way: Any, rows: Any) -> list[Any]:
        """Write rows to new files and return their actions."""
        return self._list(under_way.writeFiles(rows._jdf))

    def delete(self, held: Sequence[tuple[DataFile, Sequence[int]]]) -> _Replaced:
        """Write which rows are deleted, by their positions in files, to one file of deletion vectors (`DeletionVectorWriter`)."""
        if not held:
            return _Replaced((), 0)
        place, actions, whole_files = self._log().dataPath(), list[Any](), 0
        id_ = self._class("java.util.UUID").randomUUID()
        writer = self._vectors.createWriter(self._vectors.generateFileNameInTable(self._vectors.pathWithFileSystem(place), id_, ""))
        try:
            for file, positions in held:
                add = self._action(file)
                before = add.deletionVector()
                deleted = (
                    self._class(f"{_DELTA}.deletionvectors.RoaringBitmapArray")() if before is None else self._vectors.read(before, place)
                )
                for position in positions:
                    deleted.add(position)
                if (count := deleted.cardinality()) == file.rows:
                    actions.append(add.removeWithTimestamp(time.time_ns() // 1_000_000, True))
                    whole_files += 1
                    continue
                data = deleted.serializeAsByteArray(self._module(f"{_DELTA}.deletionvectors.RoaringBitmapArrayFormat").Portable())
                offset = self._some(writer.write(data).offset())
                vector = self._module(f"{_DELTA}.actions.DeletionVectorDescriptor")
                pair = add.removeRows(vector.onDiskWithRelativePath(id_, "", len(data), count, offset, self._none), True, True)
                actions += [pair._1(), pair._2()]
        finally:
            writer.close()
        return _Replaced(actions, whole_files)

    def commit(self, under_way: Any, actions: Iterable[Any], transaction: Transaction, metrics: Mapping[str, int]) -> int:
        """Commit, with the session's user metadata, and return the version."""
        session = self._spark._jsparkSession
        counted = self._class("java.util.HashMap")()
        for name, value in metrics.items():
            metric = self._module(_METRICS).createMetric(session.sparkContext(), name)
            metric.set(value)
            counted.put(name, metric)
        converters = self._class("scala.jdk.javaapi.CollectionConverters")
        under_way.registerSQLMetrics(session, getattr(self._module("scala.collection.immutable.Map"), "from")(converters.asScala(counted)))
        now = self._some(time.time_ns() // 1_000_000)
        note = self._class(f"{_DELTA}.actions.SetTransaction")(transaction.application, transaction.version, now)
        nothing = self._seq(())
        operation = self._class(f"{_DELTA}.DeltaOperations$Merge")(*[self._none] * 4, *[nothing] * 3)
        return int(under_way.commit(self._seq([*actions, note]), operation))
