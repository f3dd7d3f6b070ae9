"""A process that reads chunks of a MongoDB snapshot for the task (`connectors.engine.snapshot.parallel.worker`).

It has a client of its own and encodes without schemas: these are constants, which the task puts before each payload.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from connect_py.api import JsonEncoding
from connectors.engine.snapshot.initial.progress import KeyRange
from connectors.engine.snapshot.initial.run import ChunkRows
from connectors.engine.snapshot.parallel import worker
from connectors.mongodb.collection import CollectionFactory
from connectors.mongodb.config import MongoConfig, parse_config
from connectors.mongodb.position.offset import MongoOffset
from connectors.mongodb.server.connection import adopt_cluster_time, open_client
from connectors.mongodb.shell_notation import parse_query
from connectors.mongodb.snapshot.rows import collection_rows, encoder, range_queries
from connectors.mongodb.values.documents import Documents

MODULE = __name__


def spec(config: MongoConfig, encoding: JsonEncoding, position: MongoOffset, seen: str | None) -> dict[str, Any]:
    """Return what a reader receives first; it holds the password.

    Args:
        position: where the stream begins that follows.
        seen: `cluster_time` of the task's client.
    """
    return {
        "config": dict(config.raw),
        "encoding": asdict(encoding),
        "seconds": position.seconds,
        "increment": position.increment,
        "since": position.time,
        "cluster_time": seen,
    }


def describe(namespace: str, span: KeyRange, condition: str | None) -> dict[str, Any]:
    """Return a chunk for a reader."""
    return {"namespace": namespace, "after": span.after, "until": span.until, "filter": condition}


class _Source:
    def __init__(self, received: Mapping[str, Any]) -> None:
        config = parse_config(received["config"])
        encoding = replace(JsonEncoding(**received["encoding"]), key_schemas=False, value_schemas=False)
        self._collections = CollectionFactory(config, encoding, ())
        self._documents = Documents(config.choice("json.serialization.mode"))
        self._client = open_client(config)
        adopt_cluster_time(self._client, received["cluster_time"])
        self._position = received["seconds"], received["increment"]
        self._since = None if received["since"] is None else tuple(received["since"])
        self._batch_size = config.number("snapshot.fetch.size") or config.number("max.batch.size")

    def open(self, chunk: Mapping[str, Any]) -> ChunkRows[bytes]:
        namespace, text = chunk["namespace"], chunk["filter"]
        condition = parse_query(text, f"The filter of a snapshot of {namespace}") if text else {}
        span = KeyRange(*(None if chunk[name] is None else tuple(chunk[name]) for name in ("after", "until")))
        encode = encoder(self._documents, self._collections.get(namespace), *self._position)
        wanted = range_queries(span, condition)
        return collection_rows(self._client, namespace, wanted, since=self._since, batch_size=self._batch_size), encode


def main() -> int:
    """Read chunks until the task is gone, or has had enough."""
    logging.basicConfig(level=logging.ERROR)
    return worker.serve(_Source, bytes)


if __name__ == "__main__":
    sys.exit(main())
