"""What README, CONTRIBUTING and docs/ say, as far as it can be checked without a server: links, properties, examples, commands, paths.

`tests/integration/test_docs.py` runs their console sessions.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from fastapi.routing import APIRoute
from starlette.routing import Match

from connect_py.api.config import REQUIRED, ConfigKey
from connect_py.app.commands.tree import COMMANDS
from connect_py.config.connector_properties import COMMON, SINK, SOURCE
from connect_py.config.environment import worker_properties
from connect_py.config.restart_policy import DEFINITION as RESTARTS
from connect_py.config.worker import DISTRIBUTED, STANDALONE, WorkerConfig
from connect_py.data.java_properties import parse_properties
from connect_py.herder.base import Herder
from connectors.file.sink import FileStreamSinkConnector
from connectors.file.source import FileStreamSourceConnector
from connectors.jdbc.connector import JdbcSinkConnector
from connectors.mongodb import config as mongodb
from connectors.mongodb.connector import MongoDbConnector
from connectors.mongodb.properties import PROPERTIES as MONGODB_PROPERTIES
from connectors.mongodb.sink.connector import MongoDbSinkConnector
from connectors.mysql.config import config as mysql
from connectors.mysql.connector import MariaDbConnector, MySqlConnector
from connectors.postgres.config import REFUSED_VALUES, validate_config
from connectors.postgres.connector import PostgresConnector
from connectors.postgres.properties import EXTENSIONS, PROPERTIES, UNLISTED, WITHOUT_EFFECT
from rest_api.config import RestConfig
from rest_api.routes import all_routes
from spark_sink.config import sink_config as sink
from spark_sink.connector import SparkLakehouseSink
from tests.paths import ROOT

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
EVERY_PAGE = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def anchors(page: Path) -> set[str]:
    """GitHub's anchors of a page's headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_each_page_is_once_in_the_navigation() -> None:
    nav = (ROOT / "mkdocs.yml").read_text().partition("\nnav:")[2]
    pages = Counter(re.findall(r": (\S+\.md)$", nav, re.MULTILINE))
    assert len(pages) > 40 and [page for page, times in pages.items() if times > 1] == []


@EVERY_PAGE
def test_relative_links_lead_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)", page.read_text()):
        file = (page.parent / target) if target else page
        assert file.exists(), target
        assert not anchor or anchor in anchors(file), f"{target}#{anchor}"


# -- tables of properties ------------------------------------------------------------------------------------------------------------


def rows(page: Path, first_heading: str) -> Iterator[list[str]]:
    """Cells of all tables whose first column has that heading."""
    inside = False
    for line in page.read_text().splitlines():
        if not line.startswith("|"):
            inside = False
            continue
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if cells[0] == first_heading:
            inside = True
        elif inside and not set(line) <= set("|- "):
            yield cells


