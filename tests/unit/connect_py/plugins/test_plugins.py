"""Where plugins are found, by which names and in which versions."""

from __future__ import annotations

import logging
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from connect_py.api.storage import Status, TargetState
from connect_py.config.worker import WorkerConfig
from connect_py.errors import BadRequestError, ConfigError
from connect_py.herder.thread import HerderThread
from connect_py.herder.validation import validate
from connect_py.host.connectors import ConnectorHost
from connect_py.plugins.registry import PluginEntry, Plugins, discover
from connect_py.plugins.versions import VersionNotFoundError, compare_versions, parse_requirement
from connect_py.task.chain import converter, transform_steps
from offsets.local_stores import MemoryStatusStore

JSON = "org.apache.kafka.connect.json.JsonConverter"
ROUTER = "org.apache.kafka.connect.transforms.RegexRouter"
HEADER = "org.apache.kafka.connect.transforms.predicates.HasHeaderKey"
FILE_SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"

SHOUT = """
from connect_py.api import ConfigDef

class Shout:
    @classmethod
    def config_def(cls):
        return ConfigDef()
    def configure(self, config): pass
    def apply(self, record): return record
    def close(self): pass
"""


def install(
    folder: Path, module: str, *names: str, version: str = "1.0", distribution: str = "", source: str = SHOUT, target: str = "Shout"
) -> None:
    """A distribution as `pip install --target` leaves it, as far as plugins are concerned."""
    name = distribution or module.replace("_", "-")
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    points = "".join(f"{java} = {module}:{target}\n" for java in names)
    (info / "entry_points.txt").write_text(f"[connect_py.plugins]\n{points}")
    (folder / f"{module}.py").write_text(textwrap.dedent(source))


