"""Rows of the text protocol, in whatever pieces the socket gives them, and the quick readers beside their careful ways."""

from __future__ import annotations

import random
from collections.abc import Callable
from decimal import Decimal, localcontext

import pytest

from connect_py.api import JsonEncoding, Route
from connectors.engine.encode.fused import FusedSource
from connectors.engine.encode.plan import ColumnPlan
from connectors.engine.encode.table import TableEncoder
from connectors.mysql.binlog.values import decimal_reader, stored_size
from connectors.mysql.config.value_options import ValueOptions
from connectors.mysql.errors import LostConnectionError, ServerError
from connectors.mysql.model import MyColumn
from connectors.mysql.position.source_info import block_schema
from connectors.mysql.server.connection import TextResult
from connectors.mysql.server.text_rows import TextRow, any_rows, usual_rows
from connectors.mysql.types.columns import column_plan, is_text

END = b"\x05\x00\x00\x09\xfe\x00\x00\x02\x00"


def value(text: bytes | None) -> bytes:
    if text is None:
        return b"\xfb"
    size = len(text)
    if size < 251:
        return bytes([size]) + text
    if size < 1 << 16:
        return b"\xfc" + size.to_bytes(2, "little") + text
    return (b"\xfd" + size.to_bytes(3, "little") if size < 1 << 24 else b"\xfe" + size.to_bytes(8, "little")) + text


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
        stream += packets(value(None if text is None else text.encode()) + value(octets) + value(str(number).encode()), number)
    found, ended = result(stream + END, [True, False, False], chosen)
    assert all_rows(found) == wanted, f"seed {seed}"
    assert ended == [True]


def test_a_row_of_several_packets_is_one() -> None:
    large = b"0123456789" * 1_800_000
    found, _ = result(packets(value(large) + value(b"x"), 0) + packets(value(b"y") + value(None), 2) + END, [False, True])
    rows = all_rows(found)
    assert [(len(row[0] or ""), row[1]) for row in rows] == [(18_000_000, "x"), (1, None)]  # type: ignore[arg-type]


def test_an_error_in_the_middle_is_raised_with_its_number() -> None:
    error = b"\xff" + (1317).to_bytes(2, "little") + b"#70100Query execution was interrupted"
    found, _ = result(packets(value(b"1"), 0) + packets(error, 1), [False])
    with pytest.raises(ServerError, match="Query execution was interrupted") as raised:
        all_rows(found)
    assert raised.value.code == 1317


@pytest.mark.parametrize("stream", [b"", b"\x02\x00\x00\x00\x05a", b"\x02\x00\x00\x00\xffa"[:5], b"\x03\x00\x00\x00\xfd\x01\x01"])
def test_a_broken_stream_is_a_lost_connection(stream: bytes) -> None:
    found, _ = result(stream, [False])
    with pytest.raises(ServerError):
        all_rows(found)


def test_the_end_of_the_stream_is_a_lost_connection() -> None:
    found, _ = result(packets(value(b"1"), 0), [False])
    with pytest.raises(LostConnectionError):
        all_rows(found)


COLUMNS = [
    MyColumn("id", "INT", 4, nullable=False),
    MyColumn("t", "VARCHAR", 12, length=20, charset="utf8mb4"),
    MyColumn("m", "TIMESTAMP", 2014, length=3),
    MyColumn("d", "DECIMAL", 3, length=12, scale=2),
    MyColumn("e", "ENUM", 1, labels=("a", "b,c", 'q"')),
    MyColumn("f", "DATETIME", 93),
]


@pytest.mark.parametrize("with_schema", [True, False])
def test_quick_rows_are_the_careful_ones(with_schema: bool) -> None:
    plans: list[ColumnPlan | None] = [column_plan(column, ValueOptions()) for column in COLUMNS]
    encoder = TableEncoder("t", plans, ["id", "t"], block_schema("mysql"), JsonEncoding(key_schemas=with_schema, value_schemas=with_schema))
    values = [
        ["1", "-5"],
        [None, "plain", "é", "🐟", 'quo"te', "tab\t", "\x7f", "\u2028", "back\\slash", ""],
        [None, "2020-01-01 00:00:00.100", "0000-00-00 00:00:00.000", "1970-01-01 00:00:01.000"],
        [None, "0.00", "-1234567890.12"],
        [None, "a", "b,c", 'q"'],
        [None, "2020-02-29 23:59:59", "0000-00-00 00:00:00", "0999-01-01 00:00:00"],
    ]
    chosen = random.Random(7)
    rows = [tuple(chosen.choice(column) for column in values) for _ in range(500)]
    route = Route("t", encoder.key_schema, encoder.value_schema)
    found = encoder.text_rows(rows, route, b"{}", b'"op":"r"')
    for row, (_, key, shown) in zip(rows, found, strict=True):
        careful_key, image = encoder._slow.encode(row, snapshot=True)
        assert (key, shown) == (careful_key, encoder.value(None, image, b"{}", b'"op":"r"')), row
        assert encoder.image(row) == encoder._slow.encode(row, snapshot=False), row


