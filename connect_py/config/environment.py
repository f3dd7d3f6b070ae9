"""Read worker properties from environment variables, as the Debezium and the Confluent Connect images take them.

Pure: a mapping goes in, properties come out; nothing is read, logged or checked against a server, and no error text holds a value.

Rules, from `connect-base/3.6/docker-entrypoint.sh` of debezium/container-images and `env_to_props` of Confluent's docker utilities:

- `BOOTSTRAP_SERVERS`, `GROUP_ID`, `CONFIG_STORAGE_TOPIC` and their kin (`_NAMED`) set one property each.
- `CONNECT_<NAME>` sets any property: lower case, `_` becomes `.`, and by Confluent's rule `__` becomes `_` and `___` becomes `-`
  (Debezium's script would make `..` of two; no property has that, so both rules live together).
- The defaults are the image's: its script's, and those of the `connect-distributed.properties` that it starts from.

Decided otherwise than in the image:

- A default never overrides a `CONNECT_` variable. The image's script overwrites `CONNECT_GROUP_ID` with its default `GROUP_ID=1`.
- Without any broker address the image continues with 0.0.0.0:9092, where no broker can be; here it is an error.
- `REST_PORT` and `REST_HOST_NAME` become `listeners`: Kafka 3.0 removed `rest.port` and `rest.host.name`, so in
  today's image they do nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from connect_py.errors import ConfigError

_JSON = "org.apache.kafka.connect.json.JsonConverter"

#: variable → (property, default); None: no default, the worker's own applies.
_NAMED: dict[str, tuple[str, str | None]] = {
    "BOOTSTRAP_SERVERS": ("bootstrap.servers", None),
    "GROUP_ID": ("group.id", "1"),
    "CONFIG_STORAGE_TOPIC": ("config.storage.topic", None),
    "OFFSET_STORAGE_TOPIC": ("offset.storage.topic", None),
    "STATUS_STORAGE_TOPIC": ("status.storage.topic", "connect-status"),
    "KEY_CONVERTER": ("key.converter", _JSON),
    "VALUE_CONVERTER": ("value.converter", _JSON),
    "OFFSET_FLUSH_INTERVAL_MS": ("offset.flush.interval.ms", "60000"),
    "OFFSET_FLUSH_TIMEOUT_MS": ("offset.flush.timeout.ms", "5000"),
    "SHUTDOWN_TIMEOUT": ("task.shutdown.graceful.timeout.ms", "10000"),
    "ADVERTISED_PORT": ("rest.advertised.port", None),
}

#: Kafka's sample `connect-distributed.properties`, which the image starts from, has 1 where Connect's own default is 3.
_SAMPLE_DEFAULTS = {
    "config.storage.replication.factor": "1",
    "offset.storage.replication.factor": "1",
    "status.storage.replication.factor": "1",
}

_REQUIRED = {
    "BOOTSTRAP_SERVERS": "the address of a Kafka broker, such as kafka:9092",
    "CONFIG_STORAGE_TOPIC": "the topic that holds connector configurations (one partition, compacted)",
    "OFFSET_STORAGE_TOPIC": "the topic that holds source offsets (compacted)",
}

#: Images read these for log4j, and this worker reads its own; they are no worker properties.
_NO_PROPERTIES = ("CONNECT_LOG4J", "CONNECT_PY_")

#: Where the JMX exporter of the Debezium image answers.
_EXPORTER_PORT = 9404

_PREFIX = "CONNECT_"
_ESCAPES = {"_": ".", "__": "_", "___": "-"}


def worker_properties(environ: Mapping[str, str]) -> dict[str, str]:
    """Worker properties that the environment describes.

    A named variable wins over the `CONNECT_` variable of the same property, and either over a default. An empty named variable counts
    as missing; an empty `CONNECT_` variable is an empty value.

    Args:
        environ: environment variables.

    Returns:
        property name → value, as a worker properties file would hold them.

    Raises:
        ConfigError: a variable is missing, or asks for something that this worker does not have; the text names the variable.
    """
    if environ.get("APICURIO_REGISTRY") or environ.get("ENABLE_APICURIO_CONVERTERS", "").lower() == "true":
        raise ConfigError(
            "APICURIO_REGISTRY and ENABLE_APICURIO_CONVERTERS ask for Apicurio's converters, which this worker does not have. "
            "Unset them and choose a converter with KEY_CONVERTER and VALUE_CONVERTER."
        )
    generic = {
        property_name(name): value for name, value in environ.items() if name.startswith(_PREFIX) and not name.startswith(_NO_PROPERTIES)
    }
    properties = dict(_SAMPLE_DEFAULTS)
    properties.update({key: default for key, default in _NAMED.values() if default is not None})
    properties.update(_linked_brokers(environ))
    properties.update(generic)
    properties.update({key: environ[name] for name, (key, _) in _NAMED.items() if environ.get(name)})
    _take_advertised_host(properties, environ)
    _take_listener(properties, environ)
    if environ.get("ENABLE_JMX_EXPORTER", "").lower() == "true":
        properties.setdefault("metrics.listeners", f"http://:{_EXPORTER_PORT}")
    if environ.get("KAFKA_CONNECT_PLUGINS_DIR"):
        properties.setdefault("plugin.path", environ["KAFKA_CONNECT_PLUGINS_DIR"])
    for name, what in _REQUIRED.items():
        if not properties.get(_NAMED[name][0]):
            raise ConfigError(f"{name} is not set (nor {_PREFIX}{name}). It must be {what}.")
    return properties


#: Property → the variables that give it where no variable of its own does.
_DERIVED = {
    "rest.advertised.host.name": ("HOST_NAME",),
    "listeners": ("REST_PORT", "CONNECT_REST_PORT", "REST_HOST_NAME", "CONNECT_REST_HOST_NAME"),
    "metrics.listeners": ("ENABLE_JMX_EXPORTER",),
    "plugin.path": ("KAFKA_CONNECT_PLUGINS_DIR",),
}


def variables_of(environ: Mapping[str, str]) -> dict[str, str]:
    """Return which variable has set a property of `worker_properties`; properties with the image's defaults are not there."""
    found = {key: next((name for name in names if environ.get(name)), "") for key, names in _DERIVED.items()}
    found["bootstrap.servers"] = next((name for name, value in environ.items() if name.endswith("PORT_9092_TCP") and value), "")
    found |= {property_name(name): name for name in environ if name.startswith(_PREFIX) and not name.startswith(_NO_PROPERTIES)}
    found |= {key: name for name, (key, _) in _NAMED.items() if environ.get(name)}
    if environ.get("ADVERTISED_HOST_NAME"):
        found["rest.advertised.host.name"] = "ADVERTISED_HOST_NAME"
    return {key: name for key, name in found.items() if name}


