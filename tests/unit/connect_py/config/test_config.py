"""Worker properties, plugins, connector definitions and their rules."""

import json
from pathlib import Path

import pytest

from connect_py.app.client.files import read_connector_file
from connect_py.config.connector import connector_definition, sink_group, sink_topic_errors
from connect_py.config.worker import STANDALONE, WorkerConfig, split_listener
from connect_py.data.java_map import in_java_order
from connect_py.errors import BadRequestError, ConfigError
from connect_py.herder.validation import raise_if_invalid, validate
from connect_py.kafka.client import ExactlyOnceSupport, is_exactly_once
from connect_py.plugins.registry import Plugins
from connectors.file.sink import FileStreamSinkConnector

JSON = "org.apache.kafka.connect.json.JsonConverter"
FILE_SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
WORKER = {
    "group.id": "g",
    "config.storage.topic": "c",
    "offset.storage.topic": "o",
    "status.storage.topic": "s",
    "key.converter": JSON,
    "value.converter": JSON,
}
PLUGINS = Plugins(
    {
        FILE_SOURCE: "connectors.file.source:FileStreamSourceConnector",
        JSON: "connect_py.converters.json_converter:JsonConverter",
        "org.apache.kafka.connect.storage.StringConverter": "connect_py.converters.primitive:StringConverter",
        "com.acme.BrokenConnector": "connectors.no_such_module:BrokenConnector",
    }
)


def test_the_worker_has_connects_defaults() -> None:
    worker = WorkerConfig.parse(WORKER)
    assert list(worker.listeners) == ["http://:8083"]
    assert (worker.flush_interval_seconds, worker.flush_timeout_seconds, worker.graceful_shutdown_seconds) == (60, 5, 5)


def test_exactly_once_support_is_read_as_kafka_does_whatever_its_case() -> None:
    properties = {**WORKER, "exactly.once.source.support": "Enabled"}
    assert WorkerConfig.parse(properties).exactly_once is ExactlyOnceSupport.ENABLED
    assert is_exactly_once(properties)
    preparing = ExactlyOnceSupport.of({"exactly.once.source.support": " PREPARING "})
    assert (preparing.has_transactional_leader, ExactlyOnceSupport.of({}).has_transactional_leader) == (True, False)
    with pytest.raises(ConfigError, match=r"Invalid value yes for configuration exactly\.once\.source\.support"):
        ExactlyOnceSupport.of({"exactly.once.source.support": "yes"})
    with pytest.raises(ConfigError, match=r"String must be one of \(case insensitive\): "):
        WorkerConfig.parse({**WORKER, "exactly.once.source.support": "yes"})


def test_what_only_a_group_has_does_not_reach_a_standalone_worker_whose_file_serves_both() -> None:
    properties = {**WORKER, "offset.storage.file.filename": "o", "exactly.once.source.support": "enabled"}
    worker = WorkerConfig.parse(properties, STANDALONE)
    assert not is_exactly_once(worker.raw)
    assert (worker.exactly_once, worker.group_id) == (ExactlyOnceSupport.DISABLED, None)
    assert "group.id" not in worker.raw


_PARTITIONS = "Number of partitions must be positive, or -1 to use the broker's default"
_REPLICAS = "Replication factor must be positive and not larger than the number of brokers in the Kafka cluster, or -1 to use the"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        *((f"{kind}.storage.partitions", _PARTITIONS) for kind in ("offset", "status")),
        *((f"{kind}.storage.replication.factor", _REPLICAS) for kind in ("config", "offset", "status")),
    ],
)
def test_sizes_of_internal_topics_are_positive_or_the_brokers(name: str, why: str) -> None:
    for value in ("0", "-2"):
        with pytest.raises(ConfigError, match=f"Invalid value {value} for configuration {name}: {why}"):
            WorkerConfig.parse({**WORKER, name: value})
    assert WorkerConfig.parse({**WORKER, name: "-1"}).raw[name] == "-1"


@pytest.mark.parametrize("missing", ["group.id", "config.storage.topic", "offset.storage.topic", "status.storage.topic", "key.converter"])
def test_a_missing_worker_property_is_named(missing: str) -> None:
    with pytest.raises(ConfigError, match=f'Missing required configuration "{missing}"'):
        WorkerConfig.parse({key: value for key, value in WORKER.items() if key != missing})


def test_standalone_needs_a_file_for_offsets() -> None:
    with pytest.raises(ConfigError, match=r"offset\.storage\.file\.filename"):
        WorkerConfig.parse({"key.converter": JSON, "value.converter": JSON}, STANDALONE)


