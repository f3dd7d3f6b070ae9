"""Values that live elsewhere: variables, the providers that resolve them, and that none of what they give is shown."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path

import pytest

from connect_py.api.provider import ConfigData, ConfigProvider
from connect_py.errors import BadRequestError, ConfigError
from connect_py.herder.validation import validate
from connect_py.log.redact import PROVIDED, Redactor
from connect_py.plugins.registry import Plugins
from connect_py.providers.builtin import DirectoryConfigProvider, EnvVarConfigProvider, FileConfigProvider
from connect_py.providers.resolver import Reloads, Resolver, resolve_worker_properties, variables_in, with_variables_kept

JSON = "org.apache.kafka.connect.json.JsonConverter"
SOURCE = {
    "name": "lines",
    "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
    "tasks.max": "1",
    "file": "/in.txt",
    "topic": "lines",
}
PLUGINS = Plugins(
    {
        SOURCE["connector.class"]: "connectors.file.source:FileStreamSourceConnector",
        JSON: "connect_py.converters.json_converter:JsonConverter",
        "org.apache.kafka.connect.storage.SimpleHeaderConverter": "connect_py.converters.primitive:SimpleHeaderConverter",
        FileConfigProvider.java_name: "connect_py.providers.builtin:FileConfigProvider",
    }
)
WORKER = {"group.id": "g", "key.converter": JSON, "value.converter": JSON}


class Vault(ConfigProvider):
    """A provider as somebody else might write it."""

    java_name = "com.acme.Vault"

    def __init__(self, ttl_ms: int | None = None, error: Exception | None = None) -> None:
        self.asked: list[tuple[str, set[str]]] = []
        self._ttl_ms = ttl_ms
        self._error = error

    def get(self, path: str, keys: Collection[str]) -> ConfigData:
        self.asked.append((path, set(keys)))
        if self._error:
            raise self._error
        return ConfigData({key: f"{key} of {path}" for key in keys if key != "none"}, self._ttl_ms)


@pytest.fixture(autouse=True)
def provided() -> Iterator[Redactor]:
    """What this process's providers gave; a test's own is forgotten after it."""
    yield PROVIDED
    for owner in ("", "c", "lines"):
        PROVIDED.forget(owner)


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    path = tmp_path / "db.properties"
    path.write_text("password=s3cr3t value\nport=x17x\n")
    return path


def test_a_variable_is_read_as_kafka_reads_it() -> None:
    found = variables_in("${a:b} ${a:b:c} ${a:b:c:d} ${plain} $ {a:b} ${:}")
    assert [(each.provider, each.path, each.key) for each in found] == [("a", "", "b"), ("a", "b", "c"), ("a", "b", "c:d"), ("", "", "")]


def test_each_provider_and_path_is_asked_once() -> None:
    vault = Vault()
    resolved = Resolver({"v": vault}).resolve(
        {"one": "${v:db:user}/${v:db:password}", "two": "${v:db:user}", "three": "as it is", "four": None}
    )
    assert resolved.values == {"one": "user of db/password of db", "two": "user of db", "three": "as it is", "four": None}
    assert vault.asked == [("db", {"user", "password"})]


def test_what_is_not_found_stays_as_it_is_written_and_is_explained() -> None:
    resolver = Resolver({"v": Vault()})
    resolved = resolver.resolve({"a": "${v:p:none}", "b": "${w:p:k}"})
    assert resolved.values == {"a": "${v:p:none}", "b": "${w:p:k}"}
    explained = {key: resolver.explain_missing(variable) for key, variable in resolved.missing}
    assert explained == {
        "a": "the config provider 'v' has no value of 'none' at p, or may not read it",
        "b": "this worker has no config provider 'w' (config.providers: v)",
    }


def test_what_a_provider_gives_is_not_read_for_variables_again() -> None:
    class Echo(Vault):
        def get(self, path: str, keys: Collection[str]) -> ConfigData:
            return ConfigData(dict.fromkeys(keys, "${v:p:other}"))

    assert Resolver({"v": Echo()}).resolve({"a": "${v:p:k}"}).values == {"a": "${v:p:other}"}


def test_an_error_of_somebody_elses_provider_shows_its_class_and_not_its_text() -> None:
    resolver = Resolver({"v": Vault(error=RuntimeError("the token s3cr3t is wrong"))})
    with pytest.raises(ConfigError, match=r"^The config provider 'v' could not read db: RuntimeError$"):
        resolver.resolve({"a": "${v:db:k}"})


def test_the_file_provider_reads_properties_anew_each_time(secrets: Path) -> None:
    provider = FileConfigProvider()
    provider.configure({})
    assert provider.get(str(secrets), ["password", "none"]).values == {"password": "s3cr3t value"}
    secrets.write_text("password=rotated")
    assert provider.get(str(secrets), ["password"]).values == {"password": "rotated"}
    assert provider.get("", ["password"]).values == {}


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"^Could not read properties from file {tmp_path}/none$"):
        FileConfigProvider().get(f"{tmp_path}/none", ["k"])


@pytest.mark.parametrize("outside", ["../db.properties", "in/../../db.properties", "/etc/passwd"])
def test_nothing_outside_of_the_allowed_paths_is_read(secrets: Path, outside: str) -> None:
    allowed = secrets.parent / "allowed"
    allowed.mkdir()
    provider = FileConfigProvider()
    provider.configure({"allowed.paths": str(allowed)})
    assert provider.get(f"{allowed}/{outside}" if not outside.startswith("/") else outside, ["password"]).values == {}
    (allowed / "own.properties").write_text("k=v")
    assert provider.get(f"{allowed}/own.properties", ["k"]).values == {"k": "v"}


def test_a_sibling_with_the_same_beginning_is_outside(tmp_path: Path) -> None:
    (tmp_path / "sec").mkdir()
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "k").write_text("v")
    provider = DirectoryConfigProvider()
    provider.configure({"allowed.paths": str(tmp_path / "sec")})
    assert provider.get(str(tmp_path / "secrets"), ["k"]).values == {}


@pytest.mark.parametrize(("paths", "why"), [("relative", "is not absolute"), ("/no/such/place", "does not exist")])
def test_allowed_paths_must_be_absolute_and_exist(paths: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        FileConfigProvider().configure({"allowed.paths": paths})


def test_the_directory_provider_reads_whole_files_and_only_those_in_it(tmp_path: Path) -> None:
    (tmp_path / "pw").write_text("two\nlines\n")
    (tmp_path / "folder").mkdir()
    (tmp_path.parent / "outside").write_text("no")
    found = DirectoryConfigProvider().get(str(tmp_path), ["pw", "folder", "none", "../outside"])
    assert found.values == {"pw": "two\nlines\n"}
    assert DirectoryConfigProvider().get(f"{tmp_path}/none", ["pw"]).values == {}


def test_the_environment_provider_shows_only_what_its_pattern_matches() -> None:
    provider = EnvVarConfigProvider({"DB_PASSWORD": "p", "HOME": "/root"})
    assert provider.get("", ["DB_PASSWORD", "HOME"]).values == {"DB_PASSWORD": "p", "HOME": "/root"}
    provider.configure({"allowlist.pattern": "DB_.*"})
    assert provider.get("", ["DB_PASSWORD", "HOME", "NONE"]).values == {"DB_PASSWORD": "p"}
    with pytest.raises(ConfigError, match=r"^Path is not supported for EnvVarConfigProvider, invalid value '/x'$"):
        provider.get("/x", ["HOME"])


def load(name: str) -> type:
    """Plugins with one that is no provider."""
    if name == "com.acme.Vault":
        return Vault
    return PLUGINS.load(name)


@pytest.mark.parametrize(
    ("properties", "text"),
    [
        ({"config.providers": "a"}, r"config\.providers\.a\.class is not set"),
        (
            {"config.providers": "a", "config.providers.a.class": "com.acme.None"},
            r"config\.providers\.a\.class: Class com\.acme\.None could not",
        ),
        ({"config.providers": "a", "config.providers.a.class": JSON}, "it is no config provider"),
        (
            {
                "config.providers": "a",
                "config.providers.a.class": FileConfigProvider.java_name,
                "config.providers.a.param.allowed.paths": "x",
            },
            r"refuses its parameters \(config\.providers\.a\.param\.\*\): Path x is not absolute",
        ),
    ],
)
def test_a_provider_that_cannot_be_had_keeps_the_worker_from_starting(properties: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        resolve_worker_properties(properties, load)


def test_a_worker_resolves_its_own_properties(secrets: Path, provided: Redactor) -> None:
    properties = {
        "config.providers": "file",
        "config.providers.file.class": FileConfigProvider.java_name,
        "producer.sasl.jaas.config": f"x ${{file:{secrets}:password}};",
        "group.id": f"${{file:{secrets}:port}}",
    }
    resolved = resolve_worker_properties(properties, load, shown=["group.id"])
    assert (resolved["producer.sasl.jaas.config"], resolved["group.id"]) == ("x s3cr3t value;", "x17x")
    assert provided("with s3cr3t value at x17x") == "with [hidden] at x17x"


def resolver_of(secrets: Path) -> tuple[Resolver, Callable[[str], str]]:
    provider = FileConfigProvider()
    provider.configure({"allowed.paths": str(secrets.parent)})
    return Resolver({"file": provider}), lambda key: f"${{file:{secrets}:{key}}}"


def test_validation_sees_the_values_and_shows_the_variables(secrets: Path) -> None:
    resolver, variable = resolver_of(secrets)
    infos = validate(PLUGINS, WORKER, {**SOURCE, "topic": variable("password"), "tasks.max": variable("port")}, resolver)
    shown = {value.name: value for _, value in infos.configs}
    assert shown["topic"].value == variable("password")
    assert shown["tasks.max"].value == variable("port")
    assert shown["tasks.max"].errors[0] == "Invalid value [hidden] for configuration tasks.max: Not a number of type INT"
    assert not any("s3cr3t" in str(infos) for _ in [0])


def test_a_configuration_without_a_class_is_shown_with_its_variables(secrets: Path) -> None:
    resolver, variable = resolver_of(secrets)
    with pytest.raises(BadRequestError) as caught:
        validate(PLUGINS, WORKER, {"name": "x", "file": variable("password")}, resolver)
    assert variable("password") in str(caught.value)
    assert "s3cr3t" not in str(caught.value)


def test_a_provider_that_cannot_read_is_a_clients_mistake(tmp_path: Path) -> None:
    with pytest.raises(BadRequestError, match="Could not read properties from file"):
        validate(PLUGINS, WORKER, {**SOURCE, "topic": f"${{file:{tmp_path}/none:k}}"}, Resolver({"file": FileConfigProvider()}))


def test_task_configurations_are_stored_with_the_variables_of_their_connector() -> None:
    made = {"password": "s3cr3t", "topic": "t", "task.class": "T"}
    written = {"password": "${v:p:k}", "topic": "t", "other": "${v:p:k}"}
    assert with_variables_kept(made, written) == {"password": "${v:p:k}", "topic": "t", "task.class": "T"}


class Clock:
    """Work for later, run by hand."""

    def __init__(self) -> None:
        self.later: list[tuple[float, Callable[[], None]]] = []

    def post(self, work: Callable[[], None]) -> None:
        work()

    def post_later(self, seconds: float, work: Callable[[], None]) -> None:
        self.later.append((seconds, work))


def reloads(ttl_ms: int | None) -> tuple[Reloads, Clock, list[str]]:
    clock, reloaded = Clock(), list[str]()

    def reload(name: str, _config: Mapping[str, str]) -> None:
        reloaded.append(name)

    return Reloads(Resolver({"v": Vault(ttl_ms)}), clock, reload), clock, reloaded


def test_a_connector_is_restarted_when_its_values_expire() -> None:
    made, clock, reloaded = reloads(1500)
    assert made.resolve("c", {"a": "${v:p:k}"}) == {"a": "k of p"}
    ((seconds, expire),) = clock.later
    assert seconds == 1.5
    expire()
    assert reloaded == ["c"]


def test_only_the_newest_plan_counts() -> None:
    made, clock, reloaded = reloads(1000)
    made.resolve("c", {"a": "${v:p:k}"})
    made.resolve("c", {"a": "${v:p:k}"})
    for _, expire in clock.later:
        expire()
    assert reloaded == ["c"]


@pytest.mark.parametrize(("ttl_ms", "action"), [(None, "restart"), (1000, "none")])
def test_without_a_time_to_live_or_when_told_so_nothing_is_restarted(ttl_ms: int | None, action: str) -> None:
    made, clock, _ = reloads(ttl_ms)
    made.resolve("c", {"a": "${v:p:k}", "config.action.reload": action})
    assert clock.later == []


def test_a_start_warns_of_variables_without_a_value(caplog: pytest.LogCaptureFixture) -> None:
    made, _, _ = reloads(None)
    with caplog.at_level(logging.WARNING):
        made.resolve("c", {"database.password": "${file:/etc/x:pw}"})
    assert "${file:/etc/x:pw} in the property database.password stays as it is: this worker has no config provider 'file'" in caplog.text


def test_a_value_of_many_colons_is_looked_through_at_once() -> None:
    began = time.process_time()
    assert variables_in("${" + ":" * 1000) == []
    assert time.process_time() - began < 1, "Java's pattern takes ten seconds, and the whole worker waits"


@pytest.mark.parametrize("name", ["transforms", "predicates", "topic.creation.groups"])
def test_what_names_other_properties_shows_nothing_of_a_provider(secrets: Path, name: str) -> None:
    resolver, variable = resolver_of(secrets)
    infos = validate(PLUGINS, WORKER, {**SOURCE, "topic": "t", name: variable("password")}, resolver)
    everything = repr(infos.configs) + repr(infos.groups) + repr(infos.warnings)
    assert "s3cr3t value" not in everything
    assert variable("password") in everything


def test_names_of_properties_are_redacted_too(secrets: Path) -> None:
    resolver, variable = resolver_of(secrets)
    config = {**SOURCE, "topic": variable("password"), "transforms": "s3cr3t value", "transforms.s3cr3t value.type": "Nothing"}
    infos = validate(PLUGINS, WORKER, config, resolver)
    names = [(key and (key.name, key.display_name, key.group), value.name) for key, value in infos.configs]
    assert "transforms.[hidden].type" in repr(names)
    assert "s3cr3t value" not in repr(names) + repr(infos.groups)


def test_a_class_may_not_come_from_a_provider(secrets: Path) -> None:
    resolver, variable = resolver_of(secrets)
    with pytest.raises(BadRequestError, match=re.escape(variable("password"))):
        validate(PLUGINS, WORKER, {**SOURCE, "connector.class": variable("password")}, resolver)


def test_a_validation_teaches_the_process_nothing(secrets: Path, provided: Redactor) -> None:
    resolver, variable = resolver_of(secrets)
    before = provided.secrets
    validate(PLUGINS, WORKER, {**SOURCE, "topic": variable("password")}, resolver)
    assert provided.secrets == before
    resolver.resolve({"topic": variable("password")}, owner="lines")
    assert provided.secrets - before == {"s3cr3t value"}