#: Variables of the Debezium image that have no effect, and why.
_NO_EFFECT = {
    "ENABLE_DEBEZIUM_KC_REST_EXTENSION": "Debezium's REST extension (/debezium/…) is a Java class, and this worker loads none. To check a "
    "configuration, use PUT /connector-plugins/{class}/config/validate",
    "ENABLE_JOLOKIA": "there is no JMX; GET /metrics shows the figures",
}


def environment_warnings(environ: Mapping[str, str]) -> list[str]:
    """Return a sentence for each variable that asks for something that is passed over."""
    return [
        f"The variable {name} has no effect: {why}." for name, why in _NO_EFFECT.items() if environ.get(name, "").strip().lower() == "true"
    ]


def property_name(variable: str) -> str:
    """`CONNECT_FOO_BAR__BAZ___QUX` → `foo.bar_baz-qux`."""
    return re.sub("_{1,3}", lambda found: _ESCAPES[found.group()], variable.removeprefix(_PREFIX)).lower()


def _linked_brokers(environ: Mapping[str, str]) -> dict[str, str]:
    """The tutorial's `--link kafka:kafka` gives `KAFKA_PORT_9092_TCP=tcp://172.17.0.3:9092` in place of BOOTSTRAP_SERVERS."""
    found = {value.removeprefix("tcp://") for name, value in environ.items() if name.endswith("PORT_9092_TCP") and value}
    return {"bootstrap.servers": ",".join(sorted(found))} if found else {}


def _take_advertised_host(properties: dict[str, str], environ: Mapping[str, str]) -> None:
    """`HOST_NAME` is only the default of `ADVERTISED_HOST_NAME`. The image falls back to its own address; so does the worker."""
    advertised = environ.get("ADVERTISED_HOST_NAME") or properties.get("rest.advertised.host.name") or environ.get("HOST_NAME")
    if advertised:
        properties["rest.advertised.host.name"] = advertised


def _take_listener(properties: dict[str, str], environ: Mapping[str, str]) -> None:
    """`listeners` as given, else from the host name and port to listen on; no host name means every interface."""
    port = environ.get("REST_PORT") or properties.pop("rest.port", None)
    host = environ.get("REST_HOST_NAME") or properties.pop("rest.host.name", None)
    properties.pop("rest.port", None)
    properties.pop("rest.host.name", None)
    properties.setdefault("listeners", f"http://{host or ''}:{port or '8083'}")
