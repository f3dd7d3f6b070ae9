"""Warnings about properties that nothing reads."""

from __future__ import annotations

import pytest

from connect_py.runtime.herder.validation import validate
from connect_py.runtime.plugins import Plugins
from connect_py.runtime.unknown_keys import closest

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


def test_two_names_with_little_in_common_are_not_taken_for_one_another() -> None:
    assert closest("file", ["topic", "batch.size"]) is None
