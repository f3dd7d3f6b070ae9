"""Take secrets out of texts that leave the process: traces, logs, error messages. Pure, but for a regular expression of the user's, which
`connect_py.log.user_regex` matches.

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
from connect_py.errors import ConfigError
from connect_py.log.user_regex import matching

HIDDEN = "[hidden]"

#: Debezium's property for names of further secrets, and how it is matched.
SANITIZE_PATTERN, SANITIZE_FLAGS = "custom.sanitize.pattern", re.IGNORECASE

_SECRET_NAME = re.compile(
    r"password|passwd|secret|credential|jaas|token|private\.?key|api\.?key|authorization|user\.?info|keystore\.key$"
    # of object stores: Azure's accounts and shared access signatures, keys that customers encrypt with
    r"|(?:account|shared|sse)[.-]?key|encryption\.key(?![\w-])|\.sas\.|adls\.connection-string",
    re.IGNORECASE,
)
#: The user chooses an alias; what it names is a secret or not by the rest of the name.
_ALIAS = re.compile(r"(?:config\.providers|transforms|predicates)\.[^.]+\.")
#: Names of classes are shown by every error about them.
_CLASS_NAME = re.compile(r"(?:^|\.)(?:class|type|plugin\.version)$")
#: The password of an address: up to the last @ before the host. A scheme has a bound, else a long text with many dots takes minutes.
_IN_ADDRESS = re.compile(r"(?P<before>\b[a-z][a-z0-9+.-]{0,40}://[^\s/:@?#\"']*:)(?P<secret>[^\s/?#\"']+)(?=@)", re.IGNORECASE)
#: What names a secret in other people's texts.
_WORDS = r"(?:password|passwd|pwd|client_?secret|(?:aws_?)?secret_?(?:access_?)?key|(?:access|refresh|auth|session)_?token|token|api_?key)"
#: As in JAAS configurations, JDBC addresses and connection strings: bare or in quotes, which may themselves stand in a quoted text.
_ASSIGNED = re.compile(
    rf"(?P<before>\b(?:{_WORDS}|AccountKey|SharedAccessSignature|sig)=)(?:"
    r"\\\"(?P<within>(?:[^\"\\]|\\\\(?:\\.|[^\\]))+)\\\"|"
    r"\"(?P<quoted>(?:[^\"\\]|\\.)+)\"|'(?P<single>[^']+)'|(?P<secret>[^\s;,&\"'\\\[{$][^\s;,&\"']*))",
    re.IGNORECASE,
)
#: As in JSON and in Python's repr of a mapping, with the quotes' escapes where that stands in a text once more.
_IN_MAPPING = re.compile(
    rf"(?P<before>(?P<quote>\\?[\"'])[\w.-]{{0,200}}?{_WORDS}(?P=quote)\s?:\s?(?P<open>\\?[\"']))(?!\$\{{|\[hidden\])"
    r"(?P<secret>(?:(?!(?P=open))(?:[^\\]|\\.))+)(?P<after>(?P=open))",
    re.IGNORECASE,
)
#: As in CREATE USER and ALTER ROLE.
_IN_STATEMENT = re.compile(
    r"(?P<before>\b(?:IDENTIFIED\s(?:WITH\s\S{1,80}\s)?(?:BY|AS)(?:\sPASSWORD)?\s?|PASSWORD(?:\s|\s?=\s?)))'(?:[^'\\]|\\.|'')+'",
    re.IGNORECASE,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_AUTHORIZATION = re.compile(r"(?P<before>\b(?:basic|bearer) )(?P<secret>[a-z0-9+/=._~-]{8,})", re.IGNORECASE)
#: Shorter values are not hidden in what one configuration brings about.
MIN_LENGTH = 4
#: Shorter values are not hidden in what the whole process says: words of others' lines would go.
MIN_SHARED_LENGTH = 6
#: Characters of a message, a trace or an error.
_MAX_LENGTH = 32_768
#: All but tab and line ends; a carriage return before a line feed is a part of one.
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029]|\r(?!\n)")
#: Secrets of one owner that are remembered; older ones are of configurations that it no longer has.
_MAX_OWNED = 500


def secret_values(config: Mapping[str, str | None], definition: ConfigDef | None = None) -> set[str]:
    """Return the secret values of a configuration."""
    secret: set[str] = set()
    shown: set[str] = set()
    more = _custom_names(config)
    for name, value in config.items():
        if not value:
            continue
        key = definition.keys.get(name) if definition else None
        is_secret = key.type is ConfigType.PASSWORD if key else is_secret_name(name)
        is_secret = is_secret or name in more
        (secret if is_secret else shown).add(value)
        secret |= _parts(value, is_secret)
    return {value for value in secret - shown if len(value.strip()) >= MIN_LENGTH}


def redactor(secrets: Iterable[str]) -> Callable[[str], str]:
    """Return a function that replaces secrets, and their usual spellings in URLs, JSON and reprs, by ``[hidden]``."""
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


def bounded(text: str, length: int = _MAX_LENGTH) -> str:
    """Return a text, cut when it is longer than a person reads."""
    return text if len(text) <= length else f"{text[:length]}… ({len(text) - length} more characters)"


def readable(text: str, length: int = _MAX_LENGTH) -> str:
    """A text without what changes a terminal (control characters are shown as `\\x1b`), and cut when it is longer than a person reads. A
    server's error may be of any length and hold anything."""
    text = bounded(text, length)
    return text if text.isprintable() else _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def scrub(text: str) -> str:
    """A text without what has the form of a secret: passwords of addresses, values of ``password=`` and of ``"password":``, of statements
    that create users, credentials of HTTP."""
    if "://" in text:
        text = _IN_ADDRESS.sub(rf"\g<before>{HIDDEN}", text)
    if "=" in text:
        text = _ASSIGNED.sub(rf"\g<before>{HIDDEN}", text)
    if "'" in text or '"' in text:
        text = _IN_MAPPING.sub(rf"\g<before>{HIDDEN}\g<after>", text)
        text = _IN_STATEMENT.sub(rf"\g<before>{HIDDEN}", text)
    return _AUTHORIZATION.sub(_hide_credentials, text)


