"""Authorization of the control plane: tokens, certificates, users of a Unix socket, targets and limits."""

import contextlib
import hashlib
import os
import re
import secrets
import socket
import struct
import subprocess
import sys
import time

import pytest

from support import configuration
from support.control import Control
from support.deadlines import eventually, seconds
from support.websocket import Listener


def token(name, *scopes, **more):
    """(secret, its entry in the configuration)"""
    secret = "slc_" + secrets.token_urlsafe(32)
    digest = hashlib.sha256(secret.encode()).hexdigest()
    return secret, {"name": name, "hash": f"sha256:{digest}", "scopes": list(scopes), **more}


@pytest.fixture
def serve(sluice, tmp_path):
    """A gateway with an echo, and its control plane: (gateway, control)."""

    def start(**control):
        file = configuration.write(
            tmp_path / "sluice.yaml", [configuration.listener("web", "ws://127.0.0.1:0")],
            [configuration.route("echo", "echo", path="/echo")],
            control={"address": "http://127.0.0.1:0", **{key.replace("_", "-"): value for key, value in control.items()}})
        gateway = sluice("serve", "--config", file)
        return gateway, Control.of(gateway)

    return start


def echo(gateway):
    return f"ws://127.0.0.1:{gateway.port()}/echo"


# -- tokens


@pytest.fixture
def tokens(serve):
    """(gateway, control, secrets by scope)"""
    made = {scope: token(scope, scope) for scope in ("read", "operate", "configure", "metrics")}
    made["expired"] = token("expired", "read", expires="2020-01-01T00:00:00Z")
    made["later"] = token("later", "read", expires="2999-01-01T00:00:00Z")
    gateway, control = serve(tokens=[entry for _, entry in made.values()])
    return gateway, control, {name: secret for name, (secret, _) in made.items()}


def test_the_log_names_peers_that_disconnected_at_once(serve):
    gateway, control = serve()
    body = b'{"all": true, "preview": true}'
    head = b"POST /v1/drains HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    ports = set()
    for number in range(200):
        one = socket.create_connection((control.parts.hostname, control.parts.port), timeout=seconds(10))
        ports.add(one.getsockname()[1])
        one.sendall(head + body)
        if number % 2:
            # A reset, often before the connection is accepted.
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        one.close()
    lines = eventually(
        lambda: len(found := [line for line in gateway.log.all() if "operation=startDrain" in line]) >= 100 and found, "the log's lines")
    peers = [re.search(r"peer=(\S+)", line).group(1) for line in lines]
    assert all(peer.startswith("127.0.0.1:") and int(peer.split(":")[1]) in ports for peer in peers), set(peers)


def test_every_write_is_logged_with_caller_and_peer(tokens):
    gateway, control, secret = tokens
    name = control.by(secret["operate"]).open(echo(gateway))
    gateway.wait_log(r"operation=openConnection path=/v1/connections caller=token:operate peer=127\.0\.0\.1:\d+ status=201")
    control.by(secret["read"]).request("DELETE", f"/v1/connections/{name}?reason=private")
    line = gateway.wait_log("operation=closeConnection .*caller=token:read .*status=403 code=insufficient-scope")
    assert "private" not in line
    control.request("DELETE", f"/v1/connections/{name}")
    gateway.wait_log("operation=closeConnection .*caller=nobody .*status=401 code=unauthorized")
    # Attaching writes to a connection, and a tap reads the payloads of others: both are logged.
    control.by(secret["read"]).get(f"/v1/connections/{name}/stream").problem(403, "insufficient-scope")
    gateway.wait_log(f"operation=attach path=/v1/connections/{name}/stream caller=token:read .*status=403")
    control.by(secret["operate"]).get(f"/v1/connections/{name}/tap?durationMs=0")
    gateway.wait_log(f"operation=tap path=/v1/connections/{name}/tap caller=token:operate .*status=200")
    assert not any(secret[one] in line for one in secret for line in gateway.log.all())


