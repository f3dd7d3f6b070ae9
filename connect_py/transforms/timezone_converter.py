"""Move times of change events to another zone (`io.debezium.transforms.TimezoneConverter`)."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from connect_py.api import ConfigType, Importance, Route, Width
from connect_py.api.record import EncodedRow
from connect_py.api.transform import RowChange
from connect_py.data import Schema, Struct, Type
from connect_py.data.json_events import event_reader, rest_reader
from connect_py.data.json_rows import NULL, NeedsRecord, fields_changer
from connect_py.data.json_values import TextChange, value_changer, value_reader
from connect_py.data.schema import DATE, STRING, TIME
from connect_py.errors import ConfigError, DataError
from connect_py.transforms.base import AnyRecord, java_split
from connect_py.transforms.debezium import DEBEZIUM, DebeziumTransform, change_of, is_envelope, list_of_regex, option, required, struct_of
from connect_py.transforms.zones import CONVERTERS, Zone, parse_zone

_RULES_TEXT = '"source:<tablename>:<fieldnames>", "topic:<topicname>:<fieldnames>", "<matchname>:<fieldnames>"'
#: Debezium's: only the first item may have three parts.
_LIST = re.compile(r'\[(source|topic|[".\w\s]+):([".\w\s]+(?::[".\w\s]+)?(?:,|\]\Z))+', re.ASCII)
#: Fields of `source` that are converted when a rule names them, and how many of their units are a second.
_EPOCHS = {"ts_ms": 10**3, "ts_us": 10**6, "ts_ns": 10**9}
#: Times that belong to no instant; a rule that names one changes nothing.
_WITHOUT_INSTANT = {f"io.debezium.time.{name}" for name in ("Date", "Time", "MicroTime", "NanoTime")} | {DATE, TIME}

_RULE = (
    "source:table[:field] is about events of a table, topic:name[:field] about those of a topic, name:field about either; without a field "
    "it is about all of them."
)


class Rules(NamedTuple):
    """Names of tables and topics with the fields that a list names; no fields means all of them."""

    topics: dict[str, set[str]]
    tables: dict[str, set[str]]
    either: dict[str, set[str]]

    def fields_of(self, topic: str, table: str | None) -> set[str] | None:
        """Return the fields that the list names for an event, None when it does not speak of it."""
        for rules, name in ((self.topics, topic), (self.tables, table), (self.either, topic), (self.either, table)):
            if name is not None and name in rules:
                return rules[name]
        return None


def parse_rules(items: list[str]) -> Rules:
    """Return the rules of a list. An item without `source:` or `topic:` takes that of the items before it, as in Debezium."""
    rules = Rules({}, {}, {})
    kind = None
    for item in items:
        parts = java_split(item, ":")
        if len(parts) > 1 and parts[0].lower() in ("source", "topic"):
            kind, name, rest = parts[0], parts[1], parts[2:]
        else:
            name, rest = parts[0], parts[1:2]
        chosen = {"topic": rules.topics, "source": rules.tables}.get(kind or "", rules.either)
        chosen.setdefault(name, set()).update(rest)
    return rules


class TimezoneConverter(DebeziumTransform):
    """Moves times in `before` and `after` to another zone.

    Texts with an offset keep their instant and get the zone's offset. Numbers stand for a local time in UTC; they become the instant at
    which a clock in the zone shows that time.
    """

    handles_rows = True
    java_name = f"{DEBEZIUM}TimezoneConverter"
    KEYS = (
        option(
            "converted.timezone",
            ConfigType.STRING,
            None,
            Importance.HIGH,
            Width.MEDIUM,
            "Converted Timezone",
            "Required. A zone such as America/Los_Angeles, or an offset from UTC such as +08:00.",
        ),
        option(
            "include.list",
            ConfigType.LIST,
            None,
            Importance.HIGH,
            Width.MEDIUM,
            "Include List",
            f"Rules of what is converted, everything by default. {_RULE}",
        ),
        option(
            "exclude.list",
            ConfigType.LIST,
            None,
            Importance.HIGH,
            Width.MEDIUM,
            "Exclude List",
            f"Rules of what is left as it is. {_RULE}",
        ),
    )
    RULES = (("converted.timezone", required), ("include.list", list_of_regex), ("exclude.list", list_of_regex))

    def use(self, config: Mapping[str, Any]) -> None:
        include, exclude = config["include.list"] or [], config["exclude.list"] or []
        if include and not _LIST.fullmatch(f"[{', '.join(include)}]"):
            raise ConfigError(f"Invalid include list format. Please specify a list of rules in the format of {_RULES_TEXT}")
        if exclude and not include and not _LIST.fullmatch(f"[{', '.join(exclude)}]"):
            raise ConfigError(f"Invalid exclude list format. Please specify a list of rules in the format of {_RULES_TEXT}")
        self._zone = parse_zone(config["converted.timezone"])
        if include and exclude:
            raise ConfigError("Both include and exclude lists are specified. Please specify only one.")
        self._includes, self._has_rules = bool(include), bool(include or exclude)
        self._rules = parse_rules(include or exclude)

    def apply(self, record: AnyRecord) -> AnyRecord:
        """Return the record with converted times; one that is no change event is left alone.

        Raises:
            DataError: a time is no text in ISO 8601 with an offset.
        """
        envelope = change_of(record)
        if envelope is None:
            return record
        source = struct_of(envelope, "source")
        table = source.without_default("table") if source is not None and source.schema.field("table") else None
        fields = self._fields_of(record.topic, table)
        changed = None if fields is None else _changed(envelope, self._zone, fields, self._includes)
        return record if changed is None else replace(record, value=changed)

    def row_change(self, route: Route) -> RowChange:
        """Return what converts times of rows. Raises DataError and NeedsRecord where only `apply` can tell, or fails."""
        envelope = route.value_schema
        if not is_envelope(envelope):
            return lambda key, value: (route, key, value)
        read, read_table = event_reader(envelope), None
        if self._has_rules and envelope.fields[2].schema.field("table"):
            read_table = rest_reader(envelope, [("source", "table")])
        known: dict[bytes, tuple[TextChange, TextChange]] = {}  # by table

        def change(key: bytes | None, value: bytes | None) -> EncodedRow:
            if value is None:
                return route, key, None
            before, after, rest = read(value)
            table = NULL if read_table is None else read_table(rest)[0]
            found = known.get(table)
            if found is None:
                found = known[table] = self._side_changes(route, None if table == NULL else value_reader(STRING)(table))
            old, new = (NULL if row is None else made(row) for row, made in zip((before, after), found, strict=True))
            return route, key, b'{"before":%b,"after":%b%b' % (old, new, rest)

        return change

    def _fields_of(self, topic: str, table: str | None) -> set[str] | None:
        """Return the fields that an event's rule names, none for all of them; None where nothing is to be converted."""
        if not self._has_rules:
            return set()
        fields = self._rules.fields_of(topic, table)
        if fields is None:
            return None if self._includes else set()
        return fields if fields or self._includes else None

    def _side_changes(self, route: Route, table: str | None) -> tuple[TextChange, TextChange]:
        fields = self._fields_of(route.topic, table)
        if fields is not None and any(field.startswith("source.") for field in fields):
            raise NeedsRecord("Times of the source are converted")
        before, after = (
            (lambda row: row) if fields is None else self._rows_changer(side.schema, _named(fields, side.name))
            for side in route.value_schema.fields[:2]
        )
        return before, after

    def _rows_changer(self, row: Schema, named: set[str] | None) -> TextChange:
        changes = {}
        for index, field in enumerate(row.fields):
            convert = CONVERTERS.get(field.schema.name or "")
            if convert is not None and (named is None or (field.name in named) == self._includes):
                changes[index] = value_changer(field.schema, field.schema, functools.partial(convert, self._zone))
        return fields_changer(row, changes)


