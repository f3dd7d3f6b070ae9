"""Write a record of a connector's topic as one line: ``10:04:07 u inventory.customers id=1001 email: a → b``. Pure.

Change events in Debezium's envelope show what an update changed. Flattened rows, as `ExtractNewRecordState` leaves them, show their values;
a tombstone, a statement of DDL, a transaction's limit and a heartbeat have an op of their own. What has no structure is shown as text.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from connect_py.data import Schema, Struct, Type
from connect_py.errors import ConfigError

#: Characters of one value in a line.
_VALUE_WIDTH = 60

#: Debezium's and Connect's types of dates and times → units a day or a second.
_DAYS = frozenset({"io.debezium.time.Date"})
_INSTANTS = {
    "io.debezium.time.Timestamp": 1_000,
    "io.debezium.time.MicroTimestamp": 1_000_000,
    "io.debezium.time.NanoTimestamp": 1_000_000_000,
}
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}

#: Fields of an envelope's ``source`` that name a table, the outer ones first; MongoDB has collections, MySQL no schemas.
_PLACES = (("schema", "table"), ("db", "table"), ("db", "collection"), ("", "table"))


@dataclass(frozen=True)
class Event:
    """What a record says.

    Attributes:
        op: ``c``, ``u``, ``d``, ``r``, ``t`` (truncate), ``m`` (message) as in Debezium's envelope; ``x`` tombstone, ``ddl``, ``tx``
            transaction, ``hb`` heartbeat, ``+`` any other record.
        table: schema or database and table where the record says so, else the topic.
        key, before, after: None where the record has none.
        timestamp: epoch milliseconds, of the source where the record says so, else of the record.
    """

    op: str
    table: str
    topic: str
    partition: int
    offset: int
    timestamp: int | None
    key: Any = None
    before: Any = None
    after: Any = None

    def as_json(self) -> dict[str, Any]:
        """Return it for --json."""
        place = {"topic": self.topic, "partition": self.partition, "offset": self.offset, "timestamp": self.timestamp}
        return {"op": self.op, "table": self.table, **place, "key": self.key, "before": self.before, "after": self.after}

    def line(self, zone: datetime.tzinfo | None = None) -> str:
        """Return it in one line, with the time in a zone, by default the machine's."""
        if self.timestamp is None:
            time = "--:--:--"
        else:
            time = (_EPOCH + datetime.timedelta(milliseconds=self.timestamp)).astimezone(zone).strftime("%H:%M:%S")
        key = self.key if isinstance(self.key, dict) else {} if self.key is None else {"key": self.key}
        words = [time, self.op, self.table, *(f"{name}={value_text(value)}" for name, value in key.items())]
        return " ".join([*words, *self._changes(key)])

    def _changes(self, key: Mapping[str, Any]) -> list[str]:
        before, after = self.before, self.after
        if not isinstance(after, dict) and not isinstance(before, dict):
            return [value_text(after)] if after is not None else []
        if isinstance(before, dict) and isinstance(after, dict):
            names = [name for name in after if before.get(name) != after[name]]
            if isinstance(key, dict) and self.op == "u":
                return [f"{name}: {value_text(before.get(name))} → {value_text(after[name])}" for name in names]
        shown = after if isinstance(after, dict) else before
        assert isinstance(shown, dict)
        return [f"{name}={value_text(value)}" for name, value in shown.items() if name not in key]


def value_text(value: Any) -> str:
    """Return a value as a person reads it in a line; long ones are cut."""
    if value is None:
        return "null"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = " ".join(text.split()) if text.strip() == text and text else json.dumps(text, ensure_ascii=False)
    return text if len(text) <= _VALUE_WIDTH else f"{text[: _VALUE_WIDTH - 1]}…"


