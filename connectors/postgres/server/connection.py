"""One libpq connection, through `psycopg.pq`: queries, COPY and the replication protocol with little work a row.

A connection belongs to the task's thread. Waiting is done in slices so that a stop is noticed; the caller's `should_stop` says when.
"""

from __future__ import annotations

import logging
import os
import select
import socket
import time
from collections.abc import Callable, Sequence

import psycopg
from psycopg import pq

from connectors.postgres.config import CONNECT_TIMEOUT_SECONDS, ConnectionSettings
from connectors.postgres.errors import ServerError, connect_error

log = logging.getLogger(__name__)

#: How long one wait for the server lasts before a stop is looked for.
WAIT_SLICE_SECONDS = 0.2

#: After a statement's time is up, the server has this long to answer the request to give it up, and then to give it up.
CANCEL_SECONDS = 10.0

Row = tuple[str | None, ...]


class Stopped(Exception):
    """The task was asked to stop while it waited for the server."""


def quote_literal(text: str) -> str:
    """Return a string constant for SQL."""
    quoted = text.replace("'", "''")
    return f" E'{quoted.replace(chr(92), chr(92) * 2)}'" if "\\" in quoted else f"'{quoted}'"


def quote_name(name: str) -> str:
    """Return an identifier for SQL."""
    return '"' + name.replace('"', '""') + '"'


