"""Every property that the MySQL and MariaDB connectors take is read somewhere, or says why nothing reads it."""

from __future__ import annotations

import logging
import re

import pytest

from connect_py.errors import ConfigError, FatalTaskError
from connectors.engine.relational.tables import TableId
from connectors.mysql.config.config import parse_config, validate_config
from connectors.mysql.config.properties import EXTENSIONS, MARIADB_PROPERTIES, PROPERTIES, UNLISTED, WITHOUT_EFFECT
from connectors.mysql.connector import MariaDbConnector, MySqlConnector
from connectors.mysql.preparation import check_number
from tests.paths import ROOT

GIVEN = {
    "topic.prefix": "t",
    "database.hostname": "h",
    "database.user": "u",
    "database.server.id": "7",
    "schema.history.internal.kafka.bootstrap.servers": "k:9092",
    "schema.history.internal.kafka.topic": "h",
}
#: Where a name is put together, or is a pattern: what stands in the code instead.
PUT_TOGETHER = {
    "snapshot.mode.configuration.based.snapshot.data": "snapshot.data",
    "snapshot.mode.configuration.based.snapshot.schema": "snapshot.schema",
    "snapshot.mode.configuration.based.start.stream": "start.stream",
    "snapshot.mode.configuration.based.snapshot.on.schema.error": "snapshot.on.schema.error",
    "snapshot.mode.configuration.based.snapshot.on.data.error": "snapshot.on.data.error",
    "binlog.net.write.timeout": r"binlog\.net\.",
    "binlog.net.read.timeout": r"binlog\.net\.",
    "column.mask.hash.([^.]+).with.salt.(.+)": r"column\.mask\.hash",
    "column.mask.with.(d+).chars": r"column\.mask\.with",
    "column.truncate.to.(d+).chars": r"column\.truncate\.to",
}
DEFAULTS = {name: known.key.default for name, known in {**MARIADB_PROPERTIES, **PROPERTIES, **UNLISTED}.items()}


def code() -> str:
    """What the connector runs, without the tables of properties, and without what other connectors read."""
    rooms = (
        "connectors/engine",
        "connectors/mysql",
        *(f"connect_py/{name}" for name in ("config", "herder", "host", "log", "task")),
        "offsets",
    )
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


def is_read(name: str, text: str) -> bool:
    wanted = PUT_TOGETHER.get(name, name).replace("\\", "")
    return re.search(rf"(?<![\w.]){re.escape(wanted)}(?![\w]|\.[a-z])", text.replace("\\", "")) is not None or wanted + "." in text


def test_every_property_is_read_or_says_why_not() -> None:
    text = code()
    names = {**PROPERTIES, **MARIADB_PROPERTIES, **UNLISTED, **EXTENSIONS}
    assert len(names) > 120
    assert [name for name in names if name not in WITHOUT_EFFECT and not is_read(name, text)] == []


def test_what_has_no_effect_is_a_property_and_gives_a_reason() -> None:
    assert {name for name in WITHOUT_EFFECT if not name.startswith("schema.history.internal.")} <= {*PROPERTIES, *UNLISTED}
    assert all(len(why) > 20 and not why.endswith(".") for _, why in WITHOUT_EFFECT.values())
    text = code()
    assert [name for name in WITHOUT_EFFECT if f'"{name}"' in text] == []


@pytest.mark.parametrize("name", [name for name, (warns, _) in WITHOUT_EFFECT.items() if warns])
@pytest.mark.parametrize("connector", ["mysql", "mariadb"])
def test_a_value_that_asks_for_what_is_not_there_is_warned_about(name: str, connector: str, caplog: pytest.LogCaptureFixture) -> None:
    asked = {"custom.metric.tags": "a=b", "schema.history.internal.prefer.ddl": "true", "openlineage.integration.enabled": "true"}.get(
        name, "com.acme.Thing"
    )
    with caplog.at_level(logging.WARNING):
        parse_config({**GIVEN, name: asked}, connector)
    assert [record.getMessage() for record in caplog.records] == [f"{name}={asked} has no effect: {WITHOUT_EFFECT[name][1]}"]


@pytest.mark.parametrize(("connector", "properties"), [("mysql", PROPERTIES), ("mariadb", MARIADB_PROPERTIES)])
def test_defaults_are_quiet(connector: str, properties: dict[str, object], caplog: pytest.LogCaptureFixture) -> None:
    defaults = {
        name: validate.value
        for validate in validate_config(GIVEN, connector)
        if isinstance(validate.value, str) and (name := validate.name)
    }
    with caplog.at_level(logging.WARNING):
        parse_config({**defaults, **GIVEN}, connector)
    assert caplog.records == []
    assert list(properties) == [value.name for value in validate_config(GIVEN, connector)]


