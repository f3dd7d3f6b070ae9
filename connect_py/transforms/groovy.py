"""What common conditions in Groovy and JavaScript are in CEL, for messages to people who bring their configurations along.

Texts are only shown, never run; whoever reads one decides.
"""

from __future__ import annotations

import re

_REWRITES = (
    (re.compile(r"==="), "=="),
    (re.compile(r"!=="), "!="),
    (re.compile(r"\.get(?:String|Int8|Int16|Int32|Int64|Boolean|Float32|Float64|Struct)?\(\s*(['\"])(\w+)\1\s*\)"), r".\2"),
    (re.compile(r"(['\"][^'\"]*['\"])\.equals\(\s*([\w.]+)\s*\)"), r"\2 == \1"),
    (re.compile(r"([\w.]+)\.equals\(\s*([^()]+?)\s*\)"), r"\1 == \2"),
    (re.compile(r"([\w.]+)\s*==~\s*/((?:\\.|[^/])*)/"), r"\1.matches('^(?:\2)$')"),
    (re.compile(r"([\w.]+)\s*=~\s*/((?:\\.|[^/])*)/"), r"\1.matches('\2')"),
    (re.compile(r"\.(?:length\(\)|length\b(?!\()|size\(\))"), ".size()"),
    (re.compile(r"\.toLowerCase\(\)"), ".lowerAscii()"),
    (re.compile(r"\.toUpperCase\(\)"), ".upperAscii()"),
    (re.compile(r"\breturn\s+"), ""),
    (re.compile(r";\s*\Z"), ""),
)
_SAFE = re.compile(r"((?:\w+\.)*\w+)\?\.((?:\w+\??\.)*\w+)((?:\s*(?:==|!=|<=?|>=?)\s*(?:'[^']*'|\"[^\"]*\"|[\w.-]+)))?")


def to_cel(script: str) -> str:
    """A script with what differs rewritten: `?.`, `.equals(…)`, `=~ /…/`, `===`, `.getString('a')`, `.length()`."""
    text = script.strip()
    for _ in range(script.count("?.")):
        text = _SAFE.sub(_guarded, text, count=1)
    for pattern, replacement in _REWRITES:
        text = pattern.sub(replacement, text)
    return text


def _guarded(found: re.Match[str]) -> str:
    """`a?.b == 1` as `(a != null && a.b == 1)`."""
    return f"({found[1]} != null && {found[1]}.{found[2]}{found[3] or ''})"
