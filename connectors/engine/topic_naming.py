"""Names of topics and of schemas (`io.debezium.schema.AbstractTopicNamingStrategy`, `SchemaTopicNamingStrategy`), and topics named by a
regular expression, with the field of keys that goes with them (`AbstractRegexTopicNamingStrategy`).

Pure. A connector passes its own two parts: schema and table for PostgreSQL, database and table for the others.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from connect_py.data.avro_names import ADJUSTMENTS, escaped
from connect_py.data.java_regex import compile_java_regex, java_replacement
from connect_py.errors import ConfigError

log = logging.getLogger(__name__)


_Replaced = tuple[re.Pattern[str], Callable[[re.Match[str]], str]]


@dataclass(frozen=True, slots=True)
class Rewriting:
    """What `topic.regex` and its kin say.

    Attributes:
        field: `topic.key.field.name`; empty where keys are left alone (``topic.key.enforce.uniqueness=false``).
        identifier: makes the field's text of the name that a topic had; None for that name itself.
    """

    regex: _Replaced
    field: str = "__dbz__physicalTableIdentifier"
    identifier: _Replaced | None = None

    @classmethod
    def from_config(cls, config: Mapping[str, str]) -> Rewriting:
        """Read a connector's properties. Raises ConfigError: one is missing or malformed."""
        regex = _replaced(config, "topic.regex", "topic.replacement")
        if regex is None:
            raise ConfigError("topic.regex and topic.replacement are missing, by which topic.naming.strategy makes names")
        marks = config.get("topic.key.enforce.uniqueness", "true").strip().lower() != "false"
        field = config.get("topic.key.field.name", "__dbz__physicalTableIdentifier") if marks else ""
        return cls(regex, field, _replaced(config, "topic.key.field.regex", "topic.key.field.replacement"))

    def topic(self, name: str) -> str:
        """Return the new name; the old one where the regex does not match all of it, or nothing would be left."""
        new = _rewritten(self.regex, name)
        if not new:
            log.warning("topic.regex and topic.replacement leave nothing of the topic %s, which keeps its name", name)
        return new or name

    def key_mark(self, name: str) -> tuple[str, str] | None:
        """Return the field's name and text for the topic that would have had this name."""
        if not self.field:
            return None
        return self.field, name if self.identifier is None else _rewritten(self.identifier, name)


def _replaced(config: Mapping[str, str], regex: str, replacement: str) -> _Replaced | None:
    text = config.get(regex, "")
    if not text.strip():
        return None
    if not config.get(replacement, "").strip():
        raise ConfigError(f"{replacement} must be non-empty if {regex} is set.")
    pattern = compile_java_regex(text)
    return pattern, java_replacement(pattern, config[replacement])


def _rewritten(rule: _Replaced, name: str) -> str:
    pattern, replace = rule
    match = pattern.fullmatch(name)
    return name if match is None else replace(match)


_INVALID_IN_TOPIC = re.compile(r"[^A-Za-z0-9._-]")
_ESCAPED_IN_TOPIC = re.compile(r"[^A-Za-z0-9.-]")
#: Kafka's limit of a topic name (`org.apache.kafka.common.internals.Topic.MAX_NAME_LENGTH`).
MAX_TOPIC_LENGTH = 249

_PACKAGE = "io.debezium.schema."
#: How a strategy's class is called between what it joins and the end of its name.
_FORMS = {"": "plain", "Regex": "regex", "Unicode": "unicode"}
#: Strategy → whether it joins the database or the schema with the table, and its form.
STRATEGIES = {
    f"{_PACKAGE}{base}{form}TopicNamingStrategy": (base.lower(), kind) for base in ("Schema", "Default") for form, kind in _FORMS.items()
}
#: What connectors of databases without schemas take where nothing is set; validation shows another, as the reference's does.
DATABASE_STRATEGY = f"{_PACKAGE}DefaultTopicNamingStrategy"


@dataclass(frozen=True, slots=True)
class TopicNaming:
    """The names that a connector with one `topic.prefix` uses.

    Attributes:
        prefix: `topic.prefix`.
        delimiter: `topic.delimiter`.
        heartbeat_prefix: `topic.heartbeat.prefix`.
        heartbeat_name: `topic.heartbeat.name`; replaces prefix and delimiter when it is given.
        transaction: `topic.transaction`.
        leaves_out: whether names are of the table alone: the strategy joins what this connector's tables do not have.
        escapes: whether characters that Kafka refuses, and `_`, are written as `_u` and their number.
        rewriting: what a strategy by regex makes of names; None for others.
        schema_adjustment: `schema.name.adjustment.mode`; `field_adjustment` is `field.name.adjustment.mode`: none, avro or avro_unicode.
    """

    prefix: str
    delimiter: str = "."
    heartbeat_prefix: str = "__debezium-heartbeat"
    heartbeat_name: str = ""
    transaction: str = "transaction"
    schema_adjustment: str = "none"
    field_adjustment: str = "none"
    leaves_out: bool = False
    escapes: bool = False
    rewriting: Rewriting | None = None

    @classmethod
    def from_config(cls, config: Mapping[str, str], own: str = "schema") -> TopicNaming:
        """Read a connector's properties.

        Args:
            own: what the connector's tables lie in, `schema` or `default` (a database).

        Raises:
            ConfigError: a strategy or mode is not supported, or `topic.prefix` or what a strategy needs is missing.
        """
        strategy = config.get("topic.naming.strategy")
        joins, form = STRATEGIES.get(strategy, ("", "")) if strategy else (own, "plain")
        if not form:
            raise ConfigError(f"topic.naming.strategy={strategy} is not supported; choose one of {', '.join(sorted(STRATEGIES))}")
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
            leaves_out=joins != own,
            escapes=form == "unicode",
            rewriting=Rewriting.from_config(config) if form == "regex" else None,
        )

    def data_topic(self, *parts: str) -> str:
        """Return the topic of a table's rows: the prefix and the non-blank parts (schema and table), characters that Kafka refuses as
        `_`."""
        topic = sanitized(self._joined(parts), escapes=self.escapes)
        return self.rewriting.topic(topic) if self.rewriting else topic

    def key_mark(self, *parts: str) -> tuple[str, str] | None:
        """Return name and text of the field by which keys distinguish tables that share a topic; None where there is none."""
        return self.rewriting.key_mark(self._joined(parts)) if self.rewriting else None

    def _joined(self, parts: tuple[str, ...]) -> str:
        return self.delimiter.join(part for part in (self.prefix, *(parts[-1:] if self.leaves_out else parts)) if part.strip())

    def transaction_topic(self) -> str:
        """Return the topic of transaction boundaries."""
        return self.prefix + self.delimiter + self.transaction

    def heartbeat_topic(self) -> str:
        """Return the topic of heartbeats."""
        return self.heartbeat_name or self.heartbeat_prefix + self.delimiter + self.prefix

    def schema_name(self, topic: str) -> str:
        """Return what the names of a topic's schemas start with."""
        return ADJUSTMENTS[self.schema_adjustment](topic, ".")

    def field_name(self, column: str) -> str:
        """Return a field's name."""
        return ADJUSTMENTS[self.field_adjustment](column, "")


def sanitized(topic: str, *, escapes: bool = False) -> str:
    """Return a name that Kafka accepts: other characters as `_`, cut to 249, and `.` and `..` as underscores."""
    name = topic[:MAX_TOPIC_LENGTH]
    name = _ESCAPED_IN_TOPIC.sub(lambda found: escaped(found[0]), name) if escapes else _INVALID_IN_TOPIC.sub("_", name)
    return "_" * len(name) if name in (".", "..") else name
