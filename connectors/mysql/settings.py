"""How to reach the server. No driver is needed to hold it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from connect_py.api import Password


@dataclass(frozen=True)
class ConnectionSettings:
    """How to reach the server. Never printed.

    Attributes:
        connect_timeout: seconds.
        query_timeout: seconds that one statement may take until its answer begins; 0 is for ever.
        ssl_mode: ``database.ssl.mode`` in small letters, with `_`.
        ssl_ca: a PEM file or PKCS #12 store of certificates to trust, which ssl_ca_password opens; None trusts the system's.
        allows_public_key: Connector/J's ``allowPublicKeyRetrieval``, see `connectors.mysql.server.login`.
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
    allows_public_key: bool = False


@dataclass(frozen=True, slots=True)
class Heartbeats:
    """What tells a server with nothing to say from one that is gone, since nothing says that a connection is half open.

    Attributes:
        period: seconds after which a server without events is asked to send a heartbeat.
        limit: seconds for which nothing may come; None for ever.
    """

    period: float = 10.0
    limit: float | None = 60.0


USUAL_HEARTBEATS: Final = Heartbeats()
_SHORTEST_PERIOD = 0.1


def heartbeats_within(interval: float, *, limited: bool) -> Heartbeats:
    """Three heartbeats at least in so many seconds, ten seconds apart at most; `limited` says whether that is how long nothing may come."""
    period = max(min(USUAL_HEARTBEATS.period, interval / 3), _SHORTEST_PERIOD)
    return Heartbeats(period, max(interval, 3 * period) if limited else None)
