"""Properties of the sink (`MongoDbSinkConnectorConfig`, `SinkConnectorConfig`). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from connect_py.api import ConfigDef, ConfigKey, ConfigType, Importance, Width
from connect_py.errors import ConfigError
from connectors.engine.sink_records import TargetNames
from connectors.mongodb.addresses import connection_string_problem

PASSTHROUGH: Final = "io.debezium.sink.naming.PassthroughCollectionNamingStrategy"
CONNECTION = "mongodb.connection.string"
_DEFAULT_COLLECTIONS = "io.debezium.sink.naming.DefaultCollectionNamingStrategy"
_DEFAULT_COLUMNS = "io.debezium.sink.naming.DefaultColumnNamingStrategy"
_HIGH, _MEDIUM, _LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW


def _class_of(*names: str) -> Any:
    def check(name: str, value: Any) -> None:
        if value not in names:
            raise ConfigError(f"Invalid value {value} for configuration {name}: Class {value} could not be found.")

    return check


def _key(name: str, type_: ConfigType, default: Any, importance: Importance, width: Width, title: str, text: str, check: Any = None) -> Any:
    return ConfigKey(name, type_, default, importance, text, "Connector", 1, width, title, check)


_STRATEGY = (
    "The class that names collections: io.debezium.sink.naming.DefaultCollectionNamingStrategy or PassthroughCollectionNamingStrategy."
)
_FORMAT = "The collection's name, with ${topic} for the topic's and ${source.field} for a field of the event's source."
_BATCH_TITLE = (
    "Specifies how many records to attempt to batch together into the destination table, when possible. You can also configure the "
    "connector’s underlying consumer’s max.poll.records using consumer.override.max.poll.records in the connector configuration."
)

DEFINITION: Final = ConfigDef(
    [
        _key(
            "sink.database",
            ConfigType.STRING,
            None,
            _HIGH,
            Width.MEDIUM,
            "The sink MongoDB database name.",
            "The database to write to.",
        ),
        _key(
            CONNECTION,
            ConfigType.STRING,
            None,
            _HIGH,
            Width.MEDIUM,
            "Connection String",
            "The address of the server, replica set or cluster: mongodb://… or mongodb+srv://….",
        ),
        *(
            _key(
                name,
                ConfigType.CLASS,
                _DEFAULT_COLLECTIONS,
                _LOW,
                Width.LONG,
                "CollectionNamingStrategy class",
                _STRATEGY,
                _class_of(_DEFAULT_COLLECTIONS, PASSTHROUGH),
            )
            for name in ("collection.naming.strategy", "table.naming.strategy")
        ),
        *(
            _key(name, ConfigType.STRING, "${topic}", _MEDIUM, Width.MEDIUM, "A format string for the collection name", _FORMAT)
            for name in ("collection.name.format", "table.name.format")
        ),
        _key(
            "column.naming.strategy",
            ConfigType.CLASS,
            _DEFAULT_COLUMNS,
            _LOW,
            Width.LONG,
            "ColumnNamingStrategy class",
            "The class that names fields: io.debezium.sink.naming.DefaultColumnNamingStrategy, which leaves them as they are.",
            _class_of(_DEFAULT_COLUMNS),
        ),
        _key(
            "batch.size",
            ConfigType.INT,
            500,
            _MEDIUM,
            Width.SHORT,
            _BATCH_TITLE,
            "How many writes go to the server at once; 0 for all that a poll brought.",
        ),
    ]
)


@dataclass(frozen=True)
class SinkConfig:
    """A valid configuration.

    Attributes:
        database: where collections are.
        collection: names the collection of a record.
        batch_size: writes of one command; 0 for no limit.
        truncates: whether a truncate empties its collection.
    """

    database: str
    collection: TargetNames
    batch_size: int
    truncates: bool


def parse_config(config: Mapping[str, str]) -> SinkConfig:
    """Parse what the task is given. `table.*` are the older names of two properties and count where the newer one is missing.

    Raises:
        ConfigError: the address or the database is missing, or a value is wrong.
    """
    parsed = DEFINITION.parse(config)
    string = parsed[CONNECTION]
    problem = "Missing connection string" if string is None else connection_string_problem(string)
    if problem:
        raise ConfigError(f"The '{CONNECTION}' value is invalid: {problem}")
    if not parsed["sink.database"]:
        raise ConfigError("The 'sink.database' value is invalid: A value is required. It names the database to write to.")

    def newer(name: str, older: str) -> str:
        found: str = parsed[older] if name not in config and older in config else parsed[name]
        return found

    return SinkConfig(
        database=parsed["sink.database"],
        collection=TargetNames(
            "collection",
            newer("collection.name.format", "table.name.format"),
            is_passthrough=newer("collection.naming.strategy", "table.naming.strategy") == PASSTHROUGH,
        ),
        batch_size=parsed["batch.size"],
        truncates=config.get("truncate.enabled", "false").strip().lower() == "true",
    )
