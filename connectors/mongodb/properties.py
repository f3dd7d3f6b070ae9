"""The table of the MongoDB connector's properties, and checks that only they need (`MongoDbConnectorConfig.java`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from connect_py.api import Width
from connectors.engine.config import COMMON
from connectors.engine.properties import (
    BOOLEAN,
    CLASS_NAME,
    DELIVERY,
    HIGH,
    INT,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    PASSWORD,
    RECORDS,
    SNAPSHOTS,
    STRING,
    Config,
    Property,
    arrange,
    is_boolean,
    not_beside,
    positive_int,
    prop,
    regexes,
)
from connectors.mongodb.addresses import connection_string_problem


def _connection_string(text: str | None, _: Config) -> str | None:
    return "Missing connection string" if text is None else connection_string_problem(text)


def _without_gaps(text: str | None, config: Config) -> str | None:
    """Return a list of literal names; the reference says so of the property itself."""
    if not text or (config.get("filters.match.mode") or "").strip().lower() != "literal":
        return None
    # as Java's split leaves them: gaps at the end are none
    return "contains empty values" if any(not part.strip() for part in text.rstrip(",").split(",")) else None


def _names(text: str | None, config: Config) -> str | None:
    """Return a list of regexes, or of literal names."""
    literal = (config.get("filters.match.mode") or "").strip().lower() == "literal"
    return None if literal else regexes(text, config)


_OWN = (
    prop("mongodb.connection.string", STRING, None, HIGH, Width.MEDIUM, "Connection String", "Address of the replica set or of the routers of a sharded cluster: mongodb://… or mongodb+srv://…. Its options win over properties.", _connection_string),
    prop("internal.mongodb.allow.offset.invalidation", BOOLEAN, "false", MEDIUM, Width.NONE, "", "Accepted; offsets of single shards, of releases up to 2.5, are not read."),
    prop("mongodb.user", STRING, None, HIGH, Width.SHORT, "User", "Database user of the connector, where the server asks for one."),
    prop("mongodb.password", PASSWORD, None, HIGH, Width.SHORT, "Password", "Password of that user."),
    prop("mongodb.authsource", STRING, "admin", MEDIUM, Width.SHORT, "Credentials Database", "Database that knows the user."),
    prop("mongodb.connect.timeout.ms", INT, "10000", LOW, Width.SHORT, "Connect Timeout MS", "How long a connection may take, in ms; 0 is for ever."),
    prop("mongodb.heartbeat.frequency.ms", INT, "10000", LOW, Width.SHORT, "Heartbeat frequency ms", "How often the driver looks at each server, in ms."),
    prop("mongodb.socket.timeout.ms", INT, "0", LOW, Width.SHORT, "Socket timeout MS", "How long an answer may take, in ms; 0 is for ever."),
    prop("mongodb.server.selection.timeout.ms", INT, "30000", LOW, Width.SHORT, "Server selection timeout MS", "How long to look for a server that can be used, in ms."),
    prop("mongodb.poll.interval.ms", LONG, "30000", MEDIUM, Width.SHORT, "Replica membership poll interval (ms)", "Accepted; the driver watches the members by itself.", positive_int),
    prop("mongodb.ssl.enabled", BOOLEAN, "false", MEDIUM, Width.SHORT, "Enable SSL connection to MongoDB", "Whether connections are encrypted.", is_boolean),
    prop("mongodb.ssl.invalid.hostname.allowed", BOOLEAN, "false", MEDIUM, Width.SHORT, "Allow invalid hostnames for SSL connection", "Whether a certificate may be another host's.", is_boolean),
    prop("cursor.max.await.time.ms", INT, None, LOW, Width.SHORT, "Server's oplog streaming cursor max await time", "How long the server may wait for changes before it says that there are none, in ms; no longer than half a second here."),
    prop("custom.sanitize.pattern", STRING, r".*secret$|.*password$|.*sasl\.jaas\.config$|.*basic\.auth\.user\.info|.*registry\.auth\.client-secret|.*credentials\.json$|.*connectionstring$|.*connection\.string$", LOW, Width.LONG, "Custom pattern for masking sensitive configuration", "Regex of further property names whose values are secrets."),
    prop("snapshot.mode", STRING, "initial", LOW, Width.SHORT, "Snapshot mode", "When the present documents are read.", values=("always", "initial_only", "configuration_based", "when_needed", "initial", "custom", "no_data")),
    prop("capture.mode", STRING, "change_streams_update_full", MEDIUM, Width.SHORT, "Capture mode", "Whether updates come with the whole document, and with the one before.", values=("change_streams", "change_streams_update_full", "change_streams_with_pre_image", "change_streams_update_full_with_pre_image")),
    prop("database.include.list", LIST, None, HIGH, Width.LONG, "Include Databases", "Regexes (or names, see filters.match.mode) of the databases to capture; all without it.", _names, _without_gaps),
    prop("database.exclude.list", LIST, None, HIGH, Width.LONG, "Exclude Databases", "Regexes or names of databases that are not captured.", not_beside("database.include.list"), _names, _without_gaps),
    prop("collection.include.list", LIST, None, HIGH, Width.LONG, "Include Collections", "Regexes or names of the collections to capture, database.collection; all without it.", _names, _without_gaps),
    prop("collection.exclude.list", STRING, None, MEDIUM, Width.NONE, "", "Regexes or names of collections that are not captured.", not_beside("collection.include.list"), _names, _without_gaps),
    prop("field.exclude.list", STRING, None, MEDIUM, Width.LONG, "Exclude Fields", "Fields that documents in records leave out: database.collection.field.nested, with * for any database or collection."),
    prop("field.renames", STRING, None, MEDIUM, Width.LONG, "Rename Fields", "Fields that have another name in records: database.collection.field.nested:new_name."),
    prop("snapshot.collection.filter.overrides", STRING, None, MEDIUM, Width.LONG, "Snapshot collection filter overrides", "Collections of which a snapshot reads only the documents of a filter, given by snapshot.collection.filter.overrides.<database>.<collection>."),
    prop("sourceinfo.struct.maker", CLASS_NAME, "io.debezium.connector.mongodb.MongoDbSourceInfoStructMaker", LOW, Width.MEDIUM, "Source info struct maker class", "Accepted and not used."),
)  # fmt: skip

_LAYOUT = {
    "MongoDB": [
        "topic.prefix",
        "mongodb.connection.string",
        "internal.mongodb.allow.offset.invalidation",
        "mongodb.user",
        "mongodb.password",
        "mongodb.authsource",
        "mongodb.connect.timeout.ms",
        "mongodb.heartbeat.frequency.ms",
        "mongodb.socket.timeout.ms",
        "mongodb.server.selection.timeout.ms",
        "mongodb.poll.interval.ms",
        "mongodb.ssl.enabled",
        "mongodb.ssl.invalid.hostname.allowed",
        "cursor.max.await.time.ms",
    ],
    "Connector": [
        *DELIVERY,
        "skipped.operations",
        *SNAPSHOTS,
        "snapshot.mode",
        "capture.mode",
        "schema.name.adjustment.mode",
    ],
    "Events": [
        *RECORDS,
        "database.include.list",
        "database.exclude.list",
        "collection.include.list",
        "collection.exclude.list",
        "field.exclude.list",
        "field.renames",
        "snapshot.collection.filter.overrides",
        "sourceinfo.struct.maker",
    ],
}

_COMMON = tuple(known for known in COMMON if known.key.name not in {own.key.name for own in _OWN})
PROPERTIES: Final[Mapping[str, Property]] = arrange((*_COMMON, *_OWN), _LAYOUT)
