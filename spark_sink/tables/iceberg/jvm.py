"""Iceberg's own interface: Java, called by py4j. Names are those of the library that `spark_sink.spark.jars` names.

Rows are written as a MERGE writes them, by Iceberg's `DeltaWriter` of Spark's, but in this process and not in a task of Spark's.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from spark_sink.routing import TableName
from spark_sink.spark.local import activate, java_array, java_class, longs, scala_object
from spark_sink.tables.direct import Columns, NotDirect, has_known
from spark_sink.tables.file_keys import KeyedFile
from spark_sink.tables.iceberg.branches import is_refused, load_table, quoted
from spark_sink.tables.iceberg.files import Changes, DeleteFile, Replaced, Rewrite, bounds_of, delete_file
from spark_sink.tables.iceberg.positions import COLUMNS, parquet_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ICEBERG = "org.apache.iceberg"
_WRITE = "org.apache.spark.sql.connector.write"

#: Positions of a file that are held for the batches that follow; they read those of others when they need them.
_MOST_HELD = 10_000

#: What is written has no order, and any partition may follow any other one.
_AS_IT_COMES = {"use-table-distribution-and-ordering": "false"}


def has_known_iceberg(spark: Any) -> bool:
    """Return whether Iceberg's interface is the one that is used here, as `has_known`."""
    return has_known(spark, "iceberg-spark-runtime", lambda: java_class(spark, f"{_ICEBERG}.IcebergBuild").version())


@dataclass(frozen=True)
class Written:
    """Files that no snapshot has yet, as Iceberg has them.

    Attributes:
        data: data files.
        deletes: files of positions.
        positions: what each of these has, unless it is too much to be held.
    """

    data: Sequence[Any] = ()
    deletes: Sequence[Any] = ()
    positions: Sequence[Mapping[str, Sequence[int]] | None] = ()


@dataclass(frozen=True)
class Rewritten:
    """New data files, which no snapshot has yet, and those whose rows they have, as Iceberg has them."""

    new: Written
    old: Sequence[Any]


