"""What a writer of a shared log may rely on when its last record has been acknowledged."""

from __future__ import annotations

from typing import Any, cast

from connect_py.kafka.shared_log import Acknowledgements


class Delivered:
    """A message that looks at what is left while it is counted, as another thread may."""

    def __init__(self, batch: Acknowledgements, partition: int, offset: int) -> None:
        self.seen: list[int] = []
        self._batch, self._at = batch, (partition, offset)

    def partition(self) -> int:
        self.seen.append(self._batch.left)
        return self._at[0]

    def offset(self) -> int:
        self.seen.append(self._batch.left)
        return self._at[1]


def test_nothing_is_left_only_when_the_end_of_each_partition_is_known() -> None:
    batch = Acknowledgements(3)
    for left, partition, offset in ((3, 0, 7), (2, 1, 4), (1, 0, 6)):
        message = Delivered(batch, partition, offset)
        batch.delivered(None, cast(Any, message))
        assert set(message.seen) == {left}
    assert (batch.left, batch.ends) == (0, {0: 8, 1: 5})
