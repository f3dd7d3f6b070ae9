"""The keys of rows in small data files, as the driver reads them."""

from __future__ import annotations

import io
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from spark_sink.tables.file_keys import FileKeys, Unreadable


def file(**columns: Any) -> bytes:
    data = io.BytesIO()
    parquet.write_table(pa.table(columns), data)
    return data.getvalue()


def test_rows_have_the_values_of_their_keys_in_the_order_of_the_columns_asked_for() -> None:
    data = file(name=["b", None], id=[1, 2], price=[Decimal("1.50"), Decimal("-0.10")], more=[[1], []])
    assert list(FileKeys(["price", "name", "id"]).rows("a", lambda: data)) == [(Decimal("1.50"), "b", 1), (Decimal("-0.10"), None, 2)]


def test_a_column_whose_name_has_a_point_is_no_part_of_another() -> None:
    columns = {"a": pa.array([{"b": 7}]), "a.b": pa.array([8])}
    data = io.BytesIO()
    parquet.write_table(pa.table(columns), data)
    assert list(FileKeys(["a.b"]).rows("a", data.getvalue)) == [(8,)]


def test_a_file_is_read_once_unless_others_have_needed_its_place() -> None:
    read: list[str] = []

    def content(name: str) -> bytes:
        read.append(name)
        return file(id=pa.array(range(40_000), pa.int64()))  # a third of what is kept

    keys = FileKeys(["id"])
    for name in ("a", "b", "c", "a", "d", "a", "b"):
        rows = list(keys.rows(name, lambda name=name: content(name)))
        assert rows[-1] == (39_999,)
    assert read == ["a", "b", "c", "d", "b"], "of three that fit the one goes that was used the longest time ago"


def test_spark_reads_a_file_that_lacks_a_key_or_is_none() -> None:
    for data in (file(other=[1]), b"nothing"):
        with pytest.raises(Unreadable):
            list(FileKeys(["id"]).rows("a", lambda data=data: data))
