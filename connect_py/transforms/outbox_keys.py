"""Define the properties of the outbox event router (`EventRouterConfigDefinition.java`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from connect_py.api import ConfigType, Importance, Width
from connect_py.errors import ConfigError
from connect_py.transforms import tracing
from connect_py.transforms.debezium import Rule, one_of, option, regex

_PLACES = ("header", "envelope", "partition")
_PLACEMENT = "table.fields.additional.placement"


class Placement(NamedTuple):
    """Where an additional column goes: `header`, `envelope` or `partition`, and under which name."""

    column: str
    where: str
    alias: str


def parse_placements(items: Sequence[str] | None) -> list[Placement]:
    """Placements of `column:where` and `column:where:alias` items. Raises ConfigError for an unknown place."""
    found = []
    for item in items or ():
        parts = [part.strip() for part in item.split(":")]
        where = parts[1].lower()
        if where not in _PLACES:
            raise ConfigError(f"{_PLACEMENT}: {item} names no place; there are {', '.join(_PLACES)}")
        found.append(Placement(parts[0], where, parts[2] if len(parts) == 3 else parts[0]))
    return found


def _pairs(text: str | None) -> str | None:
    items = [] if text is None else text.split(",")
    if any(len(item.rstrip(":").split(":")) not in (2, 3) for item in items):
        return f"A comma-separated list of valid String pairs or trios is expected but got: [{', '.join(items)}]"
    return None


RULES: Sequence[tuple[str, Rule]] = (
    (_PLACEMENT, _pairs),
    ("table.field.additional.missing", one_of("ignore", "error")),
    ("route.topic.regex", regex),
    ("table.op.invalid.behavior", one_of("warn", "error", "fatal")),
    ("table.json.payload.null.behavior", one_of("ignore", "optional_bytes")),
)

_S, _B, _L = ConfigType.STRING, ConfigType.BOOLEAN, ConfigType.LIST
_LOW, _MEDIUM, _HIGH = Importance.LOW, Importance.MEDIUM, Importance.HIGH


def _group(name: str, *rows: tuple[str, ConfigType, Any, Importance, str, str]) -> list[Any]:
    return [
        option(key, type_, default, importance, Width.MEDIUM, title, text, group=name, order=order)
        for order, (key, type_, default, importance, title, text) in enumerate(rows, 1)
    ]


KEYS = (
    *_group(
        "Table",
        ("table.field.event.id", _S, "id", _LOW, "Event ID Field", "The column with the event's id; it becomes the header id."),
        ("table.field.event.key", _S, "aggregateid", _LOW, "Event Key Field", "The column with the message's key."),
        ("table.field.event.type", _S, "type", _LOW, "Event Type Field", "The column with the event's type."),
        ("table.field.event.payload", _S, "payload", _LOW, "Event Payload Field", "The column with the message's value."),
        (
            "table.field.event.timestamp",
            _S,
            None,
            _MEDIUM,
            "Event Timestamp Field",
            "The column with the message's time; without it the time at which the connector read the row counts.",
        ),
        (
            _PLACEMENT,
            _L,
            None,
            _HIGH,
            "Settings for each additional column in the outbox table",
            "What becomes of other columns, as column:header, column:envelope or column:partition, and :alias for another name.",
        ),
        (
            "table.field.additional.missing",
            _S,
            "error",
            _MEDIUM,
            "Behavior when an additional field is missing in the change data",
            "What a missing additional column means: error fails, ignore goes on without it.",
        ),
        (
            "table.field.event.schema.version",
            _S,
            None,
            _LOW,
            "Event Schema Version Field",
            "The column with the version of the schema that enveloped messages get.",
        ),
        (
            "table.op.invalid.behavior",
            _S,
            "warn",
            _MEDIUM,
            "Behavior when capturing an unexpected outbox event",
            "What an update of a row means, which an outbox table never sees: warn and error log it, fatal fails.",
        ),
        (
            "table.expand.json.payload",
            _B,
            False,
            _MEDIUM,
            "Expand Payload escaped string as real JSON",
            "Whether a payload that is the text of a JSON object becomes a struct; any other text stays what it is, with a warning.",
        ),
        (
            "table.json.payload.null.behavior",
            _S,
            "ignore",
            _MEDIUM,
            "Behavior when json payload including null value",
            "What a null inside an expanded payload is: ignore - no field, optional_bytes - a null field of that type.",
        ),
    ),
    *_group(
        "Router",
        ("route.by.field", _S, "aggregatetype", _HIGH, "Field to route events by", "The column whose value the topic's name is made of."),
        (
            "route.topic.regex",
            _S,
            "(?<routedByValue>.*)",
            _LOW,
            "The name of the routed topic",
            "What the value of route.by.field must match as a whole to become route.topic.replacement; another one is the topic itself.",
        ),
        (
            "route.topic.replacement",
            _S,
            "outbox.event.${routedByValue}",
            _HIGH,
            "The name of the routed topic",
            "The name of the topic, with ${routedByValue} for the value of route.by.field.",
        ),
        (
            "route.tombstone.on.empty.payload",
            _B,
            False,
            _HIGH,
            "Empty payloads cause a tombstone message",
            "Whether a null or blank payload becomes a tombstone.",
        ),
    ),
    *_group("Tracing", *tracing.ROWS),
)
