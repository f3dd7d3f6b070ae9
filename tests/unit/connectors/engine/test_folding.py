"""The tests' own judge: what a topic of change events says about its table."""

from __future__ import annotations

import json
from dataclasses import dataclass

from tests.folding import fold, payload


@dataclass
class Record:
    id: int
    event: dict[str, object] | None

    def key(self) -> bytes:
        return json.dumps({"schema": {}, "payload": {"id": self.id}}).encode()

    def value(self) -> bytes | None:
        return None if self.event is None else json.dumps({"schema": {}, "payload": self.event}).encode()


def test_the_last_event_of_a_key_wins() -> None:
    records = [Record(1, {"op": "r", "after": {"id": 1, "v": 1}}), Record(1, {"op": "u", "after": {"id": 1, "v": 2}})]
    assert fold(records) == {1: {"id": 1, "v": 2}}


def test_a_delete_and_its_tombstone_remove_the_row_once() -> None:
    row = Record(1, {"op": "c", "after": {"id": 1}})
    delete, tombstone = Record(1, {"op": "d", "after": None}), Record(1, None)
    assert fold([row, delete, tombstone]) == {}
    assert fold([row, delete, tombstone, row]) == {1: {"id": 1}}


def test_json_without_a_schema_is_its_own_payload() -> None:
    assert payload(b'{"id":1}') == {"id": 1}
