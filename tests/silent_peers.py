"""Peers that accept and say nothing, and a TCP proxy that falls silent, as a firewall that forgot a flow and a frozen machine do."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def silent_listener() -> Iterator[int]:
    """The port of a listener whose connections are accepted by the kernel and never answered."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        yield server.getsockname()[1]


@contextlib.contextmanager
def refusing_proxy(message: str) -> Iterator[int]:
    """The port of a peer that answers each start of a PostgreSQL session with an error, as PgBouncer does to unknown parameters."""
    fields = b"SFATAL\0VFATAL\0C08P01\0M" + message.encode() + b"\0\0"
    answer = b"E" + (len(fields) + 4).to_bytes(4, "big") + fields

    def serve(server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = server.accept()
                with client:
                    while client.recv(8)[4:] in (b"\x04\xd2\x16\x2f", b"\x04\xd2\x16\x30"):  # SSLRequest, GSSENCRequest
                        client.sendall(b"N")
                    client.recv(4096)
                    client.sendall(answer)

    with socket.create_server(("127.0.0.1", 0), backlog=8) as server:
        thread = threading.Thread(target=serve, args=(server,), daemon=True)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
    thread.join(5)


class Proxy:
    """Forwards TCP connections until it is told to be silent: they then stay open, and nothing passes in either direction.

    Args:
        host, port: where to.

    Attributes:
        port: where it listens, on 127.0.0.1.
        accepted: how many connections it took.
    """

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._server = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = self._server.getsockname()[1]
        self.accepted = 0
        self._silent = threading.Event()
        self._closed = threading.Event()
        self._open: list[socket.socket] = []
        self._frozen: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def silence(self) -> None:
        """Pass nothing on, of open connections and of new ones."""
        self._silent.set()

    def resume(self) -> None:
        """Serve new connections; those that were open stay silent, as after a failover."""
        self._frozen |= set(self._open)
        self._silent.clear()

    def close(self) -> None:
        """Close everything."""
        self._closed.set()
        for thread in self._threads:
            thread.join(5)
        for each in [self._server, *self._open]:
            each.close()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self, target: object, *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._closed.is_set():
            if not select.select([self._server], [], [], 0.1)[0]:
                continue
            client, _ = self._server.accept()
            self.accepted += 1
            self._open.append(client)
            if not self._silent.is_set():
                self._start(self._serve, client)

    def _serve(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            server = socket.create_connection(self._target, 5)
            self._open.append(server)
            if self._silent.is_set():
                return
            other = {client: server, server: client}
            while not self._closed.is_set():
                if self._silent.is_set() or client in self._frozen:
                    self._closed.wait(0.05)
                    continue
                for ready in select.select(list(other), [], [], 0.05)[0]:
                    if self._silent.is_set() or client in self._frozen:
                        break
                    data = ready.recv(65536)
                    if not data:
                        other[ready].shutdown(socket.SHUT_WR)
                        other.pop(ready)
                        if not other:
                            return
                        continue
                    other[ready].sendall(data)
