"""What is found of the rights of a login, and the commands that give them."""

from __future__ import annotations

import pytest

from connect_py.kafka.acl import CREATE, READ, WRITE, Login, TopicNeed, group_findings, principal, topic_findings, transaction_findings

MAY_DESCRIBE = frozenset({"DESCRIBE"})
BOTH = TopicNeed((READ, WRITE), "The worker does not start.", creates=True)
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def login(**facts: object) -> Login:
    return Login(("the worker", "the producer"), "User:app", "b:9092", **facts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("properties", "name"),
    [
        ({}, "User:ANONYMOUS"),
        ({"security.protocol": "SSL"}, "User:PRINCIPAL"),
        (
            {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.jaas.config": f'{_PLAIN} required username="app" password="correct-horse";',
            },
            "User:app",
        ),
        ({"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": "nonsense"}, "User:PRINCIPAL"),
        (
            {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "GSSAPI",
                "sasl.jaas.config": 'Krb5LoginModule required keyTab="/k" principal="worker/host@REALM";',
            },
            "User:worker",
        ),
    ],
)
def test_a_login_has_the_name_that_acls_know(properties: dict[str, str], name: str) -> None:
    assert principal(properties) == name


@pytest.mark.parametrize(
    ("topics", "uncreatable", "what", "operations"),
    [
        ({"t": frozenset({READ, WRITE})}, [], None, []),
        ({"t": None}, [], None, []),  # an old broker does not say
        ({"t": MAY_DESCRIBE | {READ}}, [], "may not write to the topic 't'.", ["Write"]),
        ({"t": MAY_DESCRIBE}, [], "may not read or write to the topic 't'.", ["Read", "Write"]),
        # it may exist or not
        ({"t": frozenset()}, ["t"], "may not read, write to or create the topic 't'.", ["Read", "Write", "Create"]),
        ({"t": frozenset()}, [], "may not read or write to the topic 't'.", ["Read", "Write"]),
        # it does not exist; what may be done there is not known
        ({}, [], None, []),
        ({}, ["t"], "may not create the topic 't', which does not exist.", ["Read", "Write", "Create"]),
        ({"t": frozenset({READ, WRITE})}, ["t"], None, []),
    ],
)
def test_what_is_missing_on_a_topic(
    topics: dict[str, frozenset[str] | None], uncreatable: list[str], what: str | None, operations: list[str]
) -> None:
    found = list(topic_findings(login(topics=topics, uncreatable=frozenset(uncreatable)), {"t": BOTH}))
    if what is None:
        assert found == []
        return
    (finding,) = found
    asked = " ".join(f"--operation {each}" for each in operations)
    assert finding.what == f"User:app (the worker, the producer) {what}"
    assert finding.statements == (f"kafka-acls.sh --bootstrap-server b:9092 --add --allow-principal User:app {asked} --topic t",)


def test_topics_with_the_same_gap_are_one_finding() -> None:
    need = TopicNeed((WRITE,), "The task fails.")
    found = list(topic_findings(login(topics=dict.fromkeys("abc", MAY_DESCRIBE)), {"a": need, "b": need, "c": TopicNeed((READ,), "No.")}))
    assert [finding.statements[0].partition(" --operation ")[2] for finding in found] == ["Write --topic a --topic b", "Read --topic c"]


def test_two_needs_of_a_topic_are_joined() -> None:
    joined = TopicNeed((WRITE,), "first").joined(TopicNeed((READ, WRITE), "second", creates=True))
    assert (joined.operations, joined.why, joined.creates) == ((WRITE, READ), "first", True)
    assert login(uncreatable=frozenset({"t"})).missing("t", joined) == (CREATE,)


def test_groups_and_transactional_ids_that_may_not_be_used() -> None:
    may_not = login(groups={"g": False, "h": None, "i": True}, refused_ids=frozenset({"w-c-0", "leader"}))
    (group,) = [finding for name in "ghi" for finding in group_findings(may_not, name, "No.")]
    assert group.statements[0].endswith("--operation Read --group g")
    (ids,) = transaction_findings(may_not, ["w-c-0", "w-c-1"], "w-c-", "No.")
    assert ids.statements[0].endswith("--operation Write --transactional-id w-c- --resource-pattern-type prefixed")
    (leader,) = transaction_findings(may_not, ["leader"], "leader", "No.")
    assert leader.statements[0].endswith("--operation Write --transactional-id leader")
    assert list(transaction_findings(may_not, ["other"], "other", "No.")) == []


def test_a_login_without_a_known_name_has_a_place_for_it() -> None:
    (finding,) = topic_findings(Login(("the worker",), "User:PRINCIPAL", "b:9092", {"t": MAY_DESCRIBE}), {"t": BOTH})
    assert "--allow-principal User:PRINCIPAL" in finding.statements[0] and "PRINCIPAL" in finding.advice
