"""money (postgres.md §14). The server prints it by `lc_monetary`, which also decides how many digits a stored amount has."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Decimal

from connect_py.data.java_text import double_text
from connect_py.data.logical import decimal_schema
from connect_py.data.schema import FLOAT64, STRING
from connectors.engine.encode.numbers import base64_of_integer
from connectors.engine.encode.plan import ColumnPlan, Unrepresentable
from connectors.postgres.types.base import Family, RootType, ValueOptions

_AMOUNT = re.compile(r"\d[\d.,'’\s\u00a0\u202f]*")


def money(name: str, root: RootType, options: ValueOptions) -> ColumnPlan:
    """By `decimal.handling.mode`, in precise mode with `money.fraction.digits`."""
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
    """`$1,234.56`, `-$1,234.56`, `($1.00)`, `1.234,56 €`, `¥1,235`.

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


FAMILIES: dict[str, Family] = {"money": money}
