"""The stored offset of a start, also where releases up to 2.5 have stored it (mongodb.md §6.3; `MongoDbOffsetContext.Loader`)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from connect_py.api import SourceOffset, SourcePartition
from connectors.mongodb.config import MongoConfig
from connectors.mongodb.position.offset import MongoOffset
from connectors.mongodb.server.addresses import options_of

log = logging.getLogger(__name__)

#: What those releases called the replica set of a sharded cluster's routers.
_CLUSTER = "cluster"


def stored_offset(config: MongoConfig, read: Callable[[SourcePartition], SourceOffset | None]) -> MongoOffset | None:
    """The offset of this connector's partition, else of the one with the replica set's name; None without either.

    Raises:
        ConfigError: it cannot be read.
    """
    partition: Mapping[str, str] = {"server_id": config.topic_prefix}
    found = read(partition)
    if found is None:
        name = options_of(config.connection_string).get("replicaset") or _CLUSTER
        found = read({**partition, "rs": name})
        if found is not None:
            log.info("The offset of an earlier release, for the replica set '%s', is gone on from", name)
    return MongoOffset.load(found) if found else None
