"""Debezium's converter for payloads that are bytes already."""

from __future__ import annotations

import pytest

from connect_py.converters.primitive import BinaryDataConverter, DebeziumByteArrayConverter
from connect_py.data import BYTES, INT32, OPTIONAL_BYTES, STRING, Struct
from connect_py.data.schema import struct
from connect_py.errors import ConfigError, DataError

JSON = "org.apache.kafka.connect.json.JsonConverter"
BEAT = struct([("ts", INT32)], name="Heartbeat")


@pytest.mark.parametrize("plugin", [BinaryDataConverter, DebeziumByteArrayConverter])
def test_bytes_and_nulls_pass_as_they_are(plugin: type[BinaryDataConverter]) -> None:
    made = plugin()
    made.configure({}, is_key=False)
    assert made.from_connect_data("t", BYTES, b"\x00\xff") == b"\x00\xff"
    assert made.from_connect_data("t", None, bytearray(b"a")) == b"a"
    assert made.from_connect_data("t", OPTIONAL_BYTES, None) is None
    assert made.to_connect_data("t", b"x") == (OPTIONAL_BYTES, b"x")
    assert made.to_connect_header("t", "h", None) == (OPTIONAL_BYTES, None)


def test_other_data_goes_to_the_delegate_with_the_delegates_properties() -> None:
    made = BinaryDataConverter()
    made.configure({"delegate.converter.type": JSON, "delegate.converter.type.schemas.enable": "false"}, is_key=False)
    assert made.from_connect_data("t", BEAT, Struct(BEAT, [5])) == b'{"ts":5}'
    assert made.from_connect_data("t", BYTES, b"raw") == b"raw"
    assert made.from_connect_data("t", None, {"a": 1}) == b'{"a":1}'


def test_without_a_delegate_other_data_is_an_error_of_the_record() -> None:
    made = BinaryDataConverter()
    made.configure({}, is_key=False)
    with pytest.raises(DataError, match=r"^A t of type 'x' requires a delegate\.converter\.type to be configured$"):
        made.from_connect_data("t", STRING, "x")
    with pytest.raises(DataError):
        made.from_connect_header("t", "h", STRING, "x")


@pytest.mark.parametrize("name", ["os.system", "org.apache.kafka.connect.transforms.RegexRouter"])
def test_a_delegate_is_looked_up_among_the_plugins_and_never_imported(name: str) -> None:
    with pytest.raises(ConfigError, match=r"delegate\.converter\.type: there is no converter"):
        BinaryDataConverter().configure({"delegate.converter.type": name}, is_key=False)
