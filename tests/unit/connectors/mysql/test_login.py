"""What a machine in the place of a MySQL server gets to see of the password: without TLS, nothing that it can undo."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from connect_py.api import Password
from connectors.mysql.config.config import ConnectionSettings, parse_config
from connectors.mysql.errors import LostConnectionError, ServerError
from connectors.mysql.server.connection import Connection
from tests.rogue_mysql import RogueServer, Talk, asks_for, asks_for_full_authentication, sends_its_key

SECRET = "s3cret-of-the-database"
KEY = rsa.generate_private_key(65_537, 2048)
PUBLIC_KEY = KEY.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


@contextmanager
def rogue(talk: Talk, plugin: str) -> Iterator[RogueServer]:
    server = RogueServer(talk, plugin)
    try:
        yield server
    finally:
        server.close()


def log_in(server: RogueServer, *, mode: str = "preferred", allows_public_key: bool = False) -> ServerError:
    settings = ConnectionSettings("127.0.0.1", server.port, "u", Password(SECRET), 5, ssl_mode=mode, allows_public_key=allows_public_key)
    with pytest.raises(ServerError) as caught:
        Connection(settings)
    return caught.value


def undone(packet: bytes) -> bytes:
    """What the owner of the private key reads: the password under the salt of the greeting or the switch, or nothing."""
    try:
        return KEY.decrypt(packet, padding.OAEP(padding.MGF1(hashes.SHA1()), hashes.SHA1(), None))
    except ValueError:
        return b""


@pytest.mark.parametrize("mode", ["preferred", "disabled"])
@pytest.mark.parametrize(
    ("plugin", "data"),
    [
        ("mysql_clear_password", b""),
        ("dialog", b"\4Password: "),
        ("mysql_old_password", b"12345678\0"),
        ("sha256_password", b"x" * 20 + b"\0"),
    ],
)
def test_a_server_without_tls_that_asks_for_the_password_does_not_get_it(plugin: str, data: bytes, mode: str) -> None:
    with rogue(asks_for(plugin, data), "mysql_native_password") as server:
        error = log_in(server, mode=mode)
    assert "Nothing was sent" in str(error)
    assert not isinstance(error, LostConnectionError), "it would be tried again and again"
    assert SECRET not in str(error)
    # the answer to the greeting, whose hash cannot be undone, and nothing more
    assert len(server.received) == 1
    assert SECRET.encode() not in server.received[0]


@pytest.mark.parametrize(
    ("plugin", "talk"),
    [("caching_sha2_password", asks_for_full_authentication(PUBLIC_KEY)), ("sha256_password", sends_its_key(PUBLIC_KEY))],
)
def test_the_password_is_not_sent_under_a_key_of_anybody(plugin: str, talk: Talk) -> None:
    with rogue(talk, plugin) as server:
        error = log_in(server)
    assert "driver.allowPublicKeyRetrieval=true" in str(error)
    assert len(server.received) == 1


def test_the_password_is_sent_under_the_servers_key_where_that_is_allowed() -> None:
    with rogue(asks_for_full_authentication(PUBLIC_KEY), "caching_sha2_password") as server:
        log_in(server, allows_public_key=True)
    salted = undone(server.received[2])
    salt = b"12345678901234567890"
    assert bytes(a ^ salt[i % len(salt)] for i, a in enumerate(salted)) == SECRET.encode() + b"\0"


@pytest.mark.parametrize("name", ["driver.allowPublicKeyRetrieval", "database.allowPublicKeyRetrieval"])
def test_keys_are_allowed_by_the_property_of_javas_driver(name: str) -> None:
    base = {"database.hostname": "h", "database.user": "u", "database.server.id": "1", "topic.prefix": "p"}
    base |= {"schema.history.internal.kafka.topic": "h", "schema.history.internal.kafka.bootstrap.servers": "h:1"}
    assert not parse_config(base).connection.allows_public_key
    assert parse_config({**base, name: "true"}).connection.allows_public_key
