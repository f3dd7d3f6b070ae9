"""How the tables of a source are asked for: with variables, by plugins that answer, fail or hang; and what is not shown."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from connect_py.api import ConfigDef, ConfigKey, ConfigType, SourceConnector, SourceTable, SourceTables, SourceTask
from connect_py.converters.json_converter import JsonConverter
from connect_py.converters.primitive import SimpleHeaderConverter
from connect_py.errors import BadRequestError, ConnectError, RestError
from connect_py.herder.doctor.list_tables import list_tables
from connect_py.plugins.registry import Plugins
from connect_py.providers.builtin import FileConfigProvider
from connect_py.providers.resolver import Resolver

CLASS, LIST = "com.acme.Feed", "table.include.list"


class Plain(SourceConnector):
    """A source that has no tables."""

    java_name: ClassVar[str] = "com.acme.Plain"
    java_task_name: ClassVar[str] = "com.acme.FeedTask"
    version: ClassVar[str] = "1"

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef([ConfigKey("does"), ConfigKey(LIST, default=None), ConfigKey("password", ConfigType.PASSWORD, default=None)])

    def start(self, config: Mapping[str, str]) -> None:
        raise NotImplementedError

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        raise NotImplementedError

    def task_class(self) -> type[SourceTask]:
        raise NotImplementedError


class Feed(Plain):
    """A source that does what its property `does` says."""

    java_name: ClassVar[str] = CLASS
    hangs: ClassVar[threading.Event]

    def list_tables(self, config: Mapping[str, str]) -> SourceTables:
        match config["does"]:
            case "answers":
                names = ["a", "b", f"of {config.get('password')}"]
                tables = [SourceTable(name, captured=True, entry=name, matched_by=(0,)) for name in names]
                return SourceTables(LIST, [config.get(LIST, "")], ["table.exclude.list"], tables)
            case "fails":
                raise ConnectError(f"no answer for {config['password']}")
            case "breaks":
                raise RuntimeError("a defect")
            case _:
                self.hangs.wait(30)
                return SourceTables(LIST)


PLUGINS = Plugins(
    {
        CLASS: Feed,
        "com.acme.Plain": Plain,
        "org.apache.kafka.connect.json.JsonConverter": JsonConverter,
        "org.apache.kafka.connect.storage.SimpleHeaderConverter": SimpleHeaderConverter,
    }
)
WORKER = {"key.converter": "JsonConverter", "value.converter": "JsonConverter"}


@pytest.fixture(autouse=True)
def released() -> Iterator[None]:
    Feed.hangs = threading.Event()
    yield
    Feed.hangs.set()


def ask(does: str | None, variables: Resolver | None = None, *, seconds: float = 20.0, **more: str) -> SourceTables:
    config: dict[str, Any] = {"connector.class": CLASS, "password": "tiger-tiger", **({"does": does} if does else {})}
    return list_tables(
        PLUGINS, WORKER, {**config, **{name.replace("_", "."): text for name, text in more.items()}}, variables, seconds=seconds
    )


def test_a_name_that_holds_a_secret_is_left_out() -> None:
    found = ask("answers", table_include_list="a")
    assert [table.name for table in found.tables] == ["a", "b"]
    assert (found.left_out, list(found.entries), found.tables[0].matched_by) == (1, ["a"], (0,))


def test_a_list_that_a_provider_gives_is_neither_shown_nor_to_be_chosen_from(tmp_path: Path) -> None:
    path = tmp_path / "lists.properties"
    path.write_text("tables=whatever\npassword=leopard-leopard\n")
    provider = FileConfigProvider()
    provider.configure({})
    variables = Resolver({"file": provider})
    found = ask("answers", variables, table_include_list=f"${{file:{path}:tables}}", password=f"${{file:{path}:password}}")
    assert "whatever" not in str(found) and "leopard" not in str(found)
    assert [(table.fixed_by, table.matched_by) for table in found.tables] == [(LIST, ()), (LIST, ())]
    with pytest.raises(BadRequestError, match="which has no value"):
        ask("answers", variables, table_include_list=f"${{file:{path}:nothing}}")


@pytest.mark.parametrize(
    ("does", "said"),
    [
        ("fails", r"The tables cannot be listed: no answer for \[hidden\]"),
        ("breaks", "RuntimeError: a defect"),
        (None, 'Missing required .*"does"'),
    ],
)
def test_what_goes_wrong_is_said_without_secrets(does: str | None, said: str) -> None:
    with pytest.raises(BadRequestError, match=said):
        ask(does)


def test_a_server_that_does_not_answer_is_not_waited_for() -> None:
    with pytest.raises(RestError, match=r"has not answered within 0.05 s") as raised:
        ask("hangs", seconds=0.05)
    assert raised.value.status == 504


def test_a_connector_without_tables_says_so() -> None:
    with pytest.raises(BadRequestError, match=r"com.acme.Plain has no tables to choose from"):
        list_tables(PLUGINS, WORKER, {"connector.class": "com.acme.Plain"})
