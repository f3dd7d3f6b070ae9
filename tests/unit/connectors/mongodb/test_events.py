"""Change events that the stand-in of the tests' server cannot make: split ones, and those of other servers, as recorded or documented."""

from __future__ import annotations

import datetime
import random
from typing import Any

import bson
import pymongo.errors
import pytest
from bson import Timestamp

from connect_py.api import JsonEncoding
from connect_py.errors import ConfigError, FatalTaskError, RetriableError
from connectors.engine.batches import PendingRows
from connectors.engine.metrics import StreamingMetrics
from connectors.mongodb.collection import CollectionFactory
from connectors.mongodb.config import parse_config
from connectors.mongodb.position.offset import MongoOffset, ResumeToken
from connectors.mongodb.server.connection import LostPositionError, ServerError, TooLargeError, server_error
from connectors.mongodb.stream.stream import ChangeStream, EventStream, Fragments, merged
from connectors.mongodb.values.bson_forms import MalformedBsonError
from connectors.mongodb.values.documents import Documents, fields_of

TOKEN = {"_data": "82635019A0000000012B042C0100296E5A1004"}


class Answers(ChangeStream):
    """A change stream over recorded answers."""

    def __init__(self, *answers: list[dict[str, Any]]) -> None:
        self._fragments = Fragments()
        self._answers = [[fields_of(bson.encode(event)) for event in answer] for answer in answers]

    def read(self) -> Any:
        return self._fragments.join(self._answers.pop(0)) if self._answers else []


def shown(
    *answers: list[dict[str, Any]], nulls_as_defaults: bool = True, **more: str
) -> tuple[EventStream, list[tuple[bytes | None, dict[str, Any] | None]]]:
    """What records become of answers, values without their source's times."""
    import orjson

    config = parse_config({"topic.prefix": "m", "mongodb.connection.string": "mongodb://h/?replicaSet=a", **more})
    pending = PendingRows()
    encoding = JsonEncoding(key_schemas=False, value_schemas=False, nulls_as_defaults=nulls_as_defaults)
    streaming = EventStream(
        Answers(*answers),
        config,
        MongoOffset(),
        CollectionFactory(config, encoding, ()),
        Documents("legacy"),
        pending=pending,
        signal=lambda _: None,
        monitor=None,
        metrics=StreamingMetrics("mongodb", "m"),
    )
    for _ in answers:
        streaming.read()
    return streaming, [(key, None if value is None else orjson.loads(value)) for _, key, value in pending.take()]


def event(operation: str, **more: Any) -> dict[str, Any]:
    return {
        "_id": TOKEN,
        "operationType": operation,
        "clusterTime": Timestamp(1666193824, 1),
        "ns": {"db": "d", "coll": "c"},
        "documentKey": {"_id": 1},
        **more,
    }


SPLIT = [
    {**event("update"), "splitEvent": {"fragment": 1, "of": 2}, "fullDocument": {"_id": 1, "a": "x"}},
    {
        "_id": {"_data": "82635019A0000000012B042C0100296E5A1005"},
        "splitEvent": {"fragment": 2, "of": 2},
        "updateDescription": {"updatedFields": {"a": "x"}, "removedFields": [], "truncatedArrays": []},
    },
]


def test_recorded_fragments_of_a_split_event_become_one_with_the_last_ones_token() -> None:
    streaming, rows = shown(SPLIT[:1], SPLIT[1:])
    assert [value["op"] for _, value in rows if value] == ["u"]
    assert rows[0][1] is not None and rows[0][1]["updateDescription"]["updatedFields"] == '{"a": "x"}'
    assert rows[0][1]["after"] == '{"_id": 1,"a": "x"}'
    assert streaming.offset.token == ResumeToken.of(SPLIT[1]["_id"])


def test_the_first_value_of_a_field_counts_among_fragments() -> None:
    assert merged([{"_id": 1, "splitEvent": 1, "b": 1}, {"_id": 2, "splitEvent": 2, "a": 3, "b": 4}]) == {
        "_id": 2,
        "a": 3,
        "b": 1,
    }


@pytest.mark.parametrize("answers", [[[SPLIT[0], event("insert", fullDocument={"_id": 1})]], [[SPLIT[1]]]])
def test_a_missing_fragment_of_recorded_events_is_an_error(answers: list[list[dict[str, Any]]]) -> None:
    with pytest.raises(FatalTaskError, match="Missing event fragment"):
        shown(*answers)


@pytest.mark.parametrize(("nulls_as_defaults", "marker"), [(True, "false"), (False, None)])
def test_a_streamed_event_is_of_no_snapshot_which_is_the_fields_default(nulls_as_defaults: bool, marker: str | None) -> None:
    """Debezium leaves the field null; transforms see that (`add.fields=source.snapshot`)."""
    _, rows = shown([event("insert", fullDocument={"_id": 1})], nulls_as_defaults=nulls_as_defaults)
    assert rows[0][1] is not None and rows[0][1]["source"]["snapshot"] == marker


def test_events_of_servers_before_6_have_the_cluster_times_seconds() -> None:
    _, rows = shown([event("insert", fullDocument={"_id": 1})])
    value = rows[0][1]
    assert value is not None
    source = value["source"]
    assert (source["ts_ms"], source["wallTime"], source["ord"]) == (1666193824000, None, 1)


def test_a_documented_event_of_a_sharded_collection_has_the_id_alone_as_key() -> None:
    _, rows = shown([event("delete", documentKey={"zone": "eu", "_id": "x"})])
    assert rows[0][0] == b'{"id":"\\"x\\""}'
    assert rows[1] == (rows[0][0], None)


