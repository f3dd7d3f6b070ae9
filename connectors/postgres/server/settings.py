"""How to reach the server, as libpq's parameters. No driver is needed to hold them."""

from __future__ import annotations

from dataclasses import dataclass, field

from connect_py.api import Password

#: TCP connects that get no answer end after this; a firewall may drop packets.
CONNECT_TIMEOUT_SECONDS = 10
#: The connection ends when what was sent is not acknowledged for this long, and an idle one when the peer's machine does not answer probes
#: (sent after 20 s without traffic, then each 10 s) for as long: a failed-over server or a firewall that forgot the flow sends no reset.
TCP_TIMEOUT_MS = 60_000
#: A path that is no file: libpq then looks into no ~/.pgpass.
NO_PASSWORD_FILE = "/dev/null/none"  # noqa: S105  # a path
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

    def conninfo(self, host: str, address: str, application: str, *, replication: bool = False) -> bytes:
        """Return the connection string; holds the password, which is given although there is none: libpq would look elsewhere for it.

        Args:
            host: the name, for certificates and messages.
            address: the number of the host, so that libpq does not look it up; it would block every thread.
        """
        parts: list[tuple[str, str]] = [
            ("host", host),
            ("hostaddr", address),
            ("port", str(self.port)),
            ("user", self.user),
            ("dbname", self.database),
            ("application_name", application),
            ("client_encoding", "UTF8"),
            ("options", SESSION),
            ("password", "" if self.password is None else self.password.reveal()),
            ("passfile", NO_PASSWORD_FILE),
            ("tcp_user_timeout", str(TCP_TIMEOUT_MS)),
            ("keepalives_idle", "20"),
            ("keepalives_interval", "10"),
            ("keepalives_count", "4"),
        ]
        if replication:
            parts.append(("replication", "database"))
        parts += [(name, value.reveal() if isinstance(value, Password) else value) for name, value in self.more]
        return " ".join(f"{name}='{_escaped(value)}'" for name, value in parts).encode()


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("'", "\\'")
