"""The HTTP server: sockets for each listener, and uvicorn in a thread of its own.

The sockets are bound by `bind` in the caller's thread, so that a port in use is the caller's error and a bound port 0 is known at once.
The server's thread owns the event loop, in which one uvicorn server runs for each kind of listener: plain or TLS, main or admin. `stop`
only asks them to end.

`HttpProtocol` is HTTP/1.1 as uvicorn speaks it, with two limits. A client that opens a connection and does not complete a request's head
within `HEAD_SECONDS` is cut off (Jetty's idle timeout); uvicorn itself waits for ever, so that a few thousand silent clients would use up
the worker's file descriptors. A body that does not come is `request.py`'s matter, since its sender can still be answered. And h11 accepts
lines that end with a bare LF and lines that continue the one before (obsolete folding), which a proxy in front of the worker may read in
another way: both are a 400 here, as Jetty's compliance RFC7230 has it for folding.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import socket
import ssl
import threading
from collections.abc import Callable, Sequence

import anyio.to_thread
import h11
import uvicorn
from h11._receivebuffer import ReceiveBuffer
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from connect_py.errors import ConfigError, ConnectError
from rest_api.listeners import Listener, bind, parse_listeners
from rest_api.waiting import WAITING_REQUESTS

log = logging.getLogger(__name__)


#: Jetty's idle timeout.
HEAD_SECONDS = 30.0


#: A line end that is not CR LF, or a line that continues the one before.
_LOOSE = re.compile(rb"(?<!\r)\n|\r(?!\n)|\n[ \t]")


class _StrictBuffer(ReceiveBuffer):
    """What h11 reads heads from (a private class of h11's; pyproject.toml has the bound, and a test looks for its method)."""

    def maybe_extract_lines(self) -> list[bytearray] | None:
        """Return the lines of a head, once it is complete. Raises RemoteProtocolError."""
        before = bytes(self)
        lines = super().maybe_extract_lines()
        if lines is not None and _LOOSE.search(before, 0, len(before) - len(self)):
            raise h11.RemoteProtocolError("a line of the head ends or begins as none may")
        return lines


class HttpProtocol(H11Protocol):
    """HTTP/1.1 with a limit on the time and the form of a request's head."""

    head_seconds = HEAD_SECONDS
    _patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as H11Protocol has it
        """Start the clock: a client is there."""
        super().connection_made(transport)
        self.conn._receive_buffer = _StrictBuffer()
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Stop the clock when a request's head is complete."""
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:
            self._wait()
        else:
            self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock: the connection is closed."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait(self) -> None:
        if self._patience is None:
            self._patience = self.loop.call_later(self.head_seconds, self._cut_off)

    def _stop_waiting(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _cut_off(self) -> None:
        self._patience = None
        if not self.transport.is_closing():
            self.transport.close()


#: Jetty's idle timeout; uvicorn's own 5 s would cut clients that keep connections for reuse.
KEEP_ALIVE_SECONDS = 30
#: RestServer.GRACEFUL_SHUTDOWN_TIMEOUT_MS.
STOP_SECONDS = 60.0
#: The maximum size of a request's line and headers before the connection is closed; `compat/jaxrs.py` refuses far less with an answer.
_MAX_HEAD_BYTES = 64 * 1024


class _Uvicorn(uvicorn.Server):
    """uvicorn's server, which looks ten times a second whether it is to end: 0.3 % of a core. This one is notified.

    Its loop's thread owns it; `end` is for any thread.
    """

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._ended = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def main_loop(self) -> None:
        """Keep the time of the answers' `Date` header until `end`."""
        self._loop = asyncio.get_running_loop()
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), 1.0)

    def end(self) -> None:
        """Have the server end."""
        self.should_exit = True
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._ended.set)


