"""The outermost layer: request ids, the access log, and the answer to a defect.

A client's `X-Request-Id` is taken over when it is a plain word, else one is made; it is in the answer's header and in the log line, so
that a failed request can be found in the log.
"""

from __future__ import annotations

import logging
import re
import secrets
import time

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rest_api.errors import error_response

_access = logging.getLogger("rest_api.access")
_log = logging.getLogger(__name__)
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:@/+=-]{1,128}")


class AccessLog:
    """Logs every request as one line: client, request, status, milliseconds, id."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get("x-request-id", "")
        request_id = given if _REQUEST_ID.fullmatch(given) else secrets.token_hex(8)
        status = 0
        started = time.monotonic()

        async def tagged(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["x-request-id"] = request_id
            await send(message)

        try:
            await self._app(scope, receive, tagged)
        except Exception:
            _log.exception("request %s (%s %s) failed by a defect of the worker", request_id, scope["method"], _target(scope))
            if status:
                raise  # the answer has begun; only closing the connection tells the client
            text = f"The worker failed to handle this request by a defect of its own; its log has the details under {request_id}."
            await error_response(500, text)(scope, receive, tagged)
        finally:
            client = scope["client"][0] if scope.get("client") else "-"
            millis = (time.monotonic() - started) * 1000
            _access.info('%s "%s %s" %d %.0f ms %s', client, scope["method"], _target(scope), status, millis, request_id)


def _target(scope: Scope) -> str:
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    query: bytes = scope.get("query_string", b"")
    text = (raw.partition(b"?")[0] + (b"?" + query if query else b"")).decode("ascii", "replace")
    return re.sub(r"[^\x21-\x7e]", "?", text)
