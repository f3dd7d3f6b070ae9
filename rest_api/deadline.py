"""An answer within the time that Connect gives a request, whatever keeps the resource busy (`HerderRequestHandler.completeRequest`).

A herder answers a request that waits for it in time by itself, and says what it is busy with. This layer is for the rest: a connector's
own check that waits for a server, a broker that does not answer. The work goes on where it is, and its result is dropped.
"""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rest_api.errors import ENDING, error_response


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
            task.exception()  # nobody waits for it any more
