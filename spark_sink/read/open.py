"""Which way records are read, by what the connector and the worker say of converters and transforms."""

from __future__ import annotations

from collections.abc import Mapping

from connect_py.api import RecordConversion
from spark_sink.read.converted import ConvertedRecords
from spark_sink.read.formats import RecordFormat
from spark_sink.read.plain import PlainRecords

JSON_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"


def open_format(conversion: RecordConversion) -> RecordFormat:
    """The quickest way that gives what the converters and transforms would.

    Raises:
        ConfigError: one of their classes or properties is wrong.
    """
    conversion.open().close()
    sides = (conversion.converters["key"], conversion.converters["value"])
    if not conversion.transforms and all(_is_plain(side) for side in sides):
        return PlainRecords(numeric_decimals=conversion.converters["value"].get("decimal.format", "").strip().upper() == "NUMERIC")
    return ConvertedRecords(conversion)


def _is_plain(converter: Mapping[str, str]) -> bool:
    if converter["class"] != JSON_CONVERTER or converter.get("schema.content"):
        return False
    return converter.get("schemas.enable", "true").strip().lower() != "false"
