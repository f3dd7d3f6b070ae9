"""The MongoDB connector's configuration: what is refused, in whose words, and what becomes of it."""

import logging
from typing import Any

import pytest

from connect_py.errors import ConfigError
from connectors.mongodb.addresses import connection_string_problem, masked
from connectors.mongodb.capture import NamespaceFilter
from connectors.mongodb.config import parse_config, validate_config
from connectors.mongodb.position.offset import stored_offset

GOOD = {"topic.prefix": "m", "mongodb.connection.string": "mongodb://u:p%40ss@a:27017,b/?replicaSet=rs0"}


def errors(**more: str | None) -> dict[str, list[str]]:
    config = {**GOOD, **{name.replace("__", "."): text for name, text in more.items()}}
    return {value.name: value.errors for value in validate_config(config) if value.errors}


def test_a_good_configuration_has_no_errors() -> None:
    assert errors() == {}


def test_the_mode_of_old_tutorials_is_taken_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    assert errors(snapshot__mode="never") == {}
    with caplog.at_level(logging.WARNING):
        mode = parse_config({**GOOD, "snapshot.mode": "never"}).snapshot_mode
    assert (mode.name, mode.without_offset, mode.streams) == ("no_data", False, True)
    assert "snapshot.mode 'never' is the old name of 'no_data'" in caplog.text
    assert "snapshot.mode" in errors(snapshot__mode="exported")


def test_field_lists_are_refused_entry_by_entry_under_the_name_that_the_reference_uses() -> None:
    form = "<databaseName>.<collectionName>.<fieldName>.<nestedFieldName>"
    assert errors(field__exclude__list="a.b.c,,x") == {
        "field.exclude.list": [
            f"The 'field.exclude.list' value is invalid:  has invalid format (expecting {form})",
            f"The 'field.exclude.list' value is invalid: x has invalid format (expecting {form})",
        ]
    }
    assert errors(field__renames="a.b.c:d:e") == {
        "field.renames": [
            f"The 'field.exclude.list' value is invalid: a.b.c:d:e has invalid format (expecting {form}:<newNestedFieldName>)"
        ]
    }


def test_literal_names_may_be_no_regex_but_not_empty() -> None:
    literal = {"filters__match__mode": "literal"}
    assert errors(collection__include__list="a.(b", **literal) == {}
    assert errors(collection__include__list="a.b,,", **literal) == {}
    assert errors(database__include__list="a,,b", **literal) == {
        "database.include.list": ["The 'database.include.list' value is invalid: database.include.list contains empty values"]
    }
    assert list(errors(collection__include__list="a.(b")) == ["collection.include.list"]


def test_properties_that_were_removed_are_named_where_the_reference_names_them() -> None:
    assert errors(mongodb__connection__mode="replica_set") == {
        "mongodb.connection.string": ["Deprecated field 'mongodb.connection.mode' is used set to removed 'replica_set' value"]
    }
    assert errors(mongodb__connection__mode="sharded") == {}


@pytest.mark.parametrize(
    ("string", "valid"),
    [
        ("mongodb://localhost", True),
        ("mongodb://[::1]:27017/db?replicaSet=a&odd=1", True),
        ("mongodb+srv://cluster.example.com/", True),
        ("mongodb://u:p@h/?authMechanism=SCRAM-SHA-256", True),
        ("mongodb://u@h:1/?authMechanism=ODD", False),
        ("mongodb+srv://a,b/", False),
        ("mongodb+srv://a:27017/", False),
        ("mongodb://h:x/", False),
        ("mongodb://h:70000/", False),
        ("mongodb://", False),
        ("mongo://nowhere", False),
        ("mongodb://a:b:c@h/", False),
        ("mongodb://h/x/y", False),
        ("mongodb://h/?readPreference=odd", False),
        ("mongodb://h/?readPreference=secondaryPreferred&connectTimeoutMS=5", True),
        ("mongodb://h/?serverSelectionTimeoutMS=x", False),
        ("", False),
    ],
)
def test_connection_strings_are_known_by_their_form(string: str, valid: bool) -> None:
    assert (connection_string_problem(string) is None) == valid