class IcebergJvm:
    """What the direct way asks of Iceberg, for one table."""

    def __init__(self, spark: SparkSession, catalog: str, name: TableName) -> None:
        self._spark: Any = spark
        self._catalog = catalog
        self._name = name
        self._task_ids = itertools.count()
        self._factory: tuple[Any, Any] = (None, None)  # what it depends on, and Iceberg's factory of writers
        self._places: dict[str, Any] = {}  # data files of partitioned tables, without statistics
        self._in_this_thread = self._module("org.apache.spark.util.ThreadUtils").sameThreadExecutorService()
        self._write_all: Any = None

    def _class(self, name: str) -> Any:
        return java_class(self._spark, name)

    def _module(self, name: str) -> Any:
        return scala_object(self._spark, name)

    def _objects(self, *items: Any) -> Any:
        return java_array(self._spark, self._spark._jvm.java.lang.Object, *items)

    def _named(self, name: str) -> Any:
        """Return a class as an object of Java's."""
        return self._module("org.apache.spark.util.SparkClassUtils").classForName(name, True, False)

    def load(self) -> Any:
        """Return the table, as the catalog has it now."""
        return load_table(self._spark, self._catalog, self._name)

    # -- what a table is -----------------------------------------------------------------------------------------------------------

    def write_settings(self, table: Any) -> str:
        """Return a text that changes with what the table's properties say of writing."""
        return str(self._class(f"{_ICEBERG}.util.PropertyUtil").propertiesWithPrefix(table.properties(), "write.").toString())

    def is_partitioned(self, table: Any) -> bool:
        """Return whether a table has partitions, or may have files that have some."""
        return not table.spec().isUnpartitioned() or int(table.specs().size()) > 1

    def format_version(self, table: Any) -> int:
        return int(self._class(f"{_ICEBERG}.TableUtil").formatVersion(table))

    def schema_id(self, table: Any) -> str:
        """Return a text that the schema of no other table has, nor another one of this table, also if it is made again.

        Another schema is also one with other partitions.
        """
        return f"{table.uuid().toString()} {int(table.schema().schemaId())} {int(table.spec().specId())}"

    def columns(self, table: Any) -> Columns:
        """Return the table's columns."""
        return Columns.of_json(self.schema_id(table), self._schema(table).json())

    def ids(self, table: Any, columns: Iterable[str]) -> Sequence[int]:
        """Return what columns are known by, whatever their names are."""
        schema = table.schema()
        return [int(schema.findField(column).fieldId()) for column in columns]

    def _schema(self, table: Any) -> Any:
        return self._class(f"{_ICEBERG}.spark.SparkSchemaUtil").convert(table.schema())

    # -- its files -----------------------------------------------------------------------------------------------------------------

    def changes(self, table: Any, snapshot: Any, types: Mapping[str, str]) -> Changes:
        """Return what a snapshot has changed.

        Args:
            types: of the columns whose bounds are wanted.
        """
        builder = self._class(f"{_ICEBERG}.SnapshotChanges").builderFor(table)
        made = builder.snapshot(snapshot).executeWith(self._in_this_thread).build()
        added, removed = self.data_files(table, self._each(made.addedDataFiles()), types), list[str]()
        for file in self._each(made.removedDataFiles()):
            removed.append(str(file.location()))
            self._places.pop(removed[-1], None)
        return Changes(
            added,
            removed,
            self.delete_files(self._each(made.addedDeleteFiles())),
            [str(file.location()) for file in self._each(made.removedDeleteFiles())],
        )

    def _each(self, found: Any) -> Iterable[Any]:
        files = found.iterator()
        while files.hasNext():
            yield files.next()

    def data_files(self, table: Any, files: Iterable[Any], types: Mapping[str, str]) -> dict[str, KeyedFile]:
        """Return data files of Iceberg's as `LiveFiles` has them, by path."""
        ids, found = dict(zip(types, self.ids(table, types), strict=True)), dict[str, KeyedFile]()
        is_partitioned = self.is_partitioned(table)
        for file in files:
            path = str(file.location())
            partition: str | None = ""
            if is_partitioned:
                self._places[path] = file.copyWithoutStats()
                partition = self.partition_of(table, file)
            found[path] = self._data_file(file, ids, types, partition)
        return found

    def partition_of(self, table: Any, file: Any) -> str | None:
        """Return the partition of a data file, as of `KeyedFile`."""
        spec = table.spec()
        return str(spec.partitionToPath(file.partition())) if file.specId() == spec.specId() else None

    def _data_file(self, file: Any, ids: Mapping[str, int], types: Mapping[str, str], partition: str | None) -> KeyedFile:
        bytes_of, lower, upper = self._class(f"{_ICEBERG}.util.ByteBuffers").toByteArray, file.lowerBounds(), file.upperBounds()

        def end(bounds: Any, id_: int) -> bytes | None:
            buffer = None if bounds is None else bounds.get(id_)
            return None if buffer is None else bytes(bytes_of(buffer))

        bounds = bounds_of({column: (end(lower, id_), end(upper, id_)) for column, id_ in ids.items()}, types)
        return KeyedFile(int(file.recordCount()), int(file.fileSizeInBytes()), bounds, partition=partition)

    def delete_files(self, files: Iterable[Any]) -> list[DeleteFile]:
        """Return files of deletes of Iceberg's as `LiveFiles` has them."""
        return [
            delete_file(
                str(file.location()),
                int(file.recordCount()),
                int(file.fileSizeInBytes()),
                int(file.content().id()),
                str(file.format().toString()),
            )
            for file in files
        ]

    def content(self, table: Any, path: str) -> bytes:
        """Return the bytes of a file."""
        stream = table.io().newInputFile(path).newStream()
        try:
            return bytes(stream.readAllBytes())
        finally:
            stream.close()

    # -- a batch -------------------------------------------------------------------------------------------------------------------

    def write(self, table: Any, snapshot: Any, rows: Any | None, deleted: Mapping[str, Sequence[int]]) -> Written:
        """Write new rows, and which old ones are deleted, to files.

        Args:
            snapshot: what has the old ones.
            rows: a Seq of Spark's internal rows, with the table's columns.
            deleted: sorted positions by the path of their file.
        """
        written = Written() if rows is None else self._write_rows(table, self._java(rows).iterator())
        return self.with_deletes(table, snapshot, written, deleted)

    def with_deletes(self, table: Any, snapshot: Any, written: Written, deleted: Mapping[str, Sequence[int]]) -> Written:
        """Write which rows are deleted, next to new ones, to files; if that fails, none of them is left. Arguments as of `write`."""
        try:
            for spec, partition, positions in self._by_partition(table, snapshot, deleted):
                file = self._write_positions(table, spec, partition, positions)
                held = positions if sum(map(len, positions.values())) <= _MOST_HELD else None
                written = replace(written, deletes=[*written.deletes, file], positions=[*written.positions, held])
        except BaseException:
            self.discard(table, written)
            raise
        return written

    def write_by_job(self, table: Any, rows: Any, *, is_merge: bool) -> Written:
        """Write a frame by a job of Spark's, which leaves its files to be fetched, as Iceberg does with those that it writes again
        (`SparkBinPackFileRewriteRunner`).

        Args:
            rows: with the table's columns.
            is_merge: whether rows are parted and sorted as by a MERGE, not as by an INSERT.
        """
        id_ = str(uuid.uuid4())
        # the class has another `get`, and py4j looks at one of the two
        get = self._named(f"{_ICEBERG}.spark.SparkTableCache").getMethod("get", java_array(self._spark, self._spark._jvm.java.lang.Class))
        tables = get.invoke(None, self._objects())
        files = self._class(f"{_ICEBERG}.spark.FileRewriteCoordinator").get()
        options = self._distribution_of_merges(table) if is_merge else {}
        tables.add(id_, table)
        try:
            rows.write.format("iceberg").mode("append").options(**options).save(id_)
            return Written(list(self._each(files.fetchNewFiles(table, id_))))
        finally:
            files.clearRewrite(table, id_)
            tables.remove(id_)

    def _distribution_of_merges(self, table: Any) -> Mapping[str, str]:
        """Return the option by which a table's property decides, unless the session does (`SparkWriteConf`)."""
        mode = table.properties().get("write.merge.distribution-mode")
        is_chosen = self._spark.conf.get("spark.sql.iceberg.distribution-mode", None) is not None
        return {} if mode is None or is_chosen else {"distribution-mode": mode}

    def sorted_positions(self, found: Iterable[tuple[str, Any]]) -> Mapping[str, Sequence[int]]:
        """Return positions, each a Seq of Scala's, sorted, by the path of their file."""
        kind = self._module("scala.reflect.ClassTag").Long()
        return {path: sorted(longs(self._spark, positions.toArray(kind))) for path, positions in found}

    def _write_rows(self, table: Any, rows: Any) -> Written:
        """Write what an iterator of Java's has."""
        if self._write_all is None:  # py4j knows no default methods of interfaces
            iterator = java_array(self._spark, self._spark._jvm.java.lang.Class, self._named("java.util.Iterator"))
            self._write_all = self._named(f"{_WRITE}.DataWriter").getMethod("writeAll", iterator)
        writer = self._factory_of(table).createWriter(0, next(self._task_ids))
        try:
            try:
                self._write_all.invoke(writer, self._objects(rows))
                message = writer.commit()
            except BaseException:
                writer.abort()
                raise
        finally:
            writer.close()
        return Written(list(message.dataFiles()))

    def _by_partition(
        self, table: Any, snapshot: Any, deleted: Mapping[str, Sequence[int]]
    ) -> Iterable[tuple[Any, Any, Mapping[str, Sequence[int]]]]:
        """Return positions with the partition of their data files, and how the table was partitioned when these were written."""
        if not self.is_partitioned(table):
            return [(table.spec(), None, deleted)] if deleted else []
        self._find_places(table, snapshot, deleted)
        specs = table.specs()
        found: dict[tuple[int, str], tuple[Any, Any, dict[str, Sequence[int]]]] = {}
        for path, positions in deleted.items():
            file = self._places[path]
            spec, partition = specs.get(file.specId()), file.partition()
            of = int(file.specId()), str(spec.partitionToPath(partition))
            found.setdefault(of, (spec, None if spec.isUnpartitioned() else partition, {}))[2][path] = positions
        return list(found.values())

    def _find_places(self, table: Any, snapshot: Any, paths: Collection[str]) -> None:
        missing = set(paths) - self._places.keys()
        for manifest in snapshot.dataManifests(table.io()) if missing else ():
            for file in self._files(table, manifest, missing):
                self._places[str(file.location())] = file
        if missing - self._places.keys():
            raise NotDirect

    def _write_positions(self, table: Any, spec: Any, partition: Any, deleted: Mapping[str, Sequence[int]]) -> Any:
        """Write one file of positions. As Iceberg's own it has bounds if all are of one data file, which is then the only one it is for.

        Args:
            partition: that of all data files; None if `spec` has no partitions.
        """
        path, content = f"{uuid.uuid4()}-deletes.parquet", parquet_of(deleted)
        locations, place = table.locationProvider(), () if partition is None else (spec, partition)
        file = table.io().newOutputFile(locations.newDataLocation(*place, path))
        stream = file.create()
        try:
            stream.write(content)
        finally:
            stream.close()
        [first, *others] = deleted
        ends = [None, None] if others else [self._ends(first, deleted[first][at]) for at in (0, -1)]
        counts = sum(map(len, deleted.values())), *[None] * 4
        builder = self._class(f"{_ICEBERG}.FileMetadata").deleteFileBuilder(spec).ofPositionDeletes()
        if partition is not None:
            builder.withPartition(partition)
        builder.withPath(file.location()).withFileSizeInBytes(len(content))
        return builder.withMetrics(self._class(f"{_ICEBERG}.Metrics")(*counts, *ends)).build()

    def _ends(self, path: str, position: int) -> Any:
        """Return a bound of a file of positions, by columns."""
        found, buffer = self._class("java.util.HashMap")(), self._class("java.nio.ByteBuffer")
        for column, value in (("file_path", path.encode()), ("pos", position.to_bytes(8, "little"))):
            found.put(COLUMNS[column], buffer.wrap(value))
        return found

    def _java(self, rows: Any) -> Any:
        """Return a collection or an iterator of Scala's as one of Java's."""
        return self._class("scala.jdk.javaapi.CollectionConverters").asJava(rows)

    def _factory_of(self, table: Any) -> Any:
        """Return Iceberg's factory of writers. It has the table as it is, which is handed to all executors; so it is used again."""
        is_kept = str(table.io().getClass().getName()) == f"{_ICEBERG}.hadoop.HadoopFileIO"  # others may have a login that expires
        of = (self.schema_id(table), str(table.location()), self.write_settings(table)) if is_kept else None
        if of is None or self._factory[0] != of:
            options = self._class("org.apache.spark.sql.util.CaseInsensitiveStringMap")(_AS_IT_COMES)
            types = map(self._class("java.util.Optional").of, self._types_of_rows())
            info = self._class(f"{_WRITE}.LogicalWriteInfoImpl")(str(uuid.uuid4()), self._schema(table), options, *types)
            command = self._class(f"{_WRITE}.RowLevelOperation$Command").valueOf("MERGE")
            made = self._class(f"{_ICEBERG}.spark.source.SparkTable").create(table, "main")
            operation = made.newRowLevelOperationBuilder(self._class(f"{_WRITE}.RowLevelOperationInfoImpl")(command, options)).build()
            batch = operation.newWriteBuilder(info).build().toBatch()
            self._factory = of, batch.createBatchWriterFactory(self._class(f"{_WRITE}.PhysicalWriteInfoImpl")(1))
        return self._factory[1]

    def _types_of_rows(self) -> Iterable[Any]:
        """Return the types of what names a row of a table, and of what a writer must know of it (`SparkPositionDeltaOperation`)."""
        from pyspark.sql.types import IntegerType, LongType, StringType, StructType

        id_ = StructType().add("_file", StringType(), False).add("_pos", LongType(), False)
        of_row = StructType().add("_spec_id", IntegerType()).add("_partition", StructType())
        return [self._spark._jsparkSession.parseDataType(type_.json()) for type_ in (id_, of_row)]

    def add(self, row_delta: Any, written: Written, summary: Mapping[str, str]) -> None:
        """Give a commit files, and what its snapshot says of itself."""
        for file in written.data:
            row_delta.addRows(file)
        for file in written.deletes:
            row_delta.addDeletes(file)
        row_delta.set("spark.app.id", self._spark.sparkContext.applicationId)
        for key, value in summary.items():
            row_delta.set(key, value)
        row_delta.scanManifestsWith(self._in_this_thread)  # by threads of their own it waits in steps of 10 ms (`Tasks.waitFor`)

    # -- a compaction --------------------------------------------------------------------------------------------------------------

    def rewrite(self, table: Any, snapshot: Any, chosen: Sequence[Rewrite]) -> Rewritten:
        """Write rows of data files again, in the order of the files; no thread but the caller's takes part in it."""
        activate(self._spark)
        paths = [path for rewrite in chosen for path in rewrite.files]
        left, tasks, found = set(paths), self._class("java.util.ArrayList")(), dict[str, Any]()
        for task in self._each(table.newScan().useSnapshot(snapshot.snapshotId()).planWith(self._in_this_thread).planFiles()):
            if (path := str(task.file().location())) in left:
                found[path] = task
                left.remove(path)
                if not left:
                    break
        for path in paths:
            tasks.add(found[path])
        reader, nothing = self._reader(table, tasks), self._module("scala.collection.immutable.Map").empty()
        rows = self._class("org.apache.spark.sql.execution.datasources.v2.PartitionIterator")(reader, nothing)
        try:
            return Rewritten(self._write_rows(table, self._java(rows)), [task.file() for task in found.values()])
        finally:
            reader.close()

    def _reader(self, table: Any, tasks: Any) -> Any:
        """Return Iceberg's reader of data files for a task of Spark's, which leaves deleted rows out. Its constructor is not public."""
        found = self._named(f"{_ICEBERG}.spark.source.RowDataReader").getDeclaredConstructors()
        constructor = next(each for each in found if each.getParameterCount() > 1)
        constructor.setAccessible(True)
        group, has_case, reads_deletes_once = self._class(f"{_ICEBERG}.BaseScanTaskGroup")(tasks), True, True
        return constructor.newInstance(self._objects(table, table.io(), group, table.schema(), has_case, reads_deletes_once))

    def commit_rewritten(self, table: Any, branch: str, head: int, rewritten: Rewritten, replaced: Replaced) -> None:
        """Have files replaced, unless one of them is gone, or rows of it have been deleted since a snapshot.

        Args:
            head: the snapshot.
            replaced: the files of positions that go, and what they leave.
        """
        snapshot = table.snapshot(head)
        if self.is_partitioned(table):
            self._places |= {str(file.location()): file for file in rewritten.new.data}
        positions = [self._write_positions(table, *group) for group in self._by_partition(table, snapshot, replaced.kept)]
        try:
            rewrite = table.newRewrite().toBranch(branch).validateFromSnapshot(head).scanManifestsWith(self._in_this_thread)
            for file in (*rewritten.old, *self._delete_files(table, snapshot, replaced.deletes)):
                rewrite.deleteFile(file)
            for file in (*rewritten.new.data, *positions):
                rewrite.addFile(file)
            rewrite.commit()
        except Exception as error:
            if is_refused(error):
                self.discard(table, Written((), positions))
            raise

    def _delete_files(self, table: Any, snapshot: Any, paths: Collection[str]) -> list[Any]:
        manifests = snapshot.deleteManifests(table.io()) if paths else ()
        return [file for manifest in manifests for file in self._files(table, manifest, paths, are_deletes=True)]

    def _files(self, table: Any, manifest: Any, paths: Collection[str], *, are_deletes: bool = False) -> Iterable[Any]:
        """Yield files of a manifest by their paths."""
        files = self._class(f"{_ICEBERG}.ManifestFiles")
        reader = (files.readDeleteManifest if are_deletes else files.read)(manifest, table.io(), table.specs())
        try:
            yield from (file for file in self._each(reader) if str(file.location()) in paths)
        finally:
            reader.close()

    def discard(self, table: Any, written: Written) -> None:
        """Remove files that no snapshot will have."""
        for file in (*written.data, *written.deletes):
            table.io().deleteFile(file.location())

    @property
    def quoted(self) -> str:
        return quoted(self._catalog, self._name)
