"""Values of Connect and of Debezium's logical types in the text that databases read (`DateTimeUtils.java`, `type/debezium/*.java`). Pure.

Dates and times are written as text, not as the drivers' objects: years before 1 and after 9999, nanoseconds and hours beyond 24 have no
object in Python.
"""

from __future__ import annotations

import datetime
import decimal
import json
from typing import Any
from zoneinfo import ZoneInfo

from connect_py.data import Struct
from connect_py.data.times import date_to_days, time_to_millis, timestamp_to_millis
from connect_py.errors import DataError

DAY = 86_400_000_000_000  # nanoseconds


def date_text(days: int) -> str:
    """Return days since 1970 as ``2024-02-29``; a year before 1 ends in `` BC``."""
    year, month, day = _civil(days)
    return f"{year:04}-{month:02}-{day:02}" if year > 0 else f"{1 - year:04}-{month:02}-{day:02} BC"


def timestamp_text(nanos: int) -> str:
    """Return nanoseconds since 1970 as ``2024-02-29 12:34:56.789``, in UTC."""
    days, rest = divmod(nanos, DAY)
    date = date_text(days)
    era = " BC" if date.endswith(" BC") else ""
    return f"{date.removesuffix(' BC')} {time_text(rest)}{era}"


def time_text(nanos: int) -> str:
    """Return nanoseconds since midnight as ``12:34:56.789``. A duration of MySQL's TIME may be negative or longer than a day."""
    sign = "-" if nanos < 0 else ""
    seconds, fraction = divmod(abs(nanos), 1_000_000_000)
    text = f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{text}.{fraction:09}".rstrip("0") if fraction else text


def _civil(days: int) -> tuple[int, int, int]:
    """Return year, month and day of the proleptic Gregorian calendar, for any year (Howard Hinnant's `civil_from_days`)."""
    era, day_of_era = divmod(days + 719468, 146097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36524 - day_of_era // 146096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    return year_of_era + era * 400 + (month <= 2), month, day_of_year - (153 * shifted + 2) // 5 + 1


def connect_date(value: Any) -> str:
    """Return the text of a `Date` of Connect."""
    return date_text(date_to_days(value))


def connect_time(value: Any) -> str:
    """Return the text of a `Time` of Connect."""
    return time_text(time_to_millis(value) * 1_000_000)


def connect_timestamp(value: Any) -> str:
    """Return the text of a `Timestamp` of Connect."""
    return timestamp_text(timestamp_to_millis(value) * 1_000_000)


def local_timestamp(text: str, zone: ZoneInfo) -> str:
    """Return a ZonedTimestamp as a zone's clocks show it. Raises DataError: it is none, or no clock shows it."""
    try:
        return datetime.datetime.fromisoformat(_micros(text)).astimezone(zone).replace(tzinfo=None).isoformat(" ")
    except (ValueError, OverflowError):
        raise DataError(f"{text} is no moment with a time zone that the database can hold") from None


def local_time(text: str, zone: ZoneInfo) -> str:
    """Return a ZonedTime as a zone's clocks show it today. Raises DataError: it is none."""
    try:
        found = datetime.time.fromisoformat(_micros(text))
        today = datetime.datetime.combine(datetime.datetime.now(datetime.UTC).date(), found)
        return today.astimezone(zone).time().isoformat()
    except (ValueError, OverflowError):
        raise DataError(f"{text} is no time of day with a time zone") from None


def _micros(text: str) -> str:
    """Return ISO 8601 with no more digits than Python reads."""
    head, dot, tail = text.partition(".")
    if not dot:
        return text
    digits = len(tail) - len(tail.lstrip("0123456789"))
    return f"{head}.{tail[: min(digits, 6)]}{tail[digits:]}"


def variable_decimal(value: Any) -> decimal.Decimal | None:
    """Return a VariableScaleDecimal. Raises DataError: it is no such struct."""
    if not isinstance(value, Struct):
        raise DataError(f"Unexpected VariableScaleDecimal value '{value}'")
    unscaled, scale = value["value"], value["scale"]
    if unscaled is None:
        return None
    number = decimal.Decimal(int.from_bytes(unscaled, "big", signed=True))
    return number.scaleb(-int(scale), decimal.Context(prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN))


def bit_text(value: bytes, length: int | None) -> str:
    """Return Debezium's Bits, the lowest byte first, as zeros and ones; as many as are set where the length is None."""
    number = int.from_bytes(value, "little")
    return f"{number:0{length}b}"[-length:] if length else (f"{number:b}" if number else "")


def interval_text(micros: int) -> str:
    """Return a MicroDuration in seconds, as PostgreSQL reads intervals."""
    sign = "-" if micros < 0 else ""
    seconds, fraction = divmod(abs(micros), 1_000_000)
    return f"{sign}{seconds}{f'.{fraction:06}'.rstrip('0') if fraction else ''} seconds"


def map_json(value: Any) -> str:
    """Return a map as JSON text. Raises DataError: JSON cannot hold it."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise DataError(f"Failed to deserialize MAP data to JSON: {error}") from None


def hstore_text(value: Any) -> str:
    """Return a map as PostgreSQL reads hstore, quotes and backslashes escaped."""
    return ", ".join(f"{_hstore(name)} => {'NULL' if text is None else _hstore(text)}" for name, text in value.items())


def hstore_of_json(text: str) -> str:
    """Return a JSON object as hstore. Raises DataError: it is none."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise DataError("Failed to deserialize JSON to HSTORE")
    return hstore_text({name: item if item is None or isinstance(item, str) else json.dumps(item) for name, item in found.items()})


def _hstore(value: Any) -> str:
    return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'


def array_text(values: Any) -> str:
    """Return a list, its elements converted already, as PostgreSQL reads arrays."""
    return "{" + ",".join(_element(value) for value in values) + "}"


def _element(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, list):
        return array_text(value)
    if isinstance(value, bool):
        return "t" if value else "f"
    if isinstance(value, bytes | bytearray | memoryview):
        return f'"\\\\x{bytes(value).hex()}"'
    return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'


def plain_wkb(data: bytes) -> bytes:
    """Return WKB without the SRID that PostGIS's extended form may hold in its header."""
    if len(data) < 9:
        return data
    order = "little" if data[0] == 1 else "big"
    kind = int.from_bytes(data[1:5], order)  # type: ignore[arg-type]
    if not kind & 0x20000000:
        return data
    return data[:1] + (kind & ~0x20000000).to_bytes(4, order) + data[9:]  # type: ignore[arg-type]


def vector_text(values: Any) -> str:
    """Return a vector as pgvector, MySQL and MariaDB read it."""
    return "[" + ",".join(repr(float(value)) for value in values) + "]"


def sparse_vector_text(value: Any) -> str:
    """Return a SparseDoubleVector as pgvector reads it."""
    pairs = ",".join(f"{index}:{float(number)!r}" for index, number in value["vector"].items())
    return f"{{{pairs}}}/{value['dimensions']}"