def test_an_address_beyond_loopback_requires_tokens(serve, sluice, tmp_path):
    secret, entry = token("ops", "read")
    gateway, control = serve(address="http://0.0.0.0:0", tokens=[entry])
    gateway.wait_log("without TLS")
    here = Control(control.url.replace("0.0.0.0", "127.0.0.1"), secret)
    assert here.list() == []
    here.by(None).get("/v1/connections").problem(401, "unauthorized")


# -- certificates


def test_a_client_certificate_is_matched_by_subject_name_or_key(serve, authority, server_certificate):
    leaves = {name: authority.issue(name, names=f"DNS:{name}.example,URI:spiffe://example/{name}") for name in ("ops", "watcher", "keyed", "stranger")}
    pin = hashlib.sha256(ssl_public_key(leaves["keyed"][0])).hexdigest()
    secret, entry = token("robot", "metrics")
    gateway, control = serve(
        address="https://127.0.0.1:0",
        tls={"certificate": str(server_certificate[0]), "key": str(server_certificate[1]), "client-ca": str(authority.certificate), "client-auth": "request"},
        clients=[{"name": "ops", "subject": "CN=ops", "scopes": ["read", "operate"]},
                 {"name": "watcher", "alternative-name": "spiffe://example/watcher", "scopes": ["read"]},
                 {"name": "keyed", "pin": pin, "scopes": ["read"]}],
        tokens=[entry])
    assert control.url.startswith("https://")

    def who(name, token=None):
        return Control(control.url, token, authority.client_context(leaves[name] if name else None))

    for name in ("ops", "watcher", "keyed"):
        assert who(name).list() == []
    opened = who("ops").open(echo(gateway))
    gateway.wait_log("operation=openConnection .*caller=client:ops peer=127")
    problem = who("watcher").request("DELETE", f"/v1/connections/{opened}").problem(403, "insufficient-scope")
    assert "client:watcher" in problem["detail"]
    who("stranger").get("/v1/connections").problem(401, "unauthorized")
    who(None).get("/v1/connections").problem(401, "unauthorized")
    # A token takes precedence over a certificate.
    assert who("ops", secret).get("/metrics").status == 200
    who("ops", secret).get("/v1/connections").problem(403, "insufficient-scope")
    # A body of many TLS records, in both directions.
    name = who("ops").open(echo(gateway), maximumMessageSizeBytes=4 << 20)
    payload = os.urandom(1 << 19)
    who("ops").send(name, payload)
    assert who("ops").receive(name) == payload


def ssl_public_key(certificate):
    """The SubjectPublicKeyInfo of a certificate, in DER."""
    text = subprocess.run(["openssl", "x509", "-in", certificate, "-noout", "-pubkey"], capture_output=True, check=True).stdout
    return subprocess.run(["openssl", "pkey", "-pubin", "-outform", "DER"], input=text, capture_output=True, check=True).stdout


def test_a_missing_or_foreign_client_certificate_fails_the_handshake(serve, authority, server_certificate, tmp_path):
    other = type(authority)(tmp_path / "other", "Other")
    gateway, control = serve(
        address="https://127.0.0.1:0",
        tls={"certificate": str(server_certificate[0]), "key": str(server_certificate[1]), "client-ca": str(authority.certificate)},
        clients=[{"name": "ops", "subject": "CN=ops", "scopes": ["read"]}])
    for leaf in (None, other.issue("ops")):
        with pytest.raises(OSError):
            Control(control.url, None, authority.client_context(leaf)).get("/v1/connections")
    with pytest.raises(Exception):
        Control(control.url.replace("https", "http")).get("/livez")
    assert Control(control.url, None, authority.client_context(authority.issue("ops"))).list() == []


# -- users of a Unix socket


def test_a_unix_socket_authenticates_the_peers_user(serve, tmp_path):
    mine = os.getuid()
    gateway, control = serve(address=f"unix://{tmp_path}/c.sock", peers=[{"uid": mine, "scopes": ["read", "operate"]}])
    name = control.open(echo(gateway))
    gateway.wait_log(f"operation=openConnection .*caller=uid:{mine} peer=\"?uid:{mine} gid:")
    control.get("/metrics").problem(403, "insufficient-scope")
    # Browsers cannot reach a Unix socket: any Host is accepted.
    control.request("GET", f"/v1/connections/{name}", headers={"Host": "sluice"}).expect(200)


