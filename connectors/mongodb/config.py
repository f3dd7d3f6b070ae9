"""A MongoDB connector's configuration: checked, and parsed for the task (`MongoDbConnectorConfig`)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from connect_py.api.config import ConfigType, ConfigValue, parse_value
from connect_py.errors import ConfigError
from connectors.engine.config import (
    OLD_NAMES,
    ParsedConfig,
    skipped_operations,
    validate_own,
    with_defaults,
    with_present_mode,
    with_present_names,
)
from connectors.engine.properties import Config, validate
from connectors.engine.snapshot.modes import MODES, SnapshotMode, configuration_based, custom
from connectors.engine.topic_naming import DATABASE_STRATEGY
from connectors.mongodb.capture import Capture, NamespaceFilter, capture_of
from connectors.mongodb.field_rules import FieldRules, exclude_problems, rename_problems
from connectors.mongodb.properties import PROPERTIES

log = logging.getLogger(__name__)

#: The release whose records these are; shown in `source.version` and as the plug-in's version.
VERSION: Final = "3.6.1.Final"
#: What `source.connector`, headers and metrics call this connector.
CONNECTOR: Final = "mongodb"


#: What the reference reads and does not define; their checks come first when the task starts.
HIDDEN: Final = {
    "incremental.snapshot.chunk.size": "1024",
    "filters.match.mode": "regex",
    "capture.scope": "deployment",
    "capture.mode.full.update.type": "lookup",
    "cursor.pipeline.order": "internal_first",
    "cursor.oversize.handling.mode": "fail",
    "cursor.oversize.skip.threshold": "0",
    "json.serialization.mode": "legacy",
    "cursor.max.await.time.ms": "0",
    "snapshot.fetch.size": "0",
}
#: Values of hidden properties; another one is the default, as in the reference, with a warning.
_VALUES: Final = {
    "filters.match.mode": ("regex", "literal"),
    "capture.scope": ("deployment", "database", "collection"),
    "capture.mode.full.update.type": ("lookup", "post_image"),
    "cursor.pipeline.order": ("internal_first", "user_first", "user_only"),
    "cursor.oversize.handling.mode": ("fail", "skip", "split"),
    "json.serialization.mode": ("legacy", "strict", "extended", "relaxed"),
}

_OLD_NAMES: Final = {
    **{old: new for old, new in OLD_NAMES.items() if not old.startswith(("database.server", "schema.", "table.", "column.", "toasted"))},
    "mongodb.name": "topic.prefix",
    "field.blacklist": "field.exclude.list",
}
_OLD_MODES: Final = {"never": "no_data"}
_OVERRIDES: Final = "snapshot.collection.filter.overrides"


def present_config(config: Config) -> tuple[dict[str, str | None], list[str]]:
    """Return the configuration in present names and modes, and a warning for each that was old."""
    present, warnings = with_present_names(config, _OLD_NAMES)
    return present, warnings + with_present_mode(present, _OLD_MODES)


def validate_config(config: Config) -> list[ConfigValue]:
    """Return every property's value and problems, without asking the server. Does not raise."""
    present = present_config(config)[0]
    found = [*validate(PROPERTIES, present), *validate_own(present)]
    by_name = {value.name: value for value in found}
    for name in ("database.include.list", "database.exclude.list", "collection.include.list", "collection.exclude.list"):
        errors = by_name[name].errors
        # the reference repeats the property's name in this one
        errors[:] = [error.replace("invalid: contains empty", f"invalid: {name} contains empty") for error in errors]
    # the reference names field.exclude.list in both, and says what is wrong with each entry
    for name, problems in (("field.exclude.list", exclude_problems), ("field.renames", rename_problems)):
        by_name[name].errors += [f"The 'field.exclude.list' value is invalid: {problem}" for problem in problems(present.get(name))]
    string = by_name["mongodb.connection.string"].errors
    if present.get("mongodb.connection.string.shard.params"):
        string.append("Deprecated field 'mongodb.connection.string.shard.params' is used")
    if (present.get("mongodb.connection.mode") or "").strip().lower() == "replica_set":
        string.append("Deprecated field 'mongodb.connection.mode' is used set to removed 'replica_set' value")
    return found


