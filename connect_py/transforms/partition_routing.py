"""Choose the partition by fields of the change event (`io.debezium.transforms.partitions.PartitionRouting`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from connect_py.api import ConfigType, Importance, Width
from connect_py.data import Schema, Struct, Type
from connect_py.data.java_text import to_text
from connect_py.errors import DataError
from connect_py.transforms.base import AnyRecord
from connect_py.transforms.debezium import DEBEZIUM, DebeziumTransform, change_of, option, positive, required, without_empty_items
from connect_py.transforms.java_hash import java_hash, murmur_hash, signed

_LARGEST_INT = 2**31 - 1


class PartitionRouting(DebeziumTransform):
    """Gives each change the partition that the hashes of some of its fields, added up, leave over the number of partitions."""

    java_name = f"{DEBEZIUM}partitions.PartitionRouting"
    KEYS = (
        option(
            "partition.payload.fields",
            ConfigType.LIST,
            None,
            Importance.HIGH,
            Width.NONE,
            "List of payload fields to use for compute partition.",
            "Required. Fields of the event, with dots into structs: after.name, source.table. change.name is of before for a delete, of "
            "after for others. A field that an event does not have does not count.",
            group="partitions",
            order=1,
        ),
        option(
            "partition.topic.num",
            ConfigType.INT,
            None,
            Importance.HIGH,
            Width.NONE,
            "Number of partition configured for topic",
            "Required. How many partitions the topic has.",
            group="partitions",
            order=2,
        ),
        option(
            "partition.hash.function",
            ConfigType.STRING,
            "java",
            Importance.LOW,
            Width.NONE,
            "Hash function",
            "java, or murmur.",
            group="partitions",
            order=3,
        ),
    )
    RULES = (
        ("partition.topic.num", required),
        ("partition.topic.num", positive),
        ("partition.payload.fields", required),
        ("partition.payload.fields", without_empty_items),
    )

    def use(self, config: Mapping[str, Any]) -> None:
        self._paths = [[step.strip() for step in field.split(".")] for field in config["partition.payload.fields"]]
        self._count: int = config["partition.topic.num"]
        function: str = config["partition.hash.function"] or ""
        self._hash = murmur_hash if function.strip().lower() == "murmur" else java_hash

    def apply(self, record: AnyRecord) -> AnyRecord:
        """Return the record with its partition; truncates, messages, and events without any of the fields are left alone.

        Raises:
            DataError: a path leads through a struct that the event does not have (`after` of a delete).
        """
        envelope = change_of(record)
        if envelope is None or envelope["op"] in ("t", "m"):
            return record
        hashes = [self._hash(*found) for path in self._paths if (found := _found(envelope, path)) is not None]
        if not hashes:
            return record
        total = signed(sum(hashes)) & _LARGEST_INT
        return replace(record, partition=0 if total == _LARGEST_INT else total % self._count)


def _found(envelope: Struct, path: list[str]) -> tuple[Schema, Any] | None:
    """Return schema and value of a field, None when there is none."""
    current: Struct = envelope
    for step in path[:-1]:
        name = ("before" if envelope["op"] == "d" else "after") if step == "change" else step
        field = current.schema.field(name)
        if field is None or field.schema.type is not Type.STRUCT:
            return None
        below = current.without_default(name)
        if below is None:
            raise DataError(f"Unprocessable message {to_text(None, envelope)}: it has no {name}. change.{path[-1]} takes what there is")
        current = below
    field = current.schema.field(path[-1])
    if field is None:
        return None
    value = current[path[-1]]
    return None if value is None else (field.schema, value)
