"""HTTPS servers that a pod meets, for tests: Kubernetes' API server, and one that gives out tokens of OAuth."""

from __future__ import annotations

import base64
import contextlib
import json
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.certificates import Identity

TOKEN = "token-of-the-pod"

#: (namespace, name) → key → value.
Objects = Mapping[tuple[str, str], Mapping[str, str]]


class Handler(BaseHTTPRequestHandler):
    """A request handler without a log of each request, and how it answers in JSON."""

    def answer(self, status: int, body: Mapping[str, object]) -> None:
        """Send a whole answer."""
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@contextlib.contextmanager
def serving(handler: type[Handler], authority: Identity, folder: Path) -> Iterator[int]:
    """Serve HTTPS at 127.0.0.1 with a certificate of the authority; the port."""
    identity, file = Identity("server", authority), folder / "server.pem"
    file.write_text(identity.key_pem() + identity.chain_pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextlib.contextmanager
def api_server(authority: Identity, folder: Path, secrets: Objects, maps: Objects) -> Iterator[dict[str, str]]:
    """An API server whose service account may read everything but the namespace `forbidden`; variables by which pods find it."""

    class ApiServer(Handler):
        def do_GET(self) -> None:
            _, _, _, _, namespace, resource, name = self.path.split("/")
            if self.headers["Authorization"] != f"Bearer {TOKEN}":
                self.answer(401, {"kind": "Status"})
            elif namespace == "forbidden":
                self.answer(403, {"kind": "Status"})
            elif resource == "secrets" and (namespace, name) in secrets:
                encoded = {key: base64.b64encode(value.encode()).decode() for key, value in secrets[namespace, name].items()}
                self.answer(200, {"kind": "Secret", "data": {**encoded, "binary": base64.b64encode(b"\xff\xfe").decode()}})
            elif resource == "configmaps" and (namespace, name) in maps:
                self.answer(200, {"kind": "ConfigMap", "data": maps[namespace, name]})
            else:
                self.answer(404, {"kind": "Status"})

    with serving(ApiServer, authority, folder) as port:
        yield {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(port)}


@contextlib.contextmanager
def token_server(authority: Identity, folder: Path, client: str, secret: str) -> Iterator[str]:
    """An authorization server with one client; its token endpoint's address.

    The token is a JWT without a signature, which a broker accepts that has no settings of its own (`OAuthBearerUnsecuredJws.java`).
    """

    def part(content: Mapping[str, object]) -> str:
        return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")

    login = "Basic " + base64.b64encode(f"{client}:{secret}".encode()).decode()

    class TokenServer(Handler):
        def do_POST(self) -> None:
            form = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers["Authorization"] != login or b"grant_type=client_credentials" not in form:
                self.answer(401, {"error": "invalid_client"})
                return
            now = int(time.time())
            token = f"{part({'alg': 'none'})}.{part({'sub': client, 'iat': now, 'exp': now + 3600})}."
            self.answer(200, {"access_token": token, "token_type": "Bearer", "expires_in": 3600})

    with serving(TokenServer, authority, folder) as port:
        yield f"https://127.0.0.1:{port}/token"


def write_account(folder: Path, authority: Identity, namespace: str) -> None:
    """Write the files that Kubernetes mounts into a pod of that namespace."""
    (folder / "token").write_text(TOKEN + "\n")
    (folder / "namespace").write_text(namespace)
    (folder / "ca.crt").write_text(authority.chain_pem)
