"""What sinks share: a connector whose tasks all have its configuration, names of targets, and where records go that cannot be written."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any

from connect_py.api import SinkConnector, SinkRecord, SinkTaskContext
from connect_py.data import Struct
from connect_py.errors import DataError

log = logging.getLogger(__name__)

_SOURCE = re.compile(r"\$\{source\.(.*?)\}")


class UniformSinkConnector(SinkConnector):
    """A sink connector with one configuration for all tasks, whose offsets are the consumer group's alone."""

    _config: Mapping[str, str]

    def start(self, config: Mapping[str, str]) -> None:
        """Keep the configuration; the tasks parse it, so that a mistake shows in their trace, as in the reference."""
        self._config = config

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """Return the same configuration for each task."""
        return [dict(self._config) for _ in range(max_tasks)]

    def alter_offsets(self, config: Mapping[str, str], offsets: Mapping[tuple[str, int], int | None]) -> bool:
        """Accept any offsets: the consumer group holds all there is."""
        return True


class TargetNames:
    """Names the table or collection of a record (`io.debezium.sink.naming`).

    Args:
        what: it is, for messages.
        form: ``collection.name.format``, with ``${topic}`` and ``${source.field}``.
        is_passthrough: whether the topic's name keeps its dots, and the source is not looked at.
    """

    def __init__(self, what: str, form: str, *, is_passthrough: bool = False) -> None:
        self._what = what
        self._form = form.strip() or "${topic}" if is_passthrough else form
        self._is_passthrough = is_passthrough
        self._has_source = not is_passthrough and "${source." in form
        self._names: dict[str, str] = {}

    def of(self, topic: str, value: Any) -> str | None:
        """Return the name; None where it needs a source and the record's value has none. Raises DataError: the source has no such text."""
        name = self._names.get(topic)
        if name is None:
            shown = topic if self._is_passthrough else topic.replace(".", "_")
            name = self._names[topic] = self._form.replace("${topic}", shown)
        if not self._has_source:
            return name
        source = _member(value, "source")
        return None if source is None else _SOURCE.sub(lambda found: self._text(source, found[1]), name)

    def _text(self, source: Any, field: str) -> str:
        found = _member(source, field)
        if not isinstance(found, str):
            raise DataError(f"{self._form} names no {self._what}: the record's source has no text {field}")
        return found


def _member(value: Any, name: str) -> Any:
    if isinstance(value, Struct):
        return value[name] if value.schema.field(name) else None
    return value.get(name) if isinstance(value, dict) else None


class ErrantRecords:
    """Reports the records that a task cannot write. Used by the task's thread.

    Args:
        config: the task's configuration, with `errors.tolerance`.
        context: the task's context; its reporter, where there is one, decides what becomes of a record.
    """

    def __init__(self, config: Mapping[str, str], context: SinkTaskContext) -> None:
        self._context = context
        self._tolerates = config.get("errors.tolerance", "none").strip().lower() == "all"

    @property
    def are_accepted(self) -> bool:
        """Whether the task may continue without a record that cannot be written."""
        return self._tolerates or self._context.report_errant_record is not None

    def report(self, record: SinkRecord, error: DataError) -> None:
        """Report a record.

        Raises:
            DataError: the given error, where nothing tolerates it.
        """
        report = self._context.report_errant_record
        if report is not None:
            report(record, error)
        elif self._tolerates:
            log.warning("A record of %s, partition %d, offset %d, was skipped: %s", record.topic, record.partition, record.offset, error)
        else:
            raise error
