"""Pass a request on to the worker of the group that can answer it (`HerderRequestHandler.java`, `RestClient.java`).

A request goes two hops at most: to the leader with `?forward=true`, from there to the owner of a connector or task with `?forward=false`. A
worker that such a request reaches in vain answers 409. While a rebalance lasts or the other worker does not listen, the request waits for
``rest.conflict.wait.ms``, as far as it has changed nothing yet.

A client that has created a connector through this worker and asks this worker for it next must not get a 404, as it may from Kafka Connect,
because this worker reads the configuration topic some milliseconds after the leader: the answer waits until it has.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from connect_py.errors import ConnectError, NotFoundError, RetriableError
from connect_py.group.peers import Answer, Peers, UnsentError, message_of
from connect_py.herder.base import Herder, MisdirectedError
from rest_api.models import RETRY_AFTER, error_response

#: How soon a request is tried again.
_RETRY_SECONDS = 0.1

#: Methods of which a repetition changes nothing more.
_REPEATABLE = frozenset({"GET", "PUT", "DELETE"})

_CONFLICT = "Cannot complete request because of a conflicting operation (e.g. worker rebalance)"

#: Refusals of a moment, by which nothing was changed.
_PASSING = ("Cannot complete request momentarily", _CONFLICT)

#: For how long an answer waits until this worker has read what it says. Usually it is a few milliseconds.
_OWN_VIEW_SECONDS = 2.0
_LOOK_SECONDS = 0.005

_SENT = "connect_py.sent"


class Sent:
    """Keeps the bytes of a request's body, as far as the application reads them."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        sent = scope[_SENT] = bytearray()

        async def noted() -> Message:
            message = await receive()
            if message["type"] == "http.request":
                sent.extend(message.get("body", b""))
            return message

        await self._app(scope, noted, send)


def on_misdirected(herder: Herder, peers: Peers, wait_seconds: float) -> Callable[[Request, Exception], Response]:
    """Return what answers a request in place of a resource that raised MisdirectedError; it blocks.

    Args:
        herder: of this worker, whose view of the configurations has to include what another worker changed.
        peers: sends requests.
        wait_seconds: how long a request waits for a rebalance to end.
    """

    def forward(request: Request, error: Exception) -> Response:
        assert isinstance(error, MisdirectedError)
        parameters = [part for part in request.url.query.split("&") if part]
        given = [part.partition("=")[2].lower() for part in parameters if part.partition("=")[0] == "forward"]
        if given and given[0] != "true":
            return error_response(409, _CONFLICT, RETRY_AFTER)
        others = [part for part in parameters if part.partition("=")[0] != "forward"]
        path = request.scope.get("raw_path") or quote(request.scope["path"]).encode()
        query = "&".join([*others, f"forward={'false' if given else 'true'}"])
        target = f"{path.partition(b'?')[0].decode('ascii').lstrip('/')}?{query}"
        response = _forwarded(request, peers, error, target, time.monotonic() + wait_seconds)
        _await_own_view(herder, request, response)
        return response

    return forward


def _await_own_view(herder: Herder, request: Request, response: Response) -> None:
    """Wait until this worker has read a connector that was created, changed or deleted; give up when it changes again meanwhile."""
    if request.method == "DELETE" and response.status_code == 204:
        name, config = request.scope["path"].removeprefix("/connectors/"), None
    elif request.method in ("POST", "PUT", "PATCH") and response.status_code in (200, 201):
        try:
            made = json.loads(bytes(response.body))
            name, config = made["name"], made["config"]
        except (ValueError, KeyError, TypeError):  # an answer about something else than a connector
            return
    else:
        return
    deadline = time.monotonic() + _OWN_VIEW_SECONDS
    while time.monotonic() < deadline:
        try:
            seen: object = dict(herder.connector_info(name).config)
        except NotFoundError:
            seen = None
        if seen == config:
            return
        time.sleep(_LOOK_SECONDS)


def _forwarded(request: Request, peers: Peers, misdirected: MisdirectedError, target: str, deadline: float) -> Response:
    body = bytes(request.scope.get(_SENT, b""))
    headers = {"Accept": "application/json", "User-Agent": "kafka-connect"}
    headers |= {name: request.headers[name] for name in ("authorization", "content-type") if name in request.headers}
    while True:
        url = misdirected.find()
        last = time.monotonic() >= deadline
        if url is None:
            if last:
                return error_response(409, str(misdirected), RETRY_AFTER)
        else:
            try:
                answer = peers.send(request.method, url + target, body, headers)
            except UnsentError as error:
                if last:
                    return _io_error(error, misdirected)
            except RetriableError as error:
                if last or request.method not in _REPEATABLE:
                    return _io_error(error, misdirected)
            else:
                if last or not _is_passing(answer):
                    return _shown(request, answer)
        time.sleep(_RETRY_SECONDS)


def _io_error(error: ConnectError, misdirected: MisdirectedError) -> Response:
    """Scripts look for the text's beginning, which is Connect's."""
    return error_response(500, f"IO Error trying to forward REST request: {error} ({misdirected.who})")


def _shown(request: Request, answer: Answer) -> Response:
    if 300 <= answer.status < 400:
        return error_response(500, f"Unexpected status code when handling forwarded request: {answer.status}")
    headers = {} if answer.content_type is None else {"content-type": answer.content_type}
    if answer.status == 201:
        name = quote(json.loads(answer.body)["name"], safe="!$&'()*+,=:@")
        headers["location"] = f"{request.url.scheme}://{request.url.netloc}/connectors/{name}"
    if answer.retry_after is not None or _is_passing(answer):
        headers |= RETRY_AFTER
    return Response(answer.body, answer.status, headers)


def _is_passing(answer: Answer) -> bool:
    return answer.status == 409 and message_of(answer).startswith(_PASSING)