def quoted(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def shown_default(key: ConfigKey) -> str:
    if isinstance(key.default, bool):
        return str(key.default).lower()
    return "" if key.default in (None, REQUIRED) else str(key.default).removeprefix("org.apache.kafka.connect.storage.")


WORKER_KEYS = {**DISTRIBUTED.keys, **STANDALONE.keys}
POSTGRES_KEYS = {name: known.key for name, known in {**PROPERTIES, **UNLISTED, **EXTENSIONS}.items()}
MONGODB_KEYS = {
    **{name: known.key for name, known in MONGODB_PROPERTIES.items()},
    **{name: ConfigKey(name, default=default) for name, default in mongodb.HIDDEN.items()},
    **{name: ConfigKey(name, default=None) for name in ("capture.target", "capture.start.op.time", "cursor.pipeline")},
}
TABLES: list[tuple[str, dict[str, ConfigKey], tuple[str, ...]]] = [
    ("configuration.md", WORKER_KEYS, ()),
    ("errors.md", {**{key.name: key for key in (*COMMON, *SINK)}, **RESTARTS.keys}, ()),
    ("connectors/postgresql.md", POSTGRES_KEYS, ()),
    ("connectors/mongodb.md", MONGODB_KEYS, ("mongodb.ssl.keystore", "mongodb.ssl.truststore")),
    ("sinks/lakehouse-properties.md", sink.CONFIG_DEF.keys, tuple(f"{sink.PREFIX}{prefix}*" for prefix in sink.OPEN_PREFIXES)),
]


@pytest.mark.parametrize(("name", "keys", "prefixes"), TABLES, ids=[name for name, _, _ in TABLES])
def test_tables_name_properties_that_exist_with_their_defaults(name: str, keys: dict[str, ConfigKey], prefixes: tuple[str, ...]) -> None:
    found = list(rows(ROOT / "docs" / name, "property"))
    assert len(found) > 10
    for cells in found:
        defaults = quoted(cells[1]) if quoted(cells[1]) else []
        names = quoted(cells[0])
        for property_name in names:
            assert property_name in keys or property_name in prefixes, property_name
        if names[0] in prefixes:
            continue
        parts = [part.strip() for part in cells[1].split(",")] if "," in cells[1] and len(names) > 1 else [cells[1]]
        for property_name, part in zip(names, parts, strict=False):
            if part == "required":
                required = {*WORKER_KEYS, "topic.prefix", "mongodb.connection.string"}
                assert property_name in required or "database." in property_name, property_name
                assert shown_default(keys[property_name]) == "", property_name
            elif quoted(part) or not part:
                assert "".join(quoted(part)) == shown_default(keys[property_name]), f"{property_name}: {defaults}"


def test_the_page_of_the_lakehouse_sinks_properties_lists_every_one() -> None:
    named = {name for cells in rows(ROOT / "docs/sinks/lakehouse-properties.md", "property") for name in quoted(cells[0])}
    assert set(sink.CONFIG_DEF.keys) - named == set()


def test_what_is_refused_or_has_no_effect_is_listed_as_the_connector_treats_it() -> None:
    page = (ROOT / "docs/connectors/postgresql.md").read_text()
    section = page.partition("### Refused, or without effect")[2].partition("## Types")[0]
    refused, _, rest = section.partition("Accepted without effect, with a warning")
    warned, _, silent = rest.partition("Accepted without effect and without a warning")
    assert set(REFUSED_VALUES) <= set(quoted(refused))
    assert set(quoted(warned)) == {name for name, (warns, _) in WITHOUT_EFFECT.items() if warns}
    assert set(quoted(silent)) == {name for name, (warns, _) in WITHOUT_EFFECT.items() if not warns}


def test_variables_set_the_properties_that_the_table_says() -> None:
    base = {"BOOTSTRAP_SERVERS": "k:1", "CONFIG_STORAGE_TOPIC": "c", "OFFSET_STORAGE_TOPIC": "o"}
    checked = 0
    for variables, properties, _ in rows(ROOT / "docs/operations.md", "variable"):
        names, wanted = quoted(variables), quoted(properties)
        if len(names) == len(wanted):
            for name, property_name in zip(names, wanted, strict=True):
                assert worker_properties(base | {name: "a-value"})[property_name] == "a-value", name
                checked += 1
    assert checked >= 10


# -- examples ------------------------------------------------------------------------------------------------------------------------


def configurations(page: Path) -> Iterator[dict[str, Any]]:
    """Configurations of connectors in JSON blocks and in curl's -d arguments."""
    text = re.sub(r"\$\{env:\w*PORT\}", "5432", page.read_text())
    for found in re.findall(r"^ *```json\n(.*?)```", text, re.M | re.S) + re.findall(r"-d '(\{.*?\})'", text, re.S):
        try:
            parsed = json.loads(found)
        except ValueError:
            continue  # shown for the error that it causes
        if isinstance(parsed.get("config"), dict):
            yield parsed["config"]


@EVERY_PAGE
def test_example_configurations_are_valid(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONNECT_PY_SPARK_SETTINGS", "spark.master")  # as the page on clusters says
    for config in configurations(page):
        match config["connector.class"]:
            case PostgresConnector.java_name:
                problems = {value.name: value.errors for value in validate_config(config) if value.errors}
                known = set(POSTGRES_KEYS)
            case MySqlConnector.java_name:
                problems = {value.name: value.errors for value in mysql.validate_config(config) if value.errors}
                known = set(mysql.PROPERTIES) | {name for name in config if name.startswith("schema.history.internal.kafka.")}
            case MariaDbConnector.java_name:
                problems = {value.name: value.errors for value in mysql.validate_config(config, "mariadb") if value.errors}
                known = set(mysql.MARIADB_PROPERTIES) | {name for name in config if name.startswith("schema.history.internal.kafka.")}
            case MongoDbConnector.java_name:
                problems = {value.name: value.errors for value in mongodb.validate_config(config) if value.errors}
                known = set(MONGODB_KEYS)
            case JdbcSinkConnector.java_name:
                problems = {value.name: value.errors for value in JdbcSinkConnector().validate(config) if value.errors}
                known = set(JdbcSinkConnector.config_def().keys)
            case MongoDbSinkConnector.java_name:
                problems = {value.name: value.errors for value in MongoDbSinkConnector.config_def().validate(config) if value.errors}
                known = set(MongoDbSinkConnector.config_def().keys)
            case "SparkLakehouseSink" | SparkLakehouseSink.java_name:
                problems = {value.name: value.errors for value in SparkLakehouseSink().validate(config) if value.errors}
                known = {name for name in config if name.startswith((*(sink.PREFIX + p for p in sink.OPEN_PREFIXES), "topics"))}
                known |= set(sink.CONFIG_DEF.keys)
                known |= {name for name in config if name.startswith(("key.converter.", "value.converter.", "transforms.", "predicates."))}
            case "FileStreamSource":
                problems, known = {}, set(FileStreamSourceConnector.config_def().keys)
            case "FileStreamSink":
                problems, known = {}, set(FileStreamSinkConnector.config_def().keys)
            case other:
                assert other == "Nothing", other
                continue
        assert problems == {}
        assert set(config) - known - {key.name for key in (*COMMON, *SOURCE, *SINK)} - set(RESTARTS.keys) == set()


def test_the_example_of_worker_properties_is_complete() -> None:
    block = re.search(r"```properties\n(.*?)```", (ROOT / "docs/operations.md").read_text(), re.S)
    assert block
    properties = parse_properties(block[1])
    assert WorkerConfig.parse(properties).group_id == "connect-cluster"
    assert set(properties) <= set(DISTRIBUTED.keys)


# -- commands and paths --------------------------------------------------------------------------------------------------------------


@EVERY_PAGE
def test_make_targets_exist(page: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M))
    named = set(re.findall(r"(?:^ {4}|`)make ([a-z]+)", page.read_text(), re.M))
    assert named <= targets


@EVERY_PAGE
def test_commands_exist(page: Path) -> None:
    named = set(re.findall(r"(?:^|`|bin/)connect-py ([a-z][a-z-]*)", page.read_text(), re.M))
    if page.name == "design.md":
        return  # says what shall be, too
    assert named <= {*COMMANDS, "help"}


def test_paths_of_the_rest_api_exist() -> None:
    """Requests of console sessions are run elsewhere; here are those in running text, such as `PUT /connectors/{name}/config`."""
    known = [route for router in all_routes(cast(Herder, object()), RestConfig()) for route in router.routes]
    checked = 0
    for page in PAGES:
        if page.name == "design.md":
            continue
        for method, path in re.findall(r"`(GET|POST|PUT|PATCH|DELETE) (/[^`?\s]*)", page.read_text()):
            scope = {"type": "http", "method": method, "path": re.sub(r"\{(\w+)\}", r"\1", path), "headers": []}
            assert any(route.matches(scope)[0] is Match.FULL for route in known) or path == "/status", f"{page.name}: {method} {path}"
            checked += 1
    assert checked >= 5


def test_the_page_of_the_rest_api_lists_every_resource() -> None:
    listed = re.findall(r"^\| (\w+) \| `(\S+)` \|", (ROOT / "docs/rest.md").read_text(), re.M)
    routes = [route for router in all_routes(cast(Herder, object()), RestConfig()) for route in router.routes]
    shown = [route for route in routes if isinstance(route, APIRoute) and route.include_in_schema]
    assert sorted(listed) == sorted((method, route.path) for route in shown for method in route.methods)


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/design.md"])
def test_files_that_a_page_for_developers_names_exist(page: str) -> None:
    """In design.md a path may begin below its package."""
    known = [
        "/" + str(path.relative_to(ROOT))
        for folder in ("connect_py", "connectors", "offsets", "rest_api", "spark_sink", "tests")
        for path in (ROOT / folder).rglob("*.py")
    ]
    named = set(re.findall(r"`([\w/]+\.py)`", (ROOT / page).read_text()))
    assert named
    assert [name for name in sorted(named) if not any(path.endswith("/" + name) for path in known)] == []
