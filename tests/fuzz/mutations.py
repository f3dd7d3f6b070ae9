"""Damage to bytes that a decoder reads: bits, lengths, slices that are cut out, doubled or moved, numbers and texts of JSON."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

#: What lengths, counts and numbers are damaged to, in addition to what is left of the bytes.
_NUMBERS = (0, 1, -1, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 2**63 - 1, 2**63, 2**64 - 1)

_TEXTS = (
    "",
    "\0",
    "\ud800",
    "é\u2028",
    "\U0001f600",
    "x" * 3000,
    "NaN",
    "1e999",
    "1e999999999",
    "-0",
    "(" * 200,
    "[[",
    "%s",
    "../",
    "null",
    "\\",
    '"',
    "`",
)


def mutated(chance: random.Random, seeds: Sequence[bytes], *, is_json: bool = False) -> bytes:
    """Return one of the seeds with one to four kinds of damage."""
    data = chance.choice(seeds)
    if is_json and chance.random() < 0.6:
        return _of_json(chance, data)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 4))):
        data = chance.choice(_DAMAGE)(chance, data, seeds)
    return data


def _at(chance: random.Random, data: bytes) -> int:
    return chance.randrange(len(data) + 1)


def _bits(chance: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    found = bytearray(data)
    for _ in range(chance.randrange(1, 5) if found else 0):
        found[chance.randrange(len(found))] ^= 1 << chance.randrange(8)
    return bytes(found)


def _octets(chance: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    found = bytearray(data)
    for _ in range(chance.randrange(1, 5) if found else 0):
        found[chance.randrange(len(found))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
    return bytes(found)


def _shorter(chance: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    return data[: _at(chance, data)]


def _cut_out(chance: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    at = _at(chance, data)
    return data[:at] + data[at + chance.choice((1, 2, 4, 8, chance.randrange(1, 40))) :]


def _doubled(chance: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    at = _at(chance, data)
    piece = data[at : at + chance.randrange(1, 40)]
    return data[:at] + piece * chance.choice((2, 2, 2, 3, 50)) + data[at + len(piece) :]


def _filled(chance: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    at = _at(chance, data)
    return data[:at] + chance.randbytes(chance.choice((1, 1, 2, 4, 8, 30))) + data[at:]


def _number(chance: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """Any place may hold a length: of one, two, three, four or eight bytes, in either order."""
    size = chance.choice((1, 2, 3, 4, 4, 8))
    at = _at(chance, data)
    left = len(data) - at - size
    value = chance.choice((*_NUMBERS, left - 1, left, left + 1, -left))
    octets = (value % (1 << 8 * size)).to_bytes(size, chance.choice(("big", "little")))
    return data[:at] + octets + data[at + size :]


def _spliced(chance: random.Random, data: bytes, seeds: Sequence[bytes]) -> bytes:
    other = chance.choice(seeds)
    return data[: _at(chance, data)] + other[_at(chance, other) :]


def _digits(chance: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """A number that is written out becomes another one."""
    at = next((index for index in range(_at(chance, data), len(data)) if 0x30 <= data[index] <= 0x39), None)
    if at is None:
        return data
    number = chance.choice((b"-1", b"0", b"99999999999999999999", b"1e999", b"1e999999999", b"0.5", b"9" * 400, b"", b"00", "٣".encode()))
    return data[:at] + number + data[at + 1 :]


def _word(chance: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    at = _at(chance, data)
    return data[:at] + chance.choice(_TEXTS).encode("utf-8", "surrogatepass") + data[at:]


_DAMAGE: tuple[Callable[[random.Random, bytes, Sequence[bytes]], bytes], ...] = (
    _bits,
    _octets,
    _shorter,
    _cut_out,
    _doubled,
    _filled,
    _number,
    _number,
    _spliced,
    _digits,
    _word,
)


def _of_json(chance: random.Random, data: bytes) -> bytes:
    """Another value at some place of a JSON text; the text stays JSON."""
    try:
        tree = json.loads(data)
    except ValueError:
        return data[: _at(chance, data)]
    try:
        for _ in range(chance.choice((1, 1, 2, 3))):
            tree = _changed(chance, tree)
        return json.dumps(tree, ensure_ascii=chance.random() < 0.9).encode("utf-8", "surrogatepass")
    except RecursionError:  # nested twice
        return data


def _changed(chance: random.Random, tree: Any) -> Any:
    """Go down some way, and put something else there."""
    if isinstance(tree, dict) and tree and chance.random() < 0.85:
        name = chance.choice(list(tree))
        if chance.random() < 0.1:
            return {key: value for key, value in tree.items() if key != name}
        if chance.random() < 0.05:
            return {(chance.choice(_TEXTS) if key == name else key): value for key, value in tree.items()}
        return {**tree, name: _changed(chance, tree[name])}
    if isinstance(tree, list) and tree and chance.random() < 0.85:
        at = chance.randrange(len(tree))
        if chance.random() < 0.1:
            return [*tree[:at], *tree[at:], tree[at]]
        return [*tree[:at], _changed(chance, tree[at]), *tree[at + 1 :]]
    return _value(chance, tree)


def _value(chance: random.Random, old: Any) -> Any:
    if chance.random() < 0.02:
        deep: Any = old
        for _ in range(chance.choice((70, 300, 900))):
            deep = [deep] if chance.random() < 0.5 else {"a": deep}
        return deep
    return chance.choice(
        (
            None,
            True,
            False,
            0,
            -1,
            1.5,
            1e308,
            float("nan"),
            float("-inf"),
            2**31,
            2**63,
            -(2**63) - 1,
            10**400,
            "",
            str(old),
            [],
            {},
            [old],
            {"a": old},
            chance.choice(_TEXTS),
            -old if isinstance(old, int) else old,
        )
    )