@pytest.mark.parametrize(
    ("properties", "bound", "expected"),
    [
        ({"listeners": "http://127.0.0.1:8083"}, [], "127.0.0.1:8083"),
        ({"listeners": "http://127.0.0.1:0"}, ["http://127.0.0.1:4711"], "127.0.0.1:4711"),
        ({"listeners": "http://:8083", "rest.advertised.host.name": "w1", "rest.advertised.port": "80"}, [], "w1:80"),
    ],
)
def test_the_worker_id_is_the_advertised_address(properties: dict[str, str], bound: list[str], expected: str) -> None:
    assert WorkerConfig.parse({**WORKER, **properties}).worker_id(bound) == expected


@pytest.mark.parametrize("listener", ["8083", "ftp://:1", "http://a b:1"])
def test_a_malformed_listener_is_refused(listener: str) -> None:
    with pytest.raises(ConfigError, match="Listener"):
        split_listener(listener)


def test_what_the_worker_cannot_do_is_refused_and_not_ignored() -> None:
    with pytest.raises(ConfigError, match="it must be one of All, None, Principal or Allowlist"):
        WorkerConfig.parse({**WORKER, "connector.client.config.override.policy": "com.acme.OurPolicy"})


@pytest.mark.parametrize("name", [FILE_SOURCE, "FileStreamSourceConnector", "FileStreamSource"])
def test_connectors_are_known_by_class_name_and_alias(name: str) -> None:
    assert PLUGINS.connector(name).java_name == FILE_SOURCE


def test_an_unknown_connector_gets_a_sentence_with_what_there_is() -> None:
    with pytest.raises(
        BadRequestError, match=r"matches com\.acme\.Nothing, available connectors are: .*FileStreamSourceConnector \(source"
    ):
        PLUGINS.connector("com.acme.Nothing")


@pytest.mark.parametrize("name", ["os.system", "connectors.file.source:FileStreamSourceConnector", "connect_py.app.cli"])
def test_a_dotted_path_of_a_configuration_is_never_imported(name: str) -> None:
    with pytest.raises(BadRequestError, match="Failed to find any class"):
        PLUGINS.connector(name)


@pytest.mark.parametrize("name", ["com.acme.BrokenConnector", "BrokenConnector", "Broken"])
def test_a_plugin_whose_package_is_missing_says_so(name: str) -> None:
    with pytest.raises(BadRequestError, match=r"com\.acme\.BrokenConnector cannot be loaded: No module named"):
        PLUGINS.connector(name)


