"""Key and trust stores as drivers accept them: PEM files. PKCS #12 stores, Debezium's default, are converted."""

from __future__ import annotations

import atexit
import functools
import os
import tempfile
from pathlib import Path

from connect_py.errors import ConfigError


@functools.cache
def _copy_of(path: str, password: str | None, changed: int) -> str:
    """Return one copy for each state of a store."""
    del changed
    return _copy(path, Path(path).read_bytes(), password)


def pem_file(path: str, password: str | None) -> str:
    """Return the path of a PEM file with what a store holds: the store itself where it is one, else a private copy for this process's life.

    Raises:
        ConfigError: the file is neither PEM nor PKCS #12, or the password is wrong.
    """
    try:
        data, changed = Path(path).read_bytes(), Path(path).stat().st_mtime_ns
    except OSError as error:
        raise ConfigError(f"The key or trust store {path} cannot be read: {error.strerror}") from None
    return path if b"-----BEGIN" in data else _copy_of(path, password, changed)


def _copy(path: str, data: bytes, password: str | None) -> str:
    # most tasks have no such store: the import takes a tenth of its start
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, pkcs12

    try:
        store = pkcs12.load_pkcs12(data, None if password is None else password.encode())
    except (ValueError, TypeError):
        raise ConfigError(f"The store {path} is neither a PEM file nor a PKCS #12 store that its password opens") from None
    parts = [each.certificate.public_bytes(Encoding.PEM) for each in ([store.cert] if store.cert else []) + store.additional_certs]
    if store.key is not None:
        parts.insert(0, store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    # mkstemp's files are their owner's only
    handle, copy = tempfile.mkstemp(prefix="connect-py-", suffix=".pem")
    with os.fdopen(handle, "wb") as file:
        file.write(b"".join(parts))
    atexit.register(lambda: Path(copy).unlink(missing_ok=True))
    return copy
