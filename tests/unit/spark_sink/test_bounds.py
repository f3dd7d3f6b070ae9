"""Where in a table a batch's keys can be, from the keys' texts, as the driver has them of a batch that it holds."""

from __future__ import annotations

from typing import Any

import pytest

from spark_sink.sql.keys import key_texts
from spark_sink.sql.merge import Shape
from spark_sink.tables.bounds import LISTED, bounds_of_texts


def shape(type_: str) -> Shape:
    return Shape(("k",), {"k": type_}, required_keys=frozenset({"k"}))


def looks(*texts: str) -> list[Any]:
    return [{"k": text} for text in texts]


def test_a_few_keys_are_listed_once_each() -> None:
    assert bounds_of_texts(looks("7", "9", "7"), shape("bigint")) == ("t.`k` IN (CAST('7' AS bigint), CAST('9' AS bigint))",)


@pytest.mark.parametrize(
    ("type_", "text", "listed"),
    [
        ("bigint", "7", "CAST('7' AS bigint), CAST('6' AS bigint)"),
        ("tinyint", "-128", "CAST('-128' AS tinyint), CAST('-127' AS tinyint)"),
        ("string", "7", "'7'"),
    ],
)
def test_a_single_whole_number_has_a_neighbour_for_spark_not_to_make_it_a_part_of_its_code(type_: str, text: str, listed: str) -> None:
    assert bounds_of_texts(looks(text), shape(type_)) == (f"t.`k` IN ({listed})",)


@pytest.mark.parametrize(
    ("type_", "texts", "between"),
    [
        ("bigint", [str(number) for number in range(-5, 300)], "CAST('-5' AS bigint) AND CAST('299' AS bigint)"),
        ("decimal(9,2)", [f"{number}.50" for number in range(300)], "CAST('0.50' AS decimal(9,2)) AND CAST('299.50' AS decimal(9,2))"),
        ("string", [str(number) for number in range(300)], "'0' AND '99'"),
        ("date", [f"{1800 + number}-01-02" for number in range(300)], "CAST('1800-01-02' AS date) AND CAST('2099-01-02' AS date)"),
    ],
)
def test_many_keys_lie_between_their_ends_in_the_order_of_their_type(type_: str, texts: list[str], between: str) -> None:
    assert len(texts) > LISTED
    assert bounds_of_texts(looks(*texts), shape(type_)) == (f"t.`k` BETWEEN {between}",)


def test_dates_whose_texts_have_another_order_have_no_bounds() -> None:
    assert bounds_of_texts(looks(*(f"{9900 + number}-01-02" for number in range(300))), shape("date")) == ()


def test_keys_that_may_be_null_or_have_no_order_are_not_looked_at() -> None:
    nullable = Shape(("k",), {"k": "bigint"})
    assert key_texts(nullable) == key_texts(shape("binary")) == []
    assert bounds_of_texts(looks("1"), nullable) == ()
