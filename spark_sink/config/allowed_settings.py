"""The Spark settings that a connector may make. Pure.

A connector's configuration must not give more of the worker's machine than the connector's work. Spark's settings can run commands
(``-XX:OnOutOfMemoryError=…``, ``fs.azure.shellkeyprovider.script``), load classes by name, fetch libraries from an address, or have the
driver deserialize what another cluster's executors send. So there is a list of settings that only tune, and of the names and credentials
of file systems.

The worker's operator can allow more: ``CONNECT_PY_SPARK_SETTINGS`` in the worker's environment, beginnings of Spark's names separated by
commas (``spark.jars,spark.hadoop.hive.``).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping

#: The variable of the worker's environment by which its operator allows more.
SWITCH = "CONNECT_PY_SPARK_SETTINGS"

#: Settings that only tune. Those that end in a dot are beginnings of names.
_HARMLESS = frozenset(
    """
    spark.authenticate spark.authenticate.secret spark.blockManager.port spark.cores.max spark.default.parallelism
    spark.driver.bindAddress spark.driver.blockManager.port spark.driver.cores spark.driver.host spark.driver.maxResultSize
    spark.driver.memory spark.driver.memoryOverhead spark.driver.memoryOverheadFactor spark.driver.port
    spark.executor.cores spark.executor.heartbeatInterval spark.executor.instances spark.executor.memory spark.executor.memoryOverhead
    spark.executor.memoryOverheadFactor spark.executor.pyspark.memory
    spark.cleaner. spark.dynamicAllocation. spark.locality. spark.memory. spark.task.
    spark.io.compression.lz4. spark.io.compression.snappy. spark.io.compression.zstd. spark.io.encryption.enabled
    spark.kryoserializer.buffer spark.kryoserializer.buffer.max spark.local.dir
    spark.network.crypto.enabled spark.network.maxRemoteBlockSizeFetchToMem spark.network.timeout spark.network.timeoutInterval
    spark.port.maxRetries spark.reducer.maxSizeInFlight spark.rpc.askTimeout spark.rpc.lookupTimeout spark.rpc.message.maxSize
    spark.rpc.numRetries spark.scheduler.listenerbus.eventqueue.capacity spark.scheduler.maxRegisteredResourcesWaitingTime
    spark.scheduler.minRegisteredResourcesRatio spark.scheduler.revive.interval
    spark.shuffle.compress spark.shuffle.file.buffer spark.shuffle.io.maxRetries spark.shuffle.io.retryWait
    spark.shuffle.registration.timeout spark.shuffle.service.enabled spark.shuffle.service.port spark.shuffle.sort.bypassMergeThreshold
    spark.shuffle.spill.compress spark.speculation spark.speculation. spark.storage.memoryMapThreshold
    spark.ui.enabled spark.ui.port spark.ui.retainedJobs spark.ui.retainedStages spark.ui.retainedTasks spark.ui.showConsoleProgress
    spark.databricks.delta. spark.sql.iceberg.
    spark.sql.adaptive. spark.sql.autoBroadcastJoinThreshold spark.sql.broadcastTimeout spark.sql.cbo. spark.sql.codegen.
    spark.sql.execution.arrow.maxRecordsPerBatch spark.sql.files. spark.sql.inMemoryColumnarStorage. spark.sql.join.
    spark.sql.maxMetadataStringLength spark.sql.maxPlanStringLength spark.sql.objectHashAggregate.
    spark.sql.optimizer.runtime. spark.sql.optimizer.windowGroupLimitThreshold
    spark.sql.parquet.columnarReaderBatchSize spark.sql.parquet.enableVectorizedReader spark.sql.parquet.filterPushdown
    spark.sql.shuffle.partitions spark.sql.sources.parallelPartitionDiscovery. spark.sql.statistics.
    spark.sql.streaming.minBatchesToRetain spark.sql.streaming.numRecentProgressUpdates spark.sql.streaming.pollingDelay
    spark.sql.streaming.stopTimeout spark.sql.subquery. spark.sql.ui.retainedExecutions spark.sql.warehouse.dir
    spark.sql.windowExec.
    """.split()  # noqa: SIM905  # a hundred quoted words read worse
)

#: File systems' names and credentials, without ``spark.hadoop.`` before them. Not among them: what names a class or a command, such as
#: ``fs.azure.shellkeyprovider.script`` and ``fs.s3a.custom.signers``.
_FILE_SYSTEMS = tuple(
    map(
        re.compile,
        (
            r"fs\.defaultFS",
            r"fs\.s3a\.(bucket\.[^\s]+\.)?(access\.key|secret\.key|session\.token|endpoint|endpoint\.region|endpoint\.fips|path\.style\.access)",
            r"fs\.s3a\.(bucket\.[^\s]+\.)?(connection\.[\w.]+|threads\.\w+|max\.total\.tasks|attempts\.maximum|retry\.[\w.]+|requester\.pays\.enabled)",
            r"fs\.s3a\.(bucket\.[^\s]+\.)?(block\.size|multipart\.\w+|fast\.upload\.\w+|readahead\.range|input\.fadvise|encryption\.(algorithm|key))",
            r"fs\.s3a\.(bucket\.[^\s]+\.)?(assumed\.role\.(arn|external\.id|session\.name|session\.duration|sts\.endpoint(\.region)?))",
            r"fs\.s3a\.(bucket\.[^\s]+\.)?(proxy\.(host|port|username|password|domain))",
            r"fs\.azure\.account\.(key|auth\.type)(\.[\w.-]+)?",
            r"fs\.azure\.account\.oauth2\.(client\.(id|secret|endpoint)|msi\.(tenant|endpoint)|user\.\w+|refresh\.token)(\.[\w.-]+)?",
            r"fs\.azure\.sas\.fixed\.token(\.[\w.-]+)?",
            r"fs\.azure\.sas\.[\w-]+\.[\w-]+\.blob\.[\w.]+",
            r"fs\.azure\.account\.hns\.enabled(\.[\w.-]+)?",
            r"fs\.gs\.(project\.id|system\.bucket|auth\.type|auth\.service\.account\.[\w.]+|auth\.client\.(id|secret)|storage\.root\.url)",
            r"google\.cloud\.auth\.service\.account\.[\w.]+",
        ),
    )
)

#: Properties that name a class, by what their names end in.
_NAMES_A_CLASS = re.compile(r"(?i)(impl|class|factory|provider|reporter|handler|type)(\.[\w-]+\.(dfs|blob)\.[\w.]+)?$")

#: Packages of the formats, their catalogs and their storage: naming one of these classes chooses an implementation and runs nothing else.
_PACKAGES = (
    "io.delta.",
    "io.unitycatalog.",
    "org.apache.iceberg.",
    "org.apache.spark.sql.delta.",
    "org.projectnessie.",
    "software.amazon.awssdk.auth.credentials.",
)
#: Of Hadoop's file systems, by the property that names them.
_HADOOP_CLASSES = {
    re.compile(r"fs\.(s3|s3a|s3n)\.impl"): ("org.apache.hadoop.fs.s3a.",),
    re.compile(r"fs\.(abfs|abfss)\.impl"): (
        "org.apache.hadoop.fs.azurebfs.AzureBlobFileSystem",
        "org.apache.hadoop.fs.azurebfs.SecureAzureBlobFileSystem",
    ),
    re.compile(r"fs\.AbstractFileSystem\.(abfs|abfss)\.impl"): ("org.apache.hadoop.fs.azurebfs.Abfs",),
    re.compile(r"fs\.(AbstractFileSystem\.)?gs\.impl"): ("com.google.cloud.hadoop.fs.gcs.",),
    re.compile(r"fs\.s3a\.(bucket\.[^\s]+\.)?aws\.credentials\.provider(\.mapping)?"): (
        "org.apache.hadoop.fs.s3a.",
        "software.amazon.awssdk.auth.credentials.",
        "com.amazonaws.auth.",
    ),
    re.compile(r"fs\.azure\.account\.oauth\.provider\.type(\.[\w.-]+)?"): ("org.apache.hadoop.fs.azurebfs.oauth2.",),
}

#: Options of a JVM that neither name a file, a command or an agent nor set what code reads.
_JVM_OPTION = re.compile(
    r"-Xm[sx]\d+[kmgKMG]?|-Xss\d+[kmgKMG]?|-XX:TieredStopAtLevel=[0-4]|-XX:[+-]Use(Parallel|Serial|G1|Z|Shenandoah)GC"
    r"|-XX:[+-]Use(LargePages|TransparentHugePages)"
    r"|-XX:(ReservedCodeCacheSize|MaxDirectMemorySize|MaxMetaspaceSize|MetaspaceSize)=\d+[kmgKMG]?"
    r"|-XX:(ActiveProcessorCount|ParallelGCThreads|ConcGCThreads|MaxGCPauseMillis|MaxRAMPercentage|InitialRAMPercentage)=[\d.]+"
)


def _is_jvm_tuning(value: str) -> bool:
    return all(_JVM_OPTION.fullmatch(option) for option in value.split())


def _is_one_of(*values: str) -> Callable[[str], bool]:
    return lambda value: value.strip().lower() in values


#: Settings of which only some values are harmless.
_BY_VALUE: Mapping[str, Callable[[str], bool]] = {
    "spark.driver.extraJavaOptions": _is_jvm_tuning,
    "spark.executor.extraJavaOptions": _is_jvm_tuning,
    "spark.io.compression.codec": _is_one_of("lz4", "lzf", "snappy", "zstd"),
    "spark.serializer": _is_one_of("org.apache.spark.serializer.kryoserializer", "org.apache.spark.serializer.javaserializer"),
    "spark.sql.catalogImplementation": _is_one_of("hive", "in-memory"),
    "spark.sql.parquet.compression.codec": _is_one_of("none", "uncompressed", "snappy", "gzip", "lzo", "lz4", "brotli", "zstd", "lz4_raw"),
}

#: The sink makes these itself; other values would break what it promises.
_OWN = {
    "spark.sql.extensions": "both formats' extensions are loaded always",
    "spark.sql.session.timeZone": "conversions rely on UTC",
    "spark.sql.ansi.enabled": "a value that does not fit must be an error",
    "spark.sql.variable.substitute": "a name in a record must not become what it names on the worker",
    "spark.executor.extraClassPath": "libraries are named by lakehouse.spark.jars",
}


def refusals(config: Mapping[str, str], catalog: str) -> dict[str, str]:
    """Return why properties are not allowed, by property.

    Args:
        config: properties by their names without ``lakehouse.``.
        catalog: the name of Spark's catalog.
    """
    allowed = tuple(part.strip() for part in os.environ.get(SWITCH, "").split(",") if part.strip())
    found: dict[str, str] = {}
    for name, value in config.items():
        if (refused := _refusal(name, value, catalog, allowed)) is not None:
            found[name] = refused
    return found


def _refusal(name: str, value: str, catalog: str, allowed: tuple[str, ...]) -> str | None:
    setting, is_harmless = _judged(name, value, catalog)
    if setting is None or setting.startswith(allowed):
        return None
    if setting in _OWN:
        return f"lakehouse.{name} cannot be set: {_OWN[setting]}."
    if is_harmless:
        return None
    switch = (
        f"The worker's operator can allow it in the worker's environment: {SWITCH}={setting} (beginnings of names, separated by commas)."
    )
    return f"lakehouse.{name} is not a setting that connectors may make{_WHY.get(name, '')}. {switch}"


_WHY = {
    "spark.jars": ": what a jar holds runs as the worker",
    "spark.master": " with a value other than local[…]: the worker's JVM deserializes what a cluster's executors send",
}


def _judged(name: str, value: str, catalog: str) -> tuple[str | None, bool]:
    """Return the Spark setting that a property makes (None for other properties), and whether this value of it is harmless."""
    if name == "spark.jars":
        return name, not value.strip()
    if name == "spark.master":
        return name, re.fullmatch(r"local(\[[\w*,. ]+\])?", value.strip()) is not None
    prefix, _, rest = name.partition(".")
    if prefix == "hadoop":
        return f"spark.hadoop.{rest}", _is_of_file_system(rest, value)
    if prefix == "catalog":
        below_hadoop = rest.startswith("hadoop.")
        is_harmless = _is_of_file_system(rest.removeprefix("hadoop."), value) if below_hadoop else _names_no_other_class(rest, value)
        return f"spark.sql.catalog.{catalog}.{rest}", is_harmless
    if name.startswith("tables.auto-create-props."):
        return name, _names_no_other_class(name, value)
    if not name.startswith("spark.conf."):
        return None, True
    setting = name.removeprefix("spark.conf.")
    if setting.startswith("spark.hadoop."):
        return setting, _is_of_file_system(setting.removeprefix("spark.hadoop."), value)
    if (accepts := _BY_VALUE.get(setting)) is not None:
        return setting, accepts(value)
    return setting, _is_listed(setting, _HARMLESS)


def _is_listed(setting: str, listed: Iterable[str]) -> bool:
    return any(setting == known or (known.endswith(".") and setting.startswith(known)) for known in listed)


def _is_of_file_system(name: str, value: str) -> bool:
    for pattern, packages in _HADOOP_CLASSES.items():
        if pattern.fullmatch(name):
            return all(part.strip().startswith(packages) for part in value.split(","))
    return any(pattern.fullmatch(name) for pattern in _FILE_SYSTEMS)


def _names_no_other_class(name: str, value: str) -> bool:
    """Return whether a property of a catalog or a table names no class, or a known one."""
    return not _NAMES_A_CLASS.search(name) or "." not in value or all(part.strip().startswith(_PACKAGES) for part in value.split(","))
