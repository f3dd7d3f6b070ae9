"""Does what Kafka's command line tools do, which take a JVM each: the commands that the product prints, run as they stand."""

from __future__ import annotations

import argparse
import shlex

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from tests.fix_kafka import set_topic

_RESOURCES = {"topic": ResourceType.TOPIC, "group": ResourceType.GROUP, "transactional_id": ResourceType.TRANSACTIONAL_ID}


def run(command: str, servers: str = "") -> None:
    """Do what a command says.

    Args:
        servers: of a listener on which the test is an administrator; else those of the command.
    """
    tool, *words = shlex.split(command)
    parser = argparse.ArgumentParser(tool, allow_abbrev=False)
    parser.add_argument("--bootstrap-server", required=True)
    {"kafka-configs.sh": _configs, "kafka-acls.sh": _acls}[tool](parser, words, servers)


def _configs(parser: argparse.ArgumentParser, words: list[str], servers: str) -> None:
    parser.add_argument("--alter", action="store_true", required=True)
    parser.add_argument("--entity-type", choices=["topics"], required=True)
    parser.add_argument("--entity-name", required=True)
    parser.add_argument("--add-config", required=True)
    given = parser.parse_args(words)
    changes = [each.partition("=") for each in given.add_config.split(",")]
    set_topic(servers or given.bootstrap_server, given.entity_name, {name: value for name, _, value in changes})


def _acls(parser: argparse.ArgumentParser, words: list[str], servers: str) -> None:
    parser.add_argument("--add", action="store_true", required=True)
    parser.add_argument("--allow-principal", required=True)
    parser.add_argument("--operation", action="append", choices=["Read", "Write", "Create", "Describe"], required=True)
    parser.add_argument("--resource-pattern-type", choices=["literal", "prefixed"], default="literal")
    for name in _RESOURCES:
        parser.add_argument(f"--{name.replace('_', '-')}", action="append", default=[])
    given = parser.parse_args(words)
    pattern = ResourcePatternType[given.resource_pattern_type.upper()]
    bindings = [
        AclBinding(kind, resource, pattern, given.allow_principal, "*", AclOperation[operation.upper()], AclPermissionType.ALLOW)
        for name, kind in _RESOURCES.items()
        for resource in getattr(given, name)
        for operation in given.operation
    ]
    assert bindings, "the command names no resource"
    admin = AdminClient({"bootstrap.servers": servers or given.bootstrap_server})
    for future in admin.create_acls(bindings).values():
        future.result(30)
