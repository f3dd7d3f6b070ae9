"""Sets of GTIDs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_py.errors import DataError
from connectors.mysql.position.gtid import GtidSet, MariadbGtidSet, covers, parse_transactions, starting_set
from connectors.mysql.schema.history import is_at_or_before

A, B = "3e11fa47-71ca-11e1-9e33-c80aa9429562", "6c6f6f4e-e576-11f1-a0f8-02fc00000001"
SOURCES = st.sampled_from([A, B, f"{A}:tag"])
NUMBERS = st.sets(st.tuples(SOURCES, st.integers(1, 30)))


def as_set(pairs) -> GtidSet:
    found = GtidSet()
    for source, number in pairs:
        found = found.with_gtid(source, number)
    return found


def as_pairs(gtids: GtidSet) -> set:
    return {(source, number) for source, intervals in gtids.sources.items() for a, b in intervals for number in range(a, b + 1)}


@given(NUMBERS)
def test_a_set_is_what_was_added_and_reads_back(pairs):
    assert as_pairs(as_set(pairs)) == pairs
    assert GtidSet.parse(str(as_set(pairs))) == as_set(pairs)


@given(NUMBERS, NUMBERS)
def test_differences_are_those_of_plain_sets(left, right):
    assert as_pairs(as_set(left).minus(as_set(right))) == left - right
    assert as_set(left).contains(as_set(right)) == (left >= right)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        (f"{A}:1-3:4:7-9", f"{A}:1-4:7-9"),
        (f"{B}:5,\n{A.upper()}:1", f"{A}:1,{B}:5"),
        (f"{A}:1-3:Tag:1-2:5", f"{A}:1-3:tag:1-2:5"),
    ],
)
def test_texts_of_sets(text, shown):
    assert str(GtidSet.parse(text)) == shown


@pytest.mark.parametrize("text", ["x:1", A, f"{A}:", f"{A}:5-3", f"{A}:0", f"{A}:1-2-3", f"{A}:1:-"])
def test_what_is_no_set_is_named(text):
    with pytest.raises(DataError, match="GTID set"):
        GtidSet.parse(text)


def test_a_start_reads_only_sources_that_were_seen_and_what_is_still_there():
    stored, executed, purged = GtidSet.parse(f"{A}:1-10"), GtidSet.parse(f"{A}:1-20,{B}:1-5"), GtidSet.parse(f"{B}:1-2")
    assert str(starting_set(stored, executed, purged, lambda _: True)) == f"{A}:1-10,{B}:1-2"


def test_the_binary_form():
    assert GtidSet.parse(f"{A}:1-3:5").encode().hex() == (
        "0100000000000000"
        + A.replace("-", "")
        + "0200000000000000"
        + "0100000000000000"
        + "0400000000000000"
        + "0500000000000000"
        + "0600000000000000"
    )


@pytest.mark.parametrize("text", ["", f"{A}:1-3:5", f"{A}:1-3:5:tag:1:7-9,{B}:2"])
def test_the_binary_form_is_read_back(text: str) -> None:
    written = GtidSet.parse(text).encode()
    assert str(GtidSet.decode(written)) == text
    for end in range(len(written)):
        with pytest.raises(DataError, match="A GTID set ends after"):
            GtidSet.decode(written[:end])


def test_an_interval_that_is_empty_is_none() -> None:
    written = bytearray(GtidSet.parse(f"{A}:4-5").encode())
    written[-8] = 4
    with pytest.raises(DataError, match="4 to 4 is no interval"):
        GtidSet.decode(bytes(written))


def test_mariadb_positions_count_by_the_largest_sequence_of_a_domain():
    seen = MariadbGtidSet.parse("1-5-7,\n0-1-42,0-2-50")
    assert str(seen) == "0-1-42,0-2-50,1-5-7"
    assert seen.position() == "0-2-50,1-5-7"
    assert seen.contains(MariadbGtidSet.parse("0-9-49,1-5-7")) and not seen.contains(MariadbGtidSet.parse("0-1-51"))
    assert not seen.contains(MariadbGtidSet.parse("2-1-1"))
    assert str(seen.minus(MariadbGtidSet.parse("0-1-45"))) == "0-2-50,1-5-7"
    assert str(seen.with_gtid("0-1", 51)) == "0-1-51,0-2-50,1-5-7"
    assert str(seen.filtered(lambda source: source.startswith("1-"))) == "1-5-7"
    assert covers(seen, MariadbGtidSet()) and not covers(seen, parse_transactions(f"{A}:1"))
    with pytest.raises(DataError, match="0-1"):
        MariadbGtidSet.parse("0-1")


def test_a_history_of_mariadb_is_read_up_to_the_offset():
    offset = {"file": "mariadb-bin.000002", "pos": 400, "gtids": "0-1-10,7-1-3"}
    for gtids, wanted in (("0-1-10,7-1-3", True), ("0-1-9", True), ("0-2-10", True), ("0-1-11", False), ("8-1-1", False)):
        assert is_at_or_before({"file": "mariadb-bin.000001", "pos": 4, "gtids": gtids}, offset, lambda _: True) is wanted, gtids
