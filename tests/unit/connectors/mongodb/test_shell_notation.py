"""Filters of signals and properties: extended JSON and the shell's notation."""

import datetime

import pytest
from bson import Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp

from connect_py.errors import ConfigError
from connectors.mongodb.shell_notation import parse_notation, parse_query


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": 1}', {"a": 1}),
        ("{ city: 'Perth' }", {"city": "Perth"}),
        (
            "{ $and: [{ _id: {$gt: 1.5} }, { 'a.b': true }, {c: null}, {d: -2e3}] }",
            {"$and": [{"_id": {"$gt": 1.5}}, {"a.b": True}, {"c": None}, {"d": -2000.0}]},
        ),
        ("{_id: ObjectId('5f1b2c3d4e5f6a7b8c9d0e1f')}", {"_id": ObjectId("5f1b2c3d4e5f6a7b8c9d0e1f")}),
        ("{n: NumberLong(5)}", {"n": Int64(5)}),
        ('{at: {$lt: new ISODate("2024-05-17T00:00:00Z")}}', {"at": {"$lt": datetime.datetime(2024, 5, 17)}}),
        ('{"at": {"$date": "2024-05-17T00:00:00Z"}}', {"at": datetime.datetime(2024, 5, 17)}),
        ("{name: /^a\\/b/i}", {"name": Regex("^a/b", "i")}),
        ("{quote: 'it\\'s \"so\"'}", {"quote": 'it\'s "so"'}),
        ("{at: ISODate('2024-05-17')}", {"at": datetime.datetime(2024, 5, 17)}),
        ("{at: Date('2024-05-17T02:00:00.125+02:00')}", {"at": datetime.datetime(2024, 5, 17, 0, 0, 0, 125_000)}),
        ("{at: new Date(1715904000000)}", {"at": datetime.datetime(2024, 5, 17)}),
        ("{at: {$gt: Timestamp(7, 1)}}", {"at": {"$gt": Timestamp(7, 1)}}),
        ("{data: BinData(0, 'AQI=')}", {"data": b"\x01\x02"}),
        ("{n: {$gt: MinKey, $lt: MaxKey()}}", {"n": {"$gt": MinKey(), "$lt": MaxKey()}}),
        ("{n: {$in: [Infinity, -Infinity, undefined]}}", {"n": {"$in": [float("inf"), float("-inf"), None]}}),
        ("{NaN: 1, new: 2, true: 3, MaxKey: MaxKey}", {"NaN": 1, "new": 2, "true": 3, "MaxKey": MaxKey()}),
        ("{name: RegExp('^a/b', 'i')}", {"name": Regex("^a/b", "i")}),
        ("{'a\\u00e9': \"x\\u00e9\"}", {"aé": "xé"}),
    ],
)
def test_both_notations_are_read(text: str, found: dict[str, object]) -> None:
    parsed = parse_query(text, "The filter")
    if isinstance(parsed.get("name"), Regex):
        parsed["name"] = Regex(parsed["name"].pattern, "i")
    assert parsed == found


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[1]",
        "{a: }",
        "{a: ObjectId('x'}",
        "{a: foo(1)}",
        "{a: ObjectId('5f')}",
        "1",
        "{a: `b`}",
        "{a: Timestamp(1)}",
        "{a: ISODate('x')}",
        "{a: ObjectId(/x/)}",
        "{a: new}",
    ],
)
def test_what_is_no_filter_is_named(text: str) -> None:
    with pytest.raises(ConfigError, match="The filter is no"):
        parse_query(text, "The filter")


def test_a_pipeline_may_be_in_the_shells_notation() -> None:
    assert parse_notation("[{$match:{'fullDocument.name':'Dennis'}}]") == [{"$match": {"fullDocument.name": "Dennis"}}]
