"""Schema defaults from the catalog's default expressions.

Expressions are not evaluated: a literal is taken, a function call becomes a placeholder, anything else gives no default. The rules are the
reference's, oddities included, because consumers see them in schemas and instead of nulls: of `'a''b'` the first quoted piece is taken;
for a boolean, what is not `true` is false; domains, arrays, structs, bytea, citext, hstore, money, name, oid, network and timetz columns
have no default at all (pg_types_more.json).
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from connect_py.data import Type
from connect_py.data.schema import DATE, EXACT, TIME, TIMESTAMP
from connect_py.data.times import days_to_date, millis_to_time, millis_to_timestamp
from connectors.engine.encode.plan import ColumnPlan
from connectors.postgres.types import temporal
from connectors.postgres.types.base import RootType
from connectors.postgres.types.binary import bytes_of_bits
from connectors.postgres.types.numbers import precision_and_scale
from connectors.postgres.types.temporal import iso_text, micros_of_interval

_FUNCTION = re.compile(r"[(]?[A-Za-z0-9_.]+\(.*\)").match
_LITERAL = re.compile(r"'(.*?)'").search
_ENUM_LITERAL = re.compile(r"'(.*)'::").match
_NOW = ("CURRENT_TIMESTAMP", "CURRENT_DATE", "CURRENT_TIME", "LOCALTIME", "LOCALTIMESTAMP")
_BITS = {Type.INT16: 15, Type.INT32: 31, Type.INT64: 63}
#: What the reference's arithmetic makes of `DEFAULT 'infinity'`.
_INFINITE_DATE, _INFINITE_MICROS = 169_560_311, -9_223_372_036_853_775_810
_ZERO_UUID = "00000000-0000-0000-0000-000000000000"


def default_of(expression: str, plan: ColumnPlan, root: RootType) -> Any:
    """Return a Connect value for a default expression, None for no default."""
    parser = _enum if root.enum_labels else _PARSERS.get(root.name)
    if parser is None or expression.upper().startswith("NULL"):
        return None
    try:
        return parser(expression.strip(), plan, root)
    except (ValueError, ArithmeticError):
        return None


def literal_of(expression: str) -> str | None:
    """Return the text of a default that is a literal; None for NULL and for what the server computes."""
    if expression.upper().startswith("NULL") or _FUNCTION(expression) or expression.upper().startswith(_NOW):
        return None
    return _extract(expression, "")


def _extract(expression: str, placeholder: str) -> str:
    if _FUNCTION(expression) or expression.upper() in _NOW:
        return placeholder
    literal = _LITERAL(expression)
    return literal[1] if literal else expression


def _integer(expression: str, plan: ColumnPlan, root: RootType) -> int | None:
    value = int(_extract(expression, "0"))
    bound = 1 << _BITS[plan.schema.type]
    return value if -bound <= value < bound else None


def _float(expression: str, plan: ColumnPlan, root: RootType) -> float:
    return float(_extract(expression, "0.0"))


def _numeric(expression: str, plan: ColumnPlan, root: RootType) -> Any:
    """Return a number with the column's decimal digits; None where that would lose some, in every mode."""
    if plan.schema.type is Type.STRUCT:
        return None
    number = Decimal(_extract(expression, "0.0"))
    if root.typmod >= 0:
        _, scale = precision_and_scale(root.typmod)
        whole = number.quantize(Decimal(1).scaleb(-scale), context=EXACT)
        if whole != number:
            return None
        number = whole
    match plan.schema.type:
        case Type.STRING:
            return f"{number:f}"
        case Type.FLOAT64:
            return float(number)
    return number


def _boolean(expression: str, plan: ColumnPlan, root: RootType) -> bool:
    return _extract(expression, "false").lower() == "true"


def _text(placeholder: str) -> Callable[[str, ColumnPlan, RootType], str]:
    return lambda expression, plan, root: _extract(expression, placeholder)


def _enum(expression: str, plan: ColumnPlan, root: RootType) -> str | None:
    literal = _ENUM_LITERAL(expression)
    return literal[1] if literal else None


def _literal_or_now(expression: str, epoch: str) -> str:
    return epoch if expression.upper().startswith(_NOW) else _extract(expression, epoch)


def _date(expression: str, plan: ColumnPlan, root: RootType) -> int | str | datetime.date | None:
    text = _literal_or_now(expression, "1970-01-01")
    if plan.schema.type is Type.STRING:
        return _iso(plan, text)
    if text in temporal.DATE_INFINITY:
        return _INFINITE_DATE if text == "infinity" and plan.schema.name != DATE else None
    days = temporal.days_of_date(text)
    return days_to_date(days) if plan.schema.name == DATE else days


def _time(expression: str, plan: ColumnPlan, root: RootType) -> int | str | datetime.time | None:
    text = _literal_or_now(expression, "00:00:00")
    if plan.schema.type is Type.STRING:
        return _iso(plan, text)
    micros = temporal.micros_of_time(text)
    if plan.schema.name == "io.debezium.time.NanoTime":
        return micros * 1000
    if plan.schema.name == TIME:
        return millis_to_time(micros // 1000)
    return micros if plan.schema.type is Type.INT64 else micros // 1000


def _timestamp(expression: str, plan: ColumnPlan, root: RootType) -> int | str | datetime.datetime | None:
    text = _literal_or_now(expression, "1970-01-01 00:00:00")
    if plan.schema.type is Type.STRING:
        return _iso(plan, text)
    if plan.schema.name == "io.debezium.time.NanoTimestamp":
        return temporal.nanos_of_timestamp(text)
    micros = plan.schema.name == "io.debezium.time.MicroTimestamp"
    if text in temporal.TIMESTAMP_INFINITY_MICROS:
        return _INFINITE_MICROS if text == "infinity" and micros else None
    if micros:
        return temporal.micros_of_timestamp(text)
    millis = temporal.millis_of_timestamp(text)
    return millis_to_timestamp(millis) if plan.schema.name == TIMESTAMP else millis


def _timestamptz(expression: str, plan: ColumnPlan, root: RootType) -> str | None:
    text = _literal_or_now(expression, "1970-01-01 00:00:00+00")
    if text in temporal.TIMESTAMP_INFINITY_MICROS:
        return None
    return temporal.zoned_timestamp(text, root.typmod if 0 <= root.typmod <= 6 else 6)


def _iso(plan: ColumnPlan, text: str) -> str | None:
    return plan.convert(text)[1:-1] if plan.convert is not None else None


def _interval(expression: str, plan: ColumnPlan, root: RootType) -> int | str:
    text = _extract(expression, "00:00:00")
    return iso_text(text) if plan.schema.type is Type.STRING else micros_of_interval(text)


def _bits(expression: str, plan: ColumnPlan, root: RootType) -> bool | bytes:
    value = bytes_of_bits(_extract(expression, "0"))
    return bool(value) if plan.schema.type is Type.BOOLEAN else value


_PARSERS: dict[str, Callable[[str, ColumnPlan, RootType], Any]] = {
    **dict.fromkeys(("int2", "int4", "int8"), _integer),
    **dict.fromkeys(("float4", "float8"), _float),
    **dict.fromkeys(("bpchar", "varchar", "text", "xml"), _text("")),
    **dict.fromkeys(("json", "jsonb"), _text("{}")),
    "uuid": _text(_ZERO_UUID),
    "numeric": _numeric,
    "bool": _boolean,
    "date": _date,
    "time": _time,
    "timestamp": _timestamp,
    "timestamptz": _timestamptz,
    "interval": _interval,
    "bit": _bits,
    "varbit": _bits,
}
