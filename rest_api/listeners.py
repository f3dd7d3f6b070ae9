"""Addresses that the REST server listens on: their texts, their sockets (`RestServer.java`), and the TLS of https listeners, from Kafka's
`ssl.*` properties (`rest/util/SSLUtils.java`, `SslConfigs.java`).

If any property with the listeners' prefix (`listeners.https.`, `admin.listeners.https.`) is there, only those count; else the unprefixed
ones do. Stores may be PEM (as a file or inline) or PKCS12, and are recognised by what they hold, since Java's default type, JKS, also
opens PKCS12 files. A real JKS store cannot be read; the error says how to convert it. Java's own REST listeners know no PEM stores; here
they follow the properties that Kafka's brokers and clients have for them (KIP-651).
"""

from __future__ import annotations

import os
import re
import socket
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from connect_py.errors import ConfigError
from connect_py.tls import is_pem, private_file, read_pkcs12

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_CLIENT_AUTH = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
_JKS_MAGIC = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")


def listed(text: str | None) -> tuple[str, ...]:
    """Return the parts of a text with commas; none of nothing."""
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def with_prefix_all_or_nothing(properties: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Properties below a prefix, without it, if there is one such property; else all (`AbstractConfig.valuesWithPrefixAllOrNothing`)."""
    found = {name.removeprefix(prefix): value for name, value in properties.items() if name.startswith(prefix)}
    return found or dict(properties)


def server_context(properties: Mapping[str, str], prefix: str = "listeners.https.") -> ssl.SSLContext:
    """Return the context of https listeners.

    Args:
        properties: the worker's.
        prefix: ``listeners.https.`` or ``admin.listeners.https.``.

    Raises:
        ConfigError: there is no key store, one cannot be read, or a value is not known. No text holds a password.
    """
    given = with_prefix_all_or_nothing(properties, prefix)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _set_versions(context, given.get("ssl.enabled.protocols", "TLSv1.2,TLSv1.3"))
    _set_ciphers(context, given.get("ssl.cipher.suites", ""))
    _load_key(context, given, prefix)
    wanted = given.get("ssl.client.auth", "none").strip().lower()
    if wanted not in _CLIENT_AUTH:
        raise ConfigError(f"Invalid value {wanted} for configuration ssl.client.auth: String must be one of: none, requested, required")
    if wanted != "none":
        _load_trust(context, given)
        context.verify_mode = _CLIENT_AUTH[wanted]
    return context


def client_context(properties: Mapping[str, str]) -> ssl.SSLContext | None:
    """Return the context of requests to other workers, whose listeners have the same properties; None for a worker without https.

    Raises:
        ConfigError: as `server_context`.
    """
    if "https://" not in properties.get("listeners", "") and properties.get("rest.advertised.listener", "").strip().lower() != "https":
        return None
    given = with_prefix_all_or_nothing(properties, "listeners.https.")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = bool(given.get("ssl.endpoint.identification.algorithm", "https").strip())
    _set_versions(context, given.get("ssl.enabled.protocols", "TLSv1.2,TLSv1.3"))
    _set_ciphers(context, given.get("ssl.cipher.suites", ""))
    if any(given.get(name, "").strip() for name in ("ssl.keystore.location", "ssl.keystore.key")):
        _load_key(context, given, "listeners.https.")
    _load_trust(context, given, ssl.Purpose.SERVER_AUTH)
    return context


def _set_versions(context: ssl.SSLContext, text: str) -> None:
    names = listed(text)
    unknown = [name for name in names if name not in _VERSIONS]
    if unknown or not names:
        raise ConfigError(f"ssl.enabled.protocols may hold TLSv1.2 and TLSv1.3; it holds {text or 'nothing'}.")
    chosen = sorted(_VERSIONS[name] for name in names)
    context.minimum_version, context.maximum_version = chosen[0], chosen[-1]


def _set_ciphers(context: ssl.SSLContext, text: str) -> None:
    """Cipher suites of TLS 1.2 by Java's or OpenSSL's names; those of TLS 1.3 are always on, as OpenSSL has it."""
    names = listed(text)
    below_13 = [openssl_cipher(name) for name in names if not re.fullmatch(r"TLS_(AES|CHACHA20)_\w+", name)]
    if below_13:
        try:
            context.set_ciphers(":".join(below_13))
        except ssl.SSLError as error:
            raise ConfigError(f"ssl.cipher.suites holds no cipher suite that this machine's OpenSSL knows: {text}") from error


def openssl_cipher(name: str) -> str:
    """Return OpenSSL's name of a cipher suite of TLS 1.2, given Java's; another name is left alone."""
    found = re.fullmatch(r"TLS_(\w+)_WITH_(\w+)", name)
    if not found:
        return name
    cipher = re.sub(r"AES_(\d+)_(CBC_)?", r"AES\1_", found[2]).replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305")
    exchange = "" if found[1] == "RSA" else f"{found[1]}_"
    return f"{exchange}{cipher}".replace("_", "-")


def _load_key(context: ssl.SSLContext, given: Mapping[str, str], prefix: str) -> None:
    chain, key = given.get("ssl.keystore.certificate.chain", ""), given.get("ssl.keystore.key", "")
    location = given.get("ssl.keystore.location", "").strip()
    password = given.get("ssl.key.password")
    if chain and key:
        pem = f"{key.strip()}\n{chain.strip()}\n".encode()
    elif location:
        pem, password = _key_of_store(location, given.get("ssl.keystore.password"), password)
    else:
        raise ConfigError(
            f"An https listener needs a certificate: set {prefix}ssl.keystore.location to a PEM or PKCS12 file with the private key and "
            f"its certificate chain, or {prefix}ssl.keystore.key and {prefix}ssl.keystore.certificate.chain to PEM text."
        )
    where = location or "ssl.keystore.key"
    path = private_file(pem)
    try:
        context.load_cert_chain(path, password=password or _no_password)
    except (ssl.SSLError, ValueError, OSError) as error:
        raise ConfigError(
            f"The private key and certificate chain of {where} cannot be used: {_reason(error)}. Is ssl.key.password right, and is the "
            "first certificate the private key's own?"
        ) from error
    finally:
        path.unlink()


def _no_password() -> bytes:
    """Return an empty password, because OpenSSL would ask at the terminal otherwise. It is refused as a wrong one is."""
    return b""


def _key_of_store(location: str, store_password: str | None, key_password: str | None) -> tuple[bytes, str | None]:
    """Return PEM of a store's private key and chain, and the password of that key."""
    content = _read(location, "ssl.keystore.location")
    if is_pem(content):
        return content, key_password
    once = os.urandom(24).hex()  # the key touches the disk, for an instant and encrypted: OpenSSL's Python binding reads files only
    try:
        found = read_pkcs12(content, store_password or None, key_password=once)
    except ValueError as error:
        raise ConfigError(f"The key store {location} cannot be opened: {error}. Is ssl.keystore.password right?") from error
    if not found.key or not found.certificate:
        raise ConfigError(f"The key store {location} holds no private key with a certificate.")
    return b"".join(found), once


def _load_trust(context: ssl.SSLContext, given: Mapping[str, str], purpose: ssl.Purpose = ssl.Purpose.CLIENT_AUTH) -> None:
    """Authorities that the other side's certificates may come from; without a trust store, those of this machine."""
    inline, location = given.get("ssl.truststore.certificates", ""), given.get("ssl.truststore.location", "").strip()
    if not inline and not location:
        context.load_default_certs(purpose)
        return
    content = inline.encode() if inline else _read(location, "ssl.truststore.location")
    where = "ssl.truststore.certificates" if inline else location
    if not is_pem(content):
        content = _certificates_of_pkcs12(content, given.get("ssl.truststore.password"), where)
    try:
        context.load_verify_locations(cadata=content.decode("ascii"))
    except (ssl.SSLError, UnicodeDecodeError) as error:
        raise ConfigError(f"The certificates of {where} cannot be used: {_reason(error)}.") from error


def _certificates_of_pkcs12(content: bytes, password: str | None, where: str) -> bytes:
    try:
        found = read_pkcs12(content, password or None)
    except ValueError as error:
        raise ConfigError(f"The trust store {where} cannot be opened: {error}. Is ssl.truststore.password right?") from error
    certificates = found.certificate + found.others
    if not certificates:
        raise ConfigError(f"The trust store {where} holds no certificate.")
    return certificates


def _read(location: str, name: str) -> bytes:
    try:
        content = Path(location).read_bytes()
    except OSError as error:
        raise ConfigError(f"{name}: {location} cannot be read: {error.strerror}.") from error
    if content.startswith(_JKS_MAGIC):
        raise ConfigError(
            f"{name}: {location} is a Java key store (JKS), which only Java reads. Convert it once: "
            f"keytool -importkeystore -srckeystore {location} -destkeystore {Path(location).with_suffix('.p12')} -deststoretype PKCS12"
        )
    return content


def _reason(error: Exception) -> str:
    return getattr(error, "reason", None) or getattr(error, "strerror", None) or type(error).__name__


#: RestServer.LISTENER_PATTERN's form: scheme://[host]:port, the host possibly empty or an IPv6 address in brackets.
_LISTENER = re.compile(r"^(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)")


@dataclass(frozen=True)
class Listener:
    """One address.

    Attributes:
        scheme: http or https.
        host: may be empty, which means every interface.
        port: 0 means any free one.
        tls: of an https listener.
    """

    scheme: str
    host: str
    port: int
    tls: ssl.SSLContext | None = None


def parse_listeners(
    texts: Sequence[str], properties: Mapping[str, str] | None = None, prefix: str = "listeners.https."
) -> tuple[Listener, ...]:
    """Listeners such as ``http://127.0.0.1:8083`` or ``https://:8443``.

    Args:
        properties: the worker's, which hold the keys of https listeners.
        prefix: of the properties of these listeners' keys.

    Raises:
        ConfigError: one has another form, or its key or certificate cannot be used.
    """
    split = [split_listener(text) for text in texts]
    tls = server_context(properties or {}, prefix) if any(scheme == "https" for scheme, _, _ in split) else None
    return tuple(Listener(scheme, host, port, tls if scheme == "https" else None) for scheme, host, port in split)


def split_listener(text: str) -> tuple[str, str, int]:
    """Return scheme, host (empty for every interface) and port of a listener's address. Raises ConfigError."""
    found = _LISTENER.match(text.strip())
    if not found or int(found[3]) > 65535 or int(found[3]) < 0:
        raise ConfigError("Listener doesn't have the right format (protocol://hostname:port).")
    scheme = found[1].lower()
    if scheme not in ("http", "https"):
        raise ConfigError('Listener protocol must be either "http" or "https".')
    return scheme, found[2], int(found[3])


def bind(listener: Listener) -> tuple[socket.socket, str]:
    """Return an open socket, and its address with its real port.

    Raises:
        ConfigError: the port is in use or not allowed.
    """
    host, port = listener.host, listener.port
    try:
        if not host and socket.has_dualstack_ipv6():
            bound = socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=128)
        else:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            bound = socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        raise ConfigError(f"The listener {host}:{port} cannot be opened: {error.strerror or error}. Is another worker running?") from error
    # Accepted sockets inherit it. asyncio sets it only for sockets that know their protocol, which these do not, and without it an answer
    # (head and body are two writes) waits for the client's delayed acknowledgement: 40 ms.
    bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    shown = f"[{host}]" if ":" in host else host or "localhost"
    return bound, f"{listener.scheme}://{shown}:{bound.getsockname()[1]}"
