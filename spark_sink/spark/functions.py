"""Functions of Python's that expressions of the sink use: a session must have them. They run on executors, over Arrow batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from connect_py.errors import DataError
from spark_sink.config.sink_config import SinkConfig
from spark_sink.spark.wkt import wkt
from spark_sink.types import geometry

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import SparkSession


def register(spark: SparkSession, config: SinkConfig) -> None:
    """Give a session the functions that a configuration needs."""
    if config["geometry.mode"] != "wkt":
        return
    from pyspark.sql.functions import arrow_udf

    # Without annotations: Spark would resolve them, and this module knows pyarrow's types only when it is checked.
    function = lambda values: to_texts(values)  # noqa: E731
    spark.udf.register(geometry.TO_TEXTS, arrow_udf(function, "texts array<string>, problem string"))


def to_texts(values: pyarrow.Array) -> pyarrow.Array:
    """See `spark_sink.types.geometry.TO_TEXTS`. A failure is told, not raised: Spark calls this for rows too that it is not asked for."""
    import pyarrow as pa

    type_ = pa.struct([("texts", pa.list_(pa.string())), ("problem", pa.string())])
    return pa.array([_told(value) for value in values.to_pylist()], type=type_)


def _told(wkbs: list[bytes | None] | None) -> dict[str, object]:
    try:
        texts = None if wkbs is None else [None if wkb is None else wkt(wkb) for wkb in wkbs]
    except DataError as error:
        return {"texts": None, "problem": str(error)}
    return {"texts": texts, "problem": None}
