"""What a login may do on Kafka, and what it needs, as functions from facts to findings. Pure.

Brokers say of topics and groups that exist what a login may do there (KIP-430). Of others they say whether it may describe or create
them, and of transactional ids whether it may describe them; who may write may describe, too, so that a refusal is certain and its absence
is not.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from connect_py.api.doctor import Finding, Person
from connect_py.errors import ConfigError
from connect_py.kafka.security import security_settings

READ, WRITE, CREATE, DESCRIBE = "READ", "WRITE", "CREATE", "DESCRIBE"

#: Stands for a name that a client does not know: that of a certificate, or of whom a token is for.
PRINCIPAL: Final = "User:PRINCIPAL"
#: Topics that a sentence names.
_SHOWN = 20
_WORDS = {READ: "read", WRITE: "write to", CREATE: "create", DESCRIBE: "describe"}


def principal(properties: Mapping[str, str]) -> str:
    """Return the name by which ACLs know a login, as far as a client can tell (`DefaultKafkaPrincipalBuilder`).

    Args:
        properties: Java client properties.
    """
    try:
        settings = security_settings(properties)
    except ConfigError:
        return PRINCIPAL
    if settings["security.protocol"] == "PLAINTEXT":
        return "User:ANONYMOUS"
    if name := settings.get("sasl.username"):
        return f"User:{name}"
    if name := settings.get("sasl.kerberos.principal"):
        return f"User:{str(name).split('@')[0].split('/')[0]}"
    return PRINCIPAL


@dataclass(frozen=True, slots=True)
class TopicNeed:
    """What a login does with a topic.

    Attributes:
        operations: READ and WRITE, which allow to describe it as well; DESCRIBE alone is for who creates it.
        why: what does not work without them.
        creates: it creates the topic where that is missing.
    """

    operations: tuple[str, ...]
    why: str
    creates: bool = False

    def joined(self, other: TopicNeed) -> TopicNeed:
        """Return what both ask for."""
        operations = tuple(dict.fromkeys((*self.operations, *other.operations)))
        return TopicNeed(operations, self.why, self.creates or other.creates)


@dataclass(frozen=True, slots=True)
class Login:
    """One login, and what brokers say that it may do.

    Attributes:
        roles: what uses it: ``the worker``, ``the producer`` …
        principal: see `principal`.
        servers: `bootstrap.servers`, for commands.
        topics: what it may do, by topic; None where brokers do not say. A topic that does not exist is not there, unless the login may
            not even know that: then it is there with nothing.
        groups: whether it may join groups; None where brokers do not say.
        uncreatable: topics that it may not create; some of them may exist.
        refused_ids: transactional ids that it may not use.
    """

    roles: tuple[str, ...]
    principal: str
    servers: str
    topics: Mapping[str, frozenset[str] | None] = field(default_factory=dict)
    groups: Mapping[str, bool | None] = field(default_factory=dict)
    uncreatable: frozenset[str] = frozenset()
    refused_ids: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """What a sentence calls it."""
        return f"{'The login' if self.principal == PRINCIPAL else self.principal} ({', '.join(self.roles)})"

    def missing(self, topic: str, need: TopicNeed) -> tuple[str, ...]:
        """Return which operations on a topic it lacks, as far as that can be seen."""
        created = (CREATE,) if need.creates and topic in self.uncreatable else ()
        if topic not in self.topics:
            return created
        allowed = self.topics[topic]
        lacks = () if allowed is None else tuple(each for each in need.operations if each not in allowed)
        return (*lacks, *(created if allowed == frozenset() else ()))  # others exist

    def allow(self, operations: Sequence[str], *resources: str) -> str:
        """Return the command that allows operations on resources, `--topic NAME` each."""
        words = ["kafka-acls.sh", "--bootstrap-server", self.servers, "--add", "--allow-principal", self.principal]
        words += [word for operation in operations for word in ("--operation", operation.capitalize())]
        return " ".join(map(shlex.quote, [*words, *resources]))

    def finding(self, check: str, what: str, why: str, statement: str) -> Finding:
        """Return a finding of this login."""
        advice = "Put the name by which brokers know the login in place of PRINCIPAL." if self.principal == PRINCIPAL else ""
        return Finding(check, f"{self.name} {what}", why, Person.KAFKA_ADMIN, "a principal with Alter on the cluster", (statement,), advice)


def topic_findings(login: Login, needs: Mapping[str, TopicNeed]) -> Iterator[Finding]:
    """Check the rights on topics; one finding for all topics on which the same is missing."""
    lacks: dict[tuple[tuple[str, ...], tuple[str, ...], str], list[str]] = {}
    for topic, need in needs.items():
        if missing := login.missing(topic, need):
            # brokers do not say what may be done on a topic that does not exist
            asked = missing if topic in login.topics else (*need.operations, *missing)
            lacks.setdefault((missing, asked, need.why), []).append(topic)
    for (missing, asked, why), topics in lacks.items():
        exists_not = "" if missing != (CREATE,) else f", which {'does' if len(topics) == 1 else 'do'} not exist"
        words = [_WORDS[operation] for operation in missing]
        yield login.finding(
            "kafka.acl.create" if exists_not else "kafka.acl.topics",
            f"may not {' or '.join(filter(None, (', '.join(words[:-1]), words[-1])))} {_listed(topics)}{exists_not}.",
            why,
            login.allow(asked, *(word for topic in topics for word in ("--topic", topic))),
        )


def group_findings(login: Login, group: str, why: str) -> Iterator[Finding]:
    """Check that a login may be a member of a group."""
    if login.groups.get(group) is False:
        yield login.finding("kafka.acl.group", f"may not join the group '{group}'.", why, login.allow([READ], "--group", group))


def transaction_findings(login: Login, ids: Sequence[str], prefix: str, why: str) -> Iterator[Finding]:
    """Check that a login may use transactional ids.

    Args:
        prefix: what all of them begin with; the statement is for this. The id itself where there is one.
    """
    if login.refused_ids.isdisjoint(ids):
        return
    pattern = () if prefix in ids else ("--resource-pattern-type", "prefixed")
    yield login.finding(
        "kafka.acl.transactions",
        f"may not use the transactional id '{prefix}'." if not pattern else f"may not use transactional ids that begin with '{prefix}'.",
        why,
        login.allow([WRITE], "--transactional-id", prefix, *pattern),
    )


def login_finding(roles: Sequence[str], servers: str, reason: str) -> Finding:
    """Return the finding of a login that brokers refuse, or of brokers that the client does not trust."""
    return Finding(
        "kafka.login",
        f"The login of {' and '.join(roles)} at {servers} fails: {reason.rstrip('.')}.",
        "Nothing is read or written by it.",
        Person.YOU,
        advice="Check security.protocol, sasl.* and ssl.* in the worker's properties, and the connector's overrides. What the worker has "
        "for itself does not count for its producers and consumers: they need the same with producer. and consumer. before the names.",
    )


def _listed(topics: Sequence[str]) -> str:
    if len(topics) == 1:
        return f"the topic '{topics[0]}'"
    more = f" and {len(topics) - _SHOWN} more" if len(topics) > _SHOWN else ""
    return f"{len(topics)} topics ({', '.join(topics[:_SHOWN])}{more})"
