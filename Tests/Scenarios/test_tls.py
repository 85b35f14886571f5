"""TLS on both sides: verification of certificates, revocation, server names, and how connections end."""

import os
import signal
import socket
import ssl
import struct
import threading

import pytest

from support import configuration, websocket
from support.certificates import Authority
from support.deadlines import eventually
from support.ends import RawEnd
from support.websocket import Listener, Wire, parse_head, request

VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]


def accept_quietly(listener):
    """Accepts connections whose TLS handshake may fail, until one succeeds or the listener times out."""
    taken = []

    def take():
        while not taken:
            try:
                taken.append(listener.accept())
            except (ssl.SSLError, ConnectionError):
                continue
            except (AssertionError, OSError):
                return  # No connection came, or the listener is closed.

    thread = threading.Thread(target=take, daemon=True)
    thread.start()
    return thread, taken


# -- towards targets: verification is on by default

@pytest.fixture
def wrong(authority):
    stranger = Authority(authority.folder / "stranger", "Stranger")
    return {
        "expired": authority.issue("expired", ends="20210101000000Z"),
        "not yet valid": authority.issue("early", starts="20490101000000Z"),
        "of another name": authority.issue("other", names="DNS:other.example"),
        "self-signed": authority.self_signed("alone"),
        "of a stranger": stranger.issue("strange"),
    }


@pytest.mark.parametrize("fault", ["expired", "not yet valid", "of another name", "self-signed", "of a stranger"])
def test_a_target_with_a_wrong_certificate_receives_no_data(bridge, authority, wrong, fault):
    with Listener(tls=authority.server_context(wrong[fault])) as far:
        thread, taken = accept_quietly(far)
        gateway = bridge("tcp://127.0.0.1:0", far.url("tls"), "--ca", authority.certificate, "--server-name", "localhost")
        Wire.expect_refusal(gateway.address(), b"secret", within=20)
        web = bridge("ws://127.0.0.1:0/", far.url("wss", "/"), "--ca", authority.certificate, "--server-name", "localhost")
        with Wire.connect(web.address(), within=20) as near:
            near.send(request())
            assert parse_head(near.receive_head()).status == 502
        far.close()
        thread.join(10)
        assert not taken, "the gateway finished a handshake with it"


def test_the_systems_roots_are_trusted_by_default(bridge, authority, server_certificate):
    with Listener(tls=authority.server_context(server_certificate)) as far:
        accept_quietly(far)
        gateway = bridge("tcp://127.0.0.1:0", far.url("tls"), "--server-name", "localhost")
        Wire.expect_refusal(gateway.address(), within=20)


@pytest.mark.parametrize("fault", ["expired", "of another name", "self-signed"])
def test_insecure_accepts_any_certificate(bridge, authority, wrong, fault):
    with Listener(tls=authority.server_context(wrong[fault])) as far:
        thread, taken = accept_quietly(far)
        gateway = bridge("tcp://127.0.0.1:0", far.url("tls"), "--insecure")
        with Wire.connect(gateway.address()) as near:
            near.send(b"hello")
            thread.join(10)
            assert taken[0].receive(5) == b"hello"


def test_an_ip_address_is_verified_against_ip_names(bridge, authority):
    named = authority.issue("by address", names="IP:127.0.0.1")
    with Listener(tls=authority.server_context(named)) as far:
        thread, taken = accept_quietly(far)
        gateway = bridge("tcp://127.0.0.1:0", far.url("tls"), "--ca", authority.certificate)
        with Wire.connect(gateway.address()) as near:
            near.send(b"hello")
            thread.join(10)
            assert taken[0].receive(5) == b"hello"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_client_certificate_is_sent_when_requested(bridge, authority, server_certificate, version):
    context = authority.server_context(server_certificate, version)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(authority.certificate)
    certificate, key = authority.issue("the gateway")
    with Listener(tls=context) as far:
        thread, taken = accept_quietly(far)
        gateway = bridge("tcp://127.0.0.1:0", far.url("tls"), "--ca", authority.certificate, "--server-name", "localhost",
                         "--client-certificate", certificate, "--client-key", key)
        with Wire.connect(gateway.address()) as near:
            near.send(b"hello")
            thread.join(10)
            assert taken[0].receive(5) == b"hello"
            subject = taken[0].socket.getpeercert()["subject"]
            assert subject == ((("commonName", "the gateway"),),)


