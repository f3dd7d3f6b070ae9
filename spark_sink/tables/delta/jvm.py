"""Delta's own interface: Scala, called by py4j. Names are those of the library that `spark_sink.spark.jars` names."""

from __future__ import annotations

import json
import struct
import time
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spark_sink.spark.local import activate, java_class, longs, scala_object
from spark_sink.tables.batch_rows import Positions
from spark_sink.tables.delta.files import DataFile
from spark_sink.tables.direct import NotDirect, has_known

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_DELTA = "org.apache.spark.sql.delta"
_METRICS = "org.apache.spark.sql.execution.metric.SQLMetrics"


@dataclass(frozen=True)
class Transaction:
    """What makes a commit conditional: an application's identifier, and the version that the commit has of it."""

    application: str
    version: int


def has_known_delta(spark: Any) -> bool:
    """Return whether Delta's interface is the one that is used here, as `has_known`."""
    return has_known(spark, "delta-spark", lambda: scala_object(spark, "io.delta.package").VERSION())


@dataclass(frozen=True)
class Replaced:
    """Actions that mark rows as deleted, and how many files have lost all of theirs."""

    actions: Sequence[Any]
    whole_files: int


class DeltaJvm:
    """What the direct way asks of Delta, for a table at a path."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._spark: Any = spark
        self._path = path
        self._metrics: dict[str, Any] = {}
        self._log: Any = None
        self._is_newest = False  # what the log shows
        self._none = self._class("scala.Option").empty()
        self._conf: Any = None
        self._vectors: Any = None
        self._written_as: tuple[str, Sequence[Any]] = ("", ())  # the table's metadata, and what `_writing` returns

    def _class(self, name: str) -> Any:
        return java_class(self._spark, name)

    def _module(self, name: str) -> Any:
        return scala_object(self._spark, name)

    def _some(self, value: Any) -> Any:
        return self._class("scala.Option").apply(value)

    def _seq(self, items: Iterable[Any]) -> Any:
        gathered = self._class("java.util.ArrayList")()
        for item in items:
            gathered.add(item)
        return self._class("scala.jdk.javaapi.CollectionConverters").asScala(gathered).toSeq()

    def _numbers(self, numbers: Sequence[int]) -> Any:
        """Return a Seq of made. They are handed over together; one call of py4j for each takes 60 µs."""
        made = self._spark.sparkContext._gateway.new_array(self._spark._jvm.long, len(numbers))
        self._class("java.nio.ByteBuffer").wrap(struct.pack(f">{len(numbers)}q", *numbers)).asLongBuffer().get(made)
        return self._module("scala.runtime.ScalaRunTime").wrapLongArray(made)

    def _list(self, items: Any) -> list[Any]:
        """Return what a Seq has. py4j's iterators end by an exception of Java's, which pyspark takes 5 ms to look at."""
        return [items.apply(at) for at in range(items.size())]

    def _open(self) -> Any:
        activate(self._spark)
        log = self._module(f"{_DELTA}.DeltaLog").forTable(self._spark._jsparkSession, self._path)
        if self._conf is None:
            self._conf = log.newDeltaHadoopConf()
            self._vectors = self._class(f"{_DELTA}.storage.dv.HadoopFileSystemDVStore")(self._conf)
        self._log = log
        return log

    def version(self) -> int:
        version = int(self._open().update(False, self._none, self._none).version())
        self._is_newest = True
        return version

    def begin(self) -> Any:
        """Return a transaction of the newest version, or of the one that `version` has just found: the log is not listed once more then.

        It conflicts with what others do to the files that it removes. All else here is of the log that it has opened.
        """
        log, is_newest, self._is_newest = self._open(), self._is_newest, False
        return log.startTransaction(self._none, self._some(log.unsafeVolatileSnapshot()) if is_newest else self._none)

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

        log = self._log
        path = self._module(f"{_DELTA}.util.FileNames").unsafeDeltaFile(log.logPath(), version)
        try:
            lines = log.store().read(path, self._conf)
        except Py4JJavaError:
            return None
        return [json.loads(line) for line in lines.mkString("\n").split("\n")]

    def _parsed(self, action: str) -> Any:
        return self._module(f"{_DELTA}.actions.Action").fromJson(action)

    def _action(self, file: DataFile) -> Any:
        return self._parsed(file.action)

    def read(self, snapshot: Any, files: Iterable[DataFile]) -> DataFrame:
        """Return the rows of some files."""
        from pyspark.sql import DataFrame

        return DataFrame(self._log.createDataFrame(snapshot, self._seq(map(self._action, files)), False, self._none), self._spark)

    def content(self, file: DataFile) -> bytes:
        """Return the bytes of a file."""
        path = self._action(file).absolutePath(self._log)
        stream = path.getFileSystem(self._conf).open(path)
        try:
            return bytes(stream.readAllBytes())
        finally:
            stream.close()

    def deleted_rows(self, file: DataFile) -> Collection[int]:
        """Return the positions of the rows of a file that are deleted."""
        if not file.deleted:
            return ()
        return frozenset(longs(self._spark, self._deleted(file).toArray()))

    def _deleted(self, file: DataFile) -> Any:
        """Return the positions of deleted rows, as Delta has them; they may be changed."""
        if not file.deleted:
            return self._class(f"{_DELTA}.deletionvectors.RoaringBitmapArray")()
        return self._vectors.read(self._action(file).deletionVector(), self._log.dataPath())

    def write(self, under_way: Any, rows: Any) -> list[Any]:
        """Write rows to new files and return their actions."""
        return self._list(under_way.writeFiles(rows._jdf))

    def write_held(self, under_way: Any, rows: Any) -> Any:
        """Write rows that the driver holds to a new file, without a job, and return its action (`TransactionalWrite.writeFiles`).

        Args:
            rows: a Seq of Spark's internal rows, with the table's columns.

        Raises:
            NotDirect: it takes a job.
        """
        schema, writers, context, statistics = self._writing(under_way)
        name = f"part-00000-{uuid.uuid4()}-c000{writers.getFileExtension(context)}"
        path = self._class("org.apache.hadoop.fs.Path")(self._log.dataPath(), name)
        place, seen = str(path.toString()), statistics.newTaskInstance()
        seen.newFile(place)
        writer = writers.newInstance(place, schema, context)
        try:
            for at in range(rows.size()):
                row = rows.apply(at)
                writer.write(row)
                seen.newRow(place, row)
        finally:
            writer.close()
        seen.closeFile(place)
        file = path.getFileSystem(self._conf).getFileStatus(path)
        add = {
            "path": name,
            "partitionValues": {},
            "size": file.getLen(),
            "modificationTime": file.getModificationTime(),
            "dataChange": True,
            "stats": seen.getFinalStats(0).stats().apply(name),
        }
        under_way.registerPostCommitHook(self._module(f"{_DELTA}.hooks.AutoCompact"))  # which looks for the setting by itself
        return self._parsed(json.dumps({"add": add}))

    def _writing(self, under_way: Any) -> Sequence[Any]:
        """Return a table's schema, Spark's factory of writers for it and its context, and what looks at rows for a file's statistics."""
        metadata, session = under_way.metadata(), self._spark._jsparkSession
        if self._written_as[0] != (of := str(metadata.json())):
            schema = metadata.schema()
            settings = session.sessionState().newHadoopConfWithOptions(metadata.configuration())
            job = self._class("org.apache.hadoop.mapreduce.Job").getInstance(settings)
            format_ = self._log.fileFormat(under_way.protocol(), metadata)
            writers = format_.prepareWrite(session, job, self._module("scala.collection.immutable.Map").empty(), schema)
            attributes = self._module("org.apache.spark.sql.catalyst.types.DataTypeUtils").toAttributes(schema)
            nothing = self._class("org.apache.spark.sql.types.StructType")()
            frame = session.emptyDataFrame()
            found = under_way.getOptionalStatsTrackerAndStatsCollection(attributes, self._log.dataPath(), nothing, frame)._1()
            if found.isEmpty():  # the session has chosen that files have no statistics
                raise NotDirect
            attempt = self._class("org.apache.hadoop.mapreduce.TaskAttemptID")()
            context = self._class("org.apache.hadoop.mapreduce.task.TaskAttemptContextImpl")(job.getConfiguration(), attempt)
            self._written_as = (of, (schema, writers, context, found.get()))
        return self._written_as[1]

    def delete(self, held: Sequence[tuple[DataFile, Positions]]) -> Replaced:
        """Write which rows are deleted, by their positions in files, to one file of deletion vectors (`DeletionVectorWriter`)."""
        if not held:
            return Replaced((), 0)
        place, actions, whole_files = self._log.dataPath(), list[Any](), 0
        id_ = self._class("java.util.UUID").randomUUID()
        writer = self._vectors.createWriter(self._vectors.generateFileNameInTable(self._vectors.pathWithFileSystem(place), id_, ""))
        try:
            for file, positions in held:
                add, deleted = self._action(file), self._deleted(file)
                deleted.addAll(self._numbers(positions) if isinstance(positions, list) else positions)
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
        return Replaced(actions, whole_files)

    def commit_merge(self, under_way: Any, actions: Iterable[Any], transaction: Transaction, metrics: Mapping[str, int]) -> int:
        """Commit, with the session's user metadata, and return the version."""
        nothing = self._seq(())
        operation = self._class(f"{_DELTA}.DeltaOperations$Merge")(*[self._none] * 4, *[nothing] * 3)
        return self._commit(under_way, [*actions, self._noted(transaction)], operation, metrics)

    def commit_append(self, under_way: Any, added: Iterable[Any], transaction: Transaction, metrics: Mapping[str, int]) -> int:
        """Commit new files, with the session's user metadata, what their writing has counted, and more `metrics`; return the version."""
        append = self._class("org.apache.spark.sql.SaveMode").Append
        operation = self._class(f"{_DELTA}.DeltaOperations$Write")(append, self._some(self._seq(())), *[self._none] * 7)
        return self._commit(under_way, [*added, self._noted(transaction)], operation, metrics)

    def _noted(self, transaction: Transaction) -> Any:
        now = self._some(time.time_ns() // 1_000_000)
        return self._class(f"{_DELTA}.actions.SetTransaction")(transaction.application, transaction.version, now)

    def commit_compaction(self, under_way: Any, added: Iterable[Any], removed: Iterable[DataFile], metrics: Mapping[str, int]) -> int:
        """Commit files that have the rows of others, so that nobody who follows the table sees a change; return the version."""
        fresh, now = [json.loads(file.json())["add"] for file in added], time.time_ns() // 1_000_000
        actions = [self._parsed(json.dumps({"add": each | {"dataChange": False}})) for each in fresh]
        actions += [self._action(file).removeWithTimestamp(now, False) for file in removed]
        nothing = self._seq(())
        operation = self._class(f"{_DELTA}.DeltaOperations$Optimize")(nothing, nothing, False, self._none, False)
        return self._commit(under_way, actions, operation, metrics)

    def checkpoint_of(self, snapshot: Any) -> int:
        """Return the version of the checkpoint with which a version begins; -1 if there is none."""
        return int(snapshot.checkpointProvider().version())

    def without_checkpoint(self, under_way: Any) -> None:
        """Have a commit write no checkpoint."""
        under_way.postCommitHooks().subtractOne(self._module(f"{_DELTA}.hooks.CheckpointHook"))

    def checkpoint(self) -> None:
        """Write a checkpoint of the newest version that is known, if it is time; a failure is Delta's to log, as after a commit."""
        activate(self._spark)
        log = self._module(f"{_DELTA}.DeltaLog").forTable(self._spark._jsparkSession, self._path)
        snapshot = log.unsafeVolatileSnapshot()
        if int(snapshot.version()) - self.checkpoint_of(snapshot) >= int(log.checkpointInterval(snapshot.metadata())):
            log.checkpoint(snapshot, self._none)

    def _commit(self, under_way: Any, actions: Iterable[Any], operation: Any, metrics: Mapping[str, int]) -> int:
        session = self._spark._jsparkSession
        if not metrics:
            return int(under_way.commit(self._seq(actions), operation))
        counted = self._class("java.util.HashMap")()
        for name, value in metrics.items():
            if name not in self._metrics:
                self._metrics[name] = self._module(_METRICS).createMetric(session.sparkContext(), name)
            self._metrics[name].set(value)
            counted.put(name, self._metrics[name])
        converters = self._class("scala.jdk.javaapi.CollectionConverters")
        under_way.registerSQLMetrics(session, getattr(self._module("scala.collection.immutable.Map"), "from")(converters.asScala(counted)))
        return int(under_way.commit(self._seq(actions), operation))
