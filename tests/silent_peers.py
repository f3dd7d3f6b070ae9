"""Peers that accept and say nothing, and a TCP proxy that falls silent, as a firewall that forgot a flow and a frozen machine do, cuts
connections, delays what passes, lets little pass at a time, changes a byte, and eats answers."""

from __future__ import annotations

import asyncio
import contextlib
import select
import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from pathlib import Path


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
        delay: seconds by which everything that passes is late.
        rate: bytes a second that pass on each connection; None: any number.
        eaten: how many answers were lost.
        corrupted: how often a byte was changed.
    """

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._server = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = self._server.getsockname()[1]
        self.accepted = 0
        self.delay = 0.0
        self.rate: int | None = None
        self.eaten = 0
        self.corrupted = 0
        self._silent = threading.Event()
        self._closed = threading.Event()
        self._flaws = Appetite()
        self._open: list[socket.socket] = []
        self._frozen: set[socket.socket] = set()
        self._cut: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def silence(self) -> None:
        """Pass nothing on, of open connections and of new ones."""
        self._silent.set()

    def resume(self) -> None:
        """Serve new connections; those that were open stay silent, as after a failover."""
        self._frozen |= set(self._open)
        self._silent.clear()

    def corrupt(self) -> None:
        """Change a bit of what a server says next, on any connection."""
        self._flaws.left += 1

    def cut(self) -> None:
        """Reset every open connection, on both sides."""
        self._cut |= set(self._open)

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

    def answers(self) -> Answers:
        """Return what decides which answers of a new connection pass."""
        return Answers()

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
        try:
            server = socket.create_connection(self._target, 5)
        except OSError:
            reset(client)
            return
        self._open.append(server)
        try:
            self._pass(client, server)
        except OSError:  # one of them is gone
            reset(client, server)

    def _pass(self, client: socket.socket, server: socket.socket) -> None:
        """Pass on what either says until both have ended, or a fault ends them. Raises OSError."""
        if self._silent.is_set():
            return
        answers = self.answers()
        other = {client: server, server: client}
        while not self._closed.is_set():
            if client in self._cut:
                reset(client, server)
                return
            if self._silent.is_set() or client in self._frozen:
                self._closed.wait(0.05)
                continue
            for ready in select.select(list(other), [], [], 0.05)[0]:
                if self._silent.is_set() or client in self._frozen:
                    break
                rate = self.rate
                data = ready.recv(65536 if rate is None else max(1, rate // 20))
                if not data:
                    other[ready].shutdown(socket.SHUT_WR)
                    other.pop(ready)
                    if not other:
                        client.close()
                        server.close()
                        return
                    continue
                if self.delay or rate:
                    self._closed.wait(self.delay + (len(data) / rate if rate else 0.0))
                if ready is client:
                    answers.asked(data)
                else:
                    data = answers.passing(data)
                    if data and self._flaws.wants():
                        data = bytes((*data[:-1], data[-1] ^ 1))
                        self.corrupted += 1
                other[ready].sendall(data)
                if answers.is_eaten:
                    self.eaten += 1
                    reset(client, server)
                    return


@contextlib.contextmanager
def postgres_tls(host: str, port: int, certificate: Path, key: Path) -> Iterator[int]:
    """The port of a peer that speaks TLS for a PostgreSQL server whose build cannot."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            asked = await reader.readexactly(8)
            if asked[4:] == b"\x04\xd2\x16\x2f":  # SSLRequest
                writer.write(b"S")
                await writer.start_tls(context)
                asked = b""
            server = await asyncio.open_connection(host, port)
            server[1].write(asked)
            await asyncio.gather(pump(reader, server[1]), pump(server[0], writer))
        writer.close()

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        server = asyncio.run_coroutine_threadsafe(asyncio.start_server(serve, "127.0.0.1", 0), loop).result(10)
        yield server.sockets[0].getsockname()[1]
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(5)


def reset(*peers: socket.socket) -> None:
    """End connections with a RST, as a firewall does."""
    for peer in peers:
        with contextlib.suppress(OSError):
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            peer.close()


class Answers:
    """Decides which answers of a connection pass: here all of them.

    Attributes:
        is_eaten: whether one was kept back for ever: the connection ends then.
    """

    is_eaten = False

    def asked(self, data: bytes) -> None:
        """The client has said something."""

    def passing(self, data: bytes) -> bytes:
        """Return what passes of what the server has said."""
        return data


class Appetite:
    """How many answers shall be eaten; shared by the connections of a proxy.

    Attributes:
        left: of them.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.left = 0

    def wants(self) -> bool:
        """Return whether one more is eaten, and count it."""
        with self._lock:
            wanted = self.left > 0
            self.left -= wanted
            return wanted


class EatingProxy(Proxy):
    """Lets the next request of any connection through, and eats its answer, when it is told to."""

    def __init__(self, host: str, port: int) -> None:
        self.appetite = Appetite()
        super().__init__(host, port)

    def eat(self, count: int = 1) -> None:
        """Eat answers to come."""
        self.appetite.left += count

    def answers(self) -> Answers:
        """See `Proxy`."""
        return _NextAnswer(self.appetite)


class _NextAnswer(Answers):
    def __init__(self, appetite: Appetite) -> None:
        self._appetite = appetite
        self._is_next = False

    def asked(self, data: bytes) -> None:
        self._is_next = self._is_next or self._appetite.wants()

    def passing(self, data: bytes) -> bytes:
        self.is_eaten = self._is_next
        return b"" if self.is_eaten else data


class KafkaProxy(EatingProxy):
    """In front of a broker, without TLS: eats answers to requests of some kinds.

    Attributes:
        kinds: numbers of the API whose answers may be eaten (Kafka's protocol guide, "API Keys").
    """

    def __init__(self, host: str, port: int) -> None:
        self.kinds: frozenset[int] = frozenset()
        super().__init__(host, port)

    def answers(self) -> Answers:
        """See `Proxy`."""
        return _KafkaAnswers(self)


class _KafkaAnswers(Answers):
    """A request begins with its size, its kind, its version and a number, an answer with its size and the number of its request."""

    def __init__(self, proxy: KafkaProxy) -> None:
        self._proxy = proxy
        self._requests, self._answers = bytearray(), bytearray()
        self._skip = 0
        self._victims: set[bytes] = set()

    def asked(self, data: bytes) -> None:
        self._requests += data
        while True:
            skipped = min(self._skip, len(self._requests))
            del self._requests[:skipped]
            self._skip -= skipped
            if len(self._requests) < 12:
                return
            size, kind = struct.unpack_from(">ih", self._requests)
            if kind in self._proxy.kinds and self._proxy.appetite.wants():
                self._victims.add(bytes(self._requests[8:12]))
            self._skip = 4 + size

    def passing(self, data: bytes) -> bytes:
        self._answers += data
        passed = bytearray()
        while len(self._answers) >= 8:
            end = 4 + int.from_bytes(self._answers[:4], "big")
            if len(self._answers) < end:
                break
            if bytes(self._answers[4:8]) in self._victims:
                self.is_eaten = True
                break
            passed += self._answers[:end]
            del self._answers[:end]
        return bytes(passed)
