"""Decimals of a fixed scale and floating point numbers as JSON (debezium-common.md §6.1)."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import cache

from connect_py.data import Schema
from connect_py.data.schema import EXACT
from connectors.engine.encode.numbers import BASE64_OF_VARIABLE, PAIRS, base64_of_expression, base64_of_integer
from connectors.engine.encode.plan import ColumnPlan, Stored, Unrepresentable


def json_number(shown: str) -> str:
    """A number's text; NaN and the infinities are strings in JSON."""
    return shown if shown[-1].isdigit() else f'"{shown}"'


def decimal_plan(name: str, schema: Schema, scale: int) -> ColumnPlan:
    """A Connect Decimal of a fixed scale.

    The server prints exactly `scale` digits, so the unscaled value is the text without its point: 0.3 µs a value. A cache of texts costs
    0.2 µs when it misses, so it would pay above a hit rate of one half only.
    """

    unscaled = _unscaled(scale)
    number = "int($)" if scale == 0 else f"int($.replace('.', '')) if $[{-scale - 1}] == '.' else unscaled{scale}($)"
    return ColumnPlan(
        name,
        schema,
        lambda text: f'"{base64_of_integer(unscaled(text))}"',
        base64_of_expression(number) if scale >= 0 else "",
        quoted=scale >= 0,
        helpers={"PAIRS": PAIRS, "base64_of_integer": base64_of_integer, f"unscaled{scale}": unscaled},
        stored=(Stored(f"decimal.{scale}", BASE64_OF_VARIABLE),) if scale >= 0 else (),
        numeric=lambda text: str(finite(text)),
        fallback='"AA=="',
    )


@cache
def _unscaled(scale: int) -> Callable[[str], int]:
    """From a text to the unscaled value: one function a scale, since the columns of a table share its name."""

    def unscaled(text: str) -> int:
        shifted = finite(text).scaleb(scale, EXACT)
        if shifted != int(shifted):
            raise Unrepresentable(f"{text} has more than {scale} fractional digits")
        return int(shifted)

    return unscaled


def finite(text: str) -> Decimal:
    """A decimal's text. Raises Unrepresentable: it is NaN or infinite."""
    value = Decimal(text)
    if not value.is_finite():
        raise Unrepresentable(f"{text} has no form as a Decimal")
    return value
