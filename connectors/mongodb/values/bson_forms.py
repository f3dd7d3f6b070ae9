"""Which text a scalar has in which form of extended JSON (`org.bson.json.JsonWriterSettings`: the converters of each output mode)."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import NamedTuple

from connectors.mongodb.values.bson_scalars import LAST_MS_OF_YEAR_9999, base64_text, date_text, double_text

#: Types without content, by their type byte.
CONSTANTS = {0x06: '{"$undefined": true}', 0x0A: "null", 0x7F: '{"$maxKey": 1}', 0xFF: '{"$minKey": 1}'}


class Form(enum.Enum):
    """How numbers, dates, binaries and regular expressions look."""

    STRICT = "strict"
    CANONICAL = "canonical"
    RELAXED = "relaxed"


class ScalarTexts(NamedTuple):
    """Functions that write the types on which forms differ; `regex` takes pattern and options as JSON strings."""

    int32: Callable[[int], str]
    int64: Callable[[int], str]
    double: Callable[[float], str]
    date: Callable[[int], str]
    binary: Callable[[bytes, int], str]
    regex: Callable[[str, str], str]


def scalar_texts(form: Form, comma: str) -> ScalarTexts:
    """The functions of a form; `comma` stands between the members of a value that is a document in JSON."""
    if form is Form.STRICT:
        return ScalarTexts(
            str,
            _number_long,
            double_text,
            lambda milliseconds: f'{{"$date": {milliseconds}}}',
            lambda content, subtype: f'{{"$binary": "{base64_text(content)}"{comma}"$type": "{subtype:02X}"}}',
            lambda pattern, options: f'{{"$regex": {pattern}{comma}"$options": {options}}}',
        )

    def binary(content: bytes, subtype: int) -> str:
        return f'{{"$binary": {{"base64": "{base64_text(content)}"{comma}"subType": "{subtype:02X}"}}}}'

    def regex(pattern: str, options: str) -> str:
        return f'{{"$regularExpression": {{"pattern": {pattern}{comma}"options": {options}}}}}'

    if form is Form.CANONICAL:
        return ScalarTexts(_number_int, _number_long, _number_double, _canonical_date, binary, regex)
    return ScalarTexts(str, str, _relaxed_double, _relaxed_date, binary, regex)


def _number_int(value: int) -> str:
    return f'{{"$numberInt": "{value}"}}'


def _number_long(value: int) -> str:
    return f'{{"$numberLong": "{value}"}}'


def _number_double(value: float) -> str:
    return f'{{"$numberDouble": "{double_text(value)}"}}'


def _relaxed_double(value: float) -> str:
    return double_text(value) if value - value == 0 else _number_double(value)


def _canonical_date(milliseconds: int) -> str:
    return f'{{"$date": {{"$numberLong": "{milliseconds}"}}}}'


def _relaxed_date(milliseconds: int) -> str:
    if 0 <= milliseconds <= LAST_MS_OF_YEAR_9999:
        return f'{{"$date": "{date_text(milliseconds)}"}}'
    return _canonical_date(milliseconds)
