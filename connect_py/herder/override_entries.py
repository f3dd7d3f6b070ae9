"""The overrides of client settings in a validation's answer (`AbstractHerder.validateClientOverrides`). Pure.

One thing is other than in Connect: a value that is not of its setting's type is an error of that setting, where Connect answers 500.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from connect_py.api import ConfigKey, ConfigValue, Connector
from connect_py.api.config import Password, parse_value
from connect_py.config.client_overrides import OverridePolicy, clients_of, override_error, override_policy, override_prefix, overrides_under
from connect_py.errors import ConfigError
from connect_py.kafka.settings import ClientKind, client_definitions
from connect_py.log.redact import is_secret_name

Entry = tuple[ConfigKey | None, ConfigValue]


def override_entries(connector: type[Connector], worker: Mapping[str, str], config: Mapping[str, str | None]) -> list[Entry]:
    """Entries of every override for a client that the connector uses: producer, consumer, admin, then consumers that it makes itself."""
    policy, used = override_policy(worker), clients_of(connector, worker, config)
    clients = [(kind, override_prefix(kind)) for kind in ClientKind if kind in used]
    clients += [(ClientKind.CONSUMER, prefix) for prefix in connector.client_prefixes]
    return [entry for kind, prefix in clients for entry in _of_client(policy, kind, prefix, config)]


def _of_client(policy: OverridePolicy, kind: ClientKind, prefix: str, config: Mapping[str, str | None]) -> list[Entry]:
    definitions = client_definitions(kind)
    entries: list[Entry] = []
    for setting, text in overrides_under(config, prefix).items():
        key, found = definitions.get(setting), ConfigValue(prefix + setting)
        try:
            found.value = parse_value(setting, text, key.type) if key else Password(text) if text and is_secret_name(setting) else text
        except ConfigError as error:
            found.errors.append(str(error))
        refused = override_error(policy, setting, text)
        if refused is not None:
            found.errors.append(refused)
        entries.append((replace(key, name=prefix + setting, display_name=setting) if key else None, found))
    return entries