def test_an_unlisted_user_needs_a_token(serve, tmp_path):
    secret, entry = token("ops", "read")
    gateway, control = serve(address=f"unix://{tmp_path}/c.sock", peers=[{"uid": os.getuid() + 1, "scopes": ["read"]}], tokens=[entry])
    control.get("/v1/connections").problem(401, "unauthorized")
    assert control.by(secret).list() == []


@pytest.mark.skipif(os.getuid() != 0, reason="only root can change its user")
def test_users_of_a_unix_socket_have_their_own_scopes(serve, tmp_path):
    path = tmp_path / "c.sock"
    for folder in [tmp_path, *tmp_path.parents][:4]:
        os.chmod(folder, 0o755)
    gateway, control = serve(address=f"unix://{path}", mode="0666", peers=[{"uid": 0, "scopes": ["read"]}, {"gid": 65534, "scopes": ["metrics"]}])
    code = f"""
import http.client, os, socket
os.setgroups([]); os.setgid(65534); os.setuid(65534)
s = socket.socket(socket.AF_UNIX); s.connect({str(path)!r})
one = http.client.HTTPConnection("x"); one.sock = s
for target in ("/v1/connections", "/metrics"):
    one.request("GET", target)
    answer = one.getresponse(); answer.read()
    print(answer.status)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=seconds(20))
    assert found.stdout.split() == ["403", "200"], found.stderr
    assert control.list() == []


# -- targets


def test_a_unix_socket_is_a_target_only_if_it_is_listed(serve, tmp_path):
    """The modes of socket files bind the caller; the gateway's account may open more than the caller may."""
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(tmp_path / "app.sock"))
        unix.listen()
        _, control = serve()
        problem = control.post("/v1/connections", {"url": f"unix://{tmp_path}/app.sock"}).problem(403, "target-not-allowed")
        assert "control.targets" in problem["detail"]
        unix.setblocking(False)
        with pytest.raises(BlockingIOError):
            unix.accept()


def test_only_listed_targets_are_allowed(serve, tmp_path):
    with Listener() as allowed, Listener() as denied, socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(tmp_path / "app.sock"))
        unix.listen()
        _, control = serve(targets=[f"127.0.0.0/8:{allowed.port}", f"unix://{tmp_path}/app.sock"])
        control.open(f"tcp://127.0.0.1:{allowed.port}")
        control.open(f"unix://{tmp_path}/app.sock")
        # The name is resolved, and its address is checked.
        control.open(f"tcp://localhost:{allowed.port}")
        for url in (f"tcp://127.0.0.1:{denied.port}", f"tcp://localhost:{denied.port}", f"unix://{tmp_path}/other.sock", "tcp://8.8.8.8:53"):
            control.post("/v1/connections", {"url": url}).problem(403, "target-not-allowed")
        denied.socket.setblocking(False)
        with pytest.raises(BlockingIOError):
            denied.socket.accept()


def test_loopback_is_no_target_when_the_control_plane_is_remote(serve):
    secret, entry = token("ops", "operate")
    gateway, control = serve(address="http://0.0.0.0:0", tokens=[entry])
    here = Control(control.url.replace("0.0.0.0", "127.0.0.1"), secret)
    here.post("/v1/connections", {"url": echo(gateway)}).problem(403, "target-not-allowed")


# -- limits


def test_an_incomplete_request_head_times_out(serve):
    _, control = serve()
    start = time.monotonic()
    with contextlib.ExitStack() as stack:
        clients = []
        for beginning in ("", "GET /livez HT", "GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "):
            one = socket.create_connection((control.parts.hostname, control.parts.port), timeout=seconds(60))
            clients.append(stack.enter_context(one))
            one.sendall(beginning.encode())
        for one in clients:
            assert one.recv(65536) == b""
            assert 10 < time.monotonic() - start < seconds(40)
