"""A login that does not give the password away: left to itself, the driver answers whatever a server asks for.

A machine between us and the server, or in its place, may ask for the password as it is (`mysql_clear_password`, `dialog`), for a hash that
can be undone (`mysql_old_password`), or for the password under a public key of its own (`sha256_password`, `caching_sha2_password`). Over a
connection without TLS these are refused, as Connector/J and libmysqlclient do; the last is allowed by Connector/J's property
`allowPublicKeyRetrieval`. TLS that verifies no certificate keeps listeners away, but not a machine in the server's place.
"""

from __future__ import annotations

from typing import Any, Protocol

import pymysql
from pymysql.constants import CR
from pymysql.protocol import MysqlPacket


class GuardedConnection(pymysql.connections.Connection):  # type: ignore[misc]  # the driver has no types
    """The driver's connection, with these rules.

    Args:
        allows_public_key: whether the password may be sent under a public key that the server sends over a connection without TLS.
    """

    def __init__(self, *args: Any, allows_public_key: bool, **more: Any) -> None:
        self._allows_public_key = allows_public_key
        self._public_key: bytes | None = None
        guards = {"mysql_clear_password": _Clear, "mysql_old_password": _Old, "dialog": _Dialog}
        super().__init__(*args, auth_plugin_map=guards, **more)

    @property
    def server_public_key(self) -> bytes | None:
        """The key under which a password is sent. The driver looks here before it asks the server, and puts here what it got.

        Raises:
            OperationalError: such a key is not wanted.
        """
        if self._public_key is None and self.password:
            self._refuse_key()
        return self._public_key

    @server_public_key.setter
    def server_public_key(self, key: bytes | None) -> None:
        if key is not None:
            self._refuse_key()
        self._public_key = key

    def _refuse_key(self) -> None:
        if not self._allows_public_key:
            raise _refusal(
                "Public Key Retrieval is not allowed: the server wants the password under a key that it sends over a connection without "
                "TLS, where anybody can send one. Nothing was sent. Use database.ssl.mode=required, or allow it with "
                "driver.allowPublicKeyRetrieval=true"
            )


class _Driver(Protocol):
    _secure: bool
    password: bytes

    def write_packet(self, payload: bytes) -> None: ...
    def _read_packet(self) -> MysqlPacket: ...


class _Guard:
    """Answers nothing without TLS.

    Args:
        driver: the connection that logs in.
    """

    def __init__(self, driver: _Driver) -> None:
        self._driver = driver

    def _refuse_without_tls(self) -> None:
        if not self._driver._secure:
            raise _refusal(
                "The server asks for the password in a form that anybody on the way can read, over a connection without TLS. Nothing was "
                "sent. Use database.ssl.mode=required, or give the user another authentication plugin"
            )


class _Clear(_Guard):
    """`mysql_clear_password`: the password as it is."""

    def authenticate(self, packet: MysqlPacket) -> MysqlPacket:
        self._refuse_without_tls()
        self._driver.write_packet(self._driver.password + b"\0")
        return self._driver._read_packet()


class _Dialog(_Guard):
    """MariaDB's `dialog` (PAM): the driver answers a question for the password itself, where a plugin has no `authenticate`."""

    def __getattr__(self, name: str) -> Any:
        if name == "authenticate":
            self._refuse_without_tls()
        raise AttributeError(name)


class _Old:
    """`mysql_old_password`: a hash that is undone in no time, and that no server of this century needs."""

    def __init__(self, driver: _Driver) -> None:
        pass

    def authenticate(self, packet: MysqlPacket) -> MysqlPacket:
        raise _refusal("The server asks for the password in the form of MySQL 4.0, which is as good as clear. Nothing was sent")


def _refusal(text: str) -> pymysql.OperationalError:
    return pymysql.OperationalError(CR.CR_AUTH_PLUGIN_ERR, text)
