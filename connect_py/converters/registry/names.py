"""Names that Avro and Protobuf accept (`AvroData.doScrubName`, `ProtobufData.doScrubName`)."""

from __future__ import annotations

import re
from urllib.parse import quote_plus

_VALID = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_VALID_WITHOUT_UNDERSCORE = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


def scrub_name(name: str, *, underscore_first: bool = True) -> str:
    """Return a simple name whose other characters are URL-encoded, with underscores for the percent signs; an x before a leading digit.

    Args:
        underscore_first: whether a name may begin with an underscore.
    """
    valid = _VALID if underscore_first else _VALID_WITHOUT_UNDERSCORE
    if not name or valid.fullmatch(name):
        return name
    encoded = quote_plus(name, safe="*").replace("~", "%7E")
    if encoded[0].isdigit() or (encoded[0] == "_" and not underscore_first):
        encoded = "x" + encoded
    return re.sub(r"[^A-Za-z0-9_]", "_", encoded)


def split_name(name: str, *, scrub: bool = False, underscore_first: bool = True) -> tuple[str | None, str]:
    """A full name as namespace and simple name; each part is scrubbed if that is asked for. Trailing dots are dropped, as Java does."""
    parts = name.rstrip(".").split(".") if name else [name]
    if scrub:
        parts = [scrub_name(part, underscore_first=underscore_first) for part in parts]
    return (".".join(parts[:-1]) if len(parts) > 1 else None), parts[-1]


def full_name(name: str, *, scrub: bool) -> str:
    """Return a full name, scrubbed part by part if that is asked for."""
    namespace, simple = split_name(name, scrub=scrub)
    return simple if namespace is None else f"{namespace}.{simple}"
