"""Definitions of the properties that source connectors have besides (`runtime/SourceConnectorConfig.java` of Kafka 4.3)."""

from __future__ import annotations

from connect_py.api.config import ConfigKey, non_empty, one_of_ignoring_case
from connect_py.api.config import ConfigType as T
from connect_py.api.config import Importance as I
from connect_py.api.config import Width as W
from connect_py.config.property_rules import at_least_zero, key, unique_aliases

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
