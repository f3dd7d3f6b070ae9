"""Members of a group over a real broker: rounds, news by heartbeat, life while others are waited for, the end of dead members."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion
from kafka.admin import KafkaAdminClient

from connect_py.api.group import Joined
from connect_py.app.services.kafka import KafkaBroker
from connect_py.app.services.process import free_port
from connect_py.errors import ConfigError, RetriableError
from connect_py.kafka.group_client import KafkaGroupClient
from tests.canary import within
from tests.certificates import Identity
from tests.fix_kafka import Kafka, set_topic
from tests.https_servers import token_server
from tests.waiting import eventually, let_time_pass

pytestmark = pytest.mark.services


class Handler:
    """Offers a word, and as the leader gives everybody all words."""

    def __init__(self, word: str) -> None:
        self.word = word.encode()
        self.rounds: list[tuple[int, str]] = []
        self.divided: list[bytes] = []

    def stirred(self) -> None:
        pass

    def offers(self) -> Sequence[tuple[str, bytes]]:
        return [("sessioned", self.word), ("default", self.word)]

    def assign(self, leader: str, generation: int, protocol: str, members: Mapping[str, bytes]) -> Mapping[str, bytes]:
        self.rounds.append((generation, protocol))
        self.divided.append(b" ".join(sorted(members.values())))
        return dict.fromkeys(members, self.divided[-1])


class Slow(Handler):
    """Takes a moment to divide the work, as a leader has much of it."""

    def assign(self, leader: str, generation: int, protocol: str, members: Mapping[str, bytes]) -> Mapping[str, bytes]:
        let_time_pass(0.1, "the work of a leader")
        return super().assign(leader, generation, protocol, members)


Make = Callable[..., KafkaGroupClient]


@pytest.fixture
def make(kafka: Kafka, tag: str) -> Iterator[Make]:
    made: list[KafkaGroupClient] = []

    def client(word: str, more: Mapping[str, str] = {}, handler: Handler | None = None) -> KafkaGroupClient:
        properties = {"bootstrap.servers": kafka.bootstrap, "client.id": f"connect-{word[:20]}", **more}
        made.append(KafkaGroupClient(properties, tag, session_ms=6000, heartbeat_ms=2000, rebalance_ms=20_000))
        made[-1].connect(handler or Handler(word), 60)
        return made[-1]

    yield client
    for each in made:
        each.leave("the test is over", 2)
        each.close()


def join(client: KafkaGroupClient, seconds: float = 60) -> bytes:
    return joined(client, seconds).assignment


def joined(client: KafkaGroupClient, seconds: float = 60) -> Joined:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = client.join(0.2)
        if found is not None:
            return found
    raise AssertionError("no round")


def knock(pool: ThreadPoolExecutor, comer: KafkaGroupClient, member: KafkaGroupClient) -> Future[bytes]:
    """Have a client join; returns when the member has heard of it."""
    joining = pool.submit(join, comer)
    eventually(lambda: member.serve() or member.needs_join, "news")
    return joining


def test_members_join_and_learn_by_their_heartbeats_of_those_who_come_and_go(make: Make) -> None:
    first = make("a")
    assert first.needs_join and first.heard == float("-inf")
    assert join(first) == b"a"
    assert not first.needs_join and time.monotonic() - first.heard < 5
    second = make("b")
    with ThreadPoolExecutor(1) as pool:
        other = knock(pool, second, first)
        assert join(first) == b"a b"
        assert other.result() == b"a b"
    second.leave("enough", 5)
    assert second.heard == float("-inf")
    eventually(lambda: first.serve() or first.needs_join, "news")
    assert join(first) == b"a"


def test_members_learn_who_leads_them(make: Make) -> None:
    first, second = make("a"), make("b")
    alone = joined(first)
    assert alone.leader == alone.member_id
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(joined, second)
        eventually(lambda: first.serve() or first.needs_join, "news")
        assert joined(first).leader == alone.member_id
        assert other.result().leader == alone.member_id != other.result().member_id


def test_a_member_that_waits_for_others_shows_the_group_that_it_lives(make: Make) -> None:
    first, second = make("a"), make("b")
    assert join(first) == b"a"
    with ThreadPoolExecutor(1) as pool:
        other = knock(pool, second, first)
        join(first)
        other.result()
        first.rejoin()
        waiting = pool.submit(join, first, 60)  # the second does not take part for longer than a lease
        began, oldest = time.monotonic(), 0.0
        while time.monotonic() - began < 5:
            second.serve()
            oldest = max(oldest, time.monotonic() - first.heard)
            assert not waiting.done()
        assert oldest < 4
        assert join(second) == b"a b"
        assert waiting.result() == b"a b"


def test_a_round_that_ends_between_two_calls_is_not_repeated(make: Make) -> None:
    first, second = make("a"), make("b")
    assert join(first) == b"a"
    with ThreadPoolExecutor(1) as pool:
        other = knock(pool, second, first)
        assert first.join(0.001) is None
        assert other.result() == b"a b"
    let_time_pass(0.5, "the first member's answer comes while nobody waits for it")
    with within(5, "no other round"):
        assert join(first) == b"a b"
    let_time_pass(1, "a heartbeat of the second one would tell of another round")
    second.serve()
    assert not second.needs_join


def test_members_whose_offers_exceed_a_megabyte_meet(kafka: Kafka, make: Make) -> None:
    """The coordinator's answer to the leader holds what all offered: in a large group more than the library's own limit of 1 MB."""
    words = [letter * 400_000 for letter in "abc"]
    everything = b" ".join(word.encode() for word in words)
    members = [make(word) for word in words]
    assert join(members[0]) == words[0].encode()

    def is_refused(client: KafkaGroupClient) -> bool:
        """The broker keeps a group as one record, and of no more than 1 MB unless it is told otherwise."""
        try:
            client.join(0.2)
        except RetriableError as error:
            return "raise max.message.bytes of the topic __consumer_offsets" in str(error)
        return False

    eventually(lambda: any(tuple(map(is_refused, members))), "a broker that cannot store the group")
    set_topic(kafka.bootstrap, "__consumer_offsets", {"max.message.bytes": "16000000"})

    def meet(client: KafkaGroupClient) -> bool:
        try:
            joined = client.join(0.2)
        except RetriableError:  # the broker has not heard of its new limit
            return False
        return joined is not None and joined.assignment == everything

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda member: eventually(lambda: meet(member), "round of all three"), members))


def test_no_member_is_a_static_one(kafka: Kafka, make: Make, tag: str) -> None:
    """A broker tells the leader of a group with a static member to leave its assignment out, on which a Java worker fails."""
    join(make("a", {"group.instance.id": "one"}))
    admin = KafkaAdminClient(bootstrap_servers=kafka.bootstrap)
    try:
        described = admin.describe_groups([tag])[tag]
    finally:
        admin.close()
    assert [(member["client_id"], member["group_instance_id"]) for member in described["members"]] == [("connect-a", None)]


def test_members_whose_processes_are_dead_are_taken_out_at_once(make: Make) -> None:
    dead = make("dead")
    join(dead)
    dead.close()  # it says nothing more, and does not leave
    successor = make("successor")
    seen: list[tuple[str, bytes]] = []

    def is_dead(client_id: str, offered: bytes) -> bool:
        seen.append((client_id, offered))
        return client_id == "connect-dead"

    assert len(successor.dismiss(is_dead, 60)) == 1
    assert seen == [("connect-dead", b"dead")]
    with within(5, "not the session of the dead"):
        assert join(successor) == b"successor"


def test_a_round_whose_members_leave_as_soon_as_it_has_all_fails_and_the_next_one_follows_at_once(make: Make) -> None:
    """The leader has divided the work in a round that nobody gets a part of: it starts over without those who have left."""
    with ThreadPoolExecutor(3) as pool:
        leader = Slow("leads")
        leads, ends, stays = make("leads", handler=leader), make("ends"), make("stays")
        assert join(leads) == b"leads"
        for comer, others in ((ends, [leads]), (stays, [leads, ends])):
            joining = pool.submit(join, comer)
            for other in others:
                eventually(lambda other=other: other.serve() or other.needs_join, "news")  # type: ignore[misc]
            for found in [pool.submit(join, other) for other in others]:
                found.result(60)
            joining.result(60)
        ending = pool.submit(ends.join_twice_and_leave, "the worker is shutting down", 20.0)
        for other in (leads, stays):
            eventually(lambda other=other: other.serve() or other.needs_join, "news")  # type: ignore[misc]
        with within(1.5, "the others do not need another heartbeat"):
            rounds = [pool.submit(joined, other) for other in (leads, stays)]
            given = [each.result(60).assignment for each in rounds]
            ending.result(60)
    assert given == [b"leads stays"] * 2
    assert leader.divided[-2:] == [b"ends ends leads stays", b"leads stays"]


def test_an_absent_broker_is_called_so(free_address: str) -> None:
    client = KafkaGroupClient({"bootstrap.servers": free_address}, "g", session_ms=6000, heartbeat_ms=2000, rebalance_ms=20_000)
    with pytest.raises(RetriableError, match=f"No Kafka broker answered at {free_address} within 1 s"):
        client.connect(Handler("a"), 1.0)
    client.close()


@pytest.fixture
def free_address() -> str:
    return f"127.0.0.1:{free_port()}"


SECURED = """
listeners=PLAINTEXT://127.0.0.1:{{port}},CONTROLLER://127.0.0.1:{{controller}},SASL_SSL://{address}
advertised.listeners=PLAINTEXT://127.0.0.1:{{port}},SASL_SSL://{address}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-512,OAUTHBEARER
ssl.keystore.type=PEM
ssl.keystore.key={key}
ssl.keystore.certificate.chain={certificate}
listener.name.sasl_ssl.plain.sasl.jaas.config={module}.plain.PlainLoginModule required user_me="secret";
listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config={module}.scram.ScramLoginModule required;
listener.name.sasl_ssl.oauthbearer.sasl.jaas.config={module}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="b";
"""
MODULE = "org.apache.kafka.common.security"
LOGINS = {
    "PLAIN": f'{MODULE}.plain.PlainLoginModule required username="me" password="secret";',
    "SCRAM-SHA-512": f'{MODULE}.scram.ScramLoginModule required username="me" password="secret";',
    "OAUTHBEARER": f'{MODULE}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="me";',
}


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    """Properties by which workers reach a broker over TLS, but for their login."""
    identity, address = Identity("127.0.0.1"), f"127.0.0.1:{free_port()}"
    key, certificate = (text.replace("\n", "\\n") for text in (identity.key_pem(), identity.chain_pem))
    more = SECURED.format(address=address, key=key, certificate=certificate, module=MODULE)
    broker = KafkaBroker(tmp_path_factory.mktemp("secured"), more=more)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    login = UserScramCredentialUpsertion("me", ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096), b"secret")
    for future in admin.alter_user_scram_credentials([login]).values():
        future.result(30)
    yield {
        "bootstrap.servers": address,
        "security.protocol": "SASL_SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": identity.chain_pem,
    }
    broker.discard()


@pytest.mark.parametrize("mechanism", LOGINS)
def test_a_member_joins_by_tls_and_a_login(secured: Mapping[str, str], mechanism: str) -> None:
    properties = {**secured, "sasl.mechanism": mechanism, "sasl.jaas.config": LOGINS[mechanism]}
    client = KafkaGroupClient(properties, f"by-{mechanism}", session_ms=6000, heartbeat_ms=2000, rebalance_ms=20_000)
    client.connect(Handler("a"), 60)
    assert join(client) == b"a"
    figures = client.figures()
    assert figures["join-total"] >= 1 and figures["heartbeat-total"] >= 1 and figures["last-heartbeat-seconds-ago"] < 10
    client.leave("the test is over", 2)
    client.close()


def test_a_token_comes_from_a_server_that_only_the_named_authority_vouches_for(secured: Mapping[str, str], tmp_path: Path) -> None:
    authority, trusted = Identity("sso"), tmp_path / "ca.crt"
    trusted.write_text(authority.chain_pem)
    with token_server(authority, tmp_path, "me", "secret") as endpoint:
        line = (
            f'{MODULE}.oauthbearer.OAuthBearerLoginModule required oauth.client.id="me" oauth.client.secret="secret" '
            f'oauth.token.endpoint.uri="{endpoint}" oauth.ssl.truststore.location="{trusted}" oauth.ssl.truststore.type="PEM";'
        )
        properties = {**secured, "sasl.mechanism": "OAUTHBEARER", "sasl.jaas.config": line}
        client = KafkaGroupClient(properties, "by-a-token", session_ms=6000, heartbeat_ms=2000, rebalance_ms=20_000)
        client.connect(Handler("a"), 60)
        assert join(client) == b"a"
        client.leave("the test is over", 2)
        client.close()


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_a_wrong_password_is_called_so(secured: Mapping[str, str], mechanism: str) -> None:
    properties = {**secured, "sasl.mechanism": mechanism, "sasl.jaas.config": LOGINS[mechanism].replace("secret", "wrong")}
    client = KafkaGroupClient(properties, "g", session_ms=6000, heartbeat_ms=2000, rebalance_ms=20_000)
    with pytest.raises(ConfigError, match="refuses this worker's credentials"):
        client.connect(Handler("a"), 60)


def test_a_broker_with_another_certificate_is_not_trusted(secured: Mapping[str, str]) -> None:
    properties = {**secured, "sasl.mechanism": "PLAIN", "sasl.jaas.config": LOGINS["PLAIN"]}
    properties["ssl.truststore.certificates"] = Identity("another").chain_pem
    client = KafkaGroupClient(properties, "g", session_ms=6000, heartbeat_ms=2000, rebalance_ms=20_000)
    with pytest.raises(RetriableError, match="No Kafka broker answered"):
        client.connect(Handler("a"), 3)
