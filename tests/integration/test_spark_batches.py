"""What one batch may hold: many events of a key, chains of deletes and inserts, values that the source did not send, in every form."""

from __future__ import annotations

import base64
import datetime
from typing import Any

import pytest

from tests.fix_spark import INT, TEXT, Lake, Watched, event, iceberg_and_long_delta

pytestmark = [pytest.mark.services, pytest.mark.spark]

PLACEHOLDER = "__debezium_unavailable_value"
NUMBERS = list(PLACEHOLDER.encode())
UUIDS = ["b68a35a7-17ad-35b3-af2a-ae46edb4545a"]  # as PostgreSQL's connector has it (spec, postgres.md §12.4)


@iceberg_and_long_delta
@pytest.mark.parametrize("held", [5000, 0], ids=["by the driver", "by the executors"])
@pytest.mark.parametrize("delete_mode", ["hard", pytest.param("soft", marks=pytest.mark.long)])
def test_a_thousand_changes_of_a_key_and_chains_of_deletes_leave_what_came_last(lake: Lake, delete_mode: str, held: int) -> None:
    def of(op: str, key: int, number: int | None) -> tuple[bytes | None, bytes | None]:
        return event(op, key, {"n": number}, {"n": INT})

    topic = lake.topic("t")
    task = lake.start(lake.config(topic, tables_delete__mode=delete_mode), held_records=held)
    lake.produce(topic, [of("c", 5, 0), of("c", 6, 0)])
    lake.drain(task)
    tombstone = [(of("d", 3, None)[0], None)]
    lake.produce(topic, [of("u", 1, number) for number in range(1000)])
    lake.produce(topic, [of("d", 2, 1), of("c", 2, 2), of("d", 2, 2), of("c", 2, 3)])
    lake.produce(topic, [of("c", 3, 1), of("d", 3, 1), *tombstone, of("c", 3, 2), of("d", 3, 2), *tombstone])
    lake.produce(topic, [of("d", 5, 0), of("c", 7, 0), of("u", 6, 1), of("d", 6, 1), of("c", 6, 2)])  # the key 5 became 7
    assert lake.drain(task) == 1
    rows = {row["id"]: (row["n"], row.get("__deleted", False)) for row in lake.whole_rows("t")}
    left = {1: (999, False), 2: (3, False), 6: (2, False), 7: (0, False)}
    marked = {} if delete_mode == "hard" else {3: (rows[3][0], True), 5: (0, True)}
    assert rows == left | marked


@pytest.mark.parametrize("held", [5000, 0], ids=["by the driver", "by the executors"])
@pytest.mark.parametrize("lake", ["iceberg", "delta"], indirect=True)
def test_the_first_batch_of_a_new_table_is_inserted_and_holds_what_came_last_of_each_key(lake: Lake, held: int) -> None:
    def of(op: str, key: int, number: int | None) -> tuple[bytes | None, bytes | None]:
        return event(op, key, {"n": number}, {"n": INT})

    merges: list[str] = []

    def before(statement: str) -> None:
        merges.extend([statement] if statement.startswith("MERGE") else [])

    topic = lake.topic("t")
    task = lake.start(lake.config(topic), make_tables=Watched(before, by_statements=True), held_records=held)
    lake.produce(topic, [of("r", 1, 1), of("r", 2, 1), of("u", 1, 2), of("r", 3, 1), of("d", 3, 1), of("d", 4, 1)])
    lake.drain(task)
    assert {row["id"]: row["n"] for row in lake.rows("t")} == {1: 2, 2: 1}
    assert merges == []
    assert task.poll_interval_seconds < 1, "more may come soon, and nothing keeps it waiting"
    lake.produce(topic, [of("u", 2, 3), of("c", 3, 5)])
    lake.drain(task)
    assert {row["id"]: row["n"] for row in lake.rows("t")} == {1: 2, 2: 3, 3: 5}
    assert len(merges) == 1


