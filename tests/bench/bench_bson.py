"""Texts of BSON documents beside PyMongo's `json_util`: microseconds a document and a KiB, and the ratio. Both in turn, in one process.

    python tests/bench/bench_bson.py

`ours`: documents of one shape, as most of a collection are, but for the last two cases. `walked`: the same by the slow way, which is what
documents take that no quick way takes. In the last two cases the 500 documents have fields of other names and types each; of the very last
ones only the slow way can write the last field, and the quick ways are tried in vain.
"""

from __future__ import annotations

import datetime
import random
import time
import timeit
from collections.abc import Callable
from functools import partial
from typing import Any

import bson
from bson import Int64, ObjectId, json_util

from connectors.mongodb.values.bson_forms import Form
from connectors.mongodb.values.bson_json import bson_json

NOON = datetime.datetime(2026, 7, 3, 17, 59, 45, 729000)
DOCUMENTS: dict[str, dict[str, Any]] = {
    "ten columns": {"_id": ObjectId(), **{f"c{n}": [f"text value {n}", n, n * 1.5, Int64(n), NOON][n % 5] for n in range(10)}},
    "customer": {
        "_id": ObjectId(),
        "name": "Mary Smith",
        "email": "mary@example.com",
        "age": 31,
        "balance": 1234.5,
        "visits": Int64(12345678901),
        "created": NOON,
        "active": True,
        "address": {"street": "12 Long Road", "city": "Perth", "zip": "6000"},
        "tags": ["a", "b", "c"],
        "scores": [1.5, 2.5, 3.5],
        "note": None,
    },
    "order with lines": {"_id": 1, "lines": [{"sku": f"sku-{n}", "count": n, "price": n * 2.5} for n in range(20)]},
    "long text": {"_id": 1, "text": "Long text of a page. " * 200},
    "text with escapes": {"_id": 1, "text": 'She said: "yes".\n' * 20, "note": "two\nlines"},
    "object, 3 levels": {
        "_id": ObjectId(),
        "customer": {
            "name": "Mary Smith",
            "address": {"street": "12 Long Road", "number": 12, "place": {"lat": -31.95, "long": 115.86, "name": "Perth"}},
            "active": True,
        },
    },
    "20 numbers": {"_id": ObjectId(), "values": [n * 1.25 for n in range(20)]},
    "20 texts": {"_id": ObjectId(), "values": [f"text {n}" for n in range(20)]},
    "20 ids": {"_id": ObjectId(), "values": [ObjectId() for _ in range(20)]},
}


def unlike(count: int, *, refused: bool) -> list[bytes]:
    """Documents that differ in the names and types of their fields, from one seed."""
    rng = random.Random(1)

    def value(depth: int) -> Any:
        kinds = [7, 2.5, "text value", Int64(12345678901), NOON, True, None, ObjectId()]
        if depth < 2 and rng.random() < 0.3:
            return document(depth + 1) if rng.random() < 0.5 else [document(depth + 1) for _ in range(rng.randrange(4))]
        return kinds[rng.randrange(len(kinds))]

    def document(depth: int) -> dict[str, Any]:
        return {f"field{rng.randrange(60)}": value(depth) for _ in range(rng.randrange(4, 10))}

    last = {"last": bson.Regex("^a", "i")} if refused else {}
    return [bson.encode({"_id": ObjectId(), **document(0), **last}) for _ in range(count)]


OPTIONS = json_util.LEGACY_JSON_OPTIONS.with_options(strict_number_long=True)


def micros(functions: list[Callable[[], object]], rounds: int = 20, seconds: float = 0.02) -> list[float]:
    """CPU time of each: the best of some rounds of at least that many seconds, in turn, for the same neighbours on the machine."""
    timers = [timeit.Timer(function, timer=time.process_time) for function in functions]
    for timer in timers:
        timer.timeit(10)  # makes the functions of shapes
    numbers = [max(1, int(seconds / max(timer.timeit(10) / 10, 1e-7))) for timer in timers]
    best = [float("inf")] * len(timers)
    for _ in range(rounds):
        best = [min(least, timer.timeit(number) / number) for least, timer, number in zip(best, timers, numbers, strict=True)]
    return [least * 1e6 for least in best]


def main() -> None:
    print(f"{'':20}{'bytes':>7}{'ours':>9}{'per KiB':>9}{'walked':>9}{'json_util':>11}{'ratio':>7}")
    cases = {name: [bson.encode(document)] for name, document in DOCUMENTS.items()}
    cases["never alike"] = unlike(500, refused=False)
    cases["never alike, refused"] = unlike(500, refused=True)
    for name, documents in cases.items():
        writer = bson_json(Form.STRICT)
        count, size = len(documents), sum(map(len, documents)) / len(documents)
        ways: tuple[Callable[[bytes], object], ...] = (
            writer.document,
            lambda data: writer.walk(data, 0, len(data), 0),  # noqa: B023  called at once
            lambda data: json_util.dumps(bson.decode(data), json_options=OPTIONS),
        )
        ours, walked, theirs = (found / count for found in micros([partial(every, way, documents) for way in ways]))
        print(f"{name:20}{size:7.0f}{ours:9.1f}{ours * 1024 / size:9.1f}{walked:9.1f}{theirs:11.1f}{theirs / ours:7.1f}")


def every(way: Callable[[bytes], object], documents: list[bytes]) -> None:
    for data in documents:
        way(data)


if __name__ == "__main__":
    main()
