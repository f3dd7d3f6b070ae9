"""The options that Spark's JVM starts with."""

from __future__ import annotations

import pytest

from spark_sink.jvm import local_options

CODE_CACHE = "-XX:ReservedCodeCacheSize=256m"


@pytest.mark.parametrize(
    ("more", "environment", "options"),
    [
        ("", {}, ["-XX:+UseParallelGC", CODE_CACHE]),
        ("-Dx=y", {"JDK_JAVA_OPTIONS": "-Xshare:auto"}, ["-XX:+UseParallelGC", CODE_CACHE]),
        ("-XX:+UseG1GC", {}, [CODE_CACHE]),
        ("", {"JDK_JAVA_OPTIONS": "-Xshare:auto -XX:+UseSerialGC"}, [CODE_CACHE]),
        ("", {"JAVA_TOOL_OPTIONS": "-XX:+UseZGC"}, [CODE_CACHE]),
    ],
)
def test_a_collector_that_was_chosen_elsewhere_is_the_only_one(more: str, environment: dict[str, str], options: list[str]) -> None:
    assert local_options(more, environment) == options
