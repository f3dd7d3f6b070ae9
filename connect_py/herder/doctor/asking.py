"""What requests that ask a connector's servers share: a thread that nobody has to wait for, and what their answers must not show."""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from connect_py.log.redact import MIN_LENGTH, bounded, redactor, scrub
from connect_py.providers.resolver import Resolved, variables_in

T = TypeVar("T")

#: How long servers are waited for. A client waits for it, and a request of a reader has ended after some seconds.
SECONDS = 20.0


@dataclass
class Job(Generic[T]):
    """Work on a thread of its own; it ends by the time limits of its own requests."""

    work: Callable[[], T]
    _found: list[T] = field(default_factory=list)
    _failed: list[Exception] = field(default_factory=list)
    _done: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        """Begin."""
        context = contextvars.copy_context()  # log lines of the thread have the request's secrets taken out, too
        threading.Thread(target=lambda: context.run(self._run), name="doctor", daemon=True).start()

    def _run(self) -> None:
        try:
            self._found.append(self.work())
        except Exception as error:  # noqa: BLE001  # raised where the result is asked for
            self._failed.append(error)
        finally:
            self._done.set()

    def result(self, deadline: float) -> T:
        """Return what it found by then, on the monotonic clock. Raises TimeoutError, and what the work has raised."""
        if not self._done.wait(max(0.0, deadline - time.monotonic())):
            raise TimeoutError("no answer in time")
        if self._failed:
            raise self._failed[0]
        return self._found[0]


def hider(written: Mapping[str, str | None], resolved: Resolved, secrets: set[str]) -> Callable[[str], str]:
    """Return what puts variables in place of their values, and takes secrets out."""
    redact = redactor(secret for secret in secrets if len(secret) >= MIN_LENGTH)
    variables = {
        value: text
        for name, text in written.items()
        if text is not None and variables_in(text) and (value := resolved.values.get(name)) and value != text and len(value) >= MIN_LENGTH
    }

    def hide(text: str) -> str:
        for value in sorted(variables, key=len, reverse=True):
            text = text.replace(value, variables[value])
        return bounded(scrub(redact(text)))

    return hide
