"""The snapshot engine without a database: markers and order, whatever the chunks and the empty tables."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_py.api import Route
from connect_py.api.record import EncodedRow
from connect_py.data.schema import STRING
from connect_py.errors import FatalTaskError
from connectors.engine.snapshot.initial.run import InitialSnapshot, Marker
from connectors.engine.snapshot.modes import MODES, StoredPosition, configuration_based

ROUTE = Route("t", None, STRING)


class Rows:
    def __init__(self, chunks: list[list[bytes]]) -> None:
        self.chunks = [list(chunk) for chunk in chunks]

    def read(self) -> list[bytes] | None:
        return self.chunks.pop(0) if self.chunks else None

    def encode(self, rows: Sequence[bytes], marker: Marker) -> list[EncodedRow]:
        return [(ROUTE, row, marker.value.encode()) for row in rows]


def run(tables: list[list[list[bytes]]]) -> list[tuple[bytes, str]]:
    named = {f"table {number}": table for number, table in enumerate(tables)}
    snapshot = InitialSnapshot(named, lambda name: Rows(named[name]))
    out = []
    while not snapshot.finished:
        out += [(key, value.decode()) for _, key, value in snapshot.next_rows()]
    assert snapshot.rows_sent == len(out)
    return out


def test_a_single_row_is_the_last_one() -> None:
    assert run([[[b"a"]]]) == [(b"a", "last")]


def test_markers_of_two_tables() -> None:
    assert run([[[b"a", b"b", b"c"]], [[b"d", b"e"]]]) == [
        (b"a", "first"),
        (b"b", "true"),
        (b"c", "last_in_data_collection"),
        (b"d", "first_in_data_collection"),
        (b"e", "last"),
    ]


def test_a_table_of_one_row_in_the_middle_is_marked_as_its_last() -> None:
    assert run([[[b"a"]], [[b"b"]], [[b"c"]]]) == [(b"a", "first"), (b"b", "last_in_data_collection"), (b"c", "last")]


def test_the_row_sent_last_is_the_last_one_when_only_empty_tables_follow() -> None:
    assert run([[[b"a", b"b"]], [], [[]]]) == [(b"a", "first"), (b"b", "last")]


def test_nothing_but_empty_tables_gives_no_row() -> None:
    assert run([[], [[]]]) == []
    assert run([]) == []


def test_where_the_first_table_is_empty_no_row_is_the_first() -> None:
    assert run([[], [[b"a", b"b"]], [[b"c"]]]) == [
        (b"a", "first_in_data_collection"),
        (b"b", "last_in_data_collection"),
        (b"c", "last"),
    ]


@given(st.lists(st.lists(st.lists(st.binary(min_size=1, max_size=1), max_size=4), max_size=4), max_size=5))
def test_every_row_comes_once_in_order_with_the_marker_of_its_place(tables: list[list[list[bytes]]]) -> None:
    rows = [(index, row) for index, table in enumerate(tables) for chunk in table for row in chunk]
    wanted = []
    for place, (index, row) in enumerate(rows):
        first_in_table = place == 0 or rows[place - 1][0] != index
        last_in_table = place == len(rows) - 1 or rows[place + 1][0] != index
        if place == len(rows) - 1:
            marker = "last"
        elif place == 0 and index == 0:
            marker = "first"
        elif last_in_table:
            marker = "last_in_data_collection"
        else:
            marker = "first_in_data_collection" if first_in_table else "true"
        wanted.append((row, marker))
    assert run(tables) == wanted


@pytest.mark.parametrize(
    ("mode", "none", "unfinished", "streaming", "streams"),
    [
        ("always", True, True, True, True),
        ("initial", True, True, False, True),
        ("initial_only", True, True, False, False),
        ("when_needed", True, True, False, True),
    ],
)
def test_modes_decide_as_their_table_says(mode: str, none: bool, unfinished: bool, streaming: bool, streams: bool) -> None:
    decided = MODES[mode]
    assert decided.reads_data(StoredPosition.NONE) is none
    assert decided.reads_data(StoredPosition.UNFINISHED_SNAPSHOT) is unfinished
    assert decided.reads_data(StoredPosition.STREAMING) is streaming
    assert decided.streams is streams


def test_no_data_refuses_an_unfinished_snapshot() -> None:
    assert not MODES["no_data"].reads_data(StoredPosition.NONE)
    with pytest.raises(FatalTaskError, match="previously stopped while taking a snapshot"):
        MODES["no_data"].reads_data(StoredPosition.UNFINISHED_SNAPSHOT)


def test_configuration_based_follows_its_properties_at_every_start() -> None:
    mode = configuration_based(data=True, streams=False, on_data_error=False)
    assert all(mode.reads_data(stored) for stored in StoredPosition)
    assert not mode.streams
