"""What is special about the Japanese and Chinese sets of MySQL; all characters beside the server's in tests/integration."""

from __future__ import annotations

import pytest

from connectors.mysql.binlog.charsets import decoder


@pytest.mark.parametrize(
    ("charset", "stored", "text"),
    [
        ("eucjpms", "ada1 61 8ff3f3 8ffefe b4c1", "①aⅰ\ue757漢"),
        ("eucjpms", "8fa2b7 a1c1 7e", "～～~"),
        ("eucjpms", "61 8f 62", "a\ufffdb"),
        ("eucjpms", "61 8ff3", "a\ufffd\ufffd"),
        ("eucjpms", "ad", "\ufffd"),
        ("ujis", "f5a1 a1c0 5c ada1", "\ue000\\\\\ufffd"),
        ("big5", "f9d6 61 f9fe", "碁a▓"),
        ("big5", "80 61 f9", "\ufffda\ufffd"),
        ("sjis", "815f 93fa", "\\日"),
        ("latin1", "80 81 e9", "€\x81é"),
    ],
)
def test_text_of_stored_bytes(charset: str, stored: str, text: str) -> None:
    assert decoder(charset)(bytes.fromhex(stored)) == text
