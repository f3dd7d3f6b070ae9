"""What the data of `set-binlog-position` may say; the words are Debezium's."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connect_py.errors import ConfigError
from connectors.mysql.position.gtid import MariadbGtidSet, parse_transactions
from connectors.mysql.stream.services import Target, parse_target
from tests.seeds import examples

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"


@pytest.mark.parametrize(
    ("data", "target"),
    [
        ({"binlog_filename": "mysql-bin.000003", "binlog_position": 1234}, Target("mysql-bin.000003", 1234)),
        ({"binlog_filename": "a_b.000001", "binlog_position": 0, "gtid_set": ""}, Target("a_b.000001", 0)),
        ({"gtid_set": f"{UUID.upper()}:1-100"}, Target(gtids=f"{UUID}:1-100")),
        ({"gtid_set": f"{UUID}:1-3:5,\n{UUID[:-1]}0:7"}, Target(gtids=f"{UUID}:1-3:5,{UUID[:-1]}0:7")),
        ({"gtid_set": "0-1-100,1-2-3"}, Target(gtids="0-1-100,1-2-3")),
    ],
)
def test_a_place(data: dict[str, object], target: Target) -> None:
    assert {*parse_target(data).gtids.split(",")} == {*target.gtids.split(",")}
    assert (parse_target(data).file, parse_target(data).position) == (target.file, target.position)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({}, "Must specify either binlog file/position or GTID set"),
        ({"binlog_filename": "", "gtid_set": None}, "Must specify either binlog file/position or GTID set"),
        (
            {"binlog_filename": "b.000001", "binlog_position": 4, "gtid_set": f"{UUID}:1"},
            "Cannot specify both binlog file/position and GTID set",
        ),
        ({"binlog_position": 4, "gtid_set": f"{UUID}:1"}, "Cannot specify both binlog file/position and GTID set"),
        ({"binlog_position": 4}, "Binlog filename must be specified when position is provided"),
        ({"binlog_filename": "b.000001"}, "Binlog position must be specified when filename is provided"),
        ({"binlog_filename": "b.000001", "binlog_position": "4"}, "Binlog position must be specified when filename is provided"),
        ({"binlog_filename": "b.000001", "binlog_position": -1}, "Binlog position must be non-negative"),
        ({"binlog_filename": "b.1", "binlog_position": 4}, "Invalid binlog filename format: b.1"),
        ({"binlog_filename": "my.host.000001", "binlog_position": 4}, "Invalid binlog filename format: my.host.000001"),
        ({"gtid_set": "x:1"}, "Invalid GTID set format: x:1"),
        ({"gtid_set": f"{UUID}:"}, f"Invalid GTID set format: {UUID}:"),
        ({"gtid_set": f"{UUID}:{'9' * 5000}"}, f"Invalid GTID set format: {UUID}:{'9' * 5000}"),
        ({"gtid_set": f"0-1-{'9' * 5000}"}, f"Invalid GTID set format: 0-1-{'9' * 5000}"),
        (
            {"binlog_filename": "b.000001", "binlog_position": 1 << 32},
            "Binlog position must be at most 4294967295, which is all that a server can be asked for",
        ),
    ],
)
def test_what_is_no_place(data: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_target(data)
    assert str(error.value) == words


NUMBERS = st.integers() | st.floats() | st.sampled_from([1 << 32, 1 << 64, -1, 10**400])
TEXTS = st.sampled_from(
    [
        "",
        " ",
        "\0",
        "b.000001",
        "b.00000\u0663",
        f"{UUID}:1-3",
        f"{UUID}:{'9' * 19}",
        f"{UUID}:{'9' * 5000}",
        f"{UUID}:3-1",
        "0-1-2",
        "::",
        ",",
        "{}",
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS | st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=examples(500))
@given(st.fixed_dictionaries({}, optional=dict.fromkeys(("binlog_filename", "binlog_position", "gtid_set"), JSON)))
def test_any_data_is_a_place_that_a_server_can_be_asked_for_or_is_refused(data: dict[str, object]) -> None:
    try:
        target = parse_target(data)
    except ConfigError:
        return
    struct.pack("<I", target.position)
    transactions = parse_transactions(target.gtids)
    assert isinstance(transactions, MariadbGtidSet) or transactions.encode()
