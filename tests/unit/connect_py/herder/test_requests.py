"""What a herder lets through, and what it shows: signatures of workers (KIP-507) and hidden secrets."""

import base64
import hashlib
import hmac
import re
import threading

import pytest

from connect_py.api import ConfigDef, ConfigKey, ConfigType
from connect_py.errors import BadRequestError, ConfigError, RestError
from connect_py.herder.secret_values import hidden, restored
from connect_py.herder.session_key import InternalSignature, SessionKeySettings, check, is_outdated, new_key
from connect_py.herder.thread import HerderThread

KEY = {"key": base64.b64encode(b"k" * 32).decode(), "algorithm": "HmacSHA256", "creation-timestamp": 1_000}
SETTINGS = SessionKeySettings()


def signed(body, key=b"k" * 32, algorithm="HmacSHA256", digest=hashlib.sha256):
    return InternalSignature.of_headers(algorithm, base64.b64encode(hmac.new(key, body, digest).digest()).decode(), body)


@pytest.mark.parametrize("body", [b"", b"[]", b'[{"a":"b"}]'])
def test_a_request_signed_with_the_clusters_key_is_let_through(body):
    check(signed(body), KEY, SETTINGS)


@pytest.mark.parametrize(
    ("signature", "stored", "status", "message"),
    [
        (None, KEY, 400, "Internal request missing required signature"),
        (signed(b"[]", key=b"x" * 32), KEY, 403, "Internal request contained invalid signature."),
        (InternalSignature("HmacSHA256", b"", b"[]"), KEY, 403, "Internal request contained invalid signature."),
        (
            signed(b"[]"),
            None,
            503,
            "This worker is still starting up and has not been able to read a session key from the config topic yet",
        ),
        (signed(b"[]", algorithm="HmacMD5", digest=hashlib.md5), KEY, 400, "This worker does not support the 'HmacMD5' key signing"),
    ],
)
def test_other_requests_are_refused_with_the_references_words(signature, stored, status, message):
    with pytest.raises(RestError, match=message.replace("(", r"\(")) as caught:
        check(signature, stored, SETTINGS)
    assert caught.value.status == status


def test_headers_that_cannot_be_a_signature_are_400():
    assert InternalSignature.of_headers(None, "YWJj", b"") is InternalSignature.of_headers("HmacSHA256", None, b"") is None
    with pytest.raises(BadRequestError, match="Algorithm nope not available"):
        InternalSignature.of_headers("nope", "YWJj", b"")
    assert InternalSignature.of_headers("HmacSHA256", "YWI", b"").mac == b"ab"


@pytest.mark.parametrize("text", ["", "YWJj", "YWJjYQ", "YWJjYQ==", "YWJjYWI="])
def test_a_signature_may_lack_its_padding(text):
    assert InternalSignature.of_headers("HmacSHA256", text, b"").mac == b"abcab"[: len(text.rstrip("=")) * 3 // 4]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("!!", "Illegal base64 character 21"),
        ("YWJj*", "Illegal base64 character 2a"),
        ("YWJj\u00e9", "Illegal base64 character -17"),
        ("YWJj YQ==", "Illegal base64 character 20"),
        ("YW-_", "Illegal base64 character 2d"),
        ("*", "Input byte[] should at least have 2 bytes for base64 bytes"),
        ("YWJjY", "Last unit does not have enough valid bits"),
        ("YWJjY=", "Last unit does not have enough valid bits"),
        ("A=*B", "Last unit does not have enough valid bits"),
        ("YWJj=", "Input byte array has wrong 4-byte ending unit"),
        ("YWJjYQ=", "Input byte array has wrong 4-byte ending unit"),
        ("YQ=*", "Input byte array has wrong 4-byte ending unit"),
        ("==", "Input byte array has wrong 4-byte ending unit"),
        ("YWJjYQ==x", "Input byte array has incorrect ending byte at 8"),
        ("YWJjYWI==", "Input byte array has incorrect ending byte at 8"),
    ],
)
def test_a_signature_that_is_not_base64_is_refused_with_javas_words(text, says):
    with pytest.raises(BadRequestError, match=f"^{re.escape(says)}$"):
        InternalSignature.of_headers("HmacSHA256", text, b"")


def test_a_stored_key_that_is_not_base64_lets_no_one_through():
    with pytest.raises(RestError) as caught:
        check(signed(b"[]", key=b""), KEY | {"key": "**"}, SETTINGS)
    assert caught.value.status == 503


def test_a_key_is_made_when_there_is_none_or_it_is_old_or_of_another_kind():
    assert is_outdated(None, SETTINGS, 0)
    assert not is_outdated(KEY, SETTINGS, 1_000 + 3_599_999)
    assert is_outdated(KEY, SETTINGS, 1_000 + 3_600_000)
    assert is_outdated(KEY, SessionKeySettings(algorithm="HmacSHA512"), 1_000)
    assert is_outdated(KEY, SessionKeySettings(bits=512), 1_000)
    assert not is_outdated(KEY, SessionKeySettings(bits=256), 1_000)
    assert is_outdated(KEY | {"key": base64.b64encode(b"k" * 16).decode()}, SETTINGS, 1_000)
    assert len(base64.b64decode(new_key(SETTINGS))) == 32
    assert len(base64.b64decode(new_key(SessionKeySettings(bits=512)))) == 64
    assert new_key(SETTINGS) != new_key(SETTINGS)
    odd = SessionKeySettings(bits=300)
    assert not is_outdated(KEY | {"key": new_key(odd)}, odd, 1_000)
    assert not is_outdated(KEY, SessionKeySettings(ttl_ms=0), 10**15)


