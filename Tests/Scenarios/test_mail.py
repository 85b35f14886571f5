"""The library's stream task against SMTP servers: STARTTLS within a stream, and bytes that must never be sent in the clear."""

import contextlib
import socket
import ssl
import threading

import pytest
from aiosmtpd.controller import Controller

from support.deadlines import seconds
from support.websocket import Listener, Reset, Wire

MESSAGE = ["Subject: greetings", "", "Hello é", ".", "..two dots", "", "the end"]
# RFC 8446 §5.1: change_cipher_spec, alert, handshake, application_data.
RECORD_TYPES = {20, 21, 22, 23}


class Mailbox:
    """A handler for aiosmtpd that stores received envelopes."""

    def __init__(self):
        self.envelopes = []
        self.secured = []

    async def handle_DATA(self, server, session, envelope):
        self.secured.append(session.ssl is not None)
        self.envelopes.append(envelope)
        return "250 kept"


class PortController(Controller):
    """A controller whose port the system chooses."""

    def _trigger_server(self):
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()


@pytest.fixture
def mail_server():
    """Starts SMTP servers: (mailbox, port)."""
    started = []

    def start(**settings):
        mailbox = Mailbox()
        controller = PortController(mailbox, hostname="127.0.0.1", port=0, **settings)
        controller.start()
        started.append(controller)
        return mailbox, controller.port

    yield start
    for controller in started:
        controller.stop()


class Tap:
    """A relay between a client and a server that records the bytes of both."""

    def __init__(self, port):
        self.listener = Listener()
        self.recorded = {"client": bytearray(), "server": bytearray()}
        self.threads = [threading.Thread(target=self._join, args=(port,), daemon=True)]
        self.threads[0].start()

    @property
    def port(self):
        return self.listener.port

    def _join(self, port):
        near = self.listener.accept().socket
        far = socket.create_connection(("127.0.0.1", port), timeout=seconds(10))
        self.threads += [threading.Thread(target=self._copy, args=way, daemon=True)
                         for way in ((near, far, "client"), (far, near, "server"))]
        for thread in self.threads[1:]:
            thread.start()

    def _copy(self, source, target, name):
        try:
            while piece := source.recv(65536):
                self.recorded[name] += piece
                target.sendall(piece)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            # One side reset its connection: end the other one too.
            with contextlib.suppress(OSError):
                target.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.listener.close()
        for thread in self.threads:
            thread.join(seconds(10))


@pytest.fixture
def tap():
    taps = []

    def start(port):
        taps.append(Tap(port))
        return taps[-1]

    yield start
    for one in taps:
        one.close()


def mail(task_client, port, authority=None, *words, lines=MESSAGE):
    trust = ["--ca", authority.certificate] if authority else []
    return task_client("mail", "localhost", port, *trust, *words, text="".join(f"{line}\n" for line in lines))


def plaintext(recorded):
    """The bytes before the first TLS record; the rest must be whole records."""
    start = recorded.find(b"STARTTLS\r\n")
    assert start >= 0, bytes(recorded)
    rest = bytes(recorded[start + 10:])
    at = 0
    while at < len(rest):
        assert rest[at] in RECORD_TYPES and rest[at + 1] == 3, f"no TLS record at {at}: {rest[at:at + 80]!r}"
        at += 5 + int.from_bytes(rest[at + 3:at + 5], "big")
    assert at == len(rest) or rest[at:] == b"", "a record is cut"
    return bytes(recorded[:start + 10])


# -- aiosmtpd as the server

@pytest.mark.parametrize("version, name", [
    (None, "TLS 1.3"), (ssl.TLSVersion.TLSv1_3, "TLS 1.3"), (ssl.TLSVersion.TLSv1_2, "TLS 1.2")], ids=["any", "1.3", "1.2"])
