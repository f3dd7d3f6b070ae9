"""Trace changes with spans (`io.debezium.transforms.tracing.ActivateTracingSpan`).

Needs the packages of OpenTelemetry (the extra `tracing`); they are looked for when the transform is configured, and
read their own environment variables. Without them a record that is to be traced fails, as it does in Debezium.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from connect_py.api import ConfigType, Header, Importance, Width
from connect_py.data import Struct, Type
from connect_py.data.java_text import to_text
from connect_py.data.schema import STRING
from connect_py.errors import DataError
from connect_py.transforms.base import AnyRecord
from connect_py.transforms.debezium import DEBEZIUM, DebeziumTransform, change_of, option, struct_of, typed

REQUIRED = "tracing.with.context.field.only"
_FIELD, _OPERATION = "tracing.span.context.field", "tracing.operation.name"
#: Fields of `source` that spans call by other names.
_RENAMED = {"db": "instance", "connector": "type", "name": "cdc-name"}
_NANOS_OF_MILLI = 1_000_000

#: Name, type, default, importance, title and description of the properties; the outbox router has them too.
ROWS = (
    (
        _FIELD,
        ConfigType.STRING,
        "tracingspancontext",
        Importance.HIGH,
        "Serialized tracing span context field",
        "The column with the context of the span that wrote the row, as text of java.util.Properties.",
    ),
    (_OPERATION, ConfigType.STRING, "debezium-read", Importance.HIGH, "Tracing operation name", "What the connector's span is called."),
    (
        REQUIRED,
        ConfigType.BOOLEAN,
        False,
        Importance.HIGH,
        "Trace only events with context field present",
        "Whether rows without such a context are left alone.",
    ),
)


def is_available() -> bool:
    """Return whether OpenTelemetry is installed. Other packages bring its API, which does nothing without the SDK."""
    try:
        return importlib.util.find_spec("opentelemetry.sdk.trace") is not None
    except ModuleNotFoundError:
        return False


def parse_properties(text: str) -> dict[str, str]:
    """Pairs of a text in the layout of java.util.Properties: `key=value` lines, `#` comments, backslashes before literals."""
    joined = re.sub(r"\\\r?\n[ \t\f]*", "", text)
    pairs = {}
    for line in joined.splitlines():
        found = re.match(r"[ \t\f]*((?:\\.|[^\s:=\\])+)[ \t\f]*[:=]?[ \t\f]*(.*)", line)
        if found and not line.lstrip().startswith(("#", "!")):
            pairs[_plain(found[1])] = _plain(found[2])
    return pairs


_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def _plain(text: str) -> str:
    def literal(found: re.Match[str]) -> str:
        return chr(int(found[1], 16)) if found[1] else _ESCAPED.get(found[2], found[2])

    return re.sub(r"\\(?:u([0-9a-fA-F]{4})|(.))", literal, text)


class ActivateTracingSpan(DebeziumTransform):
    """Opens a span for the database's write and one for the connector's reading, and puts their context into headers."""

    java_name = f"{DEBEZIUM}tracing.ActivateTracingSpan"
    KEYS = tuple(option(name, type_, default, level, Width.MEDIUM, title, text) for name, type_, default, level, title, text in ROWS)

    def use(self, config: Mapping[str, Any]) -> None:
        self._field, self._operation, self._needs_context = config[_FIELD], config[_OPERATION], config[REQUIRED]
        self._api = importlib.import_module("opentelemetry.trace") if is_available() else None
        self._propagate = importlib.import_module("opentelemetry.propagate") if is_available() else None

    def apply(self, record: AnyRecord) -> AnyRecord:
        """Return the record with the context in headers; what is no change event, or lacks a context that is needed, is left alone.

        Raises:
            DataError: OpenTelemetry is not installed.
        """
        envelope = change_of(record)
        if envelope is None:
            return record
        after = struct_of(envelope, "after")
        context = typed(after, self._field, Type.STRING) if after is not None and after.schema.field(self._field) else None
        if context is None and self._needs_context:
            return record
        if self._api is None or self._propagate is None:
            raise DataError("Failed to record tracing information, tracing libraries not available: pip install opentelemetry-sdk")
        return self._traced(record, envelope, context)

    def _traced(self, record: AnyRecord, envelope: Struct, context: str | None) -> AnyRecord:
        assert self._api is not None
        assert self._propagate is not None
        tracer = self._api.get_tracer(__name__)
        parent = None if context is None else self._propagate.extract(parse_properties(context))
        source = struct_of(envelope, "source")
        written = source["ts_ms"] if source is not None and source.schema.field("ts_ms") else None
        start = written * _NANOS_OF_MILLI if written is not None else None
        carrier: dict[str, str] = {}
        with tracer.start_as_current_span("db-log-write", context=parent, start_time=start, attributes=_described(source)):
            attributes = {name: to_text(None, envelope[name]) for name in ("op", "ts_ms") if envelope[name] is not None}
            tracer.start_span(self._operation, start_time=envelope["ts_ms"] * _NANOS_OF_MILLI, attributes=attributes).end()
            self._propagate.inject(carrier)
        left = [header for header in record.headers if header.name not in carrier]
        return replace(record, headers=[*left, *(Header(name, text, STRING) for name, text in carrier.items())])


def _described(source: Struct | None) -> dict[str, str]:
    if source is None:
        return {}
    values = ((field, source[field.name]) for field in source.schema.fields)
    return {f"db.{_RENAMED.get(field.name, field.name)}": to_text(field.schema, value) for field, value in values if value is not None}
