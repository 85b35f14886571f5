"""The library's stream task against SMTP servers: STARTTLS in the middle of a stream, and what must never pass in the clear."""

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
    """A handler for aiosmtpd that keeps what it is handed."""

    def __init__(self):
        self.envelopes = []
        self.secured = []

    async def handle_DATA(self, server, session, envelope):
        self.secured.append(session.ssl is not None)
        self.envelopes.append(envelope)
        return "250 kept"


class PortController(Controller):
    """On a port that the system chooses."""

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
    """Stands between a client and a server, and keeps what each of them said."""

    def __init__(self, port):
        self.listener = Listener()
        self.said = {"client": bytearray(), "server": bytearray()}
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
                self.said[name] += piece
                target.sendall(piece)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            # Reset by one side: the other has nobody left either.
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


def clear_part(said):
    """What stands before the first TLS record; the rest must be records and nothing else."""
    start = said.find(b"STARTTLS\r\n")
    assert start >= 0, bytes(said)
    rest = bytes(said[start + 10:])
    at = 0
    while at < len(rest):
        assert rest[at] in RECORD_TYPES and rest[at + 1] == 3, f"no TLS record at {at}: {rest[at:at + 80]!r}"
        at += 5 + int.from_bytes(rest[at + 3:at + 5], "big")
    assert at == len(rest) or rest[at:] == b"", "a record is cut"
    return bytes(said[:start + 10])


# -- a server that is not ours

@pytest.mark.parametrize("version, name", [
    (None, "TLS 1.3"), (ssl.TLSVersion.TLSv1_3, "TLS 1.3"), (ssl.TLSVersion.TLSv1_2, "TLS 1.2")], ids=["any", "1.3", "1.2"])
@pytest.mark.parametrize("read_size", [1, 4096])
def test_a_message_is_handed_over_behind_starttls(
        task_client, mail_server, tap, authority, server_certificate, version, name, read_size):
    context = authority.server_context(server_certificate, version)
    mailbox, port = mail_server(tls_context=context, require_starttls=True)
    wire = tap(port)
    told = mail(task_client, wire.port, authority, "--read-size", read_size).report()
    assert told == {"delivered": True, "endedInOrder": True, "step": "QUIT", "tls": name}
    envelope, = mailbox.envelopes
    assert mailbox.secured == [True]
    assert (envelope.mail_from, envelope.rcpt_tos) == ("sender@localhost", ["receiver@localhost"])
    assert envelope.content.decode().split("\r\n") == [*MESSAGE, ""]
    wire.close()
    assert clear_part(wire.said["client"]) == b"EHLO client.localhost\r\nSTARTTLS\r\n"


def test_a_large_message_is_handed_over(task_client, mail_server, authority, server_certificate):
    mailbox, port = mail_server(tls_context=authority.server_context(server_certificate), require_starttls=True)
    lines = [f"line {number} " + "x" * 60 for number in range(20_000)]
    told = mail(task_client, port, authority, lines=lines).report(within=60)
    assert told["delivered"] and told["endedInOrder"], told
    assert mailbox.envelopes[0].content.decode().split("\r\n") == [*lines, ""]


@pytest.mark.parametrize("trusted", [True, False], ids=["wrong name", "unknown authority"])
def test_a_certificate_that_is_not_the_servers_ends_it(task_client, mail_server, tap, authority, server_certificate, trusted):
    mailbox, port = mail_server(tls_context=authority.server_context(server_certificate), require_starttls=True)
    wire = tap(port)
    words = ["--server-name", "mail.elsewhere.test"] if trusted else []
    told = mail(task_client, wire.port, authority if trusted else None, *words).report()
    assert not told["delivered"] and told["step"] == "STARTTLS" and "tls" not in told, told
    assert told["error"].startswith("TLS failed: ") and ("mismatch" in told["error"] if trusted else "certificate" in told["error"])
    wire.close()
    assert clear_part(wire.said["client"]) == b"EHLO client.localhost\r\nSTARTTLS\r\n"
    assert mailbox.envelopes == []


def test_a_server_that_does_not_offer_starttls_is_told_nothing(task_client, mail_server, tap, authority):
    mailbox, port = mail_server()
    wire = tap(port)
    told = mail(task_client, wire.port, authority).report()
    assert not told["delivered"] and told["error"] == "the server does not offer STARTTLS"
    wire.close()
    assert wire.said["client"] == b"EHLO client.localhost\r\n" and mailbox.envelopes == []


# -- servers of the test's own, for what no honest one does

class Script:
    """One connection of an SMTP server, line by line."""

    def __init__(self, listener):
        self.wire = listener.accept(Wire)
        self.say("220 ready")
        assert self.hear() == "EHLO client.localhost"
        self.say("250-server\r\n250 STARTTLS")
        assert self.hear() == "STARTTLS"

    def say(self, text):
        self.wire.send((text + "\r\n").encode())

    def hear(self):
        line = bytearray()
        while not line.endswith(b"\r\n"):
            line += self.wire.receive(1)
        return line[:-2].decode()

    def everything(self):
        """What else the client says, up to its end, which may be a reset."""
        heard = bytearray()
        try:
            while piece := self.wire.receive_some():
                heard += piece
        except Reset:
            pass
        return bytes(heard)


