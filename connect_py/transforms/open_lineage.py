"""`io.debezium.transforms.openlineage.OpenLineage`, for connectors that name it."""

from __future__ import annotations

import logging
from typing import Any

from connect_py.transforms.base import AnyRecord
from connect_py.transforms.debezium import DEBEZIUM, DebeziumTransform

log = logging.getLogger(__name__)


class OpenLineage(DebeziumTransform):
    """Passes every record, as Debezium's does where no OpenLineage library is installed; it reports nothing, and the log says so."""

    java_name = f"{DEBEZIUM}openlineage.OpenLineage"

    def configure(self, config: Any) -> None:
        """There is nothing to configure."""
        log.warning("The OpenLineage transform passes records and reports no lineage: there is no emitter in this worker")

    def apply(self, record: AnyRecord) -> AnyRecord:
        """Return the record itself."""
        return record