@pytest.mark.parametrize(
    "properties",
    [
        {"inter.worker.key.generation.algorithm": "HmacNope"},
        {"inter.worker.signature.algorithm": "HmacSHA512"},
        {"inter.worker.verification.algorithms": ""},
        {"inter.worker.key.ttl.ms": "soon"},
        {"inter.worker.key.ttl.ms": "2147483648"},
        {"inter.worker.key.size": "-1"},
        {"inter.worker.key.size": "32"},
    ],
)
def test_settings_that_would_shut_workers_out_stop_the_start(properties):
    with pytest.raises(ConfigError, match=r"inter\.worker"):
        SessionKeySettings.parse(properties)


DEFINITION = ConfigDef((ConfigKey("database.password", ConfigType.PASSWORD), ConfigKey("password.file"), ConfigKey("topic")))
CONFIG = {
    "database.password": "hunter22",
    "password.file": "/run/pw",
    "topic": "t",
    "producer.override.sasl.jaas.config": "x required;",
    "api.key": "${env:KEY}",
    "consumer.override.ssl.key.password": "",
}


def test_secrets_are_hidden_by_their_type_or_their_name_and_placeholders_are_not():
    assert hidden(CONFIG, DEFINITION) == {
        **CONFIG,
        "database.password": "[hidden]",
        "producer.override.sasl.jaas.config": "[hidden]",
    }
    assert hidden({"database.password": "a${x:y}"}, None) == {"database.password": "[hidden]"}


def test_secrets_of_other_parts_are_hidden_by_their_names_and_addresses_by_their_logins():
    config = {"transforms.t.phrase": "hunter22", "database.user": "hunter22", "uri": "mongodb://u:hunter22@h/", "place": "mongodb://h/"}
    assert hidden(config, DEFINITION, {"transforms.t.phrase"}) == {**config, "transforms.t.phrase": "[hidden]", "uri": "[hidden]"}


def test_what_is_hidden_may_be_sent_back():
    changed = {**hidden(CONFIG, DEFINITION), "topic": "u", "api.key": None}
    assert restored(changed, CONFIG) == {**CONFIG, "topic": "u", "api.key": None}


def test_a_hidden_value_without_a_stored_one_is_refused():
    with pytest.raises(BadRequestError, match=r"database\.password is \[hidden\]"):
        restored({"database.password": "[hidden]"}, {"topic": "t"})


def test_a_request_that_times_out_says_what_the_worker_is_busy_with_or_did_last():
    thread, gate, busy = HerderThread(), threading.Event(), threading.Event()
    thread.start()

    def stuck():
        busy.set()
        gate.wait(30)

    thread.post(stuck, "restarting connector c")
    assert busy.wait(60)
    with pytest.raises(RestError, match=r"^Request timed out\. The worker is currently restarting connector c, which began at 20\S+Z\.$"):
        thread.call(lambda: None, 0.05)
    gate.set()
    thread.call(lambda: None, doing="writing the configuration of connector c")
    thread.call(thread.stage)
    thread.stop()
    wanted = r"^The last operation the worker completed was handling a request, which began at 20\S+Z and completed at 20\S+Z\.$"
    assert re.match(wanted, thread.stage())


STORED = {
    "database.password": "s3cret99",
    "database.hostname": "db",
    "database.port": "5432",
    "database.sslmode": "verify-full",
    "topic": "t",
}


@pytest.mark.parametrize(
    "change",
    [
        {"database.hostname": "evil.example"},
        {"database.port": "28397"},
        {"database.port": None},
        {"database.sslmode": "disable"},
        {"database.user": "root"},
        {"schema.registry.url": "http://evil.example"},
        {"producer.override.bootstrap.servers": "evil.example:9092"},
        {"connector.class": "com.example.Other"},
    ],
)
def test_a_hidden_secret_is_not_sent_to_another_server(change: dict[str, str | None]) -> None:
    shown: dict[str, str | None] = {**STORED, "database.password": "[hidden]"}
    name = next(iter(change))
    with pytest.raises(BadRequestError, match=f"These have changed: .*{name}"):
        restored({**shown, **change}, STORED)
    with pytest.raises(BadRequestError, match=name):
        restored({"database.password": "[hidden]", **change}, STORED, partial=True)
    assert restored({**STORED, **change}, STORED) == {**STORED, **change}


def test_a_hidden_secret_stays_where_anything_else_changes() -> None:
    shown: dict[str, str | None] = {**STORED, "database.password": "[hidden]", "topic": "u", "transforms.route.type": "X"}
    assert restored(shown, STORED)["database.password"] == "s3cret99"
    assert restored({"database.password": "[hidden]", "topic": "u"}, STORED, partial=True)["database.password"] == "s3cret99"
    with pytest.raises(BadRequestError, match=r"database\.sslmode"):
        restored({name: value for name, value in shown.items() if name != "database.sslmode"}, STORED)