def test_answers_show_what_debezium_does_not_list_only_where_it_is_given() -> None:
    more = validate_config({**GIVEN, "read.only": "perhaps", "value.consistency": "x", "snapshot.locking.fallback": "LOCK"})[
        len(PROPERTIES) :
    ]
    assert {value.name: value.errors for value in more} == {
        "read.only": [],
        "value.consistency": ["The 'value.consistency' value is invalid: Value must be one of reference, unified"],
        "snapshot.locking.fallback": [],
    }


@pytest.mark.parametrize("connector", [MySqlConnector, MariaDbConnector])
def test_no_property_of_the_connector_is_called_unknown(connector: type[MySqlConnector]) -> None:
    known = connector.config_def().keys
    names = {*UNLISTED, *EXTENSIONS, *(name for name in WITHOUT_EFFECT if name.startswith("schema.history"))}
    assert [name for name in names if name not in known and not name.startswith(tuple(connector.open_prefixes))] == []


@pytest.mark.parametrize(
    ("given", "number"),
    [
        ({}, 4),
        ({"schema.history.internal.store.only.captured.databases.ddl": "true"}, 3),
        ({"schema.history.internal.store.only.captured.tables.ddl": "true"}, 1),
    ],
)
def test_more_tables_than_the_guardrail_allows_fail_the_start_or_warn(
    given: dict[str, str], number: int, caplog: pytest.LogCaptureFixture
) -> None:
    tables = [TableId("a", "one"), TableId("a", "two"), TableId("a", "three"), TableId("b", "one")]
    lists = {"database.include.list": "a", "table.include.list": "a.one", "guardrail.collections.limit.action": "fail", **given}
    check_number(parse_config({**GIVEN, **lists, "guardrail.collections.max": str(number)}), lambda: tables)
    if number == 1:
        tables, number = [TableId("a", "one"), TableId("A", "ONE")], 2
    below = {**GIVEN, **lists, "guardrail.collections.max": str(number - 1)}
    with pytest.raises(FatalTaskError, match=f"Guardrail limit exceeded: {number} tables"):
        check_number(parse_config(below), lambda: tables)
    with caplog.at_level(logging.WARNING):
        check_number(parse_config({**below, "guardrail.collections.limit.action": "warn"}), lambda: tables)
    assert "Guardrail limit exceeded" in caplog.text


def test_without_a_guardrail_tables_are_not_asked_for() -> None:
    def asked() -> list[TableId]:
        raise AssertionError

    check_number(parse_config(GIVEN), asked)


def test_statements_that_the_filter_names_match_as_a_whole_over_several_lines() -> None:
    config = parse_config({**GIVEN, "schema.history.internal.ddl.filter": r"alter table x\..*,create\s+odd{1\,2}y.*"})
    first, second = config.unread_statements
    assert first.fullmatch("ALTER TABLE x.y\nADD z INT") and not first.fullmatch("-- \nALTER TABLE x.y")
    assert second.fullmatch("CREATE oddy thing") and not second.fullmatch("CREATE ody")
    assert parse_config(GIVEN).unread_statements == ()


def test_the_filters_name_in_debezium_counts_too() -> None:
    for name in ("internal.schema.history.internal.ddl.filter", "internal.database.history.ddl.filter"):
        (found,) = parse_config({**GIVEN, name: "CREATE EVENT .*"}).unread_statements
        assert found.fullmatch("create event e ON SCHEDULE EVERY 1 DAY DO SELECT 1"), name


@pytest.mark.parametrize("mode", ["exported", "sometimes"])
def test_a_mode_that_debezium_never_had_is_refused_as_there(mode: str) -> None:
    with pytest.raises(ConfigError, match="Value must be one of always, initial_only"):
        parse_config({**GIVEN, "snapshot.mode": mode})


@pytest.mark.parametrize(
    ("old", "new"), [("schema_only", "no_data"), ("schema_only_recovery", "recovery"), ("never", "no_data"), ("Never", "no_data")]
)
def test_an_old_mode_is_taken_with_a_warning_that_names_the_new_one(old: str, new: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert parse_config({**GIVEN, "snapshot.mode": old}).snapshot_mode.name == new
    assert f"snapshot.mode '{old.lower()}' is the old name of '{new}'" in caplog.text
    assert not [
        value.errors for value in validate_config({**GIVEN, "snapshot.mode": old}) if value.name == "snapshot.mode" and value.errors
    ]


def test_a_placeholder_may_be_given_as_octets() -> None:
    assert parse_config({**GIVEN, "unavailable.value.placeholder": "hex:c3a921"}).values.placeholder == "é!"
    with pytest.raises(ConfigError, match="hexadecimal"):
        parse_config({**GIVEN, "unavailable.value.placeholder": "hex:abc"})
