"""Integers as JsonConverter writes those of Decimals."""

from __future__ import annotations

import base64

import pytest

from connectors.engine.encode.values import BASE64_OF_VARIABLE, PAIRS, base64_of_integer

BOUNDS = [0, 0x7F, 0x80, 0x7FFF, 0x8000, 0x7FFFFF, 0x800000, 0x7FFFFFFF, 0x80000000, 1 << 63, 1 << 200]


@pytest.mark.parametrize("bound", BOUNDS)
def test_integers_around_each_size_are_their_shortest_twos_complement(bound: int) -> None:
    quick = eval(f"lambda n: {BASE64_OF_VARIABLE.replace('$', 'n')}", {"PAIRS": PAIRS, "base64_of_integer": base64_of_integer})
    for value in {sign * (bound + step) for sign in (1, -1) for step in range(-3, 4)}:
        size = next(n for n in range(1, 40) if -(1 << 8 * n - 1) <= value < 1 << 8 * n - 1)
        assert base64_of_integer(value) == base64.b64encode(value.to_bytes(size, "big", signed=True)).decode(), value
        assert quick(value) == base64_of_integer(value)


def test_every_integer_of_two_bytes_reads_back_as_itself() -> None:
    for value in range(-0x8000, 0x8000):
        data = base64.b64decode(base64_of_integer(value), validate=True)
        assert int.from_bytes(data, "big", signed=True) == value
        assert len(data) == (1 if -0x80 <= value < 0x80 else 2)
