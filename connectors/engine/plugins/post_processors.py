"""Post-processors of a connector: what changes whole events before they leave it (`PostProcessorRegistry.java`).

`ReselectColumnsPostProcessor` is the connector's own to carry out, since it works on the database's texts before they are encoded (see
`reselect.py`). Any other is an installed `PostProcessor`: each event is decoded for it, and encoded anew. A connector without any has no
`PostProcessors` in its way.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from connect_py.api import EncodedBatch, JsonEncoding, PostProcessor, Route
from connect_py.api.record import EncodedRow
from connect_py.converters.json_read import parse_json, payload_reader
from connect_py.converters.json_schema import schema_to_json
from connect_py.converters.json_write import WriteOptions, payload_writer
from connect_py.data import Schema, Struct
from connect_py.errors import ConfigError, DataError
from connectors.engine.plugins.custom_converters import aliases, below, made

log = logging.getLogger(__name__)

#: Entry points of packages that add post-processors. The name is what ``post.processors.<alias>.type`` says, the value a `PostProcessor`.
ENTRY_POINTS: Final = "connect_py.post_processors"
RESELECT: Final = "io.debezium.processors.reselect.ReselectColumnsPostProcessor"


@dataclass(frozen=True, slots=True)
class Configured:
    """One post-processor as it is configured: its type, and its properties without the prefix."""

    type: str
    properties: Mapping[str, str]


def configured(config: Mapping[str, str]) -> list[Configured]:
    """What `post.processors` names; properties stand below ``post.processors.<alias>.``, or, as of old, below ``<alias>.``.

    Raises:
        ConfigError: an alias has no type.
    """
    found = []
    for alias in aliases(config.get("post.processors")):
        properties = below(config, f"post.processors.{alias}.") or below(config, f"{alias}.")
        name = properties.pop("type", "").strip()
        if not name:
            raise ConfigError(f"post.processors names {alias}, for which there is no post.processors.{alias}.type")
        found.append(Configured(name, properties))
    return found


class PostProcessors:
    """The installed post-processors of one task, in the order in which they are applied. Owned by the task's thread.

    Args:
        mode: ``event.processing.failure.handling.mode``.
    """

    def __init__(self, processors: Sequence[PostProcessor], encoding: JsonEncoding, mode: str) -> None:
        self._processors = tuple(processors)
        self._encoding = encoding
        self._mode = mode
        self._codecs: dict[Route, _Codec] = {}

    @classmethod
    def make(cls, config: Mapping[str, str], encoding: JsonEncoding) -> PostProcessors | None:
        """From a connector's properties; None when none is installed code.

        Raises:
            ConfigError: one is not installed, has no type, or refuses its properties.
        """
        processors = []
        for each in configured(config):
            if each.type != RESELECT:
                processor = made(ENTRY_POINTS, "post-processor", each.type, PostProcessor)
                processor.configure(each.properties)
                processors.append(processor)
        mode = config.get("event.processing.failure.handling.mode", "fail").strip().lower()
        return cls(processors, encoding, mode) if processors else None

    def apply(self, batch: EncodedBatch) -> EncodedBatch:
        """The batch with its events processed; one that fails is left out where the mode says so.

        Raises:
            DataError: an event failed, and the mode is `fail`.
        """
        rows = [found for row in batch.rows if (found := self._apply(row, batch)) is not None]
        return replace(batch, rows=rows)

    def _apply(self, row: EncodedRow, batch: EncodedBatch) -> EncodedRow | None:
        route, key, value = row
        if value is None or not (route.value_schema.name or "").endswith(".Envelope"):
            return row
        codec = self._codecs.get(route)
        if codec is None:
            if len(self._codecs) > 1000:
                self._codecs.clear()
            codec = self._codecs[route] = _Codec(route, self._encoding)
        try:
            shown_key, shown = codec.read_key(key), codec.read(value)
            for processor in self._processors:
                processor.apply(shown_key, shown)
            return route, key, codec.write(shown)
        except Exception as error:
            text = f"Error while processing event at offset {dict(batch.source_offset)}"
            if self._mode not in ("warn", "skip", "ignore"):
                raise DataError(f"{text}: {type(error).__name__}: {error}") from error
            log.log(logging.WARNING if self._mode == "warn" else logging.DEBUG, "%s, it is left out: %s", text, error)
            return None

    def close(self) -> None:
        """Close all of them; a failure is logged."""
        for processor in self._processors:
            try:
                processor.close()
            except Exception:
                log.warning("The post-processor %s could not be closed", type(processor).__name__, exc_info=True)


class _Codec:
    """Reads and writes the values of one route."""

    def __init__(self, route: Route, encoding: JsonEncoding) -> None:
        options = WriteOptions(encoding.value_decimals_numeric, encoding.nulls_as_defaults)
        schema = route.value_schema
        self.read: Callable[[bytes], Struct] = _reader(schema, encoding.value_schemas, exact=encoding.value_decimals_numeric)
        self.read_key: Callable[[bytes | None], Struct | None] = lambda key: None
        if route.key_schema is not None:
            read_key = _reader(route.key_schema, encoding.key_schemas, exact=encoding.key_decimals_numeric)
            self.read_key = lambda key: None if key is None else read_key(key)
        self._write = payload_writer(schema, options)
        self._head, self._end = b"", b""
        if encoding.value_schemas:
            self._head = b'{"schema":' + schema_to_json(schema, numeric_decimals=encoding.value_decimals_numeric) + b',"payload":'
            self._end = b"}"

    def write(self, value: Struct) -> bytes:
        """Raises DataError: a value does not fit its schema."""
        return self._head + self._write(value).encode() + self._end


def _reader(schema: Schema, with_schema: bool, *, exact: bool) -> Callable[[bytes], Any]:
    read = payload_reader(schema, None)

    def parsed(data: bytes) -> Any:
        found = parse_json(data, exact=exact)
        return read(found["payload"] if with_schema else found)

    return parsed
