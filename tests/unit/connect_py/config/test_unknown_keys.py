"""Warnings about properties that nothing reads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from http.client import HTTPConnection

import pytest

from connect_py.app.services.memory_herder import CLASS, MemoryHerder
from connect_py.config.unknown_properties import closest
from connect_py.herder.base import ConfigInfos
from connect_py.herder.validation import raise_if_invalid, validate
from connect_py.plugins.registry import Plugins
from rest_api import RestConfig, create_app, serve

JSON = "org.apache.kafka.connect.json.JsonConverter"
HOIST = "org.apache.kafka.connect.transforms.HoistField$Value"
PLUGINS = Plugins.discover()
WORKER = {"group.id": "g", "key.converter": JSON, "value.converter": JSON}
FILE = {"name": "c", "connector.class": "FileStreamSource", "file": "/in", "topic": "t"}
POSTGRES = {"name": "c", "connector.class": "io.debezium.connector.postgresql.PostgresConnector", "topic.prefix": "a b"}
TRANSFORMED = {**FILE, "transforms": "hoist", "transforms.hoist.type": HOIST, "transforms.hoist.field": "x"}


def warnings(config: dict[str, str]) -> list[str]:
    return list(validate(PLUGINS, WORKER, config).warnings)


def test_the_nearest_known_name_is_offered() -> None:
    assert warnings({**POSTGRES, "tabel.include.list": "a"}) == [
        "The property 'tabel.include.list' is not known. Did you mean 'table.include.list'?"
    ]
    assert warnings({**FILE, "task.max": "1"}) == ["The property 'task.max' is not known. Did you mean 'tasks.max'?"]


def test_a_name_that_is_like_no_other_is_said_to_do_nothing() -> None:
    assert warnings({**FILE, "colour": "red"}) == ["The property 'colour' is not known and probably has no effect."]


@pytest.mark.parametrize(
    "config",
    [
        FILE,
        {**FILE, "topic.creation.groups": "a", "topic.creation.a.include": ".*", "topic.creation.default.cleanup.policy": "compact"},
        {
            **FILE,
            "producer.override.linger.ms": "1",
            "config.action.reload": "none",
            "key.converter": JSON,
            "key.converter.schemas.enable": "true",
        },
        TRANSFORMED,
        {**TRANSFORMED, "transforms.hoist.predicate": "p", "transforms.hoist.negate": "true", "predicates": "p"},
        {**POSTGRES, "database.server.name": "old", "driver.loginTimeout": "3", "internal.anything": "1"},
        {**POSTGRES, "column.mask.with.5.chars": "a", "column.mask.hash.SHA-256.with.salt.x.y": "b"},
        {**POSTGRES, "converters": "isbn", "isbn.type": "com.acme.Isbn", "isbn.schema.name": "x"},
    ],
)
def test_names_made_of_prefixes_and_old_names_are_known(config: dict[str, str]) -> None:
    assert warnings(config) == []


def test_overrides_are_compared_with_the_settings_of_their_client() -> None:
    assert warnings({**FILE, "producer.override.linger.mss": "1"}) == [
        "The producer setting of producer.override.*, 'linger.mss' is not known. Did you mean 'linger.ms'?"
    ]
    assert warnings({**FILE, "streams.override.x": "1"}) == [
        "The property 'streams.override.x' is not known: overrides are producer.override.*, consumer.override.*, admin.override.*."
    ]


def test_what_no_alias_list_names_has_no_effect() -> None:
    assert warnings({**TRANSFORMED, "transforms.hoits.field": "y"}) == [
        "The property 'transforms.hoits.field' has no effect: 'transforms' does not list 'hoits' but 'hoist'."
    ]
    assert warnings({**FILE, "topic.creation.a.partitions": "1"}) == [
        "The property 'topic.creation.a.partitions' has no effect: 'topic.creation.groups' does not list 'a'."
    ]


def test_properties_of_a_transform_are_known_by_its_class() -> None:
    assert warnings({**TRANSFORMED, "transforms.hoist.feild": "y"}) == [
        "The property 'transforms.hoist.feild' is not known. Did you mean 'transforms.hoist.field'?"
    ]


def test_properties_of_a_converter_that_the_connector_does_not_name_have_no_effect() -> None:
    (sentence,) = warnings({**FILE, "value.converter.schemas.enable": "false"})
    assert sentence.startswith(
        "The property 'value.converter.schemas.enable' has no effect: the connector names no value.converter of its own"
    )


@pytest.mark.parametrize("alias", ["(", "(a+)+$", "[", "*"])
def test_an_alias_is_never_read_as_a_regex(alias: str) -> None:
    infos = validate(PLUGINS, WORKER, {**POSTGRES, "transforms": alias, "predicates": alias})
    errors = [error for _, value in infos.configs for error in value.errors]
    assert f'Missing required configuration "transforms.{alias}.type" which has no default value.' in errors


def test_two_names_with_little_in_common_are_not_taken_for_one_another() -> None:
    assert closest("file", ["topic", "batch.size"]) is None


def test_a_connector_that_is_created_has_its_warnings_logged_under_its_name(caplog: pytest.LogCaptureFixture) -> None:
    raise_if_invalid(validate(PLUGINS, WORKER, {**FILE, "task.max": "1"}))
    assert [record.getMessage() for record in caplog.records] == [
        "Connector c: The property 'task.max' is not known. Did you mean 'tasks.max'?"
    ]


class WarningHerder(MemoryHerder):
    def validate(self, config: Mapping[str, str | None]) -> ConfigInfos:
        return replace(super().validate(config), warnings=["The property 'ä\r\n\"x\"' is not known.", "Another."])


def test_a_validations_warnings_are_in_a_header_and_the_body_is_connects() -> None:
    server = serve(create_app(WarningHerder(), RestConfig()), ["http://127.0.0.1:0"])
    try:
        connection = HTTPConnection("127.0.0.1", int(server.urls[0].rpartition(":")[2]))
        body = json.dumps({"connector.class": CLASS, "name": "c"})
        connection.request("PUT", f"/connector-plugins/{CLASS}/config/validate", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        assert answer.getheader("warning") == '299 - "The property \'????x?\' is not known.", 299 - "Another."'
        assert set(json.loads(answer.read())) == {"name", "error_count", "groups", "configs"}
        connection.close()
    finally:
        server.stop(5)


def test_a_hundred_unknown_names_are_enough() -> None:
    found = warnings({**FILE, **{f"unknown.{number}": "x" for number in range(5000)}})
    assert len(found) == 101
    assert found[-1] == "No more names are looked at: 100 properties are not known."
