"""`connect-py verify`: which connectors belong together, what comes of all pairs, the page, the progress, and options that do not fit."""

from __future__ import annotations

import datetime
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from connect_py.app.cli import main
from connect_py.app.verify.html import page
from connect_py.app.verify.pairs import Connector, Pair, Result, feeds, pairs_of, patience_of, verify_pairs
from connect_py.app.verify.progress import ProgressLine
from connect_py.app.verify.report import Difference, Outcome, Patience
from connect_py.app.verify.run import NoCommonTopicError
from connect_py.errors import ConfigError
from connect_py.plugins.registry import Plugins

POSTGRES = "io.debezium.connector.postgresql.PostgresConnector"
LAKE = "io.github.connectpy.spark.SparkLakehouseSink"


def source(name: str, prefix: str, *topics: str, **more: str) -> Connector:
    return Connector(name, {"connector.class": POSTGRES, "topic.prefix": prefix, **more}, frozenset(topics))


def sink(name: str, **config: str) -> Connector:
    return Connector(name, {"connector.class": LAKE, **{key.replace("_", "."): value for key, value in config.items()}})


# -- which belong together -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("topics", "config", "wanted"),
    [
        ((), {"topics": "shop.public.item"}, True),
        ((), {"topics": "other.public.item, shop.public.item"}, True),
        ((), {"topics": "shopping.public.item"}, False),
        (("routed",), {"topics": "routed"}, True),
        (("routed",), {"topics_regex": "rout.*"}, True),
        (("shop.public.item",), {"topics_regex": r"shop\.public\.orders"}, False),
        ((), {"topics_regex": r"shop\.public\..*"}, True),
        ((), {"topics_regex": ".*"}, True),
        ((), {"topics_regex": "shop.public.(a|b)"}, True),
        ((), {"topics_regex": "(sh|x)op.*"}, True),
        ((), {"topics_regex": "sho?p.*"}, True),
        ((), {"topics_regex": r"\Qshop.\E.*"}, True),
        ((), {"topics_regex": r"other\..*"}, False),
        ((), {"topics_regex": "shopping.*"}, False),
    ],
)
def test_a_sink_belongs_to_a_source_whose_topics_it_reads(topics: Sequence[str], config: dict[str, str], wanted: bool) -> None:
    assert feeds(source("s", "shop", *topics), sink("l", **config)) is wanted


def test_the_prefix_may_have_another_delimiter_or_its_old_name() -> None:
    assert feeds(source("s", "shop", **{"topic.delimiter": "-"}), sink("l", topics="shop-public-item"))
    old = Connector("s", {"connector.class": POSTGRES, "database.server.name": "shop"})
    assert feeds(old, sink("l", topics="shop.public.item"))


WORKER = [
    source("b", "two", "two.public.x"),
    source("a", "one", "one.public.x"),
    sink("lake", topics="one.public.x,two.public.x"),
    sink("small", topics="two.public.x"),
    sink("far", topics="three.public.x"),
    Connector("files", {"connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector", "topic": "one.public.x"}),
]


