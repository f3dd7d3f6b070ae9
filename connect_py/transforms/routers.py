"""Rename topics (`org.apache.kafka.connect.transforms.{RegexRouter,TimestampRouter}`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from connect_py.api import ConfigType, Importance, Route
from connect_py.api.config import REQUIRED, invalid
from connect_py.api.transform import RowChange
from connect_py.data.java_regex import compile_java_regex, java_replacement
from connect_py.errors import ConfigError, DataError
from connect_py.transforms.base import KAFKA, AnyRecord, Plugin, key, valid_regex
from connect_py.transforms.date_format import DateFormat


class RegexRouter(Plugin):
    """Changes topics that match a regex as a whole; what is replaced is the first place where it is found."""

    handles_rows = True
    java_name = f"{KAFKA}RegexRouter"
    KEYS = (
        key("regex", ConfigType.STRING, REQUIRED, Importance.HIGH, "Regular expression to use for matching.", valid_regex),
        key("replacement", ConfigType.STRING, REQUIRED, Importance.HIGH, "Replacement string."),
    )

    def use(self, config: Mapping[str, Any]) -> None:
        self._regex = compile_java_regex(config["regex"])
        try:
            self._replace = java_replacement(self._regex, config["replacement"])
        except ConfigError as error:
            raise invalid("replacement", config["replacement"], str(error)) from None

    def apply(self, record: AnyRecord) -> AnyRecord:
        """Return the record with its new topic, or the same one."""
        if not self._regex.fullmatch(record.topic):
            return record
        return replace(record, topic=self._renamed(record.topic))

    def row_change(self, route: Route) -> RowChange:
        """Return what gives rows their topic."""
        to = replace(route, topic=self._renamed(route.topic)) if self._regex.fullmatch(route.topic) else route
        return lambda key, value: (to, key, value)

    def _renamed(self, topic: str) -> str:
        return self._regex.sub(self._replace, topic, count=1)


class TimestampRouter(Plugin):
    """Makes the topic of its old name and the record's time in UTC."""

    java_name = f"{KAFKA}TimestampRouter"
    KEYS = (
        key(
            "topic.format",
            ConfigType.STRING,
            "${topic}-${timestamp}",
            Importance.HIGH,
            "Format string which can contain <code>${topic}</code> and <code>${timestamp}</code> as placeholders for the topic and "
            "timestamp, respectively.",
        ),
        key(
            "timestamp.format",
            ConfigType.STRING,
            "yyyyMMdd",
            Importance.HIGH,
            "Format string for the timestamp that is compatible with <code>java.text.SimpleDateFormat</code>.",
        ),
    )

    def use(self, config: Mapping[str, Any]) -> None:
        self._topic: str = config["topic.format"]
        try:
            self._time = DateFormat(config["timestamp.format"])
        except ConfigError as error:
            raise invalid("timestamp.format", config["timestamp.format"], str(error)) from None

    def apply(self, record: AnyRecord) -> AnyRecord:
        """Return the record with its new topic. Raises DataError when it has no timestamp."""
        if record.timestamp is None:
            raise DataError(f"Timestamp missing on record: topic {record.topic}, partition {record.partition}")
        named = self._topic.replace("${topic}", record.topic)
        return replace(record, topic=named.replace("${timestamp}", self._time.format(record.timestamp)))
