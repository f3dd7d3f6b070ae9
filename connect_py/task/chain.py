"""Transform and convert records: between a source connector and the producer, and between Kafka and a sink task.

A source's chain is transforms, then converters (`AbstractWorkerSourceTask.convertTransformedRecord`). Where none of them needs more than
rows of JSON, those of an `EncodedBatch` stay JSON up to the converter (`Chain.encoded`). Otherwise each row is decoded into a
`SourceRecord` first, so every connector works with every chain.

A sink's chain is converters, then transforms (`WorkerSinkTask.convertAndTransformRecord`). A sink that reads Kafka elsewhere takes its
converters and transforms there and opens them there (`WorkerConversion`). For these, properties of a converter that the connector does not
name (``value.converter.schemas.enable`` without ``value.converter``) are added to the worker's; ordinary sinks, which the worker reads for,
leave them out as Kafka Connect does.

The task's thread owns a chain.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from connect_py.api import EncodedBatch, Header, JsonEncoding, Route, SinkRecord, SourceRecord
from connect_py.api.config import ConfigType, parse_value
from connect_py.api.record import KeyText
from connect_py.api.transform import Record
from connect_py.config.connector import DEFAULT_HEADER_CONVERTER
from connect_py.converters.json_read import parse_json, payload_reader, row_reader
from connect_py.converters.primitive import SimpleHeaderConverter
from connect_py.data.schema import STRING
from connect_py.errors import ConfigError, FatalTaskError, noted
from connect_py.kafka.consumer import ConsumedRecord
from connect_py.plugins.registry import PluginEntry, Plugins
from connect_py.task.failed_records import SinkErrorReporter, SourceErrorReporter, Tolerance
from connect_py.task.producing import Produced
from connect_py.task.row_chain import MAX_ROUTES, RowChain, Step, is_of_one_class

#: What decoded rows are read from: no schemas around them (routes have these), decimals exact, nulls as they are: whether a default
#: takes a null's place is for each transform and converter to decide, as it is with Connect's `Struct.get` and `getWithoutDefault`.
_DECODED = JsonEncoding(key_schemas=False, value_schemas=False, nulls_as_defaults=False)

Headers = list[tuple[str, bytes | None]]


class Chain:
    """Transforms and converters of one source task.

    Args:
        plugins: where classes are found.
        worker: the worker's properties, whose converters apply where the connector names none.
        config: the connector's configuration.
        tolerance: decides about records that fail; it must report to `errors`.
        errors: receives the record that is under way, and is asked for its dead letter.

    Raises:
        ConfigError: a class or one of its properties is wrong.
    """

    def __init__(
        self, plugins: Plugins, worker: Mapping[str, str], config: Mapping[str, str], tolerance: Tolerance, errors: SourceErrorReporter
    ) -> None:
        self._key = converter(plugins, worker, config, "key.converter")
        self._value = converter(plugins, worker, config, "value.converter")
        self._header = converter(plugins, worker, config, "header.converter")
        self._write_key, self._write_value = _writer(self._key), _writer(self._value)
        self._steps = transform_steps(plugins, config)
        self._tolerance = tolerance
        self._errors = errors
        self._headers: dict[Route, Headers | None] = {}
        self._route: Route | None = None
        self._route_headers: list[Header] = []
        self._readers: dict[Route, tuple[Callable[[bytes | None], Any], Callable[[bytes | None], Any]]] = {}
        handles_rows = all(map(_handles_rows, (self._key, self._value))) and all(step.handles_rows for step in self._steps)
        self._rows = RowChain(self._steps, self._key, self._value) if handles_rows else None

    @property
    def encoding(self) -> JsonEncoding:
        """How a connector must serialise the rows of its batches."""
        return _DECODED if self._rows is None else self._rows.encoding

    def encoded(self, batch: EncodedBatch) -> EncodedBatch | None:
        """Return a batch whose rows go to the producer as they are; None where they must be decoded (`records`) and converted."""
        rows = None if self._rows is None else self._rows.changed(batch.rows)
        return None if rows is None else replace(batch, rows=rows)

    def headers_of(self, route: Route) -> Headers | None:
        """Return the converted headers of a route's rows; done once a route."""
        try:
            return self._headers[route]
        except KeyError:
            if len(self._headers) >= MAX_ROUTES:
                self._headers.clear()
            if type(self._header) is SimpleHeaderConverter and not any(isinstance(text, KeyText) for _, text in route.headers):
                headers: Headers = [(name, text.encode()) for name, text in route.headers]  # what it makes of strings
            else:
                convert = self._header.from_connect_header
                headers = [(h.name, convert(route.topic, h.name, h.schema, h.value)) for h in _headers(route)]
            self._headers[route] = headers or None
            return headers or None

    def records(self, batch: EncodedBatch) -> Iterator[SourceRecord]:
        """Yield an encoded batch's rows as records, each with the batch's offset. Raises DataError."""
        current: Route | None = None
        for route, key, value in batch.rows:
            if route is not current:
                current = route
                read_key, read_value = self._readers.get(route) or self._route_readers(route)
                headers = _headers(route)
                self._route, self._route_headers = route, headers
            yield SourceRecord(
                batch.source_partition,
                batch.source_offset,
                route.topic,
                route.key_schema if key is not None else None,
                read_key(key),
                route.value_schema if value is not None else None,
                read_value(value),
                route.partition,
                headers=headers.copy(),  # a transform may add to its record's
            )

    def convert(self, record: SourceRecord) -> Produced | None:
        """Transform and serialise; None when the record is dropped or skipped. A skipped one may leave a dead letter in its place.

        Raises:
            FatalTaskError: it fails and ``errors.tolerance`` is none, or it is from before 1970, which no tolerance covers.
            TaskStopped: a stop interrupted its retries.
        """
        self._errors.record = record
        changed: SourceRecord | None = record
        for step in self._steps:
            passed, changed = self._tolerance.run("TRANSFORMATION", step.name, lambda s=step, r=changed: apply_step(s, r))  # type: ignore[misc]
            if not passed:
                return self._errors.letter()
            if changed is None:
                return None
        assert changed is not None
        return self._serialise(changed)

    def close(self) -> None:
        """Free what transforms hold."""
        close_steps(self._steps)

    def _serialise(self, record: SourceRecord) -> Produced | None:
        topic, run = record.topic, self._tolerance.run
        passed, headers = True, None
        if record.headers:
            passed, headers = run("HEADER_CONVERTER", self._header.java_name, lambda: self._convert_headers(record))
        if passed:
            passed, key = run(
                "KEY_CONVERTER", self._key.java_name, lambda: self._write_key(topic, headers or (), record.key_schema, record.key)
            )
        if passed:
            passed, value = run(
                "VALUE_CONVERTER", self._value.java_name, lambda: self._write_value(topic, headers or (), record.value_schema, record.value)
            )
        return Produced(topic, record.partition, _checked(record.timestamp), key, value, headers) if passed else self._errors.letter()

    def _convert_headers(self, record: SourceRecord) -> Headers | None:
        if self._route is not None and record.headers == self._route_headers and record.topic == self._route.topic:
            return self.headers_of(self._route)  # no transform touched them
        convert = self._header.from_connect_header
        return [(h.name, convert(record.topic, h.name, h.schema, h.value)) for h in record.headers] or None

    def _route_readers(self, route: Route) -> tuple[Callable[[bytes | None], Any], Callable[[bytes | None], Any]]:
        def reader(schema: Any, *, exact: bool) -> Callable[[bytes | None], Any]:
            read = payload_reader(schema, None) if exact else row_reader(schema)  # a decimal in base64 needs no more than a double
            return lambda data: None if data is None else read(parse_json(data, exact=exact))

        if len(self._readers) >= MAX_ROUTES:
            self._readers.clear()
        encoding = self.encoding
        self._readers[route] = (
            reader(route.key_schema, exact=encoding.key_decimals_numeric),
            reader(route.value_schema, exact=encoding.value_decimals_numeric),
        )
        return self._readers[route]


