"""deploy/examples/ssh.yaml with the OpenSSH client and server."""

import hashlib
import os
import pwd
import re
from pathlib import Path

import pytest

from support import examples
from support.gateway import BINARY
from support.programs import Program, find, free_port, run


class Server:
    """An sshd for the account that runs the tests, with its own keys."""

    def __init__(self, folder):
        self.folder, self.port = folder, free_port()
        self.identity, self.host_key = folder / "identity", folder / "host_key"
        for file in (self.identity, self.host_key):
            made = run(find("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", file)
            assert made.returncode == 0, made.stderr
        (folder / "authorized").write_text(self.identity.with_suffix(".pub").read_text())
        settings = folder / "sshd_config"
        settings.write_text(
            f"ListenAddress 127.0.0.1:{self.port}\nHostKey {self.host_key}\nAuthorizedKeysFile {folder / 'authorized'}\n"
            f"PidFile none\nUsePAM no\nStrictModes no\nPermitRootLogin yes\nPasswordAuthentication no\n"
            f"PerSourceMaxStartups none\nMaxStartups 100\nSubsystem sftp internal-sftp\n")
        if os.getuid() == 0:
            # The privilege separation directory; Debian's unit creates it at start.
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        # sshd must be started by its absolute path, because it executes itself for each connection.
        self.program = Program(find("sshd"), "-D", "-e", "-f", settings).wait_listening(self.port)

    def configuration(self, proxy):
        """A client configuration that reaches this server as `inside.example` through the proxy command."""
        known = self.folder / "known_hosts"
        known.write_text(f"inside.example {self.host_key.with_suffix('.pub').read_text()}")
        file = self.folder / f"config-{hashlib.sha256(proxy.encode()).hexdigest()[:8]}"
        file.write_text(
            f"Host inside.example\n  User {pwd.getpwuid(os.getuid()).pw_name}\n  IdentityFile {self.identity}\n  IdentitiesOnly yes\n"
            f"  UserKnownHostsFile {known}\n  GlobalKnownHostsFile none\n  StrictHostKeyChecking yes\n  BatchMode yes\n"
            f"  ControlMaster no\n  ConnectTimeout 30\n  {proxy}\n")
        return file


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    one = Server(tmp_path_factory.mktemp("ssh"))
    yield one
    one.program.end()


@pytest.fixture
def gate(sluice, server, server_certificate, tmp_path):
    certificate, key = server_certificate
    return sluice("serve", "--config", examples.moved(tmp_path, "ssh.yaml", {
        "wss://*:443": "wss://127.0.0.1:0", "/etc/sluice/gate.example.pem": certificate, "/etc/sluice/gate.example.key": key,
        "gate.example": "localhost", "127.0.0.1:22": f"127.0.0.1:{server.port}"}))


@pytest.fixture(params=["ProxyCommand", "port"])
def client(request, gate, server, authority, bridge):
    """Runs `ssh` and `scp` through the gateway, in both ways that the example describes."""
    url = f"wss://localhost:{gate.port()}/ssh"
    if request.param == "port":
        near = bridge("tcp://127.0.0.1:0", url, "--ca", authority.certificate)
        proxy = f"Hostname 127.0.0.1\n  HostKeyAlias inside.example\n  Port {near.port()}"
    else:
        options = re.search(r"ProxyCommand sluice (.*) wss://\S+$", examples.text("ssh.yaml"), re.MULTILINE).group(1)
        proxy = f"ProxyCommand {BINARY} {options} --ca {authority.certificate} {url}"
    return lambda program, *words, **more: run(find(program), "-F", server.configuration(proxy), *words, **more)


def test_a_command_runs_over_ssh(client, gate):
    got = client("ssh", "inside.example", "cat; echo for the log >&2; exit 7", input="grüße\n")
    assert (got.returncode, got.stdout) == (7, "grüße\n"), got
    assert "for the log" in got.stderr
    gate.wait_log(r"connection closed .*route=ssh .*reason=\S+/clean")


def test_files_are_copied_both_ways(client, tmp_path):
    content = os.urandom(6 << 20)
    here, there, back = (tmp_path / name for name in ("here", "there", "back"))
    here.write_bytes(content)
    for words in ((here, f"inside.example:{there}"), (f"inside.example:{there}", back)):
        got = client("scp", "-q", *words, within=120)
        assert got.returncode == 0, got.stderr
    assert there.read_bytes() == content and back.read_bytes() == content


def test_ssh_reports_an_unreachable_server(server, sluice, server_certificate, authority, tmp_path):
    certificate, key = server_certificate
    gate = sluice("serve", "--config", examples.moved(tmp_path, "ssh.yaml", {
        "wss://*:443": "wss://127.0.0.1:0", "/etc/sluice/gate.example.pem": certificate, "/etc/sluice/gate.example.key": key,
        "gate.example": "localhost", "127.0.0.1:22": f"127.0.0.1:{free_port()}"}))
    proxy = f"ProxyCommand {BINARY} connect --quiet --binary --wait none --ca {authority.certificate} wss://localhost:{gate.port()}/ssh"
    got = run(find("ssh"), "-F", server.configuration(proxy), "inside.example", "true")
    assert got.returncode == 255 and "502" in got.stderr, got
