"""Addresses that the REST server listens on: their texts, and their sockets (`RestServer.java`)."""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from connect_py.errors import ConfigError
from rest_api.tls import server_context

#: RestServer.LISTENER_PATTERN's form: scheme://[host]:port, the host possibly empty or an IPv6 address in brackets.
_LISTENER = re.compile(r"^(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)")


@dataclass(frozen=True)
class Listener:
    """One address.

    Attributes:
        scheme: http or https.
        host: may be empty, which means every interface.
        port: 0 means any free one.
        tls: of an https listener.
    """

    scheme: str
    host: str
    port: int
    tls: ssl.SSLContext | None = None


def parse_listeners(
    texts: Sequence[str], properties: Mapping[str, str] | None = None, prefix: str = "listeners.https."
) -> tuple[Listener, ...]:
    """Listeners such as ``http://127.0.0.1:8083`` or ``https://:8443``.

    Args:
        properties: the worker's, which hold the keys of https listeners.
        prefix: of the properties of these listeners' keys.

    Raises:
        ConfigError: one has another form, or its key or certificate cannot be used.
    """
    split = [_split(text) for text in texts]
    tls = server_context(properties or {}, prefix) if any(scheme == "https" for scheme, _, _ in split) else None
    return tuple(Listener(scheme, host, port, tls if scheme == "https" else None) for scheme, host, port in split)


def _split(text: str) -> tuple[str, str, int]:
    found = _LISTENER.match(text.strip())
    if not found or int(found[3]) > 65535 or int(found[3]) < 0:
        raise ConfigError("Listener doesn't have the right format (protocol://hostname:port).")
    scheme = found[1].lower()
    if scheme not in ("http", "https"):
        raise ConfigError('Listener protocol must be either "http" or "https".')
    return scheme, found[2], int(found[3])


def bind(listener: Listener) -> tuple[socket.socket, str]:
    """An open socket, and its address with its real port.

    Raises:
        ConfigError: the port is in use or not allowed.
    """
    host, port = listener.host, listener.port
    try:
        if not host and socket.has_dualstack_ipv6():
            bound = socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=128)
        else:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            bound = socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        raise ConfigError(f"The listener {host}:{port} cannot be opened: {error.strerror or error}. Is another worker running?") from error
    # Accepted sockets inherit it. asyncio sets it only for sockets that know their protocol, which these do not, and without it an answer
    # (head and body are two writes) waits for the client's delayed acknowledgement: 40 ms.
    bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    shown = f"[{host}]" if ":" in host else host or "localhost"
    return bound, f"{listener.scheme}://{shown}:{bound.getsockname()[1]}"
