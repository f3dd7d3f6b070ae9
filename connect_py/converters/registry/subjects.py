"""Under which subject a schema is registered (`io.confluent.kafka.serializers.subject.*NameStrategy`), by the Java class names."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from connect_py.errors import ConfigError, DataError

#: (topic, is key, the schema's full name or None) → subject; raises DataError.
SubjectStrategy = Callable[[str, bool, str | None], str]

_PACKAGE = "io.confluent.kafka.serializers.subject."
TOPIC_NAME = f"{_PACKAGE}TopicNameStrategy"


def _topic_name(topic: str, is_key: bool, name: str | None) -> str:
    return f"{topic}-{'key' if is_key else 'value'}"


def _record_name(topic: str, is_key: bool, name: str | None) -> str:
    if name is None:
        side = "key" if is_key else "value"
        raise DataError(f"{side}.subject.name.strategy names subjects after records, but the message {side} has a schema without a name")
    return name


def _topic_record_name(topic: str, is_key: bool, name: str | None) -> str:
    return f"{topic}-{_record_name(topic, is_key, name)}"


_STRATEGIES: Mapping[str, SubjectStrategy] = {
    TOPIC_NAME: _topic_name,
    f"{_PACKAGE}RecordNameStrategy": _record_name,
    f"{_PACKAGE}TopicRecordNameStrategy": _topic_record_name,
}


def subject_strategy(key: str, java_name: str) -> SubjectStrategy:
    """The strategy of a class name.

    Args:
        key: the property, for the message.

    Raises:
        ConfigError: there is none of that name; strategies of one's own are not loaded.
    """
    try:
        return _STRATEGIES[java_name]
    except KeyError:
        raise ConfigError(f"Invalid value {java_name} for configuration {key}: it must be one of {', '.join(_STRATEGIES)}") from None
