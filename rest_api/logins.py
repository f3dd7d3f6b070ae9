"""Checks logins: quickly for who has logged in before, seldom for who guesses.

A password may stand in the file as it is, or as what `connect-py password` makes of it (PBKDF2-HMAC-SHA256, a format of this project's own;
Kafka's `PropertyFileLoginModule` knows plain text only). A hash takes a fifth of a second on purpose, so credentials that were right are
remembered, as a keyed digest.

After ten failures from one address its further logins get a 429, but for one every two seconds; who has logged in from anywhere since the
worker's start is not held up. Clients behind one proxy have one address.
"""

from __future__ import annotations

import base64
import binascii
import collections
import hashlib
import hmac
import logging
import secrets
import time
from collections.abc import Callable

import anyio
import anyio.to_thread

from connect_py.errors import ConfigError
from rest_api.basic_auth import BasicAuth, credentials

log = logging.getLogger(__name__)

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
    """A password as it may stand in the file of users."""
    salt = secrets.token_bytes(16)
    return f"{_SCHEME}{_ROUNDS}${_text(salt)}${_text(_derived(password, salt, _ROUNDS))}"


def _is_hash_of(stored: str, password: str) -> bool:
    rounds, salt, expected = _parts("", stored)
    return hmac.compare_digest(_derived(password, salt, rounds), expected)


def _derived(password: str, salt: bytes, rounds: int) -> bytes:
    return hashlib.pbkdf2_hmac("sha256", password.encode(), salt, rounds)


def _parts(user: str, stored: str) -> tuple[int, bytes, bytes]:
    """Rounds, salt and hash. Raises ConfigError, which does not repeat them."""
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