def _writer(made: Any) -> Callable[[str, Sequence[tuple[str, bytes | None]], Any, Any], bytes | None]:
    """Return a converter's function of topic, converted headers, schema and value; few converters look at headers."""
    plain = made.from_connect_data
    write: Callable[..., bytes | None] = getattr(
        made, "from_connect_data_with_headers", lambda topic, headers, schema, value: plain(topic, schema, value)
    )
    return write


def _headers(route: Route) -> list[Header]:
    headers = []
    for name, text in route.headers:
        schema = (text.schema or route.key_schema) if isinstance(text, KeyText) else None
        if schema is not None:
            headers.append(Header(name, payload_reader(schema, None)(parse_json(text.encode(), exact=True)), schema))
        else:
            headers.append(Header(name, text, STRING))
    return headers


def _checked(timestamp: int | None) -> int | None:
    """Return a record's time as Kafka takes it; -1 says, as in Java, that there is none (`ConnectUtils.checkAndConvertTimestamp`)."""
    if timestamp is None or timestamp >= 0:
        return timestamp
    if timestamp == -1:
        return None
    error = FatalTaskError(f"Invalid record timestamp {timestamp}")
    error.java_name = "org.apache.kafka.common.InvalidRecordException"
    raise noted(error, "Kafka knows no time before 1970. The record was not written and no offset beyond it is committed.")


