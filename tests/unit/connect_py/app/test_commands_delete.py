"""What `delete --with` would remove, and what it refuses: pure rules over a worker's connectors."""

from __future__ import annotations

from typing import Any

import pytest

from connect_py.app.commands.delete import Left, parts_of, what_is_left
from connect_py.errors import ConfigError

POSTGRES = "io.debezium.connector.postgresql.PostgresConnector"
TOPICS = {"shop": ["shop.public.orders"], "other": ["other.public.orders"], "lake": ["shop.public.orders"], "lines": ["lines"]}


def connectors(**more: dict[str, str]) -> dict[str, Any]:
    database = {"connector.class": POSTGRES, "database.hostname": "db", "database.dbname": "shop", "database.password": "planted"}
    found: dict[str, tuple[str, dict[str, str]]] = {
        "shop": ("source", {**database, "slot.name": "shop", "publication.name": "shop"}),
        "other": ("source", {**database, "slot.name": "other", "publication.name": "other"}),
        "lake": ("sink", {"connector.class": "SparkLakehouseSink", "topics": "shop.public.orders, more"}),
        "lines": ("source", {"connector.class": "FileStreamSource", "topic": "lines"}),
    }
    return {name: {"info": {"type": kind, "config": {**config, **more.get(name, {})}}} for name, (kind, config) in found.items()}


def left(names: list[str], parts: set[str], found: dict[str, Any] | None = None) -> dict[str, Left]:
    return what_is_left(found or connectors(), names, parts, lambda name: TOPICS.get(name, []))


def test_all_that_a_source_leaves_behind_is_named() -> None:
    parts = {"topics", "slot", "publication", "offsets"}
    found = left(["shop"], parts, {"shop": connectors()["shop"], "other": connectors()["other"]})
    assert found["shop"].lines(parts) == ["topic shop.public.orders", "replication slot shop", "publication shop", "its offsets"]
    assert found["shop"].lines({"slot"}) == ["replication slot shop"]


def test_names_that_the_configuration_leaves_out_are_the_defaults() -> None:
    bare = connectors()["shop"]
    for name in ("slot.name", "publication.name"):
        del bare["info"]["config"][name]
    assert left(["shop"], {"slot", "publication"}, {"shop": bare})["shop"].lines({"slot", "publication"}) == [
        "replication slot debezium",
        "publication dbz_publication",
    ]


def test_what_another_connector_uses_is_not_deleted() -> None:
    with pytest.raises(ConfigError, match=r"lake uses topics of shop, too: shop\.public\.orders"):
        left(["shop"], {"topics"})
    shared = connectors(other={"publication.name": "shop", "slot.name": "shop"})
    with pytest.raises(ConfigError, match="other reads the publication shop of shop, too"):
        left(["shop"], {"publication"}, shared)
    with pytest.raises(ConfigError, match="other reads the replication slot shop of shop, too"):
        left(["shop"], {"slot"}, shared)
    assert left(["shop", "other"], {"publication"}, shared).keys() == {"shop", "other"}
    elsewhere = connectors(other={"publication.name": "shop", "slot.name": "shop", "database.hostname": "db2"})
    assert left(["shop"], {"publication", "slot"}, elsewhere)
    same_server = connectors(other={"publication.name": "shop", "database.dbname": "another"})
    assert left(["shop"], {"publication"}, same_server)


def test_what_a_connector_does_not_have_is_refused() -> None:
    with pytest.raises(ConfigError, match="lines is no PostgreSQL connector"):
        left(["lines"], {"slot"})
    with pytest.raises(ConfigError, match="lake is no source: the topics that it reads are not its own"):
        left(["lake"], {"topics"})
    with pytest.raises(ConfigError, match="refer to a config provider"):
        left(["shop"], {"slot"}, connectors(shop={"database.password": "${env:PASSWORD}"}))
    with pytest.raises(ConfigError, match=r"rest\.redact\.secrets"):
        left(["shop"], {"publication"}, connectors(shop={"database.password": "[hidden]"}))
    assert left(["lines"], {"topics"})["lines"].topics == ("lines",)


def test_parts_are_a_list() -> None:
    assert parts_of("") == set()
    assert parts_of("slot, topics,") == {"slot", "topics"}
    with pytest.raises(ConfigError, match="--with does not know slots: it accepts offsets, publication, slot, topics"):
        parts_of("slots,topics")
