"""Properties that only this worker has: seen where they are used, checked there, and nowhere else."""

from connect_py.config.connector import connector_definition, extension_keys
from connect_py.herder.validation import validate
from connectors.file.sink import FileStreamSinkConnector
from connectors.file.source import FileStreamSourceConnector
from tests.unit.connect_py.config.test_config import JSON, PLUGINS, WORKER, config

WITH_HEADERS = WORKER | {"header.converter": JSON}


def test_a_configuration_that_uses_none_is_answered_as_connect_answers_it() -> None:
    assert extension_keys(FileStreamSourceConnector, {"name": "x"}).keys == {}
    shown = {value.name for _, value in validate(PLUGINS, WITH_HEADERS, config()).configs}
    assert not any(name.startswith(("task.restart", "errors.deadletterqueue")) for name in shown)


def test_restarts_are_checked_where_they_are_asked_for() -> None:
    given = config() | {"task.restart.policy": "always", "task.restart.max.attempts": "3"}
    infos = validate(PLUGINS, WITH_HEADERS, given)
    errors = {value.name: value.errors for _, value in infos.configs if value.errors}
    assert errors == {
        "task.restart.policy": ["Invalid value always for configuration task.restart.policy: String must be one of: none, on-failure"]
    }
    assert infos.warnings == []


def test_a_source_may_have_a_dead_letter_queue_and_a_sinks_is_connects_own() -> None:
    queue = {"errors.deadletterqueue.topic.name": "dead"}
    assert "errors.deadletterqueue.topic.replication.factor" in extension_keys(FileStreamSourceConnector, queue).keys
    assert extension_keys(FileStreamSinkConnector, queue).keys == {}
    assert "errors.deadletterqueue.topic.name" in connector_definition(FileStreamSinkConnector).keys
    assert validate(PLUGINS, WITH_HEADERS, config() | queue).warnings == []
