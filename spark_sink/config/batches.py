"""Which offsets are taken at a time, and when."""

from __future__ import annotations

import os

from connect_py.api.config import ConfigType, Importance, between, non_empty, one_of
from spark_sink.config.key import key

KEYS = (
    key(
        "source.mode",
        "loop",
        "loop: the task plans offset ranges and Spark reads them; no checkpoint directory is needed. stream: Structured Streaming "
        "plans them, with a checkpoint under lakehouse.checkpoint.location; the tables' offsets decide there too.",
        validator=one_of("loop", "stream"),
        group="Batches",
    ),
    key(
        "checkpoint.location",
        None,
        "With lakehouse.source.mode=stream: directory or URI that the task reaches wherever it runs; each connector has a directory in it.",
        validator=non_empty,
        group="Batches",
    ),
    key(
        "control.commit.interval-ms",
        60000,
        "Time between the starts of two batches; a backlog of lakehouse.max-offsets-per-trigger does not wait.",
        ConfigType.INT,
        validator=between(0),
        importance=Importance.HIGH,
        group="Batches",
    ),
    key(
        "trigger",
        "processing-time",
        "processing-time: go on for ever. available-now: apply what Kafka holds at the task's start, in bounded batches, and rest then.",
        validator=one_of("processing-time", "available-now"),
        group="Batches",
    ),
    key(
        "min-offsets-per-trigger",
        0,
        "Fewer offsets than this wait for more, for lakehouse.max-trigger-delay-ms at most.",
        ConfigType.LONG,
        validator=between(0),
        group="Batches",
    ),
    key(
        "max-trigger-delay-ms",
        900000,
        "With lakehouse.min-offsets-per-trigger: the longest time between the starts of two batches while records wait.",
        ConfigType.LONG,
        validator=between(0),
        group="Batches",
    ),
    key("max-offsets-per-trigger", 100000, "Upper bound of a batch, in offsets.", ConfigType.LONG, validator=between(1), group="Batches"),
    key(
        "batch.adaptive",
        False,
        "Halve the bound of a batch when one runs out of memory or time, and let it grow again by a quarter while batches take less than "
        "half of lakehouse.control.commit.interval-ms. With lakehouse.source.mode=loop only: Spark's own plans cannot be changed.",
        ConfigType.BOOLEAN,
        group="Batches",
    ),
    key(
        "control.commit.threads",
        os.cpu_count() or 1,
        "How many tables are written at once, each in a Spark session of its own; by default as many as the task's machine has cores. "
        "With lakehouse.spark.remote always one.",
        ConfigType.INT,
        validator=between(1),
        group="Batches",
    ),
    key(
        "control.commit.timeout-ms",
        300000,
        "How long one table's part of a batch may take to be written. Then its jobs are cancelled and the batch is tried again.",
        ConfigType.LONG,
        validator=between(1),
        group="Batches",
    ),
    key(
        "control.commit.max-consecutive-failures",
        5,
        "After so many failed batches in a row the task fails.",
        ConfigType.INT,
        validator=between(1),
        group="Batches",
    ),
    key(
        "starting-offsets",
        "earliest",
        "Where to start in partitions of which neither the tables nor the consumer group know a position.",
        validator=one_of("earliest", "latest"),
        group="Batches",
    ),
    key(
        "errors.max-per-batch",
        1000,
        "With errors.tolerance=all: more bad records than this in one batch fail the task. So many are a fault of the configuration.",
        ConfigType.INT,
        validator=between(0),
        group="Batches",
    ),
    key(
        "fail-on-data-loss",
        True,
        "Fail when Kafka has deleted offsets that were still to be read; false goes on with the first one that is left.",
        ConfigType.BOOLEAN,
        group="Batches",
    ),
)
