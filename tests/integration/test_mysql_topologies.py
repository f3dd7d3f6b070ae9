"""A primary and its replica: fail-over by GTIDs, sources that are left out, encrypted connections, and names in small letters."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from connect_py.api import SourceOffset
from connect_py.app.services.mysql import MySqlServer
from connect_py.errors import ConnectError, FatalTaskError
from tests.binlog_task import DirectTask, task_config
from tests.certificates import Identity
from tests.fix_kafka import Kafka
from tests.mysql_replicas import await_level, follow, purge, run, stop_following

pytestmark = pytest.mark.services


@dataclass(frozen=True)
class Chain:
    """A primary, a replica of it that stores names in small letters and has no TLS, and a replica of that, whose certificate names its
    address; each keeps a log of its own.

    Attributes:
        authority: who signed the last one's certificate.
        stores: folder of that authority's certificate `ca.pem`.
    """

    primary: MySqlServer
    replica: MySqlServer
    end: MySqlServer
    authority: Identity
    stores: Path


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chain]:
    with ExitStack() as started:

        def server(name: str, number: int, *options: str) -> MySqlServer:
            found = MySqlServer(tmp_path_factory.mktemp(name), *options, "--log-slave-updates=ON", server_id=number)
            started.callback(found.stop)
            return found

        stores = tmp_path_factory.mktemp("stores")
        authority = Identity("authority")
        identity = Identity("server", authority)
        (stores / "ca.pem").write_text(authority.chain_pem)
        (stores / "server.pem").write_text(identity.chain_pem)
        (stores / "server.key").write_text(identity.key_pem())
        own = [f"--ssl-ca={stores}/ca.pem", f"--ssl-cert={stores}/server.pem", f"--ssl-key={stores}/server.key"]
        lower = "--lower-case-table-names=1"
        replica = server("replica", 2, lower, "--tls-version=")
        found = Chain(server("primary", 1), replica, server("end", 3, lower, *own), authority, stores)
        follow(found.replica, found.primary)
        follow(found.end, found.replica)
        yield found


def test_a_connector_of_a_chain_goes_on_from_its_middle_its_end_and_its_beginning(chain: Chain, kafka: Kafka) -> None:
    run(chain.primary, "CREATE DATABASE chained", "CREATE TABLE chained.t (id INT PRIMARY KEY, v VARCHAR(20))")
    run(chain.primary, "INSERT INTO chained.t VALUES (1, 'read')")
    await_level(chain.primary, chain.end)
    # every server has another number and other names of its files, so that places are of no use elsewhere
    run(chain.end, "FLUSH BINARY LOGS", "FLUSH BINARY LOGS")
    config = task_config(chain.replica, kafka, "chained")

    def leg(server: MySqlServer, offset: SourceOffset | None, number: int, wanted: list[tuple[str, Any]]) -> SourceOffset:
        """Change rows, read from one server what was not read yet, and what changes while it is read."""
        run(
            chain.primary,
            "BEGIN",
            *(f"INSERT INTO chained.t VALUES ({number + add}, 'before')" for add in (1, 2, 3)),
            f"UPDATE chained.t SET v = 'changed' WHERE id = {number + 2}",
            f"DELETE FROM chained.t WHERE id = {number + 3}",
            "COMMIT",
            f"ALTER TABLE chained.t MODIFY v VARCHAR({20 + number})",
        )
        await_level(chain.primary, chain.end)
        with DirectTask({**config, "database.port": str(server.port)}, offset) as task:
            task.poll_until(lambda: len(task.rows("t")) == len(wanted) - 1, 30)
            run(chain.primary, f"INSERT INTO chained.t VALUES ({number + 3}, 'while read')")
            task.poll_until(lambda: len(task.rows("t")) == len(wanted), 30)
        assert task.rows("t") == wanted
        assert {value["source"]["server_id"] for topic, value in task.records if topic.endswith(".t")} <= {0, 1}
        return task.offsets[-1]

    read = [("r", {"id": 1, "v": "read"}), ("r", {"id": 2, "v": "before"}), ("r", {"id": 3, "v": "changed"})]
    offset = leg(chain.replica, None, 1, [*read, ("c", {"id": 4, "v": "while read"})])
    for number, server in enumerate((chain.end, chain.primary, chain.end, chain.replica), 1):
        first = 1 + 3 * number
        changes = [("c", {"id": first + add, "v": "before"}) for add in (1, 2, 3)]
        changes += [("u", {"id": first + 2, "v": "changed"}), ("d", {"id": first + 3, "v": "before"})]
        offset = leg(server, offset, first, [*changes, ("c", {"id": first + 3, "v": "while read"})])


def test_a_transaction_that_was_read_in_part_goes_on_from_another_server(chain: Chain, kafka: Kafka) -> None:
    run(
        chain.primary,
        "CREATE DATABASE part",
        "CREATE TABLE part.t (id INT PRIMARY KEY, v VARCHAR(200))",
        "INSERT INTO part.t VALUES (0, '')",
    )
    config = task_config(chain.primary, kafka, "part")
    # more than a batch has, in several events of several rows
    inserts = [f"INSERT INTO part.t VALUES {','.join(f'({n}, REPEAT(0, 200))' for n in range(k, k + 500))}" for k in range(1, 6001, 500)]
    with DirectTask(config) as task:
        task.poll_until(lambda: task.rows("t"))
        run(chain.primary, "BEGIN", *inserts, "COMMIT")
        task.poll_until(lambda: len(task.rows("t")) > 1)
    first = len(task.rows("t"))
    assert 1 < first < 6001 and task.offsets[-1].get("event"), "the first batch ends inside of the transaction"
    await_level(chain.primary, chain.end)
    with DirectTask({**config, "database.port": str(chain.end.port)}, task.offsets[-1]) as again:
        again.poll_until(lambda: len(again.rows("t")) >= 6001 - first)
    assert [row["id"] for _, row in task.rows("t") + again.rows("t")] == list(range(6001))


def test_what_a_new_server_wrote_itself_before_a_transaction_that_was_read_in_part_is_read_too(chain: Chain, kafka: Kafka) -> None:
    """Such transactions come first, and are none of those that the offset counts events of."""
    run(chain.primary, "CREATE DATABASE errant", "CREATE TABLE errant.t (id INT PRIMARY KEY, v VARCHAR(200))")
    run(chain.primary, "INSERT INTO errant.t VALUES (0, '')")
    await_level(chain.primary, chain.replica)
    config = task_config(chain.primary, kafka, "errant")
    inserts = [f"INSERT INTO errant.t VALUES {','.join(f'({n}, REPEAT(0, 200))' for n in range(k, k + 500))}" for k in range(1, 6001, 500)]
    with DirectTask(config) as task:
        task.poll_until(lambda: task.rows("t"))
        stop_following(chain.replica)
        run(chain.replica, "INSERT INTO errant.t VALUES (10001, 'own'), (10002, 'own')")
        run(chain.primary, "BEGIN", *inserts, "COMMIT")
        task.poll_until(lambda: len(task.rows("t")) > 1)
    first = len(task.rows("t"))
    assert 1 < first < 6001 and task.offsets[-1].get("event"), "the first batch ends inside of the transaction"
    follow(chain.replica, chain.primary, anew=False)
    await_level(chain.primary, chain.replica)
    with DirectTask({**config, "database.port": str(chain.replica.port)}, task.offsets[-1]) as again:
        again.poll_until(lambda: len(again.rows("t")) >= 6003 - first)
    assert [row["id"] for _, row in task.rows("t") + again.rows("t")] == [*range(first), 10001, 10002, *range(first, 6001)]


def test_a_connector_goes_on_from_a_replica_by_its_gtids(chain: Chain, kafka: Kafka) -> None:
    run(chain.primary, "CREATE DATABASE failover", "CREATE TABLE failover.t (id INT PRIMARY KEY)", "INSERT INTO failover.t VALUES (1)")
    config = task_config(chain.primary, kafka, "failover")
    with DirectTask(config) as task:
        task.poll_until(lambda: task.rows("t"))
        run(chain.primary, "INSERT INTO failover.t VALUES (2)")
        task.poll_until(lambda: len(task.rows("t")) == 2)
    # what nobody has read yet, with a structure that only the log tells; then the replica is the new primary, and writes itself
    run(chain.primary, "INSERT INTO failover.t VALUES (3)", "ALTER TABLE failover.t ADD v INT", "INSERT INTO failover.t VALUES (4, 4)")
    await_level(chain.primary, chain.replica)
    run(chain.replica, "FLUSH BINARY LOGS", "INSERT INTO failover.t VALUES (5, 5)")
    elsewhere = {**config, "database.port": str(chain.replica.port)}
    with DirectTask(elsewhere, task.offsets[-1]) as again:
        again.poll_until(lambda: len(again.rows("t")) == 3)
    assert again.rows("t") == [("c", {"id": 3}), ("c", {"id": 4, "v": 4}), ("c", {"id": 5, "v": 5})]
    sources = [value["source"]["server_id"] for topic, value in again.records if topic.endswith(".t")]
    assert sources == [1, 1, 2], "the server where a row was written, not the one that was asked"


def test_rows_of_servers_that_are_left_out_make_no_records(chain: Chain, kafka: Kafka) -> None:
    run(chain.primary, "CREATE DATABASE apart", "CREATE TABLE apart.t (id INT PRIMARY KEY)")
    await_level(chain.primary, chain.replica)
    uuid = run(chain.primary, "SELECT @@server_uuid")[0][0]
    config = task_config(chain.replica, kafka, "apart", **{"gtid.source.excludes": f"{uuid}"})
    run(chain.replica, "INSERT INTO apart.t VALUES (100)")
    with DirectTask(config) as task:
        task.poll_until(lambda: task.rows("t"))
        run(chain.primary, "INSERT INTO apart.t VALUES (1)", "ALTER TABLE apart.t ADD v INT")
        await_level(chain.primary, chain.replica)
        run(chain.replica, "INSERT INTO apart.t VALUES (101, 1)")
        task.poll_until(lambda: len(task.rows("t")) == 2)
    # statements of the other server count all the same: its tables are ours
    assert task.rows("t") == [("r", {"id": 100}), ("c", {"id": 101, "v": 1})]
    run(chain.replica, "ALTER TABLE apart.t DROP v", "INSERT INTO apart.t VALUES (102)")
    with DirectTask(config, task.offsets[-1]) as again:
        again.poll_until(lambda: again.rows("t"))
        run(chain.replica, "INSERT INTO apart.t VALUES (103)")
        again.poll_until(lambda: len(again.rows("t")) == 2)
    # neither its rows nor its statements come again
    assert again.rows("t") == [("c", {"id": 102}), ("c", {"id": 103})]


def test_a_log_that_was_thrown_away_is_a_named_error(chain: Chain, kafka: Kafka) -> None:
    run(chain.primary, "CREATE DATABASE gone", "CREATE TABLE gone.t (id INT PRIMARY KEY)", "INSERT INTO gone.t VALUES (1)")
    config = task_config(chain.primary, kafka, "gone")
    with DirectTask(config) as task:
        task.poll_until(lambda: task.rows("t"))
    run(chain.primary, "INSERT INTO gone.t VALUES (2)")
    await_level(chain.primary, chain.end)
    purge(chain.primary)
    purge(chain.replica)
    for gone in (chain.primary, chain.replica):
        elsewhere = {**config, "database.port": str(gone.port)}
        with DirectTask(elsewhere, task.offsets[-1]) as again, pytest.raises(FatalTaskError, match="no longer available on the server"):
            again.poll_until(lambda: again.rows("t"))
    # the last replica still has it all
    with DirectTask({**config, "database.port": str(chain.end.port)}, task.offsets[-1]) as other:
        other.poll_until(lambda: other.rows("t"))
    assert other.rows("t") == [("c", {"id": 2})]


def test_a_log_that_was_thrown_away_is_read_anew_when_needed(chain: Chain, kafka: Kafka) -> None:
    run(chain.primary, "CREATE DATABASE needed", "CREATE TABLE needed.t (id INT PRIMARY KEY)", "INSERT INTO needed.t VALUES (1)")
    config = task_config(chain.primary, kafka, "needed", **{"snapshot.mode": "when_needed"})
    with DirectTask(config) as task:
        task.poll_until(lambda: task.rows("t"))
    run(chain.primary, "INSERT INTO needed.t VALUES (2)")
    purge(chain.primary)
    with DirectTask(config, task.offsets[-1]) as again:
        again.poll_until(lambda: len(again.rows("t")) == 2)
        run(chain.primary, "INSERT INTO needed.t VALUES (3)")
        again.poll_until(lambda: len(again.rows("t")) == 3)
    assert again.rows("t") == [("r", {"id": 1}), ("r", {"id": 2}), ("c", {"id": 3})]


def test_names_that_do_not_differ_by_case_are_one_table(chain: Chain, kafka: Kafka) -> None:
    run(chain.replica, "CREATE DATABASE Letters", "CREATE TABLE Letters.Mixed (id INT PRIMARY KEY)", "INSERT INTO letters.mixed VALUES (1)")
    config = task_config(chain.replica, kafka, "letters", **{"table.include.list": "Letters.MIXED,letters.Next"})
    with DirectTask(config) as task:
        task.poll_until(lambda: task.rows("mixed"))
        run(chain.replica, "ALTER TABLE LETTERS.MIXED ADD v INT", "INSERT INTO Letters.mixeD VALUES (2, 2)")
        run(chain.replica, "RENAME TABLE letters.Mixed TO letters.NEXT", "INSERT INTO letters.next VALUES (3, 3)")
        task.poll_until(lambda: task.rows("next"))
    assert task.rows("mixed") == [("r", {"id": 1}), ("c", {"id": 2, "v": 2})]
    run(chain.replica, "INSERT INTO letters.next VALUES (4, 4)")
    with DirectTask(config, task.offsets[-1]) as again:
        again.poll_until(lambda: again.rows("next"))
    assert again.rows("next") == [("c", {"id": 4, "v": 4})]


@pytest.mark.parametrize("mode", ["disabled", "preferred", "required", "verify_ca"])
def test_a_user_with_caching_sha2_is_let_in_by_each_mode_of_encryption(
    chain: Chain, kafka: Kafka, mode: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    data = next(Path(str(tmp_path_factory.getbasetemp())).glob("primary*/data"))
    run(
        chain.primary,
        f"CREATE DATABASE tls_{mode}",
        f"CREATE TABLE tls_{mode}.t (id INT PRIMARY KEY)",
        f"INSERT INTO tls_{mode}.t VALUES (1)",
        # never seen before, so that the server has no hash of the password in its cache
        f"CREATE USER {mode} IDENTIFIED WITH caching_sha2_password BY 'secret'{'' if mode == 'disabled' else ' REQUIRE SSL'}",
        f"GRANT ALL ON *.* TO {mode}",
    )
    settings = {"database.user": mode, "database.password": "secret", "database.ssl.mode": mode}
    if mode == "disabled":
        settings["driver.allowPublicKeyRetrieval"] = "true"
    if mode == "verify_ca":
        settings["database.ssl.truststore"] = str(data / "ca.pem")
    with DirectTask(task_config(chain.primary, kafka, f"tls_{mode}", **settings)) as task:
        task.poll_until(lambda: task.rows("t"))
        run(chain.primary, f"INSERT INTO tls_{mode}.t VALUES (2)")
        task.poll_until(lambda: len(task.rows("t")) == 2)
        ciphers = run(
            chain.primary,
            "SELECT VARIABLE_VALUE FROM performance_schema.status_by_thread JOIN performance_schema.threads USING (THREAD_ID) "
            f"WHERE VARIABLE_NAME = 'Ssl_cipher' AND PROCESSLIST_USER = '{mode}'",
        )
    assert ciphers and all(bool(cipher) is (mode != "disabled") for (cipher,) in ciphers)


def test_a_certificate_of_nobody_that_is_trusted_is_refused(chain: Chain, kafka: Kafka) -> None:
    config = task_config(chain.primary, kafka, "failover", **{"database.ssl.mode": "verify_ca", "errors.max.retries": "0"})
    with DirectTask(config) as task, pytest.raises(ConnectError, match=r"(?i)certificate"):
        task.poll_until(lambda: task.rows("t"), seconds=20)


@pytest.mark.parametrize("mode", ["required", "verify_ca", "verify_identity"])
def test_a_server_without_tls_is_refused_before_anything_secret_is_sent(chain: Chain, kafka: Kafka, mode: str) -> None:
    settings = {"database.ssl.mode": mode, "errors.max.retries": "0", "database.password": "wrong: it is not even looked at"}
    with (
        DirectTask(task_config(chain.replica, kafka, "failover", **settings)) as task,
        pytest.raises(ConnectError, match="SSL is required but the server doesn't support it"),
    ):
        task.poll_until(lambda: task.rows("t"), seconds=20)
    preferred = task_config(chain.replica, kafka, "failover", **{"database.ssl.mode": "preferred"})
    preferred |= {"database.ssl.truststore": str(chain.stores / "ca.pem"), "snapshot.mode": "initial_only"}
    with DirectTask(preferred) as task:
        task.poll_until(lambda: task.offsets and not task.offsets[-1].get("snapshot"))


def test_a_name_that_is_not_the_certificates_is_refused_where_identities_are_verified(chain: Chain, kafka: Kafka) -> None:
    run(chain.primary, "CREATE DATABASE named", "CREATE TABLE named.t (id INT PRIMARY KEY)", "INSERT INTO named.t VALUES (1)")
    await_level(chain.primary, chain.end)
    config = task_config(chain.end, kafka, "named", **{"database.ssl.truststore": str(chain.stores / "ca.pem")})
    with DirectTask({**config, "database.ssl.mode": "verify_identity"}) as task:
        task.poll_until(lambda: task.rows("t"))
        run(chain.primary, "INSERT INTO named.t VALUES (2)")
        task.poll_until(lambda: len(task.rows("t")) == 2)
    by_name = {**config, "database.hostname": "localhost"}
    with DirectTask({**by_name, "database.ssl.mode": "verify_ca"}, task.offsets[-1]) as other:
        run(chain.primary, "INSERT INTO named.t VALUES (3)")
        other.poll_until(lambda: other.rows("t"))
    refused = {**by_name, "database.ssl.mode": "verify_identity", "errors.max.retries": "0"}
    with DirectTask(refused, task.offsets[-1]) as last, pytest.raises(ConnectError, match=r"(?i)hostname mismatch|doesn.t match"):
        last.poll_until(lambda: last.rows("t"), seconds=20)


@pytest.mark.parametrize("store", ["pem", "encrypted pem", "pkcs12"])
def test_a_user_who_must_show_a_certificate_is_let_in_by_each_kind_of_store(chain: Chain, kafka: Kafka, store: str, tmp_path: Path) -> None:
    name = f"mutual_{store.replace(' ', '_')}"
    run(chain.primary, f"CREATE DATABASE {name}", f"CREATE TABLE {name}.t (id INT PRIMARY KEY)", f"INSERT INTO {name}.t VALUES (1)")
    run(chain.primary, f"CREATE USER {name} IDENTIFIED BY 'žluťoučký' REQUIRE SUBJECT '/CN=connector'", f"GRANT ALL ON *.* TO {name}")
    await_level(chain.primary, chain.end)
    identity = Identity("connector", chain.authority)
    file = tmp_path / f"{name}.store"
    if store == "pkcs12":
        file.write_bytes(identity.p12("secret"))
    else:
        file.write_text(identity.chain_pem + identity.key_pem("secret" if "encrypted" in store else None))
    settings = {"database.user": name, "database.password": "žluťoučký", "database.ssl.mode": "verify_ca", "errors.max.retries": "0"}
    config = task_config(chain.end, kafka, name, **settings, **{"database.ssl.truststore": str(chain.stores / "ca.pem")})
    shown = {"database.ssl.keystore": str(file)} | ({} if store == "pem" else {"database.ssl.keystore.password": "secret"})
    with DirectTask({**config, **shown}) as task:
        task.poll_until(lambda: task.rows("t"))
        run(chain.primary, f"INSERT INTO {name}.t VALUES (2)")
        task.poll_until(lambda: len(task.rows("t")) == 2)
    with DirectTask(config) as nobody, pytest.raises(ConnectError, match="Access denied"):
        nobody.poll_until(lambda: nobody.rows("t"), seconds=20)
    if store != "pem":
        wrong = {**config, **shown, "database.ssl.keystore.password": "wrong"}
        with DirectTask(wrong) as shut, pytest.raises(ConnectError, match="that its password opens"):
            shut.poll_until(lambda: shut.rows("t"), seconds=20)
