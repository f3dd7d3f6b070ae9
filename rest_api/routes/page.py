"""The page of the worker, `/ui/`: its files, `/ui/api`, by which it asks (`connect_py.herder.base.Page`; docs/ui.md), and `/ui/docs/`.

Files are read once from the package, with their gzip form and an ETag. The policy lets the page load and call nothing but this worker, and
lets no other page frame it. Nothing of it is in /openapi.json: the shapes may change with the page.
"""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Annotated

import orjson
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from connect_py.errors import NotFoundError, RestError
from connect_py.herder.base import Herder
from rest_api import models
from rest_api.bodies import Config
from rest_api.models import json_response
from rest_api.request import Connector, ConnectRoute, Flag
from rest_api.routes.internal import SignedBody, signature_of
from rest_api.waiting import Threads, probe_threads

#: Styles are set by scripts through the object model, which the policy does not mind; no text of a script or style is inline.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    # it is asked each time whether the file is still the same: a worker that was updated must not get an old page's requests
    "cache-control": "no-cache",
}

#: The documentation has icons in a font.
_MANUAL_HEADERS = {**_HEADERS, "content-security-policy": f"{POLICY}; font-src 'self'"}

#: Where `make docs` builds the site of the documentation.
SITE = files("rest_api").joinpath("site")

#: By the ending of a name, what a machine's own list may lack or call otherwise.
_TYPES = {"js": "text/javascript", "woff2": "font/woff2", "properties": "text/plain", "toml": "text/plain", "yml": "text/plain"}

#: For how long more may be logged by one request: a log that nobody reads fills a disk.
_MAX_DEBUG_SECONDS = 3600

#: Below this a gzip form saves nothing.
_MIN_GZIP_BYTES = 512


@dataclass(frozen=True, slots=True)
class _File:
    content: bytes
    packed: bytes
    etag: str
    type: str


@cache
def _files() -> Mapping[str, _File]:
    found = _entries(files("rest_api").joinpath("ui"), "")
    return {path: _file(path, entry.read_bytes()) for path, entry in found if path.endswith((".html", ".css", ".js", ".svg", ".txt"))}


