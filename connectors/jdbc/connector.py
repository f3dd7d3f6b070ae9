"""The connector class: validation, and the tasks' configurations (`JdbcSinkConnector.java`)."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import ClassVar

from connect_py.api import ConfigDef, SinkTask
from connect_py.api.config import ConfigValue
from connectors.engine.sink_records import UniformSinkConnector
from connectors.jdbc.config import DEFINITION, UNLISTED, VERSION, WITHOUT_EFFECT, problems

if find_spec("sqlalchemy") is None:  # importing it takes time, which listing the plugins need not
    raise ImportError("SQLAlchemy is not installed", name="sqlalchemy")


class JdbcSinkConnector(UniformSinkConnector):
    """Writes change events into tables, by as many tasks as are allowed."""

    java_name: ClassVar[str] = "io.debezium.connector.jdbc.JdbcSinkConnector"
    java_task_name: ClassVar[str] = "io.debezium.connector.jdbc.JdbcSinkConnectorTask"
    version: ClassVar[str] = VERSION
    open_prefixes: ClassVar[tuple[str, ...]] = UNLISTED
    without_effect: ClassVar[Mapping[str, str]] = WITHOUT_EFFECT

    @classmethod
    def config_def(cls) -> ConfigDef:
        """Return the definition of every property."""
        return DEFINITION

    def check_config(self, config: Mapping[str, str | None]) -> list[ConfigValue]:
        """Check each property by itself, and what two of them say together."""
        found = DEFINITION.validate(config)
        by_name = {value.name: value for value in found}
        for name, message in problems(config):
            if not by_name[name].errors:
                by_name[name].errors.append(message)
        return found

    def task_class(self) -> type[SinkTask]:
        """Return the class of its tasks. Raises ImportError: the extra `jdbc` is not installed."""
        from connectors.jdbc.task import JdbcSinkTask

        return JdbcSinkTask
