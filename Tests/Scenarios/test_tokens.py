"""JSON Web Tokens on routes: tokens of PyJWT, keys from files and from a server, reloads, and connections that end with their tokens."""

import base64
import hashlib
import hmac
import http.client
import http.server
import json
import signal
import threading
import time
import urllib.parse

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from support import configuration, gateway, websocket
from support.deadlines import eventually, seconds
from support.websocket import Wire, parse_head, request

SECRET = "a secret of the scenarios that is long enough even for HS512, which is 64 bytes"
RSA_KEY = rsa.generate_private_key(65537, 2048)
CURVES = {"ES256": ec.SECP256R1(), "ES384": ec.SECP384R1(), "ES512": ec.SECP521R1()}
PRIVATE = {
    **{name: SECRET for name in ("HS256", "HS384", "HS512")},
    **{name: RSA_KEY for name in ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")},
    **{name: ec.generate_private_key(curve) for name, curve in CURVES.items()},
    "EdDSA": ed25519.Ed25519PrivateKey.generate(),
}


def public_pem(key):
    return key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def public_jwk(key, name):
    kinds = {rsa.RSAPrivateKey: RSAAlgorithm, ec.EllipticCurvePrivateKey: ECAlgorithm, ed25519.Ed25519PrivateKey: OKPAlgorithm}
    algorithm = next(algorithm for kind, algorithm in kinds.items() if isinstance(key, kind))
    return {**json.loads(algorithm.to_jwk(key.public_key())), "kid": name, "use": "sig"}


def token(claims=None, key=SECRET, algorithm="HS256", **headers):
    claims = {"sub": "ada", "exp": int(time.time()) + 600, **(claims or {})}
    return jwt.encode(claims, key, algorithm=algorithm, headers=headers)


class Served:
    """A gateway whose route `/echo` requires tokens."""

    def __init__(self, sluice, folder, tokens, auth="main", routes=(), **more):
        self.file = folder / "sluice.yaml"
        self.sluice = sluice
        self.routes = [configuration.route("echo", "echo", path="/echo", auth=auth), *routes]
        self.write(tokens, **more)
        self.gateway = sluice("serve", "--config", self.file, "--log-format", "json")

    def write(self, tokens, **more):
        configuration.write(
            self.file, [configuration.listener("web", "ws://127.0.0.1:0")], self.routes, tokens=[{"name": "main", **tokens}],
            control={"address": "none"}, **more)

    def reload(self):
        start = len(self.gateway.log.all())
        self.gateway.signal(signal.SIGHUP)
        return self.gateway.wait_log("reload", start=start)

    def answer(self, text=None, path="/echo", headers=()):
        fields = [*headers, ("Authorization", f"Bearer {text}")] if text is not None else headers
        with Wire.connect(self.gateway.address()) as wire:
            wire.send(request(path, headers=fields))
            return parse_head(wire.receive_head())

    def status(self, text=None, path="/echo", **more):
        return self.answer(text, path, **more).status

    def refusal(self, text):
        """Status, challenge and the reason in the log of a refused token."""
        start = len(self.gateway.log.all())
        answer = self.answer(text)
        line = json.loads(self.gateway.wait_log("refused-request", start=start))
        return answer.status, answer.header("WWW-Authenticate"), line["detail"]


class KeyServer:
    """A server of a key set that can change, be absent or answer badly."""

    def __init__(self):
        self.keys = []
        self.status = 200
        self.body = None
        self.count = 0
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                owner.count += 1
                body = owner.body if owner.body is not None else json.dumps({"keys": owner.keys}).encode()
                self.send_response(owner.status)
                self.send_header("Content-Type", "application/jwk-set+json")
                self.send_header("Content-Length", str(len(body)))
                if owner.status == 302:
                    self.send_header("Location", "/other")
                self.end_headers()
                try:
                    self.wfile.write(body)
                except OSError:
                    pass

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/keys"

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def key_server():
    one = KeyServer()
    yield one
    one.close()


@pytest.fixture(scope="module")
def all_keys(tmp_path_factory):
    """A key set with a key for each algorithm."""
    secret = {"kty": "oct", "kid": "secret", "k": base64.urlsafe_b64encode(SECRET.encode()).decode().rstrip("=")}
    keys = {name: public_jwk(key, name) for name, key in PRIVATE.items() if key is not SECRET}
    file = tmp_path_factory.mktemp("keys") / "keys.json"
    file.write_text(json.dumps({"keys": [secret, *keys.values()]}))
    return file


# -- tokens of PyJWT


def test_tokens_of_every_algorithm_are_accepted(sluice, tmp_path, all_keys):
    one = Served(sluice, tmp_path, {"key-file": str(all_keys)})
    for name, key in PRIVATE.items():
        made = token(key=key, algorithm=name, kid="secret" if key is SECRET else name)
        assert one.status(made) == 101, name
        head, claims, code = made.split(".")
        assert one.status(f"{head}.{claims}.{code[:-4]}AAAA") == 401, name


def test_tokens_without_a_key_name_are_tried_with_all_keys(sluice, tmp_path, all_keys):
    one = Served(sluice, tmp_path, {"key-file": str(all_keys)})
    for name, key in PRIVATE.items():
        assert one.status(token(key=key, algorithm=name)) == 101, name


@pytest.mark.parametrize("name", ["RS256", "PS256", "ES256", "ES384", "EdDSA"])
def test_public_keys_in_pem_verify(sluice, tmp_path, name):
    file = tmp_path / "issuer.pem"
    file.write_bytes(public_pem(PRIVATE[name]))
    one = Served(sluice, tmp_path, {"key-file": str(file)})
    assert one.status(token(key=PRIVATE[name], algorithm=name, kid="any")) == 101
    # The public key is known to anyone.
    forged = jwt.api_jws.PyJWS().encode(
        b'{"sub":"ada"}', "x" * 32, algorithm="HS256").rsplit(".", 1)[0]
    code = base64.urlsafe_b64encode(hmac.new(file.read_bytes(), forged.encode(), hashlib.sha256).digest()).decode().rstrip("=")
    status, _, detail = one.refusal(f"{forged}.{code}")
    assert (status, detail) == (401, "algorithm HS256 is not accepted")


# -- refusals


def test_refused_tokens_are_explained_to_the_client_and_in_the_log(sluice, tmp_path):
    one = Served(sluice, tmp_path, {"secret": SECRET, "audience": "chat", "issuer": "joe"})
    now = int(time.time())
    good = {"aud": "chat", "iss": "joe"}
    assert one.status(token(good)) == 101
    unsecured = jwt.encode({**good, "sub": "ada"}, None, algorithm="none")
    for made, text, detail in [
        (token({**good, "exp": now - 5}), "The access token expired", f"token expired at {now - 5}"),
        (token({**good, "nbf": now + 600}), "The access token is not valid yet", f"token is not valid before {now + 600}"),
        (token({**good, "aud": "other"}), "The access token is for another audience", "token is for another audience"),
        (token({**good, "iss": "eve"}), "The access token is of another issuer", "token is of another issuer"),
        (token(good, key="y" * 40), "The signature of the access token is not accepted", "the signature does not match any key"),
        (unsecured, "The signature of the access token is not accepted", "algorithm none is not accepted"),
        ("x", "The access token is malformed", "malformed token: not three parts separated by dots"),
    ]:
        assert one.refusal(made) == (401, f'Bearer realm="sluice", error="invalid_token", error_description="{text}"', detail)


def test_tokens_appear_in_no_log(sluice, tmp_path):
    one = Served(sluice, tmp_path, {"secret": SECRET})
    good, bad = token(), token(key="y" * 40)
    for made in (good, bad):
        one.status(path=f"/echo?access_token={made}&a=b")
    one.gateway.wait_log("connection closed")
    one.gateway.stop()
    log = "\n".join(one.gateway.log.all())
    assert "connection closed" in log
    assert good.split(".")[2] not in log and bad.split(".")[2] not in log


# -- keys


def test_weak_and_missing_keys_stop_the_start_with_their_place(tmp_path):
    weak = rsa.generate_private_key(65537, 1024)
    (tmp_path / "weak.pem").write_bytes(public_pem(weak))
    (tmp_path / "short.txt").write_text("short\n")
    for tokens, place, reason in [
        ({"secret": "short"}, "tokens[0].secret", "too short"),
        ({"secret": "short"}, "tokens[0].secret", "allow-short-secret"),
        ({"key-url": "https://a.example/", "allow-short-secret": True}, "tokens[0].allow-short-secret", "no secret"),
        ({"secret-file": str(tmp_path / "short.txt")}, "tokens[0].secret-file", "too short"),
        ({"key-file": str(tmp_path / "weak.pem")}, "tokens[0].key-file", "1024 bits is too weak"),
        ({"key-file": str(tmp_path / "missing.pem")}, "tokens[0].key-file", "no such file"),
    ]:
        file = tmp_path / "sluice.yaml"
        configuration.write(
            file, [configuration.listener("web", "ws://127.0.0.1:0")], [configuration.route("echo", "echo", path="/echo", auth="main")],
            tokens=[{"name": "main", **tokens}])
        for command in ("check", "serve"):
            run = gateway.run(command, "--config", file)
            assert run.returncode == 78 and place in run.stderr and reason in run.stderr, run.stderr


def test_short_secret_is_used_where_it_is_allowed(sluice, tmp_path):
    file = tmp_path / "secret.txt"
    file.write_text("secret\n")
    for place in ({"secret": "secret"}, {"secret-file": str(file)}):
        one = Served(sluice, tmp_path, {**place, "allow-short-secret": True})
        for algorithm in ("HS256", "HS384", "HS512"):
            assert one.status(token(key="secret", algorithm=algorithm)) == 101
        assert one.status(token(key="secre")) == 401
        one.gateway.stop()


def test_a_reload_replaces_the_keys(sluice, tmp_path):
    file = tmp_path / "secret.txt"
    file.write_text(SECRET + "\n")
    one = Served(sluice, tmp_path, {"secret-file": str(file)})
    old, new = token(), token(key="another secret that is long enough for HS256")
    assert (one.status(old), one.status(new)) == (101, 401)
    with websocket.connect(one.gateway.address(), "/echo", headers=[("Authorization", f"Bearer {old}")]) as client:
        file.write_text("another secret that is long enough for HS256")
        one.reload()
        # A token of the former key is not accepted again; a connection that was opened with it stays.
        assert (one.status(old), one.status(new)) == (401, 101)
        client.text("still here")
        client.expect_text("still here")
        client.close_cleanly()


def test_a_reload_with_unusable_keys_changes_nothing(sluice, tmp_path):
    file = tmp_path / "secret.txt"
    file.write_text(SECRET)
    one = Served(sluice, tmp_path, {"secret-file": str(file)})
    file.write_text("short")
    assert "too short" in one.reload()
    assert one.status(token()) == 101


def test_keys_of_a_server_are_fetched_and_rotated(sluice, tmp_path, key_server):
    first, second = PRIVATE["ES256"], ec.generate_private_key(CURVES["ES256"])
    key_server.keys = [public_jwk(first, "1")]
    one = Served(sluice, tmp_path, {"key-url": key_server.url})
    old, new = token(key=first, algorithm="ES256", kid="1"), token(key=second, algorithm="ES256", kid="2")
    assert one.status(old) == 101
    assert key_server.count == 1
    key_server.keys = [public_jwk(first, "1"), public_jwk(second, "2")]
    # The first token with the new key is refused, and makes the gateway fetch the keys again.
    assert one.status(new) == 401
    eventually(lambda: one.status(new) == 101, "the new key is known")
    assert one.status(old) == 101
    assert key_server.count == 2
    # Unknown keys within 30 seconds cause no further request.
    for number in range(20):
        assert one.status(token(key=second, algorithm="ES256", kid=f"unknown {number}")) == 401
    assert key_server.count == 2


def test_keys_fetched_last_stay_in_use_while_the_server_is_away(sluice, tmp_path, key_server):
    key_server.keys = [public_jwk(RSA_KEY, "1")]
    one = Served(sluice, tmp_path, {"key-url": key_server.url})
    made = token(key=RSA_KEY, algorithm="RS256", kid="1")
    assert one.status(made) == 101
    for status, body in [(500, None), (200, b"no JSON"), (200, b" " * 300_000), (302, None), (200, b'{"keys":[]}')]:
        key_server.status, key_server.body = status, body
        start = len(one.gateway.log.all())
        one.reload()
        one.gateway.wait_log("token keys cannot be fetched", start=start)
        assert one.status(made) == 101


def test_requests_get_503_until_there_are_keys(sluice, tmp_path, key_server):
    key_server.status = 503
    key_server.keys = [public_jwk(RSA_KEY, "1")]
    one = Served(sluice, tmp_path, {"key-url": key_server.url})
    made = token(key=RSA_KEY, algorithm="RS256", kid="1")
    assert one.status(made) == 503
    key_server.status = 200
    eventually(lambda: one.status(made) == 101, "the keys are fetched", within=20)


def test_secrets_and_weak_keys_of_a_server_are_left_out(sluice, tmp_path, key_server):
    weak = rsa.generate_private_key(65537, 1024)
    secret = {"kty": "oct", "kid": "s", "k": base64.urlsafe_b64encode(SECRET.encode()).decode().rstrip("=")}
    key_server.keys = [secret, public_jwk(weak, "w"), public_jwk(RSA_KEY, "1")]
    one = Served(sluice, tmp_path, {"key-url": key_server.url})
    one.gateway.wait_log("1024 bits is too weak")
    assert one.status(token(key=RSA_KEY, algorithm="RS256", kid="1")) == 101
    assert one.status(token(kid="s")) == 401
    assert one.status(token(key=weak, algorithm="RS256", kid="w")) == 401


# -- connections


def test_a_connection_ends_with_its_token(sluice, tmp_path):
    one = Served(sluice, tmp_path, {"secret": SECRET})
    made = token({"exp": int(time.time()) + 5})
    with websocket.connect(one.gateway.address(), "/echo", headers=[("Authorization", f"Bearer {made}")]) as client:
        client.text("hello")
        client.expect_text("hello")
        closing = client.read()
        assert (closing.opcode, closing.code, closing.payload[2:]) == (websocket.CLOSE, 1008, b"token expired")
        client.write(websocket.CLOSE, closing.payload)
        client.expect_end()
    assert "gateway/relaying/token-expired" in one.gateway.wait_log("connection closed")
    assert one.status(made) == 401


def test_claims_reach_the_upstream(sluice, tmp_path, listener):
    up = configuration.route(
        "up", f"ws://127.0.0.1:{listener.port}/{{claim.tenant}}/{{room}}", path="/up/{room}", auth={"tokens": "main"},
        headers={"X-User": "{claim.sub}"})
    one = Served(sluice, tmp_path, {"secret": SECRET}, routes=[up])
    made = token({"tenant": "a/b"})
    with Wire.connect(one.gateway.address()) as wire:
        wire.send(request(f"/up/r?access_token={made}&x=1"))
        peer, asked = listener.accept_request()
        peer.close()
    assert asked.start_line == "GET /a%2Fb/r?x=1 HTTP/1.1"
    assert asked.header("X-User") == "ada"
    assert made.encode() not in asked.raw
    assert one.status(token(), path="/up/r") == 403
    assert one.status(token({"tenant": ".."}), path="/up/r") == 403


# -- plain HTTP

def test_files_and_events_need_a_token_too(sluice, tmp_path, broker):
    (tmp_path / "app.js").write_text("console.log(1)")
    auth = {"tokens": "main", "cookie": "session"}
    routes = [{"name": "site", "path": "/site/{path...}", "files": str(tmp_path), "auth": auth},
              configuration.route("page", "page", path="/", auth="main"), configuration.route("events", "room-events", path="/events", auth=auth)]
    served = Served(sluice, tmp_path, {"secret": SECRET}, routes=routes, rooms={"tokens": "main", "policies": [{"name": "all", "pattern": "*", "subscribe": "users"}]},
                    **broker())

    def get(path, method="GET", **fields):
        connection = http.client.HTTPConnection(*served.gateway.address(), timeout=seconds(20))
        connection.request(method, path, headers=fields)
        return connection.getresponse()

    for path in ("/site/app.js", "/site/missing", "/", "/events"):
        for method in ("GET", "HEAD"):
            answer = get(path, method)
            assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, 'Bearer realm="sluice"'), (path, method)
        assert get(path, Authorization=f"Bearer {token({'exp': 1})}").status == 401
    assert get("/site/app.js", Cookie=f"session={token()}").read() == b"console.log(1)"
    assert get(f"/site/app.js?access_token={token()}", Range="bytes=0-6").read() == b"console"
    assert get("/site/missing", Authorization=f"Bearer {token()}").status == 404
    assert b"<html" in get("/", Authorization=f"Bearer {token()}").read()
    # The subject of the token may enter the room.
    stream = get("/events?cf_connect=%7B%22subs%22:%7B%22a%22:%7B%7D%7D%7D", Cookie=f"session={token()}")
    assert list(json.loads(stream.readline().removeprefix(b"data: "))["connect"]["subs"]) == ["a"]
    # A token for the rooms that is valid for longer does not keep the stream open.
    other = urllib.parse.quote(json.dumps({"token": token({"exp": int(time.time()) + 6000})}))
    stream = get(f"/events?cf_connect={other}", Cookie=f"session={token()}")
    assert 0 < json.loads(stream.readline().removeprefix(b"data: "))["connect"]["ttl"] <= 600
