"""Exits 0 when the worker in this container answers GET /health with 200: it has read its internal topics and serves requests."""

from __future__ import annotations

import http.client
import os
import sys


def main() -> int:
    """The exit status, and on standard error why it is not 0."""
    host, port = os.environ.get("REST_HOST_NAME") or "127.0.0.1", int(os.environ.get("REST_PORT") or 8083)
    connection = http.client.HTTPConnection(host, port, timeout=8)
    try:
        connection.request("GET", "/health")
        answer = connection.getresponse()
        body = answer.read(1000).decode(errors="replace")
    except OSError as error:
        sys.stderr.write(f"No answer from http://{host}:{port}/health: {error}\n")
        return 1
    if answer.status != 200:
        sys.stderr.write(f"http://{host}:{port}/health answered {answer.status}: {body}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
