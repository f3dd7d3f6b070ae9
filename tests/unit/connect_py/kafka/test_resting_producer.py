"""A source's producer whose client is closed at rest: what it answers without one, and how the next record gets another."""

import pytest

from connect_py.errors import ConfigError
from connect_py.kafka.resting_producer import RestingProducer


class FakeClient:
    holds_back = True

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.sent: list[tuple[str, bytes | None]] = []
        self.under_way = 0
        self.is_statistics = False

    def send(self, topic, value, *others) -> None:
        self.sent.append((topic, value))
        self.under_way += 1

    def produce(self, topic, value, key=None, headers=None, on_delivery=None, **others) -> None:
        self.send(topic, value)

    def __len__(self) -> int:
        return self.under_way

    def connect(self, topic: str) -> None:
        self.calls.append(f"connect {topic}")

    def poll(self, timeout_seconds: float = 0.0) -> int:
        self.calls.append("poll")
        if self.is_statistics:
            self.under_way = 0
        return 1

    def send_now(self) -> None:
        self.calls.append("send_now")

    def flush(self, timeout_seconds: float) -> int:
        self.under_way = 0
        return 0

    def close(self, timeout_seconds: float) -> int:
        self.calls.append("close")
        return self.under_way


class Figures:
    awaits_broker = False
    closed = 0

    def client_closed(self) -> None:
        self.closed += 1


@pytest.fixture
def clients() -> list[FakeClient]:
    return []


@pytest.fixture
def figures() -> Figures:
    return Figures()


@pytest.fixture
def producer(clients: list[FakeClient], figures: Figures) -> RestingProducer:
    def open_client() -> FakeClient:
        clients.append(FakeClient())
        return clients[-1]

    return RestingProducer(open_client, figures, lambda: clients[-1].calls.append("free"))


def test_rows_go_to_the_clients_own_method(producer: RestingProducer, clients: list[FakeClient]) -> None:
    assert producer.send == clients[0].send
    assert producer.holds_back


def test_without_a_client_nothing_is_under_way_and_nothing_opens_one(
    producer: RestingProducer, clients: list[FakeClient], figures: Figures
) -> None:
    assert producer.release()
    assert clients[0].calls == ["poll", "close", "free"]
    assert (len(producer), producer.poll(), producer.flush(1.0), producer.close(1.0)) == (0, 0, 0, 0)
    producer.send_now()
    assert producer.release()
    assert (len(clients), clients[0].calls, figures.closed) == (1, ["poll", "close", "free"], 1)


@pytest.mark.parametrize("patient", [False, True])
def test_the_first_record_after_a_rest_opens_and_connects_another_client(
    producer: RestingProducer, clients: list[FakeClient], patient: bool
) -> None:
    producer.release()
    if patient:
        producer.produce("t", b"1")
        producer.produce("t", b"2")
    else:
        send = producer.send  # which the loop keeps for a whole batch
        for value in b"1", b"2":
            send("t", value, None, -1, None, None, 0, None)
    assert len(clients) == 2
    assert clients[1].calls == ["connect t"]
    assert clients[1].sent == [("t", b"1"), ("t", b"2")]
    assert producer.send == clients[1].send
    assert len(producer) == 2


def test_a_client_with_records_under_way_is_kept(producer: RestingProducer, clients: list[FakeClient], figures: Figures) -> None:
    producer.produce("t", b"1")
    assert not producer.release()
    assert len(producer) == 1
    producer.flush(1.0)
    assert producer.release()
    assert (clients[0].calls[-2:], figures.closed) == (["close", "free"], 1)


def test_figures_that_wait_to_be_taken_do_not_keep_a_client(producer: RestingProducer, clients: list[FakeClient]) -> None:
    clients[0].under_way, clients[0].is_statistics = 1, True
    assert producer.release()
    assert len(producer) == 0


def test_a_client_that_has_to_say_that_a_broker_answers_again_is_kept(
    producer: RestingProducer, clients: list[FakeClient], figures: Figures
) -> None:
    figures.awaits_broker = True
    assert not producer.release()
    figures.awaits_broker = False
    assert producer.release()
    assert len(clients) == 1


def test_a_client_that_cannot_be_opened_again_fails_each_record_and_takes_none(figures: Figures) -> None:
    made: list[FakeClient] = []

    def open_client() -> FakeClient:
        if made:
            raise ConfigError("the certificate has gone")
        made.append(FakeClient())
        return made[-1]

    producer = RestingProducer(open_client, figures)
    producer.release()
    for _ in range(2):
        with pytest.raises(ConfigError, match="certificate"):
            producer.send("t", b"1", None, -1, None, None, 0, None)
        with pytest.raises(ConfigError, match="certificate"):
            producer.produce("t", b"1")
    assert (len(producer), made[0].sent) == (0, [])
