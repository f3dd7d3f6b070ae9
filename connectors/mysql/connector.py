"""The connector classes: validation, and the configuration of the one task."""

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
from connectors.mysql.config.config import VERSION, validate_config
from connectors.mysql.config.properties import EXTENSIONS, UNLISTED, WITHOUT_EFFECT, properties_of
from connectors.mysql.position.offset import MySqlOffset


class MySqlConnector(SourceConnector):
    """Captures the changes of one MySQL server, by one task whatever `tasks.max` says."""

    java_name: ClassVar[str] = "io.debezium.connector.mysql.MySqlConnector"
    java_task_name: ClassVar[str] = "io.debezium.connector.mysql.MySqlConnectorTask"
    version: ClassVar[str] = VERSION
    open_prefixes: ClassVar[tuple[str, ...]] = (*OPEN_PREFIXES, *OLD_NAMES, *UNLISTED, *EXTENSIONS, "database.history")
    without_effect: ClassVar[Mapping[str, str]] = {name: why for name, (_, why) in WITHOUT_EFFECT.items()}
    #: As records call it.
    connector: ClassVar[str] = "mysql"

    _config: Mapping[str, str]

    @classmethod
    def config_def(cls) -> ConfigDef:
        """Return every property."""
        return definition(properties_of(cls.connector))

    def validate(self, config: Mapping[str, str | None]) -> list[ConfigValue]:
        """Return every property's value and problems; when there are none, a connection to the server is tried (`database.hostname` shows
        its failure)."""
        found = self.check_config(config)
        if not any(value.errors for value in found):
            # the driver is loaded only here: a worker that hosts no MySQL connector needs none
            from connectors.mysql.server.validation import connection_problem

            problem = connection_problem(config, self.connector)
            if problem:
                next(value for value in found if value.name == "database.hostname").errors.append(problem)
        return found

    def check_config(self, config: Mapping[str, str | None]) -> list[ConfigValue]:
        """Check every property."""
        return validate_config(config, self.connector)

    def doctor(self, config: Mapping[str, str], *, is_running: bool = False) -> Diagnosis:
        """Look at the server, its tables, and the topic of the schema history. Raises ConfigError."""
        from connectors.mysql.doctor import diagnose

        return diagnose(config, self.connector, is_running=is_running)

    def start(self, config: Mapping[str, str]) -> None:
        """Keep the configuration; the task parses it."""
        self._config = config

    def exactly_once_support(self, config: Mapping[str, str]) -> bool:
        """A position names one change."""
        return True

    def facts_reader(self, config: Mapping[str, str]) -> SourceFactsReader:
        """Return what asks the server for the state of its log. Raises ConfigError."""
        from connectors.mysql.facts import MySqlFactsReader

        return MySqlFactsReader(config, self.connector)

    def list_tables(self, config: Mapping[str, str]) -> SourceTables:
        """Return the tables of the server. Raises ConnectError."""
        from connectors.mysql.listing import list_tables

        return list_tables(config, self.connector)

    def task_class(self) -> type[SourceTask]:
        """Return the class of tasks."""
        from connectors.mysql.task import MySqlConnectorTask

        return MySqlConnectorTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """Return one configuration, whatever the maximum."""
        return [dict(self._config)]

    def alter_offsets(self, config: Mapping[str, str], offsets: Sequence[tuple[SourcePartition, SourceOffset | None]]) -> bool:
        """Accept offsets of this connector's one partition. Raises BadRequestError."""
        return check_offsets(offsets, MySqlOffset.load)


class MariaDbConnector(MySqlConnector):
    """Captures the changes of one MariaDB server."""

    java_name: ClassVar[str] = "io.debezium.connector.mariadb.MariaDbConnector"
    java_task_name: ClassVar[str] = "io.debezium.connector.mariadb.MariaDbConnectorTask"
    connector: ClassVar[str] = "mariadb"

    def task_class(self) -> type[SourceTask]:
        """Return the class of tasks."""
        from connectors.mysql.task import MariaDbConnectorTask

        return MariaDbConnectorTask
