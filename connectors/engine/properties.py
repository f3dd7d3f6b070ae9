"""Properties of connectors: what one is, its checks with Debezium's texts (`io.debezium.config.Field`), the order in which configuration
definitions list them (`CommonConnectorConfig.CONFIG_DEFINITION`), and which are accepted without effect.

A check is a function of the property's text and the whole configuration that returns a problem, several, or None. `validate` wraps each
problem as ``The '<property>' value is invalid: <problem>``.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from connect_py.api import ConfigDef, ConfigKey, ConfigType, ConfigValue, Importance, Width
from connect_py.api.config import parse_value
from connect_py.errors import ConfigError
from connectors.engine.relational.tables import KeyRules, parse_regexes

log = logging.getLogger(__name__)


Config = Mapping[str, str | None]
Check = Callable[[str | None, Config], "str | tuple[str, ...] | None"]

# Shorthands for tables of properties: types and importances.
BOOLEAN, CLASS_NAME, INT, LONG, LIST, PASSWORD, STRING = (
    ConfigType.BOOLEAN,
    ConfigType.CLASS,
    ConfigType.INT,
    ConfigType.LONG,
    ConfigType.LIST,
    ConfigType.PASSWORD,
    ConfigType.STRING,
)
HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW

_INTEGER = re.compile(r"[+-]?\d+")
_CLASS_NAME = re.compile(r"[A-Za-z_$][\w$]*(\.[A-Za-z_$][\w$]*)*")
#: What no part of a name may be (`javax.lang.model.SourceVersion.isName`).
_JAVA_WORDS = frozenset(
    [
        "abstract",
        "assert",
        "boolean",
        "break",
        "byte",
        "case",
        "catch",
        "char",
        "class",
        "const",
        "continue",
        "default",
        "do",
        "double",
        "else",
        "enum",
        "extends",
        "final",
        "finally",
        "float",
        "for",
        "goto",
        "if",
        "implements",
        "import",
        "instanceof",
        "int",
        "interface",
        "long",
        "native",
        "new",
        "package",
        "private",
        "protected",
        "public",
        "return",
        "short",
        "static",
        "strictfp",
        "super",
        "switch",
        "synchronized",
        "this",
        "throw",
        "throws",
        "transient",
        "try",
        "void",
        "volatile",
        "while",
        "_",
        "null",
        "true",
        "false",
    ]
)
NAME = re.compile(r"[a-zA-Z0-9_.\-]+")
DEFAULT_BATCH_SIZE = "2048"
BAD_NAME = "has invalid format (only the underscore, hyphen, dot and alphanumeric characters are allowed)"


@dataclass(frozen=True)
class Property:
    """A key with its checks and, for enumerations, the values that a form offers."""

    key: ConfigKey
    checks: tuple[Check, ...] = ()
    recommended: tuple[str, ...] = field(default=())


def prop(
    name: str,
    type_: ConfigType,
    default: str | None,
    importance: Importance,
    width: Width,
    display: str,
    documentation: str,
    *checks: Check,
    values: Sequence[str] = (),
) -> Property:
    """Return a property; the check of its type comes first, one against `values` follows."""
    found: list[Check] = []
    if type_ in _TYPE_CHECKS:
        found.append(_TYPE_CHECKS[type_])
    found += checks
    if values:
        found.append(one_of(values))
    key = ConfigKey(name, type_, default, importance, documentation, width=width, display_name=display)
    return Property(key, tuple(found), tuple(values))


def arrange(properties: Iterable[Property], layout: Mapping[str, Sequence[str]], more: Config | None = None) -> dict[str, Property]:
    """Properties in groups: `layout` names each group's members in order; `more` are defaults that differ for this connector."""
    by_name = {p.key.name: p for p in properties}
    arranged = {}
    for group, names in layout.items():
        for order, name in enumerate(names, 1):
            known = by_name[name]
            default = (more or {}).get(name, known.key.default)
            arranged[name] = replace(known, key=replace(known.key, group=group, order=order, default=default))
    return arranged


def definition(properties: Mapping[str, Property]) -> ConfigDef:
    """Return the keys alone, for REST answers."""
    return ConfigDef(p.key for p in properties.values())