# -- revocation: a root, two intermediate authorities, and the revocation lists of each

class Revoking:
    def __init__(self, folder):
        self.root = Authority(folder, "Revoking root")
        issuing, withdrawn = self.root.intermediate("Issuing"), self.root.intermediate("Withdrawn")
        self.good, self.bad, self.orphan = issuing.issue("good"), issuing.issue("bad"), withdrawn.issue("orphan")
        self.lists = [
            self.root.revocation_list(withdrawn.certificate), issuing.revocation_list(self.bad[0]), withdrawn.revocation_list()]

    def options(self, name, count=3):
        return [word for file in self.lists[:count] for word in (name, file)]


@pytest.fixture(scope="module")
def revoking(tmp_path_factory):
    return Revoking(tmp_path_factory.mktemp("revoking"))


@pytest.mark.parametrize("who,lists,error", [
    ("good", 3, None), ("bad", 3, "revoked"),
    ("orphan", 3, "revoked"),  # The authority that issued the leaf is revoked.
    ("good", 1, "CRL"),  # The list of the leaf's issuer is missing.
    ("bad", 0, None)])
def test_a_target_with_a_revoked_chain_receives_no_data(bridge, revoking, who, lists, error):
    with Listener(tls=revoking.root.server_context(getattr(revoking, who))) as far:
        thread, taken = accept_quietly(far)
        gateway = bridge("tcp://127.0.0.1:0", far.url("tls"), "--ca", revoking.root.certificate, "--server-name", "localhost",
                         *revoking.options("--crl", lists))
        if error is None:
            with Wire.connect(gateway.address(), within=20) as near:
                near.send(b"secret")
                thread.join(10)
                assert taken[0].receive(6) == b"secret"
            return
        Wire.expect_refusal(gateway.address(), b"secret", within=20)
        assert error in gateway.wait_log("connection closed")
        far.close()
        thread.join(10)
        assert not taken, "the gateway finished a handshake with it"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_client_with_a_revoked_chain_is_refused(bridge, revoking, authority, server_certificate, version):
    certificate, key = server_certificate
    gateway = bridge("wss://127.0.0.1:0/echo", "echo", "--certificate", certificate, "--key", key, "--client-ca",
                     revoking.root.certificate, *revoking.options("--client-crl"))
    for bad in (revoking.bad, revoking.orphan):
        with pytest.raises((AssertionError, OSError)):
            # With TLS 1.3 the client sees the refusal only at its first read.
            with websocket.connect(gateway.address(), "/echo", tls=authority.client_context(bad, version)):
                pass
    with websocket.connect(gateway.address(), "/echo", tls=authority.client_context(revoking.good, version)) as client:
        client.text("hello")
        client.expect_text("hello")


def test_a_reload_reads_the_revocation_lists(sluice, authority, tmp_path, server_certificate):
    root = Authority(tmp_path / "root", "Renewing root")
    client = root.issue("a client")
    certificate, key = server_certificate
    tls = {"certificate": str(certificate), "key": str(key), "client-ca": str(root.certificate),
           "client-crl": str(root.revocation_list())}
    gateway = sluice("serve", "--config", configuration.write(
        tmp_path / "sluice.yaml", [configuration.listener("web", "wss://127.0.0.1:0", tls=tls)],
        [configuration.route("echo", "echo", path="/echo")]))

    def is_accepted():
        try:
            with websocket.connect(gateway.address(), "/echo", tls=authority.client_context(client)):
                return True
        except (AssertionError, OSError):
            return False

    assert is_accepted()
    root.revocation_list(client[0])
    assert is_accepted()
    gateway.signal(signal.SIGHUP)
    eventually(lambda: not is_accepted(), "the refusal of the client")


# -- on listeners

