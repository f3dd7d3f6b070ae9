"""The sink connector: checks configurations; all work is one task's, because Spark divides it inside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from connect_py import __version__
from connect_py.api.config import ConfigDef, ConfigValue
from connect_py.api.connector import SinkConnector
from connect_py.api.doctor import Diagnosis
from connect_py.api.task import BatchSinkTask
from connect_py.errors import ConfigError
from spark_sink import offsets as offsets_of_tables
from spark_sink.config import sink_config as configuration
from spark_sink.doctor.diagnose import diagnose
from spark_sink.spark import jars
from spark_sink.task import SparkLakehouseSinkTask


class SparkLakehouseSink(SinkConnector):
    """Keep lakehouse tables equal to what topics of change events say."""

    java_name: ClassVar[str] = "io.github.connectpy.spark.SparkLakehouseSink"
    java_task_name: ClassVar[str] = "io.github.connectpy.spark.SparkLakehouseSinkTask"
    version: ClassVar[str] = __version__
    open_prefixes: ClassVar[tuple[str, ...]] = ("lakehouse.", "iceberg.")  # `validate` refuses what it does not know of these

    client_prefixes: ClassVar[tuple[str, ...]] = ("lakehouse.kafka.", "iceberg.kafka.")

    @classmethod
    def config_def(cls) -> ConfigDef:
        return configuration.CONFIG_DEF

    def validate(self, config: Mapping[str, str | None]) -> list[ConfigValue]:
        """Check what `check_config` checks, and that Spark and Java are installed."""
        values = self.check_config(config)
        try:
            jars.pyspark_home()
            jars.java()
        except ConfigError as error:
            _add_error(values, config, "lakehouse.spark.master", str(error))
        return values

    def check_config(self, config: Mapping[str, str | None]) -> list[ConfigValue]:
        """Check what the definition says, and that both spellings agree and nothing is misspelt."""
        renamed, errors = configuration.without_aliases(config)
        errors |= {name: f"{name} is not a property of the lakehouse sink." for name in configuration.unknown_properties(renamed)}
        values = configuration.CONFIG_DEF.validate(renamed)
        errors |= configuration.refused_settings(renamed)
        if not errors and not any(value.errors for value in values):
            try:
                configuration.parse({name: value for name, value in config.items() if value is not None})
            except ConfigError as error:
                errors["lakehouse.catalog"] = str(error)
        for name, message in errors.items():
            _add_error(values, config, name, message)
        return values

    def doctor(self, config: Mapping[str, str], *, is_running: bool = False) -> Diagnosis:
        """Look at the machine's libraries, disk and warehouse, at the catalog and at the bucket. Raises ConfigError."""
        return diagnose(config)

    def start(self, config: Mapping[str, str]) -> None:
        configuration.parse(config)
        self._config = dict(config)

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """Return one task: a table must have one writer, and Spark uses all cores from it."""
        return [dict(self._config)]

    def task_class(self) -> type[BatchSinkTask]:
        return SparkLakehouseSinkTask

    def alter_offsets(self, config: Mapping[str, str], offsets: Mapping[tuple[str, int], int | None]) -> bool:
        """Change the tables' watermarks, which hold the offsets, in a process of its own with Spark in it (`spark_sink.offsets`)."""
        offsets_of_tables.alter({name: value for name, value in config.items() if value is not None}, offsets)
        return True


def _add_error(values: list[ConfigValue], config: Mapping[str, str | None], name: str, message: str) -> None:
    value = next((each for each in values if each.name == name), None)
    if value is None:
        value = ConfigValue(name, config.get(name))
        values.append(value)
    value.errors.append(message)
