"""One module a resource; each has `routes(…) -> APIRouter`."""

from __future__ import annotations

from fastapi import APIRouter

from connect_py.herder.base import Herder
from rest_api.config import RestConfig
from rest_api.rooms import checks
from rest_api.routes import connectors, internal, loggers, metrics, offsets, plugins, root, signals, tasks, topics


def all_of(herder: Herder, config: RestConfig) -> list[APIRouter]:
    """Every resource that the settings allow."""
    room = checks()
    found = [module.routes(herder) for module in (root, tasks, topics, offsets, signals, internal)]
    found += [connectors.routes(herder, room), plugins.routes(herder, room)]
    if config.metrics_listeners is None:
        found.append(metrics.routes(herder))
    return [*found, loggers.routes(herder, config)] if config.admin_listeners is None else found
