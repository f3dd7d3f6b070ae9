"""How events become rows."""

from __future__ import annotations

import re
from typing import Any

from connect_py.api.config import ConfigType, between, non_empty, one_of
from connect_py.errors import ConfigError
from spark_sink.config.key import key

METADATA_COLUMNS = ("op", "ts_ms", "source.ts_ms", "position", "topic", "partition", "offset", "deleted", "txid", "snapshot")


def _metadata_columns(name: str, value: Any) -> None:
    unknown = [column for column in value or () if column not in METADATA_COLUMNS]
    if unknown:
        raise ConfigError(f"Invalid value {', '.join(unknown)} for configuration {name}: known are {', '.join(METADATA_COLUMNS)}")


def _ordering(name: str, value: Any) -> None:
    if value not in ("log", "source") and not re.fullmatch(r"column:\S.*", str(value)):
        raise ConfigError(f"Invalid value {value} for configuration {name}: must be one of: log, source, column:<name>")


KEYS = (
    key(
        "tables.write-mode",
        "upsert",
        "upsert: one row a key, changed by updates and removed by deletes. append: a row for each event, with its operation and place. "
        "scd2: a row for each version of a key, with the time from and to which it was valid.",
        validator=one_of("upsert", "append", "scd2"),
        group="Writing",
    ),
    key(
        "tables.delete-mode",
        "hard",
        "Of upserts. hard: a delete removes the row; soft: it sets __deleted and leaves the values; ignore: the row stays.",
        validator=one_of("hard", "soft", "ignore"),
        group="Writing",
    ),
    key(
        "tables.truncate-mode",
        "apply",
        "Of upserts. apply: a truncate empties the table; soft: it sets __deleted in all rows; ignore; fail: it stops the task.",
        validator=one_of("apply", "soft", "ignore", "fail"),
        group="Writing",
    ),
    key(
        "tables.no-key",
        "append",
        "What to do with records without a key: append writes each event as a row, fail stops the task, dlq takes them for bad records.",
        validator=one_of("append", "fail", "dlq"),
        group="Writing",
    ),
    key(
        "tables.ordering",
        "log",
        "Which event of a key is the last. log: the one with the highest offset in Kafka. source: the one with the highest position in the "
        "source's own log, which the table keeps as __position; nothing goes back in time, whatever the order in Kafka. column:<name>: the "
        "one with the highest value of a column.",
        validator=_ordering,
        group="Writing",
    ),
    key(
        "tables.position-epoch",
        0,
        "With ordering=source: raise it after the source was restored or its log was reset, since its positions count anew then.",
        ConfigType.INT,
        validator=between(0, 999999),
        group="Writing",
    ),
    key(
        "tables.tombstone-retention-ms",
        172800000,
        "With ordering=source and hard deletes: for so long <table>__tombstones remembers deleted keys, lest an older event bring "
        "one back.",
        ConfigType.LONG,
        validator=between(0),
        group="Writing",
    ),
    key(
        "tables.default-id-columns",
        None,
        "Columns that identify a row, in place of the record key's; of one table lakehouse.table.<name>.id-columns. A delete must hold "
        "them, in its key or in the row before it.",
        ConfigType.LIST,
        group="Writing",
    ),
    key(
        "tables.cdc-field",
        None,
        "The field, a path with dots, that says what happened to the row of a flattened record: its first letter is I, C or R (insert), U "
        "(update) or D (delete), in either case; anything else is a bad record. Without it Debezium's own fields say it (__op, __deleted), "
        "and records without them are inserts. Tombstones are ignored with it.",
        validator=non_empty,
        group="Writing",
    ),
    key("tables.exclude-columns", None, "Columns that are never written.", ConfigType.LIST, group="Writing"),
    key(
        "tables.metadata-columns",
        "op,ts_ms",
        "Columns added to every table, as __<name>: " + ", ".join(METADATA_COLUMNS) + ".",
        ConfigType.LIST,
        validator=_metadata_columns,
        group="Writing",
    ),
    key(
        "snapshot.reconcile",
        False,
        "When a snapshot of a table has ended, delete the rows that it did not show and that nothing has changed since it began: those "
        "that were deleted while nobody captured. Never with snapshots of chosen rows. The table keeps __topic and __offset for it.",
        ConfigType.BOOLEAN,
        group="Writing",
    ),
    key(
        "unavailable.value.placeholder",
        "__debezium_unavailable_value",
        "What stands for a value that the source did not send; the table keeps the value that it has. "
        "Must equal the source connector's setting.",
        validator=non_empty,
        group="Writing",
    ),
)
