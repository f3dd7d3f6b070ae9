"""Sign the requests of a cluster's workers to each other (KIP-507; `rest/InternalRequestSignature.java`).

The leader makes the key and keeps it on the configuration topic, where the other workers read it. It is replaced when it is older than
``inter.worker.key.ttl.ms``. Requests are signed by an HMAC of their body. Pure but for `new_key`.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from connect_py.errors import BadRequestError, ConfigError, RestError

#: Java's names of the algorithms, Python's of their digests, and the bits of the key that Java makes when no size is given.
_DIGESTS = {
    "HmacMD5": ("md5", 512),
    "HmacSHA1": ("sha1", 512),
    "HmacSHA224": ("sha224", 224),
    "HmacSHA256": ("sha256", 256),
    "HmacSHA384": ("sha384", 384),
    "HmacSHA512": ("sha512", 512),
}

#: The least that Java's generators make a key of (`HmacSHA2KeyGenerator`), and the largest number of a Java property (`DistributedConfig`).
_MIN_BITS, _MAX_INT = 40, 2**31 - 1


@dataclass(frozen=True)
class InternalSignature:
    """What a request's headers say: `X-Connect-Request-Signature-Algorithm` and, decoded, `X-Connect-Authorization`; and what is signed."""

    algorithm: str
    mac: bytes
    body: bytes

    @classmethod
    def of_headers(cls, algorithm: str | None, mac: str | None, body: bytes) -> InternalSignature | None:
        """Return None when a header is missing. Raises BadRequestError with Java's texts for what cannot be a signature."""
        if algorithm is None or mac is None:
            return None
        if algorithm not in _DIGESTS:
            raise BadRequestError(f"Algorithm {algorithm} not available")
        return cls(algorithm, _decoded(mac), body)


@dataclass(frozen=True)
class SessionKeySettings:
    """The worker's ``inter.worker.*`` properties."""

    algorithm: str = "HmacSHA256"
    bits: int | None = None
    ttl_ms: int = 3_600_000
    signing: str = "HmacSHA256"
    verification: Sequence[str] = ("HmacSHA256",)

    @classmethod
    def parse(cls, properties: Mapping[str, str]) -> SessionKeySettings:
        """Raises ConfigError: an algorithm is not known, a number is none, or this worker would not accept its own signatures."""
        algorithm = properties.get("inter.worker.key.generation.algorithm", "HmacSHA256").strip()
        signing = properties.get("inter.worker.signature.algorithm", "HmacSHA256").strip()
        listed = properties.get("inter.worker.verification.algorithms", "HmacSHA256")
        verification = [name.strip() for name in listed.split(",") if name.strip()]
        for name in (algorithm, signing, *verification):
            if name not in _DIGESTS:
                raise ConfigError(f"inter.worker.* names the algorithm {name}; known are: {', '.join(_DIGESTS)}.")
        if signing not in verification:
            raise ConfigError(
                f"inter.worker.signature.algorithm ({signing}) must be one of inter.worker.verification.algorithms "
                f"({', '.join(verification)})."
            )
        size = properties.get("inter.worker.key.size", "").strip()
        bits = _number("inter.worker.key.size", size) if size else None
        if bits is not None and bits < _MIN_BITS:
            raise ConfigError(
                f"Unable to create key generator with algorithm {algorithm} and key size {bits}: inter.worker.key.size is under {_MIN_BITS}"
            )
        return cls(algorithm, bits, _ttl(properties), signing, verification)


def _ttl(properties: Mapping[str, str]) -> int:
    return _number("inter.worker.key.ttl.ms", properties.get("inter.worker.key.ttl.ms", "3600000").strip())


