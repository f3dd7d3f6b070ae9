"""Ids of documents in offsets, and the ranges by which they are read."""

import datetime

import bson
import pytest
from bson import Binary, Decimal128, Int64, MaxKey, MinKey, ObjectId, Timestamp
from hypothesis import given
from hypothesis import strategies as st

from connectors.engine.java_object import decode_key, encode_key
from connectors.mongodb.snapshot.queries import Bound, family_of, from_stored, id_of, ranges, text_of, to_stored

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**31), 2**31 - 1),
    st.integers(-(2**63), 2**63 - 1).map(Int64),
    st.floats(allow_nan=False),
    st.text(),
    st.text().map(lambda text: f"ejson:{text}"),
    st.binary(min_size=12, max_size=12).map(ObjectId),
    st.binary(max_size=20),
    st.binary(min_size=16, max_size=16).map(lambda data: Binary(data, 4)),
    st.binary(max_size=20).map(lambda data: Binary(data, 128)),
    st.datetimes(datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31)).map(
        lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000)
    ),
    st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)).map(lambda pair: Timestamp(*pair)),
    st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**20), max_value=10**20, places=6).map(lambda n: Decimal128(str(n))),
    st.sampled_from([MinKey(), MaxKey(), Decimal128("Infinity"), Decimal128("1E+300"), Decimal128("-0.00")]),
)
IDS = st.one_of(SCALARS, st.dictionaries(st.text("abc", min_size=1), SCALARS, max_size=3))


def octets(value: object) -> bytes:
    return bson.encode({"_id": value})


@given(IDS)
def test_an_id_keeps_its_type_and_value_through_an_offset(value: object) -> None:
    stored = decode_key(encode_key(to_stored(value)))
    assert stored is not None
    assert octets(from_stored(tuple(stored))) == octets(value)


@given(IDS)
def test_an_id_keeps_its_type_and_value_through_a_snapshots_progress(value: object) -> None:
    assert octets(id_of(text_of(value))) == octets(value)


def test_families_stand_in_the_servers_order() -> None:
    ordered = [
        MinKey(),
        None,
        float("nan"),
        1.5,
        "a",
        {"a": 1},
        b"a",
        ObjectId(),
        False,
        datetime.datetime(2020, 1, 1),
        Timestamp(1, 1),
        MaxKey(),
    ]
    places = [family_of(value) for value in ordered]
    assert places == sorted(places) and len(set(places)) == len(places)
    assert family_of(Decimal128("NaN")) == family_of(float("nan"))


def test_types_that_are_no_ids_have_no_place() -> None:
    with pytest.raises(ValueError, match="has no place in the order"):
        family_of([1])


def test_ranges_of_one_family_are_one_query() -> None:
    assert list(ranges(Bound("b"), Bound("x"))) == [{"_id": {"$gt": "b", "$lte": "x"}}]
    assert list(ranges(Bound(None), Bound(None))) == []


def test_a_range_over_families_ends_each_of_them() -> None:
    found = list(ranges(Bound(5), Bound(ObjectId("5f1b2c3d4e5f6a7b8c9d0e1f"))))
    assert [set(query["_id"]) for query in found] == [{"$gt", "$ne"}, {"$gte"}, {"$type"}, {"$type"}, {"$type", "$lte"}]


def test_a_range_without_bounds_asks_for_every_family() -> None:
    assert len(list(ranges(None, None))) == 12
