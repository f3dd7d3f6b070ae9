"""Dropping records (`org.apache.kafka.connect.transforms.Filter`)."""

from __future__ import annotations

from connect_py.transforms.base import KAFKA, AnyRecord, Plugin


class Filter(Plugin):
    """Drops every record that it sees; a predicate decides which these are."""

    java_name = f"{KAFKA}Filter"

    def apply(self, record: AnyRecord) -> AnyRecord | None:
        """Nothing is left."""
        return None
