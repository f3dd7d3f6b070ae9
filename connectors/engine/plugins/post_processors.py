"""Post-processors of a connector: what changes whole events before they leave it (`PostProcessorRegistry.java`).

An installed `PostProcessor` is given each event decoded, and the event is encoded again after it. A connector without any has no
`PostProcessors` in its way.

`ReselectColumnsPostProcessor` is the connector's own to carry out: it reads columns again from the table because an event does not have
their value. `Reselect` says which columns of which rows (pure); how a row is asked for is the connector's. It works on the database's
texts, before they are encoded, so that a value that was read again has the form that it would have had in the event, rules that hide values
included.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from connect_py.api import ConfigValue, EncodedBatch, JsonEncoding, PostProcessor, Route
from connect_py.api.record import EncodedRow
from connect_py.converters.json_read import parse_json, payload_reader
from connect_py.converters.json_schema import schema_to_json
from connect_py.converters.json_write import WriteOptions, payload_writer
from connect_py.data import Schema, Struct
from connect_py.errors import ConfigError, ConnectError, DataError, FatalTaskError
from connectors.engine.encode.plan import UNCHANGED, ColumnPlan, Text
from connectors.engine.plugins.custom_converters import CustomConverters
from connectors.engine.plugins.extensions import aliases, make_plugin, properties_below
from connectors.engine.relational.tables import matches_any, parse_regexes

log = logging.getLogger(__name__)


#: Entry points of packages that add post-processors. The name is what ``post.processors.<alias>.type`` says, the value a `PostProcessor`.
ENTRY_POINTS: Final = "connect_py.post_processors"
RESELECT: Final = "io.debezium.processors.reselect.ReselectColumnsPostProcessor"


@dataclass(frozen=True, slots=True)
class ConfiguredProcessor:
    """One post-processor as it is configured: its type, and its properties without the prefix."""

    type: str
    properties: Mapping[str, str]


def configured_processors(config: Mapping[str, str]) -> list[ConfiguredProcessor]:
    """Return what `post.processors` names; properties stand below ``post.processors.<alias>.``, or, as in old releases, below ``<alias>.``.

    Raises:
        ConfigError: an alias has no type.
    """
    found = []
    for alias in aliases(config.get("post.processors")):
        properties = properties_below(config, f"post.processors.{alias}.") or properties_below(config, f"{alias}.")
        name = properties.pop("type", "").strip()
        if not name:
            raise ConfigError(f"post.processors names {alias}, for which there is no post.processors.{alias}.type")
        found.append(ConfiguredProcessor(name, properties))
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
        """Make them of a connector's properties; None when none is installed code.

        Raises:
            ConfigError: one is not installed, has no type, or refuses its properties.
        """
        processors = []
        for each in configured_processors(config):
            if each.type != RESELECT:
                processor = make_plugin(ENTRY_POINTS, "post-processor", each.type, PostProcessor)
                processor.configure(each.properties)
                processors.append(processor)
        mode = config.get("event.processing.failure.handling.mode", "fail").strip().lower()
        return cls(processors, encoding, mode) if processors else None

    def apply(self, batch: EncodedBatch) -> EncodedBatch:
        """Return the batch with its events processed; one that fails is left out where the mode says so.

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
        """Encode a value. Raises DataError: it does not fit its schema."""
        return self._head + self._write(value).encode() + self._end


def _reader(schema: Schema, with_schema: bool, *, exact: bool) -> Callable[[bytes], Any]:
    read = payload_reader(schema, None)

    def parsed(data: bytes) -> Any:
        found = parse_json(data, exact=exact)
        return read(found["payload"] if with_schema else found)

    return parsed


#: Texts of one row with its missing values filled in; None when none is missing.
Fill = Callable[[Sequence[Text]], "Sequence[Text] | None"]

#: Reads columns, by their indexes, of the row whose key columns, by index, have these texts; at most two rows. Raises NotReadError.
Read = Callable[[Sequence[int], Sequence[tuple[int, str]]], Sequence[Sequence[Text]]]


class NotReadError(ConnectError):
    """The database refused; asking again would not help."""


