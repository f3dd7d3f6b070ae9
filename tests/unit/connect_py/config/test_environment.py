"""Environment variables of the Debezium and the Confluent Connect images become worker properties."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_py.config.environment import environment_warnings, property_name, variables_of, worker_properties
from connect_py.errors import ConfigError

TUTORIAL = {
    "BOOTSTRAP_SERVERS": "kafka:9092",
    "GROUP_ID": "1",
    "CONFIG_STORAGE_TOPIC": "my_connect_configs",
    "OFFSET_STORAGE_TOPIC": "my_connect_offsets",
    "STATUS_STORAGE_TOPIC": "my_connect_statuses",
}


def test_the_tutorials_variables_give_the_properties_that_its_image_writes() -> None:
    assert worker_properties(TUTORIAL) == {
        "bootstrap.servers": "kafka:9092",
        "group.id": "1",
        "config.storage.topic": "my_connect_configs",
        "offset.storage.topic": "my_connect_offsets",
        "status.storage.topic": "my_connect_statuses",
        "config.storage.replication.factor": "1",
        "offset.storage.replication.factor": "1",
        "status.storage.replication.factor": "1",
        "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "offset.flush.interval.ms": "60000",
        "offset.flush.timeout.ms": "5000",
        "task.shutdown.graceful.timeout.ms": "10000",
        "listeners": "http://:8083",
    }


def test_named_variables_set_their_properties() -> None:
    found = worker_properties(
        TUTORIAL
        | {
            "KEY_CONVERTER": "org.apache.kafka.connect.storage.StringConverter",
            "VALUE_CONVERTER": "org.apache.kafka.connect.converters.ByteArrayConverter",
            "OFFSET_FLUSH_INTERVAL_MS": "1000",
            "OFFSET_FLUSH_TIMEOUT_MS": "2000",
            "SHUTDOWN_TIMEOUT": "3000",
            "REST_PORT": "8084",
            "REST_HOST_NAME": "127.0.0.1",
            "ADVERTISED_HOST_NAME": "worker-1",
            "ADVERTISED_PORT": "80",
        }
    )
    assert found["key.converter"] == "org.apache.kafka.connect.storage.StringConverter"
    assert found["value.converter"] == "org.apache.kafka.connect.converters.ByteArrayConverter"
    assert found["offset.flush.interval.ms"] == "1000"
    assert found["offset.flush.timeout.ms"] == "2000"
    assert found["task.shutdown.graceful.timeout.ms"] == "3000"
    assert found["listeners"] == "http://127.0.0.1:8084"
    assert found["rest.advertised.host.name"] == "worker-1"
    assert found["rest.advertised.port"] == "80"


def test_confluents_variables_alone_are_enough_and_beat_defaults() -> None:
    found = worker_properties(
        {
            "CONNECT_BOOTSTRAP_SERVERS": "broker:29092",
            "CONNECT_GROUP_ID": "compose-connect-group",
            "CONNECT_CONFIG_STORAGE_TOPIC": "docker-connect-configs",
            "CONNECT_CONFIG_STORAGE_REPLICATION_FACTOR": "3",
            "CONNECT_OFFSET_STORAGE_TOPIC": "docker-connect-offsets",
            "CONNECT_STATUS_STORAGE_TOPIC": "docker-connect-status",
            "CONNECT_KEY_CONVERTER": "org.apache.kafka.connect.storage.StringConverter",
            "CONNECT_VALUE_CONVERTER_SCHEMAS_ENABLE": "false",
            "CONNECT_REST_ADVERTISED_HOST_NAME": "connect",
            "CONNECT_OFFSET_FLUSH_INTERVAL_MS": "10000",
            "CONNECT_LISTENERS": "http://0.0.0.0:28083",
            "HOST_NAME": "ignored-because-connect-rest-advertised-host-name-is-given",
        }
    )
    assert found["group.id"] == "compose-connect-group"
    assert found["config.storage.replication.factor"] == "3"
    assert found["key.converter"] == "org.apache.kafka.connect.storage.StringConverter"
    assert found["value.converter.schemas.enable"] == "false"
    assert found["rest.advertised.host.name"] == "connect"
    assert found["offset.flush.interval.ms"] == "10000"
    assert found["listeners"] == "http://0.0.0.0:28083"


def test_a_named_variable_beats_the_connect_variable_of_the_same_property() -> None:
    found = worker_properties(
        TUTORIAL | {"CONNECT_GROUP_ID": "other", "ADVERTISED_HOST_NAME": "a", "CONNECT_REST_ADVERTISED_HOST_NAME": "b"}
    )
    assert found["group.id"] == "1"
    assert found["rest.advertised.host.name"] == "a"


@pytest.mark.parametrize(
    ("variable", "name"),
    [
        ("CONNECT_TOPIC_CREATION_ENABLE", "topic.creation.enable"),
        ("CONNECT_PRODUCER_COMPRESSION_TYPE", "producer.compression.type"),
        ("CONNECT_FOO_BAR__BAZ___QUX", "foo.bar_baz-qux"),
        ("CONNECT_CONFIG_PROVIDERS_ENV_CLASS", "config.providers.env.class"),
    ],
)
def test_underscores_become_dots_and_escapes_become_underscore_and_dash(variable: str, name: str) -> None:
    assert property_name(variable) == name


@given(st.from_regex(r"[a-z][a-z0-9]*([._-][a-z0-9]+)*", fullmatch=True))
def test_any_lower_case_property_can_be_written_as_a_variable(name: str) -> None:
    variable = "CONNECT_" + name.replace("_", "__").replace("-", "___").replace(".", "_").upper()
    assert property_name(variable) == name


def test_host_name_is_advertised_but_not_bound_to() -> None:
    found = worker_properties(TUTORIAL | {"HOST_NAME": "10.0.0.7"})
    assert found["rest.advertised.host.name"] == "10.0.0.7"
    assert found["listeners"] == "http://:8083"


def test_connect_rest_port_of_older_images_still_chooses_the_port() -> None:
    found = worker_properties(TUTORIAL | {"CONNECT_REST_PORT": "28082"})
    assert found["listeners"] == "http://:28082"
    assert "rest.port" not in found


def test_the_images_folder_of_plugins_is_plugin_path_unless_that_is_set() -> None:
    assert worker_properties(TUTORIAL | {"KAFKA_CONNECT_PLUGINS_DIR": "/kafka/connect"})["plugin.path"] == "/kafka/connect"
    both = TUTORIAL | {"KAFKA_CONNECT_PLUGINS_DIR": "/kafka/connect", "CONNECT_PLUGIN_PATH": "/mine"}
    assert worker_properties(both)["plugin.path"] == "/mine"


def test_log4j_variables_are_no_worker_properties() -> None:
    found = worker_properties(TUTORIAL | {"CONNECT_LOG4J_ROOT_LOGLEVEL": "DEBUG", "CONNECT_LOG4J_LOGGERS": "x=DEBUG"})
    assert not [name for name in found if "log4j" in name]


def test_a_linked_container_stands_in_for_bootstrap_servers() -> None:
    linked = {k: v for k, v in TUTORIAL.items() if k != "BOOTSTRAP_SERVERS"} | {
        "KAFKA_PORT_9092_TCP": "tcp://172.17.0.3:9092",
        "KAFKA2_PORT_9092_TCP": "tcp://172.17.0.4:9092",
    }
    assert worker_properties(linked)["bootstrap.servers"] == "172.17.0.3:9092,172.17.0.4:9092"
    assert worker_properties(linked | {"BOOTSTRAP_SERVERS": "k:1"})["bootstrap.servers"] == "k:1"


@pytest.mark.parametrize("missing", ["BOOTSTRAP_SERVERS", "CONFIG_STORAGE_TOPIC", "OFFSET_STORAGE_TOPIC"])
@pytest.mark.parametrize("how", ["absent", "empty"])
def test_a_missing_variable_is_named_and_no_value_is_shown(missing: str, how: str) -> None:
    environ = TUTORIAL | {"CONNECT_SASL_JAAS_CONFIG": "password=hunter2"}
    if how == "absent":
        del environ[missing]
    else:
        environ[missing] = ""
    with pytest.raises(ConfigError, match=f"^{missing} is not set") as caught:
        worker_properties(environ)
    assert "hunter2" not in str(caught.value)


def test_apicurio_is_refused_with_what_to_do() -> None:
    with pytest.raises(ConfigError, match="KEY_CONVERTER"):
        worker_properties(TUTORIAL | {"APICURIO_REGISTRY": "http://registry:8080"})


def test_nothing_of_the_rest_of_the_environment_gets_in() -> None:
    assert worker_properties(TUTORIAL | {"PATH": "/bin", "AWS_SECRET_ACCESS_KEY": "x", "CONNECTX": "y"}) == worker_properties(TUTORIAL)


def test_a_variable_of_the_image_that_does_nothing_is_said_to() -> None:
    (warning,) = environment_warnings({"ENABLE_DEBEZIUM_KC_REST_EXTENSION": "TRUE", "ENABLE_JOLOKIA": "false"})
    assert warning.startswith("The variable ENABLE_DEBEZIUM_KC_REST_EXTENSION has no effect: ")
    assert environment_warnings({}) == []


def test_each_property_is_traced_to_the_variable_that_has_set_it() -> None:
    environ = {
        **TUTORIAL,
        "CONNECT_REST_ADVERTISED_PORT": "81",
        "CONNECT_GROUP_ID": "other",
        "REST_PORT": "8084",
        "HOST_NAME": "h",
        "KAFKA_CONNECT_PLUGINS_DIR": "/p",
        "CONNECT_LOG4J_ROOT_LOGLEVEL": "DEBUG",
        "PATH": "/bin",
    }
    found = variables_of(environ)
    assert found == {
        "bootstrap.servers": "BOOTSTRAP_SERVERS",
        "group.id": "GROUP_ID",
        "config.storage.topic": "CONFIG_STORAGE_TOPIC",
        "offset.storage.topic": "OFFSET_STORAGE_TOPIC",
        "status.storage.topic": "STATUS_STORAGE_TOPIC",
        "rest.advertised.port": "CONNECT_REST_ADVERTISED_PORT",
        "listeners": "REST_PORT",
        "rest.advertised.host.name": "HOST_NAME",
        "plugin.path": "KAFKA_CONNECT_PLUGINS_DIR",
    }
    assert found.keys() <= worker_properties(environ).keys()
    own = variables_of({**environ, "CONNECT_LISTENERS": "http://:1", "CONNECT_PLUGIN_PATH": "/q", "ADVERTISED_HOST_NAME": "a"})
    assert (own["listeners"], own["plugin.path"], own["rest.advertised.host.name"]) == (
        "CONNECT_LISTENERS",
        "CONNECT_PLUGIN_PATH",
        "ADVERTISED_HOST_NAME",
    )
    assert variables_of({"KAFKA_PORT_9092_TCP": "tcp://172.17.0.3:9092"}) == {"bootstrap.servers": "KAFKA_PORT_9092_TCP"}
