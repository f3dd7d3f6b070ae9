"""Every property that the PostgreSQL connector takes is read somewhere, or says why nothing reads it."""

from __future__ import annotations

import logging
import re
import tempfile

import pytest

from connectors.postgres import properties
from connectors.postgres.config import parse_config, validate_config
from connectors.postgres.properties import EXTENSIONS, PROPERTIES, UNLISTED, WITHOUT_EFFECT
from tests.paths import ROOT

GIVEN = {
    "topic.prefix": "t",
    "database.hostname": "h",
    "database.user": "u",
    "database.password": "secret-of-mine",
    "database.dbname": "d",
}
#: Where a name is put together, or is a pattern: what stands in the code instead.
PUT_TOGETHER = {
    "snapshot.mode.configuration.based.snapshot.data": "snapshot.data",
    "snapshot.mode.configuration.based.start.stream": "start.stream",
    "snapshot.mode.configuration.based.snapshot.on.data.error": "snapshot.on.data.error",
    "column.mask.hash.([^.]+).with.salt.(.+)": r"column\.mask\.hash\.",
    "column.mask.with.(d+).chars": r"column\.mask\.with\.",
    "column.truncate.to.(d+).chars": r"column\.truncate\.to\.",
}


def code() -> str:
    """What the connector runs, without the tables of properties, and without what other connectors read."""
    rooms = ("connectors/engine", "connectors/postgres", *(f"connect_py/{name}" for name in ("config", "herder", "host", "log", "task")))
    files = [
        file
        for room in rooms
        for file in sorted((ROOT / room).rglob("*.py"))
        if file.name not in ("properties.py", "layout.py", "without_effect.py")
    ]
    texts = {file: file.read_text() for file in files}
    common = ROOT / "connectors/engine/config.py"
    texts[common] = re.sub(r"^(COMMON|UNLISTED_NAMES)\b.*?^\)  # fmt: skip$", "", texts[common], flags=re.M | re.S)
    return "\n".join(re.sub(r'""".*?"""', "", text, flags=re.S) for text in texts.values())


def test_every_property_is_read_or_says_why_not() -> None:
    text = code()
    unread = [
        name for name in {**PROPERTIES, **UNLISTED, **EXTENSIONS} if name not in WITHOUT_EFFECT and PUT_TOGETHER.get(name, name) not in text
    ]
    assert unread == []


def test_what_has_no_effect_is_a_property_and_gives_a_reason() -> None:
    assert set(WITHOUT_EFFECT) <= {*PROPERTIES, *UNLISTED}
    assert all(len(why) > 20 and not why.endswith(".") for _, why in WITHOUT_EFFECT.values())
    text = code()
    assert [name for name in WITHOUT_EFFECT if f'"{name}"' in text and name not in ("plugin.name",)] == []


@pytest.mark.parametrize("name", [name for name, (warns, _) in WITHOUT_EFFECT.items() if warns])
def test_a_value_that_asks_for_what_is_not_there_is_warned_about(name: str, caplog: pytest.LogCaptureFixture) -> None:
    asked = {
        "custom.metric.tags": "a=b",
        "include.schema.comments": "true",
        "openlineage.integration.enabled": "true",
        "snapshot.mode.configuration.based.snapshot.on.schema.error": "true",
    }.get(name, "com.acme.Thing")
    with caplog.at_level(logging.WARNING):
        parse_config({**GIVEN, name: asked})
    assert [record.getMessage() for record in caplog.records] == [f"{name}={asked} has no effect: {WITHOUT_EFFECT[name][1]}"]


def test_defaults_are_quiet(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        defaults = {name: {**PROPERTIES, **UNLISTED}[name].key.default for name in WITHOUT_EFFECT if name != "plugin.name"}
        parse_config({**GIVEN, **{name: str(default).lower() for name, default in defaults.items() if default is not None}})
    assert caplog.records == []


def test_answers_show_what_debezium_does_not_list_only_where_it_is_given() -> None:
    assert [value.name for value in validate_config(GIVEN)] == list(properties.PROPERTIES)
    asked = {
        **GIVEN,
        "read.only": "perhaps",
        "field.name.adjustment.mode": "x",
        "large.transaction.memory.bytes": "0",
        "large.transaction.directory": "/nowhere/at/all",
    }
    more = validate_config(asked)[len(PROPERTIES) :]
    assert {value.name: value.errors for value in more} == {
        "read.only": [],
        "field.name.adjustment.mode": ["The 'field.name.adjustment.mode' value is invalid: Value must be one of none, avro_unicode, avro"],
        "large.transaction.memory.bytes": [
            "The 'large.transaction.memory.bytes' value is invalid: A positive, non-zero long value is expected"
        ],
        "large.transaction.directory": [
            "The 'large.transaction.directory' value is invalid: There is no directory /nowhere/at/all on the worker's machine; create it, "
            f"or leave the property out to use {tempfile.gettempdir()}"
        ],
    }


@pytest.mark.parametrize(
    ("given", "strategy"),
    [
        ({}, "no_validation"),
        ({"offset.mismatch.strategy": "TRUST_SLOT"}, "trust_slot"),
        ({"slot.seek.to.known.offset.on.start": "true"}, "trust_offset"),
        ({"slot.seek.to.known.offset.on.start": "true", "offset.mismatch.strategy": "trust_greater_lsn"}, "trust_greater_lsn"),
    ],
)
def test_the_strategy_for_differing_positions(given: dict[str, str], strategy: str) -> None:
    assert parse_config({**GIVEN, **given}).offset_mismatch_strategy == strategy


def test_a_property_that_debezium_does_not_check_takes_any_text_as_its_default() -> None:
    config = parse_config({**GIVEN, **dict.fromkeys(set(UNLISTED) - {"field.name.adjustment.mode", "topic.delimiter"}, "[x")})
    assert (config.flag("read.only"), config.flag("skip.messages.without.change"), config.values.money_digits) == (False, False, 2)


@pytest.mark.parametrize(
    ("name", "text", "problems"),
    [
        ("message.key.columns", "", ["Must not be empty", " has an invalid format (expecting '^\\s*([^:]+):([^:,]+(,[^:,]+)*)\\s*$')"]),
        ("message.key.columns", "a;b:c", ["a has an invalid format (expecting '^\\s*([^:]+):([^:,]+(,[^:,]+)*)\\s*$')"]),
        ("topic.naming.strategy", "com.acme.new.Names", ["A Java class name is expected"]),
        ("heartbeat.topics.prefix", "a b", []),
        ("signal.data.collection", "nothing", []),
    ],
)
def test_mistakes_are_answered_as_debezium_does(name: str, text: str, problems: list[str]) -> None:
    (found,) = [value.errors for value in validate_config({**GIVEN, name: text}) if value.name == name]
    assert found == [f"The '{name}' value is invalid: {problem}" for problem in problems]