@dataclass(frozen=True, slots=True)
class Reselect:
    """The options of one post-processor.

    Attributes:
        include: regexes of ``schema.table:column``; `exclude` counts only without them.
        unavailable: whether values that the database did not send are asked for; `nulls` whether NULLs are.
        by_event_key: whether the record's key finds the row, not the table's own.
        fails: whether a row that is not found, or cannot be asked for, fails the task.
    """

    include: tuple[re.Pattern[str], ...] = ()
    exclude: tuple[re.Pattern[str], ...] = ()
    unavailable: bool = True
    nulls: bool = True
    by_event_key: bool = False
    fails: bool = False

    @classmethod
    def parse(cls, config: Mapping[str, str]) -> Reselect | None:
        """Parse a connector's properties; None when nothing is read again.

        Raises:
            ConfigError: a property is wrong.
        """
        found = [each.properties for each in configured_processors(config) if each.type == RESELECT]
        if not found:
            return None
        if len(found) > 1:
            raise ConfigError(f"post.processors has {RESELECT} {len(found)} times; one with all columns does the same")
        properties = found[0]
        mode = properties.get("reselect.error.handling.mode", "warn").strip().lower()
        if mode not in ("warn", "fail"):
            raise ConfigError(f"reselect.error.handling.mode={mode}: it must be warn or fail")
        if _flag(properties, "reselect.cache.enabled", False):
            log.warning("reselect.cache.enabled has no effect: every value that is missing is read from the table")
        return cls(
            tuple(parse_regexes(properties.get("reselect.columns.include.list"))),
            tuple(parse_regexes(properties.get("reselect.columns.exclude.list"))),
            _flag(properties, "reselect.unavailable.values", True),
            _flag(properties, "reselect.null.values", True),
            _flag(properties, "reselect.use.event.key", False),
            mode == "fail",
        )

    def is_selected(self, table: str, column: str) -> bool:
        """Return whether a column's missing values are read again."""
        name = f"{table}:{column}"
        return matches_any(self.include, name) if self.include else not matches_any(self.exclude, name)

    def missing(self, table: str, columns: Sequence[ColumnPlan]) -> Callable[[Sequence[Text]], list[int]]:
        """Return a function from a row's texts to the indexes of those that are to be read again. A NULL with a default shows as that: it
        is none."""
        selected = [place for place, plan in enumerate(columns) if not plan.constant and self.is_selected(table, plan.name)]
        nulls = frozenset(place for place in selected if self.nulls and columns[place].schema.default is None and not columns[place].null)
        unavailable = self.unavailable

        def places(texts: Sequence[Text]) -> list[int]:
            return [place for place in selected if (texts[place] is None and place in nulls) or (texts[place] is UNCHANGED and unavailable)]

        return places

    def filler(self, table: str, columns: Sequence[ColumnPlan], key: Sequence[str], event_key: Sequence[str], read: Read) -> Fill | None:
        """Return the function for the rows of a table; None where a row cannot be found again.

        Args:
            key: of the table; `event_key` that of records, without which nothing is read again.
            read: the connector's; what else it raises is raised.
        """
        places = {plan.name: place for place, plan in enumerate(columns)}
        wanted = event_key if self.by_event_key else key
        if not event_key or not wanted or any(name not in places for name in wanted):
            return None
        missing = self.missing(table, columns)
        shown = ", ".join(wanted)

        def fill(texts: Sequence[Text]) -> Sequence[Text] | None:
            gone = missing(texts)
            keys = [(places[name], texts[places[name]]) for name in wanted]
            if not gone or not all(isinstance(text, str) for _, text in keys):
                return None
            try:
                rows = read(gone, [(place, str(text)) for place, text in keys])
            except NotReadError as error:
                self._failed(f"Failed to re-select columns for table {table} by its key ({shown}): {error}")
                return None
            if not rows:
                self._failed(f"Failed to find row in table {table} by its key ({shown}): it was deleted since")
                return None
            if len(rows) > 1:
                log.warning("Re-selection detected multiple rows for the same key in table %s, using first.", table)
            filled = list(texts)
            for place, text in zip(gone, rows[0], strict=True):
                filled[place] = text
            return filled

        return fill

    def _failed(self, text: str) -> None:
        if self.fails:
            raise FatalTaskError(f"{text}. reselect.error.handling.mode is fail; the event was not sent, and comes again after a restart")
        log.warning("%s. The event goes without the values", text)


def _flag(properties: Mapping[str, str], name: str, default: bool) -> bool:
    text = properties.get(name, "").strip().lower()
    return text == "true" if text else default


def plugin_problems(config: Mapping[str, str | None], *, reselects: bool) -> dict[str, str]:
    """Return what is wrong with the custom converters and post-processors of a configuration: property → problem.

    Args:
        reselects: whether the connector can read columns again.
    """
    given = {name: text for name, text in config.items() if text is not None}

    def post_processors() -> None:
        if not reselects and any(each.type == RESELECT for each in configured_processors(given)):
            raise ConfigError(f"{RESELECT} is not built for this connector")
        Reselect.parse(given)
        PostProcessors.make(given, JsonEncoding())

    checks: dict[str, Callable[[], object]] = {"converters": lambda: CustomConverters.parse(given), "post.processors": post_processors}
    found = {}
    for name, check in checks.items():
        try:
            check()
        except ConfigError as error:
            found[name] = str(error)
    return found


def add_problems(values: list[ConfigValue], problems: Mapping[str, str]) -> None:
    """Add problems to the values of their properties, where there is none yet."""
    for value in values:
        if value.name in problems and not value.errors:
            value.errors.append(f"The '{value.name}' value is invalid: {problems[value.name]}")