@pytest.mark.parametrize("version", VERSIONS)
def test_a_listener_requires_a_trusted_client_certificate(bridge, authority, server_certificate, version):
    certificate, key = server_certificate
    gateway = bridge("wss://127.0.0.1:0/echo", "echo", "--certificate", certificate, "--key", key, "--client-ca", authority.certificate)
    good = authority.client_context(authority.issue("a client"), version)
    with websocket.connect(gateway.address(), "/echo", tls=good) as client:
        client.text("hello")
        client.expect_text("hello")
    for bad in (None, authority.self_signed("a stranger"), authority.issue("late", ends="20210101000000Z")):
        with pytest.raises((AssertionError, OSError)):
            # With TLS 1.3 the client sees the refusal only at its first read.
            with websocket.connect(gateway.address(), "/echo", tls=authority.client_context(bad, version)):
                pass


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("records", ["openssl", "compact"])
def test_openssl_and_compact_records_carry_messages_and_end_cleanly(sluice, authority, server_certificate, tmp_path, version, records):
    certificate, key = map(str, server_certificate)
    tls = {"certificate": certificate, "key": key, "records": records}
    gateway = sluice("serve", "--config", configuration.write(
        tmp_path / "sluice.yaml", [configuration.listener("web", "wss://127.0.0.1:0", tls=tls)],
        [configuration.route("echo", "echo", path="/echo", max_message_size="8MiB")], control={"address": "none"}))
    with websocket.connect(gateway.address(), "/echo", tls=authority.client_context(None, version)) as client:
        for size in (0, 1, 16_384, 16_385, 3 << 20):
            body = os.urandom(size)
            client.binary(body)
            client.expect_binary(body)
        client.close_cleanly()
    assert "reason=downstream/relaying/clean" in gateway.wait_log("connection closed")


def test_the_certificate_is_chosen_by_server_name(sluice, authority, tmp_path):
    first, second = authority.issue("first", names="DNS:first.example"), authority.issue("second", names="DNS:second.example")
    certificates = [{"certificate": str(certificate), "key": str(key)} for certificate, key in (first, second)]
    file = configuration.write(
        tmp_path / "sluice.yaml", [configuration.listener("web", "wss://127.0.0.1:0", tls={"certificates": certificates})],
        [configuration.route("echo", "echo", path="/echo")])
    gateway = sluice("serve", "--config", file)
    for name in ("first.example", "second.example"):
        with websocket.connect(gateway.address(), "/echo", tls=authority.client_context(), server_name=name) as client:
            client.text(name)
            client.expect_text(name)


@pytest.mark.parametrize("scheme", ["tls", "wss"])
def test_the_server_name_of_a_target_is_sent(bridge, authority, server_certificate, scheme):
    asked = []
    context = authority.server_context(server_certificate)
    context.sni_callback = lambda _, name, __: asked.append(name)
    with websocket.Listener(tls=context) as target:
        gateway = bridge("tcp://127.0.0.1:0", f"{scheme}://localhost:{target.port}", "--ca", authority.certificate)
        with Wire.connect(gateway.address()):
            with target.accept():
                assert asked == ["localhost"]


def test_the_certificate_is_chosen_by_configured_server_names(sluice, authority, tmp_path):
    first, second = authority.issue("first", names="DNS:first.example"), authority.issue("second", names="DNS:second.example")
    names = ["other.example", "*.wild.example"]
    certificates = [
        {"certificate": str(first[0]), "key": str(first[1])},
        {"certificate": str(second[0]), "key": str(second[1]), "server-names": names}]
    file = configuration.write(
        tmp_path / "sluice.yaml", [configuration.listener("web", "wss://127.0.0.1:0", tls={"certificates": certificates})],
        [configuration.route("echo", "echo", path="/echo")], control={"address": "none"})
    gateway = sluice("serve", "--config", file)

    def shown(name):
        context = authority.client_context()
        context.check_hostname = False
        with websocket.connect(gateway.address(), "/echo", tls=context, server_name=name) as client:
            return dict(pair for group in client.socket.getpeercert()["subject"] for pair in group)["commonName"]

    assert {name: shown(name) for name in ("other.example", "A.wild.example", "a.b.wild.example", "first.example", "second.example")} == {
        "other.example": "second", "A.wild.example": "second", "a.b.wild.example": "first", "first.example": "first",
        # `server-names` replaces the certificate's own names.
        "second.example": "first"}


