"""Dates and times of Connect's logical types as numbers (`org.apache.kafka.connect.data.{Date,Time,Timestamp}`).

Python's calendar ends at the years 1 and 9999; numbers beyond raise DataError.
"""

from __future__ import annotations

import datetime

from connect_py.errors import DataError

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_EPOCH_ORDINAL = datetime.date(1970, 1, 1).toordinal()
_MILLISECOND = datetime.timedelta(milliseconds=1)
MILLIS_OF_DAY = 86_400_000


def date_to_days(value: datetime.date) -> int:
    """Return days since 1970-01-01. Raises DataError for a datetime that is not midnight."""
    if isinstance(value, datetime.datetime):
        if value.timetz().replace(tzinfo=None) != datetime.time():
            raise DataError("Kafka Connect Date type should not have any time fields set to non-zero values.")
        value = value.date()
    return value.toordinal() - _EPOCH_ORDINAL


def days_to_date(days: int) -> datetime.date:
    """Return the inverse of `date_to_days`. Raises DataError outside the years 1 to 9999."""
    try:
        return datetime.date.fromordinal(days + _EPOCH_ORDINAL)
    except (ValueError, OverflowError):
        raise DataError(f"{days} days since 1970-01-01 lie outside the years 1 to 9999") from None


def time_to_millis(value: datetime.time) -> int:
    """Return milliseconds of the day; what is finer is cut off."""
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000


def millis_to_time(millis: int) -> datetime.time:
    """Return the inverse of `time_to_millis`. Raises DataError for anything but 0 to 86400000."""
    if not 0 <= millis < MILLIS_OF_DAY:
        raise DataError("Time values must use number of milliseconds greater than 0 and less than 86400000")
    return (EPOCH + datetime.timedelta(milliseconds=millis)).time()


def timestamp_to_millis(value: datetime.datetime) -> int:
    """Return milliseconds since 1970-01-01 UTC; a value without a zone is UTC."""
    return ((value if value.tzinfo else value.replace(tzinfo=datetime.UTC)) - EPOCH) // _MILLISECOND


def millis_to_timestamp(millis: int) -> datetime.datetime:
    """Return the inverse of `timestamp_to_millis`, in UTC. Raises DataError outside the years 1 to 9999."""
    try:
        return EPOCH + datetime.timedelta(milliseconds=millis)
    except OverflowError:
        raise DataError(f"{millis} ms since 1970-01-01 lie outside the years 1 to 9999") from None
