"""Send requests to other workers of the group (`rest/RestClient.java`, `HerderRequestHandler.java`).

A connection a request, as in Connect: the addresses change with the group, and a request a connector is what there is to send.
"""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import SplitResult, quote, urlsplit

from connect_py.errors import RestError, RetriableError
from connect_py.tls import verifying_context

#: Longer than any request of Connect takes (90 s), so that its own answer arrives.
_ANSWER_SECONDS = 100.0


class UnsentError(RetriableError):
    """Nobody listens at the address, or it is none: the request has changed nothing."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What another worker answered; `retry_after` is the header of that name."""

    status: int
    content_type: str | None
    body: bytes
    retry_after: str | None = None


class Peers:
    """Sends requests. Any thread may call.

    Args:
        tls: for addresses that begin with https.
    """

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls

    def send(self, method: str, url: str, body: bytes, headers: Mapping[str, str], seconds: float = _ANSWER_SECONDS) -> Answer:
        """Send a request and wait for the answer.

        Raises:
            UnsentError: the worker does not listen.
            RetriableError: the connection ended before the answer: the request may have been carried out.
        """
        try:
            place = urlsplit(url)
            target = place.path + (f"?{place.query}" if place.query else "")
            connection = self._connection(place, seconds)
        except (ValueError, http.client.InvalidURL) as error:
            raise UnsentError(f"A worker of the group advertises an address that is none: {error}") from None
        try:
            connection.connect()
        except (OSError, ValueError) as error:  # a ValueError: a name that can be none of a host
            connection.close()
            raise UnsentError(f"{_reason(error)} by {place.scheme}://{place.netloc}/") from error
        try:
            connection.request(method, target, body or None, dict(headers))
            answer = connection.getresponse()
            return Answer(answer.status, answer.getheader("Content-Type"), answer.read(), answer.getheader("Retry-After"))
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise RetriableError(f"{_reason(error)} by {place.scheme}://{place.netloc}/") from error
        finally:
            connection.close()

    def _connection(self, place: SplitResult, seconds: float) -> http.client.HTTPConnection:
        """Raises ValueError, InvalidURL."""
        if not place.hostname:
            raise ValueError(f"no host in {place.geturl()[:80]!r}")
        if place.scheme == "https":
            return http.client.HTTPSConnection(place.hostname, place.port, timeout=seconds, context=self._tls or verifying_context())
        return http.client.HTTPConnection(place.hostname, place.port, timeout=seconds)

    def put_task_configs(
        self,
        leader_url: str | None,
        connector: str,
        configs: Sequence[Mapping[str, str]],
        sign: Callable[[bytes], Mapping[str, str]],
    ) -> None:
        """Have the leader store a connector's task configurations.

        Args:
            sign: gives the headers that sign a body.

        Raises:
            RetriableError: the leader is not known or does not answer.
            RestError: it refuses.
        """
        if leader_url is None:
            raise RetriableError("The group's leader is not known.")
        body = json.dumps(configs, ensure_ascii=False, separators=(",", ":")).encode()
        headers = {"Content-Type": "application/json", "Accept": "application/json", **sign(body)}
        answer = self.send("POST", f"{leader_url}connectors/{quote(connector, safe='')}/tasks", body, headers)
        if answer.status >= 300:
            raise RestError(f"The leader refuses them: {message_of(answer)}", answer.status)

    def fence(self, leader_url: str | None, connector: str, sign: Callable[[bytes], Mapping[str, str]]) -> None:
        """Have the leader fence the zombies of a source connector. Raises as `put_task_configs`.

        Who leads no more says so (409). Passed on, the request would lose its signature, and the task of a source would fail for it.
        """
        if leader_url is None:
            raise RetriableError("The group's leader is not known.")
        headers = {"Content-Type": "application/json", "Accept": "application/json", **sign(b"")}
        answer = self.send("PUT", f"{leader_url}connectors/{quote(connector, safe='')}/fence?forward=false", b"", headers)
        if answer.status >= 300:
            raise RestError(f"The leader could not fence zombies of {connector}: {message_of(answer)}", answer.status)


def address_of(url: str) -> str:
    """Return the host and port of a worker's address, empty where it has none that can be read."""
    try:
        return urlsplit(url).netloc
    except ValueError:
        return ""


def message_of(answer: Answer) -> str:
    """Return what an error says."""
    try:
        return str(json.loads(answer.body)["message"])
    except (ValueError, KeyError, TypeError):
        return f"HTTP {answer.status}"


def _reason(error: Exception) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return str(error) or type(error).__name__
