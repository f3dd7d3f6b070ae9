"""Ask a connector for the tables that it could capture (`SourceConnector.list_tables`), as a configuration is asked about by the doctor.

The answer holds no secret. A list that a config provider gives is not shown: nothing can be chosen then but where its value comes from.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import replace

from connect_py.api import SourceConnector
from connect_py.api.tables import SourceTables
from connect_py.config.connector import CONNECTOR_CLASS, secrets_of
from connect_py.errors import BadRequestError, ConfigError, ConnectError, RestError
from connect_py.herder import validation
from connect_py.herder.doctor.asking import SECONDS, Job, hider
from connect_py.log.lines import hiding
from connect_py.log.redact import MIN_LENGTH, redactor, secret_values
from connect_py.plugins.registry import Plugins
from connect_py.providers.resolver import Resolver, variables_in

log = logging.getLogger(__name__)

_FAILED = "The tables cannot be listed"


def list_tables(
    plugins: Plugins,
    worker: Mapping[str, str],
    written: Mapping[str, str | None],
    variables: Resolver | None = None,
    *,
    seconds: float = SECONDS,
) -> SourceTables:
    """Return the tables of a source.

    Args:
        worker: the worker's properties.
        written: the configuration as its owner wrote it.
        variables: the worker's config providers.
        seconds: how long the server may take.

    Raises:
        BadRequestError: there is no ``connector.class`` or no such class, it has no tables, the configuration is wrong, or the server
            refuses.
        RestError: 504, the server has not answered in time.
    """
    deadline = time.monotonic() + seconds
    try:
        resolved = (variables or Resolver()).resolve(written, owner=None)
    except ConfigError as error:
        raise BadRequestError(f"{_FAILED}: {error}") from error
    secrets = {*resolved.secrets, *secrets_of(plugins, resolved.values), *secret_values(worker)}
    config = {name: value for name, value in resolved.values.items() if value is not None}
    connector = plugins.connector((config.get(CONNECTOR_CLASS) or "").strip())
    if not issubclass(connector, SourceConnector) or connector.list_tables is SourceConnector.list_tables:
        raise BadRequestError(f"{connector.java_name} has no tables to choose from.")
    hide = hider(written, resolved, secrets)
    with hiding(secrets):
        infos = validation.check(plugins, worker, written, resolved.values, connects=False)
        keys = connector.config_def().keys
        problems = [error for key, value in infos.configs if key is not None and key.name in keys for error in value.errors]
        problems += [f"the property {name} has the variable {variable.text}, which has no value" for name, variable in resolved.missing]
        if problems:
            raise BadRequestError(hide(f"{_FAILED} with this configuration: {'; '.join(problems)}"))
        job = Job(lambda: connector().list_tables(config))
        job.start()
        try:
            found = job.result(deadline)
        except TimeoutError as error:
            raise RestError(f"{_FAILED}: the server has not answered within {seconds:g} s.", 504) from error
        except ConnectError as error:
            raise BadRequestError(hide(f"{_FAILED}: {error}")) from error
        except Exception as error:  # a connector's plugin must not turn a request into a 500
            log.warning("The tables of a %s could not be listed", connector.java_name, exc_info=True)
            raise BadRequestError(hide(f"{_FAILED}: {type(error).__name__}: {error}")) from error
    if found is None:
        raise BadRequestError(f"{connector.java_name} has no tables to choose from.")
    return _shown(found, written, {secret for secret in secrets if len(secret) >= MIN_LENGTH})


def _shown(found: SourceTables, written: Mapping[str, str | None], secrets: set[str]) -> SourceTables:
    """Return an answer without names that hold a secret, and without a list that a variable gives."""
    redact = redactor(secrets)
    tables = [table for table in found.tables if redact(table.name) == table.name]
    shown = replace(found, tables=tables, left_out=found.left_out + len(found.tables) - len(tables))
    names = [name for name in (found.property, *found.replaces) if variables_in(written.get(name) or "")]
    if not names:
        return shown
    fixed = [replace(table, matched_by=(), fixed_by=table.fixed_by or names[0]) for table in tables]
    return replace(shown, entries=(), tables=fixed)
