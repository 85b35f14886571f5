"""deploy/examples/mutual-tls.yaml between HAProxy, curl and the websockets package, and nginx and openssl."""

import base64
import hashlib
import os
import ssl

import pytest
from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from support.certificates import Authority
from support.deadlines import eventually, seconds
from support.programs import Program, find, free_port, listens, run


@pytest.fixture
def application(tmp_path):
    """nginx on a Unix socket, which returns the client address of the PROXY header."""
    path = tmp_path / "app.sock"
    temporary = " ".join(f"{kind}_temp_path {tmp_path};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    settings = tmp_path / "nginx.conf"
    settings.write_text(
        f"daemon off; {'user root;' if os.getuid() == 0 else ''} pid {tmp_path}/nginx.pid; events {{ }}\n"
        f"http {{ access_log off; {temporary} server {{ listen unix:{path} proxy_protocol;\n"
        f"location / {{ return 200 'client $proxy_protocol_addr\\n'; }} }} }}\n")
    with Program(find("nginx"), "-c", settings, "-p", tmp_path, "-e", "stderr") as program:
        eventually(lambda: listens(path), "nginx listens")
        yield program, path


@pytest.fixture
def secure_pair(authority):
    """(port without a listener, port of a TLS server that requires a certificate and returns each line reversed, its pin)."""
    certificate, key = authority.issue("app.internal", names="DNS:inner.test")
    port = free_port()
    with Program("openssl", "s_server", "-accept", port, "-cert", certificate, "-key", key, "-CAfile", authority.certificate,
                 "-Verify", "1", "-verify_return_error", "-rev", "-quiet") as server:
        server.wait_listening(port)
        yield free_port(), port, pin(certificate)


def pin(certificate):
    key = run("openssl", "x509", "-in", certificate, "-noout", "-pubkey").stdout
    der = ssl.PEM_cert_to_DER_cert(key.replace("PUBLIC KEY", "CERTIFICATE"))
    return "sha256/" + base64.b64encode(hashlib.sha256(der).digest()).decode()


@pytest.fixture
def mutual(example, authority, application, secure_pair, tmp_path):
    """The gateway with two certificates, one of them in PKCS#12 with a password."""
    first, first_key = authority.issue("a", names="DNS:a.localhost,DNS:*.a.localhost,DNS:localhost")
    second, second_key = authority.issue("b", names="DNS:b.localhost")
    made = run("openssl", "pkcs12", "-export", "-in", second, "-inkey", second_key, "-out", tmp_path / "b.p12", "-passout", "pass:word")
    assert made.returncode == 0, made.stderr
    (tmp_path / "b.password").write_text("word\n")
    own, own_key = authority.issue("gateway")
    dead, alive, its_pin = secure_pair
    return example("mutual-tls.yaml", {
        "tls://*:8443": "tls://127.0.0.1:0", "wss://*:9443": "wss://127.0.0.1:0", "/etc/sluice/a.example.pem": first,
        "/etc/sluice/a.example.key": first_key, "/etc/sluice/b.example.p12": tmp_path / "b.p12",
        "/etc/sluice/b.example.password": tmp_path / "b.password", "/etc/sluice/clients-ca.pem": authority.certificate,
        "a.example": "a.localhost", "10.0.0.0/24": "127.0.0.0/8", "/run/app/app.sock": application[1],
        "app-1.internal:7000": f"127.0.0.1:{dead}", "app-2.internal:7000": f"127.0.0.1:{alive}",
        "/etc/sluice/internal-ca.pem": authority.certificate, "/etc/sluice/gateway.pem": own, "/etc/sluice/gateway.key": own_key,
        "app.internal": "inner.test", "sha256/47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=": its_pin})


@pytest.fixture
def balancer(mutual, tmp_path):
    """HAProxy in front of the gateway; it forwards TLS unchanged and sends the client's address in a PROXY header."""
    port = free_port()
    settings = tmp_path / "haproxy.cfg"
    settings.write_text(
        "defaults\n mode tcp\n timeout connect 5s\n timeout client 30s\n timeout server 30s\n"
        f"frontend f\n bind 127.0.0.1:{port}\n default_backend b\nbackend b\n server s 127.0.0.1:{mutual.port(0)} send-proxy-v2\n")
    with Program(find("haproxy"), "-f", settings, "-db") as proxy:
        proxy.wait_listening(port)
        yield port


def fetch(port, name, authority, *words):
    return run("curl", "--silent", "--show-error", "--max-time", "20", "--cacert", authority.certificate, "--resolve",
               f"{name}:{port}:127.0.0.1", *words, f"https://{name}:{port}/")


def test_a_certified_client_reaches_the_plain_server_with_its_address(balancer, authority):
    certificate, key = authority.issue("client")
    for name in ("a.localhost", "b.localhost"):
        got = fetch(balancer, name, authority, "--cert", certificate, "--key", key)
        assert got.returncode == 0 and got.stdout.startswith("client 127.0.0.1\n"), got


def test_a_client_without_a_trusted_certificate_is_refused(balancer, authority, tmp_path):
    stranger = Authority(tmp_path / "strangers").issue("stranger")
    for words in ([], ["--cert", stranger[0], "--key", stranger[1]]):
        got = fetch(balancer, "a.localhost", authority, *words)
        assert got.returncode != 0 and "client" not in got.stdout, got


def test_a_certified_websocket_client_reaches_the_endpoint_that_is_up(mutual, authority):
    context = authority.client_context(authority.issue("client"))
    with connect(f"wss://localhost:{mutual.port(1)}/secure", ssl=context) as socket:
        socket.send(b"hello\n")
        assert socket.recv(timeout=seconds(20)) == b"olleh\n"
    with pytest.raises((OSError, WebSocketException)):
        connect(f"wss://localhost:{mutual.port(1)}/secure", ssl=authority.client_context())
