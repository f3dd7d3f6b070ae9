"""Integers, floats, numeric, boolean, and money.

The server prints money by `lc_monetary`, which also decides how many digits a stored amount has.
"""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Decimal

from connect_py.converters.json_write import quote
from connect_py.data import Schema
from connect_py.data.java_text import double_text, float_text, reformat
from connect_py.data.schema import BOOLEAN, BYTES, FLOAT32, FLOAT64, INT16, INT32, INT64, STRING, decimal_schema, struct
from connectors.engine.encode.plan import ColumnPlan, Convert, Unrepresentable
from connectors.engine.encode.values import base64_of_integer, decimal_plan, json_number
from connectors.postgres.types.base import Family, RootType, ValueOptions

VARIABLE_SCALE_DECIMAL = struct(
    [("scale", INT32), ("value", BYTES)], name="io.debezium.data.VariableScaleDecimal", version=1, doc="Variable scaled decimal"
)
#: Numbers that Java prints as PostgreSQL does: 0.001 to 9999999.9…, with a fraction that is not a trailing zero.
_SAME_IN_JAVA = re.compile(r"-?(?:[1-9][0-9]{0,6}|0(?=\.(?:[1-9]|0[1-9]|00[1-9])))\.(?:[0-9]*[1-9]|0)").fullmatch
_SPECIAL = {"NaN": "NAN", "Infinity": "POSITIVE_INFINITY", "-Infinity": "NEGATIVE_INFINITY"}
#: Texts of unconstrained numerics whose JSON is kept; a text takes 0.6 µs to convert, and a table that is full is emptied.
_MAX_NUMERICS = 32_768


def _integer(schema: Schema) -> Family:
    def plan(name: str, root: RootType, options: ValueOptions) -> ColumnPlan:
        return ColumnPlan(name, schema, fallback="0")

    return plan


def boolean(name: str, root: RootType, options: ValueOptions) -> ColumnPlan:
    """Make the plan of booleans, `t` and `f`."""
    return ColumnPlan(name, BOOLEAN, _boolean, "BOOLEANS[$]", helpers={"BOOLEANS": _BOOLEANS}, fallback="false")


class _Booleans(dict[str, str]):
    def __missing__(self, text: str) -> str:
        raise ValueError(f"not a boolean: {text!r}")


_BOOLEANS = _Booleans(t="true", f="false")


def _boolean(text: str) -> str:
    return _BOOLEANS[text]


def _floating(schema: Schema, convert: Convert) -> Family:
    def plan(name: str, root: RootType, options: ValueOptions) -> ColumnPlan:
        helpers = {"same_in_java": _SAME_IN_JAVA, f"{convert.__name__}_text": convert}
        return ColumnPlan(name, schema, convert, f"$ if same_in_java($) else {convert.__name__}_text($)", helpers=helpers, fallback="0.0")

    return plan


def float8(text: str) -> str:
    """Return a double's shortest text as JSON."""
    return json_number(reformat(text))


def float4(text: str) -> str:
    """Return a float's shortest text as JSON. Java shows two digits of numbers that one digit identifies, which are denormal ones."""
    return json_number(float_text(float(text)) if "e-4" in text else reformat(text))


def numeric(name: str, root: RootType, options: ValueOptions) -> ColumnPlan:
    """Make the plan of numeric(p,s), numeric(p) and numeric, by `decimal.handling.mode`."""
    if options.decimal_mode == "string":
        return ColumnPlan(
            name, STRING, lambda text: f'"{_SPECIAL.get(text, text)}"', placeholder=quote(options.placeholder), fallback='"0"'
        )
    if options.decimal_mode == "double":
        return ColumnPlan(name, FLOAT64, _double, fallback="0.0")
    if root.typmod < 4:
        helpers = {"VARIABLE_SCALE": _VARIABLE_SCALE}
        return ColumnPlan(
            name, VARIABLE_SCALE_DECIMAL, variable_scale, "VARIABLE_SCALE[$]", helpers=helpers, fallback='{"scale":0,"value":"AA=="}'
        )
    precision, scale = precision_and_scale(root.typmod)
    return decimal_plan(name, decimal_schema(scale, precision), scale)


def _double(text: str) -> str:
    return json_number(double_text(float(text)))


def precision_and_scale(typmod: int) -> tuple[int, int]:
    """Return precision and scale of a type modifier; the scale is signed since PostgreSQL 15 (`numeric_typmod_scale`)."""
    scale = (typmod - 4) & 0x7FF
    return (typmod - 4) >> 16 & 0xFFFF, scale - 0x800 if scale & 0x400 else scale


def variable_scale(text: str) -> str:
    """Return a numeric without scale: trailing zeros of the fraction removed, the scale never below zero."""
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    whole, _, fraction = text.partition(".")
    try:
        unscaled = int(whole + fraction)
    except ValueError:
        raise Unrepresentable(f"{text} has no form as a VariableScaleDecimal") from None
    return f'{{"scale":{len(fraction)},"value":"{base64_of_integer(unscaled)}"}}'


class _VariableScale(dict[str, str]):
    def __missing__(self, text: str) -> str:
        value = variable_scale(text)
        if len(self) >= _MAX_NUMERICS:
            self.clear()
        if len(text) < 32:
            self[text] = value
        return value


_VARIABLE_SCALE = _VariableScale()

NUMBERS: dict[str, Family] = {
    "int2": _integer(INT16),
    "int4": _integer(INT32),
    "int8": _integer(INT64),
    "oid": _integer(INT64),
    "float4": _floating(FLOAT32, float4),
    "float8": _floating(FLOAT64, float8),
    "bool": boolean,
    "numeric": numeric,
}


_AMOUNT = re.compile(r"\d[\d.,'’\s\u00a0\u202f]*")


def money(name: str, root: RootType, options: ValueOptions) -> ColumnPlan:
    """Make the plan of money by `decimal.handling.mode`, in precise mode with `money.fraction.digits`."""
    zero = Decimal(0).scaleb(-options.money_digits)
    match options.decimal_mode:
        case "string":
            return ColumnPlan(name, STRING, lambda text: f'"{amount_of(text):f}"', fallback=f'"{zero:f}"')
        case "double":
            return ColumnPlan(name, FLOAT64, lambda text: double_text(float(amount_of(text))), fallback="0.0")

    def rounded(text: str) -> Decimal:
        return amount_of(text).quantize(zero, rounding=ROUND_HALF_UP)

    return ColumnPlan(
        name,
        decimal_schema(options.money_digits),
        lambda text: f'"{base64_of_integer(int(rounded(text).scaleb(options.money_digits)))}"',
        numeric=lambda text: str(rounded(text)),
        fallback='"AA=="',
    )


def amount_of(text: str) -> Decimal:
    """Return the number in `$1,234.56`, `-$1,234.56`, `($1.00)`, `1.234,56 €`, `¥1,235`.

    The last mark is the decimal one unless it stands before exactly three digits and no other kind of mark came before it.
    """
    found = _AMOUNT.search(text)
    if found is None:
        raise Unrepresentable(f"{text!r} is not an amount of money")
    digits = "".join(found[0].split())
    marks = [character for character in digits if not character.isdigit()]
    whole, fraction = digits, ""
    if marks:
        head, _, tail = digits.rpartition(marks[-1])
        if marks.count(marks[-1]) == 1 and (len(tail) != 3 or len(set(marks)) > 1):
            whole, fraction = head, tail
    value = Decimal("".join(c for c in whole if c.isdigit()) + (f".{fraction}" if fraction else ""))
    return -value if "-" in text or "(" in text else value


MONEY: dict[str, Family] = {"money": money}