@pytest.mark.parametrize(
    ("name", "wanted"),
    [("lake", ["a → lake", "b → lake"]), ("b", ["b → lake", "b → small"]), ("a", ["a → lake"]), ("small", ["b → small"])],
)
def test_a_name_finds_the_connectors_that_belong_to_it(name: str, wanted: list[str]) -> None:
    assert [str(pair) for pair in pairs_of(name, WORKER, Plugins.discover())] == wanted


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("nobody", "There is no connector nobody. There are b, a, lake, small, far, files."),
        ("far", r"No source of this worker writes topics that far reads \(three.public.x\). Looked at: a, b."),
        ("files", "files is org.apache.kafka.connect.file.FileStreamSourceConnector: verify compares"),
    ],
)
def test_a_name_without_a_pair_is_refused_with_what_is_there(name: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        pairs_of(name, WORKER, Plugins.discover())


# -- all pairs -------------------------------------------------------------------------------------------------------------------------

PAIRS = [Pair(source("a", "one"), WORKER[2]), Pair(source("b", "two"), WORKER[2])]


def compares(wanted: Mapping[str, Sequence[str]], of: Mapping[str, str], patterns: Sequence[str], patience: Patience) -> Iterator[Outcome]:
    tables = wanted.get(of["topic.prefix"])
    if tables is None:
        raise NoCommonTopicError("The sink reads no topic")
    yield from (Outcome(table, ["s"]) for table in tables if not patterns or any(re.fullmatch(each, table) for each in patterns))


def results(
    wanted: Mapping[str, Sequence[str]], pairs: Sequence[Pair] = PAIRS, patterns: Sequence[str] = ()
) -> list[tuple[str, str | None]]:
    found = verify_pairs(pairs, patterns, compare=lambda of, _, patterns, patience, *more: compares(wanted, of, patterns, patience))
    return [(str(result.pair), None if result.outcome is None else result.outcome.table) for result in found]


def test_the_tables_of_all_pairs_are_compared() -> None:
    assert results({"one": ["t", "u"], "two": ["v"]}) == [("a → lake", "t"), ("a → lake", "u"), ("b → lake", "v")]


def test_a_pair_without_a_common_table_is_noted_next_to_others() -> None:
    assert results({"two": ["v"]}) == [("a → lake", None), ("b → lake", "v")]
    with pytest.raises(NoCommonTopicError):
        results({}, PAIRS[:1])
    with pytest.raises(NoCommonTopicError):
        results({})


def test_a_pattern_that_no_table_matches_is_refused() -> None:
    assert results({"one": ["t"], "two": ["v"]}, patterns=["v"]) == [("b → lake", "v")]
    with pytest.raises(ConfigError, match="No lakehouse table is called x or y, so nothing was compared"):
        results({"one": ["t"], "two": ["v"]}, patterns=["x", "y"])


@pytest.mark.parametrize(
    ("config", "wait", "wanted"),
    [
        ({}, None, (120, 5)),
        ({"lakehouse.control.commit.interval-ms": "5000"}, None, (30, 2.5)),
        ({"iceberg.control.commit.interval-ms": "200"}, None, (30, 0.5)),
        ({}, 7, (7, 5)),
    ],
)
def test_differences_have_two_commits_to_settle(config: dict[str, str], wait: float | None, wanted: tuple[float, float]) -> None:
    patience = patience_of(config, wait, 3)
    assert ((patience.wait, patience.pause), patience.shown) == (wanted, 3)


# -- the page --------------------------------------------------------------------------------------------------------------------------

NASTY = "<script>alert('x')</script>&\""
BEGAN = datetime.datetime(2026, 1, 31, 10, 0, tzinfo=datetime.UTC)


class Reader(HTMLParser):
    """What a browser reads: tags, attributes and the texts, and whether the tags nest."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.texts.append(data)


def outcomes() -> list[Result]:
    pair = Pair(source(NASTY, "one"), WORKER[2])
    different = Outcome(f"ns.{NASTY}", [NASTY], 3, 4, {"missing": 1, "extra": 1, "different": 3}, seconds=1.25, settled=2)
    different.differences = [
        Difference({"id": 1}, {"id": 1, NASTY: NASTY}, {"id": 1, NASTY: "y"}),
        Difference({"id": 2}, {"id": 2}, None),
        Difference({}, None, {"id": 3}, (0, 2)),
    ]
    return [
        Result(pair, different),
        Result(pair, Outcome("ns.same", ["public.same"], 1_234_567, 1_234_567)),
        Result(pair, Outcome("ns.none", ["public.none"], problem="it does not exist")),
        Result(PAIRS[1], None),
    ]


def test_the_page_has_every_outcome_and_escapes_all_texts() -> None:
    read = Reader(page(outcomes(), BEGAN, seconds=2.5))
    assert not read.open and not {"script", "link", "img"} & {tag for tag, _ in read.tags}
    text = " ".join(read.texts)
    for said in (
        "1 of 3 tables are equal to their source; 1 differs; 1 could not be compared",
        "2026-01-31 10:00:00 UTC and took 2.5 s",
        f"{NASTY} → lake",
        "1,234,567",
        "2 keys were late and have settled",
        "not compared: it does not exist",
        "They have no table in common.",
        "no row",
        "2 times",
        "… and 2 more",
    ):
        assert said in text
    assert read.texts.count(repr(NASTY)) == 1 and read.texts.count("'y'") == 1


def test_the_page_is_for_light_and_dark_screens_and_needs_no_other_file() -> None:
    text = page(outcomes(), BEGAN, seconds=1)
    assert "color-scheme: light dark" in text and "prefers-color-scheme: dark" in text
    assert not re.search(r"(?:src|href|url\()\W", text)


def test_colours_of_both_themes_can_be_read() -> None:
    def luminance(colour: str) -> float:
        whole = "".join(digit * 2 for digit in colour) if len(colour) == 3 else colour
        parts = [int(whole[at : at + 2], 16) / 255 for at in (0, 2, 4)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    themes = re.findall(r":root \{([^}]*--text[^}]*)\}", page([], BEGAN, seconds=1))
    assert len(themes) == 2
    for theme in themes:
        colours = {name: luminance(value) for name, value in re.findall(r"--(\w+): #([0-9a-f]+)", theme)}
        for name in ("text", "dim", "good", "bad"):
            for back in ("back", "head"):
                light, dark = sorted((colours[name], colours[back]), reverse=True)
                assert (light + 0.05) / (dark + 0.05) >= 4.5, (theme, name, back)


def test_the_page_says_that_a_comparison_ended_early() -> None:
    read = Reader(page([Result(PAIRS[0], Outcome("t", ["s"]))], BEGAN, seconds=1, error=f"The database is gone: {NASTY}"))
    text = "".join(read.texts)
    assert "1 of 1 table is equal to their source; not all were looked at" not in text
    assert "1 of 1 table is equal to its source; not all were looked at" in text and f"The database is gone: {NASTY}" in text


# -- progress --------------------------------------------------------------------------------------------------------------------------


def test_progress_is_one_line_that_is_written_over_and_cleared() -> None:
    stream, now = io.StringIO(), [0.0]
    line = ProgressLine(stream, clock=lambda: now[0], width=60)

    def shown() -> str:
        found = stream.getvalue()
        stream.seek(0)
        stream.truncate()
        return found

    line.begin("shop.item", 4000)
    line.read("table", 1000)
    assert shown() == "\r\033[Kshop.item: table, 1,000 of about 4,000 rows (25 %)"
    line.read("table", 1000)
    assert shown() == ""  # too soon
    now[0] += 1
    line.read("table", 3000)
    assert shown() == "\r\033[Kshop.item: table, 5,000 rows"  # more than was expected
    line.read("source", 500)
    assert shown() == "\r\033[Kshop.item: source, 500 of about 5,000 rows (10 %)"
    line.wait(3, 12.4)
    assert shown() == "\r\033[Kshop.item: differing, 3 keys, which have 12 s to settle"
    line.end()
    line.end()
    assert shown() == "\r\033[K"
    line.begin("a" * 80, None)
    line.read("table", 1)
    assert shown() == "\r\033[K" + "a" * 60
    line.begin("b", None)
    line.read("table", 1)
    assert shown() == "\r\033[Kb: table, 1 rows"  # another table is shown at once


# -- the command line ------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    configs: list[dict[str, Any]] = [
        {"connector.class": POSTGRES, "topic.prefix": "p", "database.hostname": "h", "database.user": "u", "database.dbname": "d"},
        {"connector.class": LAKE, "topics": "p.public.item"},
        {"connector.class": "io.debezium.connector.mongodb.MongoDbConnector", "mongodb.connection.string": "m", "topic.prefix": "p"},
        {"connector.class": POSTGRES, "topic.prefix": "p", "database.password": "${file:/x:y}", "database.hostname": "[hidden]"},
        {"connector.class": POSTGRES, "topic.prefix": "p", "database.password": "[hidden]"},
        {"connector.class": LAKE, "topics": "p.public.item", "lakehouse.control.commit.interval-ms": "often"},
    ]
    paths = [tmp_path / f"{name}.json" for name in ("source", "sink", "mongo", "secret", "hidden", "often")]
    for path, config in zip(paths, configs, strict=True):
        path.write_text(json.dumps({"name": path.stem, "config": config}))
    return [str(path) for path in paths]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("{0}", "is a file: name the sink's file after it, or give the name of a worker's connector"),
        ("{0} {1} --show -1", "--show needs a number of 0 or more"),
        ("{0} {1} --wait nan", "--wait needs a number of seconds, 0 or more"),
        ("{0} {1} --table public\\.item --table public.(", "--table public.( is no regular expression: missing ), unterminated subpattern"),
        ("{0} {5}", "Invalid value often for configuration lakehouse.control.commit.interval-ms: Not a number of type INT"),
        ("{0} {1} --start 3 --digest a.b:c", "--digest, --start: only with --history"),
        ("{0} {1} --exactly-once", "--exactly-once: only with --history"),
        ("{0} {1} --html {0}/no/page.html", "there is no such folder"),
        ("{3} {1}", "secret.json: database.password refer to a config provider"),
        ("{4} {1}", "hidden.json: the worker does not show database.password"),
        ("{0} {1} --history", "--history tests the topics of a source alone: leave out"),
        ("{0} --history --html page.html --table x", "--table, --html: only without --history"),
        ("{0} --history", "Kafka's address is needed to read the topics"),
        ("{0} --history --worker-properties {0}/no", "The worker's properties cannot be read"),
        ("{0} --history --bootstrap-servers k:9 --digest item:a", "--digest item:a: write SCHEMA.TABLE:COLUMN,COLUMN"),
        ("{0} --history --bootstrap-servers k:9 --digest public.item:a,", "write SCHEMA.TABLE:COLUMN,COLUMN"),
        ("{1} --history --bootstrap-servers k:9", "verify reads tables of PostgreSQL, MySQL, MariaDB and MongoDB"),
        ("{0} --history --prepare public.item", "--prepare public.item: write SCHEMA.TABLE:COLUMN,COLUMN"),
        ("{0} --history --prepare public.item:id --digest public.itm:id", "--digest public.itm: --prepare is for public.item"),
        ("{1} --history --prepare public.item:id", "verify reads tables of PostgreSQL, MySQL, MariaDB and MongoDB"),
        ("{2} --history --prepare shop.item:id", "MongoDB has no triggers"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    files: list[str], arguments: str, says: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))  # no contexts
    assert main(["verify", *arguments.format(*files).split()]) == 1
    assert says in capsys.readouterr().err


def test_statements_are_printed_for_the_database_of_the_source(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--prepare", "public.item:id, part", "--digest", "public.item:note", "--journal", "logs.j", "--sequence", "n"]
    assert main(["verify", "--history", files[0], *arguments]) == 0
    said = capsys.readouterr().out
    assert 'INSERT INTO "logs"."j"' in said and 'NEW."n" :=' in said and 'NEW."part"::text' in said and 'NEW."note"::text' in said
