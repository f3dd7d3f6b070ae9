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
from connectors.postgres.config import VERSION, parse_config, validate_config
from connectors.postgres.position.offset import PostgresOffset
from connectors.postgres.properties import EXTENSIONS, PROPERTIES, UNLISTED, WITHOUT_EFFECT


class PostgresConnector(SourceConnector):
    """Captures the changes of one PostgreSQL database, by one task whatever `tasks.max` says."""

    java_name: ClassVar[str] = "io.debezium.connector.postgresql.PostgresConnector"
    java_task_name: ClassVar[str] = "io.debezium.connector.postgresql.PostgresConnectorTask"
    version: ClassVar[str] = VERSION
    open_prefixes: ClassVar[tuple[str, ...]] = (*OPEN_PREFIXES, *OLD_NAMES, *UNLISTED, *EXTENSIONS)
    without_effect: ClassVar[Mapping[str, str]] = {name: why for name, (_, why) in WITHOUT_EFFECT.items()}

    _config: Mapping[str, str]

    @classmethod
    def config_def(cls) -> ConfigDef:
        """Return the definition of every property."""
        return definition(PROPERTIES)

    def validate(self, config: Mapping[str, str | None]) -> list[ConfigValue]:
        """Check every property; where all are sound, try to connect to the server (`database.hostname` shows its failure)."""
        found = self.check_config(config)
        if not any(value.errors for value in found):
            # the driver is loaded only here: a worker that hosts no PostgreSQL connector needs none
            from connectors.postgres.server.validation import connection_problem

            problem = connection_problem(config)
            if problem:
                next(value for value in found if value.name == "database.hostname").errors.append(problem)
        return found

    def check_config(self, config: Mapping[str, str | None]) -> list[ConfigValue]:
        """Check every property."""
        return validate_config(config)

    def doctor(self, config: Mapping[str, str], *, is_running: bool = False) -> Diagnosis:
        """Look at the server, its tables, the publication and the slot. Raises ConfigError."""
        from connectors.postgres.doctor import diagnose

        return diagnose(config, is_running=is_running)

    def start(self, config: Mapping[str, str]) -> None:
        """Take the configuration. Raises ConfigError."""
        parse_config(config)
        self._config = config

    def exactly_once_support(self, config: Mapping[str, str]) -> bool:
        """A position names one change."""
        return True

    def facts_reader(self, config: Mapping[str, str]) -> SourceFactsReader:
        """Return what asks the server for the state of its log. Raises ConfigError."""
        from connectors.postgres.facts import PostgresFactsReader

        return PostgresFactsReader(config)

    def list_tables(self, config: Mapping[str, str]) -> SourceTables:
        """Return the tables of the database. Raises ConnectError."""
        from connectors.postgres.listing import list_tables

        return list_tables(config)

    def task_class(self) -> type[SourceTask]:
        """Return the class of its task."""
        from connectors.postgres.task import PostgresConnectorTask

        return PostgresConnectorTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """Return one configuration: there is always one task."""
        return [dict(self._config)]

    def alter_offsets(self, config: Mapping[str, str], offsets: Sequence[tuple[SourcePartition, SourceOffset | None]]) -> bool:
        """Check that the offsets are of this connector's one partition. Raises BadRequestError."""
        return check_offsets(offsets, PostgresOffset.load)
