"""Rows of the text protocol, in whatever pieces the socket gives them, and what is not exactly rows."""

from __future__ import annotations

import random
import traceback
from collections.abc import Callable

import pytest

from connect_py.api import JsonEncoding, Route
from connectors.engine.encode.fused import FusedSource
from connectors.engine.encode.table import TableEncoder
from connectors.mysql.config.value_options import ValueOptions
from connectors.mysql.errors import LostConnectionError, ServerError
from connectors.mysql.model import MyColumn
from connectors.mysql.position.source_info import block_schema
from connectors.mysql.server.connection import TextResult
from connectors.mysql.server.text_rows import MalformedRowError, TextRow, any_rows, rows_function, usual_rows
from connectors.mysql.types.columns import column_plan, is_text
from tests.stored_rows import text_value

END = b"\x05\x00\x00\x09\xfe\x00\x00\x02\x00"


def packets(payload: bytes, number: int) -> bytes:
    found = b""
    while True:
        part, payload = payload[:0xFFFFFF], payload[0xFFFFFF:]
        found += len(part).to_bytes(3, "little") + bytes([number & 255]) + part
        if len(part) < 0xFFFFFF:
            return found
        number += 1


def result(stream: bytes, characters: list[bool], sizes: random.Random | None = None) -> tuple[TextResult, list[bool]]:
    ended: list[bool] = []
    left = [stream]

    def receive(size: int) -> bytes:
        size = min(size, sizes.choice([1, 2, 3, 5, 100, 100_000])) if sizes else size
        data, left[0] = left[0][:size], left[0][size:]
        return data

    return TextResult(receive, lambda: ended.append(True), characters, "here"), ended


def all_rows(found: TextResult) -> list[TextRow]:
    rows: list[TextRow] = []
    while True:
        part, _ = found.read(7, 1000)
        if not part:
            return rows
        rows += part


@pytest.mark.parametrize("seed", range(20))
def test_rows_are_read_whatever_the_pieces(seed: int) -> None:
    chosen = random.Random(seed)
    texts = ["", "a", "é", "🐟", "\t\n\\\"'", "x" * 250, "y" * 251, "z" * 300, "ž" * 40_000, "w" * 70_000]
    wanted: list[TextRow] = []
    stream = b""
    for number in range(chosen.randrange(1, 60)):
        text = chosen.choice([None, *texts])
        octets = chosen.choice([None, b"", b"\x00\xff", bytes(range(256)), b"\xfb\xfe"])
        wanted.append((text, None if octets is None else octets.decode("latin-1"), str(number)))
        stream += packets(
            text_value(None if text is None else text.encode()) + text_value(octets) + text_value(str(number).encode()), number
        )
    found, ended = result(stream + END, [True, False, False], chosen)
    assert all_rows(found) == wanted, f"seed {seed}"
    assert ended == [True]


def test_a_row_of_several_packets_is_one() -> None:
    large = b"0123456789" * 1_800_000
    found, _ = result(
        packets(text_value(large) + text_value(b"x"), 0) + packets(text_value(b"y") + text_value(None), 2) + END, [False, True]
    )
    rows = all_rows(found)
    assert [(len(row[0] or ""), row[1]) for row in rows] == [(18_000_000, "x"), (1, None)]  # type: ignore[arg-type]


def test_an_error_in_the_middle_is_raised_with_its_number() -> None:
    error = b"\xff" + (1317).to_bytes(2, "little") + b"#70100Query execution was interrupted"
    found, ended = result(packets(text_value(b"1"), 0) + packets(error, 1), [False])
    with pytest.raises(ServerError, match="Query execution was interrupted") as raised:
        all_rows(found)
    assert raised.value.code == 1317
    assert ended == [True], "the next statement must not look for more rows"


@pytest.mark.parametrize("stream", [b"", b"\x02\x00\x00\x00\x05a", b"\x02\x00\x00\x00\xffa"[:5], b"\x03\x00\x00\x00\xfd\x01\x01"])
def test_a_broken_stream_is_a_lost_connection(stream: bytes) -> None:
    found, _ = result(stream, [False])
    with pytest.raises(ServerError):
        all_rows(found)


def test_the_end_of_the_stream_is_a_lost_connection() -> None:
    found, _ = result(packets(text_value(b"1"), 0), [False])
    with pytest.raises(LostConnectionError):
        all_rows(found)


@pytest.mark.parametrize("read", [usual_rows, any_rows])
def test_what_is_not_exactly_rows_is_never_given_out(read: Callable[..., FusedSource]) -> None:
    columns = [MyColumn("id", "INT", 4, nullable=False), MyColumn("u", "DATETIME", 93), MyColumn("t", "TEXT", -1, charset="utf8mb4")]
    encoder = TableEncoder("t", [column_plan(column, ValueOptions()) for column in columns], ["id"], block_schema("mysql"), JsonEncoding())
    route = Route("t", encoder.key_schema, encoder.value_schema)
    rows = encoder.fused(read([is_text(column) for column in columns], encoder.wanted_forms), stream=False)
    row = text_value(b"1") + text_value(b"2020-01-01 01:02:03") + text_value(b"some text")
    assert len(rows.records(row * 3, route, "", b"") or ()) == 3
    for cut in range(1, len(row)):
        assert rows.records(row + row[:cut], route, "", b"") is None, cut
    for more in (b"\x01", b"\x00", b"\xfc", b"\xff" + b"x" * 40):
        assert rows.records(row + more, route, "", b"") is None, more


def test_the_trace_of_a_row_that_cannot_be_read_shows_the_generated_line() -> None:
    with pytest.raises(MalformedRowError) as raised:
        rows_function([False, True])([text_value(b"1") + b"\xfe\1"])
    assert "in read_rows\n    c1 = read(size if size < 251 else read_size(size, read))\n" in "".join(
        traceback.format_exception(raised.value)
    )
