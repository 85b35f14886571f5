"""deploy/examples/mail.yaml and send-mail: mail sent after STARTTLS with the REST interface alone, to a real SMTP server."""

import os

import pytest
from aiosmtpd.controller import Controller

from support import examples
from support.certificates import Authority
from support.control import Control
from support.programs import free_port, run


class Mailbox:
    """Stores received envelopes."""

    def __init__(self):
        self.envelopes = []

    async def handle_RCPT(self, server, session, envelope, address, options):
        if address == "nobody@b.test":
            return "550 no such mailbox"
        envelope.rcpt_tos.append(address)
        return "250 known"

    async def handle_DATA(self, server, session, envelope):
        self.envelopes.append((session.ssl is not None, envelope))
        return "250 kept"


@pytest.fixture
def mail(example, tmp_path):
    """Starts an SMTP server with these settings and a gateway whose only target it is: (mailbox, port, control)."""
    servers = []

    def start(**settings):
        mailbox, port = Mailbox(), free_port()
        servers.append(Controller(mailbox, hostname="127.0.0.1", port=port, **settings))
        servers[-1].start()
        path = tmp_path / "control.sock"
        gateway = example("mail.yaml", {
            "unix:///run/sluice/control.sock": f"unix://{path}", "mail.example:587": f"localhost:{port}",
            "ws://127.0.0.1:8080": "ws://127.0.0.1:0"})
        return mailbox, port, Control.of(gateway)

    yield start
    for server in servers:
        server.stop()


def send_mail(control, *words, text, **environment):
    return run("bash", examples.FOLDER / "send-mail", *words, input=text, env={**os.environ, "SLUICE_CONTROL": control.url, **environment})


MESSAGE = "Subject: greetings\n\nHello é\n.\n..two dots\n" + "a line like others\n" * 5000 + "no end of line"


def test_mail_is_sent_after_starttls_over_rest(mail, authority, server_certificate):
    mailbox, port, control = mail(tls_context=authority.server_context(server_certificate), require_starttls=True)
    got = send_mail(control, f"localhost:{port}", "ada@a.test", "bob@b.test", text=MESSAGE, MAIL_CA=str(authority.certificate))
    assert (got.returncode, got.stdout) == (0, "250 kept\n"), got
    (secured, envelope), = mailbox.envelopes
    assert secured and (envelope.mail_from, envelope.rcpt_tos) == ("ada@a.test", ["bob@b.test"])
    assert envelope.content.decode().split("\r\n") == [*MESSAGE.split("\n"), ""]
    over, = control.list(state="closed", direction="opened")
    assert over["description"] == "mail to bob@b.test" and over["tls"]["serverName"] == "localhost", over
    assert not control.list(direction="opened")


@pytest.mark.parametrize("fault, message", [
    ("no starttls", "offers no STARTTLS"), ("strange certificate", "certificate"), ("elsewhere", "403"), ("refused", "the mail server says: 550 no such mailbox")])
def test_a_mail_that_is_not_sent_reports_the_reason(mail, authority, server_certificate, tmp_path, fault, message):
    secure = {"tls_context": authority.server_context(server_certificate), "require_starttls": True}
    mailbox, port, control = mail(**({} if fault == "no starttls" else secure))
    recipient = "nobody@b.test" if fault == "refused" else "bob@b.test"
    server = f"localhost:{free_port()}" if fault == "elsewhere" else f"localhost:{port}"
    trusted = Authority(tmp_path / "strangers") if fault == "strange certificate" else authority
    got = send_mail(control, server, "ada@a.test", recipient, text=MESSAGE, MAIL_CA=str(trusted.certificate))
    assert got.returncode == 1 and got.stderr.startswith("send-mail: ") and len(got.stderr.splitlines()) == 1, got
    assert message in got.stderr, got.stderr
    assert not mailbox.envelopes and not control.list(direction="opened")


@pytest.mark.parametrize("words", [
    [], ["localhost:25"], ["localhost:25", "a@b.test", "c@d.test\r\nRSET"], ["localhost", "a@b.test", "c@d.test"],
    ["localhost:25", "<a@b.test>", "c@d.test"]])
def test_wrong_arguments_are_wrong_usage(words):
    got = run("bash", examples.FOLDER / "send-mail", *words, input="")
    assert got.returncode == 64 and got.stderr.startswith("send-mail: ") and len(got.stderr.splitlines()) <= 2, got


def test_a_missing_gateway_is_reported(tmp_path):
    got = run("bash", examples.FOLDER / "send-mail", "localhost:25", "a@b.test", "c@d.test", input="",
              env={**os.environ, "SLUICE_CONTROL": f"unix://{tmp_path}/nobody.sock"})
    assert got.returncode == 1 and "is the gateway running?" in got.stderr, got
