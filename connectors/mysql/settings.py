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
        ssl_ca: a PEM file or PKCS #12 store of certificates to trust, which ssl_ca_password opens; None trusts the system's.
        ssl_cert: such a file or store with our own certificate and its key, which ssl_cert_password opens.
    """

    host: str
    port: int
    user: str
    password: Password | None
    connect_timeout: float = 30.0
    query_timeout: float = 0.0
    ssl_mode: str = "preferred"
    ssl_ca: str | None = None
    ssl_ca_password: Password | None = None
    ssl_cert: str | None = None
    ssl_cert_password: Password | None = None
