"""How a diagnosis is put together: by plugins that find something, fail or hang; with variables; and how it is printed."""

from __future__ import annotations

import contextlib
import os
import resource
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from connect_py.api import ConfigDef, ConfigKey, ConfigType, ConfigValue, Diagnosis, Finding, Person, SourceConnector, SourceTask
from connect_py.api.doctor import merged
from connect_py.app.commands.doctor import joined, report, script
from connect_py.converters.json_converter import JsonConverter
from connect_py.converters.primitive import SimpleHeaderConverter
from connect_py.errors import BadRequestError, ConnectError
from connect_py.herder.doctor.diagnose import diagnose
from connect_py.herder.doctor.own_process import open_file_findings, open_files
from connect_py.plugins.registry import Plugins
from connect_py.providers.builtin import FileConfigProvider
from connect_py.providers.resolver import Resolver
from rest_api.models import diagnosis

CLASS = "com.acme.Feed"


class Feed(SourceConnector):
    """A connector whose doctor does what its property `doctor` says."""

    java_name: ClassVar[str] = CLASS
    java_task_name: ClassVar[str] = "com.acme.FeedTask"
    version: ClassVar[str] = "1"
    hangs: ClassVar[threading.Event]
    running: ClassVar[list[bool]] = []

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef([ConfigKey("doctor"), ConfigKey("user", default=""), ConfigKey("password", ConfigType.PASSWORD, default=None)])

    def validate(self, config: Mapping[str, str | None]) -> list[ConfigValue]:
        raise AssertionError("the doctor asks the servers itself, and does not have validation ask them, too")

    def doctor(self, config: Mapping[str, str], *, is_running: bool = False) -> Diagnosis:
        self.running.append(is_running)
        match config["doctor"]:
            case "finds":
                what = f"The user '{config['user']}' with {config['password']} may not."
                return Diagnosis(
                    [Finding("feed.right", what, "It must.", Person.DBA, "root", (f"GRANT TO {config['user']};",))], ["a feed"]
                )
            case "fails":
                raise ConnectError(f"no answer for {config['password']}")
            case "breaks":
                raise RuntimeError("a defect")
            case _:
                self.hangs.wait(30)
                return Diagnosis()

    def start(self, config: Mapping[str, str]) -> None:
        raise NotImplementedError

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        raise NotImplementedError

    def task_class(self) -> type[SourceTask]:
        raise NotImplementedError


PLUGINS = Plugins(
    {
        CLASS: Feed,
        "org.apache.kafka.connect.json.JsonConverter": JsonConverter,
        "org.apache.kafka.connect.storage.SimpleHeaderConverter": SimpleHeaderConverter,
    }
)


@pytest.fixture(autouse=True)
def released() -> Iterator[None]:
    Feed.hangs = threading.Event()
    yield
    Feed.hangs.set()


def look(doctor: str, variables: Resolver | None = None, **more: Any) -> Diagnosis:
    config = {"connector.class": CLASS, "name": "f", "doctor": doctor, "user": "scott", "password": "tiger-tiger"}
    return diagnose(PLUGINS, None, config | more, variables, seconds=0.3 if doctor == "hangs" else 30, is_running=True)


def test_what_the_connector_finds_is_shown_without_its_password() -> None:
    found = look("finds")
    assert found.findings[0].what == "The user 'scott' with [hidden] may not."
    assert (found.code, found.looked_at, Feed.running[-1]) == (1, ["a feed"], True)


@pytest.mark.parametrize(
    ("doctor", "text"), [("fails", "no answer for [hidden]"), ("breaks", "RuntimeError: a defect"), ("hangs", "no answer in time")]
)
def test_a_doctor_that_does_not_answer_is_named_as_unseen(doctor: str, text: str) -> None:
    found = look(doctor)
    assert (found.code, list(found.findings)) == (3, [])
    assert found.unseen == [f"What {CLASS} needs: {text}"]


def test_an_error_of_the_configuration_is_a_finding_and_leaves_the_server_alone() -> None:
    calls = len(Feed.running)
    found = diagnose(PLUGINS, None, {"connector.class": CLASS, "name": "f"})
    assert [finding.check for finding in found.findings] == ["configuration"]
    assert "doctor" in found.findings[0].what and found.code == 3 and len(Feed.running) == calls


def test_an_error_that_is_not_the_connectors_own_does_not_hide_what_its_server_lacks() -> None:
    found = look("finds", **{"tasks.max": "many", "usr": "x"})
    assert {finding.check for finding in found.findings} == {"configuration", "configuration.unknown", "feed.right"}