@pytest.fixture
def imports(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves `sys.path` and the modules of this test's plugins as they were."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield  # type: ignore[misc]
    for name in [each for each in sys.modules if each.startswith("plug_")]:
        del sys.modules[name]


# -- names


@pytest.mark.parametrize(
    ("name", "java"),
    [
        (JSON, JSON),
        ("JsonConverter", JSON),
        ("Json", JSON),
        ("RegexRouter", ROUTER),
        ("HasHeaderKey", HEADER),
        ("FileStreamSource", FILE_SOURCE),
        ("Regex", None),
        ("Value", None),
        ("Cast$Value", None),
        ("json", None),
        ("", None),
    ],
)
def test_a_plugin_is_known_by_its_simple_name_with_or_without_its_kind(name: str, java: str | None) -> None:
    assert Plugins.discover().resolve(name) == java


def test_an_alias_that_fits_two_plugins_names_neither_of_them_whatever_their_kinds(tmp_path: Path, imports: None) -> None:
    install(tmp_path, "plug_alias", "com.a.Shout", distribution="plug-a")
    plugins = Plugins({**discover([str(tmp_path)]), "com.b.Shout": "connect_py.converters.json_converter:JsonConverter"})
    with pytest.raises(ConfigError, match=r"com\.b\.Shout cannot be loaded: its class .* calls itself org\.apache"):
        plugins.resolve("Shout")
    both = Plugins({"com.a.ByteArrayConverter": "plug_none:A", "com.b.ByteArrayConverter": "plug_none:B"})
    with pytest.raises(ConfigError, match="plug_none"):
        both.resolve("ByteArray")


def test_two_connectors_behind_one_alias_are_named(tmp_path: Path, imports: None) -> None:
    source = """
    from connect_py.api import ConfigDef, SourceConnector

    class One(SourceConnector):
        java_task_name = "t"
        @classmethod
        def config_def(cls): return ConfigDef()
        def start(self, config): pass
        def task_configs(self, max_tasks): return []
        def task_class(self): return None

    class Two(One): pass
    """
    install(tmp_path, "plug_two", source=source)
    (tmp_path / "plug_two-1.0.dist-info" / "entry_points.txt").write_text(
        "[connect_py.plugins]\ncom.a.CsvConnector = plug_two:One\ncom.b.CsvConnector = plug_two:Two\n"
    )
    plugins = Plugins.discover([str(tmp_path)])
    with pytest.raises(BadRequestError, match=r"More than one connector matches alias Csv.*com\.a\.CsvConnector, com\.b\.CsvConnector"):
        plugins.connector("Csv")
    assert plugins.connector("com.b.CsvConnector").__name__ == "Two"
    assert plugins.resolve("Csv") is None


# -- plugin.path


def test_a_folder_of_plugin_path_and_the_folders_in_it_are_looked_at(tmp_path: Path, imports: None) -> None:
    install(tmp_path, "plug_flat", "com.acme.Flat")
    install(tmp_path / "nested", "plug_nested", "com.acme.Nested", version="2.5")
    found = discover([str(tmp_path)])
    assert found["com.acme.Flat"] == PluginEntry("plug_flat:Shout", str(tmp_path), "plug-flat", "1.0")
    plugins = Plugins(found)
    assert plugins.find("com.acme.Nested", "transformation").version == "2.5"  # type: ignore[union-attr]
    assert plugins.load("com.acme.Flat").java_name == "com.acme.Flat"
    assert JSON in found


def test_nothing_of_a_folder_is_imported_before_its_plugin_is_used(tmp_path: Path, imports: None) -> None:
    install(tmp_path, "plug_lazy", "com.acme.Lazy", source="raise SystemError('imported too early')")
    (tmp_path / "evil.pth").write_text("import sys; sys.exit(1)\n")
    plugins = Plugins.discover([str(tmp_path)])
    assert "plug_lazy" not in sys.modules
    with pytest.raises(ConfigError, match=r"com\.acme\.Lazy cannot be loaded from plug_lazy:Shout: SystemError: imported too early"):
        plugins.load("com.acme.Lazy")


def test_a_plugin_that_cannot_be_loaded_is_logged_once_and_the_others_are_listed(
    tmp_path: Path, imports: None, caplog: pytest.LogCaptureFixture
) -> None:
    install(tmp_path / "a", "plug_needy", "com.acme.Needy", source="import no_such_package_at_all")
    install(tmp_path / "b", "plug_fine", "com.acme.Fine")
    plugins = Plugins.discover([str(tmp_path)])
    for _ in range(2):
        assert "com.acme.Fine" in dict(plugins.of_kind("transformation"))
        assert "com.acme.Needy" not in dict(plugins.of_kind("transformation"))
    assert caplog.text.count("com.acme.Needy cannot be loaded: No module named 'no_such_package_at_all'") == 1


def test_the_workers_own_plugin_wins_over_one_of_plugin_path(tmp_path: Path, imports: None, caplog: pytest.LogCaptureFixture) -> None:
    install(tmp_path, "plug_fake", JSON, version="99")
    assert discover([str(tmp_path)])[JSON].folder == ""
    assert "plug-fake 99" in caplog.text


def test_of_two_folders_with_a_plugin_the_newer_one_is_used(tmp_path: Path, imports: None, caplog: pytest.LogCaptureFixture) -> None:
    for version in ("1.9", "1.10", "1.2"):
        install(tmp_path / version, "plug_versions", "com.acme.V", version=version)
    assert discover([str(tmp_path)])["com.acme.V"].version == "1.10"
    assert caplog.text.count("is installed twice") == 2


def test_a_copy_of_the_worker_in_a_folder_is_passed_over_without_a_word(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    install(tmp_path, "plug_own", "com.acme.Own", distribution="connect-py-worker", version="9")
    assert "com.acme.Own" not in discover([str(tmp_path)])
    assert not caplog.text


@pytest.mark.parametrize("content", ["missing", "jars"])
def test_a_folder_without_python_packages_is_warned_about_and_ignored(
    content: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / content
    if content == "jars":
        (folder / "debezium").mkdir(parents=True)
        (folder / "debezium" / "core.jar").touch()
    with caplog.at_level(logging.WARNING):
        assert discover([str(folder)]) == discover()
    assert str(folder) in caplog.text


def test_an_empty_folder_is_no_reason_for_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    Plugins.discover([str(tmp_path)])
    assert not caplog.text


def test_a_plugin_whose_module_is_hidden_by_another_folders_says_by_which(tmp_path: Path, imports: None) -> None:
    install(tmp_path / "a", "plug_same", "com.acme.A")
    install(tmp_path / "b", "plug_same", "com.acme.B", distribution="other")
    plugins = Plugins.discover([str(tmp_path)])
    plugins.load("com.acme.A")
    with pytest.raises(ConfigError, match=r"com\.acme\.B cannot be loaded: its module plug_same in .*/b is hidden by .*/a/plug_same"):
        plugins.load("com.acme.B")


def test_a_class_that_calls_itself_something_else_is_refused(tmp_path: Path, imports: None) -> None:
    install(tmp_path, "plug_misnamed", "com.acme.A", source=SHOUT + "    java_name = 'com.acme.Z'\n")
    with pytest.raises(ConfigError, match=r"calls itself com\.acme\.Z"):
        Plugins.discover([str(tmp_path)]).load("com.acme.A")


def test_what_a_task_is_told_about_plugins_is_all_it_needs(tmp_path: Path, imports: None) -> None:
    install(tmp_path, "plug_message", "com.acme.M")
    found = discover([str(tmp_path)])
    message = {name: vars(entry) for name, entry in found.items()}
    assert Plugins.from_message(message).references == found


def test_the_worker_reads_plugin_path_and_knows_connects_ways_of_discovery() -> None:
    worker = {"group.id": "g", "config.storage.topic": "c", "offset.storage.topic": "o", "status.storage.topic": "s"}
    worker |= {"key.converter": JSON, "value.converter": JSON}
    assert list(WorkerConfig.parse(worker | {"plugin.path": "/a, /b"}).plugin_path) == ["/a", "/b"]
    assert list(WorkerConfig.parse(worker | {"plugin.discovery": "SERVICE_LOAD"}).plugin_path) == []
    with pytest.raises(ConfigError, match=r"plugin\.discovery"):
        WorkerConfig.parse(worker | {"plugin.discovery": "guess"})


# -- versions


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("1.9", "1.10"),
        ("1.0-alpha", "1.0-beta"),
        ("1.0-rc1", "1.0"),
        ("1.0-SNAPSHOT", "1.0"),
        ("1.0", "1.0-sp1"),
        ("3.6.1.Beta1", "3.6.1.Final"),
        ("1.0.CR1", "1.0.Final"),
        ("1", "1.1"),
        ("1.0-x", "1.0.1"),
    ],
)
def test_versions_are_ordered_as_maven_orders_them(older: str, newer: str) -> None:
    assert compare_versions(older, newer) < 0 < compare_versions(newer, older)


@pytest.mark.parametrize(("one", "other"), [("1", "1.0.0"), ("3.6.1", "3.6.1.Final"), ("1.0-ga", "1"), ("1.0-rc1", "1.0-cr1")])
def test_versions_with_other_spellings_are_equal(one: str, other: str) -> None:
    assert compare_versions(one, other) == 0


@pytest.mark.parametrize(
    ("wanted", "shown", "fits", "fits_not"),
    [
        ("9", "[9,9]", "9.0", "9.1"),
        ("[4.0,5.0)", "[4.0,5.0)", "4.3.1", "5"),
        ("(,1.0]", "(,1.0]", "0.1", "1.1"),
        ("[1.5,)", "[1.5,)", "2", "1.4"),
        ("(1,2)", "(1,2)", "1.5", "1"),
        ("[1,2],[4,5]", "[1,2],[4,5]", "4.5", "3"),
        (" 1.2 ", "[1.2,1.2]", "1.2.0", "1.3"),
        ("[1.0]", "[1.0,1.0]", "1", "2"),
    ],
)
def test_a_range_of_versions_means_what_it_means_to_maven(wanted: str, shown: str, fits: str, fits_not: str) -> None:
    found = parse_requirement(wanted)
    assert found is not None
    assert str(found) == shown
    assert found.contains(fits)
    assert not found.contains(fits_not)


@pytest.mark.parametrize("wanted", [None, "latest", "LATEST "])
def test_the_latest_version_is_no_requirement(wanted: str | None) -> None:
    assert parse_requirement(wanted) is None


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("[1,2", "Unbounded range: [1,2"),
        ("[2,1]", "Range defies version ordering: [2,1]"),
        ("[1,3],[2,4]", "Ranges overlap: [1,3],[2,4]"),
        ("(1)", "Single version must be surrounded by []: (1)"),
        ("[1,2] 3", "Only fully-qualified sets allowed in multiple set scenario: [1,2] 3"),
    ],
)
def test_a_malformed_range_is_refused_with_mavens_words(wanted: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_requirement(wanted)
    assert str(caught.value) == message


def test_a_version_that_is_not_installed_is_named_with_those_that_are() -> None:
    with pytest.raises(VersionNotFoundError) as caught:
        Plugins.discover().require_version(ROUTER, "9")
    assert str(caught.value) == f"Plugin {ROUTER} not found that matches the version range [9,9], available versions: [4.3.1]"


STEP = {"transforms": "t", "transforms.t.type": "RegexRouter", "transforms.t.regex": "a", "transforms.t.replacement": "b"}
GUARDED = STEP | {"transforms.t.predicate": "p", "predicates": "p", "predicates.p.type": HEADER, "predicates.p.name": "h"}


@pytest.mark.parametrize(
    ("given", "errors", "values"),
    [
        ({"connector.plugin.version": "[4,5)"}, {}, {"connector.plugin.version": "[4,5)"}),
        ({"connector.plugin.version": "9"}, {"connector.class": 1, "connector.plugin.version": 1}, {"key.converter.plugin.version": None}),
        ({"key.converter": "Json"}, {}, {"key.converter": JSON, "key.converter.plugin.version": "4.3.1"}),
        ({"key.converter.plugin.version": "9"}, {}, {"key.converter": JSON}),
        ({"key.converter": JSON, "key.converter.plugin.version": "9"}, {"key.converter": 1, "key.converter.plugin.version": 1}, {}),
        ({"key.converter": JSON, "key.converter.plugin.version": "[9"}, {"key.converter.plugin.version": 1}, {"key.converter": JSON}),
        ({"key.converter": "no.Such"}, {"key.converter": 1}, {"key.converter": None, "key.converter.plugin.version": None}),
        ({"key.converter": ROUTER}, {"key.converter": 1}, {"key.converter": ROUTER}),
        (STEP, {}, {"transforms.t.type": ROUTER, "transforms.t.plugin.version": "4.3.1"}),
        ({**STEP, "transforms.t.plugin.version": "[5,)"}, {"transforms.t.type": 1, "transforms.t.plugin.version": 1}, {}),
        ({**STEP, "transforms.t.plugin.version": "[5"}, {"transforms.t.type": 1, "transforms.t.plugin.version": 1}, {}),
        ({**STEP, "transforms.t.type": "No", "transforms.t.negate": "true"}, {"transforms.t.type": 2}, {"transforms.t.type": None}),
    ],
)
def test_versions_and_classes_are_validated_as_connect_validates_them(
    given: dict[str, str], errors: dict[str, int], values: dict[str, str | None]
) -> None:
    config: dict[str, str | None] = {"name": "c", "connector.class": FILE_SOURCE, "topic": "t", **given}
    infos = validate(Plugins.discover(), {"key.converter": JSON, "value.converter": JSON}, config)
    found = {value.name: value for _, value in infos.configs}
    assert {name: len(value.errors) for name, value in found.items() if value.errors} == errors
    assert {name: found[name].value for name in values} == values


def test_the_properties_of_a_class_with_an_error_are_not_shown() -> None:
    config: dict[str, str | None] = {"name": "c", "connector.class": FILE_SOURCE, "topic": "t", **STEP, "transforms.t.plugin.version": "9"}
    infos = validate(Plugins.discover(), {"key.converter": JSON, "value.converter": JSON}, config)
    shown = [value.name for _, value in infos.configs if value.name.startswith("transforms.")]
    assert shown == ["transforms.t.type", "transforms.t.plugin.version"]


def test_a_malformed_version_of_the_connector_is_a_bad_request() -> None:
    config: dict[str, str | None] = {"name": "c", "connector.class": FILE_SOURCE, "connector.plugin.version": "[1"}
    with pytest.raises(BadRequestError, match=r"^Unbounded range: \[1$"):
        validate(Plugins.discover(), {"key.converter": JSON, "value.converter": JSON}, config)


def test_the_short_name_that_kafka_and_an_add_on_of_debezium_share_is_kafkas() -> None:
    plugins = Plugins({**Plugins.discover().references, "io.debezium.transforms.Filter": "not_installed:Filter"})
    assert plugins.resolve("Filter") == "org.apache.kafka.connect.transforms.Filter"


def test_a_stored_connector_whose_version_is_not_there_any_more_fails_with_what_is_there() -> None:
    statuses = MemoryStatusStore()
    thread = HerderThread()
    thread.start()
    with ThreadPoolExecutor(1) as pool:
        host = ConnectorHost(
            Plugins.discover(),
            statuses,
            pool,
            post=thread.post,
            post_later=thread.post_later,
            status=lambda state, trace, version: Status(state, "w:1", 1, trace, version),
            on_task_configs=lambda name, config, configs: None,
            explain=lambda error, config: str(error),
        )
        config = {"name": "c", "connector.class": FILE_SOURCE, "topic": "t", "connector.plugin.version": "[5,)"}
        done = thread.call(lambda: host.run("c", config, TargetState.STARTED))
        with pytest.raises(VersionNotFoundError, match=r"matches the version range \[5,\), available versions: \[4\.3\.1\]"):
            done.result(10)
    thread.stop()
    found = statuses.connector("c")
    assert found is not None
    assert (found.state, found.trace) == ("FAILED", str(done.exception()))


@pytest.mark.parametrize(("owner", "key"), [("worker", "key.converter"), ("config", "value.converter"), ("config", "header.converter")])
def test_a_task_does_not_run_with_another_converter_than_it_was_to_have(owner: str, key: str) -> None:
    named = {key: JSON, f"{key}.plugin.version": "9"}
    worker, config = (named, {}) if owner == "worker" else ({}, named)
    with pytest.raises(VersionNotFoundError, match=rf"Plugin {JSON} not found that matches the version range \[9,9\]"):
        converter(Plugins.discover(), worker, config, key)


@pytest.mark.parametrize(("alias", "plugin"), [("transforms.t", ROUTER), ("predicates.p", HEADER)])
def test_a_task_does_not_run_with_another_transform_than_it_was_to_have(alias: str, plugin: str) -> None:
    with pytest.raises(VersionNotFoundError, match=rf"Plugin {plugin} not found that matches the version range \[9,9\]"):
        transform_steps(Plugins.discover(), {**GUARDED, f"{alias}.plugin.version": "9"})
    assert len(transform_steps(Plugins.discover(), {**GUARDED, f"{alias}.plugin.version": "[4,5)"})) == 1


def test_a_check_imports_what_the_configuration_names_and_the_rest_when_its_names_are_asked_for(tmp_path: Path, imports: None) -> None:
    install(tmp_path, "plug_unused", "com.acme.Unused")
    config = {
        "name": "c",
        "connector.class": FILE_SOURCE,
        "topic": "t",
        "transforms": "route",
        "transforms.route.type": ROUTER,
        "transforms.route.regex": "a",
        "transforms.route.replacement": "b",
    }
    infos = validate(Plugins.discover([str(tmp_path)]), {}, config)
    assert "plug_unused" not in sys.modules
    recommended = {value.name: value.recommended_values for _, value in infos.configs}
    assert {"com.acme.Unused", ROUTER} <= set(recommended["transforms.route.type"])
    assert JSON in recommended["key.converter"]
