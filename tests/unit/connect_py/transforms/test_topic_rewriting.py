"""Topics named by other strategies than the default."""

import pytest

from connect_py.errors import ConfigError
from connectors.engine.topic_naming import TopicNaming

PACKAGE = "io.debezium.schema."


def naming(strategy: str, own: str = "schema", **more: str) -> TopicNaming:
    config = {"topic.prefix": "p", "topic.naming.strategy": f"{PACKAGE}{strategy}TopicNamingStrategy"}
    return TopicNaming.from_config({**config, **{name.replace("__", "."): text for name, text in more.items()}}, own)


@pytest.mark.parametrize(
    ("strategy", "own", "topic"),
    [
        ("Schema", "schema", "p.s_1.a_b_"),
        ("Default", "schema", "p.a_b_"),
        ("Default", "default", "p.s_1.a_b_"),
        ("Schema", "default", "p.a_b_"),
        ("SchemaUnicode", "schema", "p.s_u005f1.a_u0020b_u00e9"),
        ("DefaultUnicode", "default", "p.s_u005f1.a_u0020b_u00e9"),
    ],
)
def test_a_strategy_joins_what_its_name_says(strategy: str, own: str, topic: str) -> None:
    assert naming(strategy, own).data_topic("s_1", "a bé") == topic


def test_names_are_rewritten_where_all_of_them_match_and_something_is_left() -> None:
    found = naming("SchemaRegex", topic__regex=r"(.*)\.t_\d", topic__replacement="$1.all")
    assert found.data_topic("s", "t_1") == "p.s.all"
    assert found.data_topic("s", "t_12") == "p.s.t_12"
    assert naming("SchemaRegex", topic__regex="(x?).*", topic__replacement="$1").data_topic("s", "t") == "p.s.t"


def test_keys_tell_tables_apart_by_the_name_that_their_topic_had() -> None:
    found = {"topic__regex": "(.*)", "topic__replacement": "all"}
    assert naming("SchemaRegex", **found).key_mark("s", "a b") == ("__dbz__physicalTableIdentifier", "p.s.a b")
    assert naming("SchemaRegex", **found, topic__key__enforce__uniqueness="false").key_mark("s", "t") is None
    own = {**found, "topic__key__field__name": "which", "topic__key__field__regex": r".*\.(t.)", "topic__key__field__replacement": "is $1"}
    assert naming("SchemaRegex", **own).key_mark("s", "t1") == ("which", "is t1")
    assert naming("SchemaRegex", **own).key_mark("s", "u") == ("which", "p.s.u")
    assert naming("Schema").key_mark("s", "t") is None


@pytest.mark.parametrize("more", [{}, {"topic__regex": "(.*)"}, {"topic__regex": "(", "topic__replacement": "x"}])
def test_what_a_strategy_needs_is_asked_for(more: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        naming("SchemaRegex", **more)


def test_no_class_of_ones_own_is_loaded() -> None:
    with pytest.raises(ConfigError, match="is not supported; choose one of"):
        TopicNaming.from_config({"topic.prefix": "p", "topic.naming.strategy": "com.example.Mine"})
