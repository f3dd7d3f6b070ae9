"""Requests to a catalog and to S3, as Spark's JVM makes them: without the environment's proxies, and without following redirects, which
would take the credentials along."""

from __future__ import annotations

import http.client
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any

#: What a request raises that got no answer; an answer that is an error is an `HTTPError`, and to be caught first.
NO_ANSWER = (OSError, ValueError, http.client.HTTPException)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        """Return none, so that the answer itself is the result."""


def open_url(url: str, headers: Mapping[str, str], seconds: float, body: bytes | None = None) -> Any:
    """Send a request; returns the answer, to be closed by the caller.

    Args:
        seconds: how long the server may be silent.
        body: makes it a POST.

    Raises:
        urllib.error.HTTPError: the answer is an error, or leads elsewhere.
        OSError, ValueError, http.client.HTTPException: there is no answer, or the address is none of HTTP (`NO_ANSWER`).
    """
    if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
        raise ValueError(f"{url} is no address of HTTP")
    request = urllib.request.Request(url, body, dict(headers))  # noqa: S310  # just checked
    return urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirects).open(request, timeout=seconds)


def reason_of(error: Exception) -> str:
    """Return why there was no answer, for people."""
    return str(getattr(error, "reason", "") or error or type(error).__name__)
