"""Takes secrets out of texts that leave the process: traces, logs, error messages. Pure.

A secret is the value of a property of type PASSWORD, or of a property whose name says that it is one; the second rule covers client
settings (``producer.override.sasl.jaas.config``) and misspelt names that no definition knows.

A secret may also be a part of an open value: the password in an address (``http://user:password@host``), or what follows ``password=``. It
is found there, and `scrub` takes out whatever has these forms, known or not.

Two kinds of value are left alone, because hiding them would garble every text and protect nothing: values shorter than four characters,
and values that an open property of the same configuration shows anyway (a user whose password is the user's name).
"""

from __future__ import annotations

import base64
import json
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from urllib.parse import quote, quote_plus, unquote

from connect_py.api import ConfigDef, ConfigType
from connect_py.data.java_regex import compile_java_regex
from connect_py.errors import ConfigError

HIDDEN = "[hidden]"

_SECRET_NAME = re.compile(r"password|passwd|secret|credential|jaas|token|private\.?key|api\.?key|authorization|user\.?info", re.IGNORECASE)
#: The password of an address: up to the last @ before the host. A scheme has a bound, else a long text with many dots takes minutes.
_IN_ADDRESS = re.compile(r"(?P<before>\b[a-z][a-z0-9+.-]{0,40}://[^\s/:@?#\"']*:)(?P<secret>[^\s/?#\"']+)(?=@)", re.IGNORECASE)
#: As in JAAS configurations, JDBC addresses and connection strings.
_ASSIGNED = re.compile(
    r"(?P<before>\b(?:password|passwd|pwd|client_?secret)=)(?:\\?\"(?P<quoted>[^\"\\]+)\\?\"|'(?P<single>[^']+)'|(?P<secret>[^\s;,&\"'\[{$][^\s;,&\"']*))",
    re.IGNORECASE,
)
_AUTHORIZATION = re.compile(r"(?P<before>\b(?:basic|bearer) )(?P<secret>[a-z0-9+/=._~-]{8,})", re.IGNORECASE)
#: Shorter values are not hidden.
MIN_LENGTH = 4


def secret_values(config: Mapping[str, str | None], definition: ConfigDef | None = None) -> set[str]:
    """The secret values of a configuration."""
    secret: set[str] = set()
    shown: set[str] = set()
    more = _custom_names(config.get("custom.sanitize.pattern"))
    for name, value in config.items():
        if not value:
            continue
        key = definition.keys.get(name) if definition else None
        is_secret = key.type is ConfigType.PASSWORD if key else is_secret_name(name)
        is_secret = is_secret or (more is not None and more.fullmatch(name) is not None)
        (secret if is_secret else shown).add(value)
        secret |= _parts(value, is_secret)
    return {value for value in secret - shown if len(value.strip()) >= MIN_LENGTH}


def redactor(secrets: Iterable[str]) -> Callable[[str], str]:
    """A function that replaces secrets, and their usual spellings in URLs, JSON and reprs, by ``[hidden]``."""
    spellings: set[str] = set()
    for raw in secrets:
        for secret in {raw, raw.strip()}:
            spellings |= {secret, quote(secret, safe=""), quote_plus(secret), json.dumps(secret)[1:-1], repr(secret)[1:-1]}
            if ":" in secret:  # what a client sends for user:password
                spellings.add(base64.b64encode(secret.encode()).decode())
    ordered = sorted(spellings - {""}, key=len, reverse=True)

    def redact(text: str) -> str:
        present = [spelling for spelling in ordered if spelling in text]
        return re.sub("|".join(map(re.escape, present)), HIDDEN, text) if present else text

    return redact


def scrub(text: str) -> str:
    """A text without what has the form of a secret: passwords of addresses, values of ``password=``, credentials of HTTP."""
    if "://" in text:
        text = _IN_ADDRESS.sub(rf"\g<before>{HIDDEN}", text)
    if "=" in text:
        text = _ASSIGNED.sub(rf"\g<before>{HIDDEN}", text)
    return _AUTHORIZATION.sub(_hide_credentials, text)


def _hide_credentials(found: re.Match[str]) -> str:
    """Words of a sentence ("basic authentication") stay."""
    word = found["secret"]
    return found[0] if word.isalpha() and (word.islower() or word.istitle()) else found["before"] + HIDDEN


def _parts(value: str, is_secret: bool) -> set[str]:
    """Secrets within a value."""
    found = {match["secret"] for match in _IN_ADDRESS.finditer(value)}
    found |= {unquote(secret) for secret in found}
    for match in _ASSIGNED.finditer(value):
        found.add(match["quoted"] or match["single"] or match["secret"])
    if is_secret and value.count(":") == 1 and "://" not in value:
        found.add(value.partition(":")[2])
    return found


def _custom_names(pattern: str | None) -> re.Pattern[str] | None:
    """Debezium's property for names of further secrets; one that is no regex hides nothing."""
    try:
        return compile_java_regex(pattern, re.IGNORECASE) if pattern else None
    except ConfigError:
        return None


def is_secret_name(name: str) -> bool:
    """Whether a property's name says that its value is a secret."""
    return _SECRET_NAME.search(name) is not None


class Redactor:
    """A redactor that learns: secrets may become known while the process runs. Any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._secrets: frozenset[str] = frozenset()
        self._redact: Callable[[str], str] = lambda text: text

    @property
    def secrets(self) -> frozenset[str]:
        """What has been learnt."""
        return self._secrets

    def learn(self, secrets: Iterable[str]) -> None:
        """Hide these too, from now on."""
        with self._lock:
            known = self._secrets | {secret for secret in secrets if len(secret.strip()) >= MIN_LENGTH}
            if known != self._secrets:
                self._secrets, self._redact = known, redactor(known)

    def __call__(self, text: str) -> str:
        return self._redact(text)


#: What config providers gave this process. These values are secrets wherever they stand, whatever the property is called.
PROVIDED = Redactor()
