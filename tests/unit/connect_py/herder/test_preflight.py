"""What validation asks a source about transactions (ExactlyOnceSourceIntegrationTest.testPreflightValidation), and sinks' groups."""

from __future__ import annotations

import pytest

from connect_py.herder.validation import validate
from connect_py.plugins.registry import Plugins

JSON = "org.apache.kafka.connect.json.JsonConverter"
PLUGINS = Plugins(
    {
        JSON: "connect_py.converters.json_converter:JsonConverter",
        "tests.AnsweringSource": "tests.preflight_plugin:AnsweringSource",
        "tests.NotingSink": "tests.counting_plugin:NotingSink",
    }
)
WORKER = {"group.id": "workers", "key.converter": JSON, "value.converter": JSON, "header.converter": JSON}
ENABLED = {**WORKER, "exactly.once.source.support": "ENABLED"}
SOURCE = {"name": "c", "connector.class": "tests.AnsweringSource", "supports": "yes", "boundaries": "yes"}


def errors(worker: dict[str, str], config: dict[str, str]) -> list[tuple[str, str]]:
    return [(value.name, error) for _, value in validate(PLUGINS, worker, config).configs for error in value.errors]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("null", "The connector does not implement the API required for preflight validation of exactly-once source support."),
        ("no", "The connector does not support exactly-once semantics with the provided configuration."),
        ("it broke", "An unexpected error occurred during validation: it broke"),
        (" ", "An unexpected error occurred during validation; please see the worker logs for more details."),
        ("yes", None),
    ],
)
def test_a_source_that_must_deliver_exactly_once_is_asked_whether_it_can(answer: str, text: str | None) -> None:
    found = errors(ENABLED, {**SOURCE, "exactly.once.support": "Required", "supports": answer})
    assert len(found) == (text is not None)
    assert text is None or (found[0][0] == "exactly.once.support" and found[0][1].startswith(text))


@pytest.mark.parametrize("answer", ["null", "no", "it broke"])
def test_a_source_that_may_is_asked_nothing(answer: str) -> None:
    for worker in (WORKER, ENABLED):
        assert errors(worker, {**SOURCE, "exactly.once.support": "requested", "supports": answer, "boundaries": answer}) == []


def test_a_worker_without_support_says_so_next_to_the_sources_answer() -> None:
    required = {**SOURCE, "exactly.once.support": "required"}
    for support in ("disabled", "preparing"):
        worker = {**WORKER, "exactly.once.source.support": support}
        lacks = ("exactly.once.support", "This worker does not have exactly-once source support enabled.")
        assert errors(worker, required) == [lacks]
        assert [each[0] for each in errors(worker, {**required, "supports": "no"})] == ["exactly.once.support"] * 2


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("null", "This connector has returned a null value from its canDefineTransactionBoundaries method, which is not permitted."),
        ("no", "The connector does not support connector-defined transaction boundaries with the given configuration."),
        ("it broke", "An unexpected error occurred during validation: it broke"),
        ("yes", None),
    ],
)
def test_a_source_that_is_to_end_transactions_is_asked_whether_it_does(answer: str, text: str | None) -> None:
    found = errors(ENABLED, {**SOURCE, "transaction.boundary": "Connector", "boundaries": answer})
    assert len(found) == (text is not None)
    assert text is None or (found[0][0] == "transaction.boundary" and found[0][1].startswith(text))


def test_a_sinks_group_may_not_be_the_workers() -> None:
    sink = {"name": "s", "connector.class": "tests.NotingSink", "topics": "t", "notes": "n"}
    assert errors(WORKER, sink) == []
    overriding = {**sink, "consumer.override.group.id": "workers"}
    conflict = ("consumer.override.group.id", "Consumer group workers conflicts with Connect worker group workers")
    assert conflict in errors({**WORKER, "connector.client.config.override.policy": "All"}, overriding)
    named = errors({**WORKER, "group.id": "connect-s"}, sink)
    assert named == [("name", "Consumer group for sink connector named s conflicts with Connect worker group connect-s")]
