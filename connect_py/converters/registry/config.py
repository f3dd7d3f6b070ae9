"""Define the properties that every converter with a registry has (`AbstractKafkaSchemaSerDeConfig.java`, `AbstractDataConfig.java`).

Among them: under which subject a schema is registered (`io.confluent.kafka.serializers.subject.*NameStrategy`), by the Java class names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from connect_py.api.config import REQUIRED, ConfigKey, ConfigType, Importance, between, one_of
from connect_py.converters.base import CONVERTER_TYPE
from connect_py.errors import ConfigError, DataError
from connect_py.tls import CONVERT_TO_PEM

#: (topic, is key, the schema's full name or None) → subject; raises DataError.
SubjectStrategy = Callable[[str, bool, str | None], str]

_PACKAGE = "io.confluent.kafka.serializers.subject."
TOPIC_NAME = f"{_PACKAGE}TopicNameStrategy"


def _topic_name(topic: str, is_key: bool, name: str | None) -> str:
    return f"{topic}-{'key' if is_key else 'value'}"


def _record_name(topic: str, is_key: bool, name: str | None) -> str:
    if name is None:
        side = "key" if is_key else "value"
        raise DataError(f"{side}.subject.name.strategy names subjects after records, but the message {side} has a schema without a name")
    return name


def _topic_record_name(topic: str, is_key: bool, name: str | None) -> str:
    return f"{topic}-{_record_name(topic, is_key, name)}"


_STRATEGIES: Mapping[str, SubjectStrategy] = {
    TOPIC_NAME: _topic_name,
    f"{_PACKAGE}RecordNameStrategy": _record_name,
    f"{_PACKAGE}TopicRecordNameStrategy": _topic_record_name,
}


def subject_strategy(key: str, java_name: str) -> SubjectStrategy:
    """Return the strategy of a class name.

    Args:
        key: the property, for the message.

    Raises:
        ConfigError: there is none of that name; strategies of one's own are not loaded.
    """
    try:
        return _STRATEGIES[java_name]
    except KeyError:
        raise ConfigError(f"Invalid value {java_name} for configuration {key}: it must be one of {', '.join(_STRATEGIES)}") from None


#: What all formats call unions and enums with ``generalized.sum.type.support``.
GENERAL_UNION = "org.apache.kafka.connect.data.Union"
GENERAL_ENUM = "org.apache.kafka.connect.data.Enum"
GENERAL_UNION_PREFIX = "connect_union_"

_HIGH, _MEDIUM, _LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
_BOOLEAN, _STRING, _INT, _LIST, _PASSWORD = ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.INT, ConfigType.LIST, ConfigType.PASSWORD


def flag(name: str, default: bool, what: str, importance: Importance = _MEDIUM) -> ConfigKey:
    """Return a boolean key."""
    return ConfigKey(name, _BOOLEAN, default, importance, what)


KEYS: tuple[ConfigKey, ...] = (
    CONVERTER_TYPE,
    ConfigKey(
        "schema.registry.url", _LIST, REQUIRED, _HIGH, "The schema registry's addresses, separated by commas; each is tried in turn."
    ),
    flag("auto.register.schemas", True, "Whether a schema that the registry does not know yet is registered."),
    flag("normalize.schemas", False, "Whether the registry is asked to ignore differences that have no meaning, such as order."),
    flag("use.latest.version", False, "With auto.register.schemas=false: write with the subject's latest schema.", _LOW),
    ConfigKey("key.subject.name.strategy", _STRING, TOPIC_NAME, _MEDIUM, "Names the subject of keys' schemas."),
    ConfigKey("value.subject.name.strategy", _STRING, TOPIC_NAME, _MEDIUM, "Names the subject of values' schemas."),
    ConfigKey(
        "basic.auth.credentials.source",
        _STRING,
        "URL",
        _MEDIUM,
        "Where name and password come from: URL or USER_INFO.",
        validator=one_of("URL", "USER_INFO"),
    ),
    ConfigKey("basic.auth.user.info", _PASSWORD, "", _MEDIUM, "Name and password as name:password."),
    ConfigKey("schema.registry.basic.auth.user.info", _PASSWORD, "", _MEDIUM, "As basic.auth.user.info (the older name)."),
    ConfigKey(
        "bearer.auth.credentials.source",
        _STRING,
        "",
        _MEDIUM,
        "STATIC_TOKEN or OAUTHBEARER.",
        validator=one_of("", "STATIC_TOKEN", "OAUTHBEARER"),
    ),
    ConfigKey("bearer.auth.token", _PASSWORD, "", _MEDIUM, "The token of STATIC_TOKEN."),
    ConfigKey("bearer.auth.issuer.endpoint.url", _STRING, "", _MEDIUM, "Where OAUTHBEARER asks for tokens."),
    ConfigKey("bearer.auth.client.id", _STRING, "", _MEDIUM, "The client's id for OAUTHBEARER."),
    ConfigKey("bearer.auth.client.secret", _PASSWORD, "", _MEDIUM, "The client's secret for OAUTHBEARER."),
    ConfigKey("bearer.auth.scope", _STRING, "", _MEDIUM, "The scope to ask for."),
    ConfigKey("bearer.auth.logical.cluster", _STRING, "", _MEDIUM, "Sent along with the token."),
    ConfigKey("bearer.auth.identity.pool.id", _STRING, "", _MEDIUM, "Sent along with the token."),
    *(
        ConfigKey(f"{prefix}ssl.{name}", type_, "", _MEDIUM, what)
        for prefix in ("", "schema.registry.")
        for name, type_, what in (
            ("truststore.location", _STRING, "A PEM file of the authorities to trust."),
            ("truststore.type", _STRING, "PEM."),
            ("keystore.location", _STRING, "A PEM file with the client's key and certificate."),
            ("keystore.type", _STRING, "PEM."),
            ("key.password", _PASSWORD, "Opens the client's key."),
        )
    ),
    ConfigKey("proxy.host", _STRING, "", _LOW, "A proxy on the way to the registry."),
    ConfigKey("proxy.port", _INT, -1, _LOW, "The proxy's port."),
    ConfigKey("http.read.timeout.ms", _INT, 60000, _LOW, "How long an answer may take.", validator=between(1)),
    ConfigKey("max.retries", _INT, 3, _LOW, "How often a request is repeated while the registry does not answer.", validator=between(0)),
    ConfigKey("retries.wait.ms", _INT, 1000, _LOW, "The longest wait before the first repetition.", validator=between(0)),
    ConfigKey("retries.max.wait.ms", _INT, 20000, _LOW, "The longest wait before any repetition.", validator=between(0)),
    flag("generalized.sum.type.support", False, "Whether enums and unions are told in a way that all three formats share."),
    flag("ignore.default.for.nullables", False, "Whether a null stays null where the field has a default."),
    ConfigKey("schemas.cache.config", _INT, 1000, _LOW, "How many schemas are remembered."),
)


def mapping_values(keys: Iterable[ConfigKey], values: Mapping[str, Any]) -> list[Any]:
    """Return the values of a format's own keys, in their order, then of the two keys by which every format's mapping is changed."""
    return [values[name] for name in (*(key.name for key in keys), "generalized.sum.type.support", "ignore.default.for.nullables")]


class WriteSettings(NamedTuple):
    """How schemas get into the registry."""

    auto_register: bool
    use_latest: bool
    normalize: bool
    strategy: SubjectStrategy


def write_settings(values: Mapping[str, Any], *, is_key: bool) -> WriteSettings:
    """From parsed properties. Raises ConfigError."""
    key = f"{'key' if is_key else 'value'}.subject.name.strategy"
    return WriteSettings(
        values["auto.register.schemas"], values["use.latest.version"], values["normalize.schemas"], subject_strategy(key, values[key])
    )


def ssl_value(values: Mapping[str, Any], name: str) -> Any:
    """Return one of the ssl properties, under the longer of its two names first."""
    return values[f"schema.registry.ssl.{name}"] or values[f"ssl.{name}"]


def client_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of the client library. Raises ConfigError for a store that is no PEM file, or half a pair of credentials."""
    urls = [url for url in values["schema.registry.url"] if url]
    if not urls or not all(url.startswith(("http://", "https://")) for url in urls):
        raise ConfigError("schema.registry.url must be one or more addresses that begin with http:// or https://")
    found: dict[str, Any] = {
        "url": ",".join(urls),
        "timeout": values["http.read.timeout.ms"] / 1000,
        "max.retries": values["max.retries"],
        "retries.wait.ms": values["retries.wait.ms"],
        "retries.max.wait.ms": values["retries.max.wait.ms"],
        "cache.capacity": max(values["schemas.cache.config"], 1),
    }
    if values["proxy.host"]:
        found["proxy"] = f"http://{values['proxy.host']}:{values['proxy.port']}"
    return found | _basic(values) | _bearer(values) | _tls(values)


