"""`sluice connect` on TCP, TLS and Unix sockets: bytes, ends of directions, certificates, STARTTLS."""

import contextlib
import signal
import socket
import ssl
import threading

import pytest
from aiosmtpd.controller import Controller

from support.connect import Connect, connect, events
from support.deadlines import seconds, sized
from support.websocket import Listener, Reset


@pytest.fixture
def client():
    started = []

    def start(*arguments, **more):
        started.append(Connect(*arguments, **more))
        return started[-1]

    yield start
    trapped = [str(one) for one in started if one.trapped()]
    for one in started:
        one.kill()
    assert not trapped


@pytest.fixture(params=["tcp", "unix", "tls"])
def ends(request, client, tmp_path, authority, server_certificate):
    """A client over each kind of stream, and our end of the connection."""
    kind = request.param
    context = authority.server_context(server_certificate) if kind == "tls" else None
    with Listener(path=tmp_path / "server.sock" if kind == "unix" else None, tls=context) as listener:
        def start(*words):
            more = ["--ca", authority.certificate] if kind == "tls" else []
            one = client(listener.url(kind).replace("127.0.0.1", "localhost"), *more, *words)
            return one, listener.accept()
        yield start


def finish(wire):
    """Ends our direction, under TLS with a close_notify."""
    if isinstance(wire.socket, ssl.SSLSocket):
        with contextlib.suppress(OSError):
            wire.socket.unwrap()
        return
    wire.finish_sending()


# -- bytes and ends

def test_bytes_are_relayed_before_the_end_of_input(ends):
    client, peer = ends()
    client.send(b"question\x00").finish()
    assert peer.receive_all() == b"question\x00"
    if not isinstance(peer.socket, ssl.SSLSocket):
        peer.send(b"answer after the end\n")
    finish(peer)
    assert client.wait() == 0 and client.errors.all() == []
    assert client.output.all() == ([] if isinstance(peer.socket, ssl.SSLSocket) else ["answer after the end"])


def test_received_bytes_are_written_at_once(ends):
    client, peer = ends()
    peer.send(b"welcome\n")
    client.output.wait_for(lambda line: line == "welcome", "the greeting")
    client.finish()
    assert peer.receive_all() == b""
    finish(peer)
    assert client.wait() == 0


def test_input_is_sent_after_the_peers_end(client, listener):
    one = client(listener.url("tcp"))
    peer = listener.accept()
    peer.send(b"that is all\n")
    peer.finish_sending()
    one.output.wait_for(lambda line: line == "that is all", "the message")
    data = b"x" * (1 << 20)
    one.send(data).finish()
    assert peer.receive_all() == data
    assert one.wait() == 0


def test_large_amounts_are_relayed_in_both_directions_at_once(ends):
    client, peer = ends()
    size = sized(2 << 20, 64 << 20)
    back = threading.Thread(target=lambda: peer.send(b"z" * size), daemon=True)
    back.start()
    feed = threading.Thread(target=lambda: client.send(b"y" * size), daemon=True)
    feed.start()
    assert peer.receive(size) == b"y" * size
    for thread in (back, feed):
        thread.join(seconds(60))
        assert not thread.is_alive()
    client.finish()
    peer.expect_end()
    finish(peer)
    assert client.wait(within=60) == 0 and client.output.all() == ["z" * size]


def test_a_silent_peer_is_disconnected_after_the_wait(client, listener):
    one = client(listener.url("tcp"), "--wait", "200ms")
    peer = listener.accept()
    one.send("anybody?\n").finish()
    assert peer.receive_all() == b"anybody?\n"
    assert one.wait(within=8) == 0


def test_one_reads_a_single_line_of_a_stream(client, listener):
    one = client(listener.url("tcp"), "--one")
    peer = listener.accept()
    one.send("PING\n").finish()
    assert peer.receive(5) == b"PING\n"
    peer.send(b"+PONG\r\nmore\r\n")
    assert peer.receive_all() == b""
    assert one.wait(within=8) == 0 and one.output.all() == ["+PONG"]


