"""Requests as a person would type them: the command is printed, then run. Without curl the same request goes through urllib."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

from connect_py.app.demo.screen import Screen
from connect_py.errors import ConnectError

JSON_HEADER = "Content-Type: application/json"

#: Longer than the worker's own limit for a request (90 s).
TIMEOUT_SECONDS = 100


def command(method: str, url: str, body: Mapping[str, object] | None = None) -> list[str]:
    """Return the curl command of a request; its body is written over several lines to be read."""
    words = ["curl", "-s"] if method == "GET" else ["curl", "-s", "-X", method]
    if body is not None:
        words += ["-H", JSON_HEADER]
    words.append(url)
    if body is not None:
        words += ["-d", json.dumps(body, indent=2)]
    return words


def as_typed(words: list[str]) -> str:
    """Return a command as text for a shell."""
    return shlex.join(words)


def send(screen: Screen, method: str, url: str, body: Mapping[str, object] | None = None, *, show: bool = True) -> Any:
    """Print a request as a curl command, send it, and give the answer's JSON (None when it has no content).

    Raises:
        ConnectError: no answer, or a status of 400 and more; with the answer's message.
    """
    words = command(method, url, body)
    if show:
        screen.code("$ " + as_typed(words))
    status, text = _by_curl(words) if shutil.which("curl") else _by_urllib(method, url, body)
    answer = _parsed(text)
    if status >= 400:
        message = answer.get("message", text) if isinstance(answer, dict) else text
        raise ConnectError(f"{method} {url} was answered with {status}: {message}")
    return answer


def _by_curl(words: list[str]) -> tuple[int, str]:
    done = subprocess.run([*words, "--max-time", str(TIMEOUT_SECONDS), "-w", "\n%{http_code}"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ConnectError(f"curl ended with status {done.returncode}: {done.stderr.strip() or 'no answer from the worker'}")
    text, _, status = done.stdout.rpartition("\n")
    return int(status), text


def _by_urllib(method: str, url: str, body: Mapping[str, object] | None) -> tuple[int, str]:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, method=method, headers={"Content-Type": "application/json"})  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:  # noqa: S310
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError as error:
        raise ConnectError(f"no answer from the worker at {url}: {error}") from error


def _parsed(text: str) -> Any:
    try:
        return json.loads(text) if text.strip() else None
    except ValueError:
        return text
