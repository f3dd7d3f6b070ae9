"""Plugins, their properties, and validation of configurations (`ConnectorPluginsResource.java`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BeforeValidator
from starlette.responses import Response

from connect_py.errors import BadRequestError
from connect_py.herder.base import Herder
from rest_api import models
from rest_api.bodies import Config
from rest_api.compat.jaxrs import boolean_of
from rest_api.openapi import BODY, refusals
from rest_api.request import ConnectRoute, Plugin
from rest_api.waiting import Threads

_CONNECTORS = ("source", "sink")

#: Values of the Warning header, and characters of one.
_WARNINGS, _WARNING_LENGTH = 10, 300

OnlyFlag = Annotated[
    bool,
    Query(description="`true`, which an empty text is too, or anything else for false"),
    BeforeValidator(lambda text: not text or boolean_of(text)),
]
Version = Annotated[str | None, Query(description="A version, or a range such as `[1.0,2.0)`, that the plugin must have")]


def plugin_routes(herder: Herder, checks: Threads) -> APIRouter:
    """Return the routes of `/connector-plugins`. `checks` are the threads for validation."""
    router = APIRouter(tags=["plugins"], route_class=ConnectRoute)

    @router.get("/connector-plugins", summary="Connectors that can be created; with `connectorsOnly=false` every kind of plugin")
    def plugins(connectorsOnly: OnlyFlag = True) -> list[models.Plugin]:
        found = herder.plugins()
        return [models.plugin(info) for info in found if not connectorsOnly or info.type in _CONNECTORS]

    @router.get("/connector-plugins/{plugin}/config", summary="Properties of a plugin", responses=refusals(404))
    def definitions(plugin: Plugin, version: Version = None) -> list[models.ConfigKeyInfo]:
        return [models.ConfigKeyInfo.of(key) for key in herder.plugin_config(plugin, version)]

    @router.put(
        "/connector-plugins/{plugin}/config/validate",
        summary="Check a configuration; 200 also when it has errors",
        response_model=models.ConfigInfos,
        responses=refusals(*BODY, 404),
    )
    @checks
    def validate(plugin: Plugin, config: Config) -> Response:
        _require_match(plugin, config)
        infos = herder.validate(config)
        # the body is exactly Connect's, so what is no error goes into a header (RFC 7234, section 5.5)
        headers = {"warning": _warnings(infos.warnings)} if infos.warnings else None
        return models.json_response(models.ConfigInfos.of(infos), headers=headers)

    @router.post(
        "/connector-plugins/{plugin}/doctor",
        summary="Everything that a configuration and its servers lack, with what to run; 200 also when something was found",
        responses=refusals(*BODY, 404),
    )
    @checks
    def doctor(plugin: Plugin, config: Config) -> models.Diagnosis:
        _require_match(plugin, config)
        return models.diagnosis(herder.doctor({"connector.class": plugin, **config}))

    @router.post(
        "/connector-plugins/{plugin}/tables",
        summary="The tables or collections that a source with this configuration could capture, and which it does",
        responses=refusals(*BODY, 404),
    )
    @checks
    def tables(plugin: Plugin, config: Config) -> models.SourceTables:
        _require_match(plugin, config)
        return models.source_tables(herder.list_tables({"connector.class": plugin, **config}))

    return router


def _require_match(plugin: str, config: Mapping[str, str | None]) -> None:
    submitted = config.get("connector.class")
    if submitted is not None and not _short(submitted).endswith(_short(plugin)):
        raise BadRequestError(f"Included connector type {submitted} does not match request type {plugin}")


def _warnings(texts: Sequence[str]) -> str:
    """Return the Warning header. It has a bound: a proxy in front of the worker takes 4 to 8 kB of headers."""
    shown = list(texts[:_WARNINGS])
    if len(texts) > _WARNINGS:
        shown[-1] = f"{len(texts) - _WARNINGS + 1} more warnings are not shown"
    return ", ".join(map(_warning, shown))


def _warning(text: str) -> str:
    """Return a value of the Warning header; it may hold names that a client chose."""
    plain = "".join(c if " " <= c <= "~" and c not in '"\\' else "?" for c in text)
    return f'299 - "{plain if len(plain) <= _WARNING_LENGTH else plain[:_WARNING_LENGTH] + "..."}"'


def _short(name: str) -> str:
    return name.removesuffix("Connector")
