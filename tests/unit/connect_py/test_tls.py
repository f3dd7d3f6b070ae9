"""Stores of keys and certificates for drivers: PEM as it is, PKCS #12 turned into PEM for nobody else to read."""

import datetime
import socket
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, load_pem_private_key, pkcs12

from connect_py.errors import ConfigError
from connect_py.tls import pem_file, verifying_context
from tests.certificates import Identity
from tests.https_servers import Handler, serving


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A key with its certificate under the password `secret`."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "client")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    path = tmp_path / "store.p12"
    path.write_bytes(pkcs12.serialize_key_and_certificates(b"client", key, certificate, None, BestAvailableEncryption(b"secret")))
    return path


def test_a_pkcs12_store_becomes_a_private_pem_file_with_key_and_certificate(store: Path) -> None:
    found = Path(pem_file(str(store), "secret"))
    try:
        assert found.stat().st_mode & 0o077 == 0
        assert load_pem_private_key(found.read_bytes(), None) is not None
        assert [each.serial_number for each in x509.load_pem_x509_certificates(found.read_bytes())] == [7]
        assert pem_file(str(found), None) == str(found)
    finally:
        found.unlink()


@pytest.mark.parametrize("password", [None, "wrong"])
def test_a_store_that_its_password_does_not_open_is_named(store: Path, password: str | None) -> None:
    with pytest.raises(ConfigError, match="neither a PEM file nor a PKCS #12 store") as caught:
        pem_file(str(store), password)
    assert "wrong" not in str(caught.value)


def test_a_certificate_without_the_key_identifier_of_its_authority_is_trusted_and_one_of_another_is_not(tmp_path: Path) -> None:
    """Python 3.13 and newer would not."""
    authority, file = Identity("authority"), tmp_path / "ca.crt"
    file.write_text(authority.chain_pem)
    with serving(Handler, authority, tmp_path) as port:

        def connect(trusted: Path) -> str | None:
            with (
                socket.create_connection(("127.0.0.1", port), timeout=60) as plain,
                verifying_context(trusted).wrap_socket(plain, server_hostname="127.0.0.1") as secured,
            ):
                return secured.version()

        assert connect(file) == "TLSv1.3"
        file.write_text(Identity("another").chain_pem)
        with pytest.raises(ssl.SSLCertVerificationError):
            connect(file)


def test_a_missing_store_is_named() -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        pem_file("/no/such/store", None)
