"""Kafka's transforms of headers and topics, its filter, and its predicates."""

import pytest

from connect_py.api import Header, SourceRecord
from connect_py.data import Struct, Type
from connect_py.data.schema import INT8, INT32, OPTIONAL_STRING, STRING, struct
from connect_py.errors import ConfigError, DataError
from connect_py.plugins.registry import Plugins, kinds_of
from connect_py.transforms.headers import DropHeaders, HeaderFromKey, HeaderFromValue, InsertHeader
from connect_py.transforms.predicates import Filter, HasHeaderKey, RecordIsTombstone, TopicNameMatches
from connect_py.transforms.routers import RegexRouter, TimestampRouter

ROW = struct([("id", INT32), ("name", OPTIONAL_STRING)])


def made(transform, **config):
    one = transform()
    one.configure({name.replace("_", "."): value for name, value in config.items()})
    return one


def topic(name, **more):
    return SourceRecord({}, {}, name, **more)


def test_headers_are_added_behind_the_others_with_inferred_types():
    record = topic("t", headers=[Header("a", 1, INT8)])
    changed = made(InsertHeader, header="a", value_literal="[1,2]").apply(record)
    assert [(h.name, h.value, h.schema.type) for h in changed.headers] == [("a", 1, Type.INT8), ("a", [1, 2], Type.ARRAY)]
    assert len(record.headers) == 1
    assert made(InsertHeader, header="e", value_literal="").apply(record).headers[1] == Header("e", "", STRING)


def test_all_headers_of_a_name_are_dropped():
    record = topic("t", headers=[Header("a", 1, INT8), Header("b", 2, INT8), Header("a", 3, INT8)])
    assert [h.name for h in made(DropHeaders, headers="a,none").apply(record).headers] == ["b"]


def test_fields_are_copied_or_moved_to_headers():
    record = topic("t", value_schema=ROW, value=Struct(ROW, [1, "x"]))
    copied = made(HeaderFromValue, fields="name,id", headers="h1,h2", operation="copy").apply(record)
    assert [(h.name, h.value) for h in copied.headers] == [("h1", "x"), ("h2", 1)]
    assert copied.value is record.value
    moved = made(HeaderFromValue, fields="name", headers="h", operation="move").apply(record)
    assert moved.value_schema == struct([("id", INT32)])
    assert moved.value.values == [1]
    assert moved.headers == [Header("h", "x", OPTIONAL_STRING)]
    plain = made(HeaderFromKey, fields="a,none", headers="h,n", operation="move").apply(topic("t", key={"a": 1, "b": 2}))
    assert plain.key == {"b": 2}
    assert plain.headers == [Header("h", 1), Header("n", None)]


def test_what_cannot_become_a_header_fails():
    with pytest.raises(DataError, match=r"Only Struct objects supported for \[header move\], found: null"):
        made(HeaderFromValue, fields="a", headers="h", operation="move").apply(topic("t", value_schema=ROW))
    with pytest.raises(DataError, match="Field does not exist: none"):
        made(HeaderFromValue, fields="none", headers="h", operation="copy").apply(topic("t", value_schema=ROW, value=Struct(ROW, [1])))
    with pytest.raises(ConfigError, match=r"'fields' config must have the same number of elements as 'headers' config."):
        made(HeaderFromValue, fields="a", headers="h,i", operation="copy")


@pytest.mark.parametrize(
    ("regex", "replacement", "old", "new"),
    [
        ("(.*)exed_(.*)", "$1-$2", "regexed_x", "reg-x"),
        ("a", "b", "aa", "aa"),
        ("a+|b", "x", "aa", "x"),
        ("(?<schema>[^.]+)\\.(?<table>.+)", "${table}_in_${schema}", "public.people", "people_in_public"),
        ("(a)(b)?.*", "\\$$1$2", "axx", "$a"),
        ("(a)0", "$10", "a0", "a0"),
        ("\\Qa.b\\E", "x", "a.b", "x"),
        ("\\Qa.b\\E", "x", "acb", "acb"),
    ],
)
def test_topics_that_match_as_a_whole_are_renamed(regex, replacement, old, new):
    assert made(RegexRouter, regex=regex, replacement=replacement).apply(topic(old)).topic == new


@pytest.mark.parametrize("replacement", ["$2", "${name}", "${1", "a\\", "$x"])
def test_replacements_that_name_no_group_are_refused(replacement):
    with pytest.raises(ConfigError, match="for configuration replacement"):
        made(RegexRouter, regex="(a)", replacement=replacement)


def test_a_broken_regex_is_refused_in_javas_words():
    with pytest.raises(ConfigError, match=r"Invalid value \( for configuration regex: Invalid regex: Unclosed group near index 1"):
        made(RegexRouter, regex="(", replacement="")


def test_topics_get_the_time_of_the_record():
    changed = made(TimestampRouter, topic_format="${timestamp}_${topic}", timestamp_format="yyyy-MM").apply(topic("t", timestamp=0))
    assert changed.topic == "1970-01_t"
    with pytest.raises(DataError, match="Timestamp missing on record: topic t"):
        made(TimestampRouter).apply(topic("t"))
    with pytest.raises(ConfigError, match="Illegal pattern character 'f'"):
        made(TimestampRouter, timestamp_format="foo")


def test_a_filter_leaves_nothing():
    assert made(Filter).apply(topic("t", value="x")) is None


def test_predicates():
    assert made(HasHeaderKey, name="a").test(topic("t", headers=[Header("b", 1), Header("a", None)]))
    assert not made(HasHeaderKey, name="a").test(topic("t"))
    assert made(RecordIsTombstone).test(topic("t", value_schema=ROW))
    assert not made(RecordIsTombstone).test(topic("t", value=""))
    assert made(TopicNameMatches, pattern="in[12]_.*").test(topic("in1_x"))
    assert not made(TopicNameMatches, pattern="in").test(topic("in1"))


@pytest.mark.parametrize("pattern", ["", "("])
def test_patterns_of_topics_are_checked(pattern):
    with pytest.raises(ConfigError, match=r"for configuration pattern: (String must be non-empty|Invalid regex: Unclosed group)"):
        made(TopicNameMatches, pattern=pattern)


def test_every_transform_and_predicate_is_a_plugin_under_its_java_name():
    plugins = Plugins.discover()
    for kind, count in (("transformation", 26), ("predicate", 3)):
        found = [(name, plugin) for name, plugin in plugins.of_kind(kind) if name.startswith("org.apache.kafka.")]
        assert len(found) == count
        for name, plugin in found:
            assert (plugin.java_name, kinds_of(plugin)) == (name, [kind])
