"""`rest.redact.secrets=true`: clients see ``[hidden]`` in place of secrets, and may send it back to keep what is stored. The page always
sees configurations so.

Kafka Connect answers configurations as they were sent, passwords included; so does this worker unless the property is set. A secret is the
value of a property of type PASSWORD, of the connector or of another part, or of one whose name says so (`connect_py.log.redact`), and an
address with a login in it. A placeholder, ``${provider:path:key}``, names a secret and is none.

``[hidden]`` stands for a stored value only while nothing changes that says to whom the value is sent: a reader could have it sent to a
server of their own. This keeps honest mistakes and the obvious way out; who may change configurations is trusted (SECURITY.md).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from connect_py.api import ConfigDef, ConfigType
from connect_py.config.connector import CONNECTOR_CLASS, secret_names_of
from connect_py.errors import BadRequestError, ConnectError
from connect_py.log.redact import HIDDEN, is_secret_name, scrub
from connect_py.plugins.registry import Plugins

_PLACEHOLDERS = re.compile(r"(\$\{[^}:]*:[^}]*\}\s*)+")


def without_secrets(plugins: Plugins, config: Mapping[str, str], owner: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return a connector's configuration, or that of a task of the owner, without its secrets."""
    whole = owner or config
    try:
        definition = plugins.connector(whole.get(CONNECTOR_CLASS, "")).config_def()
    except ConnectError:
        definition = None
    return hidden(config, definition, secret_names_of(plugins, whole))


def hidden(config: Mapping[str, str], definition: ConfigDef | None, secret_names: Collection[str] = ()) -> dict[str, str]:
    """Return a configuration without its secrets. An address with a login in it is hidden whole, so that it can be sent back.

    Args:
        definition: the connector's.
        secret_names: properties of other parts that are secret, as their definitions say.
    """
    return {name: HIDDEN if value and _is_secret(name, value, definition, secret_names) else value for name, value in config.items()}


#: Names of properties that say to which server a secret goes, as whom and how, and which connector has it.
_ADDRESS = re.compile(
    r"(?:^|[._-])(?:hosts?|hostname|ports?|user|username|urls?|uris?|servers?|address(?:es)?|endpoints?|bootstrap|connection|proxy|ssl|sslmode|"
    r"security|mechanism|driver|catalog|warehouse|root)(?:[._-]|$)|^connector\.class$",
    re.IGNORECASE,
)


def restored(config: Mapping[str, str | None], stored: Mapping[str, str], *, partial: bool = False) -> dict[str, str | None]:
    """Return a configuration as its sender means it: ``[hidden]`` is the stored value.

    Args:
        partial: the configuration holds changes only (PATCH).

    Raises:
        BadRequestError: there is no stored value, or it would go to another server.
    """
    if HIDDEN not in config.values():
        return dict(config)
    missing = [name for name, value in config.items() if value == HIDDEN and name not in stored]
    if missing:
        raise BadRequestError(
            f"The value of {', '.join(missing)} is {HIDDEN}, which this worker shows in place of a secret, and there is no stored value "
            "that it could stand for. Send the secret itself."
        )
    changed = [
        name
        for name in sorted({*config, *(() if partial else stored)})
        if _ADDRESS.search(name) and config.get(name) not in (HIDDEN, stored.get(name))
    ]
    if changed:
        raise BadRequestError(
            f"{HIDDEN} stands for a stored secret only while the properties are unchanged that say where it is sent. These have changed: "
            f"{', '.join(changed)}. Send the secret itself."
        )
    return {name: stored[name] if value == HIDDEN else value for name, value in config.items()}


def _is_secret(name: str, value: str, definition: ConfigDef | None, secret_names: Collection[str]) -> bool:
    if _PLACEHOLDERS.fullmatch(value.strip()):
        return False
    key = definition.keys.get(name) if definition else None
    by_name = key.type is ConfigType.PASSWORD if key else is_secret_name(name)
    return by_name or name in secret_names or scrub(value) != value
