"""Secrets do not leave the process."""

import base64
import time

import pytest

from connect_py.api import ConfigDef, ConfigKey, ConfigType
from connect_py.runtime.redact import redactor, scrub, secret_values

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


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("schema.registry.url", "http://svc:hunter2xyz@registry:8081", "hunter2xyz"),
        ("connection.url", "jdbc:postgresql://db/inventory?user=svc&password=hunter2xyz&ssl=true", "hunter2xyz"),
        ("mongodb.connection.string", "mongodb://svc:p%40ss%3Aword@db1,db2/?replicaSet=rs0", "p@ss:word"),
        ("producer.override.sasl.jaas.config", 'org.x.PlainLoginModule required username="svc" password="hunter2xyz";', "hunter2xyz"),
        ("value.converter.basic.auth.user.info", "svc:hunter2xyz", "hunter2xyz"),
    ],
)
def test_a_secret_within_a_value_is_known(name: str, value: str, secret: str) -> None:
    redact = redactor(secret_values({name: value}))
    assert redact(f"login with {secret} failed") == "login with [hidden] failed"


def test_the_credentials_that_a_client_sends_are_known() -> None:
    sent = base64.b64encode(b"svc:hunter2xyz").decode()
    assert sent not in redactor(secret_values({"basic.auth.user.info": "svc:hunter2xyz"}))(f"{{'Authorization': '{sent}'}}")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("GET http://svc:hunter2@registry:8081/subjects", "GET http://svc:[hidden]@registry:8081/subjects"),
        ("mongodb://a:b@h1,h2/x", "mongodb://a:[hidden]@h1,h2/x"),
        ("Authorization: Basic c3ZjOmh1bnRlcjI=", "Authorization: Basic [hidden]"),
        ("'authorization': 'Bearer eyJhbGciOi.x-y_z'", "'authorization': 'Bearer [hidden]'"),
        ("host=h password='a b' dbname=d", "host=h password=[hidden] dbname=d"),
        ('required username="u" password="pw";', 'required username="u" password=[hidden];'),
        ("url?user=u&password=pw&x=1", "url?user=u&password=[hidden]&x=1"),
    ],
)
def test_what_looks_like_a_secret_is_taken_out_though_nobody_knows_it(text: str, shown: str) -> None:
    assert scrub(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "Invalid value null for configuration database.password: The 'database.password' value is required",
        'password authentication failed for user "dbz"',
        "the broker asks for basic authentication, or Bearer tokens",
        "Set database.password=${file:/run/secrets:db} and rest.redact.secrets=true",
        "listening on http://127.0.0.1:8083 and http://[::1]:8083",
        "jdbc:postgresql://db:5432/inventory@main",
        "offset 2026-03-01 12:00:00 of connect-configs-0: ok",
    ],
)
def test_sentences_that_only_speak_of_secrets_stay_as_they_are(text: str) -> None:
    assert scrub(text) == text


def test_a_long_text_of_many_dots_is_looked_through_at_once() -> None:
    text = "a." * 10_000 + "http://svc:hunter2xyz@host"
    began = time.monotonic()
    assert scrub(text) == "a." * 10_000 + "http://svc:[hidden]@host"
    assert secret_values({"x": text}, DEFINITION) == {"hunter2xyz"}
    assert time.monotonic() - began < 2