def test_a_missing_driver_names_the_extra_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "without_driver.py").write_text("raise ModuleNotFoundError(\"No module named 'psycopg'\", name='psycopg.pq')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigError, match=r"pip install 'connect-py-worker\[postgres\]'"):
        Plugins({"io.debezium.X": "without_driver:X"}).load("io.debezium.X")


def config(**more: str | None) -> dict[str, str | None]:
    given = {"name": "c", "connector.class": FILE_SOURCE, "topic": "t"}
    return {**given, **{key.replace("_", "."): value for key, value in more.items()}}


@pytest.mark.parametrize(
    ("given", "errors"),
    [
        (config(), []),
        (config(tasks_max="0"), ["Invalid value 0 for configuration tasks.max: Value must be at least 1"]),
        (
            config(tasks_max="abc"),
            [
                "Invalid value abc for configuration tasks.max: Not a number of type INT",
                "Invalid value null for configuration tasks.max: Value must be non-null",
            ],
        ),
        (config(errors_tolerance="some"), ["Invalid value some for configuration errors.tolerance: String must be one of: none, all"]),
        (config(name=""), ["Invalid value  for configuration name: String may not be empty"]),
        (config(colour=None), ["Null value can not be supplied as the configuration value."]),
        (
            config(transforms="a, a"),
            [
                "Invalid value [a, a] for configuration transforms: Duplicate alias provided.",
                'Missing required configuration "transforms.a.type" which has no default value.',
            ],
        ),
        (
            config(key_converter="com.acme.X"),
            ["Invalid value com.acme.X for configuration key.converter: Class com.acme.X could not be found."],
        ),
        (
            {**config(transforms="a"), "transforms.a.negate": "true"},
            [
                'Missing required configuration "transforms.a.type" which has no default value.',
                "Config 'transforms.a.negate' was provided but there is no config 'transforms.a.predicate' defining a predicate "
                "to be negated.",
            ],
        ),
        (
            {**config(), "exactly.once.support": "required"},
            [
                "This worker does not have exactly-once source support enabled.",
                "The connector does not support exactly-once semantics with the provided configuration.",
            ],
        ),
        (
            {**config(key_converter=JSON), "key.converter.schemas.enable": "x"},
            ["Invalid value x for configuration schemas.enable: Expected value to be either true or false"],
        ),
    ],
)
def test_each_mistake_has_connects_text(given: dict[str, str | None], errors: list[str]) -> None:
    infos = validate(PLUGINS, {"key.converter": JSON, "value.converter": JSON, "header.converter": JSON}, given)
    assert [error for _, value in infos.configs for error in value.errors] == errors
    assert infos.error_count == len(errors)


def test_a_standalone_worker_says_that_it_has_no_offsets_topics() -> None:
    given = {**config(), "offsets.storage.topic": "own"}
    (warning,) = validate(PLUGINS, {"key.converter": JSON, "value.converter": JSON, "header.converter": JSON}, given).warnings
    assert warning.startswith("The property 'offsets.storage.topic' has no effect: a standalone worker keeps")
    assert validate(PLUGINS, WORKER | {"header.converter": JSON}, given).warnings == []


def test_an_invalid_configuration_is_refused_with_all_errors_in_one_text() -> None:
    with pytest.raises(BadRequestError) as caught:
        raise_if_invalid(validate(PLUGINS, WORKER | {"header.converter": JSON}, config(tasks_max="x")))
    assert str(caught.value).startswith("Connector configuration is invalid and contains the following 2 error(s):\nInvalid value x")
    assert str(caught.value).endswith("`/connector-plugins/{connectorType}/config/validate`")


def test_no_class_is_a_mistake_of_its_own_and_its_text_hides_passwords() -> None:
    with pytest.raises(BadRequestError, match="contains no connector type") as caught:
        validate(PLUGINS, WORKER, {"name": "x", "database.password": "secret1"})
    assert "secret1" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "keys"),
    [
        ({}, ["topics", "topics.regex"]),
        ({"topics": "a", "topics.regex": "b"}, ["topics", "topics.regex"]),
        ({"topics": "a,d", "errors.deadletterqueue.topic.name": "d"}, ["topics"]),
        ({"topics.regex": ".*", "errors.deadletterqueue.topic.name": "d"}, ["topics.regex"]),
        ({"topics": "a", "errors.deadletterqueue.topic.name": "d"}, []),
        ({"topics.regex": "a.*"}, []),
        ({"topics.regex": r"(?<prefix>\w+)\.\Qa.b\E"}, []),
    ],
)
def test_a_sink_needs_topics_of_one_kind_and_not_its_dead_letters(given: dict[str, str], keys: list[str]) -> None:
    assert [key for key, _ in sink_topic_errors(given)] == keys


def test_a_sinks_group_is_connects_or_the_overridden_one() -> None:
    assert sink_group("c", {}) == "connect-c"
    assert sink_group("c", {"consumer.override.group.id": "mine"}) == "mine"


def test_keys_come_in_the_order_of_a_java_hash_map() -> None:
    given = ["connector.class", "tasks.max", "file", "topic", "name"]
    assert list(in_java_order(dict.fromkeys(given))) == ["connector.class", "file", "tasks.max", "name", "topic"]
    assert list(in_java_order({"tasks.max": 1, "name": 2}, copied=True)) == ["name", "tasks.max"]


def test_connector_files_are_json_or_properties(tmp_path: Path) -> None:
    flat, nested, properties = tmp_path / "a.json", tmp_path / "b.json", tmp_path / "c.properties"
    flat.write_text(json.dumps({"name": "a", "tasks.max": 1, "x": True}))
    nested.write_text(json.dumps({"name": "b", "config": {"k": "v"}, "initial_state": "stopped", "unknown": 1}))
    properties.write_text("name=c\nk=v\n")
    assert read_connector_file(str(flat)).config == {"name": "a", "tasks.max": "1", "x": "true"}
    found = read_connector_file(str(nested))
    assert (found.name, found.config, found.state.value) == ("b", {"k": "v", "name": "b"}, "STOPPED")
    assert read_connector_file(str(properties)).config == {"name": "c", "k": "v"}
    properties.write_text("k=v\n")
    with pytest.raises(ConfigError, match="no name"):
        read_connector_file(str(properties))


@pytest.mark.parametrize(("pattern", "problems"), [(r"(?<shop>\w+)\.\Qa.b\E", 0), ("(", 1)])
def test_topics_are_matched_by_java_regexes(pattern: str, problems: int) -> None:
    values = connector_definition(FileStreamSinkConnector).validate({"topics.regex": pattern})
    errors = next(value.errors for value in values if value.name == "topics.regex")
    assert len(errors) == problems
    assert all("Invalid regex: Unclosed group" in error for error in errors)
