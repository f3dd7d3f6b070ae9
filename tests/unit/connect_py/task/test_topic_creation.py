"""Which settings a new topic gets, and when it is created."""

import pytest

from connect_py.errors import ConfigError, ConnectError, FatalTaskError, RetriableError
from connect_py.kafka.admin import ReplicationError
from connect_py.task.topics import TopicCreator, topic_groups

CONFIG = {
    "topic.creation.groups": "compacted, wide",
    "topic.creation.default.replication.factor": "1",
    "topic.creation.default.partitions": "2",
    "topic.creation.default.compression.type": "lz4",
    "topic.creation.compacted.include": "shop\\..*, status",
    "topic.creation.compacted.exclude": "shop\\.log",
    "topic.creation.compacted.cleanup.policy": "compact",
    "topic.creation.wide.include": "shop\\.log",
    "topic.creation.wide.partitions": "9",
}


class Cluster:
    def __init__(self, *existing: str) -> None:
        self.topics = dict.fromkeys(existing, ("existing",))
        self.asked = 0
        self.error: ConnectError | None = None

    def describe_topics(self, names):
        self.asked += 1
        if self.error:
            raise self.error
        return {name: 1 for name in names if name in self.topics}

    def create_topic(self, name, partitions, replication_factor, settings):
        self.topics[name] = (partitions, replication_factor, dict(settings))
        return True


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        ("shop.orders", (2, 1, {"cleanup.policy": "compact"})),
        ("status", (2, 1, {"cleanup.policy": "compact"})),
        ("shop.log", (9, 1, {})),
        ("other", (2, 1, {"compression.type": "lz4"})),
        ("my.status", (2, 1, {"compression.type": "lz4"})),
    ],
)
def test_the_first_group_that_matches_the_whole_name_gives_the_settings(topic: str, expected: tuple) -> None:
    cluster = Cluster()
    TopicCreator(topic_groups(CONFIG), cluster).ensure(topic)
    assert cluster.topics[topic] == expected


def test_a_topic_that_exists_is_left_alone_and_asked_for_once() -> None:
    cluster = Cluster("shop.orders")
    creator = TopicCreator(topic_groups(CONFIG), cluster)
    creator.ensure("shop.orders")
    creator.ensure("shop.orders")
    assert cluster.topics == {"shop.orders": ("existing",)}
    assert cluster.asked == 1


def test_without_any_such_property_there_are_no_groups() -> None:
    assert topic_groups({"topic.prefix": "shop"}) == []


@pytest.mark.parametrize("missing", ["topic.creation.default.replication.factor", "topic.creation.default.partitions"])
def test_the_default_group_needs_its_numbers(missing: str) -> None:
    with pytest.raises(ConfigError, match=f'Missing required configuration "{missing}" which has no default value.'):
        topic_groups({key: value for key, value in CONFIG.items() if key != missing})


def test_a_number_of_partitions_is_positive_or_the_brokers_default() -> None:
    assert topic_groups({**CONFIG, "topic.creation.wide.partitions": "-1"})[1].partitions == -1
    with pytest.raises(ConfigError, match="Number of partitions must be positive, or -1 to use the broker's default"):
        topic_groups({**CONFIG, "topic.creation.wide.partitions": "0"})


def test_a_cluster_that_is_away_is_asked_again_and_one_that_refuses_fails_the_task() -> None:
    cluster = Cluster()
    creator = TopicCreator(topic_groups(CONFIG), cluster)
    cluster.error = RetriableError("away")
    with pytest.raises(RetriableError):
        creator.ensure("a")
    cluster.error = ConnectError("not authorized")
    with pytest.raises(FatalTaskError, match="not authorized"):
        creator.ensure("a")
    cluster.error = ReplicationError("only 1 broker")
    with pytest.raises(FatalTaskError, match="only 1 broker"):
        creator.ensure("a")
    cluster.error = None
    creator.ensure("a")
    assert "a" in cluster.topics


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("wide.replication.factor", "40000", "Not a number of type SHORT"),
        ("wide.replication.factor", "0", "Replication factor must be positive"),
        (
            "wide.include",
            "a,(",
            r"Invalid value \[a, \(\] for configuration topic.creation.wide.include: Syntax error in regular expression: ",
        ),
    ],
)
def test_what_is_wrong_with_a_group_is_said_as_connect_says_it(key: str, value: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        topic_groups({**CONFIG, f"topic.creation.{key}": value})


def test_names_are_matched_as_java_matches_and_the_default_group_takes_every_topic() -> None:
    groups = topic_groups({**CONFIG, "topic.creation.wide.include": r"\p{Alpha}+\h?", "topic.creation.default.include": "("})
    assert [group.name for group in groups if group.matches("abc")] == ["wide", "default"]