def test_plain_and_tls_share_a_port_if_configured(sluice, authority, server_certificate, tmp_path):
    certificate, key = map(str, server_certificate)
    listener = configuration.listener(
        "web", "wss://127.0.0.1:0", tls={"certificate": certificate, "key": key}, plain_and_tls=True)
    file = configuration.write(tmp_path / "sluice.yaml", [listener], [configuration.route("echo", "echo", path="/echo")])
    gateway = sluice("serve", "--config", file)
    for tls in (authority.client_context(), None):
        with websocket.connect(gateway.address(), "/echo", tls=tls) as client:
            client.text("hello")
            client.expect_text("hello")
            client.close_cleanly()


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\x00\x05hello", b"\x00" * 64, b"\x16\x03\x01\xff\xff" + b"x" * 70000])
def test_bytes_that_are_no_tls_are_refused(bridge, authority, server_certificate, data):
    certificate, key = server_certificate
    gateway = bridge("wss://127.0.0.1:0/echo", "echo", "--certificate", certificate, "--key", key)
    with Wire.connect(gateway.address()) as wire:
        try:
            wire.send(data)
            wire.receive_all(limit=4096)
        except websocket.Reset:
            pass
    with websocket.connect(gateway.address(), "/echo", tls=authority.client_context()) as client:
        client.text("hello")
        client.expect_text("hello")


def test_a_stalled_tls_handshake_times_out(bridge, server_certificate):
    certificate, key = server_certificate
    gateway = bridge("wss://127.0.0.1:0/echo", "echo", "--certificate", certificate, "--key", key, "--handshake-timeout", "500ms")
    for data in (b"", b"\x16", b"\x16\x03\x01\x02\x00\x01"):
        with Wire.connect(gateway.address()) as wire:
            wire.send(data)
            try:
                wire.receive_all(limit=4096)
            except websocket.Reset:
                pass


# -- ends: close_notify is a clean end, its absence a truncation

def raw_pair(bridge, authority, certificate):
    """A raw client, and the TLS server's end of its tunnel."""
    far = Listener(tls=authority.server_context(certificate))
    thread, taken = accept_quietly(far)
    gateway = bridge("tcp://127.0.0.1:0", far.url("tls"), "--ca", authority.certificate, "--server-name", "localhost")
    near = Wire.connect(gateway.address())
    near.send(b"hello")
    thread.join(10)
    assert taken[0].receive(5) == b"hello"
    return near, taken[0], far


def test_close_notify_of_a_target_is_relayed_as_an_end(bridge, authority, server_certificate):
    near, far, _ = raw_pair(bridge, authority, server_certificate)
    far.send(b"all of it")
    closing = threading.Thread(target=lambda: shut(far.socket), daemon=True)
    closing.start()
    assert near.receive(9) == b"all of it"
    near.expect_end()
    near.close()
    closing.join(10)


def shut(sock):
    try:
        sock.unwrap().close()
    except OSError:
        pass


def test_a_target_that_ends_without_close_notify_resets_the_client(bridge, authority, server_certificate):
    near, far, _ = raw_pair(bridge, authority, server_certificate)
    far.send(b"part of it")
    assert near.receive(10) == b"part of it"
    plain = socket.socket(fileno=far.socket.detach())
    plain.shutdown(socket.SHUT_WR)
    near.expect_reset()
    plain.close()


def test_a_client_that_ends_without_close_notify_resets_the_target(bridge, listener, authority, server_certificate):
    certificate, key = server_certificate
    gateway = bridge("tls://127.0.0.1:0", listener.url("tcp"), "--certificate", certificate, "--key", key)
    near = Wire.connect(gateway.address(), tls=authority.client_context())
    near.send(b"part of it")
    far = listener.accept()
    assert far.receive(10) == b"part of it"
    plain = socket.socket(fileno=near.socket.detach())
    plain.shutdown(socket.SHUT_WR)
    far.expect_reset()
    plain.close()


def test_the_end_of_a_raw_client_is_relayed_as_close_notify(bridge, authority, server_certificate):
    near, far, _ = raw_pair(bridge, authority, server_certificate)
    near.send(b"the last")
    near.finish_sending()
    assert far.receive(8) == b"the last"
    far.expect_end()  # Python raises if TLS ends without close_notify.


def test_a_large_transfer_is_relayed_with_tls_on_both_sides(bridge, authority, server_certificate):
    certificate, key = server_certificate
    data = bytes(range(256)) * (32 << 12)
    with Listener(tls=authority.server_context(server_certificate)) as far:
        thread, taken = accept_quietly(far)
        gateway = bridge("tls://127.0.0.1:0", far.url("tls"), "--certificate", certificate, "--key", key,
                         "--ca", authority.certificate, "--server-name", "localhost")
        near = RawEnd(Wire.connect(gateway.address(), tls=authority.client_context(), within=30))
        sender = threading.Thread(target=near.send, args=(data,), daemon=True)
        sender.start()
        thread.join(10)
        assert taken[0].receive(len(data)) == data
        sender.join()