def test_crlf_converts_the_ends_of_lines(client, listener):
    one = client(listener.url("tcp"), "--crlf")
    peer = listener.accept()
    one.send("one\ntwo\r\nrest").finish()
    assert peer.receive_all() == b"one\r\ntwo\r\nrest"
    peer.send(b"a\r\nb\n\xff")
    peer.finish_sending()
    assert one.wait() == 0 and one.output.all()[:2] == ["a", "b"]


def test_json_reports_bytes_or_lines(client, listener):
    for words, wanted in [([], ("bytes", "data", "aGkNCg==")), (["--lines"], ("line", "text", "hi"))]:
        one = client(listener.url("tcp"), "--json", *words)
        peer = listener.accept()
        one.finish()
        assert peer.receive_all() == b""
        peer.send(b"hi\r\n")
        peer.finish_sending()
        assert one.wait() == 0
        reported = events("\n".join(one.output.all()))
        assert [line["event"] for line in reported] == ["opened", wanted[0], "ended", "closed"]
        assert reported[1][wanted[1]] == wanted[2] and reported[3]["receivedBytes"] == 4


@pytest.mark.parametrize("way", ["reset", "truncation"])
def test_an_unclean_end_exits_76(client, authority, server_certificate, way):
    context = authority.server_context(server_certificate) if way == "truncation" else None
    with Listener(tls=context) as listener:
        one = client(listener.url("tls" if context else "tcp").replace("127.0.0.1", "localhost"),
                     *(["--ca", authority.certificate] if context else []))
        peer = listener.accept()
        peer.send(b"half of it\n")
        one.output.wait_for(lambda line: line == "half of it", "the bytes before the end")
        if context:
            peer.socket.shutdown(socket.SHUT_RDWR)
        else:
            peer.reset()
        assert one.wait() == 76 and len(one.errors.all()) == 1


def test_a_signal_half_closes_the_stream(client, listener):
    one = client(listener.url("tcp"))
    peer = listener.accept()
    one.send("last words\n")
    assert peer.receive(11) == b"last words\n"
    one.signal(signal.SIGINT)
    assert peer.receive_all() == b""
    peer.close()
    assert one.wait(within=5) == 0


def test_a_missing_unix_socket_exits_69(tmp_path):
    code, _, errors = connect(f"unix://{tmp_path}/none.sock")
    assert code == 69 and f"listens at {tmp_path}/none.sock" in errors


# -- TLS

@pytest.mark.parametrize("words, remedy", [
    ([], "--ca FILE"), (["--server-name", "elsewhere.test"], "--server-name")], ids=["unknown authority", "wrong name"])
def test_a_certificate_that_fails_verification_exits_79(client, authority, server_certificate, words, remedy):
    trust = ["--ca", authority.certificate] if words else []
    with Listener(tls=authority.server_context(server_certificate)) as listener:
        one = client(listener.url("tls").replace("127.0.0.1", "localhost"), *trust, *words)
        with contextlib.suppress(OSError, AssertionError):
            listener.accept()
        assert one.wait() == 79
        reported, = one.errors.all()
        assert "TLS failed" in reported and remedy in reported


def test_disabled_verification_prints_a_warning(client, authority, server_certificate):
    with Listener(tls=authority.server_context(server_certificate)) as listener:
        one = client(listener.url("tls"), "-k", "-v")
        peer = listener.accept()
        one.send("secret\n").finish()
        assert peer.receive_all() == b"secret\n"
        finish(peer)
        assert one.wait() == 0
        reported = one.errors.all()
        assert reported[0].startswith("sluice: warning: -k") and any("TLS 1.3" in line for line in reported), reported


def test_a_client_certificate_is_presented(client, authority, server_certificate):
    context = authority.server_context(server_certificate)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(authority.certificate)
    certificate, key = authority.issue("someone", names="DNS:someone.test")
    with Listener(tls=context) as listener:
        one = client(listener.url("tls"), "--ca", authority.certificate, "--certificate", certificate, "--key", key)
        peer = listener.accept()
        assert dict(part[0] for part in peer.socket.getpeercert()["subject"])["commonName"] == "someone"
        one.finish()
        peer.expect_end()
        finish(peer)
        assert one.wait() == 0