def validate(properties: Mapping[str, Property], config: Config) -> list[ConfigValue]:
    """Return every key's value and problems. Does not raise."""
    found = []
    for name, known in properties.items():
        text = config.get(name)
        given = text if text is not None else known.key.default
        result = ConfigValue(name, recommended_values=list(known.recommended))
        problems = [problem for check in known.checks for problem in _each(check(given, config))]
        result.errors = [f"The '{name}' value is invalid: {problem}" for problem in problems]  # one that two checks find counts twice
        if not problems:
            try:
                result.value = parse_value(name, given, known.key.type)
            except ConfigError as error:
                result.errors = [f"The '{name}' value is invalid: {error}"]
        found.append(result)
    return found


def _each(problems: str | tuple[str, ...] | None) -> tuple[str, ...]:
    return (problems,) if isinstance(problems, str) else problems or ()


# -- checks ----------------------------------------------------------------------------------------------------------------------


def _is_integer(text: str | None, limit: int) -> bool:
    return text is not None and bool(_INTEGER.fullmatch(text)) and -limit <= int(text) < limit


def is_int(text: str | None, _: Config) -> str | None:
    """Require a 32-bit number, when given."""
    return None if text is None or _is_integer(text, 2**31) else "An integer is expected"


def is_long(text: str | None, _: Config) -> str | None:
    """Require a 64-bit number, when given."""
    return None if text is None or _is_integer(text, 2**63) else "A long value is expected"


def is_boolean(text: str | None, _: Config) -> str | None:
    """Require true or false, when given."""
    return None if text is None or text.strip().lower() in ("true", "false") else "Either 'true' or 'false' is expected"


def is_class_name(text: str | None, _: Config) -> str | None:
    """Require a name that a Java class may have, when given."""
    if text is None or (_CLASS_NAME.fullmatch(text) and not _JAVA_WORDS.intersection(text.split("."))):
        return None
    return "A Java class name is expected"


_TYPE_CHECKS: dict[ConfigType, Check] = {
    ConfigType.INT: is_int,
    ConfigType.LONG: is_long,
    ConfigType.BOOLEAN: is_boolean,
    ConfigType.CLASS: is_class_name,
}


def positive_int(text: str | None, _: Config) -> str | None:
    """Require more than zero."""
    return None if text is None or (_is_integer(text, 2**31) and int(text) > 0) else "A positive, non-zero integer value is expected"


def non_negative_int(text: str | None, _: Config) -> str | None:
    """Require zero or more."""
    return None if text is None or (_is_integer(text, 2**31) and int(text) >= 0) else "An non-negative integer is expected"


def positive_long(text: str | None, _: Config) -> str | None:
    """Require more than zero."""
    return None if text is None or (_is_integer(text, 2**63) and int(text) > 0) else "A positive, non-zero long value is expected"


def non_negative_long(text: str | None, _: Config) -> str | None:
    """Require zero or more."""
    return None if text is None or (_is_integer(text, 2**63) and int(text) >= 0) else "A non-negative long value is expected"


def required(text: str | None, _: Config) -> str | None:
    """Require a text that is not blank."""
    return "A value is required" if text is None or not text.strip() else None


def is_name(text: str | None, _: Config) -> str | None:
    """Require a part of a topic's name, or a host name."""
    return None if not text or not text.strip() or NAME.fullmatch(text.strip()) else f"{text} {BAD_NAME}"


def is_not_blank_name(text: str | None, config: Config) -> str | None:
    """Require what `is_name` does; a blank one is no name either, in addition to being missing."""
    return f"{text} {BAD_NAME}" if text is not None and not text.strip() else is_name(text, config)


def one_of(values: Sequence[str]) -> Check:
    """Return a check that requires one of the values, in any case."""

    def check(text: str | None, _: Config) -> str | None:
        return None if text is None or text.strip().lower() in values else f"Value must be one of {', '.join(values)}"

    return check


def regexes(text: str | None, _: Config) -> str | None:
    """Require a comma-separated list of Java regexes."""
    try:
        parse_regexes(text)
    except ConfigError as error:
        return f"A comma-separated list of valid regular expressions is expected, but {error}"
    return None


def not_beside(include: str, says: str | None = None) -> Check:
    """Refuse an exclude list together with its include list, in Debezium's usual words or in others."""
    problem = says or f'"{include}" is already specified'

    def check(text: str | None, config: Config) -> str | None:
        return problem if text and config.get(include) else None

    return check


def more_than_zero(text: str | None, _: Config) -> str | None:
    """Refuse 0. Debezium would accept a pause of no time; another check refuses what is no number."""
    return "A positive, non-zero long value is expected" if text and _is_integer(text, 2**63) and int(text) <= 0 else None


def not_zero(text: str | None, _: Config) -> str | None:
    """Require more than zero. Debezium does not, and its chunks of no rows never end."""
    return "A positive, non-zero integer value is expected" if text and _is_integer(text, 2**31) and int(text) == 0 else None