def test_a_variable_stands_in_place_of_its_value(tmp_path: Path) -> None:
    path = tmp_path / "secrets"
    path.write_text("user=elisabeth\npassword=tiger-tiger\n")
    provider = FileConfigProvider()
    provider.configure({})
    variables = {"user": f"${{file:{path}:user}}", "password": f"${{file:{path}:password}}"}
    found = look("finds", Resolver({"file": provider}), **variables)
    assert found.findings[0].statements == (f"GRANT TO ${{file:{path}:user}};",)
    assert "elisabeth" not in str(found) and "tiger" not in str(found)
    missing = look("finds", Resolver({"file": provider}), user=f"${{file:{path}:nobody}}")
    assert ([finding.check for finding in missing.findings], missing.code) == (["configuration.variables"], 3)


def test_a_worker_near_its_limit_of_open_files_is_found(tmp_path: Path) -> None:
    assert list(open_file_findings(200, 1024)) == list(open_file_findings(200, -1)) == []
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.ExitStack() as files:
        for _ in range(100):
            files.enter_context(open(os.devnull))
        used, _ = open_files()
        resource.setrlimit(resource.RLIMIT_NOFILE, (used + 20, before[1]))
        try:
            found = list(open_file_findings(*open_files()))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert [finding.check for finding in found] == ["worker.open_files"] and str(used + 20) in found[0].what


def test_a_worker_at_its_limit_of_open_files_says_so_too() -> None:
    """The list of open files is a file, too."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, before[1]))
    try:
        found = open_files()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert found == (3, 3)


def test_an_unknown_class_is_refused() -> None:
    with pytest.raises(BadRequestError):
        diagnose(PLUGINS, None, {"connector.class": "com.acme.Nothing"})


# -- what people see -------------------------------------------------------------------------------------------------------------------

RIGHT = Finding("a", "No right.", "It must.", Person.DBA, "a superuser", ("GRANT x;", "GRANT y;"), "Then restart.")
TOPIC = Finding("b", "A topic.", "It forgets.", Person.KAFKA_ADMIN, statements=("kafka-configs.sh …",), severity="risk")
SETTING = Finding("c", "A property.", "It is wrong.", Person.YOU, advice="Correct it.")


def test_findings_are_grouped_by_person_and_once_each() -> None:
    both = merged([Diagnosis([SETTING, RIGHT], ["x"]), Diagnosis([RIGHT, TOPIC], unseen=["y"])])
    assert list(report(diagnosis(both))) == [
        "looked at: x",
        "not looked at: y",
        "",
        "For the database administrator (1)",
        "",
        "✗ No right.",
        "  why: It must.",
        "  run as a superuser:",
        "    GRANT x;",
        "    GRANT y;",
        "  then: Then restart.",
        "",
        "For the Kafka administrator (1)",
        "",
        "! A topic.",
        "  why: It forgets.",
        "  run:",
        "    kafka-configs.sh …",
        "",
        "For you (1)",
        "",
        "✗ A property.",
        "  why: It is wrong.",
        "  do: Correct it.",
        "",
        "3 findings: 2 problems (✗), 1 risks (!). Nothing was changed.",
    ]


def test_the_script_has_the_administrators_statements_and_the_rest_as_comments() -> None:
    lines = list(script(diagnosis(Diagnosis([RIGHT, SETTING], ["x"]))))
    assert [line for line in lines if line and not line.startswith("--")] == ["GRANT x;", "GRANT y;"]
    assert "-- Run as a superuser." in lines and not any("property" in line for line in lines)


def test_answers_for_several_connectors_are_one() -> None:
    def answer(*checks: str, unseen: tuple[str, ...] = ()) -> dict[str, Any]:
        return {
            "code": 3 if unseen else 1 if checks else 0,
            "findings": [{"check": check, "what": "It is so."} for check in checks],
            "looked_at": ["Kafka at b"],
            "unseen": list(unseen),
        }

    found = joined([("", answer("worker.properties")), ("a", answer("kafka.retention", "mysql.log_bin")), ("b", answer("mysql.log_bin"))])
    assert [(each["check"], each["what"]) for each in found["findings"]] == [
        ("worker.properties", "It is so."),
        ("kafka.retention", "It is so."),
        ("mysql.log_bin", "a: It is so."),
        ("mysql.log_bin", "b: It is so."),
    ]
    assert (found["looked_at"], found["code"]) == (["Kafka at b"], 1)
    twice = joined([("a", answer("kafka.retention")), ("b", answer("kafka.retention", unseen=("b's server",)))])
    assert (len(twice["findings"]), twice["unseen"], twice["code"]) == (1, ["b's server"], 3)
    assert joined([("", answer()), ("a", answer("mysql.log_bin"))])["findings"][0]["what"] == "It is so."
