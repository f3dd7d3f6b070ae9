"""The files of an Iceberg table that the driver follows; bounds as pyiceberg writes them."""

from __future__ import annotations

import datetime
import random
from collections.abc import Collection, Mapping
from decimal import Decimal
from typing import Any

import pytest
from pyiceberg.conversions import to_bytes
from pyiceberg.types import DateType, DecimalType, IntegerType, LongType, PrimitiveType, StringType

from spark_sink.tables.file_keys import FileKeys, KeyedFile
from spark_sink.tables.iceberg.files import Changes, DeleteFile, LiveFiles, bound_of
from spark_sink.tables.iceberg.positions import COLUMNS, parquet_of
from tests.seeds import seeds


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


def rows_of(files: Mapping[str, KeyedFile], deleted: Mapping[str, Collection[int]]) -> list[tuple[str, int]]:
    """What is left of files, by where it was."""
    return [(path, at) for path, each in files.items() for at in range(each.rows or 0) if at not in deleted.get(path, ())]


@pytest.mark.parametrize("seed", seeds(200))
def test_what_was_deleted_while_rows_were_written_again_is_deleted_in_the_new_file(seed: int) -> None:
    chance, live, head = random.Random(seed), LiveFiles(["k"]), 0
    deleted: dict[str, set[int]] = {}

    def delete(paths: Collection[str]) -> None:
        nonlocal head
        head += 1
        found = {
            path: chance.sample(left, chance.randint(1, len(left)))
            for path in paths
            if (left := [at for _, at in rows_of({path: live.files[path]}, deleted)])
        }
        live.follow(head, Changes({}, (), [DeleteFile(f"d{head}", 1, 50, True)], ()))
        live.read(f"d{head}", found)
        for path, positions in found.items():
            deleted.setdefault(path, set()).update(positions)

    files = {f"f{at}": KeyedFile(chance.randint(1, 8), chance.randint(1, 300), {}, partition=chance.choice("xy")) for at in range(8)}
    live.follow(0, Changes(files, (), (), ()))
    for _ in range(chance.randrange(3)):
        delete(chance.sample(list(files), chance.randint(1, len(files))))
    rewrites = live.to_rewrite(chance.choice((200, 1000)))
    new = {f"new {each.partition}": rows_of(each.files, deleted) for each in rewrites}
    assert [each.rows for each in rewrites] == [len(each) for each in new.values()]
    for _ in range(chance.randrange(7)):
        delete(chance.sample(list(files), chance.randint(1, len(files))))
    replaced = live.replaced(rewrites, {each.partition: f"new {each.partition}" for each in rewrites if each.rows})

    gone = {path for each in rewrites for path in each.files}
    left = {path: each for path, each in live.files.items() if path not in gone}
    positions = {path: set[int]() for path in (*left, *new)}
    for name, of in live.deletes.items():
        if name not in replaced.deletes:
            assert gone.isdisjoint(of), "it would be of no use any more"
            for path, each in of.items():
                positions[path].update(each)
    for path, each in replaced.kept.items():
        assert list(each) == sorted(set(each))
        positions[path].update(each)
    found = rows_of(left, positions) + [row for name, rows in new.items() for at, row in enumerate(rows) if at not in positions[name]]
    assert sorted(found) == sorted(rows_of(live.files, deleted))
    assert len(live.deletes) - len(replaced.deletes) < 5


def test_a_file_of_positions_is_read_as_it_was_written() -> None:
    deleted = {"s3://b/né 2": [0, 5], "s3://b/1": [1 << 40]}
    content = parquet_of(deleted)
    assert list(FileKeys(tuple(COLUMNS), list(COLUMNS.values())).rows("f", lambda: content)) == [
        ("s3://b/1", 1 << 40),
        ("s3://b/né 2", 0),
        ("s3://b/né 2", 5),
    ]