def _basic(values: Mapping[str, Any]) -> dict[str, Any]:
    if values["basic.auth.credentials.source"] != "USER_INFO":
        return {}
    secret = values["schema.registry.basic.auth.user.info"].reveal() or values["basic.auth.user.info"].reveal()
    if ":" not in secret:
        raise ConfigError("basic.auth.credentials.source=USER_INFO needs basic.auth.user.info in the form name:password")
    return {"basic.auth.user.info": secret}


def _bearer(values: Mapping[str, Any]) -> dict[str, Any]:
    source = values["bearer.auth.credentials.source"]
    if not source:
        return {}
    found = {
        "bearer.auth.credentials.source": source,
        "bearer.auth.logical.cluster": values["bearer.auth.logical.cluster"],
        "bearer.auth.identity.pool.id": values["bearer.auth.identity.pool.id"],
    }
    if source == "STATIC_TOKEN":
        return found | {"bearer.auth.token": values["bearer.auth.token"].reveal()}
    names = ("bearer.auth.issuer.endpoint.url", "bearer.auth.client.id", "bearer.auth.scope")
    return found | {name: values[name] for name in names} | {"bearer.auth.client.secret": values["bearer.auth.client.secret"].reveal()}


def _tls(values: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    trust, own = _pem(values, "truststore"), _pem(values, "keystore")
    if trust:
        found["ssl.ca.location"] = trust
    if own:
        found |= {"ssl.certificate.location": own, "ssl.key.location": own}
        if ssl_value(values, "key.password").reveal():
            found["ssl.key.password"] = ssl_value(values, "key.password").reveal()
    return found


def _pem(values: Mapping[str, Any], store: str) -> str | None:
    location = ssl_value(values, f"{store}.location")
    if location and ssl_value(values, f"{store}.type").upper() != "PEM":
        raise ConfigError(
            f"ssl.{store}.location names a Java key store or one of unknown type. {CONVERT_TO_PEM.format(prefix=f'ssl.{store}')}"
        )
    return location or None
