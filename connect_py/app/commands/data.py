"""`snapshot`, `compact`, `notifications` and `tail`: a connector's data.

The first three need this project's worker. `tail` reads the topics from Kafka itself, since no worker's REST API has records: it needs the
brokers' address, and the worker's properties where the connector relies on the worker's converters.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from connect_py.app.client.events import Event, event_of, is_wanted, plain, start_milliseconds, undecoded
from connect_py.app.client.rest import ConnectClient
from connect_py.app.client.text import CYAN, GREEN, RED, YELLOW, coloured, shortened
from connect_py.app.commands.command import OK, WRONG, Command
from connect_py.app.commands.connection import (
    add_broker_options,
    add_worker_options,
    broker_properties,
    client_of,
    say,
    say_json,
    say_note,
    shows_colour,
    width,
)
from connect_py.errors import ConfigError, ConnectError

# -- snapshot ------------------------------------------------------------------------------------------------------------------------

_FOLLOW_SECONDS = 0.5


def _snapshot_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="a running source connector")
    parser.add_argument(
        "--tables", required=True, metavar="TABLES", help="schema.table or database.table, or regexes of these; separated by commas"
    )
    parser.add_argument(
        "--where",
        action="append",
        default=[],
        metavar="CONDITION",
        help="rows of the table to read, in SQL; of one of several tables as TABLE:CONDITION",
    )
    parser.add_argument(
        "--blocking",
        action="store_true",
        help="pause streaming and read at once, not in chunks between changes; --where is a whole SELECT then",
    )
    parser.add_argument("--follow", action="store_true", help="show its progress until it ends; Ctrl-C leaves it running")
    add_worker_options(parser)


def snapshot_data(tables: Sequence[str], conditions: Sequence[str], *, blocking: bool) -> dict[str, Any]:
    """Return the data of a signal ``execute-snapshot``. Raises ConfigError when a condition names no table."""
    data: dict[str, Any] = {"data-collections": list(tables), "type": "blocking" if blocking else "incremental"}
    filters = []
    for condition in conditions:
        table, colon, expression = condition.partition(":")
        if colon and table.strip() in tables:
            filters.append({"data-collection": table.strip(), "filter": expression.strip()})
        elif len(tables) == 1:
            filters.append({"data-collection": tables[0], "filter": condition.strip()})
        else:
            raise ConfigError(f"--where {condition} does not say of which table: write TABLE:CONDITION")
    return {**data, "additional-conditions": filters} if filters else data


def _snapshot(chosen: argparse.Namespace) -> int:
    client, tables = client_of(chosen), _tables_of(chosen)
    data = snapshot_data(tables, chosen.where, blocking=chosen.blocking)
    what = f"a snapshot of {', '.join(tables)} was asked for"
    return _ask(client, chosen, "execute-snapshot", data, what, _follow_snapshot, "the snapshot continues")


def _tables_of(chosen: argparse.Namespace) -> list[str]:
    """Return what --tables lists. Raises ConfigError: nothing."""
    tables = [table.strip() for table in chosen.tables.split(",") if table.strip()]
    if not tables:
        raise ConfigError("--tables names no table")
    return tables


#: Shows notifications that follow a number until what a signal has begun is over; returns the exit code.
_Following = Callable[[ConnectClient, argparse.Namespace, int | None, str], int]


def _ask(
    client: ConnectClient,
    chosen: argparse.Namespace,
    kind: str,
    data: Mapping[str, Any],
    what: str,
    follow: _Following,
    remains: str,
) -> int:
    """Send a signal, and with --follow show what comes of it.

    Args:
        what: was asked for, in words.
        remains: what is said when the user ends the showing.
    """
    earlier = client.notifications(chosen.name)
    since = max((int(note["sequence"]) for note in earlier), default=None)
    signal = client.send_signal(chosen.name, kind, data)
    if not chosen.follow:
        if chosen.json:
            say_json({"id": signal})
        else:
            say([f"{chosen.name}: {what} (id {signal})"])
        return OK
    try:
        return follow(client, chosen, since, signal)
    except KeyboardInterrupt:
        say_note(remains)
        raise


#: Notifications that end a snapshot.
_ENDS = {"COMPLETED": OK, "ABORTED": WRONG, "SKIPPED": WRONG}
#: Ends of a table that are no failure.
_GOOD = ("SUCCEEDED", "EMPTY")


def _notes(client: ConnectClient, chosen: argparse.Namespace, since: int | None, about: str) -> Iterator[Mapping[str, Any]]:
    """Yield notifications as they come, without end, and show those whose aggregate type has a word."""
    while True:
        for note in client.notifications(chosen.name, since):
            since = int(note["sequence"])
            if about not in str(note["aggregate_type"]):
                continue
            _print_note(chosen, note)
            yield note
        time.sleep(_FOLLOW_SECONDS)


def _print_note(chosen: argparse.Namespace, note: Mapping[str, Any]) -> None:
    if chosen.json:
        say_json(note)
    else:
        say([_note_line(note)])


def _follow_snapshot(client: ConnectClient, chosen: argparse.Namespace, since: int | None, signal: str) -> int:
    code = OK
    for note in _notes(client, chosen, since, "Snapshot"):
        data = note.get("additional_data") or {}
        if note["type"] == "TABLE_SCAN_COMPLETED" and data.get("status") not in _GOOD:
            code = WRONG
        if note["type"] in _ENDS:
            return max(code, _ENDS[note["type"]])
    return code


def _note_line(note: Mapping[str, Any]) -> str:
    data = note.get("additional_data") or {}
    moment = time.strftime("%H:%M:%S", time.localtime(int(note["timestamp"]) / 1000))
    names = ("scanned_collection", "current_collection_in_progress", "data_collections", "table", "tables")
    table = next((str(data[name]) for name in names if data.get(name)), "")
    more = [data.get("status"), f"{data['total_rows_scanned']} rows" if data.get("total_rows_scanned") else None]
    if note["type"] == "IN_PROGRESS" and data.get("last_processed_key"):
        more.append(f"key {data['last_processed_key']} of {data.get('maximum_key')}")
    if "files_before" in data:
        more.append(f"{data['files_before']} files are now {data.get('files_after')}, {data.get('seconds')} s")
    more.append(data.get("error"))
    return shortened(" ".join(filter(None, (moment, str(note["type"]).lower().replace("_", " "), table, *more))), width())


# -- compact -------------------------------------------------------------------------------------------------------------------------


def _compact_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="a running lakehouse sink")
    parser.add_argument("--tables", metavar="TABLES", help="names of its tables, or regexes of these; separated by commas (all)")
    parser.add_argument("--follow", action="store_true", help="show each table until the end; Ctrl-C leaves it running")
    add_worker_options(parser)


def _compact(chosen: argparse.Namespace) -> int:
    data = {} if chosen.tables is None else {"tables": _tables_of(chosen)}
    what = f"compaction of {', '.join(data['tables']) if data else 'all tables'} was asked for"
    return _ask(client_of(chosen), chosen, "compact", data, what, _follow_compaction, "the compaction continues")


def _follow_compaction(client: ConnectClient, chosen: argparse.Namespace, since: int | None, signal: str) -> int:
    code = OK
    for note in _notes(client, chosen, since, "Table Maintenance"):
        if note["type"] == "TABLE_FAILED" and note["id"] == signal:
            code = WRONG
        if note["type"] == "COMPLETED" and note["id"] == signal:
            break
    return code


# -- notifications -------------------------------------------------------------------------------------------------------------------


def _notifications_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the connector")
    parser.add_argument("--follow", action="store_true", help="show those that come, too, until Ctrl-C")
    parser.add_argument("-n", "--count", type=int, default=20, metavar="N", help="only the last N of those that are there (20)")
    add_worker_options(parser)


def _notifications(chosen: argparse.Namespace) -> int:
    if chosen.count < 0:
        raise ConfigError("--count needs a number of 0 or more")
    client = client_of(chosen)
    known = client.notifications(chosen.name)
    for note in known[max(0, len(known) - chosen.count) :]:
        _print_note(chosen, note)
    if not known and not chosen.follow:
        say_note(f"{chosen.name} has sent no notifications since its worker's start")
    if chosen.follow:
        for _ in _notes(client, chosen, int(known[-1]["sequence"]) if known else None, ""):
            pass
    return OK


# -- tail ----------------------------------------------------------------------------------------------------------------------------

#: How often the worker is asked for topics that are new.
_TOPICS_SECONDS = 5.0
#: Time for a first record when everything that is there is read: then a command with --count may say that there is nothing.
_POLL_SECONDS = 0.5

_OPS = {"c": GREEN, "r": GREEN, "u": YELLOW, "d": RED, "t": RED, "x": RED}


def _tail_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the connector")
    parser.add_argument(
        "--from",
        dest="since",
        default="now",
        metavar="WHEN",
        help="now, earliest, 10m (s, m, h, d), or a time such as 2026-01-31T10:00:00 (now)",
    )
    parser.add_argument(
        "--op", metavar="OPS", help="only these, separated by commas: c, u, d, r, t, m, x (tombstone), hb (heartbeat), tx, ddl, +"
    )
    parser.add_argument(
        "--table", action="append", default=[], metavar="TABLE", help="only this table, with or without its schema; repeatable"
    )
    parser.add_argument("-n", "--count", type=int, metavar="N", help="end after N lines")
    parser.add_argument("--wide", action="store_true", help="do not cut lines at the terminal's width")
    add_broker_options(parser, "the worker's file: brokers, their security, and converters of connectors that name none")
    add_worker_options(parser)


def _tail(chosen: argparse.Namespace) -> int:
    from connect_py.kafka.topic_reader import TopicReader

    if chosen.count is not None and chosen.count < 1:
        raise ConfigError("--count needs a number of 1 or more")
    ops = [op.strip() for op in (chosen.op or "").split(",") if op.strip()]
    since = start_milliseconds(chosen.since, int(time.time() * 1000))
    client = client_of(chosen)
    config = client.config(chosen.name)
    worker, properties = broker_properties(chosen, "tail")
    decode = _decoder(worker, config)
    reader = TopicReader(properties, since=since, from_end=chosen.since == "now")
    left = chosen.count
    try:
        next_look = 0.0
        while True:
            if time.monotonic() >= next_look:
                reader.add(_topics(client, chosen.name, config))
                next_look = time.monotonic() + _TOPICS_SECONDS
            for record in reader.poll(_POLL_SECONDS):
                event = decode(record)
                if not is_wanted(event, ops, chosen.table):
                    continue
                _print_event(chosen, event)
                left = left - 1 if left is not None else None
                if left == 0:
                    return OK
    finally:
        reader.close()


def _topics(client: ConnectClient, name: str, config: Mapping[str, str]) -> list[str]:
    """Return the topics in use; of a sink those that it names too, before it has read the first record."""
    named = [topic.strip() for topic in config.get("topics", "").split(",") if topic.strip()]
    return sorted({*client.topics(name), *named})


def _print_event(chosen: argparse.Namespace, event: Event) -> None:
    if chosen.json:
        say_json(event.as_json())
        return
    line = shortened(event.line(), 0 if chosen.wide else width())
    if shows_colour():
        time_, op, rest = line.partition(f" {event.op} ")
        line = f"{coloured(time_, CYAN, True)} {coloured(event.op, _OPS.get(event.op, CYAN), True)} {rest}" if op else line
    say([line])


_Decode = Callable[[Any], Event]


def _decoder(worker: Mapping[str, str], config: Mapping[str, str]) -> _Decode:
    """Return what reads records by the connector's converters, else the worker's, else as JSON; what none reads is shown as text.

    Raises:
        ConfigError: a converter is not installed, or cannot be configured here, as when a property needs the worker's config provider.
    """
    from connect_py.plugins.registry import Plugins
    from connect_py.task.chain import converter, converter_owner

    plugins = Plugins.discover()
    read: dict[str, Callable[[str, bytes | None], Any]] = {}
    for side in ("key", "value"):
        name = f"{side}.converter"
        owner = converter_owner(worker, config, name)
        guesses = not owner.get(name)
        if guesses:
            owner = {name: "org.apache.kafka.connect.json.JsonConverter", f"{name}.schemas.enable": "false"}
        try:
            read[side] = _reader(converter(plugins, {}, owner, name), guesses=guesses)
        except ConnectError as error:
            raise ConfigError(f"The {name} cannot be used here: {error}") from error

    def decode(record: Any) -> Event:
        key, value = read["key"](record.topic, record.key), read["value"](record.topic, record.value)
        return event_of(record.topic, record.partition, record.offset, record.timestamp, key, value, is_tombstone=record.value is None)

    return decode


def _reader(made: Any, *, guesses: bool) -> Callable[[str, bytes | None], Any]:
    def read(topic: str, data: bytes | None) -> Any:
        try:
            schema, value = made.to_connect_data(topic, data)
        except ConnectError:
            return undecoded(data)
        found = plain(schema, value)
        if guesses and isinstance(found, dict) and set(found) == {"schema", "payload"}:
            return found["payload"]  # the worker's converter writes schemas; nobody said so
        return found

    return read


COMMANDS = (
    Command(
        "snapshot",
        "Data",
        "read tables of a running source again, and show the progress",
        _snapshot_options,
        _snapshot,
        about="It needs this project's worker; Kafka Connect in Java takes signals by a table or a topic only.",
        examples=(
            "snapshot inventory --tables inventory.orders --follow",
            "snapshot inventory --tables inventory.orders --where \"order_date > '2026-01-01'\"",
            "snapshot inventory --tables inventory.orders,inventory.customers --where 'inventory.orders:quantity > 5' --follow",
        ),
        exits={3: "with --follow: the snapshot was given up, or a table could not be read"},
    ),
    Command(
        "compact",
        "Data",
        "compact tables of a running lakehouse sink now, and show what it brings",
        _compact_options,
        _compact,
        about="The sink compacts tables by itself too; this does not wait for their turn. It needs this project's worker.",
        examples=(
            "compact lake --follow",
            "compact lake --tables inventory.orders,inventory.customers",
        ),
        exits={3: "with --follow: a table could not be compacted"},
    ),
    Command(
        "notifications",
        "Data",
        "notifications of a connector's tasks, such as of the progress of a snapshot",
        _notifications_options,
        _notifications,
        about="A worker keeps 1,000 notifications of each connector. It needs this project's worker.",
        examples=("notifications inventory", "notifications inventory --follow", "notifications inventory --json -n 1"),
    ),
    Command(
        "tail",
        "Data",
        "show the events of a connector's topics, one line each, until Ctrl-C",
        _tail_options,
        _tail,
        about=(
            "It reads Kafka itself, without a consumer group, by the connector's converters. Where the connector names none, it takes "
            "those of --worker-properties, else JSON."
        ),
        examples=(
            "tail inventory --bootstrap-servers localhost:9092",
            "tail inventory --from 10m --op u,d --table customers",
            "tail inventory --from earliest -n 20 --json",
        ),
    ),
)