class Connection:
    """An open connection.

    Args:
        settings: where to connect.
        application: what the server's `pg_stat_activity` shows.
        should_stop: called while waiting; whether to give up.
        query_seconds: how long a statement may take before the server is asked to give it up, and how long a COPY may wait for data; None
            is for ever.
        cancel_seconds: how long the server may take to answer that request, and then to give the statement up.
        connect_seconds: how long the server may take to answer at all.

    Raises:
        ServerError: it cannot be opened.
        Stopped: a stop was asked for.
    """

    def __init__(
        self,
        settings: ConnectionSettings,
        application: str,
        *,
        replication: bool = False,
        should_stop: Callable[[], bool] = lambda: False,
        query_seconds: float | None = None,
        cancel_seconds: float = CANCEL_SECONDS,
        connect_seconds: float = CONNECT_TIMEOUT_SECONDS,
    ) -> None:
        self._should_stop = should_stop
        self._query_seconds = query_seconds
        self._cancel_seconds = cancel_seconds
        self.pgconn = _connect(settings, application, replication=replication, seconds=connect_seconds, should_stop=should_stop)
        self.pgconn.nonblocking = 1
        self.socket = self.pgconn.socket
        self._poll = select.poll()
        self._poll.register(self.socket, select.POLLIN)

    @property
    def server_version(self) -> int:
        """Such as 150004."""
        return self.pgconn.server_version

    def wait_readable(self, seconds: float) -> bool:
        """Wait for the server to send something. Returns whether it did; never longer than `seconds`."""
        return bool(self._poll.poll(seconds * 1000))

    def consume_input(self) -> None:
        """Take what the socket holds into libpq's buffer. Raises ServerError when the connection is gone."""
        try:
            self.pgconn.consume_input()
        except psycopg.Error:
            raise self._lost() from None

    def flush(self, timeout: float = 10.0) -> None:
        """Send what is buffered. Raises ServerError when the server takes nothing for `timeout` seconds, or is gone."""
        deadline = time.monotonic() + timeout
        try:
            while self.pgconn.flush():
                left = deadline - time.monotonic()
                if left <= 0:
                    raise ServerError("08006", f"the server took no data for {timeout:.0f} s")
                select.select([], [self.socket], [], min(left, WAIT_SLICE_SECONDS))
        except ServerError:
            raise
        except psycopg.Error:
            raise self._lost() from None

    def put_copy_data(self, message: bytes) -> None:
        """Send a message inside a COPY without waiting: what the socket does not take now goes with the next one. Raises ServerError."""
        try:
            self.pgconn.put_copy_data(message)
            self.pgconn.flush()
        except psycopg.Error:
            raise self._lost() from None

    def _lost(self) -> ServerError:
        message = " ".join(self.pgconn.error_message.decode("utf-8", "replace").split())
        if "server closed the connection" in message:  # libpq adds what it guesses of the reason, and what it was asked to do next
            message = "the server closed the connection"
        return ServerError("08006", message or "the connection was lost")

    def _next_result(self, while_waiting: Callable[[], None] | None = None) -> pq.abc.PGresult | None:
        give_up = time.monotonic() + self._query_seconds if self._query_seconds else None
        is_cancelled = False
        while self.pgconn.is_busy():
            if self._should_stop():
                raise Stopped
            if give_up is not None and time.monotonic() >= give_up:
                if is_cancelled:
                    raise ServerError("08006", "the server does not answer, not even to the request to give up a statement")
                log.warning("A statement took longer than database.query.timeout.ms, and the server is asked to give it up")
                self.cancel()
                give_up = time.monotonic() + self._cancel_seconds
                is_cancelled = True
            if self.wait_readable(WAIT_SLICE_SECONDS):
                self.consume_input()
            elif while_waiting is not None:
                while_waiting()
        return self.pgconn.get_result()

    def _check(self, result: pq.abc.PGresult) -> None:
        status = result.status
        if status not in (pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.BAD_RESPONSE, pq.ExecStatus.NONFATAL_ERROR):
            return
        state = result.error_field(pq.DiagnosticField.SQLSTATE)
        primary = result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY)
        detail = result.error_field(pq.DiagnosticField.MESSAGE_DETAIL)
        if state is None:
            raise self._lost()
        text = (primary or b"").decode("utf-8", "replace")
        raise ServerError(state.decode(), text + (f" ({detail.decode('utf-8', 'replace')})" if detail else ""))

    def query(self, sql: str, while_waiting: Callable[[], None] | None = None) -> list[Row]:
        """Run one or several statements; gives the rows of the last one that has any.

        Args:
            while_waiting: called a few times a second until the server answers; must not use this connection.

        Raises:
            ServerError: the server refused, or the connection is gone.
            Stopped: a stop was asked for while waiting; the connection must be closed.
        """
        self._send(sql)
        return self._rows(while_waiting)

    def query_one(self, sql: str, while_waiting: Callable[[], None] | None = None) -> list[Row]:
        """Run one statement: text of others in it cannot begin a second one (extended protocol). Raises as `query`."""
        self._send(sql, only_one=True)
        return self._rows(while_waiting)

    def column_names(self, sql: str) -> list[str]:
        """Return the names of one statement's columns, whose rows are not read. Raises as `query`."""
        self._send(sql, only_one=True)
        found = self._results()[-1]
        return [(found.fname(index) or b"").decode() for index in range(found.nfields)]

    def parse(self, sql: str) -> None:
        """Let the server parse one statement, which is not run. Raises as `query`."""
        try:
            self.pgconn.send_prepare(b"", sql.encode())
        except psycopg.Error:
            raise self._lost() from None
        self.flush()
        self._results()

    def _rows(self, while_waiting: Callable[[], None] | None) -> list[Row]:
        rows: list[Row] = []
        for result in self._results(while_waiting):
            if result.status == pq.ExecStatus.TUPLES_OK:
                rows = _rows(result)
        return rows

    def _results(self, while_waiting: Callable[[], None] | None = None) -> list[pq.abc.PGresult]:
        """Return all that the server answers to the present command. Raises the first failure as ServerError, and Stopped."""
        results: list[pq.abc.PGresult] = []
        failure: ServerError | None = None
        while (result := self._next_result(while_waiting)) is not None:
            try:
                self._check(result)
                results.append(result)
            except ServerError as error:
                failure = failure or error
        if failure:
            raise failure
        return results

    def _send(self, sql: str, *, only_one: bool = False) -> None:
        try:
            if only_one:
                self.pgconn.send_query_params(sql.encode(), None)
            else:
                self.pgconn.send_query(sql.encode())
        except psycopg.Error:
            raise self._lost() from None
        self.flush()

    def start_copy(self, sql: str) -> None:
        """Run a `COPY … TO STDOUT` (one statement) or START_REPLICATION up to the point where data flows.

        Raises:
            ServerError: the server refused.
            Stopped: a stop was asked for.
        """
        # replication connections know the simple protocol only
        self._send(sql, only_one=sql.startswith("COPY "))
        result = self._next_result()
        if result is None:
            raise self._lost()
        if result.status in (pq.ExecStatus.COPY_OUT, pq.ExecStatus.COPY_BOTH):
            return
        try:
            self._check(result)
        finally:
            while self._next_result() is not None:
                pass
        raise ServerError("XX000", f"the server answered {pq.ExecStatus(result.status).name} to {sql.split('(')[0].strip()}")

    def copy_lines(self, sql: str, while_waiting: Callable[[], None] | None = None) -> list[bytes]:
        """Return every line of a `COPY … TO STDOUT` (one statement) that is known to be short. Raises as `query`."""
        self._send(sql, only_one=True)
        result = self._next_result(while_waiting)
        lines: list[bytes] = []
        data_at = time.monotonic()
        if result is not None and result.status == pq.ExecStatus.COPY_OUT:
            try:
                while (found := self.pgconn.get_copy_data(1))[0] >= 0:
                    if found[0]:
                        lines.append(bytes(found[1]))
                        data_at = time.monotonic()
                    elif self.wait_readable(WAIT_SLICE_SECONDS):
                        self.consume_input()
                    elif self._should_stop():
                        raise Stopped
                    else:
                        self.check_silence(time.monotonic() - data_at)
                        if while_waiting is not None:
                            while_waiting()
            except psycopg.Error:
                raise self.copy_failed() from None
            self.end_copy()
            return lines
        try:
            if result is None:
                raise self._lost()
            self._check(result)
        finally:
            while self._next_result() is not None:
                pass
        raise ServerError("XX000", f"the server sent no rows to {sql.split('(')[0].strip()}")

    def check_silence(self, seconds: float) -> None:
        """Raise ServerError when a COPY was waited for longer than `query_seconds`."""
        if self._query_seconds and seconds > self._query_seconds:
            raise ServerError("08006", f"no row has come for {self._query_seconds:.0f} s (database.query.timeout.ms)")

    def end_copy(self) -> None:
        """Take the results that follow a COPY's last row. Raises ServerError when the COPY failed."""
        self._results()

    def copy_failed(self) -> ServerError:
        """Return what ended a COPY from which no more data can be taken."""
        try:
            self.end_copy()
        except ServerError as error:
            return error
        return self._lost()

    def cancel(self) -> None:
        """Ask the server, over a connection of its own, to give up the statement that runs. Best effort: a failure is logged."""
        try:
            request = self.pgconn.cancel_conn()
            try:
                request.start()
                _finish(request.poll, lambda: request.socket, self._cancel_seconds)
            finally:
                request.finish()
        except (psycopg.Error, TimeoutError) as error:
            log.warning("The server could not be asked to give up a statement: %s", error or "it does not answer")

    def close(self) -> None:
        """Close without waiting; the server ends the session and frees an active slot."""
        self.pgconn.finish()


