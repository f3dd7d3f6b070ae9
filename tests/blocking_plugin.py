"""Sources and a sink that block in one of their methods for as long as a file exists (`BlockingConnectorTest.java`). A plugin by itself, as
`tests.counting_plugin` is: `tests.cluster` puts this file into a folder of ``plugin.path``.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from connect_py.api import (
    ConfigDef,
    ConfigKey,
    ConfigType,
    ConfigValue,
    ConnectorContext,
    Importance,
    SinkConnector,
    SinkRecord,
    SinkTask,
    SinkTaskContext,
    SourceConnector,
    SourceRecord,
    SourceTask,
    SourceTaskContext,
)

_DEFINITION = ConfigDef(
    [
        ConfigKey("block", ConfigType.STRING, "", Importance.HIGH, "Where to block, such as Connector::start or Task::stop."),
        ConfigKey("while", ConfigType.STRING, "", Importance.HIGH, "The file that blocks; one with .reached at its end says where it is."),
    ]
)


def block(config: Mapping[str, str | None], place: str) -> None:
    """Say that the place is reached, and wait there."""
    if config.get("block") != place:
        return
    path = Path(config["while"] or "")
    path.with_suffix(".reached").touch()
    while path.exists():
        time.sleep(0.05)  # noqa: TID251  # it is what it is for


#: Names the place to block in where the configuration is not known yet, and blocks it while it exists.
BLOCKS = Path(__file__).with_name("blocks")


def block_early(place: str) -> None:
    """As `block`, of places that see no configuration."""
    if BLOCKS.exists():
        block({"block": BLOCKS.read_text(), "while": str(BLOCKS)}, place)


class BlockingSource(SourceConnector):
    java_name = "tests.BlockingSource"
    java_task_name = "tests.BlockingSourceTask"
    version = "1"

    def __init__(self) -> None:
        self._config: Mapping[str, str] = {}

    @classmethod
    def config_def(cls) -> ConfigDef:
        block_early("Connector::config")
        return _DEFINITION

    def initialize(self, context: ConnectorContext) -> None:
        super().initialize(context)
        block_early("Connector::initialize")

    def validate(self, config: Mapping[str, str | None]) -> list[ConfigValue]:
        block(config, "Connector::validate")
        return super().validate(config)

    def start(self, config: Mapping[str, str]) -> None:
        self._config = config
        block(config, "Connector::start")

    def stop(self) -> None:
        block(self._config, "Connector::stop")

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        block(self._config, "Connector::taskConfigs")
        return [dict(self._config)]

    def task_class(self) -> type[SourceTask]:
        return BlockingSourceTask


class BlockingSourceTask(SourceTask):
    def start(self, config: Mapping[str, str], context: SourceTaskContext) -> None:
        self._config = config
        block(config, "Task::start")

    def poll(self) -> Sequence[SourceRecord] | None:
        time.sleep(0.05)  # noqa: TID251
        return None

    def stop(self) -> None:
        block(self._config, "Task::stop")


class BlockingSink(SinkConnector):
    java_name = "tests.BlockingSink"
    java_task_name = "tests.BlockingSinkTask"
    version = "1"

    @classmethod
    def config_def(cls) -> ConfigDef:
        return _DEFINITION

    def start(self, config: Mapping[str, str]) -> None:
        self._config = config

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [dict(self._config)]

    def task_class(self) -> type[SinkTask]:
        return BlockingSinkTask


class BlockingSinkTask(SinkTask):
    def start(self, config: Mapping[str, str], context: SinkTaskContext) -> None:
        self._config = config
        block(config, "Task::start")

    def put(self, records: Sequence[SinkRecord]) -> None:
        """Takes whatever comes."""

    def stop(self) -> None:
        block(self._config, "Task::stop")
