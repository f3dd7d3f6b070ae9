"""Define the properties of Connect's own that connectors have, in the order and with the texts that clients see in validation answers.

`COMMON` is `runtime/ConnectorConfig.java` of Kafka 4.3, `SOURCE` is `SourceConnectorConfig.java`, `SINK` is `SinkConnectorConfig.java`.
Data only; `connect_py.config.connector` adds what depends on a configuration.
"""

from __future__ import annotations

from typing import Any

from connect_py.api.config import (
    REQUIRED,
    ConfigKey,
    ConfigType,
    Importance,
    Validator,
    Width,
    between,
    invalid,
    non_empty,
    non_empty_without_control_characters,
    one_of,
    one_of_ignoring_case,
)
from connect_py.api.config import ConfigType as T
from connect_py.api.config import Importance as I
from connect_py.api.config import Width as W
from connect_py.data.java_regex import compile_java_regex
from connect_py.errors import ConfigError


def key(
    name: str,
    type_: ConfigType,
    default: Any,
    importance: Importance,
    width: Width,
    group: str | None,
    order: int,
    display_name: str,
    documentation: str,
    validator: Validator | None = None,
) -> ConfigKey:
    """Return a definition, its parts in the order that reads best in a table."""
    return ConfigKey(name, type_, default, importance, documentation, group, order, width, display_name, validator)


def unique_aliases(name: str, value: Any) -> None:
    """Aliases of transforms, predicates or topic groups: each once."""
    if value is None:
        raise invalid(name, value, "entry must be non null")
    if len(set(value)) < len(value):
        raise invalid(name, value, "Duplicate alias provided.")


def distinct_values(name: str, value: Any) -> None:
    """`ConfigDef.ValidList.anyNonDuplicateValues`."""
    if value is None:
        raise ConfigError(f"Configuration '{name}' values must not be null.")
    if len(set(value)) < len(value):
        raise ConfigError(f"Configuration '{name}' values must not be duplicated.")
    if "" in value:
        raise ConfigError(f"Configuration '{name}' values must not be empty.")


def java_regex(name: str, value: Any) -> None:
    """A regex that java.util.regex takes."""
    try:
        compile_java_regex(value or "")
    except ConfigError as error:
        raise invalid(name, value, f"Invalid regex: {error}") from None


def at_least_zero(name: str, value: Any) -> None:
    """A number that is given is not negative."""
    if value is not None:
        between(0)(name, value)


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


SOURCE: tuple[ConfigKey, ...] = (
    key(
        "topic.creation.groups",
        T.LIST,
        "",
        I.LOW,
        W.LONG,
        "Topic Creation",
        1,
        "Topic Creation Groups",
        "Groups of configurations for topics created by source connectors",
        unique_aliases,
    ),
    key(
        "exactly.once.support",
        T.STRING,
        "requested",
        I.MEDIUM,
        W.SHORT,
        "Exactly Once Support",
        2,
        "Exactly once support",
        (
            'Permitted values are requested, required. If set to "required", forces a preflight check for the '
            "connector to ensure that it can provide exactly-once semantics with the given configuration. Some "
            "connectors may be capable of providing exactly-once semantics but not signal to Connect that they "
            "support this; in that case, documentation for the connector should be consulted carefully before "
            'creating it, and the value for this property should be set to "requested". Additionally, if the '
            'value is set to "required" but the worker that performs preflight validation does not have exactly-'
            "once support enabled for source connectors, requests to create or validate the connector will fail."
        ),
        one_of_ignoring_case("requested", "required"),
    ),
    key(
        "transaction.boundary",
        T.STRING,
        "poll",
        I.MEDIUM,
        W.SHORT,
        "Exactly Once Support",
        3,
        "Transaction Boundary",
        (
            "Permitted values are: poll, interval, connector. If set to 'poll', a new producer transaction will "
            "be started and committed for every batch of records that each task from this connector provides to "
            "Connect. If set to 'connector', relies on connector-defined transaction boundaries; note that not "
            "all connectors are capable of defining their own transaction boundaries, and in that case, attempts "
            "to instantiate a connector with this value will fail. Finally, if set to 'interval', commits "
            "transactions only after a user-defined time interval has passed."
        ),
        one_of_ignoring_case("poll", "interval", "connector"),
    ),
    key(
        "transaction.boundary.interval.ms",
        T.LONG,
        None,
        I.LOW,
        W.SHORT,
        "Exactly Once Support",
        4,
        "Transaction boundary interval",
        (
            "If 'transaction.boundary' is set to 'interval', determines the interval for producer transaction "
            "commits by connector tasks. If unset, defaults to the value of the worker-level "
            "'offset.flush.interval.ms' property. It has no effect if a different transaction.boundary is "
            "specified."
        ),
        at_least_zero,
    ),
    key(
        "offsets.storage.topic",
        T.STRING,
        None,
        I.LOW,
        W.LONG,
        "offsets.topic",
        1,
        "Offsets topic",
        (
            "The name of a separate offsets topic to use for this connector. If empty or not specified, the "
            "worker’s global offsets topic name will be used. If specified, the offsets topic will be created if "
            "it does not already exist on the Kafka cluster targeted by this connector (which may be different "
            "from the one used for the worker's global offsets topic if the bootstrap.servers property of the "
            "connector's producer has been overridden from the worker's). Only applicable in distributed mode; in"
            " standalone mode, setting this property will have no effect."
        ),
        non_empty,
    ),
)


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
