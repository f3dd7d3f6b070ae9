"""Who may call the REST API and how: TLS, basic authentication, admin listeners, pages of other origins, limits and deadlines."""

import base64
import json
import re
import socket
import ssl
import threading
import time
from http.client import HTTPConnection, HTTPSConnection

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12

from connect_py.app.services.memory_herder import MemoryHerder
from connect_py.errors import ConfigError
from rest_api import RestConfig, Server, create_admin_app, create_app
from rest_api.basic_auth import BasicAuth
from rest_api.jaas import EXTENSION, jaas_path, parse_jaas
from rest_api.listeners import openssl_cipher, parse_listeners
from rest_api.waiting import Gate
from tests.certificates import Identity

PASSWORD = "pass-of-the-store"
MODULE = "org.apache.kafka.connect.rest.basic.auth.extension.PropertyFileLoginModule"


@pytest.fixture(scope="module")
def authority():
    return Identity("authority")


@pytest.fixture(scope="module")
def identity(authority):
    return Identity("worker", authority)


@pytest.fixture
def stores(tmp_path, authority, identity):
    """Files of every kind of store."""
    (tmp_path / "store.pem").write_text(identity.key_pem() + identity.chain_pem)
    (tmp_path / "locked.pem").write_text(identity.key_pem(PASSWORD) + identity.chain_pem)
    (tmp_path / "store.p12").write_bytes(identity.p12(PASSWORD))
    (tmp_path / "store.jks").write_bytes(b"\xfe\xed\xfe\xed\0\0\0\2")
    (tmp_path / "trust.pem").write_text(authority.chain_pem)
    trust = pkcs12.serialize_key_and_certificates(
        None, None, None, [authority.certificate], serialization.BestAvailableEncryption(PASSWORD.encode())
    )
    (tmp_path / "trust.p12").write_bytes(trust)
    return tmp_path


@pytest.fixture
def started():
    """Starts workers' REST servers from worker properties; returns (port of the first listener, port of the first admin listener)."""
    servers = []

    def start(properties, herder=None, environment=None, head_seconds=30, **settings):
        config = RestConfig.from_worker(properties, environment or {})
        for name, value in settings.items():
            object.__setattr__(config, name, value)
        server = Server(config.listeners, config.admin_listeners or (), head_seconds)
        herder = herder or MemoryHerder()
        server.start(create_app(herder, config), create_admin_app(herder, config))
        servers.append(server)
        return [int(url.rpartition(":")[2]) for url in server.urls + server.admin_urls]

    yield start
    for server in servers:
        server.stop(2)


