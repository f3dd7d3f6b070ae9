"""A MongoDB server that answers what no server should: the task fails with a named error or tries again; it never hangs, and leaves no
change out."""

from __future__ import annotations

import struct
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from connect_py.errors import ConnectError
from tests.mongo_task import MongoTask
from tests.rogue_mongo import Document, RogueMongo, Spoil, event, message, of_bytes, of_document, token

EVENTS = 6
SECONDS = 15


def settings(server: RogueMongo) -> dict[str, str]:
    return {
        "connector.class": "io.debezium.connector.mongodb.MongoDbConnector",
        "mongodb.connection.string": f"mongodb://127.0.0.1:{server.port}/?directConnection=true",
        "topic.prefix": "m",
        "snapshot.mode": "no_data",
        "collection.include.list": "shop.items",
        "retriable.restart.connector.wait.ms": "50",
        "cursor.max.await.time.ms": "20",
        "mongodb.socket.timeout.ms": "1000",
        "mongodb.connect.timeout.ms": "1000",
        "mongodb.server.selection.timeout.ms": "2000",
        "mongodb.heartbeat.frequency.ms": "500",
    }


def ids(task: MongoTask) -> list[int]:
    return [int(key["id"]) for key, value in task.of("m.shop.items") if value is not None]


def cut(document: Document, request: int) -> bytes:
    return message(document, request)[:-7]


def silent(_document: Document, _request: int) -> None:
    return None


def gone(_document: Document, _request: int) -> bytes:
    return b""


def length(value: int) -> Spoil:
    return of_bytes(lambda found: struct.pack_into("<i", found, 0, value))


def cursor(**fields: Any) -> Spoil:
    return of_document(lambda found: found["cursor"].update(fields))


def spoilt_event(change: Callable[[Document], object]) -> Spoil:
    def spoil(found: Document) -> None:
        for each in found["cursor"].get("nextBatch", []):
            change(each)

    return of_document(spoil)


def leave_out(name: str, found: Document) -> None:
    del found[name]


def make_number(name: str, found: Document) -> None:
    found[name] = 5


def error(code: int, name: str, *labels: str) -> Spoil:
    def spoil(_document: Document, request: int) -> bytes:
        return message({"ok": 0.0, "code": code, "codeName": name, "errmsg": "no", "errorLabels": list(labels)}, request)

    return spoil


SPOILS: dict[str, Spoil] = {
    "cut": cut,
    "silence": silent,
    "the connection ends": gone,
    "a length of two gigabytes": length(2**31 - 1),
    "a negative length": length(-1),
    "a length of nothing": length(0),
    "a length of a head": length(16),
    "a length that is too short": length(40),
    "an answer to another request": lambda document, request: message(document, request, answers=request + 1),
    "an unknown code": lambda document, request: message(document, request, code=9),
    "a document with a wrong length": of_bytes(lambda found: struct.pack_into("<i", found, 21, 1 << 24)),
    "a document of noise": of_bytes(lambda found: found.__setitem__(slice(30, 60), bytes(range(200, 230)))),
    "a document without anything": of_document(lambda found: found.clear()),
    "no cursor": of_document(lambda found: found.pop("cursor")),
    "a cursor that is a text": of_document(lambda found: found.update(cursor="x")),
    "another cursor": cursor(id=2**40),
    "a cursor whose number is a text": cursor(id="x"),
    "a cursor that has ended": cursor(id=0),
    "a batch that is a number": cursor(nextBatch=1, firstBatch=1),
    "a batch of numbers": cursor(nextBatch=[1, 2], firstBatch=[1, 2]),
    "a token that is a number": cursor(postBatchResumeToken=1),
    "a token that goes back": cursor(postBatchResumeToken=token(0)),
    "no token": of_document(lambda found: found["cursor"].pop("postBatchResumeToken")),
    "a cursor that is not known": error(43, "CursorNotFound", "ResumableChangeStreamError"),
    "an internal error": error(8, "UnknownError"),
    "an error without a code": lambda _document, request: message({"ok": 0.0}, request),
    "an error whose code is a text": lambda _document, request: message({"ok": 0.0, "code": "x", "errmsg": 3}, request),
    "a huge document": spoilt_event(lambda found: found["fullDocument"].update(text="x" * 20_000_000)),
    **{f"an event without {name}": spoilt_event(partial(leave_out, name)) for name in event(1) if name != "fullDocument"},
    **{f"an event whose {name} is a number": spoilt_event(partial(make_number, name)) for name in event(1)},
}


#: What answers to some commands do not have.
WITHOUT = {"aggregate": ("event", "huge"), "hello": ("event", "huge", "batch", "token", "cursor")}
CASES = [
    (spoil, command)
    for command in ("getMore", "aggregate", "hello")
    for spoil in SPOILS
    if not any(word in spoil for word in WITHOUT.get(command, ()))
]


@pytest.mark.parametrize(("spoil", "command"), CASES)
def test_an_answer_that_is_none_ends_in_a_named_error_or_another_attempt(spoil: str, command: str) -> None:
    with RogueMongo() as server:
        found: list[int] = []
        with MongoTask(settings(server)) as task:
            task.stream()
            server.events = 2
            task.poll_until(lambda: len(ids(task)) == 2, SECONDS, "changes")
            # what a new connection asks for is asked for after the end of another one
            server.spoils += [*([("getMore", gone)] if command != "getMore" else []), (command, SPOILS[spoil])]
            server.events = EVENTS
            with suppress(ConnectError):
                task.poll_until(lambda: server.has_spoilt and len(ids(task)) >= EVENTS, SECONDS, f"changes after {spoil}")
            found, offset = ids(task), task.offset
        assert server.has_spoilt
        if len(found) < EVENTS:
            with MongoTask(settings(server), offset) as again:
                again.poll_until(lambda: len(found + ids(again)) >= EVENTS, SECONDS, "the rest")
                found += ids(again)
        assert found == list(range(1, EVENTS + 1))


def test_a_first_position_that_is_no_token_is_refused() -> None:
    with RogueMongo() as server:
        server.spoils += [(command, SPOILS["a token that is a number"]) for command in ("aggregate", "getMore")]
        with MongoTask(settings(server)) as task, pytest.raises(ConnectError, match="not as MongoDB documents it"):
            task.stream()
