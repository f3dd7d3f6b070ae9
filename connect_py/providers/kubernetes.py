"""Provide configuration values from Secrets and ConfigMaps of the Kubernetes cluster that the worker runs in.

``${secrets:shop/database:password}`` is the key `password` of the Secret `database` in the namespace `shop`; without a namespace it is the
pod's own. The names and the syntax are those of Strimzi's provider (`io.strimzi.kafka.KubernetesSecretConfigProvider`), which its operator
writes into every worker's properties, so that they work here as they are.

The provider is the pod's service account: its token, its namespace and the cluster's authority are read from the files that Kubernetes
mounts into every pod, the token for each question, since Kubernetes replaces it. The account needs the right to `get` the Secret, no other.
"""

from __future__ import annotations

import base64
import binascii
import fnmatch
import http.client
import json
import logging
import os
import re
import ssl
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, ClassVar

from connect_py.api.provider import ConfigData, ConfigProvider
from connect_py.errors import ConfigError
from connect_py.tls import verifying_context

log = logging.getLogger(__name__)

#: Where Kubernetes mounts what a pod needs to ask its API server.
ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")

#: A connector's start waits for the answer.
TIMEOUT_SECONDS = 10.0

#: As Kubernetes names objects; what else stood here could lead to another resource of the API.
_PATH = re.compile(r"(?:([a-z0-9.-]+)/)?([a-z0-9.-]+)")

#: Sentences for the answers that people meet; the rest is named by its number.
_REFUSED = {
    401: "the API server does not accept the pod's token",
    403: "the pod's service account may not read it: give the account a Role with the verb get for this object",
    404: "there is none",
}


class _ObjectProvider(ConfigProvider):
    """Ask the API server for one object, and take keys of its data.

    Args:
        account: the folder of the service account's files.
        environ: has ``KUBERNETES_SERVICE_HOST`` and ``KUBERNETES_SERVICE_PORT``.
        timeout: seconds for an answer.
    """

    kind: ClassVar[str]
    resource: ClassVar[str]

    def __init__(self, account: Path = ACCOUNT, environ: Mapping[str, str] | None = None, timeout: float = TIMEOUT_SECONDS) -> None:
        self._account = account
        self._environ = os.environ if environ is None else environ
        self._timeout = timeout

    def get(self, path: str, keys: Collection[str]) -> ConfigData:
        """Return values of keys. A key with ``*``, such as ``*.crt``, has the values of all keys that fit, in their order, one a line.

        Args:
            path: ``namespace/name``, or the name alone for the pod's own namespace.

        Raises:
            ConfigError: there is no such object, the account may not read it, or the API server does not answer. The text holds no value.
        """
        named = _PATH.fullmatch(path)
        if named is None:
            raise ConfigError(f"Invalid path {path}. It must be <namespace>/<name>, or <name> for the pod's own namespace.")
        namespace = named[1] or self._file("namespace")
        log.info("Reading the %s %s in the namespace %s", self.kind, named[2], namespace)
        found = self.values(self._ask(namespace, named[2]))
        values = {key: found[key] for key in keys if key in found}
        for pattern in keys:
            fitting = sorted(fnmatch.filter(found, pattern)) if "*" in pattern else []
            if fitting:
                values[pattern] = "\n".join(found[key].rstrip("\n") for key in fitting)
        return ConfigData(values)

    def values(self, answer: Mapping[str, Any]) -> dict[str, str]:
        """Return the values of an object as the API server sends it. Raises ConfigError."""
        raise NotImplementedError

    def _file(self, name: str) -> str:
        try:
            return (self._account / name).read_text().strip()
        except OSError as error:
            raise ConfigError(
                f"{self.java_name} reads {self._account / name}, which pods have: {error.strerror}. Does the worker run in a "
                "pod, and does its specification allow automountServiceAccountToken?"
            ) from None

    def _ask(self, namespace: str, name: str) -> Mapping[str, Any]:
        host, port = self._environ.get("KUBERNETES_SERVICE_HOST", ""), self._environ.get("KUBERNETES_SERVICE_PORT", "443")
        if not host:
            raise ConfigError(f"KUBERNETES_SERVICE_HOST is not set: {self.java_name} works in pods of a Kubernetes cluster only.")
        token, what = self._file("token"), f"The {self.kind} {name} in the namespace {namespace}"
        try:
            context = verifying_context(self._account / "ca.crt")
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(f"The cluster's authority {self._account / 'ca.crt'} cannot be read: {error}") from None
        connection = http.client.HTTPSConnection(host, int(port), timeout=self._timeout, context=context)
        try:
            connection.request(
                "GET",
                f"/api/v1/namespaces/{namespace}/{self.resource}/{name}",
                headers={"Authorization": f"Bearer {token}", "Accept": "application/json"},
            )
            answer = connection.getresponse()
            body = answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise ConfigError(
                f"{what} cannot be read: the API server {host}:{port} does not answer ({error or type(error).__name__})"
            ) from None
        finally:
            connection.close()
        if answer.status != 200:
            raise ConfigError(f"{what} cannot be read: {_REFUSED.get(answer.status, f'the API server answers {answer.status}')}.")
        try:
            found: Mapping[str, Any] = json.loads(body)
        except ValueError:
            raise ConfigError(f"{what} cannot be read: the API server's answer is no JSON.") from None
        return found


class KubernetesSecretConfigProvider(_ObjectProvider):
    """Secrets; their values are text in UTF-8."""

    java_name = "io.strimzi.kafka.KubernetesSecretConfigProvider"
    kind = "Secret"
    resource = "secrets"

    def values(self, answer: Mapping[str, Any]) -> dict[str, str]:
        """Return the decoded values; one that is not text is left out, with a warning. Raises ConfigError."""
        values = {}
        for key, encoded in (answer.get("data") or {}).items():
            try:
                values[key] = base64.b64decode(encoded, validate=True).decode()
            except (binascii.Error, UnicodeDecodeError):
                log.warning("The key %s of a Secret holds no text, and is not used", key)
        return values


class KubernetesConfigMapConfigProvider(_ObjectProvider):
    """ConfigMaps; their binary values are not used."""

    java_name = "io.strimzi.kafka.KubernetesConfigMapConfigProvider"
    kind = "ConfigMap"
    resource = "configmaps"

    def values(self, answer: Mapping[str, Any]) -> dict[str, str]:
        """Return the values."""
        return {key: str(value) for key, value in (answer.get("data") or {}).items()}