def _connect(
    settings: ConnectionSettings, application: str, *, replication: bool, seconds: float, should_stop: Callable[[], bool]
) -> pq.abc.PGconn:
    """Try each address of the host, each for `seconds`. Waits without the interpreter's lock, which `PQconnectdb` would hold.

    Raises:
        ServerError: none answers; the reason is the last one's.
        Stopped: a stop was asked for.
    """
    # libpq reads the environment for what is not given: passwords, services and certificates of the worker's own user would go to any host
    # that a connector names. `os.environ` keeps them for config providers.
    for variable in [name for name in os.environ if name.startswith("PG")]:
        os.unsetenv(variable)
    failure = connect_error("")
    for host in settings.host.split(","):
        try:
            found = socket.getaddrinfo(host.strip(), settings.port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            failure = connect_error(f'could not translate host name "{host}" to address: {reason}')
            continue
        for address in dict.fromkeys(str(entry[4][0]) for entry in found):
            pgconn = pq.PGconn.connect_start(settings.conninfo(host.strip(), address, application, replication=replication))
            try:
                if pgconn.status != pq.ConnStatus.BAD:
                    _finish(pgconn.connect_poll, lambda at=pgconn: at.socket, seconds, should_stop)  # type: ignore[misc]
                if pgconn.status == pq.ConnStatus.OK:
                    return pgconn
                failure = connect_error(pgconn.error_message.decode("utf-8", "replace"))
            except TimeoutError:
                failure = connect_error(f'connection to server at "{host}" ({address}), port {settings.port} failed: timeout expired')
            except BaseException:
                pgconn.finish()
                raise
            pgconn.finish()
    raise failure


def _finish(step: Callable[[], int], at: Callable[[], int], seconds: float, should_stop: Callable[[], bool] = lambda: False) -> None:
    """Take libpq's steps until it is done or has failed. Raises TimeoutError, and Stopped."""
    deadline = time.monotonic() + seconds
    wanted = select.POLLOUT
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        if should_stop():
            raise Stopped
        ready = select.poll()
        ready.register(at(), wanted)
        if not ready.poll(min(left, WAIT_SLICE_SECONDS) * 1000):
            continue
        match step():
            case pq.PollingStatus.READING:
                wanted = select.POLLIN
            case pq.PollingStatus.WRITING:
                wanted = select.POLLOUT
            case _:
                return


def _rows(result: pq.abc.PGresult) -> list[Row]:
    columns = range(result.nfields)
    return [
        tuple(None if (value := result.get_value(row, column)) is None else value.decode() for column in columns)
        for row in range(result.ntuples)
    ]


def placeholders(names: Sequence[str]) -> str:
    """Return a list of string constants for ``IN (…)``; of none, one that matches nothing."""
    return ", ".join(map(quote_literal, names)) or "NULL"
