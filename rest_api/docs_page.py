"""The page at /docs: the API as a list, drawn by the browser from /openapi.json. It loads nothing from elsewhere, and may not."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from starlette.responses import HTMLResponse, Response

_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; img-src data:"


@cache
def _page() -> str:
    return files("rest_api").joinpath("docs.html").read_text(encoding="utf-8")


def docs_page() -> Response:
    """The page, with a policy that keeps it from loading or calling anything but this worker."""
    return HTMLResponse(_page(), headers={"content-security-policy": _POLICY})