@pytest.mark.parametrize("read_size", [1, 4096])
def test_a_message_is_delivered_after_starttls(
        task_client, mail_server, tap, authority, server_certificate, version, name, read_size):
    context = authority.server_context(server_certificate, version)
    mailbox, port = mail_server(tls_context=context, require_starttls=True)
    wire = tap(port)
    report = mail(task_client, wire.port, authority, "--read-size", read_size).report()
    assert report == {"delivered": True, "endedInOrder": True, "step": "QUIT", "tls": name}
    envelope, = mailbox.envelopes
    assert mailbox.secured == [True]
    assert (envelope.mail_from, envelope.rcpt_tos) == ("sender@localhost", ["receiver@localhost"])
    assert envelope.content.decode().split("\r\n") == [*MESSAGE, ""]
    wire.close()
    assert plaintext(wire.recorded["client"]) == b"EHLO client.localhost\r\nSTARTTLS\r\n"


def test_a_large_message_is_delivered_after_starttls(task_client, mail_server, authority, server_certificate):
    mailbox, port = mail_server(tls_context=authority.server_context(server_certificate), require_starttls=True)
    lines = [f"line {number} " + "x" * 60 for number in range(20_000)]
    report = mail(task_client, port, authority, lines=lines).report(within=60)
    assert report["delivered"] and report["endedInOrder"], report
    assert mailbox.envelopes[0].content.decode().split("\r\n") == [*lines, ""]


@pytest.mark.parametrize("trusted", [True, False], ids=["wrong name", "unknown authority"])
def test_a_certificate_that_fails_verification_ends_the_dialogue(task_client, mail_server, tap, authority, server_certificate, trusted):
    mailbox, port = mail_server(tls_context=authority.server_context(server_certificate), require_starttls=True)
    wire = tap(port)
    words = ["--server-name", "mail.elsewhere.test"] if trusted else []
    report = mail(task_client, wire.port, authority if trusted else None, *words).report()
    assert not report["delivered"] and report["step"] == "STARTTLS" and "tls" not in report, report
    assert report["error"].startswith("TLS failed: ") and ("mismatch" in report["error"] if trusted else "certificate" in report["error"])
    wire.close()
    assert plaintext(wire.recorded["client"]) == b"EHLO client.localhost\r\nSTARTTLS\r\n"
    assert mailbox.envelopes == []


def test_no_mail_is_sent_to_a_server_without_starttls(task_client, mail_server, tap, authority):
    mailbox, port = mail_server()
    wire = tap(port)
    report = mail(task_client, wire.port, authority).report()
    assert not report["delivered"] and report["error"] == "the server does not offer STARTTLS"
    wire.close()
    assert wire.recorded["client"] == b"EHLO client.localhost\r\n" and mailbox.envelopes == []


# -- scripted servers that misbehave

class Script:
    """One connection of an SMTP server, line by line."""

    def __init__(self, listener):
        self.wire = listener.accept(Wire)
        self.write_line("220 ready")
        assert self.read_line() == "EHLO client.localhost"
        self.write_line("250-server\r\n250 STARTTLS")
        assert self.read_line() == "STARTTLS"

    def write_line(self, text):
        self.wire.send((text + "\r\n").encode())

    def read_line(self):
        line = bytearray()
        while not line.endswith(b"\r\n"):
            line += self.wire.receive(1)
        return line[:-2].decode()

    def read_to_end(self):
        """The remaining bytes of the client up to its end, which may be a reset."""
        received = bytearray()
        try:
            while piece := self.wire.receive_some():
                received += piece
        except Reset:
            pass
        return bytes(received)


@pytest.mark.parametrize(
    "reply", ["454 TLS not available due to temporary reason", "501 no parameters", "220-go\r\n554 after all", "nonsense"])
def test_nothing_is_sent_after_a_refused_starttls(task_client, listener, authority, reply):
    client = mail(task_client, listener.port, authority)
    script = Script(listener)
    script.write_line(reply)
    assert script.read_to_end() == b""
    report = client.report()
    assert not report["delivered"] and report["step"] == "STARTTLS"
    assert reply.split("\r\n")[-1] in report["error"], report


