"""The HTTP server: sockets for each listener, and uvicorn in a thread of its own.

The sockets are bound by `start` in the caller's thread, so that a port in use is the caller's error and a bound port 0 is known at once.
The server's thread owns the event loop; `stop` only asks it to end.
"""

from __future__ import annotations

import asyncio
import re
import socket
import threading
from collections.abc import Sequence

import uvicorn
from starlette.types import ASGIApp

from connect_py.errors import ConfigError, ConnectError

#: RestServerConfig.LISTENER_PATTERN's form: scheme://[host]:port, the host possibly empty or an IPv6 address in brackets.
_LISTENER = re.compile(r"^(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)")
#: Jetty's idle timeout; uvicorn's own 5 s would cut clients that keep connections for reuse.
KEEP_ALIVE_SECONDS = 30
#: RestServer.GRACEFUL_SHUTDOWN_TIMEOUT_MS.
STOP_SECONDS = 60.0


def parse_listener(text: str) -> tuple[str, str, int]:
    """Scheme, host (may be empty) and port of a listener.

    Raises:
        ConfigError: it has another form, or is not plain HTTP.
    """
    found = _LISTENER.match(text.strip())
    if not found or int(found[3]) > 65535 or int(found[3]) < 0:
        raise ConfigError("Listener doesn't have the right format (protocol://hostname:port).")
    scheme = found[1].lower()
    if scheme not in ("http", "https"):
        raise ConfigError('Listener protocol must be either "http" or "https".')
    if scheme == "https":
        raise ConfigError(f"The listener {text} needs TLS, which this worker does not offer yet; put a proxy in front of an http listener.")
    return scheme, found[2], int(found[3])


class Server:
    """Serves an application on listeners.

    Args:
        listeners: such as ``http://127.0.0.1:8083``; an empty host means every interface.

    Attributes:
        urls: the addresses with their real ports, once bound.

    Raises:
        ConfigError: a listener is malformed.
    """

    def __init__(self, listeners: Sequence[str]) -> None:
        self._listeners = [parse_listener(text) for text in listeners]
        self._sockets: list[socket.socket] = []
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None
        self._ready = threading.Event()
        self.urls: list[str] = []

    def bind(self) -> list[str]:
        """Open the ports, so that a worker knows its address before it has anything to answer; clients wait until `start`.

        Returns:
            `urls`.

        Raises:
            ConfigError: a port is in use or not allowed.
        """
        if self._sockets:
            return self.urls
        try:
            for scheme, host, port in self._listeners:
                bound = _bind(host, port)
                self._sockets.append(bound)
                shown = f"[{host}]" if ":" in host else host or "localhost"
                self.urls.append(f"{scheme}://{shown}:{bound.getsockname()[1]}")
        except ConfigError:
            self._close()
            raise
        return self.urls

    def start(self, app: ASGIApp, timeout: float = 30.0) -> list[str]:
        """Answer requests; binds first if that was not done.

        Args:
            app: from `create_app`.
            timeout: seconds until the application must be up.

        Returns:
            `urls`.

        Raises:
            ConfigError: as `bind`.
            ConnectError: the server did not come up.
        """
        self.bind()
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="on",
            ws="none",
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=int(STOP_SECONDS),
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, args=(self._server,), name="rest-server", daemon=True)
        self._thread.start()
        if not self._ready.wait(timeout) or not self._server.started:
            self.stop()
            raise ConnectError(f"The REST server on {', '.join(self.urls)} did not start; see the log above.")
        return self.urls

    def stop(self, timeout: float = STOP_SECONDS) -> None:
        """Refuse new requests, let running ones end for at most `timeout` seconds, free the ports. May be called twice."""
        if self._server is not None and self._thread is not None:
            self._server.config.timeout_graceful_shutdown = int(timeout)
            self._server.should_exit = True
            if self._thread is not threading.current_thread():
                self._thread.join(timeout + 5)
        self._close()

    def _run(self, server: uvicorn.Server) -> None:
        try:
            asyncio.run(self._serve(server))
        finally:
            self._ready.set()

    async def _serve(self, server: uvicorn.Server) -> None:
        watcher = asyncio.create_task(self._announce(server))
        try:
            await server.serve(sockets=self._sockets)
        finally:
            watcher.cancel()

    async def _announce(self, server: uvicorn.Server) -> None:
        while not server.started:
            await asyncio.sleep(0.01)
        self._ready.set()

    def _close(self) -> None:
        for each in self._sockets:
            each.close()


def _bind(host: str, port: int) -> socket.socket:
    try:
        if not host and socket.has_dualstack_ipv6():
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=128)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        raise ConfigError(f"The listener {host}:{port} cannot be opened: {error.strerror or error}. Is another worker running?") from error


def serve(app: ASGIApp, listeners: Sequence[str]) -> Server:
    """A started server. Raises as `Server.start`."""
    server = Server(listeners)
    server.start(app)
    return server
