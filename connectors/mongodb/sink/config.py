"""Properties of the sink (`MongoDbSinkConnectorConfig`, `SinkConnectorConfig`), and names of collections.

Names follow `io.debezium.sink.naming.*CollectionNamingStrategy`. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from connect_py.api import ConfigDef, ConfigKey, ConfigType, Importance, SinkRecord, Width
from connect_py.data import Struct
from connect_py.errors import ConfigError, DataError
from connectors.mongodb.addresses import connection_string_problem

PASSTHROUGH: Final = "io.debezium.sink.naming.PassthroughCollectionNamingStrategy"
_SOURCE = re.compile(r"\$\{source\.(.*?)\}")


class CollectionName:
    """Names the collection of a record.

    Args:
        form: the name, with ``${topic}`` and ``${source.field}``.
        is_passthrough: whether the topic's name keeps its dots, and the source is not looked at.
    """

    def __init__(self, form: str, *, is_passthrough: bool = False) -> None:
        self._form = form.strip() or "${topic}" if is_passthrough else form
        self._is_passthrough = is_passthrough
        self._has_source = not is_passthrough and "${source." in form
        self._names: dict[str, str] = {}

    def of(self, record: SinkRecord) -> str | None:
        """Return the name; None where it needs a source and the record has none. Raises DataError: the source has no such text."""
        name = self._names.get(record.topic)
        if name is None:
            topic = record.topic if self._is_passthrough else record.topic.replace(".", "_")
            name = self._names[record.topic] = self._form.replace("${topic}", topic)
        if not self._has_source:
            return name
        source = _member(record.value, "source")
        if source is None:
            return None
        return _SOURCE.sub(lambda found: self._text(source, found[1]), name)

    def _text(self, source: Any, field: str) -> str:
        found = _member(source, field)
        if not isinstance(found, str):
            raise DataError(f"{self._form} names no collection: the record's source has no text {field}")
        return found


def _member(value: Any, name: str) -> Any:
    if isinstance(value, Struct):
        return value[name] if value.schema.field(name) else None
    return value.get(name) if isinstance(value, dict) else None


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
    collection: CollectionName
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
        collection=CollectionName(
            newer("collection.name.format", "table.name.format"),
            is_passthrough=newer("collection.naming.strategy", "table.naming.strategy") == PASSTHROUGH,
        ),
        batch_size=parsed["batch.size"],
        truncates=config.get("truncate.enabled", "false").strip().lower() == "true",
    )
