"""Iceberg's own interface: Java, called by py4j. Names are those of the library that `spark_sink.spark.jars` names.

Rows are written as a MERGE writes them, by Iceberg's `DeltaWriter` of Spark's, but in this process and not in a task of Spark's.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spark_sink.routing import TableName
from spark_sink.spark.local import java_class, scala_object
from spark_sink.tables.direct import Columns, has_known
from spark_sink.tables.file_keys import KeyedFile
from spark_sink.tables.iceberg.branches import load_table, quoted
from spark_sink.tables.iceberg.files import Changes, DeleteFile, bounds_of, delete_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ICEBERG = "org.apache.iceberg"
_WRITE = "org.apache.spark.sql.connector.write"

#: What is written has no order, and any partition may follow any other one.
_AS_IT_COMES = {"use-table-distribution-and-ordering": "false"}


def has_known_iceberg(spark: Any) -> bool:
    """Return whether Iceberg's interface is the one that is used here, as `has_known`."""
    return has_known(spark, "iceberg-spark-runtime", lambda: java_class(spark, f"{_ICEBERG}.IcebergBuild").version())


@dataclass(frozen=True)
class Written:
    """Files that no snapshot has yet, as Iceberg has them."""

    data: Sequence[Any] = ()
    deletes: Sequence[Any] = ()


class IcebergJvm:
    """What the direct way asks of Iceberg, for one table."""

    def __init__(self, spark: SparkSession, catalog: str, name: TableName) -> None:
        self._spark: Any = spark
        self._catalog = catalog
        self._name = name
        self._task_ids = itertools.count()
        self._factory: tuple[Any, Any] = (None, None)  # what it depends on, and Iceberg's factory of writers
        self._in_this_thread = self._module("org.apache.spark.util.ThreadUtils").sameThreadExecutorService()
        self._write_all: Any = None

    def _class(self, name: str) -> Any:
        return java_class(self._spark, name)

    def _module(self, name: str) -> Any:
        return scala_object(self._spark, name)

    def _array(self, class_: Any, *items: Any) -> Any:
        made = self._spark.sparkContext._gateway.new_array(class_, len(items))
        for at, item in enumerate(items):
            made[at] = item
        return made

    def load(self) -> Any:
        """Return the table, as the catalog has it now."""
        return load_table(self._spark, self._catalog, self._name)

    # -- what a table is -----------------------------------------------------------------------------------------------------------

    def write_settings(self, table: Any) -> str:
        """Return a text that changes with what the table's properties say of writing."""
        return str(self._class(f"{_ICEBERG}.util.PropertyUtil").propertiesWithPrefix(table.properties(), "write.").toString())

    def format_version(self, table: Any) -> int:
        return int(self._class(f"{_ICEBERG}.TableUtil").formatVersion(table))

    def schema_id(self, table: Any) -> str:
        """Return a text that the schema of no other table has, nor another one of this table, also if it is made again."""
        return f"{table.uuid().toString()} {int(table.schema().schemaId())}"

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
        return Changes(
            self.data_files(table, self._each(made.addedDataFiles()), types),
            [str(file.location()) for file in self._each(made.removedDataFiles())],
            [self._delete_file(file) for file in self._each(made.addedDeleteFiles())],
            [str(file.location()) for file in self._each(made.removedDeleteFiles())],
        )

    def _each(self, found: Any) -> Iterable[Any]:
        files = found.iterator()
        while files.hasNext():
            yield files.next()

    def data_files(self, table: Any, files: Iterable[Any], types: Mapping[str, str]) -> dict[str, KeyedFile]:
        """Return data files of Iceberg's as `LiveFiles` has them, by path."""
        ids = dict(zip(types, self.ids(table, types), strict=True))
        return {str(file.location()): self._data_file(file, ids, types) for file in files}

    def _data_file(self, file: Any, ids: Mapping[str, int], types: Mapping[str, str]) -> KeyedFile:
        bytes_of, lower, upper = self._class(f"{_ICEBERG}.util.ByteBuffers").toByteArray, file.lowerBounds(), file.upperBounds()

        def end(bounds: Any, id_: int) -> bytes | None:
            buffer = None if bounds is None else bounds.get(id_)
            return None if buffer is None else bytes(bytes_of(buffer))

        bounds = bounds_of({column: (end(lower, id_), end(upper, id_)) for column, id_ in ids.items()}, types)
        return KeyedFile(int(file.recordCount()), int(file.fileSizeInBytes()), bounds)

    def _delete_file(self, file: Any) -> DeleteFile:
        kind, format_ = int(file.content().id()), str(file.format().toString())
        return delete_file(str(file.location()), int(file.recordCount()), int(file.fileSizeInBytes()), kind, format_)

    def content(self, table: Any, path: str) -> bytes:
        """Return the bytes of a file."""
        stream = table.io().newInputFile(path).newStream()
        try:
            return bytes(stream.readAllBytes())
        finally:
            stream.close()

    # -- a batch -------------------------------------------------------------------------------------------------------------------

    def write(self, table: Any, rows: Any | None, deleted: Mapping[str, Sequence[int]]) -> Written:
        """Write new rows, and which old ones are deleted, to files.

        Args:
            rows: a Seq of Spark's internal rows, with the table's columns.
            deleted: positions by the path of their file.
        """
        writer = self._factory_of(table).createWriter(0, next(self._task_ids))
        try:
            try:
                if rows is not None:
                    self._insert(writer, rows)
                self._delete(writer, deleted)
                message = writer.commit()
            except BaseException:
                writer.abort()
                raise
        finally:
            writer.close()
        return Written(list(message.dataFiles()), list(message.deleteFiles()))

    def _insert(self, writer: Any, rows: Any) -> None:
        if self._write_all is None:  # py4j knows no default methods of interfaces
            named, objects = self._module("org.apache.spark.util.SparkClassUtils").classForName, self._spark._jvm.java.lang
            iterator = self._array(objects.Class, named("java.util.Iterator", True, False))
            self._write_all = named(f"{_WRITE}.DataWriter", True, False).getMethod("writeAll", iterator)
        iterator = self._class("scala.jdk.javaapi.CollectionConverters").asJava(rows).iterator()
        self._write_all.invoke(writer, self._array(self._spark._jvm.java.lang.Object, iterator))

    def _delete(self, writer: Any, deleted: Mapping[str, Sequence[int]]) -> None:
        row = self._class("org.apache.spark.sql.catalyst.expressions.GenericInternalRow")
        id_, of_row = row(2), row(2)
        of_row.setInt(0, 0)
        of_row.update(1, row(0))
        for path, positions in deleted.items():
            id_.update(0, self._class("org.apache.spark.unsafe.types.UTF8String").fromString(path))
            for position in positions:
                id_.setLong(1, position)
                writer.delete(of_row, id_)

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

    def discard(self, table: Any, written: Written) -> None:
        """Remove files that no snapshot will have."""
        for file in (*written.data, *written.deletes):
            table.io().deleteFile(file.location())

    @property
    def quoted(self) -> str:
        return quoted(self._catalog, self._name)