def encoder_of(columns: list[MyColumn]) -> tuple[TableEncoder, list[bool], Route]:
    encoder = TableEncoder("t", [column_plan(column, ValueOptions()) for column in columns], ["id"], block_schema("mysql"), JsonEncoding())
    return encoder, [is_text(column) for column in columns], Route("t", encoder.key_schema, encoder.value_schema)


@pytest.mark.parametrize("seed", range(20))
def test_rows_read_and_written_at_once_are_those_that_are_read_apart(seed: int) -> None:
    chosen = random.Random(seed)
    columns = [
        *COLUMNS,
        MyColumn("g", "DATETIME", 93, length=3),
        MyColumn("u", "TIMESTAMP", 2014),
        MyColumn("x", "TEXT", -1, charset="utf8mb4"),
    ]
    chosen.shuffle(columns)
    encoder, characters, route = encoder_of(columns)
    values: dict[str, list[str | None]] = {
        "id": ["1", "-5"],
        "t": [None, "plain", "é", "🐟", "\r\n", "\r", "\x7f", ""],
        "m": [None, "2020-01-01 00:00:00.100", "1970-01-01 00:00:01.000"],
        "d": [None, "0.00", "-1234567890.12"],
        "e": [None, "a", "b,c"],
        "f": [None, "2020-02-29 23:59:59", "0999-01-01 00:00:00"],
        "g": [None, "2020-02-29 23:59:59.999", "0999-01-01 00:00:00.001"],
        "u": [None, "2020-02-29 23:59:59", "1970-01-01 00:00:01"],
        "x": [None, "y" * 250, "y" * 251, "ž" * 40_000, "12", "\u0100"],
    }
    for usual in (True, False):
        choices = [[t for t in values[c.name] if not usual or (t is not None and len(t.encode()) <= 250)] for c in columns]
        rows = [tuple(map(chosen.choice, choices)) for _ in range(50)]
        source = (usual_rows if usual else any_rows)(characters, encoder.wanted_forms)
        data = b"".join(value(None if text is None else text.encode()) for row in rows for text in row)
        found = encoder.fused(source, stream=False).records(data, route, "", encoder.end(b"{}", b'"op":"r"'))
        assert found == encoder.text_rows(rows, route, b"{}", b'"op":"r"'), f"seed {seed}"


@pytest.mark.parametrize("read", [usual_rows, any_rows])
def test_what_is_not_exactly_rows_is_never_given_out(read: Callable[..., FusedSource]) -> None:
    columns = [COLUMNS[0], MyColumn("u", "DATETIME", 93), MyColumn("t", "TEXT", -1, charset="utf8mb4")]
    encoder, characters, route = encoder_of(columns)
    rows = encoder.fused(read(characters, encoder.wanted_forms), stream=False)
    row = value(b"1") + value(b"2020-01-01 01:02:03") + value(b"some text")
    assert len(rows.records(row * 3, route, "", b"") or ()) == 3
    for cut in range(1, len(row)):
        assert rows.records(row + row[:cut], route, "", b"") is None, cut
    for more in (b"\x01", b"\x00", b"\xfc", b"\xff" + b"x" * 40):
        assert rows.records(row + more, route, "", b"") is None, more


def stored(precision: int, scale: int, number: Decimal) -> bytes:
    """As `decimal2bin` stores it."""
    sizes = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
    digits = f"{abs(number):.{scale}f}".replace(".", "").zfill(precision) if scale else f"{abs(number):.0f}".zfill(precision)
    whole = precision - scale
    digits = digits[-precision:]
    head = whole % 9
    groups = ([digits[:head]] if head else []) + [digits[i : i + 9] for i in range(head, whole, 9)]
    groups += [digits[i : min(i + 9, precision)] for i in range(whole, precision, 9)]
    data = bytearray(b"".join(int(group).to_bytes(sizes[len(group)], "big") for group in groups))
    if number < 0:
        data = bytearray(octet ^ 255 for octet in data)
    data[0] ^= 0x80
    return bytes(data)


@pytest.mark.parametrize("seed", range(10))
def test_decimals_of_every_size_are_read(seed: int) -> None:
    chosen = random.Random(seed)
    with localcontext() as context:
        context.prec = 100
        for _ in range(200):
            precision = chosen.randint(1, 65)
            scale = chosen.randint(0, min(30, precision))
            unscaled = chosen.choice([0, 1, 10**precision - 1, chosen.randrange(10**precision)]) * chosen.choice([1, -1])
            number = Decimal(unscaled).scaleb(-scale)
            data = stored(precision, scale, number)
            assert len(data) == stored_size(precision, scale)
            wanted = f"{number:.{scale}f}" if unscaled else f"{abs(number):.{scale}f}"
            assert decimal_reader(precision, scale)(data) == wanted, f"seed {seed}: decimal({precision},{scale})"
