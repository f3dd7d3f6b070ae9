"""When tables are compacted and cleaned up."""

from __future__ import annotations

import re
from typing import Any

from connect_py.api.config import ConfigType, between
from connect_py.errors import ConfigError
from spark_sink.config.key import key


def _window(name: str, value: Any) -> None:
    if value and not re.fullmatch(r"([01]\d|2[0-3]):[0-5]\d\s*-\s*([01]\d|2[0-3]):[0-5]\d", value):
        raise ConfigError(f"Invalid value {value} for configuration {name}: two times of day are expected, as 22:00-05:30")


KEYS = (
    key(
        "maintenance.enabled",
        True,
        "Compact tables and clean up after them, between batches, one table at a time.",
        ConfigType.BOOLEAN,
        group="Maintenance",
    ),
    key(
        "maintenance.compact.every-commits",
        50,
        "A table's turn comes after so many commits of this sink.",
        ConfigType.INT,
        validator=between(1),
        group="Maintenance",
    ),
    key(
        "maintenance.max-lag",
        100000,
        "Maintenance waits while the sink has more offsets than this to catch up with.",
        ConfigType.LONG,
        validator=between(0),
        group="Maintenance",
    ),
    key(
        "maintenance.window",
        None,
        "Hours in which maintenance may run, UTC, as 22:00-05:30; at any time without it.",
        validator=_window,
        group="Maintenance",
    ),
    key(
        "maintenance.target-file-size-bytes",
        134217728,
        "Size of compacted files.",
        ConfigType.LONG,
        validator=between(1),
        group="Maintenance",
    ),
    key(
        "maintenance.expire-snapshots.older-than-ms",
        432000000,
        "Iceberg: snapshots older than this are removed, with the files that only they have.",
        ConfigType.LONG,
        validator=between(0),
        group="Maintenance",
    ),
    key(
        "maintenance.expire-snapshots.retain-last",
        10,
        "Iceberg: so many snapshots stay, however old.",
        ConfigType.INT,
        validator=between(1),
        group="Maintenance",
    ),
    key(
        "maintenance.remove-orphan-files.older-than-ms",
        604800000,
        "Iceberg: files that belong to no snapshot are removed when they are older than this; three days at least.",
        ConfigType.LONG,
        validator=between(259200000),
        group="Maintenance",
    ),
    key(
        "maintenance.vacuum.retain-hours",
        168,
        "Delta: files that the table has not had for so many hours are removed; 168 at least.",
        ConfigType.INT,
        validator=between(168),
        group="Maintenance",
    ),
)
