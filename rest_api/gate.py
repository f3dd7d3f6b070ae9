"""What clients get while the worker starts: the ports are open long before the internal topics have been read.

`GET /health` answers 503 `starting` at once (KIP-1017), so that a probe need not guess; every other request waits for the worker, as the
requests of a Java worker do.
"""

from __future__ import annotations

import asyncio
import time

import anyio.to_thread
from starlette.types import ASGIApp, Receive, Scope, Send

from connect_py.herder.base import REQUEST_TIMEOUT_SECONDS
from rest_api.errors import ENDING, error_response
from rest_api.models import json_response

#: A request may wait 90 s for its herder. Two hundred clients can wait at the same time (Jetty's default pool has as many threads) and
#: the next ones queue; threads are made only when they are needed.
WAITING_REQUESTS = 200
_STAGE = "initializing and reading to the end of internal topics"
_LOOK_SECONDS = 0.02


class Gate:
    """Stands before an application that is not there yet. `open` may be called from any thread.

    Args:
        seconds: after which a waiting request gets a 500.
    """

    def __init__(self, seconds: float = REQUEST_TIMEOUT_SECONDS) -> None:
        self._app: ASGIApp | None = None
        self._seconds = seconds
        self._began = time.time()

    def open(self, app: ASGIApp) -> None:
        """Let requests through to the application."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _live(receive, send)
            return
        if self._app is None and scope["path"].rstrip("/") == "/health" and scope["method"] in ("GET", "HEAD"):
            body = {"status": "starting", "message": f"Worker is still starting up. {self._stage()}"}
            await json_response(body, 503)(scope, receive, send)
            return
        await (await self._answer())(scope, receive, send)

    async def _answer(self) -> ASGIApp:
        """The application, as soon as it is there."""
        deadline = time.monotonic() + self._seconds
        try:
            while self._app is None and time.monotonic() < deadline:
                await asyncio.sleep(_LOOK_SECONDS)
        except asyncio.CancelledError:  # the worker ends before it has started
            return error_response(503, ENDING)
        return self._app or error_response(500, f"Request timed out. {self._stage()}")

    def _stage(self) -> str:
        began = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._began))
        return f"The worker is currently {_STAGE}, which began at {began}."


async def _live(receive: Receive, send: Send) -> None:
    """The event loop's life: room for waiting requests, and nothing to clean up."""
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            anyio.to_thread.current_default_thread_limiter().total_tokens = WAITING_REQUESTS
            await send({"type": "lifespan.startup.complete"})
        else:
            await send({"type": "lifespan.shutdown.complete"})
            return