@dataclass(frozen=True)
class MongoConfig(ParsedConfig):
    """A valid configuration, parsed. `raw` has the present names and every default that is a text.

    Attributes:
        signal_collection: the namespace of `signal.data.collection`, None without one.
        overrides: filters (JSON) of snapshots by namespace.
        snapshot_only: what an initial snapshot reads of the captured collections.
    """

    raw: Mapping[str, str]
    topic_prefix: str
    snapshot_mode: SnapshotMode
    namespaces: NamespaceFilter
    fields: FieldRules
    capture: Capture
    overrides: Mapping[str, str]
    skipped: frozenset[str]
    signal_collection: str | None = None
    version: str = VERSION

    @property
    def connection_string(self) -> str:
        """As it was given; it may hold a password."""
        return self.raw["mongodb.connection.string"].strip()

    @property
    def password(self) -> str | None:
        """The secret itself."""
        text = self.raw.get("mongodb.password")
        if text is None:
            return None
        secret: str = parse_value("mongodb.password", text, ConfigType.PASSWORD).reveal()
        return secret


def parse_config(config: Config) -> MongoConfig:
    """Parse what the task is given; old names are logged as warnings.

    Raises:
        ConfigError: with every problem.
    """
    present, warnings = present_config(config)
    problems = [error for value in validate_config(present) for error in value.errors]
    if problems:
        raise ConfigError("Error configuring an instance of MongoDbConnectorTask: " + " ".join(problems))
    raw = HIDDEN | with_defaults(PROPERTIES, {"topic.naming.strategy": DATABASE_STRATEGY, **present})
    for name, values in _VALUES.items():
        if raw[name].strip().lower() not in values:
            warnings.append(f"{name}={raw[name]} is none of {', '.join(values)}; {HIDDEN[name]} is used")
            raw[name] = HIDDEN[name]
    for warning in [*warnings, *_without_effect(raw)]:
        log.warning(warning)
    signal = next((part.strip() for part in raw.get("signal.data.collection", "").split(",") if part.strip()), None)
    namespaces = NamespaceFilter.parse(raw, signal)
    skipped = skipped_operations(raw)
    return MongoConfig(
        raw=raw,
        topic_prefix=raw["topic.prefix"].strip(),
        snapshot_mode=_snapshot_mode(raw),
        namespaces=namespaces,
        fields=FieldRules.parse(raw.get("field.exclude.list"), raw.get("field.renames")),
        capture=capture_of(raw, namespaces, skipped),
        overrides=_overrides(raw),
        skipped=skipped,
        signal_collection=signal,
    )


#: Accepted, and why it changes nothing.
WITHOUT_EFFECT: Final[Mapping[str, str]] = {
    "event.processing.failure.handling.mode": "an event that cannot be decoded fails the task whatever it says",
    "converters": "documents have no columns to convert",
    "post.processors": "documents have no columns to convert",
    "heartbeat.action.query": "MongoDB has no statement to run",
}


def _without_effect(raw: Mapping[str, str]) -> list[str]:
    """Return accepted properties that have no effect."""
    defaults = with_defaults(PROPERTIES, {})
    found = [
        f"{name} is set and has no effect: {why}"
        for name, why in WITHOUT_EFFECT.items()
        if raw.get(name, "").strip().lower() != defaults.get(name, "").lower()
    ]
    signal, scope, target = (
        raw.get("signal.data.collection", "").strip(),
        raw["capture.scope"].strip().lower(),
        raw.get("capture.target", ""),
    )
    if signal and scope != "deployment" and (scope == "collection" or not signal.startswith(f"{target.strip()}.")):
        found.append(f"signal.data.collection={signal} lies outside of what is watched (capture.target={target}): no signal will be seen")
    return found


def _overrides(raw: Mapping[str, str]) -> dict[str, str]:
    listed = [part.strip() for part in raw.get(_OVERRIDES, "").split(",") if part.strip()]
    found = {name: text for name in listed if (text := raw.get(f"{_OVERRIDES}.{name}", "").strip())}
    for name in listed:
        if name not in found:
            log.warning("%s names %s, for which there is no filter: the whole collection is read", _OVERRIDES, name)
    return found


def _snapshot_mode(raw: Mapping[str, str]) -> SnapshotMode:
    name = raw["snapshot.mode"].strip().lower()
    if name == "custom":
        return custom(raw["snapshot.mode.custom.name"].strip(), raw)
    if name == "configuration_based":
        says = {
            key: raw[f"snapshot.mode.configuration.based.{key}"].strip().lower() == "true"
            for key in ("snapshot.data", "start.stream", "snapshot.on.data.error")
        }
        return configuration_based(data=says["snapshot.data"], streams=says["start.stream"], on_data_error=says["snapshot.on.data.error"])
    return MODES[name]


def connection_part(config: Mapping[str, str], name: str) -> dict[str, str]:
    """Return what the sink's properties say of the connection, as the source connector's configuration has it."""
    own = {key: value for key, value in config.items() if key.startswith("mongodb.")}
    return {**own, "name": name, "topic.prefix": name}


__all__ = ["CONNECTOR", "PROPERTIES", "VERSION", "MongoConfig", "connection_part", "parse_config", "validate_config"]
