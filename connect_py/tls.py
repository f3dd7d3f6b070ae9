"""Stores of keys and certificates, and whom a client trusts.

Stores are PEM files, and PKCS #12 stores, which are turned into PEM, because OpenSSL and drivers read that alone.

A store is recognised by what it holds, since Java's default type, JKS, also opens PKCS #12 files. `cryptography` is imported when such a
store is opened: most processes have none, and the import takes a tenth of a task's start.
"""

from __future__ import annotations

import atexit
import functools
import os
import ssl
import tempfile
from pathlib import Path
from typing import NamedTuple

from connect_py.errors import ConfigError

#: What to do with a store that is no PEM file, where only those can be read; `prefix` is that of the store's properties.
CONVERT_TO_PEM = "Convert it to PEM (keytool -exportcert -rfc, or openssl pkcs12 -nodes) and set {prefix}.type=PEM."


def verifying_context(authorities: str | os.PathLike[str] | None = None) -> ssl.SSLContext:
    """Return the TLS of a client that checks its server's certificate and name.

    Python 3.13 and newer also ask for what RFC 5280 wants of a certificate, such as its authority's key identifier. Many that a company,
    a cluster or a database server has issued for itself lack it. Clients of Java, OpenSSL and librdkafka accept them, and so does this one.

    Args:
        authorities: a PEM file of the certificates to trust; None: the system's.

    Raises:
        OSError: the file cannot be read, or holds no certificate (`ssl.SSLError`).
    """
    context = ssl.create_default_context(cafile=authorities)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


class Store(NamedTuple):
    """What a store holds, as PEM: a private key, its certificate, and others (its chain, or authorities). What is missing is empty."""

    key: bytes
    certificate: bytes
    others: bytes


def is_pem(content: bytes) -> bool:
    """Return whether a file's content is PEM."""
    return b"-----BEGIN " in content


def is_java_store(path: str) -> bool:
    """Return whether a file is a Java key store (JKS or JCEKS), by its first bytes. One that cannot be read counts for one."""
    try:
        with open(path, "rb") as file:
            return file.read(4) in (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
    except OSError:
        return True


def read_pkcs12(content: bytes, password: str | None, *, key_password: str | None = None) -> Store:
    """Return what a PKCS #12 store holds.

    Args:
        key_password: encrypts the key that is returned; None leaves it open.

    Raises:
        ValueError: it is no such store, or the password does not open it.
    """
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat, pkcs12

    key, own, others = pkcs12.load_key_and_certificates(content, None if password is None else password.encode())
    encryption = NoEncryption() if key_password is None else BestAvailableEncryption(key_password.encode())
    return Store(
        b"" if key is None else key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption),
        b"" if own is None else own.public_bytes(Encoding.PEM),
        b"".join(other.public_bytes(Encoding.PEM) for other in others),
    )


def private_file(content: bytes) -> Path:
    """Return a new file with the content that its owner alone can read (as `mkstemp` makes them). The caller deletes it."""
    handle, name = tempfile.mkstemp(prefix="connect-py-", suffix=".pem")
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    return Path(name)


def pem_file(path: str, password: str | None) -> str:
    """Return the path of a PEM file with what a store holds: the store itself where it is one, else a private copy for this process's life.

    Raises:
        ConfigError: the file is neither PEM nor PKCS #12, or the password is wrong.
    """
    try:
        data, changed = Path(path).read_bytes(), Path(path).stat().st_mtime_ns
    except OSError as error:
        raise ConfigError(f"The key or trust store {path} cannot be read: {error.strerror}") from None
    return path if is_pem(data) else _copy_of(path, password, changed)


@functools.cache
def _copy_of(path: str, password: str | None, changed: int) -> str:
    """Return one copy for each state of a store."""
    del changed
    try:
        store = read_pkcs12(Path(path).read_bytes(), password)
    except (ValueError, TypeError):
        raise ConfigError(f"The store {path} is neither a PEM file nor a PKCS #12 store that its password opens") from None
    copy = private_file(b"".join(store))
    atexit.register(lambda: copy.unlink(missing_ok=True))
    return str(copy)
