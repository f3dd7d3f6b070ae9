"""Which data files are written again."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping

import pytest

from spark_sink.tables.compaction import to_rewrite
from spark_sink.tables.file_keys import KeyedFile
from tests.seeds import seeds


def chosen(*sizes: int, deleted: Mapping[int, int] | None = None, target: int = 1000, thoroughly: bool = False) -> set[int]:
    """The places of files that are chosen; each has a hundred rows."""
    files = {str(at): KeyedFile(100, size, {}) for at, size in enumerate(sizes)}
    found = to_rewrite(files, {str(at): count for at, count in (deleted or {}).items()}, target, thoroughly=thoroughly)
    return set(map(int, found.get("", ())))


def test_small_files_are_written_again_with_smaller_ones_of_half_their_size() -> None:
    assert chosen() == chosen(10) == set()
    assert chosen(10, 20) == {0, 1}
    assert chosen(10, 21) == set()
    assert chosen(10, 21, 10) == {0, 1, 2}
    assert chosen(10, 10, 300, 30) == {0, 1, 3}
    assert chosen(10, 10, 300, 300) == {0, 1, 2, 3}, "the two large ones are worth it by themselves"
    assert chosen(10, 10, 300, 30, thoroughly=True) == {0, 1, 2, 3}
    assert chosen(400, 499, 500, 900) == {0, 1}, "from half of the target on a file is not small"


def test_files_with_many_deleted_rows_are_written_again_with_small_ones_next_to_them() -> None:
    assert chosen(900, deleted={0: 5}) == set()
    assert chosen(900, deleted={0: 6}) == {0}
    assert chosen(900, 10, 499, deleted={0: 6}) == {0, 1, 2}
    assert to_rewrite({"f": KeyedFile(None, 900, {})}, {"f": 1}, 1000) == {"": ["f"]}, "how many it has is not known"


def test_each_partition_has_its_own_files_unless_it_is_not_known() -> None:
    files = {name: KeyedFile(9, 10, {}, partition=place) for name, place in (("a", "x"), ("b", "y"), ("c", "y"), ("d", None), ("e", None))}
    assert to_rewrite(files, {}, 1000) == {"y": ["b", "c"]}
    assert to_rewrite(files, {"a": 9, "d": 9}, 1000) == {"x": ["a"], "y": ["b", "c"]}


@pytest.mark.parametrize("seed", seeds(20))
def test_rows_are_written_again_a_few_times_and_few_files_stay(seed: int) -> None:
    chance, files, written, made = random.Random(seed), dict[str, KeyedFile](), Counter[str](), 0
    batch, turns, target = 50, 120, 1 << 40
    for number in range(batch * turns):
        files[f"b{number}"] = KeyedFile(1, chance.randint(900, 1100), {})
        made += files[f"b{number}"].size
        if number % batch == batch - 1:
            [paths] = to_rewrite(files, {}, target).values()
            size = sum(files.pop(path).size for path in paths)
            files[f"c{number}"] = KeyedFile(1, size, {})
            written["bytes"] += size
            assert len(files) < 10
    # some 5.4 times, 6.4 at most of 3,000 seeds; a file grows by half or more each time, so the rule itself allows 1 + log(120, 1.5)
    assert written["bytes"] < 8 * made, "all of them each time would be sixty times"
