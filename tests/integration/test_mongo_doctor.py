"""The doctor of MongoDB connectors: on a deployment, and its checks over facts that a server without logins cannot have."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest

from connect_py.api import Person
from connect_py.app.services.mongo import MongoAddress
from connectors.mongodb.checks import Facts, Rights, Wanted, all_findings
from connectors.mongodb.doctor import diagnose
from tests.mongo_task import config, database

pytestmark = pytest.mark.services


def test_a_deployment_that_has_everything_gives_no_finding(mongo: MongoAddress) -> None:
    with database(mongo) as db:
        db["orders"].insert_one({"_id": 1})
        found = diagnose(config(mongo, db))
        assert (found.findings, found.unseen, found.code) == ([], (), 0)
        assert found.topics == [f"m.{db.name}.orders"]


def test_faults_of_a_configuration_are_found_on_a_deployment(mongo: MongoAddress) -> None:
    with database(mongo) as db:
        db["orders"].insert_one({"_id": 1})
        nothing = diagnose(config(mongo, db, collection_include_list=f"{db.name}.nothing"))
        assert [finding.check for finding in nothing.findings] == ["mongodb.collections.none"]
        pipeline = diagnose(config(mongo, db, cursor_pipeline='[{"$nonsense": {}}]'))
        assert [finding.check for finding in pipeline.findings] == ["mongodb.stream"]


def test_a_deployment_that_cannot_be_used_is_a_finding_and_unseen(mongo: MongoAddress) -> None:
    with database(mongo) as db:
        address = "mongodb://app:correct-horse@127.0.0.1:1/?replicaSet=rs"
        found = diagnose(config(mongo, db) | {"mongodb.connection.string": address})
    assert ([finding.check for finding in found.findings], found.code) == (["mongodb.connection"], 3)
    assert "correct-horse" not in str(found)


FACTS = Facts((7, 0, 5), True, user=("app", "admin"), rights=Rights(unlimited=True), collections=[("shop", "orders")])
WANTED = Wanted(signal=("shop", "signal"), images=True)


def checks(facts: Facts, wanted: Wanted = WANTED) -> list[str]:
    return [finding.check for finding in all_findings(facts, wanted)]


def test_each_fault_of_a_deployment_has_its_finding() -> None:
    assert checks(FACTS) == []
    assert checks(replace(FACTS, has_streams=False)) == ["mongodb.replica_set"]
    assert checks(replace(FACTS, version=(5, 0))) == ["mongodb.images.version"]
    assert checks(replace(FACTS, without_images=[("shop", "orders")])) == ["mongodb.images"]
    assert checks(replace(FACTS, without_images=[("shop", "orders")]), replace(WANTED, images=False)) == []
    assert checks(replace(FACTS, oplog_seconds=600, oplog_is_full=True)) == ["mongodb.oplog"]
    assert checks(replace(FACTS, oplog_seconds=600)) == []


def answer(*privileges: Mapping[str, object]) -> Mapping[str, object]:
    """As a server answers connectionStatus."""
    return {"authInfo": {"authenticatedUsers": [{"user": "app", "db": "admin"}], "authenticatedUserPrivileges": list(privileges)}}


def test_all_missing_roles_are_one_statement() -> None:
    reads = Rights.parse(answer({"resource": {"db": "other", "collection": ""}, "actions": ["find", "changeStream"]}))
    (finding,) = all_findings(replace(FACTS, rights=reads), WANTED)
    assert (finding.check, finding.who) == ("mongodb.roles", Person.DBA)
    roles = [{"role": "readAnyDatabase", "db": "admin"}, {"role": "read", "db": "shop"}, {"role": "readWrite", "db": "shop"}]
    assert finding.statements == (f'db.getSiblingDB("admin").grantRolesToUser("app", {json.dumps(roles)})',)
    everything = answer(
        {"resource": {"db": "", "collection": ""}, "actions": ["find", "changeStream"]},
        {"resource": {"db": "shop", "collection": "signal"}, "actions": ["insert", "remove"]},
    )
    assert checks(replace(FACTS, rights=Rights.parse(everything))) == []
    assert checks(replace(FACTS, rights=Rights.parse(answer({"resource": {"anyResource": True}, "actions": ["anyAction"]})))) == []
