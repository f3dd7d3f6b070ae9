"""What happens to a record between Kafka and a sink task: converters, then transforms (`WorkerSinkTask.convertAndTransformRecord`).

The task's thread owns a chain.
"""

from __future__ import annotations

from collections.abc import Mapping

from connect_py.api import Header, SinkRecord
from connect_py.kafka.consumer import ConsumedRecord
from connect_py.plugins.registry import Plugins
from connect_py.task.chain import apply_step, close_steps, converter, transform_steps
from connect_py.task.errors.sink_reporter import SinkErrors
from connect_py.task.errors.tolerance import Tolerance


class SinkChain:
    """Converters and transforms of one sink task.

    Args:
        plugins: where classes are found.
        worker: the worker's properties, whose converters apply where the connector names none.
        config: the connector's configuration.
        tolerance: decides about records that fail; it must report to `errors`.
        errors: told which record is under way.

    Raises:
        ConfigError: a class or one of its properties is wrong.
    """

    def __init__(
        self, plugins: Plugins, worker: Mapping[str, str], config: Mapping[str, str], tolerance: Tolerance, errors: SinkErrors
    ) -> None:
        self._key = converter(plugins, worker, config, "key.converter")
        self._value = converter(plugins, worker, config, "value.converter")
        self._header = converter(plugins, worker, config, "header.converter")
        self._steps = transform_steps(plugins, config)
        self._tolerance = tolerance
        self._errors = errors

    def convert(self, record: ConsumedRecord) -> SinkRecord | None:
        """The record as the task gets it; None when it is dropped or skipped.

        Raises:
            FatalTaskError: it fails and ``errors.tolerance`` is none.
        """
        self._errors.record = record
        topic, run = record.topic, self._tolerance.run
        passed, key = run("KEY_CONVERTER", self._key.java_name, lambda: self._key.to_connect_data(topic, record.key))
        if not passed:
            return None
        passed, value = run("VALUE_CONVERTER", self._value.java_name, lambda: self._value.to_connect_data(topic, record.value))
        if not passed:
            return None
        headers: list[Header] | None = []
        if record.headers:
            passed, headers = run("HEADER_CONVERTER", self._header.java_name, lambda: self._convert_headers(record))
        if not passed:
            return None
        assert key is not None and value is not None and headers is not None
        (key_schema, key_value), (schema, data) = key, value
        changed: SinkRecord | None = SinkRecord(
            topic, record.partition, record.offset, key_schema, key_value, schema, data, record.timestamp, headers
        )
        for step in self._steps:
            passed, changed = run("TRANSFORMATION", step.name, lambda s=step, r=changed: apply_step(s, r))  # type: ignore[misc]
            if not passed or changed is None:
                return None
        return changed

    def close(self) -> None:
        """Free what transforms hold."""
        close_steps(self._steps)

    def _convert_headers(self, record: ConsumedRecord) -> list[Header]:
        convert = self._header.to_connect_header
        found = []
        for name, data in record.headers:
            schema, value = convert(record.topic, name, data)
            found.append(Header(name, value, schema))
        return found
