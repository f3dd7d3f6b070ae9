"""How values are stored."""

from __future__ import annotations

from connect_py.api.config import one_of
from spark_sink.properties.key import key

KEYS = (
    key(
        "time.mode",
        "iso-string",
        "Times of day as text (13:05:01.123456) or as micros, a BIGINT of microseconds.",
        validator=one_of("iso-string", "micros"),
        group="Types",
    ),
    key(
        "connect-timestamp.as",
        "timestamp",
        "Type for org.apache.kafka.connect.data.Timestamp.",
        validator=one_of("timestamp", "timestamp_ntz"),
        group="Types",
    ),
)