def positive_queue(text: str | None, _: Config) -> str | None:
    """Check max.queue.size by itself."""
    return "A positive queue size is required" if text and _is_integer(text, 2**31) and int(text) <= 0 else None


def queue_over_batch(text: str | None, config: Config) -> str | None:
    """Check max.queue.size against max.batch.size."""
    batch = config.get("max.batch.size")
    batch = DEFAULT_BATCH_SIZE if batch is None else batch
    is_smaller = text and _is_integer(text, 2**31) and _is_integer(batch, 2**31) and int(text) <= int(batch)
    return "Must be larger than the maximum batch size" if is_smaller else None


def pairs(text: str | None, _: Config) -> str | None:
    """Require ``name=value`` pairs with commas, when given."""
    if not text or all("=" in pair for pair in text.rstrip(",").split(",") if text.strip(",")):
        return None
    return "A equivalent-separated map of valid key/value pairs is expected, for example: k1=v1,k2=v2"


def operations(text: str | None, _: Config) -> str | None:
    """Check skipped.operations."""
    parts = [part.strip().lower() for part in (text or "").split(",") if part.strip()]
    if text is not None and not text.strip():
        return "Invalid operation"
    if any(part not in ("c", "u", "d", "t", "r", "none") for part in parts):
        return "Invalid operation"
    if "none" in parts and len(parts) > 1:
        return "'none' cannot be specified with other skipped operation types"
    return None


def key_columns(text: str | None, _: Config) -> tuple[str, ...]:
    """Check message.key.columns: every entry that is malformed, and a list of none."""
    if text is None:
        return ()
    problems = [] if text else ["Must not be empty"]
    for entry in text.split(";"):
        try:
            KeyRules.parse_entry(entry)
        except ConfigError as error:
            problems.append(str(error))
    return tuple(problems)


def sink_topic(text: str | None, config: Config) -> str | None:
    """Check notification.sink.topic.name."""
    channels = [part.strip().lower() for part in (config.get("notification.enabled.channels") or "").split(",")]
    if "sink" not in channels or (text and text.strip()):
        return None
    return "Notification topic name must be provided when kafka notification channel is enabled"


def one_collection(text: str | None, _: Config) -> str | None:
    """Check signal.data.collection of a connector with one task."""
    if len([part for part in (text or "").split(",") if part.strip()]) > 1:
        return "For single task connector only one signal data collection is permitted."
    return None


def new_tables(text: str | None, config: Config) -> str | None:
    """Check snapshot.new.tables: what is read incrementally needs a way to write or see watermarks."""
    if (text or "").strip().lower() != "incremental" or (config.get("signal.data.collection") or "").strip():
        return None
    if (config.get("read.only") or "").strip().lower() == "true":
        return None
    return "an incremental snapshot needs signal.data.collection, or read.only=true where the connector has it"


def needed_when(other: str, value: str) -> Check:
    """Return a check that requires a name when another property has a value."""

    def check(text: str | None, config: Config) -> str | None:
        if (config.get(other) or "").strip().lower() != value or (text and text.strip()):
            return None
        return f"{other}.custom.name cannot be empty when {other} '{value}' is defined"

    return check


DELIVERY: Final = (
    "event.processing.failure.handling.mode",
    "max.batch.size",
    "max.queue.size",
    "poll.interval.ms",
    "max.queue.size.in.bytes",
    "provide.transaction.metadata",
)

SNAPSHOTS: Final = (
    "snapshot.delay.ms",
    "streaming.delay.ms",
    "snapshot.include.collection.list",
    "snapshot.fetch.size",
    "snapshot.max.threads",
    "snapshot.max.threads.multiplier",
    "legacy.snapshot.max.threads",
    "internal.legacy.snapshot.max.threads",
    "snapshot.mode.custom.name",
    "snapshot.mode.configuration.based.snapshot.data",
    "snapshot.mode.configuration.based.snapshot.schema",
    "snapshot.mode.configuration.based.start.stream",
    "snapshot.mode.configuration.based.snapshot.on.schema.error",
    "snapshot.mode.configuration.based.snapshot.on.data.error",
    "retriable.restart.connector.wait.ms",
    "query.fetch.size",
    "errors.max.retries",
    "incremental.snapshot.watermarking.strategy",
    "internal.log.position.check.enable",
    "internal.advanced.metrics.enable",
    "connection.validation.timeout.ms",
    "executor.shutdown.timeout.ms",
    "openlineage.integration.enabled",
    "openlineage.integration.config.file.path",
    "openlineage.integration.job.namespace",
    "openlineage.integration.job.description",
    "openlineage.integration.job.tags",
    "openlineage.integration.job.owners",
    "openlineage.integration.dataset.kafka.bootstrap.servers",
    "extended.headers.enabled",
    "guardrail.collections.max",
    "guardrail.collections.limit.action",
    "custom.sanitize.pattern",
    "statistics.metrics.enabled",
)

