"""A machine in the place of a MongoDB server: it speaks enough of the wire protocol for a change stream, and spoils answers of its choice.

See MongoDB's specification "MongoDB Wire Protocol": a message is its length, its number, that of the request, a code and a body.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Mapping
from typing import Any

import bson
from bson.timestamp import Timestamp

_OP_REPLY, _OP_QUERY, _OP_MSG = 1, 2004, 2013
_HEAD = struct.Struct("<iiii")
_CURSOR = 77

Document = dict[str, Any]
#: Makes bytes of an answer and the number of its request; None for no answer at all, an empty one ends the connection.
Spoil = Callable[[Document, int], bytes | None]


def message(document: Mapping[str, Any], request: int, *, answers: int | None = None, code: int = _OP_MSG) -> bytes:
    """An answer as it should be, but for what is given."""
    body = bytes(5) + bson.encode(document)
    return _HEAD.pack(_HEAD.size + len(body), 1, request if answers is None else answers, code) + body


class RogueMongo:
    """A replica set of one member with a change stream of one collection, `shop.items`.

    Attributes:
        port: on this machine.
        events: how many changes there are; the n-th inserts a document with the id n.
        spoils: makes the next answers to commands of these names; each is used once.
        commands: what was asked for.
    """

    def __init__(self, events: int = 0) -> None:
        self.events = events
        self.spoils: list[tuple[str, Spoil]] = []
        self.commands: list[str] = []
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> RogueMongo:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Answer nobody any more."""
        self._closed.set()
        self._listener.close()

    @property
    def has_spoilt(self) -> bool:
        """Whether all of `spoils` were used."""
        return not self.spoils

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        position = [0]
        with client, client.makefile("rb") as stream:
            try:
                while not self._closed.is_set():
                    head = stream.read(_HEAD.size)
                    if len(head) < _HEAD.size:
                        return
                    length, number, _, code = _HEAD.unpack(head)
                    body = stream.read(length - _HEAD.size)
                    if code == _OP_QUERY:
                        document = bson.encode(self._hello())
                        reply = struct.pack("<iqii", 8, 0, 0, 1) + document
                        client.sendall(_HEAD.pack(_HEAD.size + len(reply), 1, number, _OP_REPLY) + reply)
                        continue
                    answer = self._answer(_command(body), number, position)
                    if answer is None:
                        self._closed.wait(60)
                        return
                    client.sendall(answer)
                    if not answer.endswith(b"\0") or len(answer) < _HEAD.size:
                        return
            except OSError:
                return

    def _answer(self, command: Document, number: int, position: list[int]) -> bytes | None:
        name = next(iter(command))
        answer = self._honest(name, command, position)
        with self._lock:
            self.commands.append(name)
            for spoil in self.spoils:
                if spoil[0] == name:
                    self.spoils.remove(spoil)
                    return spoil[1](answer, number)
        return message(answer, number)

    def _honest(self, name: str, command: Document, position: list[int]) -> Document:
        if name in ("hello", "ismaster", "isMaster"):
            return self._hello()
        if name == "aggregate":
            after = command["pipeline"][0]["$changeStream"].get("resumeAfter", token(0))
            if not isinstance(after, dict) or "_data" not in after:
                return {"ok": 0.0, "code": 9, "codeName": "FailedToParse", "errmsg": "that is no resume token"}
            position[0] = int(after["_data"])
            return self._page("firstBatch", [], position[0])
        if name == "getMore":
            if position[0] >= self.events:
                self._closed.wait(0.02)
                return self._page("nextBatch", [], position[0])
            position[0] += 1
            return self._page("nextBatch", [event(position[0])], position[0])
        return {"ok": 1.0}

    def _page(self, batch: str, events: list[Document], position: int) -> Document:
        cursor = {"id": bson.Int64(_CURSOR), "ns": "shop.items", batch: events, "postBatchResumeToken": token(position)}
        return {"cursor": cursor, "ok": 1.0, "operationTime": Timestamp(1_700_000_000, 1)}

    def _hello(self) -> Document:
        return {
            "helloOk": True,
            "isWritablePrimary": True,
            "ismaster": True,
            "setName": "rs0",
            "hosts": [f"127.0.0.1:{self.port}"],
            "me": f"127.0.0.1:{self.port}",
            "primary": f"127.0.0.1:{self.port}",
            "maxBsonObjectSize": 16 * 1024 * 1024,
            "maxMessageSizeBytes": 48_000_000,
            "maxWriteBatchSize": 100_000,
            "minWireVersion": 0,
            "maxWireVersion": 21,
            "logicalSessionTimeoutMinutes": 30,
            "ok": 1.0,
        }


def token(position: int) -> Document:
    """A resume token after this number of changes."""
    return {"_data": f"{position:08d}"}


def event(number: int) -> Document:
    """A change: a document is inserted."""
    return {
        "_id": token(number),
        "operationType": "insert",
        "clusterTime": Timestamp(1_700_000_000, number),
        "ns": {"db": "shop", "coll": "items"},
        "documentKey": {"_id": number},
        "fullDocument": {"_id": number, "text": "x" * 20},
    }


def _command(body: bytes) -> Document:
    """Of an OP_MSG: flags, then sections, of which the first is the command's document."""
    length = int.from_bytes(body[5:9], "little")
    return bson.decode(body[5 : 5 + length])


def of_document(change: Callable[[Document], object]) -> Spoil:
    """A right message with a document that is none."""

    def spoil(document: Document, request: int) -> bytes:
        change(document)
        return message(document, request)

    return spoil


def of_bytes(change: Callable[[bytearray], object]) -> Spoil:
    """A message whose bytes are damaged."""

    def spoil(document: Document, request: int) -> bytes:
        found = bytearray(message(document, request))
        change(found)
        return bytes(found)

    return spoil
