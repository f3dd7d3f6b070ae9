"""Regular expressions that users give the worker itself to match."""

from __future__ import annotations

import time

import pytest

from connect_py.config.connector import sink_topic_errors
from connect_py.data.java_regex import MAX_LENGTH, compile_java_regex
from connect_py.errors import ConfigError
from connect_py.log.user_regex import SlowRegexError, matching


def test_a_regex_is_matched_in_full_with_javas_meaning() -> None:
    assert matching(r"(?!dlq-)\p{Alpha}+-\d", ["dlq-1", "in-1", "in-12"]) == {"in-1"}


def test_a_slow_regex_ends_after_a_second_of_cpu() -> None:
    began = time.monotonic()
    with pytest.raises(SlowRegexError, match="takes more than 1 s"):
        matching("(a|a)*$", ["a" * 60 + "b"])
    assert time.monotonic() - began < 30


def test_a_sink_whose_topics_regex_is_too_slow_for_its_dead_letter_topic_is_refused() -> None:
    config = {"topics.regex": "(a+)+$", "errors.deadletterqueue.topic.name": "a" * 50 + "b"}
    ((key, error),) = sink_topic_errors(config)
    assert key == "topics.regex"
    assert "takes more than 1 s" in error
    assert not sink_topic_errors({**config, "errors.deadletterqueue.topic.name": "b"})
    assert "may not be matched" in sink_topic_errors({**config, "errors.deadletterqueue.topic.name": "a"})[0][1]


@pytest.mark.parametrize("pattern", ["(" * 500 + "a" + ")" * 500, "(" * 5000 + "a" + ")" * 5000, "a" * (MAX_LENGTH + 1), "a{99999999999}"])
def test_a_regex_that_cannot_be_compiled_is_an_error_of_the_configuration(pattern: str) -> None:
    with pytest.raises(ConfigError, match=r"near index|too large"):
        compile_java_regex(pattern)