def test_events_that_change_no_document_make_no_record_and_no_place() -> None:
    events = [
        {key: value for key, value in event(kind).items() if key != "documentKey"}
        for kind in ("drop", "rename", "create", "invalidate", "dropDatabase")
    ]
    streaming, rows = shown(events)
    assert rows == [] and streaming.offset == MongoOffset()


def test_an_update_whose_document_is_gone_is_no_delete() -> None:
    description = {"updatedFields": {"a.0": 1}, "removedFields": ["b"], "truncatedArrays": [{"field": "l", "newSize": 2}]}
    _, rows = shown([event("update", fullDocument=None, updateDescription=description, wallTime=datetime.datetime(2024, 1, 1))])
    value = rows[0][1]
    assert value is not None and value["op"] == "u" and value["after"] is None
    assert value["updateDescription"] == {
        "removedFields": ["b"],
        "updatedFields": '{"a.0": 1}',
        "truncatedArrays": [{"field": "l", "size": 2}],
    }
    assert len(rows) == 1


def test_both_forms_of_a_stored_token_are_the_same_place() -> None:
    token = ResumeToken.of(TOKEN)
    assert ResumeToken.parse(str(token)) == ResumeToken.parse(TOKEN["_data"]) == token
    assert token.time == (0x635019A0, 1)
    with pytest.raises(ConfigError, match="is no resume token"):
        ResumeToken.parse("no token!")


def test_an_offset_comes_back_from_what_it_wrote() -> None:
    offset = MongoOffset(5, 6, ResumeToken.of(TOKEN), lsid="{}", txn_number=3)
    assert MongoOffset.load(offset.dump()) == offset
    unfinished = MongoOffset.load({**offset.dump(), "initsync": True})
    assert unfinished.in_snapshot and unfinished.token is None
    with pytest.raises(ConfigError, match="Source offset 'sec' parameter value x could not be converted to an integer"):
        MongoOffset.load({"sec": "x"})


def failure(code: int, name: str = "Name", text: str = "the server's text") -> pymongo.errors.OperationFailure:
    return pymongo.errors.OperationFailure(text, code, {"errmsg": text, "codeName": name, "code": code})


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (failure(286, "ChangeStreamHistoryLost"), LostPositionError),
        (failure(260, "InvalidResumeToken"), LostPositionError),
        (failure(280, "ChangeStreamFatalError"), LostPositionError),
        (failure(10334, "BSONObjectTooLarge"), TooLargeError),
        (failure(43, "CursorNotFound"), RetriableError),
        (failure(189, "PrimarySteppedDown"), RetriableError),
        (failure(11600, "InterruptedAtShutdown"), RetriableError),
        (failure(13, "Unauthorized"), ServerError),
        (failure(18, "AuthenticationFailed"), ServerError),
        (pymongo.errors.AutoReconnect("gone"), RetriableError),
        (pymongo.errors.ServerSelectionTimeoutError("none"), RetriableError),
        (ConnectionResetError("reset"), RetriableError),
        (pymongo.errors.InvalidOperation("closed"), ServerError),
    ],
)
def test_the_class_of_an_error_is_the_decision(error: Exception, kind: type[Exception]) -> None:
    found = server_error(error, "It failed")
    assert isinstance(found, kind)
    assert isinstance(found, RetriableError) == (kind is RetriableError)
    if isinstance(error, pymongo.errors.OperationFailure):
        assert f"Command failed with error {error.code} (" in str(found)


def test_bytes_that_are_no_event_are_a_named_error() -> None:
    good = bson.encode({**event("insert", fullDocument={"_id": 1, "a": [1, {"b": 2.5}]}), "odd": 1.5, "flag": True, "none": None})
    assert fields_of(good)["ns"] == bson.encode({"db": "d", "coll": "c"})
    for seed in range(20_000):
        mutated = mutate(good, random.Random(seed))
        try:
            fields_of(mutated)
        except MalformedBsonError:
            continue
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error!r}") from error


def mutate(data: bytes, source: random.Random) -> bytes:
    found = bytearray(data)
    for _ in range(source.randint(1, 4)):
        found[source.randrange(len(found))] = source.randrange(256)
    return bytes(found[: source.randint(1, len(found))] if source.random() < 0.3 else found)


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"wallTime": Timestamp(1, 1)}, "wallTime"),
        ({"clusterTime": 5}, "clusterTime"),
        ({"documentKey": "x"}, "documentKey"),
        ({"documentKey": None}, "documentKey"),
        ({"_id": 7}, "_id"),
        ({"ns": None}, "ns"),
        ({"ns": {"db": 5, "coll": "c"}}, "no collection"),
        ({"operationType": None}, "operationType"),
        ({"fullDocument": "text"}, "fullDocument"),
        ({"splitEvent": {"fragment": 1, "of": 1}, "_id": None}, "_id"),
    ],
)
def test_an_event_that_is_not_as_documented_is_a_named_error(change: dict[str, Any], names: str) -> None:
    """A time of another type was written into the record as it was."""
    with pytest.raises(MalformedBsonError, match=names):
        shown([{**event("insert", fullDocument={"_id": 1}), **change}])


@pytest.mark.parametrize(
    "description", [{"removedFields": [5]}, {"truncatedArrays": [{"field": "a"}]}, {"truncatedArrays": [1]}, {"updatedFields": "x"}]
)
def test_a_description_that_is_not_as_documented_is_a_named_error(description: dict[str, Any]) -> None:
    with pytest.raises(MalformedBsonError, match="description of an update"):
        shown([event("update", updateDescription={"updatedFields": {}, **description})])