def _entries(folder: Traversable, prefix: str) -> Iterator[tuple[str, Traversable]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _entries(entry, f"{prefix}{entry.name}/")
        else:
            yield prefix + entry.name, entry


def _file(path: str, content: bytes) -> _File:
    kind = _TYPES.get(path.rpartition(".")[2]) or mimetypes.guess_type(path)[0] or "text/plain"
    if kind.startswith(("text/", "image/svg")):
        kind += "; charset=utf-8"
    return _File(content, gzip.compress(content, 9, mtime=0), f'"{hashlib.sha256(content).hexdigest()[:32]}"', kind)


class Manual:
    """The site of the documentation as `make docs` builds it; a file is read when it is first asked for.

    Args:
        folder: where the site is; it need not exist.
    """

    def __init__(self, folder: Traversable) -> None:
        self._folder = folder
        self._read: dict[str, _File] = {}

    @cached_property
    def _entries(self) -> Mapping[str, Traversable]:
        return dict(_entries(self._folder, "")) if self._folder.is_dir() else {}

    def file(self, path: str) -> _File:
        """Return one of its files.

        Raises:
            NotFoundError: there is none, or no site.
        """
        if not self._entries:
            raise NotFoundError("The documentation is not in this installation: a release has it, and in a checkout `make docs` builds it.")
        entry = self._entries.get(path)
        if entry is None:
            raise NotFoundError("The documentation has no such page.")
        if path not in self._read:
            self._read[path] = _file(path, entry.read_bytes())
        return self._read[path]


def page_routes(herder: Herder, mode: str, checks: Threads, site: Traversable) -> APIRouter:
    """Return the routes below `/ui`.

    Args:
        mode: ``full`` or ``read-only`` (`rest.ui`).
        checks: the threads for validation.
        site: the built documentation.
    """
    router = APIRouter(prefix="/ui", include_in_schema=False, route_class=ConnectRoute)
    manual = Manual(site)

    @router.get("")
    def index(request: Request) -> Response:
        if not request.scope.get("raw_path", b"").partition(b"?")[0].endswith(b"/"):
            return Response(status_code=302, headers={"location": "ui/"})
        return _served(request, "index.html")

    @router.get("/api/state")
    @probe_threads()
    def state(request: Request, since: Annotated[int | None, Query()] = None) -> Response:
        found = herder.page().state(since)
        etag = f'"{found["seq"]}"'
        if etag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers={"etag": etag, "cache-control": "no-cache"})
        return _packed(request, found, {"etag": etag})

    @router.get("/api/worker")
    def worker(request: Request) -> Response:
        return _packed(request, {**herder.page().worker(), "mode": mode})

    @router.get("/api/connectors/{connector}")
    def one(request: Request, connector: Connector) -> Response:
        return _packed(request, herder.page().connector(connector))

    @router.get("/api/connectors/{connector}/history")
    def history(request: Request, connector: Connector, seconds: Annotated[int, Query()] = 600) -> Response:
        return _packed(request, herder.page().history(connector, seconds))

    @router.get("/api/connectors/{connector}/log")
    def log(request: Request, connector: Connector, since: Annotated[str, Query()] = "0") -> Response:
        return _packed(request, herder.page().log(connector, since))

    @router.put("/api/connectors/{connector}/debug")
    def debug(connector: Connector, seconds: Annotated[int, Query(ge=0, le=_MAX_DEBUG_SECONDS)] = 600) -> Response:
        _require_full(mode, "Nothing was changed.")
        herder.page().log_more(connector, seconds)
        return Response(status_code=204)

    @router.get("/api/connectors/{connector}/config")
    def config(connector: Connector) -> Response:
        return json_response(herder.page().config(connector))

    @router.put("/api/connectors/{connector}/config")
    @checks
    def put_config(connector: Connector, config: Config, create: Flag = False) -> Response:
        _require_full(mode, "Nothing was changed.")
        created, stored = herder.page().put_config(connector, config, may_replace=not create)
        return json_response(stored, 201 if created else 200)

    @router.get("/api/connectors/{connector}/verification")
    def verification(connector: Connector) -> Response:
        return json_response(herder.page().verification(connector))

    @router.post("/api/connectors/{connector}/verification")
    def verify(connector: Connector, table: Annotated[list[str] | None, Query()] = None, topics: Flag = False) -> Response:
        _require_full(mode, "Nothing was begun.")
        herder.page().verify(connector, table or [], topics=topics)
        return json_response(herder.page().verification(connector), 202)

    @router.delete("/api/connectors/{connector}/verification")
    def cancel_verification(connector: Connector) -> Response:
        _require_full(mode, "Nothing was cancelled.")
        herder.page().cancel_verification(connector)
        return json_response(herder.page().verification(connector))

    @router.put("/api/validate")
    @checks
    def validate(config: Config, connect: Flag = False) -> Response:
        infos = herder.page().validate(config, connects=connect)
        return json_response({"infos": models.ConfigInfos.of(infos), "warnings": list(infos.warnings)})

    @router.post("/api/doctor")
    @checks
    def doctor(config: Config) -> Response:
        return json_response(models.diagnosis(herder.page().doctor(config)))

    @router.post("/api/tables")
    @checks
    def tables(config: Config) -> Response:
        return json_response(models.source_tables(herder.page().list_tables(config)))

    @router.post("/api/group")
    def group(request: Request, body: SignedBody) -> Response:
        return _packed(request, herder.answer_worker(body, signature_of(request, body)))

    @router.get("/docs")
    def docs(request: Request) -> Response:
        if not request.scope.get("raw_path", b"").partition(b"?")[0].endswith(b"/"):
            return Response(status_code=302, headers={"location": "docs/"})
        return _sent(request, manual.file("index.html"), _MANUAL_HEADERS)

    @router.get("/docs/{path:path}")
    def docs_file(request: Request, path: str) -> Response:
        return _sent(request, manual.file(path), _MANUAL_HEADERS)

    @router.get("/{path:path}")
    def file(request: Request, path: str) -> Response:
        return _served(request, path)

    return router


def _require_full(mode: str, outcome: str) -> None:
    if mode != "full":
        raise RestError(f"This page only shows things: the worker's property rest.ui is read-only. {outcome}", 403)


def _served(request: Request, path: str) -> Response:
    found = _files().get(path)
    if found is None:
        raise NotFoundError("The page has no such file.")
    return _sent(request, found, _HEADERS)


def _sent(request: Request, found: _File, headers: Mapping[str, str]) -> Response:
    sent = {**headers, "etag": found.etag, "vary": "Accept-Encoding"}
    if found.etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=sent)
    packs = len(found.content) >= _MIN_GZIP_BYTES and _takes_gzip(request)
    if packs:
        sent["content-encoding"] = "gzip"
    return Response(found.packed if packs else found.content, media_type=found.type, headers=sent)


def _packed(request: Request, content: object, headers: Mapping[str, str] | None = None) -> Response:
    body = orjson.dumps(content)
    sent = {"content-type": "application/json", "cache-control": "no-cache", "vary": "Accept-Encoding", **(headers or {})}
    if len(body) >= _MIN_GZIP_BYTES and _takes_gzip(request):
        body = gzip.compress(body, 1)
        sent["content-encoding"] = "gzip"
    return Response(body, headers=sent)


def _takes_gzip(request: Request) -> bool:
    return "gzip" in request.headers.get("accept-encoding", "").lower()