def converter_owner(worker: Mapping[str, str], config: Mapping[str, str], key: str) -> Mapping[str, str]:
    """Return the properties to which the converter of `key` belongs: a connector that names its own gives that one's properties too, and
    the worker's are not mixed in."""
    return config if config.get(key) else worker


def converter(plugins: Plugins, worker: Mapping[str, str], config: Mapping[str, str], key: str) -> Any:
    """Return the converter of `key` (``key.converter``, ``value.converter``, ``header.converter``), configured.

    Raises:
        ConfigError: the class is unknown or of the wrong kind, or a property is wrong.
        VersionNotFoundError: it is not there in the wanted version.
    """
    owner = converter_owner(worker, config, key)
    is_header = key == "header.converter"
    name = owner.get(key) or (DEFAULT_HEADER_CONVERTER if is_header else None)
    if not name:
        raise ConfigError(f'Missing required configuration "{key}" which has no default value.')
    found = plugins.find(name.strip(), "header_converter" if is_header else "converter")
    if found is None:
        raise ConfigError(f"Invalid value {name} for configuration {key}: Class {name} could not be found.")
    plugins.require_version(found.java_name, owner.get(f"{key}.plugin.version"))
    made = found()
    properties = with_prefix(owner, f"{key}.")
    if is_header:
        made.configure(properties)
    else:
        made.configure(properties, is_key=key == "key.converter")
    return made


def with_prefix(config: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Return the properties below a prefix, without it."""
    return {name.removeprefix(prefix): value for name, value in config.items() if name.startswith(prefix)}


def _handles_rows(made: Any) -> bool:
    """Return whether a converter is a `RowConverter`, and its configuration lets it be one."""
    return is_of_one_class(type(made), "row_writer", "from_connect_data") and bool(made.handles_rows)


def apply_step(step: Step, record: Record) -> Record | None:
    """Return the record after one transform, or as it was where the predicate says so; None when it is dropped."""
    if step.predicate is not None and step.predicate.test(record) == step.negate:
        return record
    return step.transform.apply(record)  # type: ignore[no-any-return]


def close_steps(steps: Sequence[Step]) -> None:
    """Free what transforms and predicates hold."""
    for step in steps:
        step.transform.close()
        if step.predicate is not None:
            step.predicate.close()


def transform_steps(plugins: Plugins, config: Mapping[str, str]) -> list[Step]:
    """Return the transforms of a connector, configured. Raises ConfigError."""
    steps = []
    for alias in parse_value("transforms", config.get("transforms", ""), ConfigType.LIST):
        properties = with_prefix(config, f"transforms.{alias}.")
        predicate_alias, negate = properties.pop("predicate", None), properties.pop("negate", "false")
        predicate = None
        if predicate_alias:
            predicate = _make(plugins, "predicate", f"predicates.{predicate_alias}", with_prefix(config, f"predicates.{predicate_alias}."))
        transform = _make(plugins, "transformation", f"transforms.{alias}", properties)
        is_negated = bool(parse_value(f"transforms.{alias}.negate", negate, ConfigType.BOOLEAN))
        steps.append(Step(transform, predicate, is_negated, transform.java_name))
    return steps


def _make(plugins: Plugins, kind: str, prefix: str, properties: dict[str, str]) -> Any:
    name = properties.pop("type", "").strip()
    found = plugins.find(name, kind) if name else None
    if found is None:
        raise ConfigError(f"Invalid value {name} for configuration {prefix}.type: Class {name} could not be found.")
    plugins.require_version(found.java_name, properties.get("plugin.version"))
    made = found()
    made.configure(properties)
    return made


class SinkChain:
    """Converters and transforms of one sink task.

    Args:
        plugins: where classes are found.
        worker: the worker's properties, whose converters apply where the connector names none.
        config: the connector's configuration.
        tolerance: decides about records that fail; it must report to `errors`.
        errors: receives the record that is under way.

    Raises:
        ConfigError: a class or one of its properties is wrong.
    """

    def __init__(
        self, plugins: Plugins, worker: Mapping[str, str], config: Mapping[str, str], tolerance: Tolerance, errors: SinkErrorReporter
    ) -> None:
        self._key = converter(plugins, worker, config, "key.converter")
        self._value = converter(plugins, worker, config, "value.converter")
        self._header = converter(plugins, worker, config, "header.converter")
        self._steps = transform_steps(plugins, config)
        self._tolerance = tolerance
        self._errors = errors

    def convert(self, record: ConsumedRecord, is_read: Callable[[str], None] = lambda topic: None) -> SinkRecord | None:
        """Return the record as the task gets it; None when it is dropped or skipped.

        Args:
            is_read: told the topic of a record that converters have read, whatever transforms do with it.

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
        is_read(topic)
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
