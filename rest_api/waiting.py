"""How requests wait: for a worker that starts (`Gate`), for the resource, no longer than Connect lets a request wait (`Deadline`), and for
a thread (`on_threads`).

Most requests wait in one pool of threads (`WAITING_REQUESTS`). A check of a configuration may wait for a server that says nothing; two
hundred of these must not keep a liveness probe from its answer, which would have the worker killed. So `/health` and `/metrics` have
threads of their own, and checks are few at a time; others queue without a thread.
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable, Coroutine
from typing import Any

import anyio
import anyio.to_thread
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from connect_py.herder.base import REQUEST_TIMEOUT_SECONDS
from rest_api.models import ENDING, error_response, json_response

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
        if self._app is None and scope["path"].rstrip("/") == "/health" and scope["method"] in ("GET", "HEAD"):
            body = {"status": "starting", "message": f"Worker is still starting up. {self._stage()}"}
            await json_response(body, 503)(scope, receive, send)
            return
        await (await self._answer())(scope, receive, send)

    async def _answer(self) -> ASGIApp:
        """Return the application, as soon as it is there."""
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


class Deadline:
    """Answers 500 `Request timed out` when the application has not begun to answer in time, and 503 when the worker ends before.

    Args:
        seconds: after which the client gets its answer.
    """

    def __init__(self, app: ASGIApp, seconds: float) -> None:
        self._app = app
        self._seconds = seconds
        self._late: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = expired = False

        async def in_time(message: Message) -> None:
            nonlocal begun
            if not expired:
                begun = True
                await send(message)

        async def run() -> None:
            await self._app(scope, receive, in_time)

        task = asyncio.create_task(run())
        try:
            await asyncio.wait({task}, timeout=self._seconds)
        except asyncio.CancelledError:  # the server ends, and has waited for requests as long as it may
            task.cancel()
            if begun:
                raise
            expired = True
            await error_response(503, ENDING)(scope, receive, send)
            return
        if task.done() or begun:
            await task
            return
        expired = True
        self._late.add(task)
        task.add_done_callback(self._forget)
        await error_response(500, "Request timed out")(scope, receive, send)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._late.discard(task)
        if not task.cancelled():
            task.exception()  # no request waits for it any more


#: Has a function run on threads of its own, as a coroutine.
Threads = Callable[[Callable[..., Any]], Callable[..., Coroutine[Any, Any, Any]]]

#: Checks of configurations at the same time. Each may load a connector and open connections.
CHECKS = 20

#: Answers to probes and scrapes at the same time.
_PROBES = 4


def on_threads(limit: int) -> Threads:
    """Return a decorator by which functions run on threads of their own, no more than `limit` of them at a time."""
    limiter = anyio.CapacityLimiter(limit)

    def decorate(work: Callable[..., Any]) -> Callable[..., Coroutine[Any, Any, Any]]:
        @functools.wraps(work)
        async def run(**arguments: Any) -> Any:
            return await anyio.to_thread.run_sync(functools.partial(work, **arguments), limiter=limiter)

        return run

    return decorate


#: Threads for what checks a configuration.
validation_threads = functools.partial(on_threads, CHECKS)

#: Threads for what must answer regardless of how busy the worker is.
probe_threads = functools.partial(on_threads, _PROBES)
