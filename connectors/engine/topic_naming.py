"""Names of topics and of schemas (debezium-common.md §4; `io.debezium.schema.AbstractTopicNamingStrategy`, `SchemaTopicNamingStrategy`).

Pure. The default strategies only: PostgreSQL joins prefix, schema and table; a connector without schemas gives the database instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from connect_py.errors import ConfigError

_INVALID_IN_TOPIC = re.compile(r"[^A-Za-z0-9._-]")
#: Kafka's limit of a topic name (`org.apache.kafka.common.internals.Topic.MAX_NAME_LENGTH`).
MAX_TOPIC_LENGTH = 249

SCHEMA_STRATEGY = "io.debezium.schema.SchemaTopicNamingStrategy"
DEFAULT_STRATEGY = "io.debezium.schema.DefaultTopicNamingStrategy"


@dataclass(frozen=True, slots=True)
class TopicNaming:
    """The names that a connector with one `topic.prefix` uses.

    Attributes:
        prefix: `topic.prefix`.
        delimiter: `topic.delimiter`.
        heartbeat_prefix: `topic.heartbeat.prefix`.
        heartbeat_name: `topic.heartbeat.name`; replaces prefix and delimiter when it is given.
        transaction: `topic.transaction`.
        schema_adjustment: `schema.name.adjustment.mode`; `field_adjustment` is `field.name.adjustment.mode`: none, avro or avro_unicode.
    """

    prefix: str
    delimiter: str = "."
    heartbeat_prefix: str = "__debezium-heartbeat"
    heartbeat_name: str = ""
    transaction: str = "transaction"
    schema_adjustment: str = "none"
    field_adjustment: str = "none"

    @classmethod
    def from_config(cls, config: Mapping[str, str]) -> TopicNaming:
        """Take a connector's properties.

        Raises:
            ConfigError: a strategy or mode is not supported, or `topic.prefix` is missing.
        """
        strategy = config.get("topic.naming.strategy", SCHEMA_STRATEGY)
        if strategy not in (SCHEMA_STRATEGY, DEFAULT_STRATEGY):
            raise ConfigError(f"topic.naming.strategy={strategy} is not supported; choose {SCHEMA_STRATEGY} or {DEFAULT_STRATEGY}")
        prefix = config.get("topic.prefix", config.get("database.server.name", ""))
        if not prefix:
            raise ConfigError("topic.prefix is missing; it names the server and begins every topic's name")
        for name in ("schema.name.adjustment.mode", "field.name.adjustment.mode"):
            if config.get(name, "none") not in _ADJUSTMENTS:
                raise ConfigError(f"{name}={config[name]} is not supported; choose one of {', '.join(_ADJUSTMENTS)}")
        return cls(
            prefix,
            config.get("topic.delimiter", "."),
            config.get("topic.heartbeat.prefix", "__debezium-heartbeat"),
            config.get("topic.heartbeat.name", ""),
            config.get("topic.transaction", "transaction"),
            config.get("schema.name.adjustment.mode", "none"),
            config.get("field.name.adjustment.mode", "none"),
        )

    def data_topic(self, *parts: str) -> str:
        """The topic of a table's rows: the prefix and the non-blank parts (schema and table), characters that Kafka refuses as `_`."""
        return sanitized(self.delimiter.join(part for part in (self.prefix, *parts) if part.strip()))

    def transaction_topic(self) -> str:
        """Topic of transaction boundaries."""
        return self.prefix + self.delimiter + self.transaction

    def heartbeat_topic(self) -> str:
        """Topic of heartbeats."""
        return self.heartbeat_name or self.heartbeat_prefix + self.delimiter + self.prefix

    def schema_name(self, topic: str) -> str:
        """What the names of a topic's schemas begin with."""
        return _ADJUSTMENTS[self.schema_adjustment](topic, ".")

    def field_name(self, column: str) -> str:
        """A field's name."""
        return _ADJUSTMENTS[self.field_adjustment](column, "")


def sanitized(topic: str) -> str:
    """A name that Kafka takes: other characters as `_`, cut to 249, and `.` and `..` as underscores."""
    name = _INVALID_IN_TOPIC.sub("_", topic[:MAX_TOPIC_LENGTH])
    return "_" * len(name) if name in (".", "..") else name


def _unchanged(name: str, more: str) -> str:
    return name


def _avro(name: str, more: str) -> str:
    """Letters, digits, `_` and what `more` allows; a leading digit is kept behind `_`."""
    text = "".join(c if c.isascii() and (c.isalnum() or c == "_" or (c in more and i > 0)) else "_" for i, c in enumerate(name))
    return "_" + text if text[:1].isdigit() else text


def _avro_unicode(name: str, more: str) -> str:
    """As `_avro`, each other character and `_` itself as `_u` and its code unit in hexadecimal; the first must be a letter."""
    return "".join(
        c if c.isascii() and (c.isalpha() or (i > 0 and (c.isdigit() or c in more))) else "".join(_unit(u) for u in _units(c))
        for i, c in enumerate(name)
    )


def _units(character: str) -> list[int]:
    data = character.encode("utf-16-be")
    return [int.from_bytes(data[i : i + 2], "big") for i in range(0, len(data), 2)]


def _unit(unit: int) -> str:
    return f"_u{unit:04x}" if unit <= 0xFF else f"_u{unit:x}"


_ADJUSTMENTS: Mapping[str, Callable[[str, str], str]] = {"none": _unchanged, "avro": _avro, "avro_unicode": _avro_unicode}
