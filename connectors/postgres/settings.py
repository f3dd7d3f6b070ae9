"""How to reach the server, as libpq's parameters. No driver is needed to hold them."""

from __future__ import annotations

from dataclasses import dataclass, field

from connect_py.api import Password

#: TCP connects that get no answer end after this; the server may be behind a firewall that drops packets.
CONNECT_TIMEOUT_SECONDS = 10
#: Text forms that the row encoders read; the timeouts of the role or database must not cut a long COPY; a watermark must be in the log when
#: its commit returns, because the stream waits for it (where commits are asynchronous it would wait 200 ms for the log's writer).
SESSION = (
    "-c DateStyle=ISO -c IntervalStyle=postgres -c TimeZone=UTC -c extra_float_digits=3 -c bytea_output=hex "
    "-c statement_timeout=0 -c lock_timeout=0 -c idle_in_transaction_session_timeout=0 "
    "-c synchronous_commit=local"
)


@dataclass(frozen=True)
class ConnectionSettings:
    """How to reach the server: libpq's parameters. Never printed."""

    host: str
    port: int
    user: str
    password: Password | None
    database: str
    more: tuple[tuple[str, str | Password], ...] = field(default=())

    def conninfo(self, application: str, *, replication: bool = False, connect_seconds: float = CONNECT_TIMEOUT_SECONDS) -> bytes:
        """The connection string; holds the password. libpq takes whole seconds, two at least, to connect."""
        parts: list[tuple[str, str]] = [
            ("host", self.host),
            ("port", str(self.port)),
            ("user", self.user),
            ("dbname", self.database),
            ("application_name", application),
            ("client_encoding", "UTF8"),
            ("options", SESSION),
            ("connect_timeout", str(max(2, round(connect_seconds)))),
        ]
        if self.password is not None:
            parts.append(("password", self.password.reveal()))
        if replication:
            parts.append(("replication", "database"))
        parts += [(name, value.reveal() if isinstance(value, Password) else value) for name, value in self.more]
        return " ".join(f"{name}='{_escaped(value)}'" for name, value in parts).encode()


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("'", "\\'")
