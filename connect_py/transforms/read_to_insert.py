"""Turn rows of a snapshot into insertions (`io.debezium.connector.mysql.transforms.ReadToInsertEvent`)."""

from __future__ import annotations

from dataclasses import replace

from connect_py.data import Struct
from connect_py.transforms.base import AnyRecord
from connect_py.transforms.debezium import DebeziumTransform, change_of


class ReadToInsertEvent(DebeziumTransform):
    """Makes `c` of the operation `r`."""

    java_name = "io.debezium.connector.mysql.transforms.ReadToInsertEvent"

    def apply(self, record: AnyRecord) -> AnyRecord:
        """Return the record with its new operation; any other one is left alone."""
        envelope = change_of(record)
        if envelope is None or envelope["op"] != "r":
            return record
        changed = Struct(envelope.schema, envelope.values)
        changed["op"] = "c"
        return replace(record, value=changed)