@pytest.mark.parametrize(
    "reply", ["454 TLS not available due to temporary reason", "501 no parameters", "220-go\r\n554 after all", "nonsense"])
def test_a_server_that_refuses_starttls_hears_nothing_more(task_client, listener, authority, reply):
    client = mail(task_client, listener.port, authority)
    script = Script(listener)
    script.say(reply)
    assert script.everything() == b""
    told = client.report()
    assert not told["delivered"] and told["step"] == "STARTTLS"
    assert reply.split("\r\n")[-1] in told["error"], told


@pytest.mark.parametrize("reply", ["", "220 go ahead"])
def test_a_server_that_leaves_at_starttls_hears_nothing_more(task_client, listener, authority, reply):
    client = mail(task_client, listener.port, authority)
    script = Script(listener)
    if reply:
        script.say(reply)
    script.wire.finish_sending()
    heard = script.everything()
    assert b"client.localhost" not in heard[1:] and b"MAIL" not in heard
    told = client.report()
    assert not told["delivered"] and told["error"] and told["step"] == "STARTTLS", told


INJECTED = "250-server\r\n250 AUTH PLAIN"


def test_what_a_read_took_with_the_consent_is_seen_by_who_read_it(task_client, listener, authority):
    client = mail(task_client, listener.port, authority, "--read-size", 4096)
    script = Script(listener)
    script.say(f"220 go ahead\r\n{INJECTED}")
    assert script.everything() == b""
    told = client.report()
    assert told["error"] == f"{len(INJECTED) + 2} bytes in the clear stood behind the reply to STARTTLS"


@pytest.mark.parametrize("moment", ["with the consent", "behind it", "in place of the handshake", "behind the ClientHello"])
def test_plain_bytes_behind_the_consent_are_not_taken_for_plaintext(task_client, listener, authority, moment):
    client = mail(task_client, listener.port, authority, "--read-size", 1)
    script = Script(listener)
    if moment == "with the consent":
        script.say(f"220 go ahead\r\n{INJECTED}")
    else:
        script.say("220 go ahead")
        if moment == "behind the ClientHello":
            assert script.wire.receive(1) == b"\x16"
        script.say(INJECTED if moment != "in place of the handshake" else f"{INJECTED}\r\n" * 1000)
    heard = script.everything()
    # A ClientHello and an alert at most.
    assert b"EHLO" not in heard and b"MAIL" not in heard and len(heard) < 4096
    told = client.report()
    assert not told["delivered"] and told["step"] == "STARTTLS" and told["error"].startswith("TLS failed"), told
    assert "tls" not in told


def test_plain_bytes_before_an_honest_handshake_fail_it(task_client, listener, authority, server_certificate):
    """The man in the middle adds a reply in the clear and then lets both talk: the injected reply must not be heard under TLS."""
    client = mail(task_client, listener.port, authority, "--read-size", 1)
    script = Script(listener)
    script.say(f"220 go ahead\r\n{INJECTED}")
    context = authority.server_context(server_certificate)
    try:
        # Under TLS 1.3 the server may believe in the handshake until it reads.
        heard = context.wrap_socket(script.wire.socket, server_side=True, suppress_ragged_eofs=False).recv(100)
    except OSError:
        heard = b""
    assert heard == b"", "the client went on"
    told = client.report()
    assert not told["delivered"] and told["error"].startswith("TLS failed"), told


@pytest.mark.parametrize("ending", ["close_notify", "truncation"])
def test_the_end_of_a_secured_stream_is_told_from_its_truncation(task_client, listener, authority, server_certificate, ending):
    client = mail(task_client, listener.port, authority)
    script = Script(listener)
    script.say("220 go ahead")
    script.wire.socket = authority.server_context(server_certificate).wrap_socket(
        script.wire.socket, server_side=True, suppress_ragged_eofs=False)
    answers = {"EHLO": "250 server", "MAIL": "250 ok", "RCPT": "250 ok", "DATA": "354 go on", ".": "250 kept"}
    while (line := script.hear()) != "QUIT":
        if line.split(" ")[0] in answers:
            script.say(answers[line.split(" ")[0]])
    script.say("221 bye")
    # The client's half-close: its close_notify ends our reading, while we may still write.
    assert script.wire.receive_some() == b""
    if ending == "close_notify":
        script.wire.socket.unwrap().close()
        assert client.report() == {"delivered": True, "endedInOrder": True, "step": "QUIT", "tls": "TLS 1.3"}
    else:
        script.wire.socket.shutdown(socket.SHUT_WR)
        told = client.report()
        assert not told["endedInOrder"] and "error" in told, told
