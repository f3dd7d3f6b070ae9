"""The files of an Iceberg table that the driver follows; bounds as pyiceberg writes them."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pytest
from pyiceberg.conversions import to_bytes
from pyiceberg.types import DateType, DecimalType, IntegerType, LongType, PrimitiveType, StringType

from spark_sink.tables.file_keys import KeyedFile
from spark_sink.tables.iceberg.files import Changes, DeleteFile, LiveFiles, bound_of


@pytest.mark.parametrize(
    ("type_", "spark", "value", "bound"),
    [
        (IntegerType(), "int", -5, -5),
        (IntegerType(), "bigint", 1 << 30, 1 << 30),  # of a file that is older than the column's type
        (LongType(), "bigint", -(1 << 62), -(1 << 62)),
        (StringType(), "string", "né", "né"),
        (DateType(), "date", (datetime.date(1969, 12, 30) - datetime.date(1970, 1, 1)).days, "1969-12-30"),
        (DecimalType(9, 2), "decimal(9,2)", Decimal("-12.30"), Decimal("-12.30")),
        (DecimalType(38, 0), "decimal(38,0)", Decimal(10) ** 27, Decimal(10) ** 27),
    ],
)
def test_bounds_are_compared_as_keys_are(type_: PrimitiveType, spark: str, value: Any, bound: Any) -> None:
    assert bound_of(to_bytes(type_, value), spark) == bound


@pytest.mark.parametrize(("content", "type_"), [(b"\xff\xfe", "string"), ((1 << 30).to_bytes(4, "little"), "date")])
def test_a_bound_that_python_has_no_form_for_is_none(content: bytes, type_: str) -> None:
    assert bound_of(content, type_) is None


def file(low: int, high: int) -> KeyedFile:
    return KeyedFile(10, 100, {"k": (low, high)})


def test_files_and_deletes_come_and_go_with_snapshots() -> None:
    live = LiveFiles(["k"])
    live.follow(1, Changes({"a": file(1, 5), "b": file(3, 9)}, (), (), ()))
    assert set(live.holding({"k": [2, 4]})) == {"a", "b"}
    assert set(live.holding({"k": [6]})) == {"b"}
    live.follow(2, Changes({}, (), [DeleteFile("d", 2, 50, True), DeleteFile("e", 1, 50, True)], ()))
    assert set(live.unread) == {"d", "e"}
    live.read("d", {"a": [3, 4], "b": [0]})
    live.read("e", {"a": [4, 7]})
    assert not live.unread
    assert (set(live.deleted_rows("a")), set(live.deleted_rows("b")), set(live.deleted_rows("c"))) == ({3, 4, 7}, {0}, set())
    assert live.deleted_count == 5
    live.follow(3, Changes({"c": file(1, 9)}, ["a"], (), ["d"]))
    assert set(live.holding({"k": [2]})) == {"c"}
    assert (set(live.deleted_rows("a")), set(live.deleted_rows("b"))) == ({4, 7}, set())
    assert live.head == 3


def test_positions_that_are_known_before_their_file_is_seen_are_not_read_again() -> None:
    live = LiveFiles(["k"])
    live.read("d", {"a": [3]})
    live.follow(1, Changes({}, (), [DeleteFile("d", 1, 50, True)], ()))
    assert not live.unread
    assert set(live.deleted_rows("a")) == {3}
