"""What MongoDB says of its oplog: the times of its first and last entry, by two short reads.

A router of a sharded cluster has no oplog to show, and a user may lack the right to read `local`. Then the cluster's own time stands for
the end, and nothing is known of the beginning.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from connect_py.api import MetricGroup, MetricValue, SourceFacts, StoredOffsets
from connect_py.errors import ConnectError
from connectors.engine.facts import LIMIT_SECONDS, stored_offset
from connectors.mongodb.config import parse_config
from connectors.mongodb.position.offset import MongoOffset
from connectors.mongodb.server.connection import Client, LostConnectionError, ServerError, hello, open_client, translated

_LIMIT_MS = round(LIMIT_SECONDS * 1000)


class MongoFactsReader:
    """Asks one deployment.

    Args:
        config: the connector's. Raises ConfigError.
    """

    uses_offsets = True

    def __init__(self, config: Mapping[str, str]) -> None:
        self._config = parse_config(config)
        self._client: Client | None = None
        self._shows_oplog = True

    def read(self, offsets: StoredOffsets) -> SourceFacts:
        """Raises ConnectError."""
        try:
            if self._client is None:
                self._client = open_client(self._config, selection_ms=_LIMIT_MS)
            first, last = self._oplog(self._client)
        except ConnectError:
            self.close()
            raise
        stored = stored_offset(offsets, "server_id", self._config.topic_prefix)
        return oplog_facts(first, last, MongoOffset.load(stored) if stored else None, time.time())

    def _oplog(self, client: Client) -> tuple[int | None, int]:
        """Return the times of the first and the last entry, seconds since 1970; of the first None where it is not shown."""
        answer = hello(client)
        if self._shows_oplog and "setName" in answer:
            try:
                with translated("Cannot read the oplog"):
                    first, last = (self._entry(client, order) for order in (1, -1))
                    return first, last
            except LostConnectionError:
                raise
            except ServerError:
                self._shows_oplog = False
        clock: Any = answer.get("$clusterTime", {}).get("clusterTime") or answer.get("operationTime")
        if clock is None:
            raise ServerError("The server is no member of a replica set and has no change streams")
        return None, clock.time

    @staticmethod
    def _entry(client: Client, order: int) -> int:
        entry = client["local"]["oplog.rs"].find_one({}, {"ts": 1}, sort=[("$natural", order)], max_time_ms=_LIMIT_MS)
        if entry is None:
            raise ServerError("The oplog is empty")
        return int(entry["ts"].time)

    def close(self) -> None:
        """End the connections."""
        client, self._client = self._client, None
        if client is not None:
            client.close()


def oplog_facts(first: int | None, last: int, stored: MongoOffset | None, now: float) -> SourceFacts:
    """Return the facts of one look; all times are seconds since 1970.

    Args:
        first: of the oplog's first entry, where the server shows it.
        stored: the connector's offset.
        now: the worker's clock.
    """
    values: dict[str, MetricValue] = {"last-timestamp-seconds": last}
    if first is not None:
        values |= {"first-timestamp-seconds": first, "window-seconds": max(0, last - first)}
    position = None
    if stored is not None:
        found = stored.token.time if stored.token is not None else None
        position = found[0] if found is not None else stored.seconds if stored.seconds > 0 else None
    if position is not None:
        values["distance-seconds"] = max(0, last - position)
        if first is not None:
            # the oplog is cut at its beginning as fast as it grows
            values["seconds-left"] = max(0, position - first)
    return SourceFacts(last, position, unit="seconds", groups=[MetricGroup("connect.py", "mongodb-oplog", {}, values)])