def _number(name: str, text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > _MAX_INT:
        raise ConfigError(f"Invalid value {text} for configuration {name}: it must be a number from 0 to {_MAX_INT}")
    return int(text)


def is_outdated(stored: Mapping[str, object] | None, settings: SessionKeySettings, now_ms: int) -> bool:
    """Return whether the leader has to make a key: there is none, it is too old, or the settings want another kind."""
    if stored is None or stored.get("algorithm") != settings.algorithm:
        return True
    created = stored.get("creation-timestamp")
    if len(_key_of(stored)) != _length(settings):
        return True
    return not isinstance(created, int) or (settings.ttl_ms > 0 and now_ms - created >= settings.ttl_ms)


def _length(settings: SessionKeySettings) -> int:
    """Return the bytes of a key: as many as hold its bits, as Java's generators do it."""
    return ((settings.bits or _DIGESTS[settings.algorithm][1]) + 7) // 8


def new_key(settings: SessionKeySettings) -> str:
    """Return a key, in base64."""
    return base64.b64encode(secrets.token_bytes(_length(settings))).decode()


def sign(body: bytes, stored: Mapping[str, object] | None, settings: SessionKeySettings) -> dict[str, str]:
    """Return the headers that sign a request to another worker; none without a key, which that worker then says."""
    if stored is None:
        return {}
    mac = hmac.digest(_key_of(stored), body, _DIGESTS[settings.signing][0])
    return {"X-Connect-Authorization": base64.b64encode(mac).decode(), "X-Connect-Request-Signature-Algorithm": settings.signing}


def milliseconds_left(stored: Mapping[str, object] | None, settings: SessionKeySettings, now_ms: int) -> int | None:
    """Return after how long the leader replaces a key; None when keys are not replaced because of their age."""
    created = stored.get("creation-timestamp") if stored is not None else None
    return max(0, created + settings.ttl_ms - now_ms) if settings.ttl_ms and isinstance(created, int) else None


def check(signature: InternalSignature | None, stored: Mapping[str, object] | None, settings: SessionKeySettings) -> None:
    """Let a request of another worker through, or refuse it (`DistributedHerder.requestNotSignedProperly`).

    Args:
        stored: the session key record's value, None when there is none.

    Raises:
        RestError: 400 when it is not signed, or by an algorithm that is not accepted; 503 when this worker has no key, or one that is no
            base64; 403 when the signature is wrong.
    """
    if signature is None:
        raise BadRequestError("Internal request missing required signature")
    if signature.algorithm not in settings.verification:
        raise BadRequestError(
            f"This worker does not support the '{signature.algorithm}' key signing algorithm used by other workers. This worker is "
            f"currently configured to use: [{', '.join(settings.verification)}]. Check that all workers' configuration files permit the "
            "same set of signature algorithms, and correct any misconfigured worker and restart it."
        )
    if stored is None or not _key_of(stored):
        raise RestError("This worker is still starting up and has not been able to read a session key from the config topic yet", 503)
    expected = hmac.digest(_key_of(stored), signature.body, _DIGESTS[signature.algorithm][0])
    if not hmac.compare_digest(expected, signature.mac):
        raise RestError("Internal request contained invalid signature.", 403)


def _decoded(text: str) -> bytes:
    """Decode a header as `java.util.Base64` does, which needs no padding. Raises BadRequestError with its texts."""
    data = text.encode("latin-1", "replace")
    digits, padding, rest = data.partition(b"=")
    illegal, unit = re.search(rb"[^A-Za-z0-9+/]", digits), len(digits) % 4
    end = len(digits) + (2 if unit == 2 else 1)
    if len(data) == 1:
        problem = "Input byte[] should at least have 2 bytes for base64 bytes"
    elif illegal is not None:
        code = illegal[0][0]
        problem = f"Illegal base64 character {code - 256 if code > 127 else code:x}"
    elif unit == 1:
        problem = "Last unit does not have enough valid bits"
    elif padding and (unit == 0 or (unit == 2 and not rest.startswith(b"="))):
        problem = "Input byte array has wrong 4-byte ending unit"
    elif padding and len(data) > end:
        problem = f"Input byte array has incorrect ending byte at {end}"
    else:
        return base64.b64decode(digits + b"=" * (-len(digits) % 4))
    raise BadRequestError(problem)


def _key_of(stored: Mapping[str, object]) -> bytes:
    try:
        return base64.b64decode(str(stored.get("key", "")), validate=True)
    except (binascii.Error, ValueError):
        return b""
