"""Rules that change how single columns look: cut, mask, hash, or name their source type (`ColumnMappers.java`).

A rule names columns by Java regexes over `schema.table.column`. The first that matches decides alone, in this order: truncate, mask,
propagate, hash, hash.v2. Keys are not touched. Pure: a plan in, a plan out.
"""

from __future__ import annotations

import hashlib
import json
import re
from binascii import a2b_base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from connect_py.converters.json_write import WriteOptions, encode_value, quote
from connect_py.data import Type
from connect_py.errors import ConfigError
from connectors.engine.encode.plan import ColumnPlan, Convert
from connectors.engine.encode.values import base64_of_bytes
from connectors.engine.relational.tables import matches_any, parse_regexes

#: The longest text that Java's serialisation writes with two bytes of length.
_SHORT_UTF = 0xFFFF


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """What rules ask of a column.

    Attributes:
        id: `schema.table.column`.
        type_id: `schema.table.typename`, for `datatype.propagate.source.type`.
        name: of the column.
        type_name: of its type, as propagated.
        length: in characters, bits or digits; None for unknown.
        scale: digits of a fraction; None for unknown.
        characters: whether JDBC has a character type for it: masks and hashes leave others alone.
        comment: propagated where there is one.
    """

    id: str
    type_id: str
    name: str
    type_name: str
    length: int | None
    scale: int | None
    characters: bool
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class _Rule:
    patterns: tuple[re.Pattern[str], ...]
    change: Callable[[ColumnPlan, ColumnFacts], ColumnPlan]
    by_type: bool = False

    def matches(self, column: ColumnFacts) -> bool:
        return matches_any(self.patterns, column.type_id if self.by_type else column.id)


_TRUNCATE = re.compile(r"column\.truncate\.to\.(\d+)\.chars")
_MASK = re.compile(r"column\.mask\.with\.(\d+)\.chars")
_HASH = re.compile(r"column\.mask\.hash\.(?!v2\.)([^.]+)\.with\.salt\.(.+)")
_HASH_2 = re.compile(r"column\.mask\.hash\.v2\.([^.]+)\.with\.salt\.(.+)")


@dataclass(frozen=True)
class ColumnRules:
    """The rules of one connector, in the order in which they are asked."""

    rules: tuple[_Rule, ...] = ()

    @classmethod
    def parse(cls, config: Mapping[str, str]) -> ColumnRules:
        """Take a connector's properties.

        Raises:
            ConfigError: a regex is malformed, or there is no such hash algorithm.
        """
        rules = [
            *(_rule(text, _truncate(int(found[1]))) for found, text in _given(config, _TRUNCATE)),
            *(_rule(text, _mask(int(found[1]))) for found, text in _given(config, _MASK)),
            *(_rule(text, _propagate) for text in [config.get("column.propagate.source.type")] if text),
            *(_rule(text, _propagate, by_type=True) for text in [config.get("datatype.propagate.source.type")] if text),
            *(_rule(text, _hash(found[1], found[2].encode(), java_serialised)) for found, text in _given(config, _HASH)),
            *(_rule(text, _hash(found[1], found[2].encode(), str.encode)) for found, text in _given(config, _HASH_2)),
        ]
        return cls(tuple(rules))

    def apply(self, plan: ColumnPlan, column: ColumnFacts) -> ColumnPlan:
        """Return the plan of a column in rows; keys keep the one given."""
        for rule in self.rules:
            if rule.matches(column):
                return replace(rule.change(plan, column), in_key=plan)
        return plan


def _given(config: Mapping[str, str], name: re.Pattern[str]) -> list[tuple[re.Match[str], str]]:
    matches = ((name.fullmatch(key), text) for key, text in config.items())
    return [(found, text) for found, text in matches if found is not None and text]


def _rule(text: str, change: Callable[[ColumnPlan, ColumnFacts], ColumnPlan], *, by_type: bool = False) -> _Rule:
    return _Rule(tuple(parse_regexes(text)), change, by_type)


def _with_parameters(plan: ColumnPlan, more: Mapping[str, str]) -> ColumnPlan:
    return replace(plan, schema=replace(plan.schema, parameters=(*plan.schema.parameters, *more.items())))


# -- truncate ------------------------------------------------------------------------------------------------------------------------


def _truncate(length: int) -> Callable[[ColumnPlan, ColumnFacts], ColumnPlan]:
    def change(plan: ColumnPlan, column: ColumnFacts) -> ColumnPlan:
        if column.length is not None and column.length <= length:
            return plan
        marked = _with_parameters(plan, {"truncateLength": str(length)})
        cut = _cutter(plan, length)
        return marked if cut is None else _mapped(marked, cut)

    return change