def test_a_masked_connection_string_holds_no_secret() -> None:
    shown = masked("mongodb://admin:s3cret@h/?tlsCertificateKeyFilePassword=t0psecret&replicaSet=rs0")
    assert "s3cret" not in shown and "t0psecret" not in shown and "replicaSet=rs0" in shown


def test_hidden_choices_fall_back_to_their_defaults_as_in_the_reference() -> None:
    parsed = parse_config({**GOOD, "json.serialization.mode": "odd", "capture.scope": "odd", "cursor.pipeline.order": "odd"})
    assert parsed.choice("json.serialization.mode") == "legacy"
    assert parsed.capture.database is None


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"cursor.pipeline": "[{"}, "Change stream pipeline JSON is invalid"),
        ({"cursor.pipeline": "{}"}, "Change stream pipeline JSON is invalid"),
        ({"cursor.oversize.handling.mode": "skip"}, "Invalid threshold value for skipped document size"),
        ({"capture.scope": "database"}, "capture.target is missing"),
        ({"capture.scope": "collection", "capture.target": "db"}, "is no collection"),
        ({"capture.start.op.time": "soon"}, "is no BSON timestamp"),
    ],
)
def test_what_the_reference_finds_when_it_runs_is_said_when_the_task_starts(more: dict[str, str], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        parse_config({**GOOD, **more})


def stages(**more: str) -> list[dict[str, Any]]:
    return list(parse_config({**GOOD, **{name.replace("__", "."): text for name, text in more.items()}}).capture.stages)


def test_stages_stand_in_the_configured_order_with_skipping_first_and_splitting_last() -> None:
    user = '[{"$match": {"fullDocument.a": 1}}]'
    names = lambda found: [next(iter(stage)) for stage in found]  # noqa: E731
    assert names(stages(cursor__pipeline=user)) == ["$match", "$match"]
    assert stages(cursor__pipeline=user)[1] == {"$match": {"fullDocument.a": 1}}
    assert stages(cursor__pipeline=user, cursor__pipeline__order="user_first")[0] == {"$match": {"fullDocument.a": 1}}
    assert stages(cursor__pipeline=user, cursor__pipeline__order="user_only") == [{"$match": {"fullDocument.a": 1}}]
    split = stages(cursor__oversize__handling__mode="split")
    assert split[-1] == {"$changeStreamSplitLargeEvent": {}}
    skip = stages(cursor__oversize__handling__mode="skip", cursor__oversize__skip__threshold="1000")
    assert skip[0] == {
        "$match": {
            "$and": [{"$expr": {"$lte": [{"$bsonSize": name}, 1000]}} for name in ("$fullDocument", "$fullDocumentBeforeChange")],
        }
    }


def test_signals_pass_the_servers_stage_although_inserts_are_skipped() -> None:
    found = stages(collection__include__list="a.b", signal__data__collection="x.signals", skipped__operations="c")
    match = next(stage["$match"] for stage in found if "$match" in stage)
    assert {"event.ns": {"db": "x", "coll": "signals"}, "event.operationType": {"$in": ["delete", "insert", "replace", "update"]}} in match[
        "$or"
    ]


def test_the_servers_own_databases_are_never_captured_and_the_signal_collection_always() -> None:
    names = NamespaceFilter.parse({"collection.include.list": "a\\.b.*,admin.x"}, "z.Signals")
    assert names.is_captured("a.b") and names.is_captured("A.BCD")
    assert not names.is_captured("xa.b") and not names.is_captured("admin.x")
    assert names.is_captured("z.Signals") and not names.is_captured("z.signals")
    assert names.is_snapshotted("z.Signals")


def test_an_offset_with_the_replica_sets_name_is_found_where_the_plain_one_is_missing() -> None:
    stored = {"sec": 5, "ord": 1, "resume_token": "8200000001000000012B0229296E04"}
    offset = stored_offset(parse_config(GOOD), lambda partition: stored if partition == {"server_id": "m", "rs": "rs0"} else None)
    assert offset is not None and offset.seconds == 5 and offset.token is not None and offset.token.time == (1, 1)
