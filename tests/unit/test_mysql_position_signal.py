"""What the data of `set-binlog-position` may say; the words are Debezium's."""

from __future__ import annotations

import pytest

from connect_py.errors import ConfigError
from connectors.mysql.position_signal import Target, target_of

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
    assert {*target_of(data).gtids.split(",")} == {*target.gtids.split(",")}
    assert (target_of(data).file, target_of(data).position) == (target.file, target.position)


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
    ],
)
def test_what_is_no_place(data: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError) as error:
        target_of(data)
    assert str(error.value) == words
