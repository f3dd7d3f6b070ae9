"""Rows of our own encoders are read as the careful reader reads them."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import pytest

from connect_py.converters.json_read import parse_json, payload_reader, row_reader
from connect_py.converters.json_write import encode_value
from connect_py.data.schema import Field, Schema, Struct, Type, decimal_schema
from connect_py.errors import DataError

AMOUNT = Schema(Type.STRUCT, fields=(Field("amount", decimal_schema(2, optional=True)),))
INNER = Schema(Type.STRUCT, optional=True, fields=(Field("only", Schema(Type.FLOAT64)),))
ROW = Schema(Type.STRUCT, fields=(Field("n", Schema(Type.INT64)), Field("amount", decimal_schema(3)), Field("inner", INNER)))


def read_both(schema: Schema, data: bytes) -> tuple[Any, Any]:
    return row_reader(schema)(parse_json(data)), payload_reader(schema, None)(parse_json(data))


def test_rows_read_as_the_careful_reader_reads_them() -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    chance = random.Random(seed)
    for _ in range(300):
        inner = None if chance.random() < 0.3 else Struct(INNER, [chance.random()])
        amount = Decimal(chance.randrange(-(10 ** chance.randrange(1, 40)), 10**6)).scaleb(-3)
        row = Struct(ROW, [chance.randrange(1 << 40), amount, inner])
        quick, careful = read_both(ROW, encode_value(ROW, row))
        assert quick == careful == row, f"seed {seed}"
        assert str(quick["amount"]) == str(careful["amount"]), f"seed {seed}"


@pytest.mark.parametrize("amount", [None, Decimal("0.00"), Decimal("-1.28"), Decimal("123456789012345678901234567890.12")])
def test_a_row_of_one_field_is_read_with_its_decimal(amount: Decimal | None) -> None:
    quick, careful = read_both(AMOUNT, encode_value(AMOUNT, Struct(AMOUNT, [amount])))
    assert quick.values == careful.values == [amount]


@pytest.mark.parametrize("text", [b'{"amount":"*"}', b'{"amount":true}', b'{"amount":[]}', b"[]"])
def test_what_no_encoder_writes_is_refused_with_the_careful_readers_reason(text: bytes) -> None:
    with pytest.raises(DataError) as careful:
        payload_reader(AMOUNT, None)(parse_json(text))
    with pytest.raises(DataError) as quick:
        row_reader(AMOUNT)(parse_json(text))
    assert str(quick.value) == str(careful.value)
