"""Secrets do not leave the process."""

from connect_py.api import ConfigDef, ConfigKey, ConfigType
from connect_py.runtime.redact import redactor, secret_values

DEFINITION = ConfigDef([ConfigKey("database.password", ConfigType.PASSWORD), ConfigKey("auth", ConfigType.PASSWORD)])


def test_values_of_password_keys_and_of_names_that_say_so_are_replaced_in_every_spelling() -> None:
    secrets = secret_values(
        {"database.password": "s3cr&t w0rd", "auth": "abcdef", "x.sasl.jaas.config": 'p="q"z', "user": "dbz"}, DEFINITION
    )
    redact = redactor(secrets)
    for text in ("s3cr&t w0rd", "s3cr%26t%20w0rd", "s3cr%26t+w0rd", "abcdef", 'p="q"z', 'p=\\"q\\"z'):
        assert redact(f"failed for {text}!") == "failed for [hidden]!"
    assert redact("user dbz") == "user dbz"


def test_a_password_that_an_open_property_shows_too_is_left_alone() -> None:
    assert secret_values({"database.user": "postgres", "database.password": "postgres"}, DEFINITION) == set()


def test_a_very_short_password_does_not_garble_every_text() -> None:
    assert redactor(secret_values({"database.password": "a"}, DEFINITION))("a banana") == "a banana"


def test_one_secret_inside_another_is_replaced_as_a_whole() -> None:
    assert redactor({"pass", "password1"})("x password1 y pass") == "x [hidden] y [hidden]"
