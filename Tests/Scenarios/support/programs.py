"""Real programs as peers: they are started, awaited by their output or their port, and ended."""

import contextlib
import os
import pwd
import random
import shutil
import socket
import subprocess
from pathlib import Path

from .deadlines import Lines, eventually, seconds


class Program:
    """A program in the background whose output is recorded."""

    def __init__(self, *words, **more):
        self.process = subprocess.Popen([str(word) for word in words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, **more)
        self.output = Lines(self.process.stdout)

    def wait_listening(self, port, within=60.0):
        def answers():
            assert self.process.poll() is None, f"it ended: {self.output.all()[-20:]}"
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                return True
            except OSError:
                return False
        eventually(answers, f"something listening on {port}", within)
        return self

    def wait(self, within=60.0):
        code = self.process.wait(timeout=seconds(within))
        self.output.wait_for_end()
        return code

    def end(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(timeout=seconds(10))
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process.stdin.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()


def find(*names):
    """The path of the first of these programs that is installed; `deploy/install-dependencies --tests` installs them all."""
    for name in names:
        path = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")
        if path:
            return path
    raise AssertionError(f"none of {', '.join(names)} is installed: run deploy/install-dependencies --tests")


def run(*words, within=60.0, **more):
    """Runs a program to its end; returns the finished process with its output as text."""
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=seconds(within), **more)


def unprivileged():
    """Arguments of Popen that run a child as `nobody` if the tests run as root, because some servers refuse to."""
    if os.getuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def free_port():
    """A port for a program that cannot choose one and report it; below the ephemeral ports, so that no outgoing connection
    takes it before the program does."""
    for port in random.SystemRandom().sample(range(15000, 32000), 100):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    raise AssertionError("no free port below the ephemeral ones")


@contextlib.contextmanager
def refusing_port():
    """A port that refuses connections: it is bound, so that no other program gets it, and nobody listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


def listens(path):
    """Whether a Unix socket takes connections, without connecting: its file exists shortly before."""
    # The flag of listening sockets in `Num RefCount Protocol Flags Type St Inode Path`.
    rows = (line.split(None, 7) for line in Path("/proc/net/unix").read_text().splitlines()[1:])
    return any(row[7:] == [str(path)] and int(row[3], 16) & 0x10000 for row in rows)
