"""Members of a group over a real broker: rounds, news by heartbeat, life while others are waited for, the end of dead members."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from connect_py.errors import RetriableError
from connect_py.kafka.group_client import KafkaGroupClient
from tests.fix_kafka import Kafka
from tests.waiting import eventually

pytestmark = [pytest.mark.services, pytest.mark.timeout(120)]


class Handler:
    """Offers a word, and as the leader gives everybody all words."""

    def __init__(self, word: str) -> None:
        self.word = word.encode()
        self.rounds: list[tuple[int, str]] = []

    def stirred(self) -> None:
        pass

    def offers(self) -> Sequence[tuple[str, bytes]]:
        return [("sessioned", self.word), ("default", self.word)]

    def assign(self, leader: str, generation: int, protocol: str, members: Mapping[str, bytes]) -> Mapping[str, bytes]:
        self.rounds.append((generation, protocol))
        return dict.fromkeys(members, b" ".join(sorted(members.values())))


Make = Callable[..., KafkaGroupClient]


@pytest.fixture
def make(kafka: Kafka, tag: str) -> Iterator[Make]:
    made: list[KafkaGroupClient] = []

    def client(word: str) -> KafkaGroupClient:
        properties = {"bootstrap.servers": kafka.bootstrap, "client.id": f"connect-{word}"}
        made.append(KafkaGroupClient(properties, tag, session_ms=6000, heartbeat_ms=2000, rebalance_ms=20_000))
        made[-1].connect(Handler(word), 20)
        return made[-1]

    yield client
    for each in made:
        each.leave("the test is over", 2)
        each.close()


def join(client: KafkaGroupClient, seconds: float = 20) -> bytes:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        joined = client.join(0.2)
        if joined is not None:
            return joined.assignment
    raise AssertionError("no round")


def test_members_join_and_learn_by_their_heartbeats_of_those_who_come_and_go(make: Make) -> None:
    first = make("a")
    assert first.needs_join and first.heard == float("-inf")
    assert join(first) == b"a"
    assert not first.needs_join and time.monotonic() - first.heard < 5
    second = make("b")
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(join, second)
        eventually(lambda: first.serve() or first.needs_join, "news", 10)
        assert join(first) == b"a b"
        assert other.result() == b"a b"
    second.leave("enough", 5)
    assert second.heard == float("-inf")
    eventually(lambda: first.serve() or first.needs_join, "news", 10)
    assert join(first) == b"a"


def test_a_member_that_waits_for_others_shows_the_group_that_it_lives(make: Make) -> None:
    first, second = make("a"), make("b")
    assert join(first) == b"a"
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(join, second)
        eventually(lambda: first.serve() or first.needs_join, "news", 10)
        join(first)
        other.result()
        first.rejoin()
        waiting = pool.submit(join, first, 30)  # the second does not take part for longer than a lease
        began, oldest = time.monotonic(), 0.0
        while time.monotonic() - began < 5:
            second.serve()
            oldest = max(oldest, time.monotonic() - first.heard)
            assert not waiting.done()
        assert oldest < 4
        assert join(second) == b"a b"
        assert waiting.result() == b"a b"


def test_members_whose_processes_are_dead_are_taken_out_at_once(make: Make) -> None:
    dead = make("dead")
    join(dead)
    dead.close()  # it says nothing more, and does not leave
    successor = make("successor")
    seen: list[tuple[str, bytes]] = []

    def is_dead(client_id: str, offered: bytes) -> bool:
        seen.append((client_id, offered))
        return client_id == "connect-dead"

    assert len(successor.dismiss(is_dead, 10)) == 1
    assert seen == [("connect-dead", b"dead")]
    began = time.monotonic()
    assert join(successor) == b"successor"
    assert time.monotonic() - began < 5, "not the session of the dead"


def test_an_absent_broker_is_called_so(free_address: str) -> None:
    client = KafkaGroupClient({"bootstrap.servers": free_address}, "g", session_ms=6000, heartbeat_ms=2000, rebalance_ms=20_000)
    with pytest.raises(RetriableError, match=f"No Kafka broker answered at {free_address} within 1 s"):
        client.connect(Handler("a"), 1.0)
    client.close()


@pytest.fixture
def free_address() -> str:
    from connect_py.app.services.process import free_port

    return f"127.0.0.1:{free_port()}"
