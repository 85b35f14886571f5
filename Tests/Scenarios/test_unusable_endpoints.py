"""Endpoints that cannot be connected to, which is their fault, and local resources that the gateway lacks, which is not."""

import contextlib
import os
import shutil
import socket
import subprocess

import pytest

from support import configuration, networks, websocket
from support.deadlines import eventually
from support.websocket import Listener, Wire, parse_head, request


def refusal(gateway, path="/"):
    with Wire.connect(gateway.address(), within=20) as wire:
        wire.send(request(path))
        head = parse_head(wire.receive_head())
        return head, wire.receive_all()


@contextlib.contextmanager
def full(path):
    """A Unix socket whose queue is full, because it is not accepted from."""
    with socket.socket(socket.AF_UNIX) as listening, contextlib.ExitStack() as fillers:
        listening.bind(str(path))
        listening.listen(0)
        with contextlib.suppress(BlockingIOError):
            for _ in range(10):
                filler = fillers.enter_context(socket.socket(socket.AF_UNIX))
                filler.setblocking(False)
                filler.connect(str(path))
        yield


@contextlib.contextmanager
def datagrams(path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
        one.bind(str(path))
        yield


@contextlib.contextmanager
def plain_file(path):
    path.write_text("no socket")
    yield


@contextlib.contextmanager
def missing(path):
    yield


@contextlib.contextmanager
def behind_a_file(path):
    path.mkdir()
    yield


UNUSABLE = {
    "full": (full, "the socket's queue of connections is full"),
    "datagrams": (datagrams, "the socket is not a stream socket"),
    "a plain file": (plain_file, "the file is not a socket"),
    "a folder": (behind_a_file, "the file is not a socket"),
    "missing": (missing, "no such file"),
}


@pytest.mark.parametrize("prepare, words", UNUSABLE.values(), ids=list(UNUSABLE))
def test_an_unusable_unix_endpoint_is_ejected_and_the_next_one_serves(sluice, tmp_path, prepare, words):
    path = tmp_path / "near.sock"
    with prepare(path), Listener(path=tmp_path / "far.sock") as far:
        gateway = sluice("serve", "--config", configuration.write(
            tmp_path / "sluice.yaml", [configuration.listener("web", "ws://127.0.0.1:0")],
            [configuration.route("alone", "alone", path="/alone"), configuration.route("both", "both", path="/both")],
            [configuration.upstream("alone", f"unix://{path}", retries=0, eject_failures=1, eject_duration="1m"),
             configuration.upstream("both", f"unix://{path}", far.url("unix"), policy="failover", eject_failures=1,
                                    eject_duration="1m")]))
        head, body = refusal(gateway, "/alone")
        assert head.status == 502 and b"cannot be reached" in body, body
        line = gateway.wait_log("connection closed")
        assert "upstream/connecting/unreachable" in line and words in line, line
        with websocket.connect(gateway.address(), "/both") as client:
            client.binary(b"hello")
            with far.accept() as peer:
                assert peer.receive(5) == b"hello"


@pytest.mark.skipif(os.getuid() != 0 or not shutil.which("setpriv"), reason="needs a user to become")
def test_permission_denied_is_a_failure_of_the_endpoint(sluice, tmp_path):
    path = tmp_path / "near.sock"
    with Listener(path=path):
        os.chmod(path, 0)
        # The gateway has no privileges, so the file's mode applies to it.
        for folder in [tmp_path, *tmp_path.parents]:
            if folder.stat().st_mode & 0o001 == 0:
                os.chmod(folder, folder.stat().st_mode | 0o011)
        gateway = sluice(
            "bridge", "ws://127.0.0.1:0/", f"unix://{path}",
            wrapper=["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"])
        head, _ = refusal(gateway)
        assert head.status == 502
        line = gateway.wait_log("connection closed")
        assert "upstream/connecting/unreachable" in line and "permission denied" in line, line


@pytest.mark.skipif(not networks.allowed(), reason="network namespaces are not available")
def test_exhausted_local_ports_are_a_failure_of_the_gateway(sluice, tmp_path):
    network = networks.Network("127.0.0.1")
    try:
        subprocess.run([*network.entering, "sysctl", "-qw", "net.ipv4.ip_local_port_range=40000 40001"], check=True)
        with network.inside(), Listener() as far, contextlib.ExitStack() as held:
            with contextlib.suppress(OSError):
                for _ in range(4):
                    one = held.enter_context(socket.socket())
                    one.connect(("127.0.0.1", far.port))
            gateway = sluice("serve", "--config", configuration.write(
                tmp_path / "sluice.yaml", [configuration.listener("web", f"ws+unix://{tmp_path}/web.sock")],
                [configuration.route("app", "app", path="/")],
                [configuration.upstream("app", far.url("tcp"), retries=0, eject_failures=1, eject_duration="1m")],
                control={"address": "none"}), wrapper=network.entering)
            for _ in range(2):
                with Wire.connect(tmp_path / "web.sock", within=20) as wire:
                    wire.send(request("/"))
                    assert parse_head(wire.receive_head()).status == 503
            line = gateway.wait_log("connection closed")
            assert "gateway/connecting/system" in line and "no local port is free" in line, line
    finally:
        network.close()


@pytest.mark.parametrize("scheme, path", [("tls", ""), ("wss", "/")])
def test_a_certificate_that_fails_verification_is_not_retried(sluice, authority, tmp_path, scheme, path):
    wrong = authority.server_context(authority.issue("elsewhere", names="DNS:elsewhere.test"))
    with Listener(tls=wrong) as far:
        gateway = sluice("serve", "--config", configuration.write(
            tmp_path / "sluice.yaml", [configuration.listener("web", "ws://127.0.0.1:0")],
            [configuration.route("app", "app", path="/")],
            [configuration.upstream("app", far.url(scheme, path), retries=5, retry_delay="10ms",
                                    tls={"ca": str(authority.certificate), "server-name": "localhost"})]))
        with Wire.connect(gateway.address(), within=20) as wire:
            wire.send(request("/"))
            attempts = 0
            with contextlib.suppress(AssertionError):
                while True:
                    with contextlib.suppress(OSError):
                        far.accept()
                    attempts += 1
                    far.socket.settimeout(1)
            assert attempts == 1
            assert parse_head(wire.receive_head()).status == 502
        assert "upstream/connecting/tls" in gateway.wait_log("connection closed")


def test_failover_takes_the_next_endpoint_after_a_failed_verification(sluice, authority, server_certificate, tmp_path):
    other = authority.server_context(authority.issue("elsewhere", names="DNS:elsewhere.test"))
    with Listener(tls=other) as wrong, Listener(tls=authority.server_context(server_certificate)) as right:
        gateway = sluice("serve", "--config", configuration.write(
            tmp_path / "sluice.yaml", [configuration.listener("raw", "tcp://127.0.0.1:0", route="app")],
            [configuration.route("app", "app")],
            [configuration.upstream("app", wrong.url("tls"), right.url("tls"), policy="failover", retry_delay="10ms",
                                    tls={"ca": str(authority.certificate), "server-name": "localhost"})]))
        with Wire.connect(gateway.address(), within=20) as near:
            near.send(b"hello")
            with contextlib.suppress(OSError):
                wrong.accept()
            with right.accept() as peer:
                assert peer.receive(5) == b"hello"
