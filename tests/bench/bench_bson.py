"""Texts of BSON documents beside PyMongo's `json_util`: microseconds a document and a KiB, and the ratio. Both in turn, in one process.

    python tests/bench/bench_bson.py

`alike`: documents of one shape, as most of a collection are. `walked`: the same by the slow way, which documents of ever new shapes take.
"""

from __future__ import annotations

import datetime
import time
import timeit
from collections.abc import Callable
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
}
OPTIONS = json_util.LEGACY_JSON_OPTIONS.with_options(strict_number_long=True)


def micros(function: Callable[[], object], rounds: int = 5, seconds: float = 0.1) -> float:
    """CPU time: the best of some rounds of at least so many seconds."""
    timer = timeit.Timer(function, timer=time.process_time)
    number = max(1, int(seconds / max(timer.timeit(10) / 10, 1e-7)))
    return min(timer.repeat(rounds, number)) / number * 1e6


def main() -> None:
    print(f"{'':18}{'bytes':>7}{'alike':>9}{'per KiB':>9}{'walked':>9}{'json_util':>11}{'ratio':>7}")
    for name, document in DOCUMENTS.items():
        data = bson.encode(document)
        writer = bson_json(Form.STRICT)
        alike = micros(lambda: writer.document(data))  # noqa: B023  called at once
        walked = micros(lambda: writer.walk(data, 0, len(data), 0))  # noqa: B023
        theirs = micros(lambda: json_util.dumps(bson.decode(data), json_options=OPTIONS))  # noqa: B023
        print(f"{name:18}{len(data):7}{alike:9.1f}{alike * 1024 / len(data):9.1f}{walked:9.1f}{theirs:11.1f}{theirs / alike:7.1f}")


if __name__ == "__main__":
    main()