@pytest.mark.parametrize("reply", ["", "220 go ahead"])
def test_no_mail_is_sent_when_the_server_ends_at_starttls(task_client, listener, authority, reply):
    client = mail(task_client, listener.port, authority)
    script = Script(listener)
    if reply:
        script.write_line(reply)
    script.wire.finish_sending()
    received = script.read_to_end()
    assert b"client.localhost" not in received[1:] and b"MAIL" not in received
    report = client.report()
    assert not report["delivered"] and report["error"] and report["step"] == "STARTTLS", report


INJECTED = "250-server\r\n250 AUTH PLAIN"


def test_plaintext_read_with_the_reply_to_starttls_is_reported(task_client, listener, authority):
    client = mail(task_client, listener.port, authority, "--read-size", 4096)
    script = Script(listener)
    script.write_line(f"220 go ahead\r\n{INJECTED}")
    assert script.read_to_end() == b""
    report = client.report()
    assert report["error"] == f"{len(INJECTED) + 2} bytes of plaintext followed the reply to STARTTLS"


@pytest.mark.parametrize("moment", ["with the reply", "after the reply", "in place of the handshake", "after the ClientHello"])
def test_plaintext_after_the_reply_to_starttls_fails_the_handshake(task_client, listener, authority, moment):
    client = mail(task_client, listener.port, authority, "--read-size", 1)
    script = Script(listener)
    if moment == "with the reply":
        script.write_line(f"220 go ahead\r\n{INJECTED}")
    else:
        script.write_line("220 go ahead")
        if moment == "after the ClientHello":
            assert script.wire.receive(1) == b"\x16"
        script.write_line(INJECTED if moment != "in place of the handshake" else f"{INJECTED}\r\n" * 1000)
    received = script.read_to_end()
    # At most a ClientHello and an alert.
    assert b"EHLO" not in received and b"MAIL" not in received and len(received) < 4096
    report = client.report()
    assert not report["delivered"] and report["step"] == "STARTTLS" and report["error"].startswith("TLS failed"), report
    assert "tls" not in report


def test_plaintext_injected_before_a_valid_handshake_fails_it(task_client, listener, authority, server_certificate):
    """A man in the middle injects a plaintext reply and then relays: the client must not read the reply as TLS data."""
    client = mail(task_client, listener.port, authority, "--read-size", 1)
    script = Script(listener)
    script.write_line(f"220 go ahead\r\n{INJECTED}")
    context = authority.server_context(server_certificate)
    try:
        # With TLS 1.3 the server may complete the handshake and see the failure only when it reads.
        received = context.wrap_socket(script.wire.socket, server_side=True, suppress_ragged_eofs=False).recv(100)
    except OSError:
        received = b""
    assert received == b"", "the client continued"
    report = client.report()
    assert not report["delivered"] and report["error"].startswith("TLS failed"), report


@pytest.mark.parametrize("ending", ["close_notify", "truncation"])
def test_truncation_of_a_secured_stream_is_reported(task_client, listener, authority, server_certificate, ending):
    client = mail(task_client, listener.port, authority)
    script = Script(listener)
    script.write_line("220 go ahead")
    script.wire.socket = authority.server_context(server_certificate).wrap_socket(
        script.wire.socket, server_side=True, suppress_ragged_eofs=False)
    answers = {"EHLO": "250 server", "MAIL": "250 ok", "RCPT": "250 ok", "DATA": "354 go on", ".": "250 kept"}
    while (line := script.read_line()) != "QUIT":
        if line.split(" ")[0] in answers:
            script.write_line(answers[line.split(" ")[0]])
    script.write_line("221 bye")
    # The client's half-close: its close_notify ends our reading, while we may still write.
    assert script.wire.receive_some() == b""
    if ending == "close_notify":
        script.wire.socket.unwrap().close()
        assert client.report() == {"delivered": True, "endedInOrder": True, "step": "QUIT", "tls": "TLS 1.3"}
    else:
        script.wire.socket.shutdown(socket.SHUT_WR)
        report = client.report()
        assert not report["endedInOrder"] and "error" in report, report
