"""Where tables are: format, catalog, directory."""

from __future__ import annotations

from connect_py.api.config import Importance, non_empty, one_of
from spark_sink.config.key import key

KEYS = (
    key(
        "format",
        "iceberg",
        "Format of the tables.",
        validator=one_of("iceberg", "delta"),
        importance=Importance.HIGH,
        group="Destination",
    ),
    key(
        "catalog",
        None,
        "Name of the Spark catalog; by default iceberg, and spark_catalog for Delta. "
        "Its settings are lakehouse.catalog.<setting>: type (hadoop, hive, rest, jdbc, glue, nessie), "
        "warehouse, uri, catalog-impl, io-impl and whatever the catalog takes.",
        validator=non_empty,
        importance=Importance.HIGH,
        group="Destination",
    ),
    key(
        "delta.root",
        None,
        "Directory or URI under which Delta tables live, each at <root>/<namespace>/<table>, when no metastore is wanted.",
        validator=non_empty,
        group="Destination",
    ),
)
