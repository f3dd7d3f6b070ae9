"""What a network does between a source, its database and Kafka: connections are reset, fall silent and stay open, are late or narrow, lose
the answer to a request that was carried out, or change a byte.

Everything that the worker and its task say goes through proxies of the tests. A journal says what the topic has to hold, as in
`tests/kills.py`. FAULTS_NETWORK is the number of faults in each test; FAULTS_SEED repeats a run's choices.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from connect_py.app.services.kafka import KafkaBroker
from connect_py.app.services.mysql import MySqlServer, mysqld
from connect_py.app.services.postgres import PostgresServer
from connect_py.app.services.process import ServiceError, free_port
from connect_py.app.services.worker import Worker
from connect_py.app.verify.history.journal import Journalled, mysql_statements, postgres_statements
from tests.certificates import Identity
from tests.fault_counts import Fault, note, system_of
from tests.faults.test_kill import PostgresChanges
from tests.faults.test_kill_mysql import PLAIN, MySqlChanges
from tests.fix_kafka import Kafka
from tests.fix_postgres import postgres_source
from tests.kills import Changes, await_history, changing, has_records, new_dice
from tests.mysql_task import mysql_source
from tests.seeds import size
from tests.silent_peers import EatingProxy, KafkaProxy, Proxy, postgres_tls
from tests.waiting import eventually, let_time_pass, wait_until

FAULTS = size("FAULTS_NETWORK", 4, 8)

pytestmark = [pytest.mark.services, pytest.mark.timeout(300 + 45 * FAULTS)]

ROWS = 1000
DIGEST = ["id", "version", "note"]

#: Kinds of requests: Kafka's protocol guide, "API Keys".
PRODUCE, METADATA, INIT_PRODUCER_ID, ADD_PARTITIONS_TO_TRANSACTION, END_TRANSACTION = 0, 3, 22, 24, 26

#: Silence is noticed after seconds, not after half a minute, and offsets are stored often.
QUICK = {f"{prefix}request.timeout.ms": "4000" for prefix in ("", "producer.", "consumer.", "admin.")} | {"offset.flush.interval.ms": "500"}

_PROXIED = """
listeners=PLAINTEXT://127.0.0.1:{{port}},CONTROLLER://127.0.0.1:{{controller}},PROXIED://127.0.0.1:{target},SECURED://127.0.0.1:{secured}
advertised.listeners=PLAINTEXT://127.0.0.1:{{port}},PROXIED://127.0.0.1:{proxy},SECURED://127.0.0.1:{tls}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,PROXIED:PLAINTEXT,SECURED:SSL
listener.name.secured.ssl.keystore.type=PEM
listener.name.secured.ssl.keystore.key={key}
listener.name.secured.ssl.keystore.certificate.chain={certificate}
"""
#: What Python's, libpq's and librdkafka's OpenSSL say of a record that was changed; in its head, it has another kind or length.
OF_TLS = re.compile(r"bad.record.mac|record layer failure|wrong version number|length too long", re.IGNORECASE)
#: Of a server with TLS, and of the authority that its clients trust.
IDENTITY = Identity("127.0.0.1")


@dataclass(frozen=True)
class ProxiedKafka:
    """A broker, and the proxies through which workers reach it: without TLS, and with it."""

    kafka: Kafka
    proxy: KafkaProxy
    tls: Proxy

    @property
    def bootstrap(self) -> str:
        """Of the proxy."""
        return f"127.0.0.1:{self.proxy.port}"

    @property
    def secured(self) -> dict[str, str]:
        """A worker's properties with TLS, which its connectors' producers have too."""
        tls = {
            "security.protocol": "SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": IDENTITY.chain_pem.replace("\n", "\\n"),
        }
        return {"bootstrap.servers": f"127.0.0.1:{self.tls.port}"} | {f"{to}{name}": tls[name] for to in ("", "producer.") for name in tls}


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxiedKafka]:
    target, secured = free_port(), free_port()
    key, certificate = (text.replace("\n", "\\n") for text in (IDENTITY.key_pem(), IDENTITY.chain_pem))
    with KafkaProxy("127.0.0.1", target) as proxy, Proxy("127.0.0.1", secured) as tls:
        more = _PROXIED.format(target=target, proxy=proxy.port, secured=secured, tls=tls.port, key=key, certificate=certificate)
        broker = KafkaBroker(tmp_path_factory.mktemp("kafka"), more=more)
        yield ProxiedKafka(Kafka(broker.bootstrap), proxy, tls)
        broker.discard()


@dataclass(frozen=True)
class Source:
    """A table with a journal.

    Attributes:
        config: of a connector through the proxy.
        topic: of its table.
        digest: as `await_history` takes it.
        changes: made of random choices, writes into the table.
    """

    proxy: EatingProxy
    config: dict[str, str]
    topic: str
    digest: dict[str, list[str]]
    changes: Callable[[random.Random], Changes]


def identity_files(folder: Path) -> tuple[Path, Path]:
    """Write certificate and key for a server."""
    certificate, key = folder / "tls.crt", folder / "tls.key"
    certificate.write_text(IDENTITY.chain_pem)
    key.write_text(IDENTITY.key_pem())
    return certificate, key


@contextmanager
def postgres_table(folder: Path, _bootstrap: str, tag: str, *, tls: bool = False) -> Iterator[Source]:
    server = PostgresServer(folder / "postgres")
    with ExitStack() as stack:
        stack.callback(server.stop)
        database = server.create_database()
        connection, writer = (stack.enter_context(server.connect(database)) for _ in range(2))
        # the slot of a connection that fell silent is free again soon
        connection.execute("ALTER SYSTEM SET wal_sender_timeout = '4s'")
        connection.execute("SELECT pg_reload_conf()")
        connection.execute(
            "CREATE TABLE item (id integer PRIMARY KEY, version integer NOT NULL DEFAULT 1, note text); "
            "ALTER TABLE item REPLICA IDENTITY FULL"
        )
        connection.execute("INSERT INTO item SELECT g, 1, 'old' FROM generate_series(1, %s) g", (ROWS,))
        for statement in postgres_statements(Journalled("public", "item", ["id"], "version", DIGEST)):
            connection.execute(statement)
        port = stack.enter_context(postgres_tls(server.host, server.port, *identity_files(folder))) if tls else server.port
        proxy = stack.enter_context(EatingProxy(server.host, port))
        quick = {"retriable_restart_connector_wait_ms": "200", "status_update_interval_ms": "200", "connection_silence_timeout_ms": "3000"}
        quick["database_sslmode"] = "require" if tls else "disable"
        config = postgres_source(server, database, tag, table_include_list="public.item", **quick) | {"database.port": str(proxy.port)}
        yield Source(proxy, config, f"pg_{tag}.public.item", {"public.item": DIGEST}, lambda dice: PostgresChanges(writer, dice, ROWS))


@contextmanager
def mysql_table(folder: Path, bootstrap: str, tag: str, *, tls: bool = False) -> Iterator[Source]:
    try:
        mysqld()
    except ServiceError as error:
        pytest.skip(str(error))
    certificate, key = identity_files(folder)
    server = MySqlServer(folder / "mysql", f"--ssl-ca={certificate}", f"--ssl-cert={certificate}", f"--ssl-key={key}")
    with ExitStack() as stack:
        stack.callback(server.stop)
        connection, writer = (stack.enter_context(server.connect()) for _ in range(2))
        cursor = stack.enter_context(connection.cursor())
        for statement in (
            f"CREATE DATABASE {tag}",
            f"USE {tag}",
            "CREATE TABLE item (id INT PRIMARY KEY, version INT NOT NULL DEFAULT 1, note TEXT) CHARACTER SET utf8mb4",
            f"INSERT INTO item WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS}) SELECT i, 1, 'old' FROM n",
            *mysql_statements(Journalled(tag, "item", ["id"], "version", DIGEST)),
        ):
            cursor.execute(statement)
        proxy = stack.enter_context(EatingProxy(server.host, server.port))
        quick = {"retriable_restart_connector_wait_ms": "200", "connect_keep_alive_interval_ms": "3000"}
        quick["database_ssl_mode"] = "required" if tls else "preferred"
        only = {"schema_history_internal_store_only_captured_tables_ddl": "true", **PLAIN}
        config = mysql_source(server, bootstrap, tag, table_include_list=f"{tag}.item", **quick, **only) | {
            "database.port": str(proxy.port)
        }
        yield Source(proxy, config, f"{tag}.{tag}.item", {f"{tag}.item": DIGEST}, lambda dice: MySqlChanges(writer, tag, dice, ROWS))


TABLES = {"postgres": postgres_table, "mysql": mysql_table}


@pytest.fixture(params=TABLES)
def source(request: pytest.FixtureRequest, proxied: ProxiedKafka, tmp_path: Path, tag: str) -> Iterator[Source]:
    with TABLES[request.param](tmp_path, proxied.bootstrap, tag) as found:
        yield found


@pytest.fixture(params=TABLES)
def source_with_tls(request: pytest.FixtureRequest, proxied: ProxiedKafka, tmp_path: Path, tag: str) -> Iterator[Source]:
    with TABLES[request.param](tmp_path, proxied.bootstrap, tag, tls=True) as found:
        yield found


@contextmanager
def worker_of(proxied: ProxiedKafka, folder: Path, **properties: str) -> Iterator[Worker]:
    running = Worker(folder, proxied.bootstrap, properties=QUICK | {name.replace("_", "."): value for name, value in properties.items()})
    try:
        yield running
    finally:
        running.stop()


def await_whole_history(worker: Worker, kafka: Kafka, source: Source, tag: str, **promise: Any) -> None:
    """After the faults the connector runs, and its topic is what the journal says."""
    worker.wait_for(tag, "RUNNING")
    config: dict[str, Any] = {**source.config, "name": tag}
    await_history(kafka, config, source.digest, offsets_topic=worker.topic("offset"), seconds=90, **promise)
    worker.delete(tag)


def eat_one(proxy: EatingProxy, what: str) -> None:
    """Return when an answer was lost."""
    before = proxy.eaten
    proxy.eat()
    wait_until(lambda: proxy.eaten > before, 60, f"an answer of {what} to be lost")


def do(fault: Fault, proxy: EatingProxy, dice: random.Random) -> None:
    """Do something to a network, and undo it."""
    if fault is Fault.RESET:
        proxy.cut()
    elif fault is Fault.HALF_OPEN:
        proxy.silence()
        let_time_pass(dice.uniform(0, 6), "what is open falls silent, and new connections do, too")
        proxy.resume()
    elif fault is Fault.SLOW:
        proxy.rate = dice.randrange(10_000, 100_000)
        let_time_pass(5, "a narrow network")
        proxy.rate = None
    elif fault is Fault.CORRUPTED:
        before = proxy.corrupted
        proxy.corrupt()
        wait_until(lambda: proxy.corrupted > before, 60, f"a byte of port {proxy.port} to be changed")
    elif fault is Fault.LATE:
        proxy.delay = dice.uniform(0.05, 0.5)
        let_time_pass(5, "a slow network")
        proxy.delay = 0
    else:
        eat_one(proxy, f"port {proxy.port}")


@pytest.mark.long
def test_a_network_that_fails_again_and_again_loses_no_change(proxied: ProxiedKafka, source: Source, tmp_path: Path, tag: str) -> None:
    dice = new_dice()
    kafka, system = proxied.kafka, system_of(source.config)
    kinds = [(fault, proxy) for fault in (Fault.RESET, Fault.HALF_OPEN, Fault.LATE, Fault.EATEN) for proxy in (source.proxy, proxied.proxy)]
    proxied.proxy.kinds = frozenset({PRODUCE, METADATA})
    with worker_of(proxied, tmp_path / "worker") as worker:
        with changing(source.changes(dice)):
            worker.create(tag, source.config)
            wait_until(lambda: kafka.count(source.topic) > ROWS, 60, "the stream")
            for number in range(FAULTS):
                if number % len(kinds) == 0:
                    dice.shuffle(kinds)
                fault, proxy = kinds[number % len(kinds)]
                do(fault, proxy, dice)
                note(fault, system)
                print(f"{fault} ({'Kafka' if proxy is proxied.proxy else system})")
                wait_until(partial(has_records, kafka, source.topic, kafka.count(source.topic) + 100), 60, "further changes")
        await_whole_history(worker, kafka, source, tag)


@pytest.mark.long
def test_a_byte_that_is_changed_ends_a_connection_and_is_in_no_record_and_little_at_a_time_is_enough(
    proxied: ProxiedKafka, source_with_tls: Source, tmp_path: Path, tag: str
) -> None:
    """With TLS: without it nothing but TCP's checksum guards what PostgreSQL says, and a changed byte may be a value."""
    dice, source = new_dice(), source_with_tls
    kafka, system = proxied.kafka, system_of(source.config)
    kinds = [(fault, proxy) for fault in (Fault.CORRUPTED, Fault.SLOW) for proxy in (source.proxy, proxied.tls)]
    with worker_of(proxied, tmp_path / "worker", **proxied.secured) as worker:

        def is_named() -> bool:
            """Once in half a minute. Of Kafka's clients that of the group connects again and says nothing."""
            return any(OF_TLS.search(line) for line in worker.log.read_text().splitlines() if "connectors.engine.task" in line)

        with changing(source.changes(dice)):
            worker.create(tag, source.config)
            wait_until(lambda: kafka.count(source.topic) > ROWS, 60, "the stream")
            for number in range(FAULTS):
                if number % len(kinds) == 0:
                    dice.shuffle(kinds)
                fault, proxy = kinds[number % len(kinds)]
                do(fault, proxy, dice)
                note(fault, system)
                print(f"{fault} ({'Kafka' if proxy is proxied.tls else system})")
                wait_until(partial(has_records, kafka, source.topic, kafka.count(source.topic) + 100), 60, "further changes")
                if fault is Fault.CORRUPTED and proxy is source.proxy:
                    eventually(is_named, "error of the connection to the database", 30)
        await_whole_history(worker, kafka, source, tag)
        assert "Traceback" not in worker.log.read_text()