def ask(port, method="GET", path="/", *, headers=None, tls=None, body=None):
    if tls is None:
        connection = HTTPConnection("127.0.0.1", port, timeout=60)
    else:
        connection = HTTPSConnection("127.0.0.1", port, timeout=60, context=tls)
    try:
        connection.request(method, path, body=body, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def trusting(authority, client=None, tmp_path=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=authority.chain_pem)
    if client:
        path = tmp_path / "client.pem"
        path.write_text(client.key_pem() + client.chain_pem)
        context.load_cert_chain(path)
    return context


HTTPS = {"listeners": "https://127.0.0.1:0"}


@pytest.mark.parametrize(
    "store",
    [
        {"ssl.keystore.type": "PEM", "ssl.keystore.location": "{}/store.pem"},
        {"ssl.keystore.type": "PEM", "ssl.keystore.location": "{}/locked.pem", "ssl.key.password": PASSWORD},
        {"ssl.keystore.type": "PKCS12", "ssl.keystore.location": "{}/store.p12", "ssl.keystore.password": PASSWORD},
        {"ssl.keystore.location": "{}/store.p12", "ssl.keystore.password": PASSWORD},
        {"ssl.keystore.type": "PEM", "ssl.keystore.key": "KEY", "ssl.keystore.certificate.chain": "CHAIN"},
        {"ssl.keystore.key": "LOCKED", "ssl.keystore.certificate.chain": "CHAIN", "ssl.key.password": PASSWORD},
    ],
    ids=["pem", "pem with a password", "pkcs12", "pkcs12 by its content", "inline", "inline with a password"],
)
@pytest.mark.rotates(keep=4)
@pytest.mark.parametrize("prefix", ["", "listeners.https."])
def test_https_is_served_from_every_kind_of_key_store(started, stores, authority, identity, store, prefix):
    inline = {"KEY": identity.key_pem(), "LOCKED": identity.key_pem(PASSWORD), "CHAIN": identity.chain_pem}
    given = {prefix + name: inline.get(value, value.format(stores)) for name, value in store.items()}
    (port,) = started({**HTTPS, **given})
    status, _, body = ask(port, tls=trusting(authority))
    assert (status, json.loads(body)["version"]) == (200, "4.3.1")


def test_prefixed_properties_hide_those_without_a_prefix(stores):
    with pytest.raises(ConfigError, match=r"needs a certificate: set listeners\.https\.ssl\.keystore\.location"):
        RestConfig.from_worker({**HTTPS, "ssl.keystore.location": f"{stores}/store.pem", "listeners.https.ssl.client.auth": "none"}, {})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "An https listener needs a certificate"),
        ({"ssl.keystore.location": "{}/none.pem"}, r"ssl\.keystore\.location: .*none\.pem cannot be read: No such file"),
        ({"ssl.keystore.location": "{}/store.jks"}, r"keytool -importkeystore -srckeystore \S+store\.jks -destkeystore \S+store\.p12"),
        ({"ssl.keystore.location": "{}/store.p12", "ssl.keystore.password": "wrong-one"}, r"Is ssl\.keystore\.password right"),
        ({"ssl.keystore.location": "{}/locked.pem", "ssl.key.password": "wrong-one"}, r"Is ssl\.key\.password right"),
        ({"ssl.keystore.location": "{}/locked.pem"}, r"Is ssl\.key\.password right"),
        ({"ssl.keystore.location": "{}/trust.pem"}, "cannot be used"),
        ({"ssl.keystore.location": "{}/store.pem", "ssl.client.auth": "maybe"}, "none, requested, required"),
        ({"ssl.keystore.location": "{}/store.pem", "ssl.enabled.protocols": "SSLv3"}, "TLSv1.2 and TLSv1.3"),
        ({"ssl.keystore.location": "{}/store.pem", "ssl.cipher.suites": "TLS_NO_WITH_SUCH"}, r"ssl\.cipher\.suites"),
        ({"ssl.keystore.location": "{}/store.pem", "ssl.client.auth": "required", "ssl.truststore.location": "{}/store.jks"}, "keytool"),
    ],
)  # fmt: skip
def test_a_store_that_cannot_be_used_stops_the_start_and_no_password_is_told(stores, given, message):
    with pytest.raises(ConfigError, match=message) as caught:
        RestConfig.from_worker({**HTTPS, **{name: value.format(stores) for name, value in given.items()}}, {})
    assert "wrong-one" not in str(caught.value)


@pytest.mark.parametrize("trust", ["trust.pem", "trust.p12"])
def test_clients_certificates_are_required_or_requested(started, stores, authority, tmp_path, trust):
    given = {
        **HTTPS,
        "ssl.keystore.location": f"{stores}/store.pem",
        "ssl.truststore.location": f"{stores}/{trust}",
        "ssl.truststore.password": PASSWORD,
    }
    (required,) = started({**given, "ssl.client.auth": "required"})
    (requested,) = started({**given, "ssl.client.auth": "requested"})
    known = trusting(authority, Identity("client", authority), tmp_path)
    assert ask(required, tls=known)[0] == ask(requested, tls=known)[0] == 200
    assert ask(requested, tls=trusting(authority))[0] == 200
    strangers = trusting(authority, Identity("stranger"), tmp_path)
    for port, client in ((required, trusting(authority)), (required, strangers), (requested, strangers)):
        with pytest.raises((ssl.SSLError, ConnectionError)):
            ask(port, tls=client)


