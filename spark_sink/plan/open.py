"""Which driver of batches a configuration asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_sink.config.sink_config import SinkConfig
from spark_sink.plan.loop import LoopDriver
from spark_sink.plan.stream import StreamDriver
from spark_sink.plan.triggers import Driver
from spark_sink.read.reader import Reader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def open_driver(spark: SparkSession, config: SinkConfig, reader: Reader, connector: str) -> Driver:
    """The driver of the configuration's source mode."""
    return StreamDriver(spark, config, reader, connector) if config["source.mode"] == "stream" else LoopDriver(config)