def _cutter(plan: ColumnPlan, length: int) -> Convert | None:
    """Return the function from a value's JSON text to that of its start; None for values that have none."""
    if plan.schema.type is Type.STRING:
        return lambda text: text if text == "null" else quote(_first_units(json.loads(text), length))
    if plan.schema.type is Type.BYTES and plan.schema.name is None:
        return lambda text: text if text == "null" else f'"{base64_of_bytes(a2b_base64(text)[:length])}"'
    return None


def _first_units(text: str, length: int) -> str:
    """Return the first UTF-16 units, as Java counts characters; half of a pair is shown as Java shows it, as a question mark."""
    if len(text) <= length // 2:
        return text
    return text.encode("utf-16-le")[: 2 * length].decode("utf-16-le", "surrogatepass")


def _mapped(plan: ColumnPlan, change: Convert) -> ColumnPlan:
    """Return the plan with each of its JSON texts changed."""
    before = plan.convert or (quote if plan.textual else str)
    snapshot = plan.snapshot
    default = plan.schema.default
    # the reference replaces NULL by a required column's default before it asks the rule, an optional one's after
    filled = "" if plan.schema.optional or default is None else change(encode_value(plan.schema, default, WriteOptions()).decode())

    def convert(text: str) -> str:
        return change(before(text))

    return replace(
        plan,
        convert=convert,
        quick="",
        textual=False,
        stored=(),
        snapshot=None if snapshot is None else lambda text: change(snapshot(text)),
        quick_copy=None if snapshot is None else "",
        fallback=change(plan.fallback),
        null=filled,
        placeholder=change(plan.placeholder),
    )


# -- mask and hash -------------------------------------------------------------------------------------------------------------------


def _mask(length: int) -> Callable[[ColumnPlan, ColumnFacts], ColumnPlan]:
    text = f'"{"*" * length}"'

    def change(plan: ColumnPlan, column: ColumnFacts) -> ColumnPlan:
        marked = _with_parameters(plan, {"masked": "true"})
        if not column.characters:
            return marked
        return replace(_mapped(marked, lambda _: text), constant=text, placeholder=text, fallback=text, missing_in_stream=False)

    return change


def _hash(algorithm: str, salt: bytes, octets_of: Callable[[str], bytes]) -> Callable[[ColumnPlan, ColumnFacts], ColumnPlan]:
    name = algorithm.lower().replace("sha-", "sha") if not algorithm.lower().startswith("sha3-") else algorithm.lower().replace("-", "_")
    if name not in hashlib.algorithms_available:
        raise ConfigError(f"There is no hash algorithm {algorithm}; SHA-256 is one")

    def hashed(text: str) -> str:
        return hashlib.new(name, salt + octets_of(text), usedforsecurity=False).hexdigest()

    def change(plan: ColumnPlan, column: ColumnFacts) -> ColumnPlan:
        marked = _with_parameters(plan, {"masked": "true"})
        if not column.characters:
            return marked
        limit = column.length or None
        return _mapped(marked, lambda text: text if text == "null" else f'"{hashed(json.loads(text))[:limit]}"')

    return change


def java_serialised(text: str) -> bytes:
    """Return a `java.lang.String` as `ObjectOutputStream.writeObject` writes it: that is what the first form of hashes digests."""
    data = _modified_utf8(text)
    if len(data) <= _SHORT_UTF:
        return b"\xac\xed\x00\x05t" + len(data).to_bytes(2, "big") + data
    return b"\xac\xed\x00\x05|" + len(data).to_bytes(8, "big") + data


def _modified_utf8(text: str) -> bytes:
    """Return UTF-8 of the UTF-16 units, with NUL in two bytes (DataOutput.writeUTF)."""
    units = text.encode("utf-16-be", "surrogatepass")
    characters = "".join(chr(units[at] << 8 | units[at + 1]) for at in range(0, len(units), 2))
    return characters.encode("utf-8", "surrogatepass").replace(b"\0", b"\xc0\x80")


# -- propagate -----------------------------------------------------------------------------------------------------------------------


def _propagate(plan: ColumnPlan, column: ColumnFacts) -> ColumnPlan:
    prefix = "__debezium.source.column."
    more = {f"{prefix}type": column.type_name.upper()}
    if column.length is not None:
        more[f"{prefix}length"] = str(column.length)
    if column.scale is not None:
        more[f"{prefix}scale"] = str(column.scale)
    if column.comment:
        more[f"{prefix}comment"] = column.comment
    more[f"{prefix}name"] = column.name
    return _with_parameters(plan, more)