def event_of(topic: str, partition: int, offset: int, timestamp: int | None, key: Any, value: Any, *, is_tombstone: bool = False) -> Event:
    """Return what a record says, from its key and value as `plain` gives them."""
    place = (topic, partition, offset)
    key = _documents(key)
    if is_tombstone:
        return Event("x", topic, *place, timestamp, key)
    if not isinstance(value, dict):
        return Event("+", topic, *place, timestamp, key, after=value)
    if "op" in value and ("after" in value or "before" in value or "message" in value):
        source: Mapping[str, Any] = value["source"] if isinstance(value.get("source"), dict) else {}
        at = source.get("ts_ms") or value.get("ts_ms") or timestamp
        before, after = _document(value.get("before")), _document(value.get("after"))
        if after is None and isinstance(value.get("updateDescription"), dict):
            after = _document(value["updateDescription"].get("updatedFields"))
        if value["op"] == "m":
            after = value.get("message")
        return Event(str(value["op"]), _table(source) or topic, *place, _milliseconds(at), key, before, after)
    if "ddl" in value and "databaseName" in value:
        return Event("ddl", str(value["databaseName"]), *place, _milliseconds(value.get("ts_ms") or timestamp), after=value["ddl"])
    if value.get("status") in ("BEGIN", "END") and "id" in value:
        shown = {name: each for name, each in value.items() if name in ("status", "event_count") and each is not None}
        return Event("tx", topic, *place, _milliseconds(value.get("ts_ms") or timestamp), {"id": value["id"]}, after=shown)
    if set(value) == {"ts_ms"} and "heartbeat" in topic:
        return Event("hb", topic, *place, _milliseconds(value["ts_ms"]))
    op = value.get("__op")
    after = {name: each for name, each in value.items() if not name.startswith("__")}
    return Event(str(op) if op else "+", topic, *place, timestamp, key, after=after)


def _milliseconds(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) else None


def _table(source: Mapping[str, Any]) -> str:
    for outer, inner in _PLACES:
        if source.get(inner) and (not outer or source.get(outer)):
            return f"{source[outer]}.{source[inner]}" if outer else str(source[inner])
    return ""


def _document(value: Any) -> Any:
    """MongoDB's documents are JSON in a string."""
    if isinstance(value, str) and value[:1] == "{":
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def _documents(key: Any) -> Any:
    if not isinstance(key, dict):
        return key
    found = {}
    for name, value in key.items():
        document = _document(value)
        is_oid = isinstance(document, dict) and list(document) == ["$oid"]
        found[name] = document["$oid"] if is_oid else value
    return found


def plain(schema: Schema | None, value: Any) -> Any:
    """Return a value of Connect's data as JSON has it: objects, and ISO texts of days and instants; decimals are texts, bytes hex."""
    if value is None:
        return None
    name = schema.name if schema else None
    if isinstance(value, Struct):
        return {each.name: plain(each.schema, value.without_default(each.name)) for each in value.schema.fields}
    if isinstance(value, int) and (name in _DAYS or name in _INSTANTS):
        return _moment(value, _INSTANTS.get(name or ""))
    if isinstance(value, dict):
        inner = schema.value_schema if schema and schema.type is Type.MAP else None
        return {str(each): plain(inner, item) for each, item in value.items()}
    if isinstance(value, list | tuple):
        inner = schema.value_schema if schema and schema.type is Type.ARRAY else None
        return [plain(inner, item) for item in value]
    return _scalar(value)


def _scalar(value: Any) -> Any:
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return str(value) if isinstance(value, Decimal) else value


def _moment(value: int, per_second: int | None) -> Any:
    """Return days (None) or units of a second since 1970 in ISO 8601; a number that lies beyond Python's calendar stays a number."""
    try:
        if per_second is None:
            return (_EPOCH + datetime.timedelta(days=value)).date().isoformat()
        whole, part = divmod(value, per_second)
        moment = _EPOCH + datetime.timedelta(seconds=whole, microseconds=part * 1_000_000 // per_second)
        return moment.isoformat().replace("+00:00", "Z")
    except OverflowError:
        return value


def undecoded(data: bytes | None) -> Any:
    """Return bytes that no converter reads: as text where they are, else as hex."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.hex()


def start_milliseconds(text: str, now: int, option: str = "--from") -> int | None:
    """Return from when an option reads, in epoch milliseconds: None for ``earliest``, `now` for ``now``, before it for ``90s``, ``10m``,
    ``2h`` and ``1d``, or a moment in ISO 8601.

    Raises:
        ConfigError: it is none of these.
    """
    if text == "earliest":
        return None
    if text == "now":
        return now
    if match := re.fullmatch(r"(\d{1,9})([smhd])", text):
        return now - int(match[1]) * _UNITS[match[2]] * 1000
    try:
        return int(datetime.datetime.fromisoformat(text).timestamp() * 1000)
    except ValueError:
        raise ConfigError(f"{option} {text} is not understood: write now, earliest, 10m (s, m, h, d) or 2026-01-31T10:00:00") from None


def is_wanted(event: Event, ops: Sequence[str], tables: Sequence[str]) -> bool:
    """Return whether an event passes ``--op`` and ``--table``; no ops are all but tombstones and heartbeats."""
    passes = event.op in ops if ops else event.op not in ("x", "hb")
    return passes and (not tables or any(table in (event.table, event.table.rpartition(".")[2], event.topic) for table in tables))