def _hide_credentials(found: re.Match[str]) -> str:
    """Words of a sentence ("basic authentication") stay."""
    word = found["secret"]
    return found[0] if word.isalpha() and (word.islower() or word.istitle()) else found["before"] + HIDDEN


def _parts(value: str, is_secret: bool) -> set[str]:
    """Return secrets within a value."""
    found = {match["secret"] for match in _IN_ADDRESS.finditer(value)}
    found |= {unquote(secret) for secret in found}
    for match in _ASSIGNED.finditer(value):
        quoted = match["within"] or match["quoted"]
        found |= {quoted, _ESCAPE.sub(r"\1", quoted)} if quoted else {match["single"] or match["secret"]}
    if is_secret and value.count(":") == 1 and "://" not in value:
        found.add(value.partition(":")[2])
    return found


def _custom_names(config: Mapping[str, str | None]) -> frozenset[str]:
    """Return the names that `SANITIZE_PATTERN` names; one that is no regex, or too slow a one, names none, and validation refuses it."""
    pattern = config.get(SANITIZE_PATTERN)
    try:
        return matching(pattern, config, SANITIZE_FLAGS) if pattern else frozenset()
    except ConfigError:
        return frozenset()


def is_secret_name(name: str) -> bool:
    """Return whether a property's name says that its value is a secret."""
    rest = _ALIAS.sub("", name, count=1)
    return _SECRET_NAME.search(rest) is not None and _CLASS_NAME.search(rest) is None


class Redactor:
    """A redactor that learns: secrets may become known while the process runs. Any thread may use it.

    What it learns has an owner, a connector's name, and is forgotten with it. Nothing that a request merely asks about is learnt: anybody
    could then have words hidden in the lines of all connectors.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owned: dict[str, dict[str, None]] = {}
        #: None until a text comes: many configurations may be learnt before the next line, and a pattern of all secrets costs milliseconds.
        self._redact: Callable[[str], str] | None = lambda text: text

    @property
    def secrets(self) -> frozenset[str]:
        """What is known."""
        with self._lock:
            return frozenset(secret for owned in self._owned.values() for secret in owned)

    def learn(self, secrets: Iterable[str], owner: str = "") -> None:
        """Hide these too, until `forget`; those of the process itself have the owner ""."""
        with self._lock:
            owned = self._owned.setdefault(owner, {})
            fresh = [secret for secret in secrets if len(secret.strip()) >= MIN_SHARED_LENGTH and secret not in owned]
            if not fresh:
                return
            owned.update(dict.fromkeys(fresh))
            for oldest in list(owned)[: max(0, len(owned) - _MAX_OWNED)]:
                del owned[oldest]
            self._redact = None

    def forget(self, owner: str) -> None:
        """The owner is gone."""
        with self._lock:
            if self._owned.pop(owner, None):
                self._redact = None

    def __call__(self, text: str) -> str:
        redact = self._redact
        if redact is None:
            with self._lock:
                redact = self._redact or redactor({secret for owned in self._owned.values() for secret in owned})
                self._redact = redact
        return redact(text)


#: What config providers gave this process. These values are secrets wherever they stand, whatever the property is called.
PROVIDED = Redactor()
