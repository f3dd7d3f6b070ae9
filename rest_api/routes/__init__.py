"""The resources, one module for those that belong together; each `…_routes` returns a router."""

from __future__ import annotations

from importlib.resources.abc import Traversable

from fastapi import APIRouter

from connect_py.herder.base import Herder
from rest_api.config import RestConfig
from rest_api.routes.connectors import connector_routes, offset_routes, one_connector_routes, task_routes, topic_routes
from rest_api.routes.internal import internal_routes
from rest_api.routes.page import SITE, page_routes
from rest_api.routes.plugins import plugin_routes
from rest_api.routes.signals import signal_routes
from rest_api.routes.worker import health_routes, logger_routes, metrics_routes, root_routes
from rest_api.waiting import validation_threads


def all_routes(herder: Herder, config: RestConfig, site: Traversable = SITE) -> list[APIRouter]:
    """Return every resource that the settings allow; `site` is the built documentation."""
    checks = validation_threads()
    found = [root_routes(herder, has_page=config.ui != "off")]
    found += [routes(herder) for routes in (health_routes, task_routes, topic_routes, offset_routes, signal_routes, internal_routes)]
    found += [routes(herder, checks) for routes in (connector_routes, one_connector_routes, plugin_routes)]
    if config.ui != "off":
        found.append(page_routes(herder, config.ui, checks, site))
    if config.metrics_listeners is None:
        found.append(metrics_routes(herder))
    return [*found, logger_routes(herder, config)] if config.admin_listeners is None else found