def test_protocols_and_ciphers_are_those_of_the_properties(started, stores, authority):
    given = {**HTTPS, "ssl.keystore.location": f"{stores}/store.pem", "ssl.enabled.protocols": "TLSv1.2"}
    (port,) = started({**given, "ssl.cipher.suites": "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, TLS_AES_128_GCM_SHA256"})
    with socket.create_connection(("127.0.0.1", port)) as plain, trusting(authority).wrap_socket(plain, server_hostname="127.0.0.1") as tls:
        assert (tls.version(), tls.cipher()[0]) == ("TLSv1.2", "ECDHE-ECDSA-AES256-GCM-SHA384")


@pytest.mark.parametrize(
    ("java", "openssl"),
    [
        ("TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256", "ECDHE-RSA-AES128-SHA256"),
        ("TLS_RSA_WITH_AES_256_GCM_SHA384", "AES256-GCM-SHA384"),
        ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"),
        ("ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
    ],
)
def test_java_names_of_ciphers_are_understood(java, openssl):
    assert openssl_cipher(java) == openssl


def test_plain_and_tls_listeners_are_served_together_and_speak_their_own_protocol(started, stores, authority):
    plain, tls = started({"listeners": "http://127.0.0.1:0,https://127.0.0.1:0", "ssl.keystore.location": f"{stores}/store.p12",
                          "ssl.keystore.password": PASSWORD})  # fmt: skip
    assert ask(plain)[0] == ask(tls, tls=trusting(authority))[0] == 200
    location = ask(tls, "POST", "/connectors", tls=trusting(authority), headers={"Content-Type": "application/json"}, body=json.dumps(
        {"name": "c", "config": {"connector.class": "FileStreamSource", "topic": "t"}}))[1]["location"]  # fmt: skip
    assert location == f"https://127.0.0.1:{tls}/connectors/c"
    with pytest.raises((ssl.SSLError, ConnectionError)):
        ask(plain, tls=trusting(authority))


# -- admin listeners


def test_admin_listeners_serve_loggers_and_nothing_else(started, tmp_path):
    users = tmp_path / "users"
    users.write_text("a=b\n")
    main, admin = started(
        {
            "listeners": "http://127.0.0.1:0",
            "admin.listeners": "http://127.0.0.1:0",
            "rest.basic.auth.file": str(users),
            "response.http.headers.config": "set X-Frame-Options: DENY",
        }
    )
    assert ask(main, path="/admin/loggers")[0] == 404
    status, headers, body = ask(admin, path="/admin/loggers/root")
    assert (status, json.loads(body)["last_modified"]) == (200, None)
    assert "x-frame-options" not in headers
    for path in ("/", "/health", "/connectors", "/openapi.json", "/docs", "/metrics"):
        assert ask(admin, path=path)[0] == 404
    put = ask(admin, "PUT", "/admin/loggers/test.admin", headers={"Content-Type": "application/json"}, body='{"level":"DEBUG"}')
    assert (put[0], json.loads(put[2])) == (200, ["test.admin"])


def test_admin_listeners_have_keys_of_their_own(started, stores, authority):
    main, admin = started(
        {
            "listeners": "http://127.0.0.1:0",
            "admin.listeners": "https://127.0.0.1:0",
            "admin.listeners.https.ssl.keystore.location": f"{stores}/store.pem",
        }
    )
    assert ask(main)[0] == 200
    assert ask(admin, path="/admin/loggers", tls=trusting(authority))[0] == 200


def test_no_admin_listener_means_no_admin(started):
    (main,) = started({"listeners": "http://127.0.0.1:0", "admin.listeners": " "})
    assert ask(main, path="/admin/loggers")[0] == 404


# -- basic authentication


def basic(user, password):
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


@pytest.fixture
def users(tmp_path):
    path = tmp_path / "users.properties"
    path.write_text("alice=wonderland\nbob=p w=x\nzoë=müsli\n", encoding="utf-8")
    return path


@pytest.fixture
def jaas(tmp_path, users):
    path = tmp_path / "jaas.conf"
    path.write_text(f'// users\nKafkaConnect {{\n  {MODULE} required\n  file="{users}";\n}};\nOther {{ x.Y optional a=b c="d;}}"; }};\n')
    return path


@pytest.fixture
def guarded(started, jaas):
    options = {"KAFKA_OPTS": f"-Xmx1g -Djava.security.auth.login.config={jaas} -Dx=y"}
    return started({"listeners": "http://127.0.0.1:0", "rest.extension.classes": EXTENSION}, environment=options)[0]


def test_users_of_the_file_are_let_in_and_others_get_a_401_and_a_challenge(guarded):
    for user, password in (("alice", "wonderland"), ("bob", "p w=x"), ("zoë", "müsli")):
        assert ask(guarded, path="/connectors", headers=basic(user, password))[0] == 200
    assert ask(guarded, headers={"Authorization": basic("alice", "wonderland")["Authorization"].replace("Basic", "bAsIc")})[0] == 200
    wrong = [basic("alice", "x"), basic("alice", ""), basic("eve", "wonderland"), basic("", ""), {}]
    wrong += [{"Authorization": text} for text in ("Basic", "Basic !!", "Basic /w==", "Bearer x", "basic  YWxpY2U6d29uZGVybGFuZA==")]
    for headers in wrong:
        status, sent, body = ask(guarded, headers=headers)
        assert (status, body) == (401, b"User cannot access the resource.")
        assert sent["content-type"] == "application/json"
        assert sent["www-authenticate"].startswith("Basic realm=")


def test_pages_need_a_password_as_well(guarded):
    assert [ask(guarded, path=path)[0] for path in ("/docs", "/openapi.json", "/metrics", "/health")] == [401] * 4
    assert ask(guarded, "OPTIONS", "/connectors")[0] == 401
    assert ask(guarded, "HEAD", "/")[0] == 401
    described = json.loads(ask(guarded, path="/openapi.json", headers=basic("alice", "wonderland"))[2])
    assert described["security"] == [{"basic": []}] and described["components"]["securitySchemes"]["basic"]["scheme"] == "basic"


def test_what_names_no_resource_is_refused_before_anybody_is_asked(guarded):
    assert ask(guarded, path="/nope")[0] == 404
    assert ask(guarded, "DELETE", "/")[0] == 405
    assert ask(guarded, headers={"Accept": "text/html"})[0] == 406
    assert ask(guarded, "POST", "/connectors", headers={"Content-Type": "text/plain"}, body="x")[0] == 415


@pytest.mark.parametrize("request_line", ["POST /connectors/c/tasks", "POST /connectors/c/tasks/", "PUT /connectors/c/fence"])
def test_workers_are_asked_for_a_signature_instead_of_a_password(guarded, request_line):
    status, _, body = ask(guarded, *request_line.split(), headers={"Content-Type": "application/json"}, body="[]")
    assert (status, json.loads(body)["message"]) == (400, "Internal request missing required signature")


def test_the_exemption_of_workers_opens_nothing_else(guarded):
    assert ask(guarded, "GET", "/connectors/c/tasks")[0] == 401
    for request_line in ("POST /connectors", "PUT /connectors/fence/config", "PUT /connectors/c/pause"):
        assert ask(guarded, *request_line.split(), headers={"Content-Type": "application/json"}, body="{}")[0] == 401


def test_the_projects_own_property_needs_no_jaas(started, users):
    (port,) = started({"listeners": "http://127.0.0.1:0", "rest.basic.auth.file": str(users)})
    assert ask(port)[0] == 401
    assert ask(port, headers=basic("alice", "wonderland"))[0] == 200


def test_an_empty_file_of_users_lets_everybody_in_and_says_so(started, tmp_path, caplog):
    (tmp_path / "none").write_text("# nobody\n")
    (port,) = started({"listeners": "http://127.0.0.1:0", "rest.basic.auth.file": str(tmp_path / "none")})
    assert ask(port)[0] == 200
    assert "all requests are let in" in caplog.text


@pytest.mark.parametrize(
    ("properties", "environment", "message"),
    [
        ({"rest.extension.classes": "com.example.Ext"}, {}, r"com\.example\.Ext.*cannot run here"),
        ({"rest.extension.classes": EXTENSION}, {}, r"set rest\.basic\.auth\.file"),
        ({"rest.extension.classes": EXTENSION}, {"java.security.auth.login.config": "/no/jaas"}, "/no/jaas cannot be read: No such file"),
        ({"rest.extension.classes": EXTENSION}, {"KAFKA_OPTS": "-Djava.security.auth.login.config={}/bad"}, "is not of the form"),
        ({"rest.extension.classes": EXTENSION}, {"KAFKA_OPTS": "-Djava.security.auth.login.config={}/other"}, "no entry KafkaConnect"),
        ({"rest.extension.classes": EXTENSION}, {"KAFKA_OPTS": "-Djava.security.auth.login.config={}/nofile"}, "names no file of users"),
        ({"rest.basic.auth.file": "/no/users"}, {}, "/no/users: No such file"),
    ],
)
def test_authentication_that_cannot_work_stops_the_start(tmp_path, properties, environment, message):
    (tmp_path / "bad").write_text("KafkaConnect { x")
    (tmp_path / "other").write_text("KafkaConnect { com.example.Ldap required url=x; };")
    (tmp_path / "nofile").write_text(f"KafkaConnect {{ {MODULE} required; }};")
    with pytest.raises(ConfigError, match=message):
        RestConfig.from_worker(properties, {name: value.format(tmp_path) for name, value in environment.items()})


def test_jaas_files_have_comments_quotes_and_several_modules():
    text = 'A{m.One required a="x \\" y" b=2; m.Two optional;};/* B { */ C { m.Three sufficient; };'
    assert parse_jaas(text, "f") == {"A": [("m.One", {"a": 'x " y', "b": "2"}), ("m.Two", {})], "C": [("m.Three", {})]}
    assert jaas_path({"KAFKA_OPTS": '-Djava.security.auth.login.config="/a b/c"'}) == "/a b/c"


def test_credentials_have_no_text_form():
    assert "wonderland" not in repr(BasicAuth({"alice": "wonderland"}))


# -- pages of other origins


def test_origins_and_preflights_are_answered_as_jetty_does(started, users):
    (port,) = started(
        {
            "listeners": "http://127.0.0.1:0",
            "access.control.allow.origin": "https://ui.example, http://*.apps.example",
            "rest.basic.auth.file": str(users),
        }
    )
    for origin in ("https://ui.example", "HTTPS://UI.EXAMPLE", "http://a.apps.example"):
        headers = ask(port, headers={"Origin": origin, **basic("alice", "wonderland")})[1]
        assert (headers["access-control-allow-origin"], headers["vary"]) == (origin, "Origin")
    for origin in ("https://uixexample", "null", "http://apps.example.evil", "https://ui.example.evil"):
        headers = ask(port, headers={"Origin": origin, **basic("alice", "wonderland")})[1]
        assert "access-control-allow-origin" not in headers
        assert headers["vary"] == "Origin"
    asked = {"Origin": "https://ui.example", "Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "authorization"}
    status, headers, _ = ask(port, "OPTIONS", "/connectors", headers=asked)
    assert status == 200
    assert headers["access-control-allow-methods"] == "GET,POST,HEAD"
    assert headers["access-control-allow-headers"] == "Content-Type,Authorization"
    assert headers["access-control-max-age"] == "60"
    assert ask(port, "OPTIONS", "/connectors", headers={**asked, "Origin": "https://evil.example"})[0] == 401


# -- limits and deadlines


def test_heads_that_are_too_long_are_refused_with_a_status(started):
    (port,) = started({"listeners": "http://127.0.0.1:0"})
    assert ask(port, path="/connectors/" + "x" * 9000)[0] == 414
    assert ask(port, path="/connectors?x=" + "x" * 9000)[0] == 414
    status, _, body = ask(port, headers={"X-Long": "x" * 9000})
    assert (status, json.loads(body)) == (431, {"error_code": 431, "message": "HTTP 431 Request Header Fields Too Large"})
    with socket.create_connection(("127.0.0.1", port), timeout=60) as raw:
        raw.sendall(b"GET / HTTP/1.1\r\nX: " + b"x" * 200_000)
        assert raw.recv(100).startswith(b"HTTP/1.1 400 ")
    assert ask(port)[0] == 200


def test_a_name_that_no_address_could_hold_is_refused(started):
    (port,) = started({"listeners": "http://127.0.0.1:0"})
    body = json.dumps({"name": "é" * 1000, "config": {"connector.class": "FileStreamSource", "topic": "t"}})
    status, _, answer = ask(port, "POST", "/connectors", headers={"Content-Type": "application/json"}, body=body)
    assert (status, "too long" in json.loads(answer)["message"]) == (400, True)


def test_a_request_that_waits_too_long_gets_its_answer_and_the_server_goes_on(started):
    herder, gate, entered = MemoryHerder(), threading.Event(), threading.Event()

    def stuck():
        entered.set()
        gate.wait(30)
        return []

    herder.connectors = stuck
    (port,) = started({"listeners": "http://127.0.0.1:0"}, herder, request_seconds=1.5)
    ended = time.monotonic() + 20
    while not entered.is_set():
        # On a busy machine a request may time out before the herder is asked.
        status, _, body = ask(port, path="/connectors")
        assert (status, json.loads(body)) == (500, {"error_code": 500, "message": "Request timed out"})
        assert time.monotonic() < ended
    assert ask(port)[0] == 200
    gate.set()


def test_a_body_that_does_not_come_is_not_waited_for(started):
    (port,) = started({"listeners": "http://127.0.0.1:0"}, body_seconds=0.2)
    with socket.create_connection(("127.0.0.1", port), timeout=60) as raw:
        raw.sendall(b"POST /connectors HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
        assert raw.recv(100).startswith(b"HTTP/1.1 408 ")


def test_a_client_that_says_nothing_or_half_a_head_is_cut_off(started):
    (port,) = started({"listeners": "http://127.0.0.1:0"}, head_seconds=0.3)
    for said in (b"", b"GET / HT"):
        with socket.create_connection(("127.0.0.1", port), timeout=60) as raw:
            raw.sendall(said)
            assert raw.recv(1000) == b""


def test_a_connection_that_is_used_again_is_not_cut_off(started):
    (port,) = started({"listeners": "http://127.0.0.1:0"}, head_seconds=0.3)
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    ended = time.monotonic() + 0.9
    while time.monotonic() < ended:
        connection.request("GET", "/")
        assert connection.getresponse().read()
    connection.close()


def test_bodies_without_a_type_or_with_a_range_are_415_once_the_resource_is_found(started):
    (port,) = started({"listeners": "http://127.0.0.1:0"})
    for kind in ({}, {"Content-Type": "*/*"}, {"Content-Type": "application/*"}):
        status, sent, body = ask(port, "POST", "/connectors", headers=kind, body="{}")
        assert (status, sent["content-type"]) == (415, "application/json")
        assert json.loads(body)["message"] == "HTTP 415 Unsupported Media Type"
        assert ask(port, "PUT", "/connectors/ghost/pause", headers=kind, body="x")[0] == 404
    assert ask(port, "POST", "/connectors", headers={"Content-Type": "junk"}, body="{}")[0] == 400
    assert ask(port, headers={"Accept": "application/json;q=x"})[0] == 400


# -- a worker that starts


def test_probes_are_told_that_the_worker_starts_and_other_requests_wait_for_it():
    gate = Gate()
    server = Server(parse_listeners(["http://127.0.0.1:0"]))
    server.start(gate)
    try:
        port = int(server.urls[0].rpartition(":")[2])
        status, _, body = ask(port, path="/health")
        assert status == 503
        assert json.loads(body)["status"] == "starting"
        assert re.search(
            r"^Worker is still starting up\. The worker is currently initializing and .* began at \S+Z\.$", json.loads(body)["message"]
        )
        answers = []
        waiting = threading.Thread(target=lambda: answers.append(ask(port)[0]))
        waiting.start()
        assert not answers
        gate.open(create_app(MemoryHerder()))
        waiting.join(60)
        assert answers == [200]
        assert ask(port, path="/health")[0] == 200
    finally:
        server.stop(2)


def test_a_request_to_a_worker_that_does_not_get_ready_ends_with_the_stage():
    server = Server(parse_listeners(["http://127.0.0.1:0"]))
    server.start(Gate(seconds=0.1))
    try:
        status, _, body = ask(int(server.urls[0].rpartition(":")[2]), path="/connectors")
        assert status == 500
        assert json.loads(body)["message"].startswith("Request timed out. The worker is currently initializing")
    finally:
        server.stop(2)
