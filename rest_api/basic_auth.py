"""Basic authentication, as Kafka's `BasicAuthSecurityRestExtension` with its `PropertyFileLoginModule` does it: where the users are, and
what checks a login.

The extension is switched on by its Java name in `rest.extension.classes`; the file of users is named by the entry `KafkaConnect` of a JAAS
file, whose path is Java's system property `java.security.auth.login.config` (in `KAFKA_OPTS`, or an environment variable of that name).
Without JAAS: `rest.basic.auth.file`. The file holds `user=password` lines and is read once, at the start; an empty one lets everybody in,
as Kafka's does.

As in the reference, requests of workers to each other are let through (their signature is checked instead), and what names no resource is
refused before a password is asked for.

`Logins` answers quickly if you have logged in before, and seldom if you guess. A password may stand in the file as it is, or as what
`connect-py password` makes of it (PBKDF2-HMAC-SHA256, a format of this project's own; Kafka's `PropertyFileLoginModule` knows plain text
only). A hash takes a fifth of a second on purpose, so credentials that were right are remembered, as a keyed digest.

After ten failures from one address its further logins get a 429, except one every two seconds; a client that has logged in from anywhere
since the worker's start is not held up. Clients that share a proxy have one address.
"""

from __future__ import annotations

import base64
import binascii
import collections
import hashlib
import hmac
import logging
import re
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import anyio.to_thread

from connect_py.data.java_properties import parse_properties
from connect_py.errors import ConfigError
from rest_api.jaas import EXTENSION, EXTENSION_CLASSES, FILE_PROPERTY, users_file

log = logging.getLogger(__name__)


_INTERNAL = (
    ("POST", re.compile(r"/connectors/[^/]+/tasks")),
    ("PUT", re.compile(r"/connectors/[^/]+/fence")),
    ("POST", re.compile(r"/ui/api/group")),
)


@dataclass(frozen=True)
class BasicAuth:
    """Users and their passwords. Has no text form that shows a password.

    Attributes:
        users: passwords by user, or what `rest_api.basic_auth.hashed` made of them; none at all means that everybody may do everything.
    """

    users: Mapping[str, str] = field(repr=False)


def is_internal(method: str, path: str) -> bool:
    """Return whether a request is one that only another worker sends."""
    return any(method == verb and pattern.fullmatch(path) for verb, pattern in _INTERNAL)


