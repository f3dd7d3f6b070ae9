"""The clock of a stream whose server always has something to send, of which no record is made."""

from __future__ import annotations

from typing import Any, cast

import pytest

from connectors.engine.batches import PendingRows
from connectors.postgres import pgoutput
from connectors.postgres.errors import ServerError
from connectors.postgres.position.offset import PostgresOffset
from connectors.postgres.position.stream_position import StreamPosition
from connectors.postgres.server.connection import Connection
from connectors.postgres.stream.feedback import Feedback, Silence
from connectors.postgres.stream.stream import ChangeStream
from connectors.postgres.stream.tables import PostgresTaps
from tests.canary import within

#: An insert into a relation that nobody knows.
INSERT = b"w" + (100).to_bytes(8, "big") * 3 + b"I" + (7).to_bytes(4, "big") + b"N\x00\x00"


class Endless:
    """A server that always has a change of an excluded table; ends after more than a read of a tenth of a second can take."""

    def __init__(self, messages: int = 3_000_000) -> None:
        self.left = messages
        self.pgconn = self
        self.sent: list[bytes] = []

    def get_copy_data(self, _: int) -> tuple[int, bytes]:
        self.left -= 1
        return (len(INSERT), INSERT) if self.left > 0 else (0, b"")

    def put_copy_data(self, message: bytes) -> None:
        self.sent.append(message)

    def consume_input(self) -> None:
        pass

    def wait_readable(self, seconds: float) -> bool:
        return False


def stream(server: Endless, **more: Any) -> ChangeStream:
    return ChangeStream(
        cast(Connection, server),
        PostgresOffset(),
        lambda *_: None,
        messages=None,
        skipped=frozenset(),
        tombstones=True,
        headers=(),
        pending=PendingRows(),
        taps=PostgresTaps(),
        **{"status_seconds": 0.02, **more},
    )


def test_a_read_ends_in_time_and_the_server_hears_from_us_although_it_never_stops_sending() -> None:
    server = Endless()
    with within(0.6, "a read of a tenth of a second"):
        assert stream(server, status_seconds=0.005).read(0.1) is None
    assert server.left > 0
    assert len(server.sent) >= 3


def test_a_server_that_answers_no_request_is_lost_and_the_next_one_gets_more_time() -> None:
    server, silence, now = Endless(0), Silence(30), [0.0]
    feedback = Feedback(cast(Connection, server), StreamPosition(PostgresOffset(), lambda: None), 100, silence, lambda: now[0])

    def listen(seconds: int) -> None:
        for _ in range(seconds):
            feedback.on_idle()
            now[0] += 1

    for _ in range(3):
        listen(15)
        assert server.sent[-1][-1] == 1, "a reply is asked for"
        feedback.on_data()
    with pytest.raises(ServerError, match="has said nothing"):
        listen(40)
    assert silence.seconds == 60
    feedback.progressed()
    assert silence.seconds == 30


def test_a_status_that_asks_for_a_reply_says_so() -> None:
    assert pgoutput.encode_status(1, 1, 0, wants_reply=True)[-1] == 1
