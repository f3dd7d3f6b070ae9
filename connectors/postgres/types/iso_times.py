"""Dates and times as ISO texts: `time.precision.mode=isostring` (IsoDate.java, IsoTime.java, IsoTimestamp.java)."""

from __future__ import annotations

from connect_py.data import Schema, Type
from connectors.engine.encode.plan import ColumnPlan
from connectors.engine.values.iso import iso_date, iso_time, iso_timestamp
from connectors.postgres.types import temporal
from connectors.postgres.types.base import Family, RootType, ValueOptions

#: What Java's calendars make of the sentinels (pg_types_iso.json); in streams, and of dates in snapshots.
_INFINITE_DATES = {"infinity": "-5877611-06-21Z", "-infinity": "-5877611-06-22Z"}
_SNAPSHOT_INFINITE_DATES = {"infinity": "+292278994-08-16Z", "-infinity": "+292269055-12-02Z"}


def date(name: str, root: RootType, options: ValueOptions) -> ColumnPlan:
    """`2016-11-04Z`."""
    return ColumnPlan(
        name,
        _schema("IsoDate"),
        lambda text: f'"{_INFINITE_DATES.get(text) or iso_date(temporal.days_of_date(text))}"',
        # the sentinels take the careful way, on which rows of a snapshot have a form of their own
        "iso_of_finite($)",
        quoted=True,
        helpers={"iso_of_finite": _iso_of_finite},
        snapshot=lambda text: f'"{_SNAPSHOT_INFINITE_DATES.get(text) or iso_date(temporal.days_of_date(text))}"',
        fallback='"1970-01-01Z"',
    )


def time(name: str, root: RootType, options: ValueOptions) -> ColumnPlan:
    """`13:51:30.123Z`."""
    return ColumnPlan(name, _schema("IsoTime"), lambda text: f'"{iso_time(temporal.micros_of_time(text))}"', fallback='"00:00:00Z"')


def timestamp(name: str, root: RootType, options: ValueOptions) -> ColumnPlan:
    """`2016-11-04T13:51:30.123456Z`."""
    return ColumnPlan(
        name,
        _schema("IsoTimestamp"),
        lambda text: f'"{iso_timestamp(temporal.wide_micros_of_timestamp(text))}"',
        fallback='"1970-01-01T00:00:00Z"',
    )


def _iso_of_finite(text: str) -> str:
    if text in _INFINITE_DATES:
        raise ValueError(text)
    return iso_date(temporal.days_of_date(text))


def _schema(name: str) -> Schema:
    return Schema(Type.STRING, name=f"io.debezium.time.{name}", version=1)


FAMILIES: dict[str, Family] = {"date": date, "time": time, "timestamp": timestamp}