@pytest.mark.long
def test_a_start_whose_answers_are_lost_takes_nothing_twice_and_forgets_nothing(
    proxied: ProxiedKafka, source: Source, tmp_path: Path, tag: str
) -> None:
    """A slot or a publication that was made, and of which its maker does not know; a snapshot whose transaction has ended."""
    dice = new_dice()
    kafka, system = proxied.kafka, system_of(source.config)
    proxied.proxy.kinds = frozenset({PRODUCE, METADATA})
    with worker_of(proxied, tmp_path / "worker") as worker:
        with changing(source.changes(dice)):
            worker.request("POST", "/connectors", {"name": tag, "config": source.config})
            for _ in range(FAULTS):
                let_time_pass(dice.uniform(0, 0.3), "a random request of a start")
                eat_one(source.proxy, system)
                note(Fault.EATEN, system)
            wait_until(lambda: kafka.count(source.topic) > ROWS, 60, "the stream")
        await_whole_history(worker, kafka, source, tag)


@pytest.mark.long
def test_answers_about_transactions_that_are_lost_double_and_lose_nothing(
    proxied: ProxiedKafka, source: Source, tmp_path: Path, tag: str
) -> None:
    """Whether a transaction was committed is not known then (KIP-588, KIP-890)."""
    dice = new_dice()
    kafka, proxy = proxied.kafka, proxied.proxy
    kinds = [END_TRANSACTION, ADD_PARTITIONS_TO_TRANSACTION, PRODUCE, INIT_PRODUCER_ID]
    with worker_of(proxied, tmp_path / "worker", exactly_once_source_support="enabled") as worker:
        with changing(source.changes(dice)):
            worker.create(tag, source.config)
            wait_until(lambda: kafka.count(source.topic) > ROWS, 60, "the stream")
            for number in range(FAULTS):
                kind = kinds[number % len(kinds)]
                proxy.kinds = frozenset({kind})
                let_time_pass(dice.uniform(0, 1), "a random moment")
                if kind == INIT_PRODUCER_ID:
                    worker.request("POST", f"/connectors/{tag}/tasks/0/restart")
                eat_one(proxy, f"Kafka to a request of kind {kind}")
                note(Fault.EATEN, "exactly once")
                wait_until(partial(has_records, kafka, source.topic, kafka.count(source.topic) + 100), 60, "further changes")
        await_whole_history(worker, kafka, source, tag, exactly_once=True)
