"""Java's regular expressions: what java.util.regex of Java 17 matched in full, and its words for what it refused."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest

from connect_py.data.java_regex import compile_java_regex
from connect_py.errors import ConfigError

RECORDED = json.loads(Path(__file__).with_name("java_regex.json").read_text())


@pytest.mark.parametrize("pattern", RECORDED["patterns"])
def test_patterns_mean_what_they_mean_in_java(pattern: str) -> None:
    answer: Any = RECORDED["patterns"][pattern]
    if isinstance(answer, dict):
        with pytest.raises(ConfigError) as caught:
            compile_java_regex(pattern)
        assert str(caught.value) == answer["error"]
        return
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled = compile_java_regex(pattern)
    assert [text for text in RECORDED["texts"] if compiled.fullmatch(text)] == answer


@pytest.mark.parametrize(("pattern", "named"), [(r"\Ga", r"\G"), (r"\X", r"\X"), (r"(?U)\w", "flag U"), ("[" * 9000, "Unclosed")])
def test_what_python_has_nothing_for_is_refused(pattern: str, named: str) -> None:
    with pytest.raises(ConfigError, match="near index") as caught:
        compile_java_regex(pattern)
    assert named in str(caught.value)
