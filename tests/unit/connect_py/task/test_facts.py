"""When the process of the facts asks which source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from connect_py.api.facts import SourceFacts, StoredOffsets
from connect_py.task.facts import FactsReading
from tests.waiting import eventually

INTERVAL = 10.0
STORED: StoredOffsets = [({"server": "s"}, {"lsn": 7})]


class Source:
    """A database whose log has an end, and a clock."""

    uses_offsets = True

    def __init__(self) -> None:
        self.now, self.head, self.looks = 1000.0, 1, 0
        self.told: list[dict[str, Any]] = []
        self.reading = FactsReading(lambda _class, _config: self, self._tell, str, INTERVAL, lambda: self.now)
        self.reading.watch("c", "Class", {}, holds=True)

    def _tell(self, message: Mapping[str, Any]) -> None:
        self.told.append(dict(message))

    def read(self, offsets: StoredOffsets) -> SourceFacts:
        return SourceFacts(self.head, offsets[0][1]["lsn"] if offsets else None)

    def close(self) -> None:
        pass

    def after(self, seconds: float) -> bool:
        """Let time pass; returns whether the source is asked at its end."""
        self.now += seconds
        asked = bool(self.reading.tick())
        self.looks += asked
        eventually(lambda: len(self.answers()) == self.looks, "the answer")
        return asked

    def answers(self) -> list[Any]:
        return [message["facts"] for message in self.told if message["type"] == "facts"]


@pytest.fixture
def source() -> Iterator[Source]:
    source = Source()
    assert source.after(1.0), "soon after the connector's start"
    yield source
    source.reading.unwatch("c")


def test_a_source_that_answers_the_same_is_asked_less_often_until_something_moves(source: Source) -> None:
    assert source.after(INTERVAL), "it has answered once"
    assert not source.after(INTERVAL) and not source.after(INTERVAL)
    source.head += 1
    assert source.after(INTERVAL)
    assert source.after(INTERVAL), "its answer was another one"
    assert not source.after(INTERVAL)


def test_an_offset_that_was_stored_ends_the_rest(source: Source) -> None:
    assert source.after(INTERVAL)
    source.reading.offsets("c", STORED)
    assert not source.after(INTERVAL - 1)
    assert source.after(1)
    assert source.answers()[-1]["position"] == 7
    assert source.after(INTERVAL)
    source.reading.offsets("c", STORED)
    assert not source.after(INTERVAL), "the same offset is no news"
