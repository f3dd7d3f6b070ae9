"""Names of topics and of schemas (debezium-common.md §4; `io.debezium.schema.AbstractTopicNamingStrategy`, `SchemaTopicNamingStrategy`).

Pure. The default strategies only: PostgreSQL joins prefix, schema and table; a connector without schemas gives the database instead.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from connect_py.data.avro_names import ADJUSTMENTS
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
            if config.get(name, "none") not in ADJUSTMENTS:
                raise ConfigError(f"{name}={config[name]} is not supported; choose one of {', '.join(ADJUSTMENTS)}")
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
        return ADJUSTMENTS[self.schema_adjustment](topic, ".")

    def field_name(self, column: str) -> str:
        """A field's name."""
        return ADJUSTMENTS[self.field_adjustment](column, "")


def sanitized(topic: str) -> str:
    """A name that Kafka takes: other characters as `_`, cut to 249, and `.` and `..` as underscores."""
    name = _INVALID_IN_TOPIC.sub("_", topic[:MAX_TOPIC_LENGTH])
    return "_" * len(name) if name in (".", "..") else name
