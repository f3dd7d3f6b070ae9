"""Definitions of the Java clients' properties, as validation answers show them (`ProducerConfig`, `ConsumerConfig`, `AdminClientConfig` of
Kafka 4.3). The table is `client_definitions.json`: one property a line, with the clients that have it in this form."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from connect_py.api.config import REQUIRED, ConfigKey, ConfigType, Importance
from connect_py.kafka.settings import ClientKind

_TABLE = Path(__file__).with_name("client_definitions.json")


@functools.cache
def client_definitions(kind: ClientKind) -> Mapping[str, ConfigKey]:
    """Name → definition of a client's properties."""
    return {entry["name"]: _key(entry) for entry in orjson.loads(_TABLE.read_bytes()) if kind.value in entry["clients"]}


def _key(entry: Mapping[str, Any]) -> ConfigKey:
    default = REQUIRED if entry.get("required") else entry.get("default")
    importance = Importance(entry["importance"])
    return ConfigKey(entry["name"], ConfigType(entry["type"]), default, importance, entry["documentation"], entry.get("group"))
