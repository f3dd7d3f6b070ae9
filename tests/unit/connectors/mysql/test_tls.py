"""What a connection to MySQL holds the server's certificate to, by ``database.ssl.mode`` alone."""

from __future__ import annotations

import ssl

import pytest

from connectors.mysql.config.config import ConnectionSettings
from connectors.mysql.server.connection import tls_context


def context_of(mode: str) -> ssl.SSLContext | None:
    return tls_context(ConnectionSettings("localhost", 3306, "root", None, ssl_mode=mode))


@pytest.mark.parametrize("mode", ["preferred", "required"])
def test_modes_that_verify_nothing_load_no_authorities(mode: str) -> None:
    context = context_of(mode)
    assert context is not None
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_NONE, False)
    assert context.cert_store_stats()["x509"] == 0


@pytest.mark.parametrize(("mode", "with_name"), [("verify_ca", False), ("verify_identity", True)])
def test_modes_that_verify_ask_for_a_certificate(mode: str, with_name: bool) -> None:
    context = context_of(mode)
    assert context is not None
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, with_name)


def test_disabled_is_no_context_at_all() -> None:
    assert context_of("disabled") is None
