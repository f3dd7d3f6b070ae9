"""What you need to look at topics, and to change rows where you have no client of the database.

    python docs/tutorial/client.py topic TOPIC             a line for each record: key, operation, row
    python docs/tutorial/client.py last TOPIC              the last change event, whole
    python docs/tutorial/client.py count TOPIC             how many records, and how many rows they add up to
    python docs/tutorial/client.py write N                 insert N customers into PostgreSQL, one each 10 ms
    python docs/tutorial/client.py mysql STATEMENT         run a statement in MySQL
    python docs/tutorial/client.py mongodb COLLECTION METHOD [JSON ...]     call a method of pymongo's collection

Addresses are those that servers.py wrote: $KAFKA, $PGHOST and so on.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, TopicPartition


def records(topic: str) -> list[Message]:
    """Return what is in the topic now; nothing when it does not exist."""
    consumer = Consumer({"bootstrap.servers": os.environ["KAFKA"], "group.id": "tutorial", "enable.auto.commit": False})
    found: list[Message] = []
    try:
        for number in consumer.list_topics(topic, timeout=20).topics[topic].partitions:
            end = consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=20)[1]
            consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING)])
            read = 0
            while read < end:
                batch = [message for message in consumer.consume(1000, 0.5) if message.error() is None]
                found += batch
                read = max([read, *(message.offset() + 1 for message in batch)])
    finally:
        consumer.close()
    return found


def payload(data: bytes | None) -> Any:
    """Return a key or a value without its schema."""
    parsed = json.loads(data) if data else None
    return parsed["payload"] if isinstance(parsed, dict) and "payload" in parsed else parsed


def key(message: Message) -> Any:
    """Return the key's only field."""
    return next(iter(payload(message.key()).values()))


def show_topic(topic: str) -> None:
    """Print a line for each record."""
    for message in records(topic):
        event = payload(message.value())
        if event is None:
            print(key(message), "tombstone")
        else:
            row = event["after"] if event["after"] is not None else event["before"]
            print(key(message), event["op"], row if isinstance(row, str) else json.dumps(row))


def show_last(topic: str) -> None:
    """Print the last record that has a value."""
    print(json.dumps([event for message in records(topic) if (event := payload(message.value()))][-1], indent=2))


def count(topic: str) -> None:
    """Print how many records the topic has, and to how many rows they add up."""
    found = records(topic)
    rows = {key(message): payload(message.value()) for message in found}
    print(f"{len(found)} records, {len([row for row in rows.values() if row and row['op'] != 'd'])} rows")


def write(number: int) -> None:
    """Insert customers into PostgreSQL."""
    import psycopg

    with psycopg.connect(autocommit=True) as connection:
        for made in range(number):
            names = ("Customer", str(made), f"customer{made}@example.com")
            connection.execute("INSERT INTO inventory.customers (first_name, last_name, email) VALUES (%s, %s, %s)", names)
            time.sleep(0.01)  # noqa: TID251 - a load by the clock
    print(f"{number} rows written")


def run_in_mysql(statement: str) -> None:
    """Run a statement and print its rows."""
    import pymysql

    login = {"user": "debezium", "password": "dbz", "database": "inventory"}
    address = {"host": os.environ["MYSQL_HOST"], "port": int(os.environ["MYSQL_PORT"])}
    with pymysql.connect(**address, **login, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(statement)
        for row in cursor.fetchall():
            print(*row, sep="\t")


def call_mongodb(collection: str, method: str, arguments: list[str]) -> None:
    """Call a method and print what it returns."""
    import pymongo

    with pymongo.MongoClient[dict[str, Any]](os.environ["MONGODB"]) as client:
        answer = getattr(client.inventory[collection], method)(*map(json.loads, arguments))
        print(getattr(answer, "raw_result", None) or answer)


def main(arguments: list[str]) -> int:
    """Run the command; returns the exit code."""
    match arguments:
        case ["topic", topic]:
            show_topic(topic)
        case ["last", topic]:
            show_last(topic)
        case ["count", topic]:
            count(topic)
        case ["write", number]:
            write(int(number))
        case ["mysql", statement]:
            run_in_mysql(statement)
        case ["mongodb", collection, method, *rest]:
            call_mongodb(collection, method, rest)
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
