"""Take a sink's converters and transforms to where a sink reads Kafka elsewhere, and open them there (`RecordConversion`).

Properties of a converter that the connector does not name (``value.converter.schemas.enable`` without ``value.converter``) are added to the
worker's; ordinary sinks, which the worker reads for, leave them out as Kafka Connect does.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from connect_py.api import Header, SinkRecord
from connect_py.config.connector import DEFAULT_HEADER_CONVERTER
from connect_py.errors import ConfigError
from connect_py.plugins.registry import PluginEntry, Plugins
from connect_py.task.chain import Step, apply_step, close_steps, converter, transform_steps, with_prefix

_SIDES = ("key", "value", "header")

#: Where neither the connector nor the worker names a converter.
_DEFAULTS = {"header": DEFAULT_HEADER_CONVERTER}

#: The parts of a connector's configuration that say how its records are read.
_FAMILIES = ("transforms", "predicates")


@dataclass(frozen=True)
class WorkerConversion:
    """`RecordConversion`.

    Attributes:
        references: the plugins that are installed.
        config: the connector's properties of converters and transforms, the worker's where it has none. May hold secrets.
    """

    references: Mapping[str, PluginEntry]
    config: Mapping[str, str] = field(repr=False)

    @classmethod
    def of(cls, plugins: Plugins, worker: Mapping[str, str], config: Mapping[str, str]) -> WorkerConversion:
        """Return what applies to a connector on a worker.

        Raises:
            ConfigError: a converter's class is missing or unknown.
        """
        found = {name: value for name, value in config.items() if name.partition(".")[0] in _FAMILIES and value is not None}
        for side in _SIDES:
            key = f"{side}.converter"
            own = {name: value for name, value in config.items() if name == key or name.startswith(f"{key}.")}
            theirs = {name: value for name, value in worker.items() if name == key or name.startswith(f"{key}.")}
            effective = own if own.get(key) else theirs | {name: value for name, value in own.items() if value is not None}
            name = (effective.get(key) or _DEFAULTS.get(side) or "").strip()
            plugin = plugins.find(name, "header_converter" if side == "header" else "converter") if name else None
            if plugin is None:
                raise ConfigError(f"Invalid value {name} for configuration {key}: Class {name} could not be found.")
            found |= effective | {key: plugin.java_name}
        return cls(plugins.references, found)

    @property
    def converters(self) -> Mapping[str, Mapping[str, str]]:
        sides = {side: f"{side}.converter" for side in _SIDES}
        return {side: {"class": self.config[key], **with_prefix(self.config, f"{key}.")} for side, key in sides.items()}

    @functools.cached_property
    def transforms(self) -> Sequence[str]:
        steps = transform_steps(Plugins(self.references), self.config)
        close_steps(steps)
        return tuple(step.name for step in steps)

    def open(self) -> WorkerReader:
        return WorkerReader(Plugins(self.references), self.config)


class WorkerReader:
    """`RecordReader`."""

    def __init__(self, plugins: Plugins, config: Mapping[str, str]) -> None:
        self._key = converter(plugins, {}, config, "key.converter")
        self._value = converter(plugins, {}, config, "value.converter")
        self._header = converter(plugins, {}, config, "header.converter")
        self._steps: Sequence[Step] = transform_steps(plugins, config)

    def read(
        self,
        topic: str,
        partition: int,
        offset: int,
        timestamp: int | None,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[tuple[str, bytes | None]],
    ) -> SinkRecord | None:
        key_schema, key_data = self._key.to_connect_data(topic, key)
        value_schema, value_data = self._value.to_connect_data(topic, value)
        found: list[Header] = []
        for name, data in headers:
            header_schema, header = self._header.to_connect_header(topic, name, data)
            found.append(Header(name, header, header_schema))
        record: SinkRecord | None = SinkRecord(topic, partition, offset, key_schema, key_data, value_schema, value_data, timestamp, found)
        for step in self._steps:
            if record is None:
                return None
            record = apply_step(step, record)
        return record

    def close(self) -> None:
        close_steps(self._steps)
