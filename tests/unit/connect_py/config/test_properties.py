"""Java's properties format."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_py.data.java_properties import parse_properties
from connect_py.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1\nb = 2\nc: 3\nd 4\n", {"a": "1", "b": "2", "c": "3", "d": "4"}),
        ("# comment\n! another\n\n  # indented\na=#kept", {"a": "#kept"}),
        ("a=one,\\\n    two", {"a": "one,two"}),
        ("a=\\\\\nb=1", {"a": "\\", "b": "1"}),
        ("a\\ b\\=c=d", {"a b=c": "d"}),
        ("a=\\u00e4\\t\\q", {"a": "ä\tq"}),
        ("a=\\ud83d\\ude00", {"a": "😀"}),
        ("a=1\na=2", {"a": "2"}),
        ("empty\nalso=\n", {"empty": "", "also": ""}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=trailing \n", {"a": "trailing "}),
        ("a=b=c", {"a": "b=c"}),
        ("a=\\\n#not a comment", {"a": "#not a comment"}),
    ],
)
def test_files_are_read_as_java_reads_them(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected


def test_a_broken_escape_names_its_line_and_not_its_value() -> None:
    with pytest.raises(ConfigError, match="Line 2") as caught:
        parse_properties("a=1\npassword=hunter\\u12")
    assert "hunter" not in str(caught.value)


@given(
    st.dictionaries(
        st.text(min_size=1, alphabet=st.characters(exclude_categories=["Cs"])), st.text(alphabet=st.characters(exclude_categories=["Cs"]))
    )
)
def test_what_is_escaped_comes_back(values: dict[str, str]) -> None:
    def escaped(text: str) -> str:
        units = text.encode("utf-16-be")
        return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))

    assert parse_properties("\n".join(f"{escaped(k)}={escaped(v)}" for k, v in values.items())) == values
