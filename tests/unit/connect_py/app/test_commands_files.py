"""What `apply`, `diff` and `check` read from files, without a worker."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from connect_py.api.storage import TargetState
from connect_py.app.client.files import parse, read_paths
from connect_py.errors import ConfigError

POSTED = '{"name": "a", "config": {"connector.class": "X", "tasks.max": 2, "flag": true, "none": null}, "initial_state": "paused"}'


def test_json_as_posted_bare_json_and_properties_are_the_same_connector(tmp_path: Path) -> None:
    bare = {"connector.class": "X", "tasks.max": "2", "flag": "true"}
    (tmp_path / "posted.json").write_text(POSTED)
    (tmp_path / "b.json").write_text(json.dumps(bare))
    (tmp_path / "c.properties").write_text("connector.class=X\ntasks.max=2\nflag=true\n")
    found = read_paths([str(tmp_path)])
    assert [(each.name, each.config) for each in found] == [
        ("b", {**bare, "name": "b"}),
        ("c", {**bare, "name": "c"}),
        ("a", {**bare, "name": "a"}),
    ]
    assert [each.state for each in found] == [None, None, TargetState.PAUSED]


def test_the_answer_of_a_worker_can_be_applied_again() -> None:
    answer = {"name": "a", "config": {"name": "a", "connector.class": "X"}, "tasks": [{"connector": "a", "task": 0}], "type": "source"}
    (found,) = parse("a.json", json.dumps([answer]))
    assert found.config == {"name": "a", "connector.class": "X"}


def test_a_value_of_yaml_is_the_text_that_stands_there() -> None:
    text = "name: y\nconnector.class: X\na: on\nb: 010\nc: 1_000\nd: true\ne: ~\nf: 'null'\ng:\nh: 2026-01-31\ni: 1.50\n"
    (found,) = parse("y.yaml", text)
    wanted = {"a": "on", "b": "010", "c": "1_000", "d": "true", "f": "null", "h": "2026-01-31", "i": "1.50"}
    assert found.config == {"name": "y", "connector.class": "X", **wanted}


STRIMZI = """\
apiVersion: kafka.strimzi.io/v1
kind: KafkaConnect
metadata: {name: my-connect}
spec: {replicas: 3}
---
apiVersion: kafka.strimzi.io/v1
kind: KafkaConnector
metadata:
  name: inventory
  labels: {strimzi.io/cluster: my-connect}
spec:
  class: io.debezium.connector.postgresql.PostgresConnector
  tasksMax: 1
  state: stopped
  autoRestart: {enabled: true}
  config:
    database.port: 5432
    skipped.operations: none
---
name: other
config:
  connector.class: FileStreamSource
"""


def test_documents_of_yaml_may_be_strimzis() -> None:
    first, second = parse("all.yaml", STRIMZI)
    assert (first.name, first.state, first.keeps_state) == ("inventory", TargetState.STOPPED, True)
    assert first.config == {
        "database.port": "5432",
        "skipped.operations": "none",
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "tasks.max": "1",
        "name": "inventory",
    }
    assert "task.restart.policy" in first.notes[0]
    assert (second.name, second.state, second.source) == ("other", None, "all.yaml, document 3")


@pytest.mark.parametrize(
    ("spec", "state"),
    [("pause: true", TargetState.PAUSED), ("pause: false", TargetState.STARTED), ("class: X", TargetState.STARTED)],
)
def test_the_old_way_to_pause_with_strimzi_counts(spec: str, state: TargetState) -> None:
    (found,) = parse("k.yaml", f"apiVersion: kafka.strimzi.io/v1beta2\nkind: KafkaConnector\nmetadata: {{name: a}}\nspec:\n  {spec}\n")
    assert found.state is state


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.json", "{", "a.json is no JSON"),
        ("a.json", '{"name": "a", "config": {"x": {"y": 1}}}', "'x' holds an object"),
        ("a.yaml", "name: a\nx: [1]\n", "'x' holds a list"),
        ("a.json", '{"name": "a", "config": {"name": "b"}}', "is called a, but its configuration says name=b"),
        ("a.json", '{"name": "a", "config": {}, "initial_state": "sleeping"}', "initial_state is SLEEPING"),
        ("a.json", "[1]", "holds no configuration"),
        ("a.yaml", "a: b: c\n", "a.yaml is no YAML"),
        ("a.yaml", "", "a.yaml is empty"),
        ("a.yaml", "apiVersion: v1\nkind: KafkaConnector\nspec: {}\n", "metadata.name"),
    ],
)
def test_what_is_wrong_with_a_file_is_one_sentence_that_names_it(name: str, text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=r"^a\.") as caught:
        parse(name, text, default_name="a")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_standard_input_is_known_by_its_first_line() -> None:
    assert parse("standard input", "# mine\nname=a\nx=1:2\n")[0].config == {"name": "a", "x": "1:2"}
    assert parse("standard input", "name: a\nx: 1=2\n")[0].config == {"name": "a", "x": "1=2"}
    assert parse("standard input", POSTED)[0].name == "a"
    with pytest.raises(ConfigError, match="has no name"):
        parse("standard input", "x: 1\n")


def test_two_files_with_one_connector_are_refused_by_both_names(tmp_path: Path) -> None:
    for name in ("1.json", "2.json"):
        (tmp_path / name).write_text(POSTED)
    with pytest.raises(ConfigError, match=r"2\.json and .*1\.json both hold the connector a"):
        read_paths([str(tmp_path)])


def test_folders_within_folders_count_only_when_asked(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner/a.json").write_text(POSTED)
    (tmp_path / "notes.txt").write_text("not a connector")
    with pytest.raises(ConfigError, match=r"has no file that ends in \.json"):
        read_paths([str(tmp_path)])
    assert [each.name for each in read_paths([str(tmp_path)], recursive=True)] == ["a"]


def test_variables_are_put_in_only_when_asked_and_only_those_in_capitals(tmp_path: Path) -> None:
    path = tmp_path / "a.properties"
    path.write_text("p=${DB_PASSWORD}\nt=${topic}-x\nf=${file:/s:k}\ne=$${DB_PASSWORD}\n")
    as_written = {"p": "${DB_PASSWORD}", "t": "${topic}-x", "f": "${file:/s:k}", "e": "$${DB_PASSWORD}", "name": "a"}
    assert read_paths([str(path)])[0].config == as_written
    found = read_paths([str(path)], environ={"DB_PASSWORD": "se${cret}"})[0].config
    assert found == {**as_written, "p": "se${cret}", "e": "${DB_PASSWORD}"}
    with pytest.raises(ConfigError, match="DB_PASSWORD is not set"):
        read_paths([str(path)], environ={})
