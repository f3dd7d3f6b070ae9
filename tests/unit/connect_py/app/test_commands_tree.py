"""The command line as a whole: help, exit codes, docs/cli.md, completion, contexts, `check`. Nothing here has a worker."""

from __future__ import annotations

import itertools
import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from connect_py.app.cli import main
from connect_py.app.client.contexts import Contexts, choose, read_contexts, write_contexts
from connect_py.app.commands.data import snapshot_data
from connect_py.app.commands.tree import COMMANDS
from connect_py.app.reference import page
from connect_py.errors import ConfigError
from tests.paths import ROOT

POSTGRES = {
    "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
    "database.hostname": "nowhere.invalid",
    "database.user": "u",
    "database.password": "p",
    "database.dbname": "d",
    "topic.prefix": "t",
}


@pytest.fixture(autouse=True)
def _no_contexts_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("CONNECT_PY_WORKER", raising=False)


def test_the_reference_is_what_the_tree_says() -> None:
    assert (ROOT / "docs/cli.md").read_text() == page(), "run: python -m connect_py.app.reference > docs/cli.md"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--help"]) == 0
    told = capsys.readouterr().out
    assert told.startswith(f"usage: connect-py {name}")
    assert "exit codes:" in told
    assert main(["help", name]) == 0
    assert capsys.readouterr().out == told


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_of_the_help_are_command_lines_that_are_accepted(name: str) -> None:
    import shlex

    from connect_py.app.commands.tree import parse

    for example in COMMANDS[name].examples:
        words = list(itertools.takewhile(lambda word: word not in ("<", ">"), shlex.split(example)))
        assert parse(words).command.name == name


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["aply"], "unknown command 'aply'. Did you mean apply?"),
        (["zzz"], "unknown command 'zzz'. The commands"),
        (["apply"], "-f/--file"),
        (["get", "topics"], "invalid choice: 'topics'"),
        (["get", "offsets"], "Name the connector"),
        (["status", "--watch", "0"], "--watch needs"),
        (["status", "--worker", "ftp://h"], "ftp://h is no URL of a worker"),
        (["status", "--worker", "http://[::1"], "http://[::1 is no URL of a worker"),
        (["status", "--worker", "http://[::1", "--user", "u", "--password-file", "/nowhere"], "http://[::1 is no URL of a worker"),
        (["get", "connectors", "--worker", "http://h:none"], "http://h:none is no URL of a worker"),
        (["logs", "a", "--worker", "http://h:99999"], "http://h:99999 is no URL of a worker"),
        (["restart", "a", "--worker", "http://h h:1"], "http://h h:1 is no URL of a worker"),
        (["verify", "a", "--worker", "http://h..x:1"], "http://h..x:1 is no URL of a worker"),
        (["doctor", "a", "--worker", "http://h/?x=1"], "http://h/?x=1 is no URL of a worker"),
        (["context", "set", "a", "--worker", "http://h\n:1"], "http://h\n:1 is no URL of a worker"),
        (["status", "--worker", "http://u:secret@[h"], "http://u:[hidden]@[h is no URL of a worker"),
        (["status", "--worker", "http://u:p@h"], "holds no user and no password"),
        (["status", "--worker", "http://h", "--context", "c"], "not both"),
        (["status", "--context", "c"], "There is no context c (there are: none)"),
        (["patch", "a"], "nothing to change"),
        (["patch", "a", "x"], "'x' is no PROPERTY=VALUE"),
        (["tail", "a", "--from", "then"], "--from then is not understood"),
        (["status", "--user", "u", "--password-file", "/nowhere"], "password file /nowhere cannot be read"),
    ],
)
def test_a_wrong_command_line_is_one_sentence_and_exit_code_1(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 1
    assert says in capsys.readouterr().err


MYSQL = {
    "connector.class": "io.debezium.connector.mysql.MySqlConnector",
    "database.hostname": "nowhere.invalid",
    "database.user": "u",
    "database.server.id": "1",
    "topic.prefix": "t",
    "schema.history.internal.kafka.topic": "h",
    "schema.history.internal.kafka.bootstrap.servers": "nowhere.invalid:9092",
}


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--offset", "{"], 1, "--offset is no JSON: Expecting property name"),
        (["--offset", "[1]"], 1, "--offset is no JSON object such as"),
        (["--offset", '"binlog.000001"'], 1, "--offset is no JSON object such as"),
        (["--offset", '{"pos": 4}'], 1, "Source offset 'file' parameter is missing"),
        (["--offset", "{}", "--worker", "http://h"], 1, "--offset takes the place of the worker's: leave out one of them"),
        (["--worker", "http://[::1"], 1, "http://[::1 is no URL of a worker"),
        (["--worker", "http://127.0.0.1:9"], 2, "The worker at http://127.0.0.1:9 does not answer"),
        (["--context", "staging"], 1, "There is no context staging (there are: none)"),
        (["--worker", "http://h", "--user", "u", "--password-file", "/nowhere"], 1, "password file /nowhere cannot be read"),
        (["--worker", "https://h", "--ca-file", "/nowhere"], 1, "A certificate or key cannot be read (/nowhere)"),
    ],
)
def test_what_history_cannot_ask_is_one_sentence(
    arguments: list[str], code: int, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "connector.json"
    file.write_text(json.dumps({"name": "inventory", "config": MYSQL}))
    assert main(["history", "verify", str(file), *arguments]) == code
    told = capsys.readouterr().err
    assert told.startswith("connect-py history: ") and says in told and len(told.splitlines()) == 1


def test_a_worker_that_does_not_answer_is_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--worker", "http://127.0.0.1:9"]) == 2
    told = capsys.readouterr().err
    assert told.startswith("connect-py status: The worker at http://127.0.0.1:9 does not answer:")
    assert len(told.splitlines()) == 1


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_commands_options_and_asks_for_names(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "get connectors --names" in script
    assert "snapshot" in script and "dry-run" in script
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)


# -- contexts ------------------------------------------------------------------------------------------------------------------------


def test_contexts_are_made_chosen_and_forgotten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["context", "set", "a", "--worker", "http://a:1", "--user", "ops", "--password-file", 'x"y']) == 0
    assert main(["context", "set", "b", "--worker", "https://b:2"]) == 0
    path = tmp_path / "config/connect-py/contexts.toml"
    assert path.stat().st_mode & 0o777 == 0o600
    a = {"worker": "http://a:1", "user": "ops", "password-file": 'x"y'}
    assert read_contexts(path) == Contexts("a", {"a": a, "b": {"worker": "https://b:2"}})
    assert main(["context", "use", "b"]) == 0
    assert main(["context", "delete", "b"]) == 0
    assert read_contexts(path) == Contexts("", {"a": a})
    capsys.readouterr()
    assert main(["context", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"current": None, "contexts": {"a": a}}
    assert main(["context", "use", "b"]) == 1
    assert "There is no context b (there are: a)" in capsys.readouterr().err


def test_which_worker_is_meant(tmp_path: Path) -> None:
    contexts = Contexts("a", {"a": {"worker": "http://a", "user": "u"}, "b": {"worker": "http://b"}})
    variable = {"CONNECT_PY_WORKER": "http://v"}
    assert choose(contexts, "http://w", None, variable) == {"worker": "http://w"}, "without the context's user: it is another worker"
    assert choose(contexts, None, "b", variable) == {"worker": "http://b"}
    assert choose(contexts, None, None, variable) == {"worker": "http://v"}
    assert choose(contexts, None, None, {}) == {"worker": "http://a", "user": "u"}
    assert choose(Contexts(), None, None, {}) == {"worker": "http://localhost:8083"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[contexts.a]\npasword-file='x'", "no setting 'pasword-file'. Did you mean 'password-file'?"),
        ("current='b'", "no [contexts.b]"),
        ("[contexts.a]\nuser=1", "must be a string"),
        ("[", "cannot be read"),
    ],
)
def test_a_wrong_file_of_contexts_is_refused(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "contexts.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_contexts(path)
    assert says in str(caught.value)
    assert read_contexts(tmp_path / "none.toml") == Contexts()
    write_contexts(path, Contexts("a", {"a": {"worker": "ü\n\x7f"}}))
    assert read_contexts(path).contexts == {"a": {"worker": "ü\n\x7f"}}


# -- snapshot ------------------------------------------------------------------------------------------------------------------------


def test_conditions_of_a_snapshot_name_their_tables() -> None:
    one = snapshot_data(["s.a"], ["id > 5"], blocking=False)
    assert one == {
        "data-collections": ["s.a"],
        "type": "incremental",
        "additional-conditions": [{"data-collection": "s.a", "filter": "id > 5"}],
    }
    two = snapshot_data(["s.a", "s.b"], ["s.b: x = 'a:b'"], blocking=True)
    assert two["additional-conditions"] == [{"data-collection": "s.b", "filter": "x = 'a:b'"}]
    assert "additional-conditions" not in snapshot_data(["s.a"], [], blocking=False)
    with pytest.raises(ConfigError, match="write TABLE:CONDITION"):
        snapshot_data(["s.a", "s.b"], ["id > 5"], blocking=False)


# -- check ---------------------------------------------------------------------------------------------------------------------------


def checked(path: Path, capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, list[tuple[str, str, str]]]:
    code = main(["check", str(path), "--json", *more])
    return code, [(each["kind"], each["property"], each["text"]) for each in json.loads(capsys.readouterr().out)]


def test_a_right_connector_file_has_no_findings_though_its_server_is_nowhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "inventory.json"
    path.write_text(json.dumps({"name": "inventory", "config": {**POSTGRES, "database.port": "${file:/x:port}"}}))
    assert checked(path, capsys, "--strict") == (0, [])
    assert main(["check", str(path)]) == 0
    assert "nothing is wrong" in capsys.readouterr().out


def test_a_connector_file_is_read_as_a_worker_would(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "inventory.json"
    mistakes = {
        "tabel.include.list": "public.a",
        "database.sslfactory": "com.example.Factory",
        "snapshot.query.mode": "custom",
        "tasks.max": "many",
        "value.converter": "org.apache.kafka.connect.json.JsonConvertor",
        "producer.override.linger.mss": "5",
    }
    path.write_text(json.dumps({**POSTGRES, **mistakes}))
    code, found = checked(path, capsys)
    assert code == 3
    kinds = {name: (kind, text) for kind, name, text in found}
    assert {name: kind for name, (kind, _) in kinds.items() if name} == {
        "tabel.include.list": "unknown",
        "database.sslfactory": "ignored",
        "snapshot.query.mode": "refused",
        "snapshot.query.mode.custom.name": "refused",
        "tasks.max": "refused",
        "value.converter": "refused",
        "linger.mss": "unknown",
        "producer.override.linger.mss": "refused",
    }
    assert "Did you mean 'table.include.list'?" in kinds["tabel.include.list"][1]
    assert "Did you mean 'linger.ms'?" in kinds["linger.mss"][1]
    assert "Did you mean org.apache.kafka.connect.json.JsonConverter?" in kinds["value.converter"][1]
    assert "needs a Java class" in kinds["snapshot.query.mode"][1]


def test_what_a_jdbc_sink_does_not_use_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "copy.json"
    used = {"connection.url": "jdbc:postgresql://db/copy", "connection.username": "writer", "connection.pool.max_size": "3"}
    unused = {"hibernate.c3p0.idle_test_period": "30", "dialect.sqlserver.identity.insert": "true"}
    defaults = {"connection.restart.on.errors": "false", "connection.pool.min_size": "5"}
    path.write_text(json.dumps({"name": "copy", "connector.class": "JdbcSink", "topics": "t", **used, **unused, **defaults}))
    code, found = checked(path, capsys)
    assert (code, [(kind, name) for kind, name, _ in found]) == (0, [("ignored", name) for name in sorted(unused, reverse=True)])


def test_what_a_mongodb_source_does_not_use_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "documents.json"
    config = {"connector.class": "io.debezium.connector.mongodb.MongoDbConnector", "topic.prefix": "m"}
    config |= {"mongodb.connection.string": "mongodb://db/?replicaSet=rs", "event.processing.failure.handling.mode": "fail"}
    path.write_text(json.dumps({"name": "documents", **config, "heartbeat.action.query": "SELECT 1"}))
    code, found = checked(path, capsys)
    assert (code, [(kind, name) for kind, name, _ in found]) == (0, [("ignored", "heartbeat.action.query")])


def test_paths_of_files_are_the_workers_to_allow(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, worker = tmp_path / "lines.yaml", tmp_path / "worker.properties"
    path.write_text("name: lines\nconnector.class: FileStreamSource\nfile: /data/lines.txt\ntopic: t\n")
    worker.write_text("file.connectors.allowed.paths=/elsewhere\n")
    assert checked(path, capsys) == (0, [])
    code, [(kind, name, text)] = checked(path, capsys, "--worker-properties", str(worker))
    assert (code, kind, name, "file.connectors.allowed.paths" in text) == (3, "refused", "file", True)


def test_warnings_alone_fail_only_when_strict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in {**POSTGRES, "tabel.include.list": "public.a"}.items()))
    assert checked(path, capsys)[0] == 0
    assert checked(path, capsys, "--strict")[0] == 3


def test_a_connector_that_is_not_installed_is_named_with_what_was_meant(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.json"
    for given, says in (
        ("io.debezium.connector.postgresql.PostgresqlConnector", "Did you mean io.debezium.connector.postgresql.PostgresConnector?"),
        ("io.confluent.connect.s3.S3SinkConnector", "Java archives cannot be loaded"),
    ):
        path.write_text(json.dumps({**POSTGRES, "connector.class": given}))
        code, [(kind, name, text)] = checked(path, capsys)
        assert (code, kind, name) == (3, "refused", "connector.class")
        assert given in text and says in text


def test_a_workers_file_is_told_from_a_connectors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "worker.properties"
    right = {
        "bootstrap.servers": "k:9092",
        "group.id": "g",
        "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "config.storage.topic": "c",
        "offset.storage.topic": "o",
        "status.storage.topic": "s",
    }

    def write(**more: str | None) -> None:
        properties = {**right, **{name.replace("_", "."): value for name, value in more.items()}}
        path.write_text("".join(f"{name}={value}\n" for name, value in properties.items() if value is not None))

    write()
    assert checked(path, capsys, "--strict") == (0, [])
    write(group_id=None, ofset_flush_interval_ms="1", metric_reporters="com.example.R", rest_extension_classes="com.example.E")
    code, found = checked(path, capsys)
    assert code == 3
    assert sorted((kind, name) for kind, name, _ in found) == [
        ("ignored", "metric.reporters"),
        ("refused", "group.id"),
        ("refused", "rest.extension.classes"),
        ("unknown", "ofset.flush.interval.ms"),
    ]


@pytest.mark.parametrize(("cause", "code"), [(KeyboardInterrupt(), 130), (ValueError("x"), None)])
def test_ctrl_c_within_a_client_in_c_is_ctrl_c(monkeypatch: pytest.MonkeyPatch, cause: BaseException, code: int | None) -> None:
    def run(_: object) -> int:
        raise SystemError("a result with an exception set") from cause

    monkeypatch.setitem(COMMANDS, "status", replace(COMMANDS["status"], run=run))
    if code is None:
        with pytest.raises(SystemError):
            main(["status"])
    else:
        assert main(["status"]) == code
