"""Integers as JsonConverter writes those of Decimals."""

from __future__ import annotations

import base64

import pytest

from connect_py.data.schema import decimal_schema
from connectors.engine.encode.values import BASE64_OF_VARIABLE, FOUR_BITS, PAIRS, base64_of_integer, decimal_plan

BOUNDS = [0, 0x7F, 0x80, 0x7FFF, 0x8000, 0x7FFFFF, 0x800000, 0x7FFFFFFF, 0x80000000, 1 << 63, 1 << 200]


@pytest.mark.parametrize("bound", BOUNDS)
def test_integers_around_each_size_are_their_shortest_twos_complement(bound: int) -> None:
    names = {"PAIRS": PAIRS, "FOUR_BITS": FOUR_BITS, "base64_of_integer": base64_of_integer}
    quick = eval(f"lambda n: {BASE64_OF_VARIABLE.replace('$', 'n')}", names)
    for value in {sign * (bound + step) for sign in (1, -1) for step in range(-3, 4)}:
        size = next(n for n in range(1, 40) if -(1 << 8 * n - 1) <= value < 1 << 8 * n - 1)
        assert base64_of_integer(value) == base64.b64encode(value.to_bytes(size, "big", signed=True)).decode(), value
        assert quick(value) == base64_of_integer(value)


def test_every_integer_of_two_bytes_reads_back_as_itself() -> None:
    for value in range(-0x8000, 0x8000):
        data = base64.b64decode(base64_of_integer(value), validate=True)
        assert int.from_bytes(data, "big", signed=True) == value
        assert len(data) == (1 if -0x80 <= value < 0x80 else 2)


@pytest.mark.parametrize("text", ["1e999999999", "-1e200000", "1e-200000"])
def test_a_text_of_more_digits_than_a_database_stores_is_refused_at_once(text: str) -> None:
    plan = decimal_plan("price", decimal_schema(2), 2)
    for convert in (plan.convert, plan.numeric):
        assert convert is not None
        with pytest.raises(ValueError, match="too many digits"):
            convert(text)
