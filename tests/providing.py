"""An OpenID Connect provider on this machine: a real HTTP server that can be made to misbehave."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.receiving import serving

CLIENT, SECRET = "commonhold", "between-us"
KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)

Sign = Callable[[dict[str, Any]], str]


def rs256(claims: dict[str, Any], key: Any = KEY) -> str:
    return jwt.encode(claims, key, "RS256", headers={"kid": "k1"})


class Provider:
    """`person` signs in there; `change` and `sign` falsify an id_token; `paths` return 500; `error`
    is the result of the person's consent."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.person: dict[str, Any] = {
            "sub": "u1", "email": "alice@acme.example", "email_verified": True,
        }  # fmt: skip
        self.change: Callable[[dict[str, Any]], dict[str, Any]] = lambda claims: claims
        self.sign: Sign = rs256
        self.broken: set[str] = set()
        self.error = ""
        self.discovery: dict[str, Any] = {}
        self.asked: dict[str, str] = {}
        self.codes: dict[str, dict[str, str]] = {}

    def authorize(self, query: dict[str, str]) -> str:
        self.asked = query
        back = {"state": query["state"]}
        if self.error:
            back["error"] = self.error
        else:
            back["code"] = secrets.token_urlsafe(8)
            self.codes[back["code"]] = query
        return f"{query['redirect_uri']}?{urlencode(back)}"

    def token(self, form: dict[str, str]) -> dict[str, Any] | None:
        asked = self.codes.pop(form.get("code", ""), None)
        if asked is None or asked["redirect_uri"] != form["redirect_uri"]:
            return None
        if (form.get("client_id"), form.get("client_secret")) != (CLIENT, SECRET):
            return None
        proof = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        if asked["code_challenge"] != base64.urlsafe_b64encode(proof).rstrip(b"=").decode():
            return None
        now = int(time.time())
        claims = {
            "iss": self.url, "aud": CLIENT, "iat": now, "exp": now + 300,
            "nonce": asked["nonce"], **self.person,
        }  # fmt: skip
        id_token = self.sign(self.change(claims))
        return {"access_token": "at", "token_type": "Bearer", "id_token": id_token}

    def get(self, path: str) -> Any:
        if path == "/.well-known/openid-configuration":
            return {
                "issuer": self.url,
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
                "jwks_uri": f"{self.url}/jwks",
                "userinfo_endpoint": f"{self.url}/userinfo",
                "token_endpoint_auth_methods_supported": ["client_secret_post"],
                **self.discovery,
            }
        if path == "/jwks":
            public = jwt.algorithms.RSAAlgorithm.to_jwk(KEY.public_key(), as_dict=True)
            return {"keys": [{**public, "kid": "k1", "alg": "RS256", "use": "sig"}]}
        return self.person if path == "/userinfo" else None


class _Handler(BaseHTTPRequestHandler):
    provider: Provider

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        if parts.path == "/authorize":
            self.send_response(302)
            place = self.provider.authorize(dict(parse_qsl(parts.query)))
            self.send_header("Location", place)
            self.send_header("Content-Length", "0")
            self.end_headers()
        else:
            self._answer(parts.path, self.provider.get(parts.path))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self._answer("/token", self.provider.token(dict(parse_qsl(body))))

    def _answer(self, path: str, found: Any) -> None:
        broken = path in self.provider.broken
        body = json.dumps({"error": "invalid_grant"} if found is None else found).encode()
        self.send_response(500 if broken else 400 if found is None else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        """Logs nothing."""


@contextmanager
def providing() -> Iterator[Provider]:
    """A provider that runs until the end of the block."""

    class Handler(_Handler):
        pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Handler.provider = Provider(f"http://127.0.0.1:{server.server_port}")
    with serving(server):
        yield Handler.provider
