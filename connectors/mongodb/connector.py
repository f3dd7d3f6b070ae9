"""The connector class: validation, and the one task's configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from connect_py.api import (
    ConfigDef,
    ConfigValue,
    Diagnosis,
    SourceConnector,
    SourceFactsReader,
    SourceOffset,
    SourcePartition,
    SourceTables,
    SourceTask,
)
from connectors.engine.config import OLD_NAMES, OPEN_PREFIXES
from connectors.engine.properties import definition
from connectors.engine.stored_offsets import check_offsets
from connectors.mongodb.config import PROPERTIES, VERSION, WITHOUT_EFFECT, validate_config


class MongoDbConnector(SourceConnector):
    """Captures the changes of one replica set or sharded cluster, by one task whatever `tasks.max` says."""

    java_name: ClassVar[str] = "io.debezium.connector.mongodb.MongoDbConnector"
    java_task_name: ClassVar[str] = "io.debezium.connector.mongodb.MongoDbConnectorTask"
    version: ClassVar[str] = VERSION
    open_prefixes: ClassVar[tuple[str, ...]] = (
        *OPEN_PREFIXES,
        *OLD_NAMES,
        "capture.",
        "cursor.",
        "connect.backoff.",
        "connect.max.attempts",
        "field.name.adjustment.mode",
        "filters.match.mode",
        "incremental.snapshot.",
        "json.serialization.mode",
        "mongodb.",
        "snapshot.collection.filter.overrides.",
    )
    without_effect: ClassVar[Mapping[str, str]] = WITHOUT_EFFECT

    _config: Mapping[str, str]

    @classmethod
    def config_def(cls) -> ConfigDef:
        """Return the definition of every property."""
        return definition(PROPERTIES)

    def validate(self, config: Mapping[str, str | None]) -> list[ConfigValue]:
        """Check every property; where all are sound, try to connect to the server (`mongodb.connection.string` shows its failure)."""
        found = self.check_config(config)
        if not any(value.errors for value in found):
            # the driver is loaded only here: a worker that hosts no MongoDB connector needs none
            from connectors.mongodb.server.validation import connection_problem

            problem = connection_problem(config)
            if problem:
                next(value for value in found if value.name == "mongodb.connection.string").errors.append(problem)
        return found

    def check_config(self, config: Mapping[str, str | None]) -> list[ConfigValue]:
        """Check every property."""
        return validate_config(config)

    def doctor(self, config: Mapping[str, str], *, is_running: bool = False) -> Diagnosis:
        """Look at the deployment, the user's roles and the captured collections. Raises ConfigError, LostConnectionError."""
        from connectors.mongodb.doctor import diagnose

        return diagnose(config)

    def start(self, config: Mapping[str, str]) -> None:
        """Take the configuration; the task parses it."""
        self._config = config

    def exactly_once_support(self, config: Mapping[str, str]) -> bool:
        """A position names one change."""
        return True

    def facts_reader(self, config: Mapping[str, str]) -> SourceFactsReader:
        """Return what asks the server for the state of its log. Raises ConfigError."""
        from connectors.mongodb.facts import MongoFactsReader

        return MongoFactsReader(config)

    def list_tables(self, config: Mapping[str, str]) -> SourceTables:
        """Return the collections of the deployment. Raises ConnectError."""
        from connectors.mongodb.listing import list_tables

        return list_tables(config)

    def task_class(self) -> type[SourceTask]:
        """Return the class of its task."""
        from connectors.mongodb.task import MongoDbConnectorTask

        return MongoDbConnectorTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """Return one configuration: there is always one task."""
        return [dict(self._config)]

    def alter_offsets(self, config: Mapping[str, str], offsets: Sequence[tuple[SourcePartition, SourceOffset | None]]) -> bool:
        """Check that the offsets are of this connector's one partition. Raises BadRequestError."""
        from connectors.mongodb.position.offset import MongoOffset

        return check_offsets(offsets, MongoOffset.load, key="server_id", others=("rs",))
