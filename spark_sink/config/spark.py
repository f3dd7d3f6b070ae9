"""Where Spark runs."""

from __future__ import annotations

from connect_py.api.config import ConfigType, Importance, non_empty
from spark_sink.config.key import key

KEYS = (
    key(
        "spark.master",
        "local[*]",
        "Where Spark runs. Any further setting of Spark is lakehouse.spark.conf.<setting>.",
        validator=non_empty,
        importance=Importance.HIGH,
        group="Spark",
    ),
    key(
        "spark.remote",
        None,
        "sc://host:port/;…: a Spark Connect server that does the work, in place of lakehouse.spark.master. It needs the "
        "formats' libraries and extensions.",
        ConfigType.PASSWORD,
        importance=Importance.HIGH,
        group="Spark",
    ),
    key(
        "spark.jars",
        None,
        "Jars for Spark, separated by commas: nothing is resolved at start. "
        "Without it the sink's libraries are fetched once from Maven Central.",
        ConfigType.LIST,
        group="Spark",
    ),
)