def test_a_server_without_tls_exits_79_and_suggests_tcp(client, listener):
    one = client(listener.url("tls"), "-k", "--quiet")
    peer = listener.accept()
    peer.receive(1)
    peer.send(b"220 mail.example ESMTP\r\n")
    assert one.wait() == 79 and "tcp://" in one.errors.all()[0]


# -- STARTTLS

class PortController(Controller):
    """A controller whose port the system chooses."""

    def _trigger_server(self):
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()


class Mailbox:
    def __init__(self):
        self.kept = []

    async def handle_DATA(self, server, session, envelope):
        self.kept.append((session.ssl is not None, envelope.content))
        return "250 kept"


def test_mail_is_sent_to_a_server_after_starttls(client, authority, server_certificate):
    mailbox = Mailbox()
    controller = PortController(mailbox, hostname="127.0.0.1", port=0, require_starttls=True,
                                tls_context=authority.server_context(server_certificate))
    controller.start()
    try:
        one = client(f"tcp://localhost:{controller.port}", "--starttls", "smtp", "--crlf", "--ca", authority.certificate, "-v")
        for line, code in [("EHLO me", "250 "), ("MAIL FROM:<a@localhost>", "250"), ("RCPT TO:<b@localhost>", "250"), ("DATA", "354")]:
            before = len(one.output.all())
            one.send(line + "\n")
            one.output.wait_for(lambda said: said.startswith(code), f"{code} after {line}", start=before)
        one.send("Subject: hi\n\nhello\n.\nQUIT\n")
        one.output.wait_for(lambda said: said.startswith("221"), "the farewell")
        one.finish()
        assert one.wait() == 0
        assert mailbox.kept == [(True, b"Subject: hi\r\n\r\nhello\r\n")]
        assert any("TLS 1.3" in line for line in one.errors.all())
    finally:
        controller.stop()


def script(wire, turns):
    """Sends and expects bytes in turns."""
    for sent, expected in turns:
        if sent:
            wire.send(sent)
        if expected:
            assert wire.receive(len(expected)) == expected


def test_a_postgres_connection_is_secured_after_starttls(client, listener, authority, server_certificate):
    one = client(listener.url("tcp"), "--starttls", "postgres", "--ca", authority.certificate)
    peer = listener.accept()
    script(peer, [(b"", b"\x00\x00\x00\x08\x04\xd2\x16\x2f"), (b"S", b"")])
    peer.socket = authority.server_context(server_certificate).wrap_socket(
        peer.socket, server_side=True, suppress_ragged_eofs=False)
    one.send("under TLS\n")
    assert peer.receive(10) == b"under TLS\n"
    peer.send(b"indeed\n")
    one.output.wait_for(lambda line: line == "indeed", "the answer")
    one.finish()
    peer.expect_end()
    finish(peer)
    assert one.wait() == 0 and one.output.all() == ["indeed"]


@pytest.mark.parametrize("last, words", [
    (b"454 not now\r\n", "454 not now"), (b"220 go\r\n250 injected\r\n", "bytes of plaintext"), (b"", "before TLS")])
def test_input_is_not_sent_when_starttls_fails(client, listener, last, words):
    one = client(listener.url("tcp"), "--starttls", "smtp", "-k", "--quiet")
    one.send("password\n")
    peer = listener.accept()
    script(peer, [(b"220 x\r\n", b"EHLO localhost\r\n"), (b"250 STARTTLS\r\n", b"STARTTLS\r\n"), (last, b"")])
    if not last:
        peer.finish_sending()
    received = bytearray()
    with contextlib.suppress(Reset):
        while piece := peer.receive_some():
            received += piece
    assert received == b""
    assert one.wait() == 77 and words in one.errors.all()[0]


def test_the_dialogue_before_tls_has_a_deadline(client, listener):
    one = client(listener.url("tcp"), "--starttls", "smtp", "-k", "--quiet", "--timeout", "300ms")
    peer = listener.accept()
    assert one.wait(within=20) == 69
    peer.expect_any_end()
