"""Two's complement numbers to decimals and to text, in SQL. Pure: expressions out of expressions.

Up to sixteen bytes go through whole-number arithmetic of Spark's; longer ones, which no decimal of Spark's or of a format's holds, are
divided in groups of nine digits, which takes some ten times as long.
"""

from __future__ import annotations

#: Spark's and both table formats' widest decimal.
MAX_PRECISION = 38

#: PostgreSQL's NUMERIC, the widest, has up to 131,072 digits before and 16,383 after the point (its manual, "Numeric Types"). A scale is
#: also a number of zeros that are written, so that one of a billion would fill the memory.
MAX_SCALE = 131_072 + 16_383

#: Bytes that surely have no more than `MAX_PRECISION` digits.
_SURE_BYTES = 15

#: A group of digits; times 65536 it is far below what a BIGINT holds.
_GROUP = 1_000_000_000


def scaled(value: str, precision: int, scale: int) -> str:
    """A binary as DECIMAL(precision, scale); precision is at most `MAX_PRECISION`. A number that is too large raises."""
    unscaled = f"CAST({_narrow(value)} AS decimal({precision},0))" if precision <= 18 else wide(value)
    if scale == 0:
        return f"CAST({unscaled} AS decimal({precision},0))"
    if precision + scale + 1 <= MAX_PRECISION:  # a product of decimals(p,0) and (s,s) has the type (p+s+1,s), so nothing is rounded
        unscaled = unscaled if precision <= 18 else f"CAST({unscaled} AS decimal({precision},0))"
        return f"CAST({unscaled} * 0.{'1'.rjust(scale, '0')}BD AS decimal({precision},{scale}))"
    return f"CAST({_plain(wide(value), str(scale))} AS decimal({precision},{scale}))"


def text(value: str, scale: str) -> str:
    """A binary of any length as text without an exponent (java.math.BigDecimal.toPlainString); `scale` is an SQL expression."""
    return f"IF(length({value}) <= {_SURE_BYTES}, {_plain(wide(value), scale)}, {_long(value, scale)})"


def wide(value: str) -> str:
    """Up to sixteen bytes as DECIMAL(38,0). Negative numbers go through their complement, 0 - ~v - 1, so that no step leaves 38 digits.

    Spark's unary minus and abs round to 34 digits (Scala's default context; found with 4.1.3), so neither is used here or below.
    """
    padded = f"lpad({_magnitude(value)}, 32, '0')"
    high, low = (f"CAST(conv(substring({padded}, {start}, 16), 16, 10) AS decimal(20,0))" for start in (1, 17))
    magnitude = f"({high} * 18446744073709551616BD + {low})"
    return _at_most(value, 16, f"IF(hex({value}) >= '8', 0BD - {magnitude} - 1BD, {magnitude})")


def _magnitude(value: str) -> str:
    """Hexadecimal digits of a number, of negative ones of their complement."""
    digits = f"hex({value})"
    return f"IF({digits} >= '8', translate({digits}, '0123456789ABCDEF', 'FEDCBA9876543210'), {digits})"


def _narrow(value: str) -> str:
    """Up to eight bytes as BIGINT: the sign's nibble fills the left, and `conv` to base -10 reads 64 bits as a signed number."""
    digits = f"hex({value})"
    padded = f"lpad({digits}, 16, IF({digits} >= '8', 'F', '0'))"
    return _at_most(value, 8, f"CAST(conv({padded}, 16, -10) AS BIGINT)")


def _at_most(value: str, size: int, then: str) -> str:
    why = f"concat('a decimal of ', length({value}), ' bytes does not fit its column')"
    return f"CASE WHEN length({value}) > {size} THEN raise_error({why}) ELSE {then} END"


def _plain(unscaled: str, scale: str) -> str:
    """Text of unscaled × 10^-scale without an exponent; both are SQL expressions, the first a decimal."""
    digits = f"trim(LEADING '-' FROM CAST({unscaled} AS STRING))"
    return _pointed(digits, f"{unscaled} < 0", scale)


def _pointed(digits: str, negative: str, scale: str) -> str:
    sign = f"IF({negative}, '-', '')"
    padded = f"concat(repeat('0', greatest(0, {scale} + 1 - length({digits}))), {digits})"
    shifted = f"IF({digits} = '0', '0', concat({sign}, {digits}, repeat('0', -({scale}))))"
    point = f"concat({sign}, substring({padded}, 1, length({padded}) - {scale}), '.', right({padded}, {scale}))"
    return f"CASE WHEN {scale} <= 0 THEN {shifted} ELSE {point} END"


def _long(value: str, scale: str) -> str:
    """Groups of nine decimal digits, the lowest first, each step multiplied by 65536 and the next two bytes added; at a negative number's
    end one more, since its complement lacks one."""
    negative = f"hex({value}) >= '8'"
    padded = f"lpad({_magnitude(value)}, length({value}) * 2 + 2 * (length({value}) % 2), '0')"
    pairs = f"transform(sequence(1, length({padded}), 4), i -> struct(65536L m, CAST(conv(substring({padded}, i, 4), 16, 10) AS BIGINT) a))"
    one_more = f"IF({negative}, array(struct(1L m, 1L a)), slice(array(struct(1L m, 1L a)), 1, 0))"
    start = "struct({carry} carry, slice(array(0L), 1, 0) done)".format
    term = "g * p.m + s.carry"
    step = (
        f"aggregate(n, {start(carry='p.a')}, "
        f"(s, g) -> struct(({term}) div {_GROUP}L carry, concat(s.done, array(({term}) % {_GROUP}L)) done), "
        "s -> IF(s.carry > 0, concat(s.done, array(s.carry)), s.done))"
    )
    joined = "concat_ws('', transform(reverse(n), g -> lpad(CAST(g AS STRING), 9, '0')))"
    digits = f"coalesce(nullif(trim(LEADING '0' FROM {joined}), ''), '0')"
    whole = f"aggregate(concat({pairs}, {one_more}), array(0L), (n, p) -> {step}, n -> {digits})"
    return f"element_at(transform(array({whole}), d -> {_pointed('d', negative, scale)}), 1)"
