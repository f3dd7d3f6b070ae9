"""What a connector's author implements (`org.apache.kafka.connect.connector.Connector`).

A connector runs in the worker process: it checks configurations and divides work. It touches no data.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, Protocol

from connect_py.api.config import ConfigDef, ConfigValue
from connect_py.api.doctor import Diagnosis
from connect_py.api.facts import SourceFactsReader
from connect_py.api.record import SourceOffset, SourcePartition
from connect_py.api.tables import SourceTables
from connect_py.api.task import BatchSinkTask, SinkTask, SourceTask


class ConnectorContext(Protocol):
    """What a connector may ask of the runtime (`org.apache.kafka.connect.connector.ConnectorContext`). Any thread may call its methods."""

    @property
    def connector(self) -> str:
        """The connector's name."""
        ...

    def request_task_reconfiguration(self) -> None:
        """Ask for `Connector.task_configs` to be called again soon, because the work is to be divided otherwise: a table is new, say.

        When the answer differs from the tasks that run, all of the connector's tasks are started again with the new configurations.
        """
        ...

    def raise_error(self, error: Exception) -> None:
        """Report an error that a thread of the connector's own has found: the connector is stopped and becomes FAILED; its tasks resume
        their work."""
        ...

    def offset(self, partition: SourcePartition) -> SourceOffset | None:
        """Return the committed offset of a source partition now, None if there is none (`SourceConnectorContext.offsetStorageReader`).

        Raises:
            RetriableError: the offsets topic cannot be read just now.
        """
        ...


class Connector(ABC):
    """Base of source and sink connectors.

    Attributes:
        context: what the connector may ask of the runtime; set before `start`.

    Class attributes:
        java_name: the name by which configurations know the connector.
        java_task_name: what task configurations show as ``task.class``.
        version: shown by ``GET /connector-plugins`` and in statuses.
        open_prefixes: beginnings of names that the connector accepts in addition to its definition, such as ``driver.``; "" for all
            names. The worker warns of others.
        client_prefixes: beginnings of names whose rest is a setting of a Kafka client of the connector's own, such as ``mine.kafka.``.
            The worker's policy for client overrides applies to these as to ``consumer.override.``.
        without_effect: property → why the connector accepts it and does nothing with it, for `connect-py check`. A name that ends with
            a dot stands for all that begin with it.
    """

    java_name: ClassVar[str]
    java_task_name: ClassVar[str]
    version: ClassVar[str]
    open_prefixes: ClassVar[tuple[str, ...]] = ()
    client_prefixes: ClassVar[tuple[str, ...]] = ()
    without_effect: ClassVar[Mapping[str, str]] = {}
    context: ConnectorContext

    def initialize(self, context: ConnectorContext) -> None:
        """Called by the runtime before `start`, on an instance that is to run (not on those that only validate)."""
        self.context = context

    @classmethod
    @abstractmethod
    def config_def(cls) -> ConfigDef:
        """Return every property of this connector."""

    def validate(self, config: Mapping[str, str | None]) -> list[ConfigValue]:
        """Check a configuration, against live servers where that helps; one value a key, with its errors. Does not raise."""
        return self.check_config(config)

    def check_config(self, config: Mapping[str, str | None]) -> list[ConfigValue]:
        """Check a configuration without asking a server; one value a key, with its errors. Does not raise.

        A connector that overrides `doctor` overrides this, too, where `validate` does more than this.
        """
        return self.config_def().validate(config)

    def doctor(self, config: Mapping[str, str], *, is_running: bool = False) -> Diagnosis:
        """Look at everything that the connector needs of its servers, and return all that is wrong at once (docs/doctor.md).

        Called on an instance that is not started, on any thread, with a configuration in which `check_config` finds nothing. It changes
        nothing on a server, and each of its requests has a time limit of a few seconds. A server that cannot be reached is a finding, and
        an entry of `Diagnosis.unseen`.

        Args:
            is_running: whether the worker runs the connector now, so that what it uses itself is not in another's use.

        Raises:
            ConnectError: nothing could be looked at.
        """
        return Diagnosis()

    @abstractmethod
    def start(self, config: Mapping[str, str]) -> None:
        """Take the configuration. Raises ConfigError; the connector is then FAILED."""

    @abstractmethod
    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """Return one configuration a task, at most `max_tasks`."""

    def stop(self) -> None:  # noqa: B027
        """Free what the connector holds."""


class SourceConnector(Connector):
    """A connector whose tasks read from elsewhere into Kafka."""

    @abstractmethod
    def task_class(self) -> type[SourceTask]:
        """Return the class of its tasks."""

    def alter_offsets(self, config: Mapping[str, str], offsets: Sequence[tuple[SourcePartition, SourceOffset | None]]) -> bool:
        """Check offsets that a client wants to set (None removes one).

        Returns:
            True when the connector has seen to everything, False when it might keep offsets elsewhere too.

        Raises:
            ConnectError: they are refused.
        """
        return False

    def exactly_once_support(self, config: Mapping[str, str]) -> bool | None:
        """Return whether its tasks, so configured, start exactly behind the offset that was stored last (`exactlyOnceSupport`).

        Asked where a configuration has ``exactly.once.support=required``. None says nothing, which refuses such a configuration.
        """
        return None

    def can_define_transaction_boundaries(self, config: Mapping[str, str]) -> bool:
        """Return whether its tasks use `SourceTaskContext.transactions` (`canDefineTransactionBoundaries`)."""
        return False

    def facts_reader(self, config: Mapping[str, str]) -> SourceFactsReader | None:
        """Return what asks the source for the state of its log, None where there is nothing to ask. Does not connect.

        Called on an instance that is not started, in a process of the worker's that reads the facts of all its connectors.

        Raises:
            ConfigError: the configuration cannot be used.
        """
        return None

    def list_tables(self, config: Mapping[str, str]) -> SourceTables | None:
        """Return the tables that the connector could capture, and which it does; None where there is nothing to choose from.

        Called as `doctor` is. It changes nothing on a server, and each of its requests has a time limit of a few seconds.

        Raises:
            ConnectError: the server does not say.
        """
        return None


class SinkConnector(Connector):
    """A connector whose tasks read from Kafka."""

    @abstractmethod
    def task_class(self) -> type[SinkTask] | type[BatchSinkTask]:
        """Return the class of its tasks."""

    def alter_offsets(self, config: Mapping[str, str], offsets: Mapping[tuple[str, int], int | None]) -> bool:
        """As `SourceConnector.alter_offsets`, by Kafka topic and partition."""
        return False
