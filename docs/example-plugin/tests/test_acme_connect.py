"""The plugins by themselves, without Kafka: `pytest` in this folder, with `pip install -e '.[dev]'`."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from acme_connect.converter import LogfmtConverter
from acme_connect.predicate import FieldEquals
from acme_connect.provider import JsonFileConfigProvider
from acme_connect.sink import SqliteSinkConnector
from acme_connect.source import HttpFeedSourceConnector
from acme_connect.transform import Fingerprint

from connect_py.api import SinkRecord, SourceRecord
from connect_py.data import INT64, STRING, Struct
from connect_py.data.schema import struct
from connect_py.errors import FatalTaskError
from connect_py.testing import SinkRun, SourceRun, check_converter, check_predicate, check_provider, check_transform

ORDER = struct([("id", INT64), ("city", STRING)], name="acme.Order")
RECORDS = [
    SourceRecord({"p": "a"}, {"o": 1}, "t", value_schema=ORDER, value=Struct(ORDER, [1, "Ulm"])),
    SinkRecord("t", 0, 5, value={"id": 2, "city": "Linz"}),
    SinkRecord("t", 0, 6),
]


class Feed:
    """An HTTP feed of objects; wants the token ``s3cret``."""

    def __init__(self) -> None:
        self.objects: list[dict[str, Any]] = []
        self.broken = 0
        feed = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                allowed = self.headers.get("Authorization") == "Bearer s3cret"
                self.send_response(403 if not allowed else 503 if feed.broken else 200)
                self.end_headers()
                feed.broken = max(0, feed.broken - 1)
                after = int(self.path.partition("after=")[2])
                self.wfile.write(json.dumps([each for each in feed.objects if each["id"] > after]).encode())

            def log_message(self, *arguments: object) -> None:
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/orders"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def feed() -> Iterator[Feed]:
    made = Feed()
    yield made
    made.close()


def config(feed: Feed, **more: str) -> dict[str, str]:
    return {"feed.url": feed.url, "topic": "orders", "feed.token": "s3cret", "feed.interval.ms": "50", **more}


def test_the_source_goes_on_after_the_last_object_and_repeats_what_was_not_committed(feed: Feed) -> None:
    feed.objects += [{"id": 1, "city": "Ulm"}, {"id": 2, "city": "Linz"}]
    with SourceRun(HttpFeedSourceConnector, config(feed)) as run:
        assert [record.key for record in run.take(2)] == [1, 2]
        run.restart()
        run.idle()
        feed.objects.append({"id": 3, "city": "Graz"})
        assert run.take(1)[0].value == {"id": 3, "city": "Graz"}
        run.restart(commit=False)
        assert run.take(1)[0].source_offset == {"id": 3}


def test_the_source_waits_for_a_feed_that_is_away(feed: Feed) -> None:
    feed.broken = 2
    feed.objects.append({"id": 1})
    with SourceRun(HttpFeedSourceConnector, config(feed)) as run:
        assert run.take(1)


def test_a_wrong_token_fails_the_task_without_being_shown(feed: Feed) -> None:
    with SourceRun(HttpFeedSourceConnector, config(feed, **{"feed.token": "wr0ng"})) as run:
        with pytest.raises(FatalTaskError, match="status 403") as caught:
            run.take(1)
        run.tasks.clear()
    assert "wr0ng" not in str(caught.value)


def test_an_address_that_is_none_is_found_by_validation(feed: Feed) -> None:
    with pytest.raises(AssertionError, match=r"feed\.url must begin with http"):
        SourceRun(HttpFeedSourceConnector, config(feed, **{"feed.url": "ftp://x"}))


def test_the_sink_keeps_a_record_once_however_often_it_comes(tmp_path: Path) -> None:
    file = tmp_path / "orders.db"
    with SinkRun(SqliteSinkConnector, {"topics": "t", "sqlite.file": str(file)}) as run:
        run.put(SinkRecord("t", 0, 0, key="a", value={"n": 1}), SinkRecord("t", 0, 1))
        run.put(SinkRecord("t", 0, 1))
        assert dict(run.commit()) == {("t", 0): 2}
        run.put(SinkRecord("t", 0, 2, value=object()))
        assert [record.offset for record, _ in run.errant] == [2]
    rows = sqlite3.connect(file).execute("SELECT * FROM records ORDER BY offset").fetchall()
    assert rows == [("t", 0, 0, '"a"', '{"n": 1}'), ("t", 0, 1, None, None)]


def test_the_converter_reads_what_it_wrote_and_refuses_what_is_none() -> None:
    samples = [(None, {"id": "7", "note": 'two "words" = more', "empty": ""}), (None, {})]
    check_converter(LogfmtConverter, {"sort.keys": "true"}, samples, broken={"sort.keys": "perhaps"})


def test_the_transform_adds_the_same_header_to_the_same_value() -> None:
    first, second, tombstone = check_transform(Fingerprint, {"length": "8"}, RECORDS, broken={"length": "1"})
    assert first and second and tombstone == RECORDS[2]
    assert [len(header.value) for header in [*first.headers, *second.headers]] == [8, 8]


def test_the_predicate_looks_into_structs_and_maps() -> None:
    assert check_predicate(FieldEquals, {"field": "city", "equals": "Linz"}, RECORDS, broken={"field": "city"}) == [False, True, False]


def test_the_provider_gives_the_keys_that_are_there(tmp_path: Path) -> None:
    file = tmp_path / "secrets.json"
    file.write_text(json.dumps({"token": "s3cret", "other": 1}))
    check_provider(JsonFileConfigProvider, {"root": str(tmp_path)}, str(file), {"token": "s3cret"})
