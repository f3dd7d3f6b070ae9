"""Secrets and ConfigMaps from a Kubernetes API server: a real HTTPS server that wants the pod's token."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from connect_py.errors import ConfigError
from connect_py.providers.kubernetes import KubernetesConfigMapConfigProvider, KubernetesSecretConfigProvider
from tests.certificates import Identity
from tests.https_servers import TOKEN, api_server, write_account

SECRETS = {
    ("shop", "database"): {"password": "s3cret", "user": "debezium"},
    ("connect", "cluster-ca"): {"b.crt": "SECOND\n", "a.crt": "FIRST\n", "ca.password": "no"},
}
MAPS = {("connect", "places"): {"host": "db.example"}}


@pytest.fixture(scope="module")
def authority() -> Identity:
    return Identity("cluster")


@pytest.fixture(scope="module")
def environ(authority: Identity, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with api_server(authority, tmp_path_factory.mktemp("api"), SECRETS, MAPS) as found:
        yield found


@pytest.fixture
def account(tmp_path: Path, authority: Identity) -> Path:
    write_account(tmp_path, authority, "connect")
    return tmp_path


def test_a_secret_of_a_namespace_gives_the_keys_that_are_asked_for(account: Path, environ: dict[str, str]) -> None:
    found = KubernetesSecretConfigProvider(account, environ).get("shop/database", {"password", "none"})
    assert found.values == {"password": "s3cret"}


def test_a_pattern_gives_all_certificates_of_a_secret_in_the_pods_own_namespace(account: Path, environ: dict[str, str]) -> None:
    assert KubernetesSecretConfigProvider(account, environ).get("cluster-ca", {"*.crt"}).values == {"*.crt": "FIRST\nSECOND"}


def test_a_config_map_gives_its_values_as_they_are(account: Path, environ: dict[str, str]) -> None:
    assert KubernetesConfigMapConfigProvider(account, environ).get("places", {"host"}).values == {"host": "db.example"}


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("shop/none", "The Secret none in the namespace shop cannot be read: there is none."),
        ("forbidden/database", "give the account a Role with the verb get"),
        ("shop/../database", "Invalid path"),
        ("shop/database?x", "Invalid path"),
        ("", "Invalid path"),
    ],
)
def test_what_cannot_be_read_is_said_and_no_value_is(account: Path, environ: dict[str, str], path: str, why: str) -> None:
    with pytest.raises(ConfigError) as caught:
        KubernetesSecretConfigProvider(account, environ).get(path, {"password"})
    assert why in str(caught.value)
    assert TOKEN not in str(caught.value)


def test_a_token_that_kubernetes_has_replaced_is_read_again(account: Path, environ: dict[str, str]) -> None:
    provider = KubernetesSecretConfigProvider(account, environ)
    (account / "token").write_text("expired")
    with pytest.raises(ConfigError, match="does not accept the pod's token"):
        provider.get("shop/database", {"password"})
    (account / "token").write_text(TOKEN)
    assert provider.get("shop/database", {"user"}).values == {"user": "debezium"}


def test_a_server_that_another_authority_signed_gets_no_token(account: Path, environ: dict[str, str]) -> None:
    (account / "ca.crt").write_text(Identity("another").chain_pem)
    with pytest.raises(ConfigError, match=r"does not answer .*certificate verify failed"):
        KubernetesSecretConfigProvider(account, environ).get("shop/database", {"password"})


def test_outside_of_a_pod_the_error_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="works in pods of a Kubernetes cluster only"):
        KubernetesSecretConfigProvider(tmp_path, {}).get("shop/database", {"password"})
    with pytest.raises(ConfigError, match="Does the worker run in a pod"):
        KubernetesSecretConfigProvider(tmp_path, {"KUBERNETES_SERVICE_HOST": "h"}).get("shop/database", {"password"})
