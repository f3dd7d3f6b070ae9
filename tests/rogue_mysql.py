"""A machine in the place of a MySQL server: it greets, asks for the password in a way of its choice, and keeps what it is sent."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable

#: Protocol 4.1, plugins, secure connection, multi results, and no TLS.
_CAPABILITIES = 0x0008_A201 | 0x0002_0000
_OK = b"\0\0\0\2\0\0\0"
_END = b"\xfe\0\0\2\0"

#: Gets what reads one packet of the client and what sends one.
Talk = Callable[[Callable[[], bytes], Callable[[bytes], None]], None]


class RogueServer:
    """Listens on a port of this machine until it is closed.

    Args:
        plugin: that the greeting names.
        talk: what follows the client's answer to it; then the connection is closed.

    Attributes:
        received: packets of the client.
    """

    def __init__(self, talk: Talk, plugin: str = "mysql_native_password") -> None:
        self.received: list[bytes] = []
        self._talk, self._plugin = talk, plugin
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with client, client.makefile("rb") as stream:
                self._answer(client, stream.read)

    def _answer(self, client: socket.socket, read: Callable[[int], bytes]) -> None:
        number = 0

        def send(payload: bytes) -> None:
            nonlocal number
            client.sendall(len(payload).to_bytes(3, "little") + bytes([number & 255]) + payload)
            number += 1

        def receive() -> bytes:
            nonlocal number
            head = read(4)
            if len(head) < 4:
                raise ConnectionError("the client is gone")
            number = head[3] + 1
            packet = read(int.from_bytes(head[:3], "little"))
            self.received.append(packet)
            return packet

        capabilities = _CAPABILITIES.to_bytes(4, "little")
        try:
            send(b"\x0a8.4.0\0" + bytes(4) + b"12345678\0" + capabilities[:2] + b"\xff\2\0" + capabilities[2:] + bytes([21]) + bytes(10)
                 + b"901234567890\0" + self._plugin.encode() + b"\0")  # fmt: skip
            receive()
            self._talk(receive, send)
        except OSError:
            pass

    def close(self) -> None:
        """Listen no more."""
        self._listener.close()


def asks_for(plugin: str, data: bytes = b"abcdefghijklmnopqrst\0") -> Talk:
    """Switches to a plugin, and lets the client in with whatever it answers."""

    def talk(receive: Callable[[], bytes], send: Callable[[bytes], None]) -> None:
        send(b"\xfe" + plugin.encode() + b"\0" + data)
        receive()
        send(_OK)

    return talk


def asks_for_full_authentication(key: bytes) -> Talk:
    """`caching_sha2_password` of a user who is not in the server's memory, and a public key for whoever asks for one."""

    def talk(receive: Callable[[], bytes], send: Callable[[bytes], None]) -> None:
        send(b"\1\4")
        receive()
        send(b"\1" + key)
        receive()
        send(_OK)

    return talk


def sends_its_key(key: bytes) -> Talk:
    """`sha256_password`: the greeting makes the client ask for the key."""

    def talk(receive: Callable[[], bytes], send: Callable[[bytes], None]) -> None:
        send(b"\1" + key)
        receive()
        send(_OK)

    return talk


def falls_silent(receive: Callable[[], bytes], send: Callable[[bytes], None]) -> None:
    """A server that lets a replica in, begins to dump, and then says nothing any more, until the client goes away."""
    send(_OK)
    while True:
        packet = receive()
        if packet.startswith(b"\3SELECT"):
            for part in (b"\1", b"\3def\0\0\0\1c\0\x0c\x2d\0\xff\0\0\0\xfd\0\0\0\0\0", _END, b"\4NONE", _END):
                send(part)
        elif packet[:1] == b"\x12":  # COM_BINLOG_DUMP: where the dump begins, as the server says first of all
            body = (4).to_bytes(8, "little") + b"log.1"
            send(b"\0" + bytes(4) + b"\4" + bytes(4) + (19 + len(body)).to_bytes(4, "little") + bytes(4) + b"\x20\0" + body)
        else:
            send(_OK)
