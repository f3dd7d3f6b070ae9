"""Which settings of Spark a connector may make. Pure.

A list of what is allowed: a setting can load classes, replace what the sink's correctness rests on, or, misspelt, do nothing without
a word. The worker's environment can allow more: ``CONNECT_PY_SPARK_SETTINGS``, beginnings of names separated by commas.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from connect_py.errors import ConfigError

#: Beginnings of names; one without a dot at its end is a whole name.
_ALLOWED = (
    "spark.authenticate",
    "spark.blockManager.port",
    "spark.cleaner.",
    "spark.cores.max",
    "spark.databricks.delta.",
    "spark.default.parallelism",
    "spark.driver.bindAddress",
    "spark.driver.blockManager.port",
    "spark.driver.cores",
    "spark.driver.extraJavaOptions",
    "spark.driver.host",
    "spark.driver.maxResultSize",
    "spark.driver.memory",
    "spark.driver.memoryOverhead",
    "spark.driver.port",
    "spark.dynamicAllocation.",
    "spark.eventLog.",
    "spark.executor.",
    "spark.hadoop.",
    "spark.io.",
    "spark.kubernetes.",
    "spark.local.dir",
    "spark.locality.",
    "spark.memory.",
    "spark.network.",
    "spark.rpc.",
    "spark.scheduler.",
    "spark.serializer",
    "spark.shuffle.",
    "spark.sql.",
    "spark.storage.",
    "spark.task.",
    "spark.ui.",
    "spark.yarn.",
)

#: The sink makes these itself; other values would break what it promises.
_OWN = {
    "spark.sql.extensions": "both formats' extensions are loaded always",
    "spark.sql.session.timeZone": "conversions rely on UTC",
    "spark.sql.ansi.enabled": "a value that does not fit must be an error",
    "spark.executor.extraClassPath": "libraries are named by lakehouse.spark.jars",
}


def check(names: Iterable[str]) -> None:
    """Refuse what is not allowed.

    Raises:
        ConfigError: with the first name, and what to do.
    """
    more = [part.strip() for part in os.environ.get("CONNECT_PY_SPARK_SETTINGS", "").split(",") if part.strip()]
    for name in names:
        if any(name.startswith(beginning) for beginning in more):
            continue
        if name in _OWN:
            raise ConfigError(f"lakehouse.spark.conf.{name} cannot be set: {_OWN[name]}.")
        if not any(name == allowed or (allowed.endswith(".") and name.startswith(allowed)) for allowed in _ALLOWED):
            raise ConfigError(
                f"lakehouse.spark.conf.{name} is not a setting that connectors may make. If it is meant, allow it in the worker's "
                f"environment: CONNECT_PY_SPARK_SETTINGS={name}."
            )
