"""Dates and times as they are stored in rows (`sql-common/my_time.cc`), to the texts that the server prints. Nothing is checked against a
calendar: a date of zeros stays one.
"""

from __future__ import annotations

from datetime import datetime, timedelta

_EPOCH = datetime(1970, 1, 1)
#: What is added to a stored value so that it sorts as unsigned.
_DATETIME_OFFSET = 0x8000000000


def date_text(data: bytes) -> str:
    """DATE: three bytes, day, month and year from the lowest bit on."""
    value = int.from_bytes(data, "little")
    return f"{value >> 9:04}-{value >> 5 & 15:02}-{value & 31:02}"


def datetime2_text(data: bytes, digits: int) -> str:
    """DATETIME(n): five bytes big-endian, 13 months a year, and the fraction."""
    value = int.from_bytes(data[:5], "big") - _DATETIME_OFFSET
    days, seconds = value >> 17, value & 0x1FFFF
    year_month, day = days >> 5, days & 31
    year, month = divmod(year_month, 13)
    return f"{year:04}-{month:02}-{day:02} {seconds >> 12:02}:{seconds >> 6 & 63:02}:{seconds & 63:02}{_fraction(data[5:], digits)}"


def timestamp2_text(data: bytes, digits: int) -> str:
    """TIMESTAMP(n): seconds since 1970 in UTC, and the fraction; zero is the date of zeros."""
    return _moment(int.from_bytes(data[:4], "big")) + _fraction(data[4:], digits)


def timestamp_text(data: bytes) -> str:
    """TIMESTAMP before MySQL 5.6.4."""
    return _moment(int.from_bytes(data, "little"))


def _moment(seconds: int) -> str:
    if seconds == 0:
        return "0000-00-00 00:00:00"
    return str(_EPOCH + timedelta(seconds=seconds))


def time2_text(data: bytes, digits: int) -> str:
    """TIME(n): three bytes big-endian and the fraction; of negative times the whole is turned over."""
    size = 3 + (digits + 1) // 2
    zero = 0x800000 << 8 * (size - 3)
    value = int.from_bytes(data, "big") - zero
    negative = value < 0
    value = abs(value)
    bits = 8 * (size - 3)
    whole, fraction = value >> bits, value & ((1 << bits) - 1)
    sign = "-" if negative else ""
    return f"{sign}{whole >> 12 & 0x3FF:02}:{whole >> 6 & 63:02}:{whole & 63:02}{_fraction(fraction.to_bytes(size - 3, 'big'), digits)}"


def _fraction(data: bytes, digits: int) -> str:
    """Hundredths, ten-thousandths or millionths, of which so many digits are shown."""
    if not digits:
        return ""
    return f".{int.from_bytes(data, 'big'):0{2 * len(data)}}"[: digits + 1]


def datetime_text(data: bytes) -> str:
    """DATETIME before MySQL 5.6.4: decimal digits in eight bytes."""
    value = int.from_bytes(data, "little")
    date, time = divmod(value, 1_000_000)
    return f"{date // 10000:04}-{date // 100 % 100:02}-{date % 100:02} {time // 10000:02}:{time // 100 % 100:02}:{time % 100:02}"


def time_text(data: bytes) -> str:
    """TIME before MySQL 5.6.4: decimal digits in three bytes, signed."""
    value = int.from_bytes(data, "little", signed=True)
    sign = "-" if value < 0 else ""
    value = abs(value)
    return f"{sign}{value // 10000:02}:{value // 100 % 100:02}:{value % 100:02}"
