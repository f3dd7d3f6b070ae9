"""Create the topics of a source task before its first record goes there (KIP-158; `util/TopicCreation.java`, `TopicCreationGroup.java`).

Active when the worker allows it and the connector has any ``topic.creation.`` property; otherwise the broker's own auto-creation decides.
A topic that exists is never touched. The first group in ``topic.creation.groups`` whose ``include`` matches and whose ``exclude`` does not
gives the settings, then the group ``default``.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from connect_py.api.config import ConfigType, Validator, invalid, parse_value, valid_partitions, valid_replicas
from connect_py.data.java_regex import compile_java_regex
from connect_py.errors import ConfigError, ConnectError, FatalTaskError, RetriableError, noted
from connect_py.kafka.admin import ReplicationError

log = logging.getLogger(__name__)

_PREFIX = "topic.creation."
_GROUPS = "topic.creation.groups"
_DEFAULT = "default"


@dataclass(frozen=True)
class TopicGroup:
    """Settings of new topics whose names match."""

    name: str
    include: re.Pattern[str] | None
    exclude: re.Pattern[str] | None
    partitions: int
    replication_factor: int
    settings: Mapping[str, str] = field(default_factory=dict)

    def matches(self, topic: str) -> bool:
        """Return whether a topic takes this group's settings."""
        if self.name == _DEFAULT:
            return True
        included = self.include is not None and self.include.fullmatch(topic) is not None
        return included and not (self.exclude is not None and self.exclude.fullmatch(topic))


class TopicAdmin(Protocol):
    """What is asked of the cluster (`connect_py.kafka.admin.KafkaAdmin`)."""

    def describe_topics(self, names: Sequence[str]) -> Mapping[str, int]: ...
    def create_topic(self, name: str, partitions: int, replication_factor: int, settings: Mapping[str, str] = {}) -> bool: ...


def topic_groups(config: Mapping[str, str]) -> list[TopicGroup]:
    """Return the groups of a connector's configuration in the order in which they are tried; empty when it has none.

    Raises:
        ConfigError: a property of a group is missing or malformed.
    """
    if not any(key.startswith(_PREFIX) for key in config):
        return []
    default = _group(_DEFAULT, config, None)
    named = [alias for alias in parse_value(_GROUPS, config.get(_GROUPS, ""), ConfigType.LIST) if alias and alias != _DEFAULT]
    return [*(_group(alias, config, default) for alias in named), default]


def _group(name: str, config: Mapping[str, str], default: TopicGroup | None) -> TopicGroup:
    prefix = f"{_PREFIX}{name}."
    own = {key.removeprefix(prefix): value for key, value in config.items() if key.startswith(prefix)}
    include, exclude = own.pop("include", ""), own.pop("exclude", "")
    replicas = _count(
        f"{prefix}replication.factor",
        ConfigType.SHORT,
        own.pop("replication.factor", None),
        default.replication_factor if default else None,
        valid_replicas,
    )
    partitions = _count(
        f"{prefix}partitions",
        ConfigType.INT,
        own.pop("partitions", None),
        default.partitions if default else None,
        valid_partitions,
    )
    if default is None:  # the group of every topic; what it includes or excludes is not looked at
        return TopicGroup(name, None, None, partitions, replicas, own)
    return TopicGroup(name, _pattern(f"{prefix}include", include), _pattern(f"{prefix}exclude", exclude), partitions, replicas, own)


def _count(key: str, type_: ConfigType, text: str | None, default: int | None, validator: Validator) -> int:
    """Return a number of partitions or replicas."""
    if text is None and default is not None:
        return default
    if text is None:
        raise ConfigError(f'Missing required configuration "{key}" which has no default value.')
    value = int(parse_value(key, text, type_))
    validator(key, value)
    return value


def _pattern(key: str, text: str) -> re.Pattern[str] | None:
    """Java regexes, of which one must match."""
    parts = [part for part in parse_value(key, text, ConfigType.LIST) if part]
    try:
        for part in parts:
            compile_java_regex(part)
        return compile_java_regex("|".join(f"(?:{part})" for part in parts)) if parts else None
    except ConfigError as error:
        raise invalid(key, parts, f"Syntax error in regular expression: {error}") from None


class TopicCreator:
    """Makes sure of each topic once. The task's thread owns it."""

    def __init__(self, groups: Sequence[TopicGroup], admin: TopicAdmin) -> None:
        self._groups = groups
        self._admin = admin
        self._known: set[str] = set()

    def ensure(self, topic: str) -> None:
        """Create the topic if it is missing.

        Raises:
            RetriableError: the cluster does not answer.
            FatalTaskError: it cannot be created.
        """
        if topic in self._known:
            return
        try:
            if topic not in self._admin.describe_topics([topic]):
                group = next(group for group in self._groups if group.matches(topic))
                if self._admin.create_topic(topic, group.partitions, group.replication_factor, group.settings):
                    log.info("Created topic %s by group %s", topic, group.name)
                elif topic not in self._admin.describe_topics([topic]):
                    raise FatalTaskError(
                        f"Task failed to create new topic {topic}. Ensure that the task is authorized to create topics or that the topic "
                        "exists and restart the task"
                    )
        except ConnectError as error:
            if isinstance(error, RetriableError) and not isinstance(error, ReplicationError):
                raise
            raise noted(
                FatalTaskError(str(error)),
                f"No record was written to {topic}. Ensure that the task may create topics and that topic.creation.* suits the cluster, "
                "or create the topic, and restart the task.",
            ) from error.__cause__ or error
        self._known.add(topic)
