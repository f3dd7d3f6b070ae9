"""The snapshot engine without a database: markers and order, whatever the chunks and the empty tables."""

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_py.api import Route
from connect_py.api.record import EncodedRow
from connect_py.data.schema import STRING
from connect_py.errors import FatalTaskError
from connectors.engine.metrics import SnapshotMetrics
from connectors.engine.notifications import InitialEvents, Notification
from connectors.engine.snapshot.initial.progress import Chunk, SnapshotProgress
from connectors.engine.snapshot.initial.run import Marker, SnapshotPipeline, SnapshotSource, in_order
from connectors.engine.snapshot.modes import MODES, StoredPosition, configuration_based

ROUTE = Route("t", None, STRING)


class Source(SnapshotSource[str]):
    """Tables in memory; notes the order in which the pipeline asks for things."""

    def __init__(self, tables: list[list[list[bytes]]]) -> None:
        named = {f"table {number}": table for number, table in enumerate(tables)}
        self.asked: list[str] = []
        self.notes: list[str] = []
        self.metrics = SnapshotMetrics("memory", "s")
        self.offset = ""
        self.pipeline = SnapshotPipeline(
            self,
            in_order(lambda chunk: (iter(named[chunk.table]), self._encode)),
            map(Chunk, named),
            names=list(named),
            captured=list(named),
            progress=SnapshotProgress(),
            events=InitialEvents("c", self._note),
            metrics=self.metrics,
            estimates={},
            keeps_progress=True,
            chunk_rows=2,
        )

    def _note(self, note: Notification) -> None:
        self.notes.append(f"{note.type} {note.additional_data.get('scanned_collection', '')}".strip())

    @staticmethod
    def _encode(rows: Sequence[bytes], marker: Marker) -> list[EncodedRow]:
        return [(ROUTE, row, marker.value.encode()) for row in rows]

    @property
    def after(self) -> str:
        return self.offset

    def before_rows(self) -> Iterator[list[EncodedRow]]:
        yield [(ROUTE, None, b"structure")]

    def stored(self, progress: str | None) -> None:
        self.offset = progress or ""

    def finish(self) -> list[EncodedRow]:
        self.asked.append("finish")
        return [(ROUTE, None, b"end")]

    def close(self) -> None:
        self.asked.append("close")


def batches(source: Source) -> list[list[tuple[bytes | None, str]]]:
    out = []
    while not source.pipeline.finished:
        out.append([(key, (value or b"").decode()) for _, key, value in source.pipeline.next_rows()])
    assert source.pipeline.next_rows() == [], "nothing follows the last row"
    return out


def run(tables: list[list[list[bytes]]]) -> list[tuple[bytes | None, str]]:
    found = [row for batch in batches(Source(tables)) for row in batch]
    assert found[0] == (None, "structure") and found[-1] == (None, "end")
    return found[1:-1]


def test_what_goes_before_the_rows_and_after_them_is_the_sources() -> None:
    source = Source([[[b"a"]], []])
    assert batches(source) == [[(None, "structure")], [(b"a", "last"), (None, "end")]]
    assert source.asked == ["finish"], "the task closes it"


def test_a_read_without_rows_is_a_batch_without_records() -> None:
    source = Source([[[b"a", b"b"], [], [b"c"]]])
    assert batches(source)[1:] == [[(b"a", "first")], [], [(b"b", "true")], [(b"c", "last"), (None, "end")]]


def test_a_table_is_reported_and_done_once_its_last_row_goes_out() -> None:
    source = Source([[[b"a", b"b"]], [], [[b"c"]]])
    assert source.metrics.groups()[0].values["RemainingTableCount"] == 3
    stored = []
    while not source.pipeline.finished:
        stored.append(([value for _, _, value in source.pipeline.next_rows()], source.offset, source.pipeline.is_milestone))
    done = '{"v":1,"tables":{"table 1":{"rows":0},"table 0":{"rows":2}'
    assert stored == [
        ([b"structure"], "", False),
        ([b"first"], "", False),
        ([b"last_in_data_collection"], done + "}}", True),
        ([b"last", b"end"], done + ',"table 2":{"rows":1}}}', True),
    ]
    assert source.notes == [
        "IN_PROGRESS",
        "TABLE_SCAN_COMPLETED table 0",
        "IN_PROGRESS",
        "TABLE_SCAN_COMPLETED table 1",
        "IN_PROGRESS",
        "TABLE_SCAN_COMPLETED table 2",
        "COMPLETED",
    ]
    values = source.metrics.groups()[0].values
    assert values["RowsScanned"] == {"table 0": 2, "table 1": 0, "table 2": 1}
    assert values["TotalNumberOfEventsSeen"] == 3 and values["RemainingTableCount"] == 0


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
