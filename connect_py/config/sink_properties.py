"""Definitions of the properties that sink connectors have besides (`runtime/SinkConnectorConfig.java` of Kafka 4.3)."""

from __future__ import annotations

from connect_py.api.config import ConfigKey
from connect_py.api.config import ConfigType as T
from connect_py.api.config import Importance as I
from connect_py.api.config import Width as W
from connect_py.config.property_rules import distinct_values, java_regex, key

SINK: tuple[ConfigKey, ...] = (
    key(
        "topics",
        T.LIST,
        "",
        I.HIGH,
        W.LONG,
        "Common",
        4,
        "Topics",
        "List of topics to consume, separated by commas",
        distinct_values,
    ),
    key(
        "topics.regex",
        T.STRING,
        "",
        I.HIGH,
        W.LONG,
        "Common",
        4,
        "Topics regex",
        (
            "Regular expression giving topics to consume. Under the hood, the regex is compiled to a "
            "<code>java.util.regex.Pattern</code>. Only one of topics or topics.regex should be specified."
        ),
        java_regex,
    ),
    key(
        "errors.deadletterqueue.topic.name",
        T.STRING,
        "",
        I.MEDIUM,
        W.MEDIUM,
        "Error Handling",
        6,
        "Dead Letter Queue Topic Name",
        (
            "The name of the topic to be used as the dead letter queue (DLQ) for messages that result in an error"
            " when processed by this sink connector, or its transformations or converters. The topic name is "
            "blank by default, which means that no messages are to be recorded in the DLQ."
        ),
    ),
    key(
        "errors.deadletterqueue.topic.replication.factor",
        T.SHORT,
        "3",
        I.MEDIUM,
        W.MEDIUM,
        "Error Handling",
        7,
        "Dead Letter Queue Topic Replication Factor",
        "Replication factor used to create the dead letter queue topic when it doesn't already exist.",
    ),
    key(
        "errors.deadletterqueue.context.headers.enable",
        T.BOOLEAN,
        "false",
        I.MEDIUM,
        W.MEDIUM,
        "Error Handling",
        8,
        "Enable Error Context Headers",
        (
            "If true, add headers containing error context to the messages written to the dead letter queue. To "
            "avoid clashing with headers from the original record, all error context header keys, all error "
            "context header keys will start with <code>__connect.errors.</code>"
        ),
    ),
)
