"""The table from SQLSTATE to error class."""

import pytest

from connect_py.errors import FatalTaskError, RetriableError
from connectors.postgres.errors import ADVICE, CLASSES, ServerError, class_of, connect_error, translate


@pytest.mark.parametrize(("prefix", "wanted"), CLASSES)
def test_every_line_of_the_table_is_reached(prefix: str, wanted: type[Exception]) -> None:
    assert class_of(prefix.ljust(5, "9") if prefix else "42P01") is wanted


def test_no_line_is_hidden_behind_an_earlier_one() -> None:
    prefixes = [prefix for prefix, _ in CLASSES]
    for index, prefix in enumerate(prefixes):
        assert not any(prefix.startswith(earlier) for earlier in prefixes[:index])


@pytest.mark.parametrize(("prefix", "_"), ADVICE)
def test_advice_names_what_the_reader_needs(prefix: str, _: str) -> None:
    error = translate(ServerError(prefix.ljust(5, "0"), "no"), "Cannot read", user="reader", database="shop")
    assert str(error).startswith(f"Cannot read: no (SQLSTATE {prefix.ljust(5, '0')}). ")
    assert "{" not in str(error)


@pytest.mark.parametrize(
    ("text", "code", "wanted"),
    [
        ('connection to server at "h", port 1 failed: FATAL:  password authentication failed for user "u"\n', "28P01", FatalTaskError),
        ('connection to server at "h", port 1 failed: FATAL:  database "d" does not exist\n', "3D000", FatalTaskError),
        ('connection to server at "h", port 1 failed: FATAL:  role "r" does not exist\n', "28000", FatalTaskError),
        ('connection to server at "h", port 1 failed: FATAL:  no pg_hba.conf entry for host "1.2.3.4"\n', "28000", FatalTaskError),
        ('connection to server at "h", port 1 failed: FATAL:  sorry, too many connections\n', "53300", RetriableError),
        ('connection to server at "h", port 1 failed: FATAL:  the database system is starting up\n', "57P03", RetriableError),
        ('connection to server at "h", port 1 failed: Connection refused\n\tIs the server running?\n', "08001", RetriableError),
        ('could not translate host name "nowhere" to address: Name or service not known\n', "08001", RetriableError),
    ],
)
def test_a_connection_that_does_not_open_is_classed_by_libpqs_text(text: str, code: str, wanted: type[Exception]) -> None:
    error = connect_error(text)
    assert error.sqlstate == code
    assert class_of(code) is wanted


def test_the_text_of_a_refused_password_is_the_drivers() -> None:
    text = 'connection to server at "127.0.0.1", port 5432 failed: FATAL:  password authentication failed for user "postgres"\n'
    assert connect_error(text).message == 'FATAL: password authentication failed for user "postgres"'