def _named(fields: set[str], side: str) -> set[str] | None:
    """Return the fields of a row, `before` or `after`, that a rule names; None for all of them."""
    if not fields:
        return None
    others = ("source.", "before.", "after.")
    own = {field.removeprefix(f"{side}.") for field in fields if field.startswith(f"{side}.")}
    return own | {field for field in fields if not field.startswith(others)}


def _changed(envelope: Struct, zone: Zone, fields: set[str], includes: bool) -> Struct | None:
    """Return the event with converted times, None when nothing changes."""
    values = None
    for side in ("before", "after", "source"):
        part = struct_of(envelope, side)
        if part is None:
            continue
        if side != "source":
            named = _named(fields, side)
        else:
            named = {field.removeprefix("source.") for field in fields if field.startswith("source.")}
            if not named:
                continue
        converted = _converted(part, zone, named, includes, is_source=side == "source")
        if converted is not None:
            values = values or list(envelope.values)
            values[envelope.schema.index_of(side)] = converted
    return None if values is None else Struct(envelope.schema, values)


def _converted(part: Struct, zone: Zone, named: set[str] | None, includes: bool, *, is_source: bool) -> Struct | None:
    values = None
    for index, field in enumerate(part.schema.fields):
        name = field.schema.name
        if named is not None and (field.name in named) != includes:
            continue
        value = part[field.name]
        if value is None or name in _WITHOUT_INSTANT:
            continue
        if name is None:
            if not is_source or field.name not in _EPOCHS:
                continue
            if field.schema.type is not Type.INT64:
                raise DataError("Epoch field value should be a java.lang.Long")
            unit = _EPOCHS[field.name]
            new: Any = value + zone.offset_at(value // unit) * unit
        elif name in CONVERTERS:
            new = CONVERTERS[name](zone, value)
        else:
            continue
        values = values or list(part.values)
        values[index] = new
    return None if values is None else Struct(part.schema, values)
