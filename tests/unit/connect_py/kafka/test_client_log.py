"""librdkafka's repeated lines are counted, not shown."""

import json
import logging

import pytest

from connect_py.kafka.client_log import MAX_KINDS, REPEAT_SECONDS, BrokerWatch, ClientLog, Repeats

TEMPLATE = "%s [%s] %s"
REFUSED = "127.0.0.1:9092/bootstrap: Connect to ipv4#127.0.0.1:9092 failed: Connection refused (after {}ms in state CONNECT)"


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str]]:
    return [(record.levelno, record.getMessage()) for record in caplog.records]


def test_a_broker_that_is_away_is_one_line_for_all_clients_and_counted_later(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    now = 1000.0
    repeats = Repeats(lambda: now)
    clients = [ClientLog(repeats), ClientLog(repeats)]
    for duration in range(50):
        for number, log in enumerate(clients):
            log.log(logging.ERROR, TEMPLATE, "FAIL", f"c{number}", "[thrd:main]: " + REFUSED.format(duration))
    clients[0].log(logging.ERROR, TEMPLATE, "FAIL", "c0", "[thrd:main]: GroupCoordinator: " + REFUSED.format(0))
    clients[0].log(logging.ERROR, TEMPLATE, "FAIL", "c0", "[thrd:main]: " + REFUSED.format(0).replace("9092", "9093"))
    now += REPEAT_SECONDS
    clients[1].log(logging.ERROR, TEMPLATE, "FAIL", "c1", "[thrd:main]: " + REFUSED.format(1))
    what = "Kafka broker 127.0.0.1:{0}: Connect to ipv4#127.0.0.1:{0} failed: Connection refused [{1}]"
    assert lines(caplog) == [
        (logging.WARNING, what.format(9092, "c0")),
        (logging.WARNING, what.format(9093, "c0")),
        (logging.WARNING, what.format(9092, "c1; 100 more since the last such line")),
    ]


def test_connections_that_are_closed_and_a_broker_that_still_loads_are_no_news(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    log = ClientLog(Repeats())
    log.log(
        logging.INFO,
        TEMPLATE,
        "FAIL",
        "c0",
        "[thrd:GroupCoordinator]: GroupCoordinator: 127.0.0.1:9092: Disconnected (after 1ms in state UP)",
    )
    log.log(
        logging.WARNING, TEMPLATE, "GETPID", "c0", "[thrd:main]: Failed to acquire idempotence PID: Coordinator load in progress: retrying"
    )
    assert lines(caplog) == []


def test_a_broker_that_is_silent_is_one_line_and_is_said_to_answer_again(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    now = 1000.0
    repeats = Repeats(lambda: now)
    log = ClientLog(repeats)
    broker = "127.0.0.1:9092/1: "
    for client, count in (("c0", 2), ("c1", 1)):
        each = f"[thrd:{broker[:-2]}]: {broker}Timed out ProduceRequest in flight (after 30066ms, timeout #0)"
        log.log(logging.INFO, TEMPLATE, "REQTMOUT", client, each)
        total = f"[thrd:{broker[:-2]}]: {broker}Timed out {count} in-flight, 0 retry-queued, 0 out-queue, 0 partially-sent requests"
        log.log(logging.WARNING, TEMPLATE, "REQTMOUT", client, total)
    now += 10
    guess = "probably due to broker version < 0.10 (see api.version.request configuration) (after 10002ms in state APIVERSION_QUERY)"
    log.log(logging.ERROR, TEMPLATE, "FAIL", "c0", f"[thrd:{broker[:-2]}]: {broker}ApiVersionRequest failed: Local: Timed out: {guess}")
    now += 10
    up = {"name": "127.0.0.1:9092/1", "nodename": "127.0.0.1:9092", "state": "UP"}
    BrokerWatch(repeats).take({"client_id": "c0", "brokers": {"1": up}})
    assert lines(caplog) == [
        (logging.WARNING, "Kafka broker 127.0.0.1:9092: requests are not answered in time [c0]"),
        (logging.WARNING, "Kafka broker 127.0.0.1:9092: ApiVersionRequest failed: Local: Timed out [c0]"),
        (logging.INFO, "Kafka broker 127.0.0.1:9092: answers again after 20 s [c0]"),
    ]


def test_other_lines_keep_their_text_and_facility(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    ClientLog(Repeats()).log(logging.ERROR, TEMPLATE, "MAXPOLL", "c0", "[thrd:main]: Application maximum poll interval exceeded by 7ms")
    assert lines(caplog) == [(logging.WARNING, "Kafka client: Application maximum poll interval exceeded by 7ms (MAXPOLL) [c0]")]


def test_a_text_that_varies_without_end_does_not_fill_the_memory() -> None:
    repeats = Repeats()
    for number in range(10_000):
        repeats.pass_on(("X", f"text {number:x}"))
    assert 0 < len(repeats) <= MAX_KINDS


def test_a_broker_that_answers_again_is_said_once_and_its_next_outage_is_news(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    now = 1000.0
    repeats = Repeats(lambda: now)
    log, watch = ClientLog(repeats), BrokerWatch(repeats)
    refused = ("FAIL", "c0", "[thrd:main]: " + REFUSED.format(0))

    def report(state: str) -> str:
        broker = {"nodename": "127.0.0.1:9092", "name": "127.0.0.1:9092/1", "state": state}
        return json.dumps({"client_id": "c1", "brokers": {"127.0.0.1:9092/1": broker}})

    watch.take(report("UP"))
    assert not watch.awaits_broker
    log.log(logging.ERROR, TEMPLATE, *refused)
    now += 7
    watch.take(report("TRY_CONNECT"))
    assert watch.awaits_broker
    now += 5
    watch.take(report("UP"))
    assert not watch.awaits_broker
    watch.take(report("UP"))
    log.log(logging.ERROR, TEMPLATE, *refused)
    said = [text for _, text in lines(caplog)]
    assert [text.partition(": ")[2][:7] for text in said] == ["Connect", "answers", "Connect"]
    assert said[1] == "Kafka broker 127.0.0.1:9092: answers again after 12 s [c1]"


def test_a_broker_that_no_report_of_the_client_knows_is_not_waited_for() -> None:
    repeats = Repeats()
    watch = BrokerWatch(repeats)
    repeats.is_away("gone:9092")
    assert watch.awaits_broker, "the client has not said yet which brokers it knows"
    known = {"nodename": "here:9092", "name": "here:9092/1", "state": "UP"}
    watch.take({"client_id": "c1", "brokers": {"here:9092/1": known}})
    assert not watch.awaits_broker
    watch.take({"client_id": "c1", "brokers": {"bootstrap": {"nodename": "", "name": "gone:9092/bootstrap", "state": "DOWN"}}})
    assert watch.awaits_broker
    watch.take({"client_id": "c1", "brokers": {"here:9092/1": known}})
    watch.client_closed()
    assert watch.awaits_broker, "the next client may know others"


def test_a_long_outage_is_said_ever_less_often() -> None:
    now = 0.0
    repeats = Repeats(lambda: now)
    shown = []
    for now in range(0, 7200, 5):  # the clock reads it
        if repeats.pass_on(("FAIL", "away")) is not None:
            shown.append(now)
    assert shown == [0, 30, 90, 210, 510, 1110, 2910, 4710, 6510]
