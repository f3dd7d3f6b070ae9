"""How to reach the server. No driver is needed to hold it."""

from __future__ import annotations

from dataclasses import dataclass

from connect_py.api import Password


@dataclass(frozen=True)
class ConnectionSettings:
    """How to reach the server. Never printed.

    Attributes:
        connect_timeout: seconds.
        query_timeout: seconds that one statement may take until its answer begins; 0 is for ever.
        ssl_mode: ``database.ssl.mode`` in small letters, with `_`.
        ssl_ca: a PEM file of certificates to trust; None trusts the system's.
        ssl_cert: a PEM file of our own certificate and ssl_key of its key, which ssl_key_password opens.
    """

    host: str
    port: int
    user: str
    password: Password | None
    connect_timeout: float = 30.0
    query_timeout: float = 0.0
    ssl_mode: str = "preferred"
    ssl_ca: str | None = None
    ssl_cert: str | None = None
    ssl_key: str | None = None
    ssl_key_password: Password | None = None
