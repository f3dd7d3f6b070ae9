"""Connection strings of MongoDB: whether they have the right form, and a form for people without their password. Pure; no driver."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import parse_qsl, unquote

_FORM = re.compile(
    r"(?P<scheme>mongodb(?:\+srv)?)://(?:(?P<user>[^/@]*)@)?(?P<hosts>[^/?@]+)(?:/(?P<database>[^?/]*))?(?:\?(?P<options>.*))?", re.DOTALL
)
_HOST = re.compile(r"(\[[0-9A-Fa-f:.%]+\]|[^:\[\],\s/]+)(:\d{1,5})?")
_SOCKET = re.compile(r"[^:,]+(%2[fF])[^:,]*\.sock")
MECHANISMS: Final = frozenset(
    {"GSSAPI", "PLAIN", "MONGODB-X509", "SCRAM-SHA-1", "SCRAM-SHA-256", "MONGODB-AWS", "MONGODB-OIDC", "MONGODB-CR"}
)


READ_PREFERENCES: Final = frozenset({"primary", "primarypreferred", "secondary", "secondarypreferred", "nearest"})


def connection_string_problem(text: str) -> str | None:
    """Return `Invalid connection string`, or None for one that has the form of one."""
    found = _FORM.fullmatch(text)
    return None if found is not None and _is_valid(found) else "Invalid connection string"


def _is_valid(found: re.Match[str]) -> bool:
    hosts = found["hosts"].split(",")
    if not all(_HOST.fullmatch(host) or _SOCKET.fullmatch(host) for host in hosts):
        return False
    ports = [
        int(host.rpartition(":")[2]) for host in hosts if not host.endswith("]") and host.rpartition(":")[1] and not _SOCKET.fullmatch(host)
    ]
    if any(not 0 < port < 65536 for port in ports):
        return False
    if found["scheme"] == "mongodb+srv" and (len(hosts) > 1 or ports):
        return False
    options = _options(found["options"])
    numbers = [value for name, value in options.items() if name.endswith(("timeoutms", "poolsize", "frequencyms"))]
    return (
        (found["user"] or "").count(":") <= 1
        and options.get("authmechanism", "PLAIN") in MECHANISMS
        and options.get("readpreference", "primary").lower() in READ_PREFERENCES
        and all(re.fullmatch(r"-?\d+", value) for value in numbers)
    )


def options_of(text: str) -> dict[str, str]:
    """Return the options of a valid connection string, names in lower case."""
    found = _FORM.fullmatch(text.strip())
    return _options(found["options"]) if found else {}


def has_user(text: str) -> bool:
    """Return whether a connection string names a user."""
    found = _FORM.fullmatch(text.strip())
    return bool(found and found["user"])


def _options(text: str | None) -> dict[str, str]:
    return {name.lower(): unquote(value) for name, value in parse_qsl((text or "").replace(";", "&"), keep_blank_values=True)}


def masked(text: str) -> str:
    """Return a connection string that a log may show: the user's part and what options hold of secrets as asterisks."""
    shown = re.sub(r"(?<=://)[^/@]*@", "***:***@", text, count=1)
    return re.sub(r"(?i)((?:password|token|secret|properties)[^=&]*=)[^&]*", r"\1***", shown)
