"""Logical types: schemas with a well-known name (`org.apache.kafka.connect.data.{Decimal,Date,Time,Timestamp}`, `io.debezium.*`)."""

from __future__ import annotations

import decimal

from connect_py.data.schema import Schema, Type
from connect_py.errors import DataError

DECIMAL = "org.apache.kafka.connect.data.Decimal"
DATE = "org.apache.kafka.connect.data.Date"
TIME = "org.apache.kafka.connect.data.Time"
TIMESTAMP = "org.apache.kafka.connect.data.Timestamp"

#: Wide enough for any numeric of PostgreSQL (131072 digits before the point, 16383 after).
EXACT = decimal.Context(prec=150_000, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)


def decimal_schema(scale: int, precision: int | None = None, *, optional: bool = False) -> Schema:
    """Decimal of a fixed scale; the precision parameter is Debezium's (`connect.decimal.precision`)."""
    parameters: tuple[tuple[str, str], ...] = (("scale", str(scale)),)
    if precision is not None:
        parameters += (("connect.decimal.precision", str(precision)),)
    return Schema(Type.BYTES, optional=optional, name=DECIMAL, version=1, parameters=parameters)


def int_to_bytes(value: int) -> bytes:
    """Shortest big-endian two's complement of an integer, as java.math.BigInteger.toByteArray gives it."""
    return value.to_bytes((value + (value < 0)).bit_length() // 8 + 1, "big", signed=True)


def decimal_to_bytes(value: decimal.Decimal, scale: int) -> bytes:
    """Unscaled value of a decimal at a scale.

    Raises:
        DataError: the value has more fractional digits than the scale, or is not finite.
    """
    if not value.is_finite():
        raise DataError(f"{value} has no exact decimal form")
    shifted = value.scaleb(scale, EXACT)
    unscaled = int(shifted)
    if unscaled != shifted:
        raise DataError(f"Decimal value has mismatching scale for given Decimal schema: {value} at scale {scale}")
    return int_to_bytes(unscaled)


def bytes_to_decimal(data: bytes, scale: int) -> decimal.Decimal:
    """The inverse of `decimal_to_bytes`."""
    return decimal.Decimal(int.from_bytes(data, "big", signed=True)).scaleb(-scale, EXACT)
