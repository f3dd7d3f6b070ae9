"""The connector class: validation, and the tasks' configurations (`MongoDbSinkConnector.java`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from connect_py.api import ConfigDef, ConfigValue, SinkTask
from connectors.engine.sink_records import UniformSinkConnector
from connectors.mongodb.config import VERSION
from connectors.mongodb.sink.config import CONNECTION, DEFINITION


class MongoDbSinkConnector(UniformSinkConnector):
    """Writes change events into collections, by as many tasks as are allowed."""

    java_name: ClassVar[str] = "io.debezium.connector.mongodb.MongoDbSinkConnector"
    java_task_name: ClassVar[str] = "io.debezium.connector.mongodb.sink.MongoDbSinkConnectorTask"
    version: ClassVar[str] = VERSION
    open_prefixes: ClassVar[tuple[str, ...]] = ("mongodb.", "truncate.enabled")

    @classmethod
    def config_def(cls) -> ConfigDef:
        """Return the definition of every property."""
        return DEFINITION

    def validate(self, config: Mapping[str, str | None]) -> list[ConfigValue]:
        """Check the values and, when there is nothing wrong with them, ask the server; `mongodb.connection.string` shows its failure."""
        found = self.check_config(config)
        if not any(value.errors for value in found):
            # the driver is loaded only here: a worker that hosts no MongoDB connector needs none
            from connectors.mongodb.server.validation import sink_problem

            problem = sink_problem(config)
            if problem:
                next(value for value in found if value.name == CONNECTION).errors.append(problem)
        return found

    def task_class(self) -> type[SinkTask]:
        """Return the class of its tasks."""
        from connectors.mongodb.sink.task import MongoDbSinkTask

        return MongoDbSinkTask
