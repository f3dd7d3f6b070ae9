"""What commands ask a running worker for, over its REST API."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any

from connect_py.errors import ConfigError, ConnectError

_ANSWER_SECONDS = 30


def ask(worker: str, connector: str, what: str, *, called: str | None = None) -> Mapping[str, Any]:
    """``GET /connectors/{connector}/{what}``.

    Args:
        called: how an error names what was asked for; `what` itself by default.

    Raises:
        ConfigError: `worker` is no URL.
        ConnectError: the worker does not answer, or refuses.
    """
    url = f"{worker.rstrip('/')}/connectors/{urllib.parse.quote(connector, safe='')}/{what}"
    if not url.startswith(("http://", "https://")):
        raise ConfigError(f"--worker {worker} is no URL of a worker")
    try:
        with urllib.request.urlopen(url, timeout=_ANSWER_SECONDS) as answer:  # noqa: S310  # http and https only, see above
            found: Mapping[str, Any] = json.load(answer)
            return found
    except (urllib.error.URLError, OSError, ValueError) as error:
        raise ConnectError(f"The worker does not tell {called or what} of '{connector}': {error}") from error