def credentials(header: str | None) -> tuple[str, str]:
    """User and password; empty when the header has another form."""
    scheme, _, encoded = (header or "").partition(" ")
    if scheme.lower() != "basic":
        return "", ""
    try:
        user, colon, password = base64.b64decode(encoded, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        return "", ""
    return (user, password) if colon and user else ("", "")


def from_worker(properties: Mapping[str, str], environment: Mapping[str, str]) -> BasicAuth | None:
    """Return the authentication that the worker's properties ask for, None when they ask for none.

    Args:
        environment: the process's, in which Java's options may name a JAAS file.

    Raises:
        ConfigError: an extension is not known, or the users cannot be read. Unlike the reference, which then refuses every request.
    """
    wanted = [name.strip() for name in properties.get(EXTENSION_CLASSES, "").split(",") if name.strip()]
    unknown = [name for name in wanted if name != EXTENSION]
    if unknown:
        raise ConfigError(
            f"{EXTENSION_CLASSES} names {', '.join(unknown)}. A Java extension cannot run here; this worker has its own {EXTENSION} and no "
            "other. Remove the name, or put a proxy in front of the worker that does what the extension did."
        )
    own = properties.get(FILE_PROPERTY, "").strip()
    if not wanted and not own:
        return None
    users = read_users(own or users_file(environment))
    if not users:
        log.warning("The file of users of the REST API is empty: all requests are let in.")
    return BasicAuth(users)


def read_users(path: str) -> Mapping[str, str]:
    """Passwords by user. Raises ConfigError."""
    try:
        return parse_properties(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"The users of the REST API cannot be read from {path}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"The file of users of the REST API, {path}, is not UTF-8 text.") from error


_SCHEME = "{pbkdf2-sha256}"
#: OWASP's recommendation of 2023 for this function.
_ROUNDS = 600_000
_MAX_ROUNDS = 10_000_000

#: Failures from one address that are answered at once, and seconds for each further one.
BURST, SECONDS_EACH = 10, 2.0

#: Credentials and addresses that are remembered.
_REMEMBERED = 10_000


class Logins:
    """Used by the event loop's thread.

    Args:
        auth: who may call.
        clock: seconds.
    """

    def __init__(self, auth: BasicAuth, clock: Callable[[], float] = time.monotonic) -> None:
        self._users = auth.users
        for user, stored in auth.users.items():
            if stored.startswith(_SCHEME):
                _parts(user, stored)
        self._clock = clock
        self._key = secrets.token_bytes(32)
        self._known: collections.OrderedDict[bytes, None] = collections.OrderedDict()
        self._failures: collections.OrderedDict[str, tuple[float, float]] = collections.OrderedDict()
        self._hashing: anyio.CapacityLimiter | None = None

    async def check(self, authorization: str | None, client: str, request: str) -> int:
        """Answer 200 for a user and this user's password, 401 for anything else, 429 for too many failures.

        Args:
            authorization: the header.
            client: its address.
            request: for the log.
        """
        if not self._users:
            return 200
        name, password = credentials(authorization)
        if not name:
            return 401
        mark = hmac.digest(self._key, f"{name}\0{password}".encode("utf-8", "surrogatepass"), "sha256")
        if mark in self._known:
            return 200
        if self._owed(client) >= BURST:
            return 429
        if await self._matches(name, password):
            self._known[mark] = None
            _trim(self._known)
            return 200
        self._failures[client] = (self._owed(client) + 1, self._clock())
        self._failures.move_to_end(client)
        _trim(self._failures)
        log.warning("A login to the REST API failed: user %r from %s, %s", name[:100], client, request)
        return 401

    def _owed(self, client: str) -> float:
        """Failures of an address that time has not made up for."""
        count, since = self._failures.get(client, (0.0, 0.0))
        return max(0.0, count - (self._clock() - since) / SECONDS_EACH)

    async def _matches(self, name: str, password: str) -> bool:
        """Takes as long for an unknown user as for a wrong password."""
        stored = self._users.get(name)
        tried = stored if stored is not None else next(iter(self._users.values()))
        if tried.startswith(_SCHEME):
            self._hashing = self._hashing or anyio.CapacityLimiter(2)
            same = await anyio.to_thread.run_sync(_is_hash_of, tried, password, limiter=self._hashing)
        else:
            same = hmac.compare_digest(tried.encode(), password.encode())
        return same and stored is not None


def hashed(password: str) -> str:
    """Return a password as it may stand in the file of users."""
    salt = secrets.token_bytes(16)
    return f"{_SCHEME}{_ROUNDS}${_text(salt)}${_text(_derived(password, salt, _ROUNDS))}"


def _is_hash_of(stored: str, password: str) -> bool:
    rounds, salt, expected = _parts("", stored)
    return hmac.compare_digest(_derived(password, salt, rounds), expected)


def _derived(password: str, salt: bytes, rounds: int) -> bytes:
    return hashlib.pbkdf2_hmac("sha256", password.encode(), salt, rounds)


def _parts(user: str, stored: str) -> tuple[int, bytes, bytes]:
    """Split a stored password into rounds, salt and hash. Raises ConfigError, which does not repeat them."""
    try:
        rounds, salt, digest = stored.removeprefix(_SCHEME).split("$")
        found = int(rounds), base64.b64decode(salt, validate=True), base64.b64decode(digest, validate=True)
        if not 1000 <= found[0] <= _MAX_ROUNDS or not found[1] or len(found[2]) != 32:
            raise ValueError
    except (ValueError, binascii.Error):
        raise ConfigError(f"The hash of user {user} is not of the form {_SCHEME}ROUNDS$SALT$HASH that connect-py password makes.") from None
    return found


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _trim(remembered: collections.OrderedDict[bytes, None] | collections.OrderedDict[str, tuple[float, float]]) -> None:
    while len(remembered) > _REMEMBERED:
        remembered.popitem(last=False)