class Server:
    """Serves an application on listeners, and another one on admin listeners.

    Args:
        listeners: of the API.
        admin_listeners: of `/admin` alone.
        head_seconds: after which a client without a request's whole head is cut off.

    Attributes:
        urls: the API's addresses with their real ports, once bound.
        admin_urls: those of the admin listeners.
    """

    def __init__(self, listeners: Sequence[Listener], admin_listeners: Sequence[Listener] = (), head_seconds: float = HEAD_SECONDS) -> None:
        self._head_seconds = head_seconds
        self._listeners = list(listeners)
        self._admin_listeners = list(admin_listeners)
        self._bound: list[tuple[socket.socket, ssl.SSLContext | None, bool]] = []
        self._servers: list[_Uvicorn] = []
        self._thread: threading.Thread | None = None
        self._ready = threading.Event()
        self._is_stopping = False
        self.urls: list[str] = []
        self.admin_urls: list[str] = []

    def bind(self) -> list[str]:
        """Open the ports, so that a worker knows its address before it has anything to answer; clients wait until `start`.

        Returns:
            `urls`.

        Raises:
            ConfigError: a port is in use or not allowed.
        """
        if self._bound:
            return self.urls
        try:
            for admin, listeners, urls in ((False, self._listeners, self.urls), (True, self._admin_listeners, self.admin_urls)):
                for listener in listeners:
                    bound, url = bind(listener)
                    self._bound.append((bound, listener.tls, admin))
                    urls.append(url)
        except ConfigError:
            self._close()
            raise
        return self.urls

    def start(
        self,
        app: ASGIApp,
        admin_app: ASGIApp | None = None,
        timeout: float = 30.0,
        on_end: Callable[[], None] = lambda: None,
    ) -> list[str]:
        """Answer requests; binds first if that was not done.

        Args:
            app: from `create_app`.
            admin_app: from `create_admin_app`, when there are admin listeners.
            timeout: seconds until the application must be up.
            on_end: called from the server's thread when it ends without having been stopped: nothing answers requests any more.

        Returns:
            `urls`.

        Raises:
            ConfigError: as `bind`.
            ConnectError: the server did not come up.
        """
        self.bind()
        groups: dict[tuple[ssl.SSLContext | None, bool], list[socket.socket]] = {}
        for bound, tls, admin in self._bound:
            groups.setdefault((tls, admin), []).append(bound)
        served = []
        for (tls, admin), sockets in groups.items():
            chosen = admin_app if admin else app
            if chosen is not None:
                served.append((_Uvicorn(_config(chosen, tls, self._head_seconds)), sockets))
        self._servers = [server for server, _ in served]
        self._thread = threading.Thread(target=self._run, args=(served, on_end), name="rest-server", daemon=True)
        self._thread.start()
        if not self._ready.wait(timeout) or not all(server.started for server in self._servers):
            self.stop()
            raise ConnectError(f"The REST server on {', '.join(self.urls)} did not start; see the log above.")
        return self.urls

    def stop(self, timeout: float = STOP_SECONDS) -> None:
        """Refuse new requests, let running ones end for at most `timeout` seconds, free the ports. May be called twice."""
        self._is_stopping = True
        for server in self._servers:
            server.config.timeout_graceful_shutdown = int(timeout)
            server.end()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout + 5)
        self._close()

    def _run(self, served: Sequence[tuple[_Uvicorn, list[socket.socket]]], on_end: Callable[[], None]) -> None:
        try:
            asyncio.run(self._serve(served))
        except Exception:
            log.exception("The REST server on %s has failed", ", ".join(self.urls))
        finally:
            was_ready = self._ready.is_set()
            self._ready.set()
            if was_ready and not self._is_stopping:
                on_end()

    async def _serve(self, served: Sequence[tuple[_Uvicorn, list[socket.socket]]]) -> None:
        anyio.to_thread.current_default_thread_limiter().total_tokens = WAITING_REQUESTS
        watcher = asyncio.create_task(self._announce())
        try:
            await asyncio.gather(*(server.serve(sockets=sockets) for server, sockets in served))
        finally:
            watcher.cancel()

    async def _announce(self) -> None:
        while not all(server.started for server in self._servers):
            await asyncio.sleep(0.01)
        self._ready.set()

    def _close(self) -> None:
        for bound, _, _ in self._bound:
            bound.close()


def _config(app: ASGIApp, tls: ssl.SSLContext | None, head_seconds: float) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
        http=type("HttpProtocol", (HttpProtocol,), {"head_seconds": head_seconds}),
        proxy_headers=False,
        h11_max_incomplete_event_size=_MAX_HEAD_BYTES,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=int(STOP_SECONDS),
        ssl_context_factory=None if tls is None else lambda _config, _default: tls,
    )


def serve(app: ASGIApp, listeners: Sequence[str]) -> Server:
    """Return a started server on plain listeners. Raises as `Server.start`."""
    server = Server(parse_listeners(listeners))
    server.start(app)
    return server
