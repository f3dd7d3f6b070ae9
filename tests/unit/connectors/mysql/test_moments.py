"""The quick ways of DATETIME and TIMESTAMP beside the careful one, for every minute of a day and every second of a minute."""

from __future__ import annotations

import calendar
import random
from collections.abc import Callable
from typing import Any

import pytest

from connectors.engine.encode.plan import ColumnPlan, Stored
from connectors.mysql.binlog.columns import turned
from connectors.mysql.binlog.values import CLOCK_HIGHS, CLOCK_LOWS
from connectors.mysql.config.value_options import ValueOptions
from connectors.mysql.model import MyColumn
from connectors.mysql.types.columns import column_plan

CASES = [("DATETIME", digits) for digits in (0, 1, 3, 6)] + [("TIMESTAMP", digits) for digits in (0, 1, 3, 6)]


def plan_of(type_name: str, digits: int, **options: Any) -> ColumnPlan:
    jdbc = 93 if type_name == "DATETIME" else 2014
    plan = column_plan(MyColumn("c", type_name, jdbc, length=digits or None), ValueOptions(**options))
    assert plan is not None
    return plan


def function(plan: ColumnPlan, expression: str) -> Callable[..., str]:
    """An expression of a plan, as generated functions hold it, of a value and its pieces by their names."""
    text = Stored("", expression).shown(0)
    found: Callable[..., str] = eval(f'lambda c0, clock0=0, second0=0, fraction0=0: f"{{{text}}}"', dict(plan.helpers))
    return (lambda *values, **pieces: f'"{found(*values, **pieces)}"') if plan.quoted else found


def moments(digits: int) -> list[tuple[int, ...]]:
    chance = random.Random(5)
    return [
        (chance.randrange(1971, 2038), chance.randrange(1, 13), chance.randrange(1, 29), *divmod(minute, 60), second, fraction)
        for minute in range(1440)
        for second in {0, 59, minute % 60, chance.randrange(60)}
        for fraction in [chance.randrange(10**digits)]
    ]


def text_of(moment: tuple[int, ...], digits: int) -> str:
    year, month, day, hour, minute, second, fraction = moment
    return f"{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}" + (f".{fraction:0{digits}}" if digits else "")


@pytest.mark.parametrize(("type_name", "digits"), CASES)
def test_every_minute_of_a_day_is_read_the_same_way_from_texts_and_from_the_log(type_name: str, digits: int) -> None:
    plan = plan_of(type_name, digits)
    assert plan.convert is not None
    ways = {way.form: function(plan, way.expression) for way in plan.stored}
    quick, stored = function(plan, plan.quick), ways[f"{type_name.lower()}.{digits}"]
    pieces = ways.get(f"{type_name.lower()} texts.{digits}")
    assert (pieces is None) == (type_name == "TIMESTAMP" and digits > 0)
    trimmed = function(plan, plan.quick_copy) if plan.quick_copy else None
    for moment in moments(digits):
        year, month, day, hour, minute, second, fraction = moment
        text = text_of(moment, digits)
        careful = plan.convert(text)
        assert quick(text) == careful
        if trimmed is not None:
            assert plan.snapshot is not None
            assert trimmed(text) == plan.snapshot(text)
        if type_name == "DATETIME":
            packed = (1 << 39 | ((year * 13 + month) << 5 | day) << 17 | hour << 12 | minute << 6 | second).to_bytes(5, "big")
            assert stored(packed[:3], clock0=CLOCK_HIGHS[packed[3]] + CLOCK_LOWS[packed[4]], fraction0=fraction) == careful
        else:
            assert stored(calendar.timegm((year, month, day, hour, minute, second)), fraction0=fraction) == careful
        sized = chr(len(text)) + text
        if pieces is not None and type_name == "DATETIME":
            assert pieces(sized[:12], clock0=sized[12:18], second0=sized[18:20], fraction0=sized[21:]) == careful
        elif pieces is not None:
            assert pieces(sized[:12], clock0=sized[12:]) == careful


@pytest.mark.parametrize(
    "text", ["2020-01-01 1:02:03", "2020-01-01 01:02", "2020-01-01 01:02:3", "2020-01-01 01:02:0x", "2020-01-01 01:02:03.5", ""]
)
def test_what_is_no_moment_is_left_to_the_careful_way(text: str) -> None:
    plan = plan_of("DATETIME", 0)
    with pytest.raises((ValueError, LookupError)):
        function(plan, plan.quick)(text)


@pytest.mark.parametrize(
    ("sized", "clock", "second"),
    [
        ("\x122020-01-01 ", "01:02:", "03"),
        ("\x132020-13-01 ", "01:02:", "03"),
        ("\x132020-01-01T", "01:02:", "03"),
        ("\x132020-01-01 ", "01:02 ", "03"),
        ("\x132020-01-01 ", "01:02:", "0x"),
    ],
)
def test_pieces_of_what_is_no_moment_are_left_to_the_careful_way(sized: str, clock: str, second: str) -> None:
    plan = plan_of("DATETIME", 0)
    (way,) = (way for way in plan.stored if way.form == "datetime texts.0")
    with pytest.raises(ValueError):
        function(plan, way.expression)(sized, clock0=clock, second0=second)


@pytest.mark.parametrize("size", [2, 4])
def test_numbers_are_turned_around_on_a_machine_of_the_other_byte_order_too(size: int) -> None:
    for octets in (bytes(range(1, size + 1)), b"\xff" * size, bytes(size)):
        assert turned(size)(int.from_bytes(octets, "little")) == int.from_bytes(octets, "big")
