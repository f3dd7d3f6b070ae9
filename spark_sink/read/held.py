"""Small batches: the driver reads their records by the runtime's client, and gives them to Spark as a frame that it holds.

By Spark's own source a reading takes a job, with a consumer of its own for each partition, and an admin client before it: 0.15 s for one
topic and 0.3 s for seven, of batches that take 0.5 and 1.3 s. The frame has the columns of that source (`KafkaRecordToRowConverter`).
"""

from __future__ import annotations

import functools
import tempfile
from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from connect_py.api.task import LogRecord
from spark_sink.read.formats import CutRecord
from spark_sink.spark.local import java_class

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

#: As Spark numbers them (`org.apache.kafka.common.record.TimestampType`).
_TIMESTAMP_TYPES = {"CreateTime": 0, "LogAppendTime": 1, None: -1}


@functools.cache
def _schema(*, headers: bool) -> str:
    """Return the columns of Spark's Kafka source as JSON."""
    from pyspark.sql import types

    columns = types.StructType()
    for name in ("key", "value"):
        columns.add(name, types.BinaryType())
    columns.add("topic", types.StringType()).add("partition", types.IntegerType()).add("offset", types.LongType())
    columns.add("timestamp", types.TimestampType()).add("timestampType", types.IntegerType())
    if headers:
        header = types.StructType().add("key", types.StringType()).add("value", types.BinaryType())
        columns.add("headers", types.ArrayType(header))
    return str(columns.json())


@functools.cache
def _cut_schema() -> str:
    """Return the columns of cut records as JSON."""
    from pyspark.sql import types

    of = {"partition": types.IntegerType(), "timestamp": types.TimestampType()}
    of |= dict.fromkeys(("offset", "kfp", "vfp"), types.LongType())
    columns = types.StructType()
    for name in (*CutRecord._fields, "route"):
        columns.add(name, of.get(name, types.StringType()))
    return str(columns.json())


def frame_of(spark: SparkSession, records: Sequence[LogRecord], *, headers: bool) -> DataFrame:
    """Return records as Spark's Kafka source shows them.

    Args:
        headers: whether there is a column of headers, which is null for a record without any.
    """
    return _frame(spark, _table(records, headers=headers), _schema(headers=headers))


def frame_of_cut(spark: SparkSession, records: Sequence[CutRecord]) -> DataFrame:
    """Return records that the driver has cut, as a frame that it holds: the columns of `RecordFormat.rows`, and no routing value."""
    return _frame(spark, _cut_table(records), _cut_schema())


def _frame(spark: SparkSession, table: pyarrow.RecordBatch, schema: str) -> DataFrame:
    import pyarrow
    from pyspark.sql import DataFrame

    session: Any = spark
    folder = java_class(session, "java.lang.System").getProperty("java.io.tmpdir")  # what a kill leaves there is removed (`spark.jvm`)
    with tempfile.NamedTemporaryFile(suffix=".arrow", dir=folder) as file:
        with pyarrow.ipc.new_stream(file, table.schema) as stream:
            stream.write_batch(table)
        file.flush()
        java = java_class(session, "PythonSQLUtils")
        frame = java.toDataFrame(java.readArrowStreamFromFile(file.name), schema, session._jsparkSession)
    return DataFrame(frame, session)


def _table(records: Sequence[LogRecord], *, headers: bool) -> pyarrow.RecordBatch:
    import pyarrow as pa

    count = len(records)
    moments = [-1 if record.timestamp is None else record.timestamp for record in records]
    columns = {
        "key": _bytes([record.key for record in records]),
        "value": _bytes([record.value for record in records]),
        **_positions(records, moments),
        "timestampType": _numbers("i", [_TIMESTAMP_TYPES[record.timestamp_type] for record in records], pa.int32()),
    }
    if headers:
        all_headers = [header for record in records for header in record.headers]
        entries = pa.StructArray.from_buffers(
            pa.struct([("key", pa.string()), ("value", pa.binary())]),
            len(all_headers),
            [None],
            children=[_bytes([name.encode() for name, _ in all_headers], pa.string()), _bytes([value for _, value in all_headers])],
        )
        buffers = [_validity([bool(record.headers) for record in records]), _ends(len(record.headers) for record in records)]
        columns["headers"] = pa.ListArray.from_buffers(pa.list_(entries.type), count, buffers, children=[entries])
    return pa.RecordBatch.from_arrays([*columns.values()], names=[*columns])


def _positions(records: Sequence[LogRecord] | Sequence[CutRecord], moments: Sequence[int]) -> dict[str, Any]:
    """Return the columns that say where records stand, and when they were written (epoch milliseconds)."""
    import pyarrow as pa

    return {
        "topic": _bytes([record.topic.encode() for record in records], pa.string()),
        "partition": _numbers("i", [record.partition for record in records], pa.int32()),
        "offset": _numbers("q", [record.offset for record in records], pa.int64()),
        "timestamp": _numbers("q", [1000 * moment for moment in moments], pa.timestamp("us", "UTC")),
    }


def _cut_table(records: Sequence[CutRecord]) -> pyarrow.RecordBatch:
    import pyarrow as pa

    problems = [None if record.problem is None else record.problem.encode() for record in records]
    columns = {
        **_positions(records, [record.timestamp for record in records]),
        "kfp": _numbers("q", [record.kfp for record in records], pa.int64()),
        "vfp": _numbers("q", [record.vfp for record in records], pa.int64()),
        "key": _bytes([record.key for record in records], pa.string()),
        "value": _bytes([record.value for record in records], pa.string()),
        "problem": _bytes(problems, pa.string()),
        "route": _bytes([None] * len(records), pa.string()),
    }
    return pa.RecordBatch.from_arrays([*columns.values()], names=[*columns])


# By buffers, since `pyarrow.array` imports pandas where it is installed: half a second, and 40 MB for good.


def _bytes(values: Sequence[bytes | None], type_: Any = None) -> Any:
    import pyarrow as pa

    ends = _ends(0 if value is None else len(value) for value in values)
    data = pa.py_buffer(b"".join(value for value in values if value is not None))
    return pa.Array.from_buffers(type_ or pa.binary(), len(values), [_validity([value is not None for value in values]), ends, data])


def _numbers(code: str, values: Sequence[int | None], type_: Any) -> Any:
    import pyarrow as pa

    data = array(code, [0 if value is None else value for value in values]).tobytes()
    return pa.Array.from_buffers(type_, len(values), [_validity([value is not None for value in values]), pa.py_buffer(data)])


def _ends(lengths: Iterable[int]) -> Any:
    """Return where values begin and the last one ends."""
    import pyarrow as pa

    return pa.py_buffer(array("i", accumulate(lengths, initial=0)).tobytes())


def _validity(present: Sequence[bool]) -> Any:
    """Return a bit for each value, the first one the lowest; None if all are there."""
    import pyarrow as pa

    if all(present):
        return None
    bits = sum(1 << number for number, is_there in enumerate(present) if is_there)
    return pa.py_buffer(bits.to_bytes((len(present) + 7) // 8, "little"))
