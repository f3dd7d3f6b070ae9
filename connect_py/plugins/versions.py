"""Compare versions of plugins with the ranges of a configuration (KIP-891; `PluginUtils.connectorVersionRequirement`). Pure.

Kafka Connect reads ranges with Maven's `VersionRange` and compares with its `ComparableVersion`, so ``[4.0,5.0)`` means here what it means
in a POM: ``[`` and ``]`` include the bound, ``(`` and ``)`` do not, a missing bound is open, and several ranges are joined by commas. A
version without brackets is wanted exactly; ``latest`` (any case) is no requirement.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import zip_longest

from connect_py.errors import BadRequestError, ConfigError

#: Qualifiers in the order of `ComparableVersion`; what is not among them comes after, in the order of texts.
_QUALIFIERS = ("alpha", "beta", "milestone", "rc", "snapshot", "", "sp")
_ALIASES = {"a": "alpha", "b": "beta", "m": "milestone", "cr": "rc", "ga": "", "final": "", "release": ""}
_RELEASE = _QUALIFIERS.index("")


class VersionNotFoundError(BadRequestError):
    """A plugin is installed, but not in a version that was asked for."""

    def __init__(self, plugin: str, wanted: VersionRange, available: str) -> None:
        super().__init__(f"Plugin {plugin} not found that matches the version range {wanted}, available versions: [{available}]")


@dataclass(frozen=True)
class _Bounds:
    low: str | None
    low_included: bool
    high: str | None
    high_included: bool

    def __str__(self) -> str:
        return f"{'[' if self.low_included else '('}{self.low or ''},{self.high or ''}{']' if self.high_included else ')'}"

    def contains(self, version: str) -> bool:
        if self.low is not None:
            order = compare_versions(version, self.low)
            if order < 0 or (order == 0 and not self.low_included):
                return False
        if self.high is not None:
            order = compare_versions(version, self.high)
            if order > 0 or (order == 0 and not self.high_included):
                return False
        return True


@dataclass(frozen=True)
class VersionRange:
    """One or more ranges, any of which will do. Its text is the normalised form that messages show."""

    parts: tuple[_Bounds, ...]

    def __str__(self) -> str:
        return ",".join(map(str, self.parts))

    def contains(self, version: str) -> bool:
        """Return whether the version satisfies what was asked for."""
        return any(part.contains(version) for part in self.parts)


def parse_requirement(text: str | None) -> VersionRange | None:
    """Return what a ``…plugin.version`` property asks for; None when anything will do.

    Raises:
        ConfigError: the range is malformed; the text is Maven's.
    """
    if text is None or text.strip().lower() == "latest":
        return None
    spec = text.strip()
    return _parse_range(spec if spec.startswith(("[", "(")) else f"[{spec}]")


def compare_versions(one: str, other: str) -> int:
    """Negative, zero or positive, as `one` is older, the same or newer; ``3.6.1.Final`` is ``3.6.1``."""
    for a, b in zip_longest(_items(one), _items(other)):
        order = _compare(a, b)
        if order:
            return order
    return 0


def _parse_range(spec: str) -> VersionRange:
    parts: list[_Bounds] = []
    rest = spec
    while rest.startswith(("[", "(")):
        end = re.search(r"[\])]", rest)
        if end is None:
            raise ConfigError(f"Unbounded range: {spec}")
        part = _parse_part(rest[: end.end()])
        if parts and (parts[-1].high is None or part.low is None or compare_versions(part.low, parts[-1].high) < 0):
            raise ConfigError(f"Ranges overlap: {spec}")
        parts.append(part)
        rest = rest[end.end() :].strip().removeprefix(",").strip()
    if rest:
        raise ConfigError(f"Only fully-qualified sets allowed in multiple set scenario: {spec}")
    return VersionRange(tuple(parts))


def _parse_part(spec: str) -> _Bounds:
    low_included, high_included = spec.startswith("["), spec.endswith("]")
    low, comma, high = (text.strip() for text in spec[1:-1].partition(","))
    if not comma:
        if not (low_included and high_included):
            raise ConfigError(f"Single version must be surrounded by []: {spec}")
        return _Bounds(low, True, low, True)
    if low and high and compare_versions(high, low) < 0:
        raise ConfigError(f"Range defies version ordering: {spec}")
    return _Bounds(low or None, low_included, high or None, high_included)


def _items(version: str) -> list[int | str]:
    found = re.findall(r"[0-9]+|[a-z]+", version.lower())
    return [int(item) if item.isdigit() else _ALIASES.get(item, item) for item in found]


def _compare(a: int | str | None, b: int | str | None) -> int:
    if isinstance(a, int) and isinstance(b, int):
        return a - b
    if a is None or b is None:  # what one lacks is a zero, or a release without qualifier
        item = b if a is None else a
        weight = item if isinstance(item, int) else _rank(item or "")[0] - _RELEASE
        return -weight if a is None else weight
    if isinstance(a, int) or isinstance(b, int):
        return 1 if isinstance(a, int) else -1
    ranks = _rank(a), _rank(b)
    return (ranks[0] > ranks[1]) - (ranks[0] < ranks[1])


def _rank(qualifier: str) -> tuple[int, str]:
    if qualifier in _QUALIFIERS:
        return _QUALIFIERS.index(qualifier), ""
    return len(_QUALIFIERS), qualifier
