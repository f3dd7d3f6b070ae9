"""Dates, times and decimals as rows store them, converted to the texts that the server prints.

Dates and times (`sql-common/my_time.cc`) are not checked against a calendar: a date of zeros stays one. Decimals (`strings/decimal.cc`,
decimal2bin) are groups of nine digits in four bytes, big-endian, with the sign in the first bit and all bits inverted for negative numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final

from connect_py.rowcode import Code
from connectors.mysql.binlog.codes import MalformedEventError

_EPOCH = datetime(1970, 1, 1)


class _Texts(dict[int, str]):
    """Texts of stored values, made when they are first requested, because days and times of a day recur.

    Args:
        make: the text of a value; may raise ValueError or OverflowError.
    """

    #: 8 MB at maximum; a table of all dates between 1900 and 2079 has as many.
    LIMIT = 1 << 16

    def __init__(self, make: Callable[[int], str]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, value: int) -> str:
        if len(self) >= self.LIMIT:
            self.clear()
        text = self[value] = self._make(value)
        return text


def _date(value: int) -> str:
    return f"{value >> 9:04}-{value >> 5 & 15:02}-{value & 31:02}"


def _date_of_datetime(value: int) -> str:
    year, month = divmod(value >> 5, 13)
    return f"{year:04}-{month:02}-{value & 31:02}"


def _clock(value: int) -> str:
    return f" {value >> 12:02}:{value >> 6 & 63:02}:{value & 63:02}"


def _date_of_day(day: int) -> str:
    return str((_EPOCH + timedelta(days=day)).date())


def _clock_of_second(second: int) -> str:
    return f" {second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"


#: DATE: three bytes little-endian, day, month and year from the lowest bit on.
DATES: Final = _Texts(_date)
#: DATETIME(n) is five bytes big-endian and the fraction: above 17 bits of a clock the days of 32 a month, 13 months a year.
DATETIME_OFFSET: Final = 0x8000000000
DAYS_OF_DATETIME: Final = _Texts(_date_of_datetime)
CLOCKS: Final = _Texts(_clock)
#: Its last two bytes, after the upper bit of the hour, as seconds: four bits of the hour and four of the minute; two more, and the second.
CLOCK_HIGHS: Final = tuple((octet >> 4) * 3600 + (octet & 15) * 240 for octet in range(256))
CLOCK_LOWS: Final = tuple((octet >> 6) * 60 + (octet & 63) for octet in range(256))
#: TIMESTAMP(n): seconds since 1970 in UTC, and the fraction; by day, and by second of the day.
EPOCH_DAYS: Final = _Texts(_date_of_day)
SECONDS: Final = _Texts(_clock_of_second)
ZERO_MOMENT: Final = "0000-00-00 00:00:00"


def timestamp_text(data: bytes) -> str:
    """Return a TIMESTAMP from before MySQL 5.6.4."""
    second = int.from_bytes(data, "little")
    return EPOCH_DAYS[second // 86_400] + SECONDS[second % 86_400] if second else ZERO_MOMENT


def time2_text(data: bytes, digits: int) -> str:
    """Return a TIME(n): three bytes big-endian and the fraction; in negative times all bits are inverted."""
    size = 3 + (digits + 1) // 2
    zero = 0x800000 << 8 * (size - 3)
    value = int.from_bytes(data, "big") - zero
    negative = value < 0
    value = abs(value)
    bits = 8 * (size - 3)
    whole, fraction = value >> bits, value & ((1 << bits) - 1)
    sign = "-" if negative else ""
    return f"{sign}{whole >> 12 & 0x3FF:02}:{whole >> 6 & 63:02}:{whole & 63:02}{_fraction(fraction.to_bytes(size - 3, 'big'), digits)}"


#: TIME without a fraction, by its three bytes big-endian.
TIMES: Final = _Texts(lambda value: time2_text(value.to_bytes(3, "big"), 0))


def _fraction(data: bytes, digits: int) -> str:
    """Return hundredths, ten-thousandths or millionths with the given number of digits."""
    if not digits:
        return ""
    return f".{int.from_bytes(data, 'big'):0{2 * len(data)}}"[: digits + 1]


def datetime_text(data: bytes) -> str:
    """Return a DATETIME from before MySQL 5.6.4: decimal digits in eight bytes."""
    value = int.from_bytes(data, "little")
    date, time = divmod(value, 1_000_000)
    return f"{date // 10000:04}-{date // 100 % 100:02}-{date % 100:02} {time // 10000:02}:{time // 100 % 100:02}:{time % 100:02}"


def time_text(data: bytes) -> str:
    """Return a TIME from before MySQL 5.6.4: decimal digits in three bytes, signed."""
    value = int.from_bytes(data, "little", signed=True)
    sign = "-" if value < 0 else ""
    value = abs(value)
    return f"{sign}{value // 10000:02}:{value // 100 % 100:02}:{value % 100:02}"


_GROUP_DIGITS = 9
#: Bytes of a group, by the number of its digits.
_SIZES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)


def stored_size(precision: int, scale: int) -> int:
    """Return bytes of a decimal(precision, scale)."""
    whole = precision - scale
    return whole // 9 * 4 + _SIZES[whole % 9] + scale // 9 * 4 + _SIZES[scale % 9]


def stored_groups(precision: int, scale: int) -> list[tuple[int, int, int]]:
    """Return of each group its first byte, the byte after its last, and its digits."""
    groups: list[tuple[int, int, int]] = []
    at = 0
    for digits in (*_whole_groups(precision - scale), *_fraction_groups(scale)):
        groups.append((at, at + _SIZES[digits], digits))
        at += _SIZES[digits]
    return groups


@lru_cache(maxsize=1024)
def decimal_reader(precision: int, scale: int) -> Callable[[bytes], str]:
    """Return the function from stored bytes to text: no leading zeros, exactly `scale` digits of fraction. It raises
    MalformedEventError."""
    whole = precision - scale
    groups = stored_groups(precision, scale)
    at = groups[-1][1] if groups else 0
    size, mask = at, (1 << 8 * at) - 1
    sign = 1 << (8 * at - 1) if at else 0
    split = whole

    def read(data: bytes) -> str:
        if len(data) != size:
            raise MalformedEventError(f"a decimal({precision},{scale}) has {size} bytes, not {len(data)}")
        number = int.from_bytes(data, "big")
        negative = not number & sign
        number ^= sign
        if negative:
            number ^= mask
        octets = number.to_bytes(size, "big")
        digits = ""
        for first, last, count in groups:
            group = str(int.from_bytes(octets[first:last], "big"))
            if len(group) > count:
                raise MalformedEventError(f"a group of {count} digits holds {group}")
            digits += group.zfill(count)
        text = digits[:split].lstrip("0") or "0"
        if scale:
            text = f"{text}.{digits[split:]}"
        return f"-{text}" if negative and digits.strip("0") else text

    return _quick(read, groups, split, scale) if size else read


def _quick(careful: Callable[[bytes], str], groups: list[tuple[int, int, int]], whole: int, scale: int) -> Callable[[bytes], str]:
    """Return a reader for the usual numbers, generated for their groups; negative and malformed ones, whose groups are too large, go the
    careful way."""
    size = groups[-1][1]
    code = Code(f"decimal of {whole} and {scale} digits")
    code.bind_all({"number_of": int.from_bytes, "read_careful": careful})
    limits, digits, value, fraction = [], 0, "", ""
    with code.function("read_decimal", "data"):
        code.add(f"n = number_of(data, 'big') ^ {1 << (8 * size - 1)}")
        for i, (first, last, count) in enumerate(groups):
            code.add(f"g{i} = n >> {8 * (size - last)}" + ("" if i == 0 else f" & {(1 << 8 * (last - first)) - 1}"))
            limits.append(f"g{i} < {10**count}")
            if digits < whole:
                value = f"({value}) * {10**count} + g{i}" if value else f"g{i}"
            else:
                fraction += f"{{g{i}:0{count}}}"
            digits += count
        point = f".{fraction}" if scale else ""
        with code.block(f"if len(data) == {size} and {' and '.join(limits)}:"):
            code.add(f'return f"{{{value or 0}}}{point}"')
        code.add("return read_careful(data)")
    return code.make()["read_decimal"]


def _whole_groups(digits: int) -> list[int]:
    """Return the groups before the point; the short one is first."""
    return ([digits % 9] if digits % 9 else []) + [_GROUP_DIGITS] * (digits // 9)


def _fraction_groups(digits: int) -> list[int]:
    return [_GROUP_DIGITS] * (digits // 9) + ([digits % 9] if digits % 9 else [])
