"""`delete`: connectors, and with `--with` what they leave behind in Kafka and in PostgreSQL.

Everything that can be known is looked at before the question. The connector is stopped first and deleted last, so that the command may be
repeated when a server refuses a step.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from connect_py.app.client.diff import select
from connect_py.app.client.rest import ConnectClient
from connect_py.app.client.watch import Watch
from connect_py.app.commands.command import OK, USAGE, Command
from connect_py.app.commands.connection import (
    add_broker_options,
    add_worker_options,
    broker_properties,
    client_of,
    confirm,
    require_values,
    say,
    say_note,
    wait_settled,
)
from connect_py.errors import ConfigError, ConnectError, RetriableError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from connectors.postgres.server.connection import Connection

#: What `--with` accepts, in the order in which it is removed: first what a server is likeliest to refuse.
PARTS = ("topics", "slot", "publication", "offsets")

_POSTGRES = ("io.debezium.connector.postgresql.PostgresConnector", "PostgresConnector", "Postgres")

#: How long a statement may take, and the server to release a slot whose task has just ended.
_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Left:
    """What a connector leaves behind.

    Attributes:
        config: its configuration.
        topics: those that it has written to.
        slot, publication: their names, of PostgreSQL; otherwise empty.
    """

    config: Mapping[str, str]
    topics: tuple[str, ...] = ()
    slot: str = ""
    publication: str = ""

    def lines(self, parts: Collection[str]) -> list[str]:
        """Return what of it is to be deleted, for the question."""
        found = [f"topic {topic}" for topic in self.topics if "topics" in parts]
        found += [f"replication slot {self.slot}"] if "slot" in parts else []
        found += [f"publication {self.publication}"] if "publication" in parts else []
        return found + (["its offsets"] if "offsets" in parts else [])


def parts_of(text: str) -> set[str]:
    """Return the parts of a list such as `offsets,slot`. Raises ConfigError."""
    found = {part.strip() for part in text.split(",") if part.strip()}
    if unknown := sorted(found - set(PARTS)):
        raise ConfigError(f"--with does not know {', '.join(unknown)}: it accepts {', '.join(sorted(PARTS))}")
    return found


def what_is_left(
    found: Mapping[str, Mapping[str, Any]], doomed: Collection[str], parts: Collection[str], topics: Callable[[str], list[str]]
) -> dict[str, Left]:
    """Return what each connector leaves behind, of these parts.

    Args:
        found: all connectors of the worker, as `/connectors?expand=info` has them.
        doomed: those to be deleted.
        topics: returns the topics that a connector has used.

    Raises:
        ConfigError: a connector has no such thing, or a connector that stays uses it too.
    """
    infos = {name: each["info"] for name, each in found.items()}
    stays = {name: info["config"] for name, info in infos.items() if name not in doomed}
    of_postgres = {"slot", "publication"} & set(parts)
    left = {}
    for name in doomed:
        config = infos[name]["config"]
        if of_postgres:
            if config.get("connector.class") not in _POSTGRES:
                raise ConfigError(f"{name} is no PostgreSQL connector: it has no replication slot and no publication")
            require_values(name, config)
        if "topics" in parts and infos[name].get("type") != "source":
            raise ConfigError(f"{name} is no source: the topics that it reads are not its own")
        left[name] = Left(config, tuple(topics(name)) if "topics" in parts else (), *(_names(config) if of_postgres else ()))
        for other, theirs in stays.items():
            _require_own(name, left[name], other, theirs, of_postgres)
    if "topics" in parts:
        for other in stays:
            used = {*topics(other), *(topic.strip() for topic in stays[other].get("topics", "").split(","))}
            for name in doomed:
                if shared := sorted(used.intersection(left[name].topics)):
                    raise ConfigError(f"{other} uses topics of {name}, too: {', '.join(shared[:5])}. Delete it first, or keep the topics.")
    return left


def _names(config: Mapping[str, str]) -> tuple[str, str]:
    return config.get("slot.name", "debezium").strip(), config.get("publication.name", "dbz_publication").strip()


def _require_own(name: str, left: Left, other: str, theirs: Mapping[str, str], parts: Collection[str]) -> None:
    def server(config: Mapping[str, str]) -> tuple[str | None, str]:
        return config.get("database.hostname"), config.get("database.port", "5432")

    if not parts or theirs.get("connector.class") not in _POSTGRES or server(theirs) != server(left.config):
        return
    slot, publication = _names(theirs)
    if "slot" in parts and slot == left.slot:
        raise ConfigError(f"{other} reads the replication slot {slot} of {name}, too. Delete it first, or keep the slot.")
    if "publication" in parts and publication == left.publication and theirs.get("database.dbname") == left.config.get("database.dbname"):
        raise ConfigError(f"{other} reads the publication {publication} of {name}, too. Delete it first, or keep the publication.")


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="+", metavar="NAME", help="connectors, or globs such as 'shop-*'")
    parser.add_argument("--offsets", action="store_true", help="forget their offsets too: created again, they start from nothing")
    parser.add_argument(
        "--with",
        dest="parts",
        default="",
        metavar="PARTS",
        help="delete this too, separated by commas: offsets, topics that they have written to, slot and publication of PostgreSQL",
    )
    parser.add_argument("--yes", action="store_true", help="do not ask")
    add_broker_options(parser, "the worker's file, for topics: brokers and their security")
    add_worker_options(parser, has_json=False)


def _delete(chosen: argparse.Namespace) -> int:
    client = client_of(chosen)
    names = select(client.names(), chosen.names)
    parts = parts_of(chosen.parts) | ({"offsets"} if chosen.offsets else set())
    left = what_is_left(client.connectors(), names, parts, client.topics) if parts - {"offsets"} else {name: Left({}) for name in names}
    kafka = broker_properties(chosen, "delete")[1] if "topics" in parts else {}
    if not confirm(_question(left, parts), yes=chosen.yes):
        say_note("Nothing was changed.")
        return USAGE
    for name in names:
        if parts:
            client.set_state(name, "stop")
            failures = wait_settled(client, {name: Watch(state="STOPPED", settle_seconds=0.0)}, 60.0)
            if failures:
                raise RetriableError(f"{name} was stopped and not deleted: {failures[name]}")
            try:
                _delete_parts(client, name, left[name], parts, kafka)
            except ConnectError as error:
                raise RetriableError(f"{name} was stopped and not deleted: {error}. You may repeat the command.") from error
        client.delete(name)
        say([f"- {name}: delete"])
    return OK


def _question(left: Mapping[str, Left], parts: Collection[str]) -> str:
    names = ", ".join(left)
    if not parts:
        return f"Delete {names}? Their offsets, topics and replication slots stay."
    if parts == {"offsets"}:
        return f"Delete {names} and their offsets? Topics and replication slots stay."
    lines = [f"  {name}: {', '.join(each.lines(parts))}" for name, each in left.items()]
    return "\n".join(["These are deleted with all that they hold:", *lines, f"Delete {names} and all of that?"])


def _delete_parts(client: ConnectClient, name: str, left: Left, parts: Collection[str], kafka: Mapping[str, str]) -> None:
    if "topics" in parts and left.topics:
        from connect_py.kafka.admin import KafkaAdmin

        admin = KafkaAdmin(kafka)
        try:
            admin.delete_topics(left.topics)
        finally:
            admin.close()
        say(f"  - {name}: topic {topic}" for topic in left.topics)
    if {"slot", "publication"} & set(parts):
        _delete_in_postgres(name, left, parts)
    if "offsets" in parts:
        client.delete_offsets(name)


def _delete_in_postgres(name: str, left: Left, parts: Collection[str]) -> None:
    from connectors.postgres.server.connection import quote_name
    from connectors.postgres.slot.slot import drop_slot

    with _connected(left.config) as connection:
        if "slot" in parts:
            if not drop_slot(connection, left.slot, _SECONDS):
                raise RetriableError(f"another session reads the slot {left.slot}")
            say([f"  - {name}: replication slot {left.slot}"])
        if "publication" in parts:
            connection.query(f"DROP PUBLICATION IF EXISTS {quote_name(left.publication)}")
            say([f"  - {name}: publication {left.publication}"])


@contextmanager
def _connected(config: Mapping[str, str]) -> Iterator[Connection]:
    from connectors.postgres.config import parse_config
    from connectors.postgres.errors import ServerError
    from connectors.postgres.server.connection import Connection

    try:
        connection = Connection(parse_config(dict(config)).connection, "connect-py delete", query_seconds=_SECONDS)
        try:
            yield connection
        finally:
            connection.close()
    except ServerError as error:
        raise RetriableError(f"PostgreSQL refuses: {error}") from error


COMMANDS = (
    Command(
        "delete",
        "Change",
        "delete connectors; asks first",
        _options,
        _delete,
        about=(
            "--with removes what they leave behind, too, and refuses what another connector of the worker uses. Slots and publications are "
            "dropped by the connector's own user, from this machine; a schema history's topic stays."
        ),
        examples=(
            "delete inventory",
            "delete 'test-*' --offsets --yes",
            "delete inventory --with offsets,slot,publication,topics --bootstrap-servers localhost:9092",
        ),
    ),
)
