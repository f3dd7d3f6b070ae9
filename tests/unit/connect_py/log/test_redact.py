"""Secrets do not leave the process."""

import base64
import threading
import time

import pytest

from connect_py.api import ConfigDef, ConfigKey, ConfigType
from connect_py.log.redact import Redactor, is_secret_name, readable, redactor, scrub, secret_values
from tests.canary import within

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


@pytest.mark.parametrize(
    ("name", "is_secret"),
    [
        ("lakehouse.hadoop.fs.azure.account.key.store.dfs.core.windows.net", True),
        ("lakehouse.hadoop.fs.azure.sas.container.store.blob.core.windows.net", True),
        ("lakehouse.hadoop.fs.s3a.encryption.key", True),
        ("lakehouse.catalog.adls.auth.shared-key.account.key", True),
        ("lakehouse.catalog.adls.connection-string.store", True),
        ("lakehouse.catalog.s3.sse.key", True),
        ("consumer.override.ssl.keystore.key", True),
        ("ssl.keystore.location", False),
        ("mongodb.connection.string", False),
        ("encryption.key-id", False),
        ("message.key.columns", False),
        ("key.converter", False),
    ],
)
def test_names_say_what_is_a_secret(name: str, is_secret: bool) -> None:
    assert is_secret_name(name) is is_secret


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
        ('{"database.password": "pw", "x": 1}', '{"database.password": "[hidden]", "x": 1}'),
        ("{'password': 'p\\'w', 'user': 'u'}", "{'password': '[hidden]', 'user': 'u'}"),
        ('"{\\"api_key\\":\\"pw\\"}"', '"{\\"api_key\\":\\"[hidden]\\"}"'),
        ("GET /x?token=abc&y=1", "GET /x?token=[hidden]&y=1"),
        ("api_key=abc, region=eu", "api_key=[hidden], region=eu"),
        ("aws_secret_access_key=AbC/123", "aws_secret_access_key=[hidden]"),
        ("AccountName=a;AccountKey=AbC+/12==;EndpointSuffix=x", "AccountName=a;AccountKey=[hidden];EndpointSuffix=x"),
        ("https://a.blob.core.windows.net/c?sv=1&sig=AbC%2F&se=2", "https://a.blob.core.windows.net/c?sv=1&sig=[hidden]&se=2"),
        ("fs.s3a.secret.key=AbC", "fs.s3a.secret.key=AbC"),  # a property's value is known from the configuration
        ("CREATE USER u IDENTIFIED BY 'it''s' REQUIRE SSL", "CREATE USER u IDENTIFIED BY [hidden] REQUIRE SSL"),
        ("identified with mysql_native_password as '*ABC'", "identified with mysql_native_password as [hidden]"),
        ("ALTER ROLE u PASSWORD 'pw' LOGIN", "ALTER ROLE u PASSWORD [hidden] LOGIN"),
        ("SET PASSWORD = 'pw'", "SET PASSWORD = [hidden]"),
        (r'required password="a\"tail";', "required password=[hidden];"),
        (r'jaas="required password=\"a\\\"tail\";"', r'jaas="required password=[hidden];"'),
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
        '{"database.password": "${file:/run/secrets:db}", "token": null}',
        "The 'database.password' is needed, and 'database.user' too",
    ],
)
def test_sentences_that_only_speak_of_secrets_stay_as_they_are(text: str) -> None:
    assert scrub(text) == text


def test_a_long_text_of_many_dots_is_looked_through_at_once() -> None:
    text = "a." * 10_000 + "http://svc:hunter2xyz@host"
    began = time.process_time()
    assert scrub(text) == "a." * 10_000 + "http://svc:[hidden]@host"
    assert secret_values({"x": text}, DEFINITION) == {"hunter2xyz"}
    assert time.process_time() - began < 2


@pytest.mark.parametrize(
    "text", ['"' * 20_000, '"a' * 20_000, "'" + "a" * 100_000, '"password":"' * 5_000, "\\" * 50_000 + '"', "password='" * 5_000]
)
def test_hostile_texts_are_looked_through_at_once(text: str) -> None:
    began = time.process_time()
    scrub(text)
    secret_values({"x": text})
    assert time.process_time() - began < 2


def test_a_password_of_a_jaas_line_is_known_to_its_end() -> None:
    line = r'PlainLoginModule required username="u" password="first\"second";'
    assert secret_values({"producer.sasl.jaas.config": line}) >= {r"first\"second", 'first"second'}


@pytest.mark.parametrize(
    "name", ["config.providers.secret.class", "transforms.token.type", "sasl.login.class", "transforms.password.field"]
)
def test_an_alias_and_the_name_of_a_class_are_no_secrets(name: str) -> None:
    assert secret_values({name: "com.example.Vault"}) == set()


def test_parameters_of_a_provider_are_secrets_by_their_own_names() -> None:
    assert secret_values({"config.providers.secret.param.token": "hunter2xyz"}) == {"hunter2xyz"}


def test_a_slow_regex_for_names_of_secrets_does_not_hold_up_the_process() -> None:
    """It is matched elsewhere, for a second; this process's other threads run meanwhile."""
    config = {"custom.sanitize.pattern": "(a+)+$", "a" * 60 + "b": "hunter2xyz"}
    ticks = 0
    ended = threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not ended.wait(0.01):
            ticks += 1

    ticker = threading.Thread(target=tick)
    ticker.start()
    began = time.monotonic()
    try:
        assert secret_values(config) == set()
        assert time.monotonic() - began < 30
        assert ticks > 10
        with within(0.1, "what it matched is known"):
            assert secret_values(config) == set()
    finally:
        ended.set()
        ticker.join()


def test_a_regex_for_names_of_secrets_is_matched_whole_and_in_any_case() -> None:
    config = {"custom.sanitize.pattern": r".*\.(?:pin|phrase)$", "my.PIN": "hunter2xyz", "pin.other": "visible-one"}
    assert secret_values(config) == {"hunter2xyz"}
    assert secret_values({**config, "custom.sanitize.pattern": "("}) == set()


def test_what_is_learnt_is_forgotten_with_its_owner() -> None:
    known = Redactor()
    known.learn({"hunter2xyz", "failed"}, "orders")
    known.learn({"hunter2xyz", "swordfish"}, "stock")
    assert known("hunter2xyz swordfish") == "[hidden] [hidden]"
    known.forget("orders")
    assert known("hunter2xyz failed") == "[hidden] failed"
    known.forget("stock")
    assert known("hunter2xyz swordfish") == "hunter2xyz swordfish"


def test_short_values_are_not_hidden_in_every_line_of_the_process() -> None:
    known = Redactor()
    known.learn({"error", "sixsix"}, "orders")
    assert known("an error of sixsix") == "an error of [hidden]"


def test_one_owner_cannot_fill_the_memory() -> None:
    known = Redactor()
    for number in range(3000):
        known.learn({f"secret-{number:05}"}, "orders")
    assert len(known.secrets) == 500
    assert known("secret-02999 secret-00000") == "[hidden] secret-00000"


def test_an_error_of_a_server_cannot_change_a_terminal_or_fill_a_log() -> None:
    assert readable("a\x1b[31mred\x07\r over\r\nnext\tline\x9b") == "a\\x1b[31mred\\x07\\x0d over\r\nnext\tline\\x9b"
    assert readable("é漢 \n ok") == "é漢 \n ok"
    cut = readable("x" * 100_000)
    assert cut == "x" * 32_768 + "… (67232 more characters)"