def of_arrays(items: str, **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": {"type": items, "optional": True, **more}, "optional": True}


COLUMNS: dict[str, dict[str, Any]] = {
    "text": TEXT,
    "bytes": {"type": "bytes", "optional": True},
    "texts": of_arrays("string"),
    "uuids": of_arrays("string", name="io.debezium.data.Uuid"),
    "blobs": of_arrays("bytes"),
    "ints": of_arrays("int32"),
    "longs": of_arrays("int64"),
    "days": of_arrays("int32", name="io.debezium.time.Date"),
    "pairs": {"type": "map", "keys": {"type": "string"}, "values": TEXT, "optional": True},
}
ENCODED = base64.b64encode(PLACEHOLDER.encode()).decode()
UNSENT = {
    "text": PLACEHOLDER,
    "bytes": ENCODED,
    "texts": [PLACEHOLDER],
    "uuids": UUIDS,
    "blobs": [ENCODED],
    "ints": NUMBERS,
    "longs": NUMBERS,
    "days": NUMBERS,
    "pairs": {PLACEHOLDER: PLACEHOLDER},
}


def sent(number: int) -> dict[str, Any]:
    text = base64.b64encode(bytes([number])).decode()
    return {
        "text": str(number),
        "bytes": text,
        "texts": [str(number), PLACEHOLDER],
        "uuids": [f"00000000-0000-0000-0000-00000000000{number}"],
        "blobs": [text],
        "ints": [number],
        "longs": [number, None],
        "days": [number],
        "pairs": {"k": str(number), PLACEHOLDER: "x"},
    }


def stored(number: int) -> dict[str, Any]:
    day = datetime.date(1970, 1, 1) + datetime.timedelta(days=number)
    return sent(number) | {"bytes": bytes([number]), "blobs": [bytes([number])], "days": [day]}


@pytest.mark.parametrize("only", [None, pytest.param("ints", marks=pytest.mark.long)], ids=["all types", "one that only its type tells"])
def test_a_value_that_was_not_sent_is_never_stored_and_the_last_known_one_is_kept(lake: Lake, only: str | None) -> None:
    chosen = [only] if only else list(COLUMNS)
    columns = {name: COLUMNS[name] for name in chosen}

    def change(op: str, key: int, values: dict[str, Any]) -> tuple[bytes | None, bytes | None]:
        return event(op, key, {name: values[name] for name in chosen}, columns)

    topic = lake.topic("t")
    task = lake.start(lake.config(topic))
    lake.produce(topic, [change("c", key, sent(key)) for key in (1, 2, 3, 4)])
    lake.drain(task)
    lake.produce(topic, [change("u", 1, UNSENT)])  # alone
    lake.produce(topic, [change("u", 2, sent(7)), change("u", 2, UNSENT)])  # after a real value
    lake.produce(topic, [change("d", 3, sent(3)), change("c", 3, UNSENT)])  # after a delete, which no value outlives
    lake.produce(topic, [change("u", 9, UNSENT)])  # of a row that the table has not
    lake.drain(task)
    nothing = dict.fromkeys(chosen)
    expected = {1: stored(1), 2: stored(7), 3: nothing, 4: stored(4), 9: nothing}
    rows = {row["id"]: {name: row[name] for name in chosen} for row in lake.rows_by_spark(task, "t")}
    assert rows == {key: {name: row[name] for name in chosen} for key, row in expected.items()}


@pytest.mark.long
def test_json_that_was_not_sent_is_kept_as_a_variant_too(lake: Lake) -> None:
    topic = lake.topic("t")
    task = lake.start(lake.config(topic, json_mode="variant"))
    columns = {"j": {"type": "string", "optional": True, "name": "io.debezium.data.Json"}}
    lake.produce(topic, [event("c", 1, {"j": '{"a": [1]}'}, columns), event("c", 2, {"j": f'"{PLACEHOLDER}x"'}, columns)])
    lake.drain(task)
    lake.produce(topic, [event("u", 1, {"j": PLACEHOLDER}, columns), event("u", 3, {"j": PLACEHOLDER}, columns)])
    lake.drain(task)
    found = task.spark.sql(f"SELECT id, to_json(j) j FROM {lake.sql('t')} ORDER BY id").collect()
    assert [tuple(row) for row in found] == [(1, '{"a":[1]}'), (2, f'"{PLACEHOLDER}x"'), (3, None)]