RECORDS: Final = (
    "converters",
    "post.processors",
    "tombstones.on.delete",
    "heartbeat.interval.ms",
    "heartbeat.topics.prefix",
    "signal.data.collection",
    "signal.poll.interval.ms",
    "signal.enabled.channels",
    "topic.naming.strategy",
    "notification.enabled.channels",
    "notification.sink.topic.name",
    "transaction.metadata.factory",
    "custom.metric.tags",
)

COLUMN_RULES: Final = (
    "message.key.columns",
    "snapshot.select.statement.overrides",
    "column.mask.hash.([^.]+).with.salt.(.+)",
    "column.mask.with.(d+).chars",
    "column.truncate.to.(d+).chars",
)

SOURCE_TYPES: Final = (
    "include.schema.comments",
    "column.propagate.source.type",
    "datatype.propagate.source.type",
    "internal.snapshot.scan.all.columns.force",
    "snapshot.tables.order.by.row.count",
    "heartbeat.action.query",
)


#: By name: whether a task warns of a value other than the default, and why the property has no effect.
WithoutEffect = Mapping[str, tuple[bool, str]]

JAVA_CLASS: Final = "it names a Java class, which cannot be loaded"
_NO_LINEAGE = "no lineage is reported to OpenLineage"
_QUEUE = "rows go from the socket to the producer without a queue; a batch ends after 2,000 rows or 4 MB"
#: Of the connectors of relational databases.
COMMON_WITHOUT_EFFECT: Final[WithoutEffect] = {
    "internal.legacy.snapshot.max.threads": (False, "tables are cut into chunks; legacy.snapshot.max.threads changes that"),
    "internal.advanced.metrics.enable": (False, "what can be measured is measured once a batch, which costs nothing"),
    "internal.snapshot.scan.all.columns.force": (False, "structures are read of the tables that count"),
    "openlineage.integration.enabled": (True, _NO_LINEAGE),
    "openlineage.integration.config.file.path": (False, _NO_LINEAGE),
    "openlineage.integration.job.namespace": (False, _NO_LINEAGE),
    "openlineage.integration.job.description": (False, _NO_LINEAGE),
    "openlineage.integration.job.tags": (False, _NO_LINEAGE),
    "openlineage.integration.job.owners": (False, _NO_LINEAGE),
    "openlineage.integration.dataset.kafka.bootstrap.servers": (False, _NO_LINEAGE),
    "memory.management.schemas.class": (True, JAVA_CLASS),
    "memory.management.tables.class": (True, JAVA_CLASS),
    "sourceinfo.struct.maker": (True, JAVA_CLASS),
    "transaction.metadata.factory": (True, JAVA_CLASS),
    "max.batch.size": (False, _QUEUE),
    "max.queue.size.in.bytes": (False, _QUEUE),
    "executor.shutdown.timeout.ms": (False, "there are no executors; task.shutdown.graceful.timeout.ms of the worker bounds a stop"),
    "statistics.metrics.enabled": (False, "latencies are measured once a batch, which costs nothing"),
    "custom.metric.tags": (True, "figures are labelled with connector, task and server"),
    "snapshot.query.mode.custom.name": (False, "snapshot.query.mode=custom is refused"),
    "snapshot.locking.mode.custom.name": (False, "snapshot.locking.mode=custom is refused"),
    "incremental.snapshot.allow.schema.changes": (False, "a change of structure inside of a chunk always makes it be read again"),
    "heartbeat.topics.prefix": (True, "as in Debezium; topic.heartbeat.prefix names the topic"),
    "topic.cache.size": (False, "names of topics are made once a structure"),
}


def warn_of_unused(unused: WithoutEffect, properties: Mapping[str, Property], present: Config) -> None:
    """Warn about properties that are given and have no effect."""
    for name, (warns, why) in unused.items():
        text = present.get(name)
        default = properties[name].key.default if name in properties else None
        if warns and text and text.strip().lower() != str(default or "").lower():
            log.warning("%s=%s has no effect: %s", name, text, why)
