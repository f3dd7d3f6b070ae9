"""Definitions of the properties that every connector has (`runtime/ConnectorConfig.java` of Kafka 4.3), in the order and with the texts
that clients see in validation answers.

Data only; `connect_py.config.connector` adds what depends on a configuration, `source_keys` and `sink_keys` have the others.
"""

from __future__ import annotations

from connect_py.api.config import REQUIRED, ConfigKey, between, non_empty_without_control_characters, one_of
from connect_py.api.config import ConfigType as T
from connect_py.api.config import Importance as I
from connect_py.api.config import Width as W
from connect_py.config.property_rules import key, unique_aliases

COMMON: tuple[ConfigKey, ...] = (
    key(
        "name",
        T.STRING,
        REQUIRED,
        I.HIGH,
        W.MEDIUM,
        "Common",
        1,
        "Connector name",
        "Globally unique name to use for this connector.",
        non_empty_without_control_characters,
    ),
    key(
        "connector.class",
        T.STRING,
        REQUIRED,
        I.HIGH,
        W.LONG,
        "Common",
        2,
        "Connector class",
        (
            "Name or alias of the class for this connector. Must be a subclass of "
            "org.apache.kafka.connect.connector.Connector. If the connector is "
            "org.apache.kafka.connect.file.FileStreamSinkConnector, you can either specify this full name,  or "
            'use "FileStreamSink" or "FileStreamSinkConnector" to make the configuration a bit shorter'
        ),
    ),
    key(
        "connector.plugin.version",
        T.STRING,
        "4.3.1",
        I.MEDIUM,
        W.MEDIUM,
        "Common",
        3,
        "Connector version",
        "Version of the connector.",
    ),
    key(
        "tasks.max",
        T.INT,
        "1",
        I.HIGH,
        W.SHORT,
        "Common",
        4,
        "Tasks max",
        "Maximum number of tasks to use for this connector.",
        between(1),
    ),
    key(
        "tasks.max.enforce",
        T.BOOLEAN,
        "true",
        I.LOW,
        W.SHORT,
        "Common",
        5,
        "Enforce tasks max",
        (
            "(Deprecated) Whether to enforce that the tasks.max property is respected by the connector. By "
            "default, connectors that generate too many tasks will fail, and existing sets of tasks that exceed "
            "the tasks.max property will also be failed. If this property is set to false, then connectors will "
            "be allowed to generate more than the maximum number of tasks, and existing sets of tasks that exceed"
            " the tasks.max property will be allowed to run. This property is deprecated and will be removed in "
            "an upcoming major release."
        ),
    ),
    key(
        "key.converter",
        T.CLASS,
        None,
        I.LOW,
        W.SHORT,
        "Common",
        6,
        "Key converter class",
        (
            "Converter class used to convert between Kafka Connect format and the serialized form that is written"
            " to Kafka. This controls the format of the keys in messages written to or read from Kafka, and since"
            " this is independent of connectors it allows any connector to work with any serialization format. "
            "Examples of common formats include JSON and Avro."
        ),
    ),
    key(
        "key.converter.plugin.version",
        T.STRING,
        None,
        I.LOW,
        W.SHORT,
        "Common",
        7,
        "Key converter version",
        "Version of the key converter.",
    ),
    key(
        "value.converter",
        T.CLASS,
        None,
        I.LOW,
        W.SHORT,
        "Common",
        8,
        "Value converter class",
        (
            "Converter class used to convert between Kafka Connect format and the serialized form that is written"
            " to Kafka. This controls the format of the values in messages written to or read from Kafka, and "
            "since this is independent of connectors it allows any connector to work with any serialization "
            "format. Examples of common formats include JSON and Avro."
        ),
    ),
    key(
        "value.converter.plugin.version",
        T.STRING,
        None,
        I.LOW,
        W.SHORT,
        "Common",
        9,
        "Value converter version",
        "Version of the value converter.",
    ),
    key(
        "header.converter",
        T.CLASS,
        None,
        I.LOW,
        W.SHORT,
        "Common",
        10,
        "Header converter class",
        (
            "HeaderConverter class used to convert between Kafka Connect format and the serialized form that is "
            "written to Kafka. This controls the format of the header values in messages written to or read from "
            "Kafka, and since this is independent of connectors it allows any connector to work with any "
            "serialization format. Examples of common formats include JSON and Avro. By default, the "
            "SimpleHeaderConverter is used to serialize header values to strings and deserialize them by "
            "inferring the schemas."
        ),
    ),
    key(
        "header.converter.plugin.version",
        T.STRING,
        None,
        I.LOW,
        W.SHORT,
        "Common",
        11,
        "Header converter version",
        "Version of the header converter.",
    ),
    key(
        "transforms",
        T.LIST,
        "",
        I.LOW,
        W.LONG,
        "Transforms",
        12,
        "Transforms",
        "Aliases for the transformations to be applied to records.",
        unique_aliases,
    ),
    key(
        "predicates",
        T.LIST,
        "",
        I.LOW,
        W.LONG,
        "Predicates",
        13,
        "Predicates",
        "Aliases for the predicates used by transformations.",
        unique_aliases,
    ),
    key(
        "config.action.reload",
        T.STRING,
        "restart",
        I.LOW,
        W.MEDIUM,
        "Common",
        14,
        "Reload Action",
        (
            "The action that Connect should take on the connector when changes in external configuration "
            "providers result in a change in the connector's configuration properties. A value of 'none' "
            "indicates that Connect will do nothing. A value of 'restart' indicates that Connect should "
            "restart/reload the connector with the updated configuration properties.The restart may actually be "
            "scheduled in the future if the external configuration provider indicates that a configuration value "
            "will expire in the future."
        ),
        one_of("none", "restart"),
    ),
    key(
        "errors.retry.timeout",
        T.LONG,
        "0",
        I.MEDIUM,
        W.MEDIUM,
        "Error Handling",
        1,
        "Retry Timeout for Errors",
        (
            "The maximum duration in milliseconds that a failed operation will be reattempted. The default is 0, "
            "which means no retries will be attempted. Use -1 for infinite retries."
        ),
    ),
    key(
        "errors.retry.delay.max.ms",
        T.LONG,
        "60000",
        I.MEDIUM,
        W.MEDIUM,
        "Error Handling",
        2,
        "Maximum Delay Between Retries for Errors",
        (
            "The maximum duration in milliseconds between consecutive retry attempts. Jitter will be added to the"
            " delay once this limit is reached to prevent thundering herd issues."
        ),
    ),
    key(
        "errors.tolerance",
        T.STRING,
        "none",
        I.MEDIUM,
        W.SHORT,
        "Error Handling",
        3,
        "Error Tolerance",
        (
            "Behavior for tolerating errors during connector operation. 'none' is the default value and signals "
            "that any error will result in an immediate connector task failure; 'all' changes the behavior to "
            "skip over problematic records."
        ),
        one_of("none", "all"),
    ),
    key(
        "errors.log.enable",
        T.BOOLEAN,
        "false",
        I.MEDIUM,
        W.SHORT,
        "Error Handling",
        4,
        "Log Errors",
        (
            "If true, write each error and the details of the failed operation and problematic record to the "
            "Connect application log. This is 'false' by default, so that only errors that are not tolerated are "
            "reported."
        ),
    ),
    key(
        "errors.log.include.messages",
        T.BOOLEAN,
        "false",
        I.MEDIUM,
        W.SHORT,
        "Error Handling",
        5,
        "Log Error Details",
        (
            "Whether to include in the log the Connect record that resulted in a failure. For sink records, the "
            "topic, partition, offset, and timestamp will be logged. For source records, the key and value (and "
            "their schemas), all headers, and the timestamp, Kafka topic, Kafka partition, source partition, and "
            "source offset will be logged. This is 'false' by default, which will prevent record keys, values, "
            "and headers from being written to log files."
        ),
    ),
)
